"""Nodes: the executors of a Spark application, each a process with a disk, to which tasks can be sent."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from windrow.execution.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = "driver"
"""What Spark calls the process that plans; it joins nothing."""

_CACHE = "windrow-cache"


@dataclass(frozen=True)
class Node:
    """An executor. Its name means nothing to another application, whose executors have empty disks."""

    name: str
    executor: str
    """Its number in the application."""
    location: str
    """What Spark calls it where it may be told where to run a task."""


def list_nodes(session: SparkSession) -> list[Node]:
    """The executors that are alive, in the order of their numbers; none in a session without a cluster."""
    if is_remote(session):
        return []
    context = session.sparkContext
    application = context.applicationId
    # Not through SparkEnv, which py4j cannot look into: the connection to the JVM would be lost.
    listed = context._jsc.sc().statusStore().executorList(True)
    found = []
    for number in range(listed.size()):
        executor = listed.apply(number)
        name = str(executor.id())
        if name != DRIVER and executor.isActive():
            host = str(executor.hostPort()).rpartition(":")[0]
            found.append((name, Node(f"{application}/{name}", name, f"executor_{host}_{name}")))
    return [node for _, node in sorted(found, key=lambda one: (len(one[0]), one[0]))]


@dataclass(frozen=True)
class Here:
    """Where a task runs: the number of its executor, and a folder that the executor's tasks share."""

    executor: str
    folder: Path


def find_here() -> Here:
    """Where this process is: a Python worker of an executor, whose folder goes with the executor."""
    given = os.environ.get("SPARK_EXECUTOR_DIRS") or os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    return Here(_find_executor(), Path(given.split(",")[0]) / _CACHE)


def _find_executor() -> str:
    """The number of the executor that this process works for; empty if it works for none."""
    for process in psutil.Process().parents():
        try:
            command: list[str] = process.cmdline()
        except psutil.Error:  # it may have ended meanwhile
            continue
        if "--executor-id" in command:
            return command[command.index("--executor-id") + 1]
    return ""
