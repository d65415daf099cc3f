"""Chooses where work runs: in this process while it is small, on Spark when it is not."""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING, Any, Literal

import psutil

from windrow.errors import DataError
from windrow.execution.executor import Cancellation, Executor, Progress
from windrow.execution.local import LocalExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.execution.pinned import Cluster
    from windrow.execution.spark import SparkExecutor

EngineName = Literal["auto", "local", "spark"]
ENGINES = ("auto", "local", "spark")

SPARK_PAYS_FROM = 2 * 2**30
"""Bytes touched from which starting Spark (5 to 7 s) is worth it."""

RUNNING_SPARK_PAYS_FROM = 256 * 2**20
"""The same when a session is running already: its tasks cost 30 ms each."""


def default_memory() -> int:
    """What windrow may use unless told otherwise: six tenths of the machine, or of the container's share of it."""
    return int(0.6 * min(psutil.virtual_memory().total, _container_limit()))


_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12} | {
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "k": 2**10, "m": 2**20, "g": 2**30,
}  # fmt: skip


def parse_bytes(stated: int | str) -> int:
    """A memory size: a number of bytes, or text such as "8 GB" or "512m"."""
    if isinstance(stated, int) and not isinstance(stated, bool):
        size = stated
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(stated))
        if match is None or match[2].lower() not in _UNITS:
            raise DataError("memory is a number with a unit", got=repr(stated), hint='As in "8 GB" or "512 MB"')
        size = int(float(match[1]) * _UNITS[match[2].lower()])
    if size < 10**6:
        raise DataError("memory must be at least 1 MB", got=stated)
    return size


def _container_limit() -> int:
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            text = file.read().strip()
        return int(text) if text.isdigit() else 2**63
    except OSError:
        return 2**63


class Engine:
    """The executors of one connection. Spark is started when it is first needed."""

    def __init__(
        self,
        engine: EngineName,
        session: SparkSession | None,
        workers: int | None,
        memory: int | None,
        progress: Progress,
    ) -> None:
        if engine not in ENGINES:
            raise DataError("engine must be one of " + ", ".join(ENGINES), got=repr(engine))
        if session is not None and not type(session).__module__.startswith("pyspark."):
            hint = "As in spark=SparkSession.builder.getOrCreate()"
            raise DataError("spark must be a SparkSession", got=repr(session), hint=hint)
        self.name = engine
        self.workers = workers or len(os.sched_getaffinity(0))
        self.memory = memory or default_memory()
        self.path = "auto"
        """The way that totals take, of those that ``explain`` names; "auto" is the cheapest that can."""
        self.cancellation = Cancellation()
        self.placement: dict[str, Any] = {}
        """How this session wants maintenance planned, in the place of what a view says."""
        self._session = session
        self._borrowed = False
        self._progress = progress
        self._lock = threading.Lock()
        self._spark: SparkExecutor | None = None
        self.local = LocalExecutor(self.workers, self.memory, progress, self.cancellation)

    def choose(self, touched_bytes: int) -> Executor:
        """The executor for work that touches so many bytes."""
        return self.spark() if self.goes_to_spark(touched_bytes) else self.local

    def goes_to_spark(self, touched_bytes: int) -> bool:
        if self.name != "auto":
            return self.name == "spark"
        if self._session_is_remote:
            return False  # it can be asked for rows, but not to compute arrays
        pays_from = RUNNING_SPARK_PAYS_FROM if self.spark_is_running else SPARK_PAYS_FROM
        return touched_bytes >= pays_from

    def cluster(self, touched_bytes: int) -> Cluster | None:
        """The nodes for work that touches so many bytes; None if it runs in one place, as with a single executor."""
        if not self.goes_to_spark(touched_bytes):
            return None
        from windrow.execution.pinned import SparkCluster

        found = SparkCluster.of(self.spark())
        return found if len(found.nodes) > 1 else None

    @property
    def spark_is_running(self) -> bool:
        from windrow.execution.session import active_session

        return self._session is not None or active_session() is not None

    @property
    def _session_is_remote(self) -> bool:
        from windrow.execution.session import is_remote

        return self._session is not None and is_remote(self._session)

    def spark(self) -> SparkExecutor:
        with self._lock:
            if self._spark is None:
                self._spark = self._start_spark()
            return self._spark

    def _start_spark(self) -> SparkExecutor:
        from windrow.execution.session import acquire_session
        from windrow.execution.spark import SparkExecutor

        if self._session is None:
            self._progress("starting Spark", 0, 1)
            self._session, self._borrowed = acquire_session(self.workers, self.memory)
            self._progress("starting Spark", 1, 1)
        return SparkExecutor(self._session, self.memory, self._progress, self.cancellation)

    def close(self) -> None:
        """Give Spark back: it stops if windrow started it and nobody else uses it."""
        if self._borrowed:
            from windrow.execution.session import release_session

            release_session()
        self._session, self._spark, self._borrowed = None, None, False
