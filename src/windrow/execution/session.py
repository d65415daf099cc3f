"""Starting Spark, when work needs it and nobody gave us a session."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from windrow.errors import MachineError
from windrow.execution.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET_LOG = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


def active_session() -> SparkSession | None:
    """The session that this process already runs, if any."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or SparkSession._instantiatedSession


class _Started:
    """The session windrow started, and how many connections use it; the last to close stops it."""

    session: SparkSession | None = None
    users = 0
    lock = threading.Lock()


def is_remote(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, whose JVM is elsewhere."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def acquire_session(workers: int, memory: int) -> tuple[SparkSession, bool]:
    """A session to use, and whether it is windrow's own, to be given back with ``release_session``."""
    with _Started.lock:
        running = active_session()
        if running is not None and running is not _Started.session:
            return running, False
        if running is None:
            _Started.session, _Started.users = start_session(workers, memory), 0
        _Started.users += 1
        assert _Started.session is not None
        return _Started.session, True


def release_session() -> None:
    with _Started.lock:
        _Started.users -= 1
        if _Started.users <= 0 and _Started.session is not None:
            _Started.session.stop()
            _Started.session = None


def start_session(workers: int, memory: int) -> SparkSession:
    """A local session: one JVM in this process, ``workers`` tasks at a time, each tried again if its worker dies."""
    shuffled = {"spark.sql.shuffle.partitions": str(max(8, 4 * workers))}
    return _start(f"local[{workers},4]", memory, shuffled)


def start_cluster(nodes: int, memory: int) -> SparkSession:
    """A cluster on this machine: so many executors, each a process of its own with one task at a time.

    ``memory`` is what each of them may use. To be stopped with ``stop_cluster``.
    """
    megabytes = max(1024, memory // 2**20)
    return _start(
        f"local-cluster[{nodes},1,{megabytes}]",
        memory,
        {
            "spark.executor.memory": f"{megabytes // 2}m",
            # Executors do not inherit where this process finds its modules.
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )


def stop_cluster(session: SparkSession) -> None:
    """Stop a cluster on this machine, and remove the folder that it leaves beside PySpark."""
    import pyspark

    application = session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


def _start(master: str, memory: int, settings: Mapping[str, str]) -> SparkSession:
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.path)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MachineError("PySpark is not installed", hint="pip install 'pyspark==4.3.*'") from None
    heap = max(1024, min(4096, memory // 2**20 // 4))
    builder = SparkSession.builder.appName("windrow").master(master)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": f"{heap}m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_quiet_log()} -XX:+UseParallelGC",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # No limit: to know the bytes of a batch, Spark would measure all its columns again at every row.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.python.worker.reuse": "true",
        **settings,
    }.items():
        builder = builder.config(key, value)
    with _own_error_output() as log:
        try:
            session = builder.getOrCreate()
        except Exception as error:
            said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            reason = (said or str(error).splitlines() or ["no reason"])[-1]
            raise MachineError("Spark did not start", got=reason, hint="Run: windrow doctor") from error
    session.sparkContext.setLogLevel("ERROR")
    # PySpark prints every failed query as JSON with its Java trace; windrow's own errors say what matters.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return session


@contextmanager
def _own_error_output() -> Iterator[Path]:
    """Give the JVM that starts meanwhile an error output of its own: its notices are not for windrow's users.

    If the start is broken off, the JVM that it began is ended too.
    """
    log = Path(tempfile.gettempdir(), f"windrow-spark-{os.getpid()}.log")
    atexit.register(log.unlink, missing_ok=True)
    before = set(psutil.Process().children(recursive=True))
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(target, 2)
    try:
        yield log
    except BaseException:
        for child in set(psutil.Process().children(recursive=True)) - before:
            with contextlib.suppress(psutil.Error):  # it may have ended by itself
                child.kill()
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


def _quiet_log() -> str:
    path = os.path.join(tempfile.gettempdir(), f"windrow-log4j2-{os.getuid()}.properties")
    if not os.path.exists(path):
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w") as file:
            file.write(_QUIET_LOG)
        os.replace(temporary, path)
    return path
