"""Batch ids, locks that are lost or interrupted, and what queries inside a batch see."""

from __future__ import annotations

import datetime as clock
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import icechunk
import numpy as np
import pytest
import sqlalchemy as sa

import windrow as wr
from windrow.errors import ConflictError, DataError, UnknownNameError
from windrow.operations import collect
from windrow.storage import publishing
from windrow.storage.locks import SILENT_SECONDS, ArrayLock
from windrow.storage.rows import now_microseconds
from windrow.storage.tables import batches, locks

Connect = Callable[..., wr.Database]


@pytest.fixture
def arrays(local: wr.Database) -> tuple[wr.Array, wr.Array]:
    dense = local.create("D", "<a: float64> [i=0:*:4]")
    sparse = local.create("S", "<v: int64> [x=0:9:4]", sparse=True)
    dense.append(np.arange(3.0))
    sparse.insert({"x": [1, 2], "v": [10, 20]})
    return dense, sparse


Arrays = tuple[wr.Array, wr.Array]


# Batch ids


def test_an_id_stands_for_the_arrays_it_was_used_for(local: wr.Database, arrays: Arrays) -> None:
    dense, sparse = arrays
    sparse.insert({"x": [3], "v": [30]}, batch="night")
    again = sparse.insert({"x": [3], "v": [30]}, batch="night")
    assert (again.applied, dict(again.versions)) == (False, {"S": 2})
    with pytest.raises(ConflictError, match="applied to S") as caught:
        dense.append(np.ones(1), batch="night")
    assert "D" in str(caught.value.got)
    assert (dense.version, sparse.version) == (1, 2)
    local.create("T", "<v: int64> [x=0:9:4]", sparse=True)
    with pytest.raises(ConflictError, match="applied to S"):
        local.array("T").insert({"x": [3], "v": [30]}, batch="night")
    assert local.array("T").read().num_rows == 0


def test_a_replay_has_all_arrays_of_its_batch(local: wr.Database, arrays: Arrays) -> None:
    def both(batch: wr.Batch) -> None:
        batch.append("D", np.ones(1))
        batch.insert("S", {"x": [5], "v": [50]})

    with local.batch("night") as first:
        both(first)
    with local.batch("night") as again:
        both(again)
    assert first.report is not None
    assert again.report is not None
    assert (again.applied_before, dict(again.report.versions)) == (True, dict(first.report.versions))
    with local.batch("night") as asked:  # only to see whether it was applied
        assert asked.applied_before
    with pytest.raises(ConflictError, match="applied to D, S"):
        local.array("D").append(np.ones(1), batch="night")
    assert local.array("D").version == local.array("S").version == 2


def test_replays_of_drops_and_of_what_did_nothing(local: wr.Database, arrays: Arrays) -> None:
    for _ in range(2):
        with local.batch("tidy") as batch:
            batch.drop("D")
            batch.insert("S", {"x": np.empty(0, np.int64), "v": np.empty(0, np.int64)})
    assert batch.applied_before
    assert "D" not in local
    with local.batch("tidy") as again:
        again.drop("D")  # nothing was done to S, so that it may be left out
    assert again.applied_before
    with pytest.raises(ConflictError, match="applied to D"):
        local.array("S").delete(batch="tidy")
    with local.catalog.writing() as connection:  # as earlier windrows kept it
        connection.execute(sa.insert(batches).values(id="old", created=0, report='{"S": 1}'))
    assert not local.array("S").delete(batch="old").applied
    with pytest.raises(ConflictError, match="applied to S"):
        local.create("E", "<a: int64> [i=1:2]").write([1, 2], batch="old")


@pytest.mark.parametrize("sparse", [False, True])
def test_an_id_is_not_taken_as_applied_to_a_namesake(local: wr.Database, sparse: bool) -> None:
    """An array that was dropped and made again holds nothing of what was done to the one before it."""
    cells = {"x": [1, 2], "v": [5, 6]}

    def make() -> wr.Array:
        return local.create("N", "<v: int64> [x=1:2]", sparse=sparse)

    make().insert(cells, batch="night1")
    assert not local.array("N").insert(cells, batch="night1").applied
    local.drop("N")
    array = make()
    with pytest.raises(ConflictError, match="another N, which was dropped since"):
        array.insert(cells, batch="night1")
    assert array.version == 0
    assert array.insert(cells, batch="night2").applied
    local.drop("N")
    with local.batch("night3") as batch:
        batch.create("N", "<v: int64> [x=1:2]", sparse=sparse)
        batch.insert("N", cells)
    with local.batch("night3") as batch:
        batch.create("N", "<v: int64> [x=1:2]", sparse=sparse)
        batch.insert("N", cells)
    assert batch.applied_before
    assert local.array("N").version == 1


