"""Runs tasks on Spark. Spark schedules and retries; the workers touch the bytes.

A task that finds a windrow error returns it instead of raising it: bad data is bad on every try, and Spark would try
four times. A function that makes rows puts it into a row, which the next function finds. Anything else is raised, so
that Spark does try again.
"""

from __future__ import annotations

import os
import pickle
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow import errors
from windrow.errors import Error, MachineError, MemoryLimitError
from windrow.execution.executor import (
    BatchFunction,
    Cancellation,
    Job,
    Progress,
    Receipt,
    Task,
    check_memory,
    is_sort_key,
)
from windrow.execution.session import is_remote
from windrow.model.schema import CHUNK_COLUMN

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_RECEIPT = "receipt binary"
_FAILURE = pa.field(f"{CHUNK_COLUMN} failure", pa.binary())
"""A column for an error met on the way, under a name that no column of a user's can have."""

_POLL_SECONDS = 0.05
_RAISED = re.compile(r"windrow\.errors\.(?P<kind>\w+): (?P<message>.+)")
"""A windrow error in Spark's own, from a function that makes a frame and so has no receipt to put it in."""
_STATE = re.compile(r"\s*SQLSTATE: \w+.*")
"""What Spark adds to a message."""


def _workers(session: SparkSession) -> int:
    """How many tasks run at a time; a remote session does not tell, and is taken to have as many as this machine."""
    if is_remote(session):
        return len(os.sched_getaffinity(0))
    return max(1, int(session.sparkContext.defaultParallelism))


RowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SparkExecutor:
    """On the workers of a SparkSession."""

    name = "spark"

    def __init__(self, session: SparkSession, memory: int, progress: Progress, cancellation: Cancellation) -> None:
        self.session = session
        self.workers = _workers(session)
        self.memory = memory
        self._progress = progress
        self._cancellation = cancellation

    @property
    def worker_memory(self) -> int:
        return self.memory // self.workers

    def run(self, job: Job[Task, Receipt]) -> list[Receipt]:
        check_memory(job.label, job.task_bytes, self.worker_memory)
        if not job.tasks:
            return []
        # One partition a task; Spark keeps the order of partitions in what it collects.
        pickled = pickle_tasks(job.tasks)
        context = self.context
        outcomes = context.parallelize(pickled, len(pickled)).map(_guard(job.function))
        return open_outcomes(self.collect(job.label, outcomes.collect))

    def map_sorted(
        self, label: str, rows: DataFrame, order: Sequence[str], function: BatchFunction[Receipt]
    ) -> list[Receipt]:
        columns = [name for name in rows.columns if name not in order or not is_sort_key(name)]
        arranged = rows.repartitionByRange(*order).sortWithinPartitions(*order).select(*columns)
        outcomes = arranged.mapInArrow(_guard_batches(function), _RECEIPT)
        return open_outcomes([row[0] for row in self.collect(label, outcomes.collect)])

    def map_grouped(self, label: str, rows: DataFrame, key: str, function: BatchFunction[Receipt]) -> list[Receipt]:
        """Bring rows with equal ``key`` to one worker, sorted by it, and call ``function`` on what each worker got."""
        arranged = rows.repartition(key).sortWithinPartitions(key)
        outcomes = arranged.mapInArrow(_guard_batches(function), _RECEIPT)
        return open_outcomes([row[0] for row in self.collect(label, outcomes.collect)])

    def map_batches(self, rows: DataFrame, function: RowFunction) -> DataFrame:
        """The frame after a function of its batches, whose columns are found by trying it on no rows.

        An error travels in a column of its own, which ``map_sorted`` and ``map_grouped`` take out again.
        """
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        zone = self.session.conf.get("spark.sql.session.timeZone")
        empty = pa.RecordBatch.from_pylist([], to_arrow_schema(rows.schema, timezone=zone))
        fields = next(iter(function(iter([empty])))).schema
        made = pa.schema([*(field.with_nullable(True) for field in fields), _FAILURE])
        return rows.mapInArrow(_with_failure(function, fields), from_arrow_schema(made))

    def read_parquet(self, paths: Sequence[str]) -> DataFrame:
        # Off by default in Spark, which would hand on damaged pages as if they were whole.
        return self.session.read.option("parquet.page.verify-checksum.enabled", "true").parquet(*paths)

    def frame(
        self, function: Callable[[Task], Iterable[pa.RecordBatch]], tasks: Sequence[Task], fields: pa.Schema
    ) -> DataFrame:
        """A lazy DataFrame of the rows that each task yields."""
        from pyspark.sql.pandas.types import from_arrow_schema

        held = pickle_tasks(tasks)

        def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for index in batch.column(0).to_pylist():
                    yield from function(pickle.loads(held[index]))

        numbers = self.session.range(0, len(held), 1, max(1, len(held)))
        return numbers.mapInArrow(rows, from_arrow_schema(fields))

    @property
    def context(self) -> SparkContext:
        """What jobs are started, watched and stopped by."""
        if is_remote(self.session):
            hint = 'Connect with engine="local", or with a session that runs in this process'
            raise MachineError("arrays cannot be computed through Spark Connect", hint=hint)
        return self.session.sparkContext

    def collect(self, label: str, action: Callable[[], list[Any]]) -> list[Any]:
        """Run a Spark action in a thread of its own, reporting progress, until it ends or is cancelled."""
        context = self.context
        check = self._cancellation.watch(label)
        group = f"windrow-{uuid.uuid4().hex}"
        # Not Thread.join, which takes a thread for ended when it is interrupted itself.
        ended = threading.Event()
        result: list[Any] = []
        failure: list[BaseException] = []

        def work() -> None:
            try:
                context.setJobGroup(group, label, interruptOnCancel=True)
                result.extend(action())
            except BaseException as error:
                failure.append(error)
            finally:
                ended.set()

        threading.Thread(target=work, name="windrow-spark", daemon=True).start()
        try:
            while not ended.wait(_POLL_SECONDS):
                self._report(label, group)
                check()
            self._report(label, group)
        except BaseException:
            context.cancelJobGroup(group)
            ended.wait(10)
            raise
        if failure:
            raise explain_failure(label, failure[0]) from failure[0]
        return result

    def _report(self, label: str, group: str) -> None:
        tracker = self.session.sparkContext.statusTracker()
        done = total = 0
        for job_id in tracker.getJobIdsForGroup(group):
            job = tracker.getJobInfo(job_id)
            for stage_id in job.stageIds if job else ():
                stage = tracker.getStageInfo(stage_id)
                if stage is not None:
                    done, total = done + stage.numCompletedTasks, total + stage.numTasks
        if total:
            self._progress(label, done, total)


