"""Ctrl-C while a query runs: it is told to stop, and waited for only a moment."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from windrow.api.database import Database

Result = TypeVar("Result")

PATIENCE = 1.0
"""Seconds that a query gets to end by itself; a kernel that is in the middle of its loops cannot."""

_left_behind: list[threading.Event] = []
"""Set when what was left behind has ended after all."""


def run_stoppable(database: Database, work: Callable[[], Result]) -> Result:
    """Do work that changes nothing in a thread of its own, so that Ctrl-C gives back the prompt at once.

    Work that does not end when it is told to goes on alone; nobody sees its result.
    """
    from windrow.api.work import cancellable

    ended = threading.Event()
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            with cancellable(database):
                outcome.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    try:
        threading.Thread(target=body, name="windrow-query", daemon=True).start()
        # Not Thread.join, which takes a thread for ended when it is interrupted itself.
        ended.wait()
    except KeyboardInterrupt:
        try:
            database.cancel()
            ended.wait(PATIENCE)
        finally:  # also after a second Ctrl-C: else the process would wait for this thread when it ends
            if not ended.is_set():
                _left_behind.append(ended)
        raise
    if failure:
        raise failure[0]
    result: Result = outcome[0]
    return result


def end_if_left_behind(code: int) -> None:
    """End the process at once if work was left behind, which Python would wait for."""
    if not all(ended.is_set() for ended in _left_behind):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
