"""Groups by values of attributes, on dense and sparse arrays in any chunks and by every path, against plain Python."""

from __future__ import annotations

import datetime
import math
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from operations.test_label_groups import AGGREGATES, expected, part_of
from operations.test_queries import Cell, same
from windrow.operations.query import sparse_run
from windrow.plan.grouping import values as value_groups
from windrow.storage import part_writing

MOMENTS = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 7),
    datetime.datetime(2012, 2, 29),
    datetime.datetime(2300, 1, 1),
]
KINDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "int32 null": ([-5, 0, 3, 2**31 - 1, None], pa.int32()),
    "int8": ([-128, -1, 0, 127], pa.int8()),
    "uint16 null": ([0, 7, 65535, None], pa.uint16()),
    "int64 null": ([2**62, -(2**63), 2**63 - 1, 2**53 + 1, None], pa.int64()),
    "bool null": ([True, False, None], pa.bool_()),
    "string null": (["", "b", "a", "ä", "10", "9", "zürich", None], pa.string()),
    "datetime null": ([*MOMENTS, None], pa.timestamp("us")),
}
DAYS = np.datetime64("2011-11-20", "us") + np.arange(8) * np.timedelta64(17, "D")
CONDITIONS: dict[str, Any] = {
    "": lambda cell: True,
    "a > 0": lambda cell: cell["a"] is not None and cell["a"] > 0,
    "k is null": lambda cell: cell["k"] is None,
    "a > 100": lambda cell: False,
}


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shape = {"x": draw(st.integers(1, 4)), "time": draw(st.integers(1, 8))}
    keys = draw(
        st.sampled_from([["k"], ["k"], ["x", "k"], ["k", "s"], ["month(time)", "k"], ["k", "time"], ["s", "x"]])
    )
    return {
        "shape": shape,
        "chunks": {name: draw(st.integers(1, extent)) for name, extent in shape.items()},
        "kind": draw(st.sampled_from(sorted(KINDS))),
        "type": draw(st.sampled_from(["float64", "float32", "int32 null"])),
        "sparse": draw(st.booleans()),
        "there": draw(st.sampled_from([0.0, 0.7, 2.0])),
        "present": draw(st.sampled_from([0.0, 0.7, 2.0])),
        "keys": keys,
        "aggregates": draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True)),
        "where": draw(st.sampled_from(sorted(CONDITIONS))),
        "few": draw(st.sampled_from([0, 2**16])),
        "path": draw(st.sampled_from(["auto", "fused", "ranks", "blocks"])),
        "seed": draw(st.integers(0, 2**32)),
    }


def stored(database: Any, problem: dict[str, Any]) -> tuple[Any, list[Cell]]:
    """An array, and its cells one by one, in the order of their coordinates."""
    shape, random = problem["shape"], np.random.default_rng(problem["seed"])
    size = tuple(shape.values())
    listed = ", ".join(f"{name}=0:{extent - 1}:{problem['chunks'][name]}" for name, extent in shape.items())
    schema = f"<a: {problem['type']}, k: {problem['kind']}, s: string null> [{listed}]"
    labels = {"time": DAYS[: shape["time"]]}
    array = database.create(f"A{uuid.uuid4().hex}", schema, sparse=problem["sparse"], labels=labels)
    options, arrow = KINDS[problem["kind"]]
    if None in options and problem["present"] != 0.7:
        options = [None] if not problem["present"] else [one for one in options if one is not None]
    there = random.random(size) < (problem["there"] if problem["sparse"] else 2)
    cells = []
    for place in np.ndindex(size):
        number, value = int(random.integers(-2, 4)), options[int(random.integers(len(options)))]
        text = ["u", "v", None][int(random.integers(3))]
        cell = dict(zip(shape, place, strict=True)) | {"a": None if random.random() < 0.2 else number}
        cells.append(cell | {"k": value, "s": text})
    cells = [cell for cell, exists in zip(cells, there.reshape(-1), strict=True) if exists]
    number = {"float64": pa.float64(), "float32": pa.float32()}.get(problem["type"], pa.int32())
    columns = {name: pa.array([cell[name] for cell in cells], pa.int64()) for name in shape}
    for name, kind in (("a", number), ("k", arrow), ("s", pa.string())):
        columns[name] = pa.array([cell[name] for cell in cells], kind)
    if problem["sparse"]:
        array.insert(pa.table(columns))
    else:
        array.write({name: np.array([cell[name] for cell in cells], object).reshape(size) for name in "aks"})
    return array, cells


