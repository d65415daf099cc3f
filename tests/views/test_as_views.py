"""The suites of windows, regrids, totals, neighbours and joins once more as views, in three steps.

The arrays are there and empty (a dense one: as it was created) when the view is made. Everything comes in one batch,
then the same once more, which changes nothing, then everything goes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

import windrow as wr
from api import test_windows
from covering import Row, covering_rows
from join_oracle import Held
from join_problems import MEASURES, RULES, Problem, make
from operations import test_joins_property, test_queries, test_sparse_windows

from .checking import read

ALL = pytest.mark.slow
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)


def examples(count: int) -> Any:
    return settings(max_examples=count, suppress_health_check=list(HealthCheck), phases=NO_SHRINKING, deadline=None)


def new_name() -> str:
    return f"V{uuid.uuid4().hex[:12]}"


def step_through(
    view: Any,
    come: Callable[[], object],
    go: Callable[[], object],
    full: Callable[[], object],
    empty: Callable[[], object],
) -> None:
    """All in, nothing, all out; after each step the view is compared."""
    empty()
    come()
    full()
    assert view.check().ok
    version = view.version
    come()
    full()
    assert view.version == version, "what changed nothing made a version"
    go()
    empty()
    assert view.check().ok
    come()
    full()


# Joins


def join_as_view(database: Any, problem: Problem) -> bool:
    """Whether there is such a view: one without rows of its own cannot be, nor one that the query refuses."""
    if problem.grouping == "pairs" and problem.kind.startswith("left"):
        return False  # a table, not an array
    asked = make(database, problem)
    sides = {side.name: side for side in (asked.left, asked.right)}
    tables = {name: side.read() for name, side in sides.items()}
    try:
        query = asked.query(database)
    except wr.Error:
        assert asked.leaves_out_several() or not asked.can_meet(), asked.text()
        return False
    blank = {name: _blank(side, tables[name]) for name, side in sides.items()}

    def put(contents: dict[str, Any]) -> None:
        with database.batch() as batch:
            for name, side in sides.items():
                if side.sparse and contents[name] is None:
                    batch.delete(name)
                elif side.sparse:
                    batch.insert(name, contents[name])
                else:
                    batch.write(name, contents[name])

    put(blank)
    view = database.create_view(new_name(), query)
    emptied = replace(
        asked,
        left_held=_emptied(asked.left, asked.left_held),
        right_held=_emptied(asked.right, asked.right_held),
    )
    values = {name: found if sides[name].sparse else _values(found) for name, found in tables.items()}
    step_through(
        view,
        lambda: put(values),
        lambda: put(blank),
        lambda: asked.check(read(view)),
        lambda: emptied.check(read(view)),
    )
    database.drop_view(view.name)
    return True


def _values(found: Any) -> dict[str, Any]:
    """A dense array's contents as they are written."""
    return {
        name: np.where(found[f"{name}__valid"].values, found[name].values.astype(object), None)
        if f"{name}__valid" in found
        else found[name].values
        for name in ("x", "c", "m", "s")
    }


BLANK = {"x": 0.0, "c": None, "m": 0, "s": None}


def _blank(side: Any, found: Any) -> Any:
    """A sparse array without cells; a dense one whose cells all hold the same."""
    if side.sparse:
        return None
    shape = found["m"].shape
    return {
        "x": np.zeros(shape),
        "c": np.full(shape, None, object),
        "m": np.zeros(shape, np.int32),
        "s": np.full(shape, None, object),
    }


def _emptied(side: Any, held: Held) -> Held:
    return Held(held.dimensions, {} if side.sparse else dict.fromkeys(held.cells, BLANK))