def test_imports_and_stores_keep_to_their_id(local: wr.Database, arrays: Arrays, tmp_path: Path) -> None:
    local.export_file("D", tmp_path / "d.nc")
    first = local.import_file(tmp_path / "d.nc", "E", batch="file")
    again = local.import_file(tmp_path / "d.nc", "E", batch="file")
    assert (first.applied, again.applied, local.array("E").version) == (True, False, 1)
    with pytest.raises(ConflictError, match="applied to E"):
        local.import_file(tmp_path / "d.nc", "F", batch="file")
    assert "F" not in local
    query = local.query("select a from D")
    assert (query.store("G", batch="stored").applied, query.store("G", batch="stored").applied) == (True, False)
    with pytest.raises(ConflictError, match="applied to G"):
        query.store("H", batch="stored")
    assert "H" not in local


def test_the_second_of_two_with_one_id_is_told_that_it_was_applied(
    local: wr.Database, connect: Connect, arrays: Arrays
) -> None:
    """Both began before either was applied: the one that waited for the lock looks again."""
    other, found = connect(), []

    def second() -> None:
        with other.batch("night") as batch:
            batch.insert("S", {"x": [7], "v": [-1]})
        found.append(batch.report)

    waiting = threading.Thread(target=second)
    with local.batch("night") as first:
        first.insert("S", {"x": [7], "v": [70]})
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join()
    assert [(report.applied, dict(report.versions)) for report in found] == [(False, {"S": 2})]
    assert local.array("S").read(x=7)["v"].to_pylist() == [70]
    other.array("S").insert({"x": [8], "v": [80]})  # no lock was left


def test_one_id_used_for_two_arrays_at_once(local: wr.Database, connect: Connect, arrays: Arrays) -> None:
    other = connect()

    def use_it_twice() -> None:
        with local.batch("night") as first:
            first.insert("S", {"x": [7], "v": [70]})
            other.array("D").append(np.ones(1), batch="night")

    with pytest.raises(ConflictError, match="night"):
        use_it_twice()
    assert local.array("S").version == 1
    assert local.array("D").version == 2


# Inside a batch


def test_queries_inside_a_batch_see_its_changes(local: wr.Database, connect: Connect, arrays: Arrays) -> None:
    _, sparse = arrays
    other = connect()
    with local.batch() as batch:
        batch.insert("S", {"x": [5], "v": [50]})
        batch.append("D", np.array([7.0]))
        assert batch.query("select v from S").compute()["v"].to_pylist() == [10, 20, 50]
        assert batch.query("aggr D sum(a)").compute()["sum_a"].item() == 10.0
        assert batch.array("S").neighbours(wr.Linf(9)).agg(n=wr.count()).compute()["n"].to_pylist() == [3, 3, 3]
        assert batch.array("D").window(i=wr.trailing(2)).agg(m=wr.sum("a")).compute()["m"].values.tolist() == [
            0,
            1,
            3,
            9,
        ]
        assert batch.array("D").shape == (4,)
        assert batch.array("S").chunks().cells.sum() == 3
        joined = batch.array("S").join(batch.array("S"), wr.Linf(1)).agg(n=wr.count())
        assert joined.compute()["n"].to_pylist() == [2, 2, 1]
        batch.delete("S", "x = 1")
        assert joined.compute()["n"].to_pylist() == [1, 1]
        batch.update("S", {"v": "v + 1"})
        assert batch.array("S").read()["v"].to_pylist() == [21, 51]
        assert batch.array("D").to_xarray()["a"].values.tolist() == [0, 1, 2, 7]
        assert sparse.read()["v"].to_pylist() == other.array("S").read()["v"].to_pylist() == [10, 20]
        assert local.query("select v from S").compute().num_rows == 2
        old = batch.query("select v from S@1").compute()["v"].to_pylist()
        assert old == [10, 20]
        with pytest.raises(DataError, match="inside a batch"):
            batch.array("S").insert({"x": [9], "v": [9]})
        with pytest.raises(DataError, match="queries only"):
            batch.query("drop S")
        with pytest.raises(UnknownNameError):
            batch.array("nothing")
        query = batch.query("select v from S")
    assert query.compute()["v"].to_pylist() == other.array("S").read()["v"].to_pylist() == [21, 51]


