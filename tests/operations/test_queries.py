"""Conditions, columns and totals, on dense and sparse arrays in any chunks, against plain Python over the cells."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import window_oracle as oracle
from windrow.kernels import tiny
from windrow.operations.query import sparse_run as computed_cells

Connect = Callable[..., Any]
Cell = dict[str, Any]

JOINABLE = ["count(*)", "count(a)", "sum(a)", "avg(a)", "var(a)", "std_pop(a)", "min(a)", "max(a)"]
WHOLE = ["median(a)", "percentile(a, 70)", "quantile_disc(a, 0.3)", "mode(a)", "count_distinct(a)"]
CONDITIONS: dict[str, Callable[[Cell], bool | None]] = {
    "d0 >= 0": lambda cell: cell["d0"] >= 0,
    "d0 between -1 and 1": lambda cell: -1 <= cell["d0"] <= 1,
    "a > 1": lambda cell: None if cell["a"] is None else cell["a"] > 1,
    "a is null": lambda cell: cell["a"] is None,
    "a > 1 and d0 < 2": lambda cell: cell["d0"] < 2 and cell["a"] is not None and cell["a"] > 1,
    "not (a > 1) or d0 = 0": lambda cell: cell["d0"] == 0 or (cell["a"] is not None and not cell["a"] > 1),
    "(d0 + 10) % 2 = 0": lambda cell: cell["d0"] % 2 == 0,
}


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    ndim = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 6)) for _ in range(ndim)]
    return {
        "low": [draw(st.integers(-3, 2)) for _ in range(ndim)],
        "shape": shape,
        "chunks": [draw(st.integers(1, extent)) for extent in shape],
        "type": draw(st.sampled_from(["float64", "float32", "int64 null", "uint8"])),
        "content": draw(st.sampled_from(["ties", "varied", "missing", "infinite"])),
        "sparse": draw(st.booleans()),
        "condition": draw(st.sampled_from([None, *CONDITIONS])),
        "by": draw(st.permutations(range(ndim)))[: draw(st.integers(0, ndim))],
        "aggregates": draw(
            st.lists(st.sampled_from(JOINABLE + draw(st.sampled_from([[], WHOLE]))), min_size=1, unique=True)
        ),
        "seed": draw(st.integers(0, 2**32)),
        "tiny": draw(st.booleans()),
    }


def content(problem: dict[str, Any]) -> Any:
    """Values, None where missing."""
    random = np.random.default_rng(problem["seed"])
    shape, kind = tuple(problem["shape"]), problem["type"].split()[0]
    values: Any = random.integers(0, 4, shape).astype(object)
    if kind.startswith("float"):
        varied = random.normal(size=shape) if problem["content"] == "varied" else 0.0
        values = (values.astype(float) + varied).astype(kind).astype(float).astype(object)
        if problem["content"] == "infinite":
            values[random.random(shape) < 0.1] = math.inf
            values[random.random(shape) < 0.1] = -math.inf
    if kind != "uint8":
        values[random.random(shape) < (1.0 if problem["content"] == "missing" else 0.2)] = None
    return values


def stored(database: Any, problem: dict[str, Any]) -> tuple[str, list[Cell]]:
    """An array, and its cells one by one."""
    values = content(problem)
    names = [f"d{axis}" for axis in range(values.ndim)]
    sides = zip(names, problem["low"], problem["shape"], problem["chunks"], strict=True)
    listed = ", ".join(f"{name}={lo}:{lo + n - 1}:{chunk}" for name, lo, n, chunk in sides)
    array = database.create(f"A{uuid.uuid4().hex}", f"<a: {problem['type']}> [{listed}]", sparse=problem["sparse"])
    there = np.ones(values.shape, bool)
    if problem["sparse"]:
        there = np.random.default_rng(problem["seed"] + 1).random(values.shape) < 0.6
    cells = []
    for place, value in np.ndenumerate(values):
        if there[place]:
            at = {name: lo + k for name, lo, k in zip(names, problem["low"], place, strict=True)}
            cells.append(at | {"a": value})
    if not problem["sparse"]:
        missing = np.where(values == None, np.nan, values)  # noqa: E711
        array.write({"a": missing.astype(problem["type"]) if problem["type"].startswith("float") else values})
    elif cells:
        columns = {name: pa.array([cell[name] for cell in cells], pa.int64()) for name in names}
        kind = {"float64": pa.float64(), "float32": pa.float32(), "uint8": pa.uint8()}.get(problem["type"], pa.int64())
        array.insert(pa.table(columns | {"a": pa.array([cell["a"] for cell in cells], kind)}))
    return array.name, cells


def rows_of(found: Any) -> list[Cell]:
    """A result's cells, whichever form it has."""
    if isinstance(found, pa.Table):
        return [{name: _plain(value) for name, value in row.items()} for row in found.to_pylist()]
    names = [name for name in found.data_vars if not name.endswith("__valid")]
    rows = []
    for place in np.ndindex(*(found.sizes[name] for name in found.dims)):
        at = dict(zip(found.dims, place, strict=True))
        one = found.isel(at)
        row = {str(name): int(one.coords[name].values) for name in found.dims}
        for name in names:
            valid = bool(one[f"{name}__valid"].values) if f"{name}__valid" in one else True
            row[name] = _plain(one[name].values.item()) if valid else None
        rows.append(row)
    return rows


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def key(row: Cell) -> tuple[int, ...]:
    return tuple(value for name, value in row.items() if name.startswith("d"))