ONE_EACH = {
    "inner": Problem(measures="sums", seed=1),
    "left": Problem(kind="left", measures="counts", shape="L1", sides="sparse itself", seed=2),
    "anti": Problem(kind="anti", measures="none", grouping="pairs", condition="both", seed=3),
    "nearest": Problem(kind="nearest", measures="extremes", shape="larger", text=True, seed=4),
    "mutual": Problem(kind="mutual", measures="none", grouping="pairs", shape="larger", seed=5),
    "pairs": Problem(measures="none", grouping="pairs", shape="Linf", seed=6),
    "mapped": Problem(mapping="floor", measures="ranks", grouping="some", condition="both", seed=3),
    "dense": Problem(sides="dense sparse", measures="kinds", shape="wrap", seed=8),
    "total": Problem(grouping="none", measures="variances", seed=9),
    "twins": Problem(sides="twins", measures="pairs", shape="excluding self", seed=10),
    "few": Problem(min_count=2, measures="sums", shape="L1", seed=12),
    "few around": Problem(min_count=2, kind="left", measures="counts", sides="sparse itself", text=True, seed=13),
    "few in groups": Problem(min_count=2, grouping="some", measures="pairs", shape="L1", seed=14),
    "few of ranks": Problem(min_count=2, grouping="some", kind="left", measures="ranks", text=True, seed=15),
    "where": Problem(kind="left", place="where", condition="left", measures="one sum", seed=11),
}


@pytest.mark.parametrize("kind", ONE_EACH)
def test_a_join_as_a_view(local: Any, kind: str) -> None:
    assert ONE_EACH[kind].is_possible
    assert join_as_view(local, ONE_EACH[kind])


@ALL
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("part", range(8))
def test_every_pair_of_levels_as_a_view(local: Any, part: int) -> None:
    rows: list[Row] = covering_rows(test_joins_property.FACTORS, RULES)
    made = 0
    for number in range(part, len(rows), 8):
        made += join_as_view(local, Problem(**rows[number], seed=number))
    assert made > len(rows) // 16


# Neighbours


def neighbours_as_view(
    database: Any, seed: int, sides: str, kind: str, ndim: int, measures: str, min_count: int
) -> None:
    array, held, shape, _, by_hand = test_joins_property.around(database, seed, sides, kind, "small", ndim)
    found = array.read()
    asked = MEASURES[measures]
    query = array.neighbours(shape, min_count=min_count).agg(**{one.name: one.python("", "") for one in asked})
    blank = _blank(array, found)
    values = found if array.sparse else _values(found)

    def put(contents: Any) -> None:
        if array.sparse and contents is None:
            array.delete()
        else:
            (array.insert if array.sparse else array.write)(contents)

    put(blank)
    view = database.create_view(new_name(), query)
    wanted = {one.name: one.by_hand() for one in asked}
    step_through(
        view,
        lambda: put(values),
        lambda: put(blank),
        lambda: test_joins_property.compare(read(view), held, by_hand, wanted, min_count),
        lambda: test_joins_property.compare(read(view), _emptied(array, held), by_hand, wanted, min_count),
    )
    database.drop_view(view.name)


@pytest.mark.parametrize(
    ("sides", "kind", "measures"),
    [("sparse", "norm and range", "sums"), ("dense", "L2", "ranks"), ("twins", "any", "extremes")],
)
def test_neighbours_as_a_view(local: Any, sides: str, kind: str, measures: str) -> None:
    neighbours_as_view(local, 5, sides, kind, 2, measures, 0)


@ALL
@pytest.mark.timeout(4 * 3600)
@examples(300)
@given(
    seed=st.integers(0, 2**32 - 1),
    sides=st.sampled_from(["dense", "sparse", "twins"]),
    kind=st.sampled_from(test_joins_property.SHAPES),
    ndim=st.integers(1, 3),
    measures=st.sampled_from([name for name in MEASURES if name not in ("none", "expressions")]),
    min_count=st.sampled_from([0, 0, 3]),
)
def test_all_neighbours_as_views(
    local: Any, seed: int, sides: str, kind: str, ndim: int, measures: str, min_count: int
) -> None:
    neighbours_as_view(local, seed, sides, kind, ndim, measures, min_count)


# Windows and regrids of dense arrays


def window_as_view(database: Any, problem: dict[str, Any]) -> None:
    objects = test_windows.content(problem)
    array = test_windows.stored(database, problem, objects)
    query, aggregates = test_windows.query(array, problem)
    blank = np.full(objects.shape, None, object)
    if not (problem["type"].startswith("float") or "null" in problem["type"]):
        blank = np.full(objects.shape, 0, object)
        blank = blank.astype(bool).astype(object) if problem["type"] == "bool" else blank

    def put(values: Any) -> None:
        if problem["type"].startswith("float"):
            values = np.where(values == None, np.nan, values).astype(problem["type"])  # noqa: E711
        array.write({"a": values})

    put(blank)
    view = database.create_view(new_name(), query)
    step_through(
        view,
        lambda: put(objects),
        lambda: put(blank),
        lambda: test_windows.check(problem, objects, read(view), aggregates),
        lambda: test_windows.check(problem, blank, read(view), aggregates),
    )
    database.drop_view(view.name)


