"""Progress: a bar on a terminal, one line a minute elsewhere, and nothing for work that is quick."""

from __future__ import annotations

import sys
import threading
import time
from abc import ABC, abstractmethod
from typing import Any

from windrow.execution.executor import Progress

QUICK_SECONDS = 1.0
LINE_SECONDS = 60.0


def progress_reporter(wanted: bool | Progress | None) -> Progress:
    """How to report: a terminal gets a bar, other outputs a line a minute; False reports nothing.

    A function of what is done, the tasks done and all tasks reports in its own way.
    """
    if callable(wanted):
        return wanted
    if wanted is False:
        return _silent
    reporter = _Bar() if sys.stderr.isatty() else _Lines()
    return reporter


def _silent(_label: str, _done: int, _total: int) -> None:
    return


class _Timed(ABC):
    """Remembers when each piece of work began."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._label = ""
        self._since = 0.0
        self._shown = 0.0

    def __call__(self, label: str, done: int, total: int) -> None:
        with self._lock:
            now = time.monotonic()
            if label != self._label:
                self._begin(label, now)
            self._show(label, done, total, now)
            if done >= total:
                self._end()
                self._label = ""

    def _begin(self, label: str, now: float) -> None:
        self._label, self._since, self._shown = label, now, now

    @abstractmethod
    def _show(self, label: str, done: int, total: int, now: float) -> None: ...

    def _end(self) -> None:
        return


class _Lines(_Timed):
    def _show(self, label: str, done: int, total: int, now: float) -> None:
        if now - self._shown >= LINE_SECONDS:
            self._shown = now
            sys.stderr.write(f"windrow: {label}: {done} of {total} tasks after {now - self._since:.0f} s\n")
            sys.stderr.flush()


class _Bar(_Timed):
    def __init__(self) -> None:
        super().__init__()
        self._bar: Any = None
        self._task: Any = None

    def _show(self, label: str, done: int, total: int, now: float) -> None:
        if self._bar is None:
            if now - self._since < QUICK_SECONDS and done < total:
                return
            if done >= total:
                return
            from rich.console import Console
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(label, total=total)
        self._bar.update(self._task, completed=done, total=total, description=label)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