def same(got: Any, wanted: Any) -> bool:
    wanted = _plain(wanted)
    if isinstance(got, float) and isinstance(wanted, float | int) and math.isfinite(wanted):
        return got == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    return bool(got == wanted)


def expected(aggregate: str, cells: list[Cell]) -> Any:
    name, _, inside = aggregate.rstrip(")").partition("(")
    parameter = float(inside.partition(",")[2]) if "," in inside else None
    if inside == "*":
        return len(cells)
    return oracle.aggregate(name, parameter, [cell["a"] for cell in cells if cell["a"] is not None], len(cells))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems())
def test_totals_equal_those_of_the_cells(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, problem: dict[str, Any]
) -> None:
    monkeypatch.setattr(computed_cells, "SMALLEST_TASK", 3)
    monkeypatch.setattr(tiny, "MOST_CELLS", 2**15 if problem["tiny"] else 0)
    database = connect(workers=2)
    name, cells = stored(database, problem)
    check_totals(database, name, cells, problem)


def check_totals(database: Any, name: str, cells: list[Cell], problem: dict[str, Any]) -> None:
    condition, by = problem["condition"], [f"d{axis}" for axis in problem["by"]]
    listed = ", ".join(f"{aggregate} as x{k}" for k, aggregate in enumerate(problem["aggregates"]))
    where = "" if condition is None else f" where {condition}"
    grouping = f" group by {', '.join(by)}" if by else ""
    got = rows_of(database.query(f"select {listed} from {name}{where}{grouping}").compute())
    kept = [cell for cell in cells if condition is None or CONDITIONS[condition](cell)]
    groups: dict[tuple[int, ...], list[Cell]] = {} if by else {(): []}
    for cell in kept:
        groups.setdefault(tuple(cell[dimension] for dimension in by), []).append(cell)
    assert sorted(map(key, got)) == sorted(groups)
    for row in got:
        for k, aggregate in enumerate(problem["aggregates"]):
            assert same(row[f"x{k}"], expected(aggregate, groups[key(row)])), (aggregate, row)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems())
def test_conditions_and_columns_equal_those_of_the_cells(connect: Connect, problem: dict[str, Any]) -> None:
    database = connect(workers=2)
    name, cells = stored(database, problem)
    where = "" if problem["condition"] is None else f" where {problem['condition']}"
    text = f"select a, a * 2 + d0 as c, case when a > 2 then d0 end as e from {name}{where}"
    got = {key(row): row for row in rows_of(database.query(text).compute())}
    kept = [cell for cell in cells if not where or CONDITIONS[problem["condition"]](cell)]
    assert sorted(got) == sorted(map(key, kept))
    for cell in kept:
        row, a = got[key(cell)], cell["a"]
        assert same(row["a"], a)
        assert same(row["c"], None if a is None else a * 2 + cell["d0"])
        assert row["e"] == (None if a is None or not a > 2 else cell["d0"])


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems(), low=st.integers(-3, 3), extent=st.integers(0, 4))
def test_steps_upon_steps_equal_steps_kept_between(
    connect: Connect, problem: dict[str, Any], low: int, extent: int
) -> None:
    """A window of columns where a condition holds, cut to a box: in one query, and each step stored before the next."""
    database = connect(workers=2)
    name, _ = stored(database, problem)
    where = "" if problem["condition"] is None else f" where {problem['condition']}"
    ranges = f"d0 between {low} and {low + extent}"
    columns, window = "select a + d0 as c, a from {}" + where, "select max(c) as m, count(*) as n from {} window (d0 3)"
    first = database.query(columns.format(name))
    whole = f"select m, n from ({window.format('(' + columns.format(name) + ')')}) where {ranges}"
    if not first.schema.sparse and not first.compute().sizes["d0"]:  # a dense array without cells cannot be kept
        assert rows_of(database.query(whole).compute()) == []
        return
    kept, windows = f"K{uuid.uuid4().hex}", f"W{uuid.uuid4().hex}"
    first.store(kept)
    database.query(window.format(kept)).store(windows)
    stepwise = rows_of(database.query(f"select m, n from {windows} where {ranges}").compute())
    at_once = rows_of(database.query(whole).compute())
    assert {key(row): row for row in at_once} == {key(row): row for row in stepwise}


@pytest.mark.spark
def test_totals_on_spark_equal_those_of_the_cells(connect: Connect, spark_session: Any) -> None:
    database = connect(engine="spark", spark=spark_session)
    for sparse in (False, True):
        problem = {
            "low": [-2, 0],
            "shape": [6, 5],
            "chunks": [2, 3],
            "type": "float64",
            "content": "varied",
            "sparse": sparse,
            "condition": "a > 1",
            "by": [1],
            "aggregates": ["count(*)", "sum(a)", "var(a)", "median(a)"],
            "seed": 7,
        }
        name, cells = stored(database, problem)
        check_totals(database, name, cells, problem)
        check_totals(database, name, cells, problem | {"by": [], "condition": None, "aggregates": JOINABLE})
