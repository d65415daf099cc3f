"""What is said while a statement runs: that Spark starts, and how far long work is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from windrow.execution.executor import Progress

SPARK_STARTS = "starting Spark"


class Notices:
    """Passes progress on while a statement runs, and clears its bar away when the statement ends, done or not."""

    def __init__(self) -> None:
        self.wanted = True
        self._reporter: Progress | None = None
        self._lock = threading.Lock()
        self._running = False
        self._last: tuple[str, int] | None = None

    def __call__(self, label: str, done: int, total: int) -> None:
        with self._lock:
            if label == SPARK_STARTS:
                if not done:
                    click.echo("windrow: this needs Spark, which starts now (some seconds)", err=True)
                return
            if not self._running or not self.wanted:
                return
            self._report(label, done, total)
            self._last = None if done >= total else (label, total)

    def begin(self) -> None:
        with self._lock:
            self._running = True

    def end(self) -> None:
        """What was left behind may go on, but says nothing any more."""
        with self._lock:
            self._running = False
            if self._last is not None:
                label, total = self._last
                self._report(label, total, total)
                self._last = None

    def _report(self, label: str, done: int, total: int) -> None:
        if self._reporter is None:
            from windrow.execution.progress import progress_reporter

            self._reporter = progress_reporter(None)
        self._reporter(label, done, total)