def pickle_tasks(tasks: Sequence[Any]) -> list[bytes]:
    """Tasks as bytes; functions that a user defined in a notebook travel by value."""
    from pyspark.cloudpickle import dumps

    return [dumps(task, protocol=5) for task in tasks]  # type: ignore[no-untyped-call]


def _guard(function: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    def guarded(pickled: bytes) -> bytes:
        try:
            return pickle.dumps(function(pickle.loads(pickled)), protocol=5)
        except Error as error:
            return pickle.dumps(error)
        except MemoryError:
            return pickle.dumps(MemoryLimitError("a Spark worker ran out of memory", hint="Use smaller chunks"))

    return guarded


def _with_failure(function: RowFunction, fields: pa.Schema) -> RowFunction:
    """The same function, but an error of windrow's becomes its last row instead of being raised."""

    def guarded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in function(batches):
                yield batch.append_column(_FAILURE, pa.nulls(batch.num_rows, _FAILURE.type))
        except Error as error:
            row = [pa.nulls(1, field.type) for field in fields] + [pa.array([pickle.dumps(error)], _FAILURE.type)]
            yield pa.record_batch(row, names=[*fields.names, _FAILURE.name])

    return guarded


def _without_failure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches as they were before ``_with_failure``; its error is raised."""
    for batch in batches:
        if _FAILURE.name in batch.schema.names:
            for failure in batch.column(_FAILURE.name).drop_null().to_pylist():
                raise pickle.loads(failure)
            batch = batch.drop_columns([_FAILURE.name])
        yield batch


def _guard_batches(function: BatchFunction[Any]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def guarded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            outcome = pickle.dumps(function(_without_failure(batches)), protocol=5)
        except Error as error:
            outcome = pickle.dumps(error)
        yield pa.record_batch([pa.array([outcome], pa.binary())], names=["receipt"])

    return guarded


def open_outcomes(outcomes: Iterable[bytes]) -> list[Any]:
    receipts = [pickle.loads(outcome) for outcome in outcomes]
    for receipt in receipts:
        if isinstance(receipt, Error):
            raise receipt
    return receipts


def tell_failure(error: Error) -> str:
    """An error as the message of one of Spark's own, in one line, by which ``explain_failure`` knows it again."""
    return f"windrow.errors.{type(error).__name__}: " + " ".join(str(error).split("\n"))


def explain_failure(label: str, failure: BaseException) -> BaseException:
    if isinstance(failure, Error) or not isinstance(failure, Exception):
        return failure
    raised = _RAISED.search(str(failure))
    if raised is not None and issubclass(kind := getattr(errors, raised["kind"], Exception), Error):
        return kind(_STATE.sub("", raised["message"]))
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return MachineError(
        f"Spark could not finish: {label}", got=(telling or lines or [type(failure).__name__])[-1][:300],
        hint="Run: windrow doctor",
    )  # fmt: skip