def groups_of(cells: list[Cell], problem: dict[str, Any]) -> dict[tuple[Any, ...], list[Cell]]:
    """Cells by what they agree in; those without a value are in no group."""

    def label(key: str, cell: Cell) -> Any:
        if key == "month(time)":
            return part_of("month", DAYS[cell["time"]])
        return DAYS[cell["time"]].item() if key == "time" else cell[key]

    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        place = tuple(label(key, cell) for key in problem["keys"])
        if CONDITIONS[problem["where"]](cell) and None not in place:
            found.setdefault(place, []).append(cell)
    return found


def rows_of(query: Any) -> dict[tuple[Any, ...], dict[str, Any]]:
    """A result's rows by what their coordinates are called."""
    bound = query.bind()
    found = bound.compute() if query.schema.sparse else bound.as_cells().read()
    labels = {name: known.values.tolist() for name, known in bound.labels.items()}
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in found.to_pylist():
        places = {name: row.pop(name) for name in bound.schema.dimension_names}
        where = tuple(
            labels[name][at - bound.schema.dimension(name).lo] if name in labels else at for name, at in places.items()
        )
        assert where not in rows
        rows[where] = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
    return rows


def asked(array: Any, problem: dict[str, Any], listed: str) -> str:
    return f"select {listed} from {array.name}" + (f" where {problem['where']}" if problem["where"] else "")


def check(database: Any, problem: dict[str, Any]) -> None:
    array, cells = stored(database, problem)
    listed = ", ".join(f"{aggregate} as r{number}" for number, aggregate in enumerate(problem["aggregates"]))
    query = database.query(f"{asked(array, problem, listed)} group by {', '.join(problem['keys'])}")
    wanted = groups_of(cells, problem)
    try:
        database.engine.path = problem["path"]
        got = rows_of(query)
    except wr.DataError as error:
        if "strategy" not in str(error):
            raise
        database.engine.path = "auto"  # the path that was asked for cannot
        got = rows_of(query)
    finally:
        database.engine.path = "auto"
    assert set(wanted) <= set(got)
    assert query.schema.sparse is False or list(got) == sorted(wanted)
    for axis, key in enumerate(problem["keys"]):
        if key in "ks":  # a value that only cells have which lack another key is a label without a group
            values = {cell[key] for cell in cells if CONDITIONS[problem["where"]](cell)} - {None}
            assert {place[axis] for place in wanted} <= {place[axis] for place in got} <= values
    for place, row in got.items():
        for number, aggregate in enumerate(problem["aggregates"]):
            assert same(row[f"r{number}"], expected(aggregate, wanted.get(place, []))), (aggregate, place, row)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems())
def test_groups_equal_those_of_the_cells(local: Any, problem: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_run, "SMALLEST_TASK", 3)
        patch.setattr(part_writing, "GROUP_CELLS", 4)
        patch.setattr(value_groups, "FEW", problem["few"])
        check(local, problem)


