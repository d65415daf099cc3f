"""What it means to run work: tasks in, receipts out, with a memory limit, progress and cancellation.

A *task* is a small description (which block, which version, which function); the function reads what it needs from
the store, writes its results to the store, and returns a small receipt. The same functions run in this process and
on Spark's workers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from windrow.errors import CancelledError, MemoryLimitError
from windrow.model.schema import CHUNK_COLUMN

Task = TypeVar("Task")
Receipt = TypeVar("Receipt")

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many tasks are done, and how many there are."""

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Receipt]

TRIES = 4
"""How often a task is tried before its failure is believed, as in Spark."""


@dataclass(frozen=True)
class Job(Generic[Task, Receipt]):
    """Independent tasks and the function that does each."""

    label: str
    function: Callable[[Task], Receipt]
    tasks: Sequence[Task]
    task_bytes: int = 0
    """Estimated peak memory of one task, temporaries included."""


class Cancellation:
    """Lets one thread stop the operations that others are in; those begun afterwards are not concerned."""

    def __init__(self) -> None:
        self._calls = 0
        self._thread = threading.local()

    def cancel(self) -> None:
        self._calls += 1

    def begin(self) -> None:
        """Begin an operation of several jobs in this thread; a later ``cancel`` stops the one that is running then."""
        self._thread.begun = self._calls

    def end(self) -> None:
        self._thread.begun = None

    def watch(self, label: str) -> Callable[[], None]:
        """A check for a job that starts now: it raises once ``cancel`` was called since its operation began."""
        operation = getattr(self._thread, "begun", None)
        begun = self._calls if operation is None else operation

        def check() -> None:
            if self._calls != begun:
                raise CancelledError(f"{label} was cancelled", hint="Nothing of it was kept")

        return check


class Executor(Protocol):
    """Runs jobs. Implementations: LocalExecutor, SparkExecutor."""

    name: str
    workers: int

    @property
    def worker_memory(self) -> int:
        """What one task may use."""
        ...

    def run(self, job: Job[Task, Receipt]) -> list[Receipt]:
        """The receipts of all tasks, in the tasks' order."""
        ...

    def map_sorted(
        self, label: str, rows: Any, order: Sequence[str], function: BatchFunction[Receipt]
    ) -> list[Receipt]:
        """Sort rows by the ``order`` columns across all workers, and call ``function`` on each sorted range.

        Rows with equal ``order`` columns meet in one range.
        """
        ...


def is_sort_key(name: str) -> bool:
    """Whether a column was only added to sort by; dimensions may begin with "_" too, and must stay."""
    return name.partition(" ")[0] == CHUNK_COLUMN


def check_memory(label: str, needed: int, limit: int) -> None:
    """Refuse work whose single task would not fit a worker."""
    if needed > limit:
        raise MemoryLimitError(
            f"{label} needs about {needed / 2**20:,.0f} MB in one task, and a worker may use {limit / 2**20:,.0f} MB",
            hint="Use smaller chunks or a smaller selection, or connect with a larger memory=",
        )