def test_a_query_inserted_in_a_batch_reads_what_the_batch_wrote(local: wr.Database, arrays: Arrays) -> None:
    local.create("Q", "<v: int64> [x=0:9:4]", sparse=True)
    for text in ("begin 'both'", "insert into S values (4: 40)", "insert into Q select v from S where x > 1"):
        local.query(text)
    assert local.array("Q").read().num_rows == 0
    local.query("commit")
    assert local.array("Q").read().to_pydict() == {"x": [2, 4], "v": [20, 40]}
    local.query("begin")
    local.query("insert into S values (9: 90)")
    local.query("select v from S where x = 9 into Z")
    local.query("commit")
    assert local.array("Z").read()["v"].to_pylist() == [90]


# Locks


def move_lock(database: wr.Database, silent_seconds: float) -> None:
    heard = now_microseconds() - int(silent_seconds * 1_000_000)
    with database.catalog.writing() as connection:
        connection.execute(sa.update(locks).values(host="elsewhere", heartbeat=heard))


@pytest.mark.parametrize("name", ["D", "S"])
def test_a_writer_that_lost_its_lock_to_a_collection_publishes_nothing(
    local: wr.Database, connect: Connect, arrays: Arrays, name: str
) -> None:
    """The collection took what the writer had written; the array's version is still the one it built on."""
    collector = connect(lock_timeout=0)

    def change(batch: wr.Batch) -> None:
        if name == "D":
            batch.append("D", np.full(2, 9.0))
        else:
            batch.insert("S", {"x": [5], "v": [50]})

    def fall_silent() -> None:
        with local.batch() as slow:
            change(slow)
            move_lock(local, SILENT_SECONDS + 1)
            collector.collect_garbage()

    with pytest.raises(ConflictError, match=f"lock on {name} was lost"):
        fall_silent()
    array = local.array(name)
    assert array.version == 1
    before = array.read()
    with local.batch() as batch:
        change(batch)
    assert array.version == 2
    assert len(array.read()) >= len(before)
    collector.collect_garbage()


def test_a_maker_that_lost_its_name_publishes_nothing(local: wr.Database, connect: Connect, arrays: Arrays) -> None:
    other = connect(lock_timeout=0)

    def fall_silent() -> None:
        with local.batch() as slow:
            slow.create("B", "<b: int64> [i=1:2]")
            move_lock(local, SILENT_SECONDS + 1)
            other.create("B", "<mine: int64> [i=1:2]").write([1, 2])

    with pytest.raises(ConflictError, match="lock on B was lost"):
        fall_silent()
    assert local.array("B").read()["mine"].values.tolist() == [1, 2]


class Interrupted(BaseException):
    """As Ctrl-C is."""


