"""``format("windrow")``: what Spark's processes call, here, and Spark itself."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

import windrow as wr
from pyspark_windrow import INCOMING, DefaultSource
from windrow.storage.leases import PROMISED_SECONDS
from windrow.storage.tables import leases

CELLS = {"i": [1, 20, 30], "j": [1, 2, 3], "v": [1.0, float("nan"), 3.0], "k": [3, None, 5]}


@pytest.fixture
def array(connect: Any) -> wr.Array:
    made: wr.Array = connect().create("S", "<v: float64, k: uint8 null> [i=1:100:10, j=1:100:10]", sparse=True)
    made.insert(CELLS)
    return made


def source(array: wr.Array, suffix: str = "", **options: str) -> DefaultSource:
    return DefaultSource({"path": f"{array._database.path}/{array.name}{suffix}", **options})


def rows(source: DefaultSource) -> list[dict[str, Any]]:
    reader = source.reader(source.schema())
    found = [batch for task in reader.partitions() for batch in reader.read(task)]
    return sorted(pa.Table.from_batches(found).to_pylist() if found else [], key=lambda row: (row["i"], row["j"]))


def write(source: DefaultSource, *tasks: dict[str, Any], overwrite: bool = False) -> None:
    """As Spark does it: a writer for the tasks, and its last step; no rows in one more task."""
    writer = source.writer(None, overwrite)
    writer.commit([writer.write(iter([pa.RecordBatch.from_pydict(task)])) for task in tasks] + [writer.write(iter(()))])


def test_sparse_cells_are_rows_with_nulls(array: wr.Array) -> None:
    array.delete("i = 30")
    assert rows(source(array)) == [{"i": 1, "j": 1, "v": 1.0, "k": 3}, {"i": 20, "j": 2, "v": None, "k": None}]
    assert len(rows(source(array, "@1"))) == len(rows(source(array, version="1"))) == 3
    assert rows(source(array, version="0")) == []


def test_dense_cells_are_rows(connect: Any) -> None:
    array = connect().create("D", "<a: float32> [i=1:4, j=1:3:2]")
    array.write(np.arange(12.0).reshape(4, 3))
    assert [row["a"] for row in rows(source(array))] == list(range(12))
    write(source(array), {"i": [2], "j": [3], "a": [-1.0]})
    assert array.read().a.values[1].tolist() == [3, 4, -1]
    with pytest.raises(wr.SchemaError, match="cannot be removed"):
        source(array).writer(None, True)


@pytest.fixture
def job(array: wr.Array) -> Any:
    """A job as it was planned, in a process that has ended; its tasks travel."""
    made = source(array).reader(source(array).schema())
    return made, pickle.loads(pickle.dumps(made.partitions()))


def give_up_all_but_the_newest(array: wr.Array) -> None:
    array.insert({name: values[:1] for name, values in CELLS.items()})
    array.compact()
    array._database.collect_garbage(keep_versions=1)


def let_pass(array: wr.Array, seconds: float) -> None:
    with array._database.warehouse.leases._writing() as connection:
        connection.execute(sa.update(leases).values(heartbeat=leases.c.heartbeat - int(seconds * 1e6)))


def read_job(job: Any) -> list[dict[str, Any]]:
    reader, tasks = job
    return [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]


def test_a_job_reads_what_it_was_planned_for_though_that_was_given_up(array: wr.Array, job: Any) -> None:
    before = array.version
    give_up_all_but_the_newest(array)
    assert before not in [version.number for version in array.versions()]
    assert [row["i"] for row in read_job(job)] == CELLS["i"]
    array._database.drop("S")
    assert len(read_job(job)) == 3


def test_a_long_job_keeps_its_version(array: wr.Array, job: Any) -> None:
    """A task that begins late asks for more time, for itself and those after it."""
    let_pass(array, PROMISED_SECONDS - 1)
    for task in job[1]:
        task.planned -= PROMISED_SECONDS - 1
    assert len(read_job(job)) == 3
    let_pass(array, PROMISED_SECONDS / 2)
    give_up_all_but_the_newest(array)
    assert len(read_job(job)) == 3


def test_a_job_that_comes_too_late_is_told_that_its_version_was_given_up(array: wr.Array, job: Any) -> None:
    let_pass(array, PROMISED_SECONDS + 1)
    give_up_all_but_the_newest(array)
    with pytest.raises(wr.UnknownNameError, match="given up"):
        read_job(job)
    with array._database.warehouse.leases._writing() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(leases).where(leases.c.host == "")) == 0


def test_a_job_on_a_damaged_array_is_told_of_the_damage(array: wr.Array, job: Any) -> None:
    for part in Path(array.location().path).glob("*.parquet"):
        part.write_bytes(b"PAR1" * 100)
    with pytest.raises(wr.CorruptionError):
        read_job(job)


def test_a_write_is_one_batch_that_views_follow(array: wr.Array) -> None:
    array._database.query("create array view n as select count(*) as n from S group by i")
    target = source(array, batch="night 1")
    more = ({"i": [1], "j": [2], "v": [4.0], "k": [4]}, {"i": [2], "j": [2], "v": [5.0], "k": [5]})
    for _ in range(2):
        write(target, *more)
    assert array.version == 2
    assert array._database.array("n").read().column("n").to_pylist() == [2, 1, 1, 1]
    write(source(array), *more, overwrite=True)
    assert (array.version, array.read().num_rows, array._database.view("n").read().num_rows) == (3, 2, 2)
    assert os.listdir(Path(array._database.path) / INCOMING) == []


def test_a_stream_applies_each_of_its_batches_once(array: wr.Array) -> None:
    target = source(array, checkpointLocation="/checkpoints/7")
    for number in (0, 1, 1):
        task = target.streamWriter(None, False)
        message = task.write(iter([pa.RecordBatch.from_pydict({"i": [50], "j": [1 + number], "v": [1.0], "k": [1]})]))
        target.streamWriter(None, False).commit([message, None], number)
    assert (array.version, array.read(i=50).num_rows) == (3, 2)
    assert os.listdir(Path(array._database.path) / INCOMING) == []


def test_a_write_that_fails_leaves_nothing(array: wr.Array) -> None:
    twice = {"i": [7, 7], "j": [7, 7], "v": [1.0, 2.0], "k": [1, 1]}
    with pytest.raises(wr.DuplicateError):
        write(source(array), twice)
    assert (array.version, os.listdir(Path(array._database.path) / INCOMING)) == (1, [])
    write(source(array, on_duplicate="last"), twice)
    assert array.read(i=7).column("v").to_pylist() == [2.0]


@pytest.mark.parametrize(("path", "options"), [("A", {}), ("", {}), ("w/A@x", {}), ("w/A", {"versoin": "1"})])
def test_what_names_no_array_is_refused(path: str, options: dict[str, str]) -> None:
    with pytest.raises(wr.DataError):
        DefaultSource({"path": path, **options}).schema()


def test_unknown_arrays_and_old_versions(array: wr.Array) -> None:
    with pytest.raises(wr.UnknownNameError):
        DefaultSource({"path": f"{array._database.path}/T"}).schema()
    with pytest.raises(wr.DataError, match="old version"):
        source(array, "@1").writer(None, False)


@pytest.mark.spark
def test_spark_finds_the_format_by_itself(array: wr.Array, spark_session: Any, tmp_path: Path) -> None:
    path = f"{array._database.path}/S"
    assert spark_session.read.format("windrow").load(path).where("v is null").collect()[0]["i"] == 20
    more = spark_session.range(40, 45).selectExpr("id as i", "id as j", "cast(id as double) as v", "1S as k")
    more.write.format("windrow").mode("append").save(path)
    assert (array.version, array.read().num_rows) == (2, 8)
    more.selectExpr("i", "j + 1 as j", "v", "k").write.parquet(str(tmp_path / "nights"))
    stream = (
        spark_session.readStream.schema(more.schema).parquet(str(tmp_path / "nights")).writeStream.format("windrow")
    )
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    stream.start(path).awaitTermination()
    assert (array.version, array.read().num_rows) == (3, 13)
