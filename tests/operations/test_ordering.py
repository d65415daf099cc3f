"""Rows in an order, on dense and sparse arrays in any chunks, against Python's own sort over the cells."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from operations.test_queries import Cell, problems, rows_of, stored
from windrow.operations.query import ordering, sparse_run

KEYS = {
    "a": lambda cell: cell["a"],
    "d0": lambda cell: cell["d0"],
    "d0 % 2": lambda cell: cell["d0"] % 2,
    "a is null": lambda cell: cell["a"] is None,
    "-d0": lambda cell: -cell["d0"],
}


def in_order(cells: list[Cell], keys: list[tuple[str, bool]]) -> list[Cell]:
    """The cells, which come in the order of their coordinates, by some keys; missing values are last."""

    def compare(one: Cell, other: Cell) -> int:
        for name, descending in keys:
            left, right = KEYS[name](one), KEYS[name](other)
            if left is None or right is None:
                if (left is None) != (right is None):
                    return 1 if left is None else -1
                continue
            if left != right:
                return (1 if left > right else -1) * (-1 if descending else 1)
        return 0

    return sorted(cells, key=cmp_to_key(compare))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    problems(),
    st.lists(st.tuples(st.sampled_from(sorted(KEYS)), st.booleans()), max_size=3, unique_by=lambda key: key[0]),
    st.none() | st.integers(0, 9),
    st.booleans(),
)
def test_rows_come_in_the_order_that_is_asked_for(
    local: Any, problem: dict[str, Any], keys: list[tuple[str, bool]], limit: int | None, small: bool
) -> None:
    if not keys and limit is None:
        keys = [("a", True)]
    name, cells = stored(local, problem)
    by = ", ".join(f"{key} desc" if descending else key for key, descending in keys)
    text = f"select a from {name}" + (f" order by {by}" if by else "") + ("" if limit is None else f" limit {limit}")
    with pytest.MonkeyPatch.context() as patch:
        if small:  # every chunk is a task of its own, and every piece is merged at once
            patch.setattr(sparse_run, "SMALLEST_TASK", 1)
            patch.setattr(ordering, "_MERGED", 1)
        found = local.query(text).compute()
    assert isinstance(found, pa.Table)
    assert rows_of(found) == in_order(cells, keys)[:limit]


def filled(database: Any) -> Any:
    """Temperatures with ties, holes, and zeros of both signs."""
    array = database.create("T", "<t: float64> [x=1:6:2, y=1:5:3]", labels={"y": [30.0, 10.0, 20.0, 50.0, 40.0]})
    values = np.arange(30.0).reshape(6, 5) % 7
    values[2, 2], values[0, 0], values[1, 2] = np.nan, -0.0, 0.0
    array.write({"t": values})
    return array


def test_both_engines_give_one_answer(database: Any) -> None:
    filled(database)
    found = database.query("select t from T where t < 3 or t is null order by t desc, y limit 9").compute()
    told = [(row["t"], row["y"], row["x"]) for row in found.to_pylist()]
    # y goes by its labels: 10 is cell 2, 20 cell 3, 30 cell 1, 40 cell 5, 50 cell 4.
    assert told == sorted(told, key=lambda row: (-row[0], [2, 3, 1, 5, 4].index(row[1]), row[2]))
    assert len(told) == 9
    first = database.query("select t from T limit 7").compute().to_pylist()
    assert [(row["x"], row["y"]) for row in first] == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 1), (2, 2)]


def test_queries_of_python_are_ordered_alike(local: Any) -> None:
    array = filled(local)
    query = array.regrid(x=2, y=5).agg(m=wr.max("t"))
    assert query.order_by("m desc", "x").limit(2).compute().to_pylist() == [
        {"x": 1, "y": 1, "m": 6.0},
        {"x": 2, "y": 1, "m": 6.0},
    ]
    top = local.query("select t from T").order_by("t DESC").limit(5)
    assert str(top.plan) == "select t from T order by t desc limit 5"
    assert top.limit(2).plan == top.limit(2).limit(9).plan
    assert top.limit(2).compute().column("t").to_pylist() == [6.0, 6.0]
    assert len(list(top.stream())) == 1
    assert local.query("select t from T").order_by("label(y)", "x desc").limit(1).compute().to_pylist()[0]["y"] == 2


def test_zeros_of_both_signs_are_equal(local: Any) -> None:
    filled(local)
    found = local.query("select t from T where t = 0 order by t, x desc").compute()
    assert [row["x"] for row in found.to_pylist()] == [6, 5, 3, 2, 1]


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda query: query.order_by(), "there is nothing to order by"),
        (lambda query: query.order_by(3), "what is ordered by is a text"),
        (lambda query: query.order_by("t down"), "expected"),
        (lambda query: query.order_by("3"), "a constant orders nothing"),
        (lambda query: query.order_by("q desc"), "no such column"),
        (lambda query: query.limit(-1), "a limit must not be negative"),
        (lambda query: query.limit(2.5), "a limit"),
        (lambda query: query.limit("2"), "a limit"),
        (lambda query: query.limit(2).store("B"), "order by or limit gives is a table"),
        (lambda query: query.database.create_view("V", query.order_by("t")), "is a table, which no view can hold"),
    ],
)
def test_what_cannot_be_ordered_is_told(local: Any, ask: Any, what: str) -> None:
    filled(local)
    with pytest.raises(wr.Error, match=what):
        ask(local.query("select t from T"))
    assert [array.name for array in local.arrays()] == ["T"]


def test_ordered_rows_are_saved_as_they_are(local: Any, tmp_path: Any) -> None:
    filled(local)
    local.query(f"save select t from T order by t desc, x, y limit 3 to '{tmp_path}/top.csv'")
    rows = (tmp_path / "top.csv").read_text().splitlines()
    assert rows[0].replace('"', "") == "x,y,t"
    assert [[float(text) for text in row.split(",")] for row in rows[1:]] == [[2, 2, 6], [3, 4, 6], [5, 1, 6]]