WINDOW: dict[str, Any] = {
    "shape": [5, 4], "chunks": [2, 3], "low": [-1, 2], "extents": [(-1, 1), (0, 2)], "wraps": [False, True],
    "steps": [1, 1], "boundary": "clip", "min_count": 0, "type": "float64", "content": "infinite", "seed": 3,
    "method": "auto",
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"type": "int64 null", "boundary": "drop", "min_count": 2, "wraps": [False, False]},
        {"type": "string null", "content": "ties"},
        {"extents": [(0, 1), (0, 2)], "steps": [2, 3], "wraps": [False, False], "type": "int64 null"},
    ],
    ids=["windows", "whole windows", "strings", "regrid"],
)
def test_a_window_as_a_view(local: Any, changed: dict[str, Any]) -> None:
    window_as_view(local, WINDOW | changed)


@ALL
@pytest.mark.timeout(4 * 3600)
@examples(300)
@given(problem=test_windows.problems(most_cells=80))
@example(problem=WINDOW)
def test_all_windows_as_views(local: Any, problem: dict[str, Any]) -> None:
    window_as_view(local, problem)


# Windows and regrids of sparse arrays


def sparse_window_as_view(database: Any, source: Any, window: Any, blocks: bool) -> None:
    """The cells and windows of the suite of sparse windows, stored and asked of a database."""
    name = f"A{uuid.uuid4().hex[:12]}"
    dimensions = ", ".join(f"{d.name}={d.lo}:{d.hi}:{d.chunk}" for d in source.schema.dimensions)
    array = database.create(name, f"<x: float64, i: int16 null, s: string null, b: uint64> [{dimensions}]", sparse=True)
    extents = {d.name: extent for d, extent in zip(source.schema.dimensions, window.extents, strict=True)}
    steps = {d.name: step for d, step in zip(source.schema.dimensions, window.step, strict=True)}
    aggregates = test_sparse_windows.AGGREGATES
    if blocks:
        around = array.regrid(steps, boundary=window.boundary, min_count=window.min_count)
    else:
        around = array.window(extents, step=steps, boundary=window.boundary, min_count=window.min_count)
    view = database.create_view(new_name(), around.agg(**aggregates))
    names = source.schema.dimension_names

    def full() -> None:
        found = {tuple(row[n] for n in names): row for row in read(view).to_pylist()}
        wanted = test_sparse_windows.expected(source, window, blocks)
        assert sorted(found) == sorted(wanted)
        for cell, (neighbours, whole) in wanted.items():
            for key, aggregate in aggregates.items():
                present, value = test_sparse_windows.aggregated(aggregate, neighbours)
                if present < window.min_count or (window.boundary == "drop" and not whole):
                    value = None
                got = found[cell][key]
                got = None if got != got else got
                test_sparse_windows.compare(aggregate, neighbours, got, value, f"{key} at {cell}")

    step_through(
        view,
        lambda: array.insert(source.read()) if source.cells else None,
        array.delete,
        full,
        lambda: _has_no_rows(view),
    )
    database.drop_view(view.name)


def _has_no_rows(view: Any) -> None:
    assert read(view).num_rows == 0


@pytest.mark.parametrize("blocks", [False, True], ids=["windows", "regrid"])
def test_a_sparse_window_as_a_view(local: Any, blocks: bool) -> None:
    values = {(i, j): {"x": i / 4, "i": j, "s": "ab"[i % 2], "b": 3} for i in range(4) for j in range(-1, 3) if i != j}
    schema = "<x: float64, i: int16 null, s: string null, b: uint64> [d0=0:3:2, d1=-1:2:3]"
    source = test_sparse_windows.held(schema, values)
    if blocks:
        window = test_sparse_windows.regrid(source.schema, {"d0": 2, "d1": 3})
    else:
        extents = {"d0": wr.between(-1, 1), "d1": wr.between(0, 1)}
        window = test_sparse_windows.Window.of(source.schema, extents)
    sparse_window_as_view(local, source, window, blocks)


