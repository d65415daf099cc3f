"""The work that runs through a connection: who is told of it, how it is stopped, how its workers are started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.execution.engine import EngineName
from windrow.execution.executor import Job, Progress
from windrow.execution.java import find_java
from windrow.execution.progress import progress_reporter

if TYPE_CHECKING:
    from windrow.api.database import Database

__all__ = ["EngineName", "Progress", "cancellable", "find_java", "progress_reporter", "start_workers"]


@contextmanager
def cancellable(database: Database) -> Iterator[None]:
    """What ``Database.cancel`` stops as a whole.

    Some work is several jobs, one after the other; one that would begin after ``cancel`` must not run either.
    """
    database.engine.cancellation.begin()
    try:
        yield
    finally:
        database.engine.cancellation.end()


def start_workers(database: Database) -> int:
    """Start Spark and the Python of its workers, which the first job would else wait for; says how many there are."""
    executor = database.engine.spark()
    executor.run(Job("a first job", abs, list(range(executor.workers))))
    return executor.workers