@pytest.mark.parametrize("work", ["insert", "create", "drop", "collect"])
def test_an_interrupt_between_taking_a_lock_and_noting_it_leaves_none(
    local: wr.Database, arrays: Arrays, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    take, before = ArrayLock._take, set(threading.enumerate())

    def take_and_stop(self: ArrayLock) -> str | None:
        take(self)
        raise Interrupted

    monkeypatch.setattr(ArrayLock, "_take", take_and_stop)
    with pytest.raises(Interrupted):
        {
            "insert": lambda: local.array("S").insert({"x": [5], "v": [50]}),
            "create": lambda: local.create("B", "<b: int64> [i=1:2]"),
            "drop": lambda: local.drop("S"),
            "collect": local.collect_garbage,
        }[work]()
    with local.catalog.reading() as connection:
        assert connection.execute(sa.select(locks)).all() == []
    beating = [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("windrow-lock")]
    for thread in beating:
        thread.join(10)
        assert not thread.is_alive()


def test_an_interrupt_while_locks_are_given_back_leaves_none(
    local: wr.Database, connect: Connect, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete, stopped = ArrayLock._delete, []

    def stop_once(self: ArrayLock) -> None:
        if not stopped and self.catalog is local.catalog:  # other tests' locks may still be on their way out
            stopped.append(True)
            raise Interrupted
        delete(self)

    monkeypatch.setattr(ArrayLock, "_delete", stop_once)

    def change_both() -> None:
        with local.batch() as batch:
            batch.insert("S", {"x": [5], "v": [50]})
            batch.append("D", np.ones(1))

    with pytest.raises(Interrupted):
        change_both()
    other = connect(lock_timeout=5)
    other.array("S").insert({"x": [6], "v": [60]})
    other.array("D").append(np.ones(1))


# Collection


def test_collection_keeps_what_the_catalog_offers_whatever_tags_say(local: wr.Database, arrays: Arrays) -> None:
    """A warehouse of an earlier windrow, whose collections cut the branch off and kept versions by their tags."""

    dense, _ = arrays
    for value in (3.0, 4.0):
        dense.append(np.array([value]))
    pointers = [version.pointer for version in dense.versions()]
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(dense.location().path))
    for pointer in pointers:
        repository.create_tag(f"windrow-{pointer}", pointer)
    repository.expire_snapshots(clock.datetime.now(clock.UTC))
    lost = next((Path(dense.location().path) / "refs").glob(f"tag.windrow-{pointers[2]}*"))
    for file in lost.iterdir():
        file.unlink()
    lost.rmdir()
    local.collect_garbage()
    for number in range(1, 4):
        assert dense.at(version=number).read()["a"].values.tolist() == [0, 1, 2, 3, 4][: number + 2]
    local.collect_garbage(keep_versions=2)
    assert [version.number for version in dense.versions()] == [2, 3]
    assert dense.at(version=2).read()["a"].values.tolist() == [0, 1, 2, 3]
    dense.append(np.array([5.0]))
    local.collect_garbage(keep_versions=1)
    assert dense.read()["a"].values.tolist() == [0, 1, 2, 3, 4, 5]
    assert not list(repository.list_tags())


def test_a_long_build_is_not_deleted_underneath(
    local: wr.Database, connect: Connect, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = connect()
    with local.batch() as batch:
        batch.create("B", "<b: int64> [x=1:9]", sparse=True)
        (folder,) = Path(local.path, "arrays").glob("B-*")
        long_ago = time.time() - 2 * collect.UNFINISHED_SECONDS
        for place in (folder, *folder.rglob("*")):
            os.utime(place, (long_ago, long_ago))
        assert collector.collect_garbage().directories == 0  # its maker holds the name
        batch.insert("B", {"x": [1], "b": [1]})
    assert collector.array("B").read().num_rows == 1


def test_a_folder_of_a_maker_that_died_goes_when_nothing_was_written_for_long(
    local: wr.Database, arrays: Arrays
) -> None:
    folder = Path(local.path, "arrays", "B-0123456789ab")
    nested = folder / "chunks" / "deep"
    nested.mkdir(parents=True)
    (nested / "chunk").write_bytes(b"x" * 100)
    long_ago = time.time() - 2 * collect.UNFINISHED_SECONDS
    os.utime(folder, (long_ago, long_ago))
    assert local.collect_garbage().directories == 0  # written to just now, deep inside
    for place in (folder, *folder.rglob("*")):
        os.utime(place, (long_ago, long_ago))
    collected = local.collect_garbage()
    assert (collected.directories, collected.bytes >= 100) == (1, True)
    assert not folder.exists()


def test_versions_are_in_order_when_the_clock_is_set_back(
    local: wr.Database, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, sparse = arrays
    monkeypatch.setattr(publishing, "now_microseconds", lambda: now_microseconds() - 24 * 3600 * 10**6)
    sparse.insert({"x": [5], "v": [50]})
    sparse.insert({"x": [6], "v": [60]})
    times = [version.created for version in sparse.versions()]
    assert times == sorted(set(times))
    assert sparse.at(time=times[2]).version == 2
