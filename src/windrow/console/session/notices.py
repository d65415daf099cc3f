"""What is said while a statement runs: that Spark starts, and how far long work is."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from windrow.errors import StaleViewWarning

if TYPE_CHECKING:
    from windrow.api.work import Progress

SPARK_STARTS = "starting Spark"


@contextmanager
def saying_warnings() -> Iterator[None]:
    """While a statement runs, say in a line that a view is stale, and not where in the code that was noticed."""
    with warnings.catch_warnings():  # which also puts back how warnings are shown
        warnings.simplefilter("always", StaleViewWarning)
        usual = warnings.showwarning

        def say(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, StaleViewWarning):
                click.echo(f"warning: {message}", err=True)
            else:
                usual(message, category, *place)

        warnings.showwarning = say  # type: ignore[assignment]
        yield


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
        """Stop reporting: work that was left behind may go on, silently."""
        with self._lock:
            self._running = False
            if self._last is not None:
                label, total = self._last
                self._report(label, total, total)
                self._last = None

    def _report(self, label: str, done: int, total: int) -> None:
        if self._reporter is None:
            from windrow.api.work import progress_reporter

            self._reporter = progress_reporter(None)
        self._reporter(label, done, total)
