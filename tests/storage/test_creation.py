"""Making, filling and dropping arrays are parts of transactions: all of it is seen at once, or none of it ever was."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import crash_writer
import windrow as wr
from crash_writer import Started
from windrow.errors import ConflictError, DataError, SchemaError, StoreError, UnknownNameError
from windrow.storage.catalog import Catalog
from windrow.storage.publishing import News
from windrow.storage.transaction import Transaction

Connect = Callable[..., wr.Database]


@pytest.fixture
def source(local: wr.Database) -> wr.Array:
    array = local.create("A", "<a: float64> [i=1:8:4]")
    array.write(np.arange(8.0))
    return array


def folders(database: wr.Database) -> set[str]:
    return {entry.name.partition("-")[0] for entry in (Path(database.path) / "arrays").iterdir()}


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Lets a test look around at the moment before a transaction is published."""
    at: dict[str, Any] = {}
    publish = Transaction.publish

    def look_first(self: Transaction) -> Any:
        if look := at.pop("look", None):
            look()
        return publish(self)

    monkeypatch.setattr(Transaction, "publish", look_first)
    return at


MAKERS: dict[str, Callable[[wr.Database, Path], object]] = {
    "store": lambda db, path: db.array("A").window(i=2).agg(m=wr.max("a")).store("B"),
    "into": lambda db, path: db.query("select a from A into B"),
    "create as": lambda db, path: db.query("create array B as select a from A"),
    "import a table": lambda db, path: db.import_file(path / "t.parquet", "B", dimensions=["x"]),
    "import a grid": lambda db, path: db.import_file(path / "g.nc", "B"),
}


@pytest.fixture
def files(tmp_path: Path, local: wr.Database, source: wr.Array) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1, 2], "v": [1.0, 2.0]}), tmp_path / "t.parquet")
    local.export_file("A", tmp_path / "g.nc")
    return tmp_path


@pytest.mark.parametrize("way", MAKERS)
def test_nobody_sees_an_array_that_is_being_filled(
    local: wr.Database, connect: Connect, files: Path, stopped: dict[str, Any], way: str
) -> None:
    other = connect()
    seen = []
    stopped["look"] = lambda: seen.append((sorted(array.name for array in other.arrays()), "B" in folders(other)))
    MAKERS[way](local, files)
    assert seen == [(["A"], True)]
    assert [version.number for version in other.array("B").versions()] == [0, 1]
    assert other.array("B").version == 1


@pytest.mark.parametrize("way", MAKERS)
def test_an_array_that_could_not_be_filled_was_never_there(
    local: wr.Database, connect: Connect, files: Path, stopped: dict[str, Any], way: str
) -> None:
    def fail() -> None:
        raise RuntimeError("pulled out")

    stopped["look"] = fail
    with pytest.raises(RuntimeError, match="pulled out"):
        MAKERS[way](local, files)
    assert "B" not in local
    assert folders(local) == {"A"}
    MAKERS[way](connect(), files)
    assert local.array("B").version == 1


@pytest.mark.parametrize("way", MAKERS)
@pytest.mark.parametrize("ending", ["interrupted", "catalog gone"])
def test_an_array_that_was_published_stays_whatever_comes_after(
    local: wr.Database, connect: Connect, files: Path, monkeypatch: pytest.MonkeyPatch, way: str, ending: str
) -> None:
    """Ctrl-C, or a database server that goes, after the one commit that decides: others may have seen the array."""
    publish = Catalog.publish

    def publish_and_stop(self: Catalog, news: News) -> Any:
        publish(self, news)
        if ending == "catalog gone":
            monkeypatch.setattr(Catalog, "array_records", lose_the_catalog)
        raise KeyboardInterrupt

    def lose_the_catalog(self: Catalog) -> Any:
        raise StoreError("the catalog cannot be used")

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "publish", publish_and_stop)
        with pytest.raises(KeyboardInterrupt):
            MAKERS[way](local, files)
    monkeypatch.undo()
    found = connect().array("B")
    assert found.version == 1
    read = found.read()
    assert (read.num_rows if found.sparse else read.sizes["i"]) == (2 if way == "import a table" else 8)


@pytest.mark.parametrize("way", ["store", "into", "import a table", "import a grid"])
def test_two_makers_of_one_name_take_turns(
    local: wr.Database, connect: Connect, files: Path, stopped: dict[str, Any], way: str
) -> None:
    """The second waits for the first, then goes on with the array that is there: nothing acknowledged is lost."""
    other, reports = connect(), []
    second = threading.Thread(target=lambda: reports.append(MAKERS[way](other, files)))

    def start_second() -> None:
        second.start()
        second.join(0.3)
        assert second.is_alive()

    stopped["look"] = start_second
    first = MAKERS[way](local, files)
    second.join()
    assert (first.version, reports[0].version) == (1, 2)  # type: ignore[attr-defined]
    assert local.array("B").version == 2
    with local.batch() as mine:
        mine.create("C", "<a: int64> [i=1:2]")
        with pytest.raises(ConflictError, match="C is being written"):
            connect(lock_timeout=0).create("C", "<a: int64> [i=1:2]")


