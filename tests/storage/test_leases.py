"""Readers hold leases: a collection, a drop or a new version never takes away what somebody is reading."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import crash_writer
import windrow as wr
from crash_writer import Started
from windrow.api.query import computed
from windrow.errors import StoreError, UnknownNameError
from windrow.storage.leases import Held, Leases
from windrow.storage.locks import SILENT_SECONDS
from windrow.storage.rows import now_microseconds
from windrow.storage.tables import leases

Connect = Callable[..., wr.Database]
VERSIONS = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Arrays whose every version has files of its own."""
    with wr.connect(tmp_path / "warehouse", engine="local", progress=False) as database:
        dense = database.create("D", "<a: int64> [i=1:20:5]")
        sparse = database.create("S", "<v: int64> [x=1:20:5]", sparse=True)
        for version in range(1, VERSIONS + 1):
            dense.write(np.full(20, version))
            sparse.insert({"x": np.arange(1, 21), "v": np.full(20, version)})
    return tmp_path / "warehouse"


@pytest.fixture
def reader(path: Path) -> Iterator[wr.Database]:
    with wr.connect(path, engine="local", progress=False) as database:
        yield database


@pytest.fixture
def collector(path: Path) -> Iterator[wr.Database]:
    with wr.connect(path, engine="local", progress=False) as database:
        yield database


def held(database: wr.Database) -> set[tuple[int, int]]:
    return {(lease.array_id, lease.number) for lease in database.warehouse.leases.alive()}


def test_a_lazy_dataset_outlives_its_version(reader: wr.Database, collector: wr.Database) -> None:
    old = reader.array("D@2").to_xarray()
    part = old["a"].isel(i=slice(5, 15))
    collector.collect_garbage(keep_versions=1)
    assert [version.number for version in collector.array("D").versions()] == [VERSIONS]
    assert (old["a"][:5].values == 2).all()
    del old
    gc.collect()
    collector.collect_garbage()
    assert held(collector)
    assert (part.values == 2).all()  # what was made of the dataset reads as well, and then has its values
    gc.collect()
    assert not held(collector)
    assert collector.collect_garbage().bytes > 0


def test_a_bound_query_and_a_stream_outlive_their_versions(reader: wr.Database, collector: wr.Database) -> None:
    window = reader.array("D@1").window(i=2).agg(m=wr.max("a")).bind()
    cells = reader.query("select v + 1 as w from S@3").bind()
    stream = reader.array("S@2").batches()
    assert collector.collect_garbage(keep_versions=1).versions == 2 * VERSIONS
    assert (np.asarray(window.compute().blocks["m"]) == 1).all()
    assert set(cells.compute()["w"].to_pylist()) == {4}
    assert {value for table in stream for value in table["v"].to_pylist()} == {2}
    del window, cells, stream
    gc.collect()
    assert not held(collector)


def test_a_query_that_is_not_bound_holds_nothing(reader: wr.Database, collector: wr.Database) -> None:
    query = reader.array("D").window(i=2).agg(m=wr.max("a"))
    old = reader.array("D@2").window(i=2).agg(m=wr.max("a"))
    query.compute()
    assert not held(collector)
    collector.array("D").write(np.full(20, 9))
    collector.collect_garbage(keep_versions=1)
    assert (query.compute()["m"].values == 9).all()
    with pytest.raises(UnknownNameError, match="given up"):
        old.compute()


def test_a_dropped_array_stays_until_it_is_read(reader: wr.Database, collector: wr.Database, path: Path) -> None:
    lazy = reader.array("D").to_xarray()
    stream = reader.array("S").batches()
    collector.drop("D")
    collector.drop("S")
    assert len(list((path / "arrays").iterdir())) == 2
    with pytest.raises(UnknownNameError, match="no such array"):
        reader.array("D")
    collector.create("D", "<b: int64> [i=1:3]")
    assert (lazy["a"].values == VERSIONS).all()
    assert sum(table.num_rows for table in stream) == 20
    del lazy, stream
    gc.collect()
    assert collector.collect_garbage().directories == 2
    assert [entry.name.partition("-")[0] for entry in (path / "arrays").iterdir()] == ["D"]


def test_versions_that_are_gone_say_that_they_were_given_up(reader: wr.Database, collector: wr.Database) -> None:
    pinned = [reader.array(name) for name in ("D@2", "S@2")]
    collector.collect_garbage(keep_versions=2)
    for array in pinned:
        for read in (array.read, array.to_xarray, array.window({array.schema.dimension_names[0]: 2}).agg):
            with pytest.raises(UnknownNameError, match="given up"):
                read() if read.__name__ != "agg" else read(n=wr.count()).compute()  # type: ignore[operator]
    with pytest.raises(UnknownNameError, match="no such version"):
        reader.array("D@99")
    with pytest.raises(UnknownNameError, match="given up"):
        reader.query("select a from D@1")