@ALL
@pytest.mark.timeout(4 * 3600)
@examples(200)
@given(data=st.data())
def test_all_sparse_windows_as_views(local: Any, data: st.DataObject) -> None:
    source = data.draw(test_sparse_windows.sources())
    assume(source.cells)
    if data.draw(st.booleans()):
        sizes = {name: data.draw(st.integers(1, 6)) for name in source.schema.dimension_names}
        sparse_window_as_view(local, source, test_sparse_windows.regrid(source.schema, sizes), True)
        return
    window = data.draw(test_sparse_windows.windows(source.schema))
    sparse_window_as_view(local, source, window, test_sparse_windows.is_regrid(window))


# Totals


def totals_as_view(database: Any, problem: dict[str, Any]) -> None:
    name, cells = test_queries.stored(database, problem)
    array = database.array(name)
    found = array.read()
    condition, by = problem["condition"], [f"d{axis}" for axis in problem["by"]]
    listed = ", ".join(f"{aggregate} as x{k}" for k, aggregate in enumerate(problem["aggregates"]))
    where = "" if condition is None else f" where {condition}"
    grouping = f" group by {', '.join(by)}" if by else ""
    blank = 0 if problem["type"] == "uint8" else None
    empty = [] if array.sparse else [cell | {"a": blank} for cell in cells]

    def put(values: list[dict[str, Any]]) -> None:
        if array.sparse:
            if values:
                array.insert(found)
            else:
                array.delete()
            return
        objects = np.array([cell["a"] for cell in values], object).reshape(tuple(problem["shape"]))
        if problem["type"].startswith("float"):
            objects = np.where(objects == None, np.nan, objects).astype(problem["type"])  # noqa: E711
        array.write({"a": objects})

    def compare(values: list[dict[str, Any]]) -> None:
        kept = [cell for cell in values if condition is None or test_queries.CONDITIONS[condition](cell)]
        groups: dict[tuple[int, ...], list[dict[str, Any]]] = {} if by else {(): []}
        for cell in kept:
            groups.setdefault(tuple(cell[dimension] for dimension in by), []).append(cell)
        rows = test_queries.rows_of(read(view))
        assert sorted(map(test_queries.key, rows)) == sorted(groups)
        for row in rows:
            for k, aggregate in enumerate(problem["aggregates"]):
                wanted = test_queries.expected(aggregate, groups[test_queries.key(row)])
                assert test_queries.same(row[f"x{k}"], wanted), (aggregate, row)

    put(empty)
    view = database.create_view(new_name(), f"select {listed} from {name}{where}{grouping}")
    step_through(view, lambda: put(cells), lambda: put(empty), lambda: compare(cells), lambda: compare(empty))
    database.drop_view(view.name)


TOTALS: dict[str, Any] = {
    "low": [-2, 0], "shape": [5, 4], "chunks": [2, 3], "type": "float64", "content": "infinite", "condition": "a > 1",
    "seed": 7, "tiny": False,
}  # fmt: skip


@pytest.mark.parametrize("by", [[], [1], [1, 0]], ids=["total", "groups", "cells"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_totals_as_a_view(local: Any, sparse: bool, by: list[int]) -> None:
    asked = test_queries.JOINABLE + test_queries.WHOLE
    totals_as_view(local, TOTALS | {"sparse": sparse, "by": by, "aggregates": asked})


@ALL
@pytest.mark.timeout(4 * 3600)
@examples(200)
@given(problem=test_queries.problems())
def test_all_totals_as_views(local: Any, problem: dict[str, Any]) -> None:
    assume(test_queries.content(problem).size)
    totals_as_view(local, problem)


def test_an_empty_array_can_carry_a_view(local: Any) -> None:
    array = local.create("E", "<v: int64> [i=0:9:4]", sparse=True)
    view = local.create_view("V", array.neighbours(wr.L1(1)).agg(n=wr.count()))
    assert isinstance(view.read(), pa.Table)
    assert view.read().num_rows == 0
    assert view.check().ok