def check_over(database: Any, problem: dict[str, Any]) -> None:
    array, cells = stored(database, problem)
    keys = ", ".join(problem["keys"])
    listed = ", ".join(f"{one} over ({keys}) as r{number}" for number, one in enumerate(problem["aggregates"]))
    query = database.query(asked(array, problem, f"a, {listed}, count(*) over () as n"))
    bound = query.bind()
    found = bound.compute() if query.schema.sparse else bound.as_cells().read()
    got = {tuple(row[name] for name in problem["shape"]): row for row in found.to_pylist()}
    kept = [cell for cell in cells if CONDITIONS[problem["where"]](cell)]
    assert set(got) == {tuple(cell[name] for name in problem["shape"]) for cell in kept}
    mine = {id(cell): group for group in groups_of(cells, problem).values() for cell in group}
    for cell in kept:
        row = got[tuple(cell[name] for name in problem["shape"])]
        row = {name: None if value != value else value for name, value in row.items()}
        assert same(row["a"], cell["a"])
        assert row["n"] == len(kept)
        for number, aggregate in enumerate(problem["aggregates"]):
            wanted = expected(aggregate, mine[id(cell)]) if id(cell) in mine else None
            assert same(row[f"r{number}"], wanted), (aggregate, cell, row)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems())
def test_cells_get_the_results_of_their_groups(local: Any, problem: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_run, "SMALLEST_TASK", 3)
        check_over(local, problem)


@pytest.mark.spark
def test_groups_on_spark_equal_those_of_the_cells(connect: Any, spark_session: Any) -> None:
    database = connect(engine="spark", spark=spark_session)
    for sparse in (False, True):
        problem = {
            "shape": {"x": 4, "time": 8},
            "chunks": {"x": 2, "time": 3},
            "kind": "string null",
            "type": "float64",
            "sparse": sparse,
            "there": 0.7,
            "present": 0.7,
            "keys": ["month(time)", "k"],
            "aggregates": ["avg(a)", "median(a)", "last(a)"],
            "where": "",
            "path": "auto",
            "seed": 5,
        }
        check(database, problem)
        check(database, problem | {"kind": "int32 null", "keys": ["k"], "aggregates": ["count(*)"], "path": "fused"})
        check_over(database, problem | {"kind": "int8", "keys": ["k", "x"]})


def shop(database: Any) -> Any:
    array = database.create(
        "S", "<x: float64, k: int32 null, s: string null, u: uint64, t: datetime> [i=0:9:5]", sparse=True
    )
    rows = {
        "i": pa.array(range(6), pa.int64()),
        "x": [1.0, 2.0, 3.0, 4.0, 5.0, None],
        "k": pa.array([-2, 7, None, 7, -2, 7], pa.int32()),
        "s": ["b", "a", "b", None, "a", "a"],
        "u": pa.array([1, 2, 2**64 - 1, 1, 2, 1], pa.uint64()),
        "t": pa.array([MOMENTS[n % 2] for n in range(6)], pa.timestamp("us")),
    }
    array.insert(pa.table(rows))
    return array


def test_text_and_python_say_the_same(local: Any) -> None:
    array = shop(local)
    query = array.groupby("k").agg(n=wr.count(), m=wr.avg("x"))
    assert query.plan == local.query("select count(*) as n, avg(x) as m from S group by k").plan
    assert query.compute().to_pylist() == [{"k": -2, "n": 2, "m": 3.0}, {"k": 7, "n": 3, "m": 3.0}]
    assert local.query("aggr S avg(x) by k").compute().to_pylist() == [{"k": -2, "avg_x": 3.0}, {"k": 7, "avg_x": 3.0}]
    rows = local.query("select x - avg(x) over (k) as d from S").compute()["d"].to_pylist()
    assert rows == [-2.0, -1.0, None, 1.0, 2.0, None]
    assert "cells without k left out" in str(query.explain())
    assert "left out" not in str(array.groupby("t").agg(n=wr.count()).explain())