def test_a_version_given_up_between_looking_and_holding_is_noticed(
    reader: wr.Database, collector: wr.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader's lease comes too late for the collection to see it: the reader must look once more."""
    hold = Leases.hold
    late = []

    def collect_first(self: Leases, *arguments: Any) -> object:
        if self is reader.warehouse.leases and not late:
            late.append(True)
            collector.array("S").insert({"x": [1], "v": [100]})
            collector.array("D").write(np.full(20, 100))
            collector.collect_garbage(keep_versions=1)
        return hold(self, *arguments)

    monkeypatch.setattr(Leases, "hold", collect_first)
    assert reader.array("S").read()["v"].to_pylist()[0] == 100
    late.clear()
    assert (reader.array("D").window(i=1).agg(m=wr.max("a")).compute()["m"].values == 100).all()
    late.clear()
    with pytest.raises(UnknownNameError, match="given up"):
        reader.array(f"S@{reader.array('S').version}").read()
    late.clear()
    with pytest.raises(UnknownNameError, match="given up"):
        reader.query(f"select a from D@{reader.array('D').version}").compute()


@pytest.mark.spark
def test_what_spark_has_yet_to_read_outlives_its_version(
    path: Path, collector: wr.Database, spark_session: Any
) -> None:
    """A DataFrame as long as the connection is open, and a job of Spark's own for a stated time."""
    parts = collector.create("P", "<v: int64> [x=1:20:5]", sparse=True)
    for first in (1, 11):
        parts.insert({"x": np.arange(first, first + 10), "v": np.full(10, 1)})
    running = spark_session.read.format("windrow").load(f"{path}/P").toLocalIterator()
    rows = [next(running)]  # of the first task; the second is yet to come
    parts.update({"v": "v + 1"})
    with wr.connect(path, engine="spark", progress=False) as reader:
        frames = [reader.array(f"{name}@1").to_spark().selectExpr(f"{value} as v") for name, value in ("Da", "Sv")]
        gc.collect()
        collector.collect_garbage(keep_versions=1)
        assert [len(array.versions()) for array in collector.arrays()] == [1, 1, 1]
        for frame in frames:
            assert {row.v for row in frame.collect()} == {1}
    rows += running
    assert [row.v for row in rows] == [1] * 20
    assert held(collector) == {(parts._record().id, 2)}


def start(function: Callable[..., None], path: Path, *arguments: object) -> Started:
    process = Started(function, path, *arguments)
    assert process.next() == "held"
    return process


def test_readers_in_other_processes(path: Path, collector: wr.Database) -> None:
    other = start(crash_writer.read_lazily, path, "D@1", "S@1")
    collector.collect_garbage(keep_versions=1)
    assert len(held(collector)) == 2
    other.channel.send("read")
    assert other.next() == [[1] * 20, [1] * 20]
    assert not other.channel.poll(0)
    other.kill()
    assert not held(collector)
    assert collector.collect_garbage().bytes > 0


def test_a_lease_on_another_host_lapses_when_it_falls_silent(path: Path, collector: wr.Database) -> None:
    other = start(crash_writer.read_lazily, path, "D@1", "S@1")
    os.kill(other.process.pid or 0, signal.SIGSTOP)  # alive, and unable to renew its lease
    try:
        for silent, count in ((SILENT_SECONDS / 2, 2), (SILENT_SECONDS + 1, 0)):
            heard = now_microseconds() - int(silent * 1_000_000)
            with collector.warehouse.leases._writing() as connection:
                connection.execute(sa.update(leases).values(host="elsewhere", heartbeat=heard))
            assert len(held(collector)) == count
    finally:
        os.kill(other.process.pid or 0, signal.SIGCONT)
        other.kill()


def test_reads_in_a_row_write_one_lease(reader: wr.Database) -> None:
    written: list[str] = []
    sa.event.listen(
        reader.warehouse.leases._engine, "before_cursor_execute", lambda *arguments: written.append(arguments[2])
    )
    for _ in range(5):
        reader.array("S").read()
        reader.array("S").read(x=(1, 3))
        reader.query("select v from S where x = 1").compute()
    assert len([text for text in written if text.startswith("INSERT")]) == 1
    reader.warehouse.leases.forget_idle()
    assert not held(reader)


def test_readers_that_cannot_write_a_lease_read_all_the_same(
    reader: wr.Database, collector: wr.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whoever then loses a version to a collection is told so, instead of being told of damage."""

    def refuse(self: Leases, versions: list[Held]) -> None:
        raise StoreError("the disk is full while writing the list of readers")

    monkeypatch.setattr(Leases, "_write", refuse)
    assert reader.array("S").read().num_rows == 20
    query = reader.query("select v from S@1")
    lazy = reader.array("D@1").window(i=2).agg(m=wr.max("a")).bind()
    stale = query.bind()
    collector.collect_garbage(keep_versions=1)
    with pytest.raises(UnknownNameError, match="given up"):
        computed(stale)
    with pytest.raises(UnknownNameError, match="given up"):
        computed(lazy)
