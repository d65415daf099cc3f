"""How much memory Spark's Python workers take at most."""

from __future__ import annotations

import threading
from types import TracebackType

import psutil

_SECONDS = 0.25


class WorkerMemory:
    """Watches the Python workers below this process; ``peak`` is the largest resident size that one of them reached.

    The kernel keeps each process's own high-water mark, so that a peak between two looks is not missed.
    """

    def __init__(self) -> None:
        self._peaks: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="windrow-memory", daemon=True)

    def __enter__(self) -> WorkerMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    @property
    def peak(self) -> int:
        """Bytes; 0 if there was no worker."""
        return max(self._peaks.values(), default=0)

    def __str__(self) -> str:
        return f"peak memory of a worker {self.peak / 1e9:.2f} GB"

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS):
            self._look()

    def _look(self) -> None:
        for process in psutil.Process().children(recursive=True):
            try:
                if any("pyspark" in part for part in process.cmdline()[1:3]):
                    peak = high_water(process.pid) or process.memory_info().rss
                    self._peaks[process.pid] = max(peak, self._peaks.get(process.pid, 0))
            except psutil.Error:
                continue


def high_water(pid: int) -> int | None:
    """The most memory that a process has held, if the system says so."""
    try:
        with open(f"/proc/{pid}/status") as file:
            lines = [line for line in file if line.startswith("VmHWM:")]
    except OSError:
        return None
    return int(lines[0].split()[1]) * 1024 if lines else None