def test_groups_go_on_as_arrays(local: Any) -> None:
    shop(local)
    query = local.query("select k, count(*) as n, max(k) as largest from S group by k having k > 0 order by n desc")
    assert query.compute().to_pylist() == [{"k": 7, "n": 3, "largest": 7}]
    local.query("select sum(x * 2) as m from S where i < 5 group by s into T")
    kept = local.array("T")
    assert kept.labels["s"].values.tolist() == ["a", "b"]
    assert local.query("select m from T where s = 'b'").compute()["m"].to_pylist() == [8.0]
    found = local.query("select max(n) as m from (select count(*) as n from S group by s)").compute()
    assert found["m"].to_pylist() == [3]
    named = local.query("select label(s) as name, n from (select count(*) as n from S group by s)").compute()
    assert named["name"].to_pylist() == ["a", "b"]
    rounded = "select count(*) as n from (select cast(floor(x / 2) as int64) as half from S) group by half"
    assert local.query(rounded).compute().to_pylist() == [
        {"half": 0, "n": 1},
        {"half": 1, "n": 2},
        {"half": 2, "n": 2},
    ]
    assert local.query("select count(*) as n from changes(S, 0, 1) group by k").compute()["n"].to_pylist() == [2, 3]


def test_a_query_sees_values_that_came_later(local: Any) -> None:
    array = shop(local)
    query = array.groupby("s").agg(n=wr.count())
    assert rows_of(query) == {("a",): {"n": 3}, ("b",): {"n": 2}}
    array.insert(
        pa.table(
            {"i": [8], "x": [1.0], "k": pa.array([1], pa.int32()), "s": ["aa"]}
            | {"u": pa.array([1], pa.uint64()), "t": pa.array(MOMENTS[:1], pa.timestamp("us"))}
        )
    )
    assert rows_of(query) == {("a",): {"n": 3}, ("aa",): {"n": 1}, ("b",): {"n": 2}}


def test_paths_are_told(local: Any) -> None:
    shop(local)
    for path in ("fused", "blocks"):
        local.engine.path = path
        assert local.query("select avg(x) as m from S group by k, s").explain().path == path
    local.engine.path = "fused"
    for text, why in {
        "select avg(x) as m from (select x, k + 1 as k from S) group by k": "cells are grouped by k, which is computed",
        "select first(x) as m from S group by k": "is not made of counts",
    }.items():
        with pytest.raises(wr.DataError, match=why):
            local.query(text).compute()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("select count(*) from S group by x", "cells cannot be grouped by floats.*Round it first"),
        ("select count(*) from S group by u", "groups are called by numbers below 2\\^63.*cast\\(u as string\\)"),
        ("select count(*) from S group by q", "dimensions and attributes, and this is neither"),
        ("select count(*) from S group by month(t)", "this is an attribute.*select month\\(t\\) as k"),
        ("select max(k) as k from S group by k", "a name is used twice"),
        ("create array view V as select count(*) as n from S group by k", "cannot be grouped by values of attributes"),
        ("select avg(x) over (x) as m from S", "cells cannot be grouped by floats"),
    ],
)
def test_what_cannot_be_grouped_by_is_told(local: Any, text: str, what: str) -> None:
    shop(local)
    with pytest.raises(wr.Error, match=what):
        local.query(text)
    assert [one.name for one in local.arrays()] == ["S"]


def test_an_anomaly_is_taken_along_dimensions(local: Any) -> None:
    with pytest.raises(wr.DataError, match=r"x - avg\(x\) over \(k\)"):
        shop(local).anomaly("x", by="k")


def test_the_accessor_takes_dimensions_alone(local: Any) -> None:
    local.create("D", "<n: int32> [i=0:9]").write({"n": np.arange(10)})
    data = local.array("D").to_xarray()
    for name in ("n", "x"):
        with pytest.raises(wr.Error, match=r"by dimensions and attributes, and this is neither.*Known: i$"):
            data.windrow.groupby(name).max("n")


def test_a_batch_sees_its_own_values(local: Any) -> None:
    local.create("B", "<s: string null> [i=0:9]", sparse=True).insert(pa.table({"i": [0, 1], "s": ["b", None]}))
    with local.batch() as batch:
        batch.insert("B", pa.table({"i": [2, 3], "s": ["a", "b"]}))
        assert rows_of(batch.query("select count(*) as n from B group by s")) == {("a",): {"n": 1}, ("b",): {"n": 2}}
        assert rows_of(local.query("select count(*) as n from B group by s")) == {("b",): {"n": 1}}
