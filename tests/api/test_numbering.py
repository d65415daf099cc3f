"""The numbering dimension: who makes it, where it is marked, and that windows take any number unless they name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.model.box import Box
from windrow.model.notation import parse_schema
from windrow.model.schema import Schema
from windrow.model.window import ANY, Extent, Window, regrid

GRID = {"x": (0, 10, 1), "y": (0, 10, 1)}
POINTS = pa.table(
    {"x": [1.2, 1.7, 1.4, 2.5, 7.5], "y": [3.1, 3.9, 3.2, 3.5, 7.5], "m": [1.0, 2.0, 4.0, 8.0, 16.0]}
)  # three in one cell, one beside them, one far away


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with wr.connect(tmp_path / "w", engine="local") as database:
        yield database


@pytest.fixture
def gridded(db: Any) -> Any:
    array = db.create("A", "<m: float64> [x=1:10, y=1:10]", grid=GRID)
    array.insert(POINTS)
    return array


def by_place(table: pa.Table, value: str) -> dict[tuple[int, ...], Any]:
    names = [name for name in ("x", "y", "n") if name in table.column_names]
    rows = table.to_pylist()
    return {tuple(row[name] for name in names): row[value] for row in rows}


def test_a_gridding_marks_it_in_the_schema(db: Any, gridded: Any) -> None:
    assert gridded.schema.numbering == (2,)
    assert str(gridded.schema.dimension("n")).endswith(" numbering")
    assert "n tells cells apart" in str(db.query("describe A"))
    with wr.connect(db.path, engine="local") as again:
        assert again.array("A").schema == gridded.schema


def test_a_gridded_dimension_may_be_called_n(db: Any) -> None:
    array = db.create("B", "<m: float64> [n]", grid={"n": (0, 10, 1)})
    assert [d.name for d in array.schema.dimensions if d.numbering] == ["numbering"]
    array.insert(pa.table({"n": [1.5, 1.6], "m": [1.0, 2.0]}))
    assert array.read().column("numbering").to_pylist() == [0, 1]
    stated = db.create("C", "<m: float64> [x, k=5:* numbering]", grid={"x": (0, 10, 1)})
    stated.insert(pa.table({"x": [1.5, 1.6], "m": [1.0, 2.0]}))
    assert stated.read().column("k").to_pylist() == [5, 6]
    assert stated.schema.numbering == (1,)


def test_the_first_insert_that_keeps_duplicates_marks_it(db: Any) -> None:
    array = db.create("A", "<m: int64> [x=1:9, n=0:*]", sparse=True)
    array.insert(pa.table({"x": [1, 1], "n": [0, 1], "m": [1, 2]}))
    assert array.schema.numbering == ()
    assert by_place(array.window(x=1).agg(c=wr.count()).compute(), "c") == {(1, 0): 1, (1, 1): 1}
    array.insert(pa.table({"x": [1, 2], "m": [3, 4]}), on_duplicate="keep")
    assert array.schema.numbering == (1,)
    assert array.at(version=1).schema.numbering == ()
    assert by_place(array.window(x=1).agg(c=wr.count()).compute(), "c") == {(1, 0): 3, (1, 1): 3, (1, 2): 3, (2, 0): 1}
    with pytest.raises(wr.DataError):
        array.insert(pa.table({"x": ["a"], "m": [3]}), on_duplicate="keep")
    assert array.schema.numbering == (1,)


def test_a_failed_insert_marks_nothing(db: Any) -> None:
    array = db.create("A", "<m: int64> [x=1:9, n=0:*]", sparse=True)
    with pytest.raises(wr.DataError):
        array.insert(pa.table({"x": [10**6], "m": [3]}), on_duplicate="keep")
    assert array.schema.numbering == ()
    plain = db.create("B", "<m: int64> [x=1:9]", sparse=True)
    with pytest.raises(wr.SchemaError, match="which the array lacks"):
        plain.insert(pa.table({"x": [1], "m": [3]}), on_duplicate="keep")


def test_typed_cells_may_leave_it_out(db: Any) -> None:
    db.query("create sparse array A <m: int64> [x=1:9, n=0:* numbering]")
    db.query("insert into A values (1: 5), (1: 6) with (on_duplicate = 'keep')")
    db.query("insert into A values (1, 7: 8)")
    assert by_place(db.array("A").read(), "m") == {(1, 0): 5, (1, 1): 6, (1, 7): 8}
    with pytest.raises(wr.DataError, match="some cells have a number"):
        db.query("insert into A values (1: 5), (1, 2: 6)")


@pytest.mark.parametrize("method", ["auto", "naive", "incremental"])
def test_windows_take_any_number(gridded: Any, method: str) -> None:
    counts = gridded.window(x=wr.centred(3), y=wr.centred(3)).agg(method=method, c=wr.count(), s=wr.sum("m")).compute()
    assert by_place(counts, "c") == {(2, 4, 0): 4, (2, 4, 1): 4, (2, 4, 2): 4, (3, 4, 0): 4, (8, 8, 0): 1}
    assert by_place(counts, "s")[2, 4, 1] == 15.0
    dropped = gridded.window(x=wr.centred(3), boundary="drop").agg(method=method, c=wr.count()).compute()
    assert by_place(dropped, "c") == {(2, 4, 0): 4, (2, 4, 1): 4, (2, 4, 2): 4, (3, 4, 0): 4, (8, 8, 0): 1}
    named = gridded.window(x=wr.centred(3), n=1).agg(method=method, c=wr.count()).compute()
    assert by_place(named, "c") == {(2, 4, 0): 2, (2, 4, 1): 1, (2, 4, 2): 1, (3, 4, 0): 2, (8, 8, 0): 1}


def test_windows_by_text_take_any_number(db: Any, gridded: Any) -> None:
    expected = {(2, 4, 0): 4, (2, 4, 1): 4, (2, 4, 2): 4, (3, 4, 0): 4, (8, 8, 0): 1}
    for window in ("x centred 3, y centred 3", "centred 3, centred 3"):
        found = db.query(f"select count(*) as c from A window ({window})")
        assert by_place(found.compute(), "c") == expected
        assert found.schema.numbering == (2,)
    query = gridded.window(x=wr.centred(3), y=wr.centred(3)).agg(c=wr.count())
    assert by_place(db.query(str(query.plan)).compute(), "c") == expected
    assert "46116" not in str(query.plan)


def test_a_regrid_takes_all_numbers_into_one_block(db: Any, gridded: Any) -> None:
    expected = {(1, 2, 0): 3, (2, 2, 0): 1, (4, 4, 0): 1}
    assert by_place(gridded.regrid(x=2, y=2).agg(c=wr.count()).compute(), "c") == expected
    assert by_place(db.query("select count(*) as c from A regrid (2, 2)").compute(), "c") == expected
    assert by_place(gridded.regrid(x=2, y=2, boundary="drop").agg(c=wr.count("m")).compute(), "c") == expected
    assert by_place(gridded.regrid(x=2, y=2, n=1).agg(c=wr.count()).compute(), "c") == {
        (1, 2, 0): 1,
        (1, 2, 1): 1,
        (1, 2, 2): 1,
        (2, 2, 0): 1,
        (4, 4, 0): 1,
    }


def test_chunks_do_not_matter(db: Any) -> None:
    rng = np.random.default_rng(5)
    points = pa.table({"x": rng.uniform(0, 10, 300), "m": rng.normal(size=300)})
    answers = []
    for name, chunks in (("A", {"n": 1, "x": 2}), ("B", {"n": 100, "x": 10})):
        array = db.create(name, "<m: float64> [x]", grid={"x": (0, 10, 1)}, chunks=chunks)
        array.insert(points)
        answers.append(by_place(array.window(x=wr.trailing(2)).agg(c=wr.count()).compute(), "c"))
    assert answers[0] == answers[1]
    cells = np.floor(points.column("x").to_numpy()).astype(int) + 1
    for (x, _), count in answers[0].items():
        assert count == np.isin(cells, [x - 1, x]).sum()


def test_windows_are_bound_so() -> None:
    schema = parse_schema("sparse A [x=1:9, n=0:* numbering]")[1]
    assert Window.of(schema, {"x": 2}).extents == (Extent(0, 1), ANY)
    assert str(Window.of(schema, {"x": 2})) == "window (x 2, n any)"
    assert Window.of(schema, {"x": 2, "n": 1}).extents == (Extent(0, 1), Extent(0, 0))
    assert regrid(schema, {"x": 2}).output_bounds(Box((1, 0), (9, 50))) == Box((1, 0), (5, 0))


def test_the_mark_in_schemas() -> None:
    schema = parse_schema("sparse A <m> [x=1:9:3, n=0:*:2 numbering]")[1]
    assert parse_schema(str(schema), sparse=True)[1] == schema
    assert parse_schema("sparse A [x=1:9, n=0:*]")[1].numbering == ()
    assert parse_schema("sparse A [x=1:9 numbering=1:2]")[1].dimension_names == ("x", "numbering")
    assert schema.with_chunks().numbering == (1,)
    assert schema.select(()).numbering == (1,)
    with pytest.raises(wr.SchemaError, match="only sparse arrays"):
        parse_schema("A <m> [x=1:9, n=0:9 numbering]")
    assert isinstance(schema.with_numbering("x"), Schema)
    assert schema.with_numbering("x").numbering_name is None