def test_a_second_create_is_refused_and_takes_nothing_away(
    local: wr.Database, connect: Connect, source: wr.Array, stopped: dict[str, Any]
) -> None:
    local.create("B", "<b: int64> [j=1:3]").write(np.arange(3))
    for make in (
        lambda: local.create("B", "<c: int64> [k=1:2]"),
        lambda: local.query("create array B as select a from A"),
        lambda: local.query("create B <c: int64> [k=1:2]"),
    ):
        with pytest.raises(SchemaError, match="exists"):
            make()
    assert local.array("B").read()["b"].values.tolist() == [0, 1, 2]


def test_batches_make_fill_and_drop_arrays_together(local: wr.Database, connect: Connect, source: wr.Array) -> None:
    other = connect()
    with local.batch("night") as batch:
        batch.create("B", "<b: int64> [x=1:9]", sparse=True)
        batch.insert("B", {"x": [1, 2], "b": [10, 20]})
        batch.create("C", "<c: int64> [i=1:2]", labels={"i": [0.5, 1.5]})
        batch.drop("A")
        with pytest.raises(UnknownNameError, match="dropped in this batch"):
            batch.update("A", {"a": 1})
        assert [array.name for array in other.arrays()] == ["A"]
        assert batch.array("B").read().num_rows == 2
    assert batch.report is not None
    assert dict(batch.report.versions) == {"B": 1, "C": 0}
    assert [array.name for array in other.arrays()] == ["B", "C"]
    assert other.array("C").read(i=1.5)["c"].values.tolist() == [0]
    with local.batch() as batch:
        batch.drop("B")
        batch.create("B", "<other: float64> [i=1:2]")
        batch.write("B", [1.0, 2.0])
    assert other.array("B").schema.attribute_names == ("other",)
    assert other.array("B").read()["other"].values.tolist() == [1.0, 2.0]
    assert folders(local) == {"B", "C"}


def test_a_batch_that_fails_makes_and_drops_nothing(local: wr.Database, source: wr.Array) -> None:
    def fail() -> None:
        with local.batch() as batch:
            batch.create("B", "<b: int64> [i=1:2]")
            batch.drop("A")
            batch.write("B", ["x", "y"])

    with pytest.raises(DataError):
        fail()
    assert [array.name for array in local.arrays()] == ["A"]
    assert source.read()["a"].values.tolist() == list(range(8))
    assert folders(local) == {"A"}


def test_statements_between_begin_and_commit(local: wr.Database, connect: Connect, source: wr.Array) -> None:
    other = connect()
    for text in (
        "begin",
        "create sparse array P <v: int64> [x=1:9]",
        "insert into P values (1: 10), (2: 20)",
        "create sparse array Q <v: int64> [x=1:9]",
        "insert into Q select v + 1 as v from P",
        "create array R as select a + 1 as a from A",
        "drop A",
    ):
        local.query(text)
    assert local.query("select v from Q").compute()["v"].to_pylist() == [11, 21]
    assert [array.name for array in other.arrays()] == ["A"]
    local.query("commit")
    assert [array.name for array in other.arrays()] == ["P", "Q", "R"]
    assert other.array("Q").read()["v"].to_pylist() == [11, 21]
    assert other.array("R").read()["a"].values.tolist() == list(range(1, 9))
    local.query("begin")
    local.query("create array Z <a: int64> [i=1:2]")
    local.query("rollback")
    assert "Z" not in local


def test_a_killed_maker_leaves_no_array_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "warehouse"
    with wr.connect(path, engine="local", progress=False) as database:
        crash_writer.create(database)
    maker = Started(crash_writer.make_for_ever, path)
    assert maker.next() == "made"
    maker.kill()
    with wr.connect(path, engine="local", progress=False, lock_timeout=0) as database:
        assert "B" not in database
        database.create("B", "<b: int64> [i=1:2]").write([1, 2])
        assert len(list((path / "arrays").glob("B-*"))) == 2
        database.collect_garbage()  # too young to be taken for abandoned
        assert len(list((path / "arrays").glob("B-*"))) == 2
        assert database.array("B").read()["b"].values.tolist() == [1, 2]


@pytest.mark.parametrize("attempt", range(3))
def test_a_folder_goes_while_chunks_are_still_on_their_way_into_it(local: wr.Database, attempt: int) -> None:
    """Of a write that failed some chunks are written later: each appears under another name and is renamed."""
    directory = local.warehouse.new_directory("E")
    folder = Path(local.path) / directory
    (folder / "chunks").mkdir(parents=True)
    begun = threading.Event()

    def write() -> None:
        for number in range(2_000):
            unfinished = folder / "chunks" / f"{number}.part"
            try:
                unfinished.write_bytes(bytes(64))
                unfinished.rename(folder / "chunks" / str(number))
            except FileNotFoundError:  # the folder is gone, or the file was removed before it was renamed
                if not folder.exists():
                    return
            if number == 200:
                begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(60)
    local.warehouse.remove(directory)
    writer.join(60)
    assert not folder.exists()


@pytest.mark.parametrize("path", ["s3://bucket/warehouse", "gs://bucket/w", "https://example.org/w"])
def test_an_address_is_no_directory(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="object store"):
        wr.connect(path)
    assert list(tmp_path.iterdir()) == []
