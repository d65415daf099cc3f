"""A query sees all its arrays as of one moment, and is bound once for all that is done with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

import windrow as wr
from windrow.errors import UnknownNameError
from windrow.model.box import Box
from windrow.plan.bound import BoundScan

JOIN = "select count(*) from A similarity join S on S.i = A.i with shape L1(0)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A warehouse with a dense and a sparse array that are only ever changed together."""
    with wr.connect(tmp_path / "warehouse", engine="local", progress=False) as database:
        database.create("A", "<a: int64> [i=1:4:2]")
        database.create("S", "<a: int64> [i=1:4:2]", sparse=True)
        change(database, 0)
    return tmp_path / "warehouse"


@pytest.fixture
def database(path: Path) -> Iterator[Any]:
    with wr.connect(path, engine="local", progress=False) as opened:
        yield opened


def change(database: Any, number: int) -> None:
    """Make every cell of both arrays the same number, in one batch."""
    with database.batch() as batch:
        batch.write("A", {"a": np.full(4, number)})
        batch.insert("S", pa.table({"i": [1, 2, 3, 4], "a": [number] * 4}))


def seen(bound: Any) -> list[tuple[str, set[int]]]:
    """What the arrays of a bound query hold: their versions, and the numbers in their cells."""
    found = []
    for step in bound.walk():
        if isinstance(step, BoundScan):
            read = step.snapshot.read()["a"].to_pylist() if step.schema.sparse else step.snapshot.read(step.box)["a"]
            found.append((step.snapshot.title.partition("@")[2], {int(value) for value in read}))
    return found


def test_a_batch_that_comes_between_two_looks_is_seen_in_neither(
    path: Path, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = database.query(JOIN)
    current = database.catalog.current
    looked: list[str] = []

    def interrupted(name: str) -> Any:
        found = current(name)
        looked.append(name)
        if len(looked) == 1:
            with wr.connect(path, engine="local", progress=False) as other:
                change(other, 1)
        return found

    monkeypatch.setattr(database.catalog, "current", interrupted)
    assert seen(query.bind().bound) == [("1", {0}), ("1", {0})]
    assert looked == ["A", "S"]
    assert seen(query.bind().bound) == [("2", {1}), ("2", {1})]


def test_a_reader_never_sees_half_a_batch(path: Path, database: Any) -> None:
    """A writer publishes batches as fast as it can, while a reader joins both arrays, and one of them with itself."""
    done = threading.Event()

    def write() -> None:
        try:
            with wr.connect(path, engine="local", progress=False) as writer:
                for number in range(1, 40):
                    change(writer, number)
        finally:
            done.set()

    thread = threading.Thread(target=write)
    thread.start()
    versions = set()
    try:
        join = database.query(JOIN)
        twice = database.query("select count(*) from A A1 similarity join A A2 with shape L1(1)")
        while not done.is_set():
            for query in [join] * 30 + [twice]:
                bound = query.bind().bound
                (one, other) = (step.snapshot.title[2:] for step in bound.walk() if isinstance(step, BoundScan))
                assert one == other
                versions.add(one)
            for query in (join, twice):
                (_, numbers), (_, others) = seen(query.bind().bound)
                assert numbers == others
                assert len(numbers) == 1
    finally:
        thread.join()
    assert len(versions) > 2  # or the reader was never in the writer's way


def test_a_moment_ends(path: Path, database: Any) -> None:
    with database.catalog.one_moment():
        before = database.array("A").version
        with wr.connect(path, engine="local", progress=False) as other:
            change(other, 1)
        with database.catalog.one_moment():
            assert database.array("A").version == before
    assert database.array("A").version == before + 1


@pytest.fixture
def statements(database: Any) -> list[str]:
    """What the catalog is asked from now on."""
    said: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            said.append(statement)

    sa.event.listen(database.catalog._reader, "before_cursor_execute", note)
    return said


@pytest.mark.parametrize("name", ["A", "S"])
def test_binding_asks_the_catalog_little(database: Any, statements: list[str], name: str) -> None:
    def asked(what: Callable[[], Any]) -> int:
        statements.clear()
        what()
        return len(statements)

    # Whether it is a view is asked once of each array.
    assert asked(lambda: database.query(f"select a + 1 as c from {name}")) <= 5
    assert asked(lambda: database.query(f"select a + 1 as c from {name}")) <= 4
    query = database.query(f"select a + 1 as c from {name}")
    assert asked(lambda: query.schema) == 0
    for run in (query.compute, query.explain, lambda: list(query.stream())):
        # Which version there is, whether there are views, and, once it is held, whether the version still is.
        assert asked(run) == 3


def test_what_is_kept_is_read_at_one_version(path: Path, database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An array made for a result, and the result in it, are of one version, though another comes in between."""
    query = database.query("select a * 10 as a from A")
    create = wr.Batch._make

    def slowly(self: wr.Batch, *arguments: Any, **options: Any) -> Any:
        if self.database is database:
            with wr.connect(path, engine="local", progress=False) as other:
                change(other, 7)
        return create(self, *arguments, **options)

    monkeypatch.setattr(wr.Batch, "_make", slowly)
    query.store("B")
    assert database.array("B").read()["a"].values.tolist() == [0, 0, 0, 0]
    assert query.compute()["a"].values.tolist() == [70, 70, 70, 70]


def test_a_result_kept_in_its_own_array_reads_it_once_it_is_locked(database: Any) -> None:
    for _ in range(3):
        database.query("select a + 1 as a from A into A")
    assert database.array("A").read()["a"].values.tolist() == [3, 3, 3, 3]


def test_queries_follow_their_arrays(path: Path, database: Any) -> None:
    query, pinned = database.query("select a from A"), database.query("select a from A@1")
    with wr.connect(path, engine="local", progress=False) as other:
        change(other, 5)
    assert query.compute()["a"].values.tolist() == [5, 5, 5, 5]
    assert pinned.compute()["a"].values.tolist() == [0, 0, 0, 0]


def test_a_pinned_window_refuses_an_array_made_anew(database: Any) -> None:
    query = database.array("A").at(version=1).window(i=2).agg(m=wr.max("a"))
    database.drop("A")
    database.create("A", "<a: int64> [i=1:4:2]").write({"a": np.arange(4)})
    with pytest.raises(UnknownNameError, match="the array was dropped, got A@1"):
        query.compute()


def test_parts_of_results_are_computed_alone(database: Any) -> None:
    dense = database.query("select a + i as c from A").bind()
    assert dense.preview(Box((2,), (3,))).blocks["c"].tolist() == [2, 3]
    sparse = database.query("select a + i as c from S").bind()
    assert sparse.preview(Box((2,), (3,)))["c"].to_pylist() == [2, 3]
    shown, cells = sparse.first(2)
    assert (shown["i"].to_pylist(), cells) == ([1, 2], 4)
