"""Groups by parts of times, on dense and sparse arrays in any chunks, against plain Python over the cells.

The oracle takes parts from pandas' calendar, one label at a time; windrow takes them from Arrow's.
"""

from __future__ import annotations

import math
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import window_oracle as oracle
import windrow as wr
from operations.test_queries import JOINABLE, WHOLE, Cell, same
from windrow.kernels import tiny
from windrow.operations.query import sparse_run
from windrow.plan.grouping.label_parts import PARTS

SEASONS = {12: "DJF", 1: "DJF", 2: "DJF", 3: "MAM", 4: "MAM", 5: "MAM"} | {6: "JJA", 7: "JJA", 8: "JJA"}
AGGREGATES = [*JOINABLE, *WHOLE, "first(a)", "last(a)"]


def part_of(name: str, moment: Any) -> Any:
    """A part of a moment, as pandas has it."""
    found = pd.Timestamp(moment)
    special = {
        "season": lambda: SEASONS.get(found.month, "SON"),
        "week": lambda: found.isocalendar().week,
        "dayofweek": lambda: found.isoweekday(),
        "weekday": lambda: found.weekday(),
    }
    return special[name]() if name in special else getattr(found, name)


@st.composite
def times(draw: st.DrawFn) -> Any:
    """Labels in order: days, hours, months, one step alone, or any moments over some years."""
    kind = draw(st.sampled_from(["days", "hours", "months", "one", "any", "backwards"]))
    start = np.datetime64(draw(st.sampled_from(["2011-11-20", "2012-02-28", "1969-12-30", "2000-01-01"])), "us")
    count = 1 if kind == "one" else draw(st.integers(1, 14))
    if kind == "hours":
        return start + np.arange(count) * np.timedelta64(5, "h")
    if kind == "months":
        return (start.astype("M8[M]") + np.arange(count)).astype("M8[us]")
    if kind in ("any", "backwards"):
        hours = draw(st.lists(st.integers(0, 30_000), min_size=count, max_size=count, unique=True))
        labels = start + np.array(sorted(hours), "m8[h]")
        return labels[::-1] if kind == "backwards" else labels
    return start + np.arange(count) * np.timedelta64(9, "D")


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    labels = draw(times())
    shape = {"x": draw(st.integers(1, 3)), "time": len(labels), "y": draw(st.integers(1, 3))}
    names = draw(st.permutations(sorted(shape)))[: draw(st.integers(1, 3))]
    names = names if "time" in names else [*names, "time"]
    keys = draw(
        st.lists(st.sampled_from([f"{part}(time)" for part in PARTS] + names), min_size=1, max_size=3, unique=True)
    )
    return {
        "labels": labels,
        "shape": {name: shape[name] for name in names},
        "chunks": {name: draw(st.integers(1, shape[name])) for name in names},
        "type": draw(st.sampled_from(["float64", "float32", "int32 null"])),
        "sparse": draw(st.booleans()),
        "keys": keys,
        "aggregates": draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True)),
        "where": draw(st.sampled_from(["", " where a > 0"])),
        "seed": draw(st.integers(0, 2**32)),
        "tiny": draw(st.booleans()),
    }


def stored(database: Any, problem: dict[str, Any]) -> tuple[Any, list[Cell]]:
    """An array, and its cells one by one, in the order of their coordinates."""
    shape, random = problem["shape"], np.random.default_rng(problem["seed"])
    listed = ", ".join(f"{name}=0:{n - 1}:{problem['chunks'][name]}" for name, n in shape.items())
    array = database.create(
        f"A{uuid.uuid4().hex}",
        f"<a: {problem['type']}> [{listed}]",
        sparse=problem["sparse"],
        labels={"time": problem["labels"]},
    )
    values = random.integers(-2, 4, tuple(shape.values())).astype(object)
    values[random.random(values.shape) < 0.2] = None
    there = random.random(values.shape) < (0.6 if problem["sparse"] else 2)
    cells = [
        dict(zip(shape, place, strict=True)) | {"a": value} for place, value in np.ndenumerate(values) if there[place]
    ]
    if not problem["sparse"]:
        floats = problem["type"].startswith("float")
        array.write({"a": np.where(values == None, np.nan, values).astype(float) if floats else values})  # noqa: E711
    elif cells:
        kind = {"float64": pa.float64(), "float32": pa.float32()}.get(problem["type"], pa.int32())
        columns = {name: pa.array([cell[name] for cell in cells], pa.int64()) for name in shape}
        array.insert(pa.table(columns | {"a": pa.array([cell["a"] for cell in cells], kind)}))
    return array, cells


def expected(aggregate: str, cells: list[Cell]) -> Any:
    name, _, inside = aggregate.rstrip(")").partition("(")
    values = [cell["a"] for cell in cells if cell["a"] is not None]
    if name in ("first", "last"):
        return (values[0] if name == "first" else values[-1]) if values else None
    parameter = float(inside.partition(",")[2]) if "," in inside else None
    return len(cells) if inside == "*" else oracle.aggregate(name, parameter, values, len(cells))


def groups_of(cells: list[Cell], problem: dict[str, Any]) -> dict[tuple[Any, ...], list[Cell]]:
    """Cells by the labels of their groups: a part, a time or the number of a cell."""

    def label(key: str, cell: Cell) -> Any:
        if key.endswith("(time)"):
            return part_of(key.partition("(")[0], problem["labels"][cell["time"]])
        return problem["labels"][cell["time"]].item() if key == "time" else cell[key]

    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        if not problem["where"] or (cell["a"] is not None and cell["a"] > 0):
            found.setdefault(tuple(label(key, cell) for key in problem["keys"]), []).append(cell)
    return found


def rows_of(query: Any) -> dict[tuple[Any, ...], dict[str, Any]]:
    """A result's rows by the labels of their coordinates, whichever form it has."""
    bound, found = query.bind(), query.compute()
    labels = {name: known.values.tolist() for name, known in bound.labels.items()}
    names = bound.schema.dimension_names
    if isinstance(found, xr.Dataset):
        found = bound.as_cells().read()
    rows = {}
    for row in found.to_pylist():
        place = [row.pop(name) for name in names]
        where = [
            n if d not in labels else labels[d][n - bound.schema.dimension(d).lo]
            for d, n in zip(names, place, strict=True)
        ]
        rows[tuple(where)] = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
    return rows


def check(database: Any, problem: dict[str, Any]) -> None:
    array, cells = stored(database, problem)
    listed = ", ".join(f"{aggregate} as r{k}" for k, aggregate in enumerate(problem["aggregates"]))
    query = database.query(f"select {listed} from {array.name}{problem['where']} group by {', '.join(problem['keys'])}")
    got, wanted = rows_of(query), groups_of(cells, problem)
    # A dense result also has cells for combinations of parts that do not occur together: of no cells.
    assert set(wanted) <= set(got)
    assert query.schema.sparse is False or set(wanted) == set(got)
    for axis in range(len(problem["keys"])):
        assert {place[axis] for place in got} == {place[axis] for place in wanted}
    for place, row in got.items():
        for k, aggregate in enumerate(problem["aggregates"]):
            assert same(row[f"r{k}"], expected(aggregate, wanted.get(place, []))), (aggregate, place, row)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems())
def test_groups_equal_those_of_the_cells(local: Any, problem: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_run, "SMALLEST_TASK", 3)
        patch.setattr(tiny, "MOST_CELLS", 2**15 if problem["tiny"] else 0)
        check(local, problem)


@pytest.mark.spark
def test_groups_on_spark_equal_those_of_the_cells(connect: Any, spark_session: Any) -> None:
    database = connect(engine="spark", spark=spark_session)
    days = np.datetime64("2011-11-20", "us") + np.arange(40) * np.timedelta64(11, "D")
    for sparse in (False, True):
        problem = {
            "labels": days,
            "shape": {"x": 3, "time": 40},
            "chunks": {"x": 2, "time": 7},
            "type": "float64",
            "sparse": sparse,
            "keys": ["season(time)", "x"],
            "aggregates": ["avg(a)", "median(a)", "last(a)"],
            "where": "",
            "seed": 5,
        }
        check(database, problem)
        check(database, problem | {"keys": ["year(time)", "month(time)"], "aggregates": ["count(*)", "max(a)"]})


def weather(database: Any) -> Any:
    days = np.datetime64("2011-11-20", "ns") + np.arange(500) * np.timedelta64(24, "h")
    array = database.create(
        "T",
        "<t: float64, n: int32> [lat=0:2:2, time=1:500:70, lon=0:4:3]",
        labels={"time": days, "lat": [60.0, 30.0, 0.0]},
    )
    random = np.random.default_rng(3)
    values = random.normal(size=(3, 500, 5))
    values[random.random(values.shape) < 0.1] = np.nan
    array.write({"t": values, "n": random.integers(0, 9, values.shape)})
    return array


def test_python_text_and_the_accessor_agree_with_xarray(local: Any) -> None:
    array = weather(local)
    data = array.to_xarray().load()
    for part in ("month", "year", "season", "dayofyear", "weekday", "quarter", "day"):
        theirs = data["t"].groupby(f"time.{part}")
        mean, middle = theirs.mean(["time", "lon"]), theirs.median(["time", "lon"])
        query = array.groupby("lat", f"time.{part}").agg(m=wr.avg("t"), d=wr.median("t"))
        assert query.plan == local.query(f"select avg(t) as m, median(t) as d from T group by lat, {part}(time)").plan
        ours, mine = query.compute(), data.windrow.groupby("lat", f"{part}(time)").agg(m=wr.avg("t"), d=wr.median("t"))
        for found in (ours, mine):
            assert list(found["m"].dims) == ["lat", part]
            xr.testing.assert_allclose(found["m"].sortby(part), mean.transpose("lat", part).rename("m"))
            xr.testing.assert_allclose(found["d"].sortby(part), middle.transpose("lat", part).rename("d"))
    assert ours["lat"].equals(data["lat"])


def test_seasons_come_in_the_order_of_the_year(local: Any) -> None:
    array = weather(local)
    found = array.groupby("time.season").agg(n=wr.count()).compute()
    assert found["season"].values.tolist() == ["DJF", "MAM", "JJA", "SON"]
    summer = array.sel(time=("2012-05-01", "2012-08-31")).groupby("time.season").agg(n=wr.count()).compute()
    assert summer["season"].values.tolist() == ["MAM", "JJA"]


def test_the_accessor_gives_single_aggregates_and_keeps_coordinates(local: Any) -> None:
    data = weather(local).to_xarray().load().assign_coords(place=("lat", ["a", "b", "c"]))
    found = data.windrow.groupby("time.year", "lat").avg("t")
    assert found.dims == ("year", "lat")
    assert found["place"].values.tolist() == ["a", "b", "c"]
    xr.testing.assert_allclose(
        data["t"].windrow.groupby("lat").max(),
        data["t"].max(["time", "lon"]).drop_vars("place", errors="ignore").assign_coords(place=data["place"]),
    )


def test_gridded_times_have_parts(local: Any) -> None:
    array = local.create(
        "P", "<v: float64> [time=0:*:50, k=0:9]", sparse=True, grid={"time": ("2011-01-01", "2014-01-01", "1 day")}
    )
    moments = np.array(["2011-03-05T04:00", "2011-03-09", "2012-03-01", "2013-12-31T23:59"], "M8[us]")
    array.insert(pa.table({"time": pa.array(moments), "k": [1, 2, 3, 4], "v": [1.0, 2.0, 4.0, 8.0]}))
    found = array.groupby("time.month").agg(s=wr.sum("v")).compute().to_pylist()
    assert found == [{"month": 3, "s": 7.0}, {"month": 12, "s": 8.0}]
    found = local.query("select sum(v) as s from P group by year(time)").compute().to_pylist()
    assert found == [{"year": 2011, "s": 3.0}, {"year": 2012, "s": 4.0}, {"year": 2013, "s": 8.0}]


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ((), "nothing to group by"),
        ((3,), "what is grouped by is a text"),
        (("",), "what is grouped by is a text"),
        (("time.moth",), "by parts of times"),
        (("time.dayofweek",), "from where days of the week are counted"),
        (("lat.month",), "dimension lat has no times to take the month of"),
        (("lon.year",), "dimension lon has no times to take the year of"),
        (("q",), "by dimensions and attributes, and this is neither"),
        (("tim.month",), "by dimensions and attributes, and this is neither"),
        (("lat", "lat"), "grouped by twice"),
    ],
)
def test_what_cannot_be_grouped_by_is_told(local: Any, keys: Any, what: str) -> None:
    array = weather(local)
    with pytest.raises(wr.Error, match=what):
        array.groupby(*keys).agg(m=wr.avg("t"))
    if keys != ("lat", "lat"):
        with pytest.raises(wr.Error, match=what):
            array.to_xarray().windrow.groupby(*keys).avg("t")


# Aggregates over the groups of cells, given back to each cell


def check_over(database: Any, problem: dict[str, Any]) -> None:
    array, cells = stored(database, problem)
    keys = ", ".join(problem["keys"])
    listed = ", ".join(f"{aggregate} over ({keys}) as r{k}" for k, aggregate in enumerate(problem["aggregates"]))
    query = database.query(f"select a, {listed}, count(*) over () as n from {array.name}{problem['where']}")
    assert query.schema.dimension_names == array.schema.dimension_names
    groups = groups_of(cells, problem)
    wanted = {
        tuple(cell[name] for name in problem["shape"]): (cell, group) for group in groups.values() for cell in group
    }
    bound = query.bind()
    found = bound.compute() if query.schema.sparse else bound.as_cells().read()
    got = {tuple(row[name] for name in problem["shape"]): row for row in found.to_pylist()}
    assert set(got) == set(wanted)
    for place, (cell, group) in wanted.items():
        row = {name: None if value != value else value for name, value in got[place].items()}
        assert same(row["a"], cell["a"])
        assert row["n"] == len(wanted)
        for k, aggregate in enumerate(problem["aggregates"]):
            assert same(row[f"r{k}"], expected(aggregate, group)), (aggregate, place)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems())
def test_cells_get_the_results_of_their_groups(local: Any, problem: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_run, "SMALLEST_TASK", 3)
        check_over(local, problem)


@pytest.mark.spark
def test_cells_get_the_results_of_their_groups_on_spark(connect: Any, spark_session: Any) -> None:
    database = connect(engine="spark", spark=spark_session)
    days = np.datetime64("2011-11-20", "us") + np.arange(30) * np.timedelta64(11, "D")
    for sparse in (False, True):
        problem = {
            "labels": days,
            "shape": {"x": 3, "time": 30},
            "chunks": {"x": 2, "time": 7},
            "type": "float64",
            "sparse": sparse,
            "keys": ["x", "season(time)"],
            "aggregates": ["avg(a)", "median(a)"],
            "where": "",
            "seed": 5,
        }
        check_over(database, problem)


def test_anomalies_are_those_of_xarray(local: Any) -> None:
    array = weather(local)
    groups = array.to_xarray().load()["t"].groupby("time.month")
    away = groups - groups.mean("time")
    query = array.anomaly("t", by="time.month")
    assert str(query.plan) == "select t - avg(t) over (lat, lon, month(time)) as anomaly from T"
    found = query.compute()["anomaly"]
    assert found.dims == ("lat", "time", "lon")
    np.testing.assert_allclose(found, away.transpose(*found.dims).values, atol=1e-12)
    scaled = array.anomaly("t", by=["time.month"], standardize=True).compute()["anomaly"]
    wanted = away.groupby("time.month") / groups.std("time", ddof=1)
    np.testing.assert_allclose(scaled, wanted.transpose(*found.dims).values, atol=1e-12)
    whole = array.anomaly("t", by=("lat", "lon", "time")).compute()["anomaly"]  # each cell is a group of its own
    assert np.nanmax(np.abs(whole)) == 0
    piece = array.sel(lat=30.0, time="2012-01").anomaly("n * 2", by="time.year")
    values = piece.compute()["anomaly"].values
    assert values.shape == (1, 31, 5)
    np.testing.assert_allclose(values.mean(axis=1), 0, atol=1e-12)
    query.store("Anomalies")
    assert np.array_equal(local.array("Anomalies").read()["anomaly"], found, equal_nan=True)


def test_a_group_that_does_not_vary_has_no_standard_anomaly(local: Any) -> None:
    days = np.datetime64("2012-01-30") + np.arange(4)
    array = local.create("C", "<t: float32> [time=0:3]", labels={"time": days})
    array.write({"t": np.array([5, 5, 1, 3], "f4")})
    found = array.anomaly("t", by="time.month", standardize=True).compute()["anomaly"].values
    assert np.isnan(found[:2]).all()
    np.testing.assert_allclose(found[2:], [-(0.5**0.5), 0.5**0.5])


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (("t", ()), "nothing to group by"),
        (("t", "lat.month"), "dimension lat has no times"),
        (("q", "time.month"), "no such column"),
        (("t >", "time.month"), "the expression ends"),
    ],
)
def test_what_has_no_anomaly_is_told(local: Any, given: Any, what: str) -> None:
    with pytest.raises(wr.Error, match=what):
        weather(local).anomaly(*given)


def test_the_field_of_an_anomaly_is_never_held_as_a_whole(connect: Any) -> None:
    """With memory for the groups and a few blocks, but not for the field."""
    database = connect(workers=1, memory=24 * 2**20)
    days = np.datetime64("2000-01-01") + np.arange(1000)
    array = database.create("F", "<t: float64> [time=0:999:50, x=0:3999:500]", labels={"time": days})
    for start in range(0, 1000, 50):
        array.write({"t": np.full((50, 4000), float(start))}, at=(start, 0))
    query = array.anomaly("t", by="time.month")
    with pytest.raises(wr.Error, match="the result needs about"):
        query.compute()
    query.store("G")
    assert database.query("select count(anomaly) as n from G").compute()["n"] == 4_000_000


@pytest.mark.parametrize("sparse", [False, True])
def test_views_may_have_the_groups(local: Any, sparse: bool) -> None:
    """What a view holds is looked up like what was computed for the query."""
    problem = {
        "labels": np.datetime64("2012-01-30", "us") + np.arange(9) * np.timedelta64(1, "D"),
        "shape": {"x": 3, "time": 9},
        "chunks": {"x": 2, "time": 4},
        "type": "float64",
        "sparse": sparse,
        "seed": 1,
    }
    array, _ = stored(local, problem)
    local.query(f"create array view V as select avg(a) as m, count(a) as c from {array.name} group by x")
    for text in (
        f"select a - avg(a) over (x) as d from {array.name}",
        f"select avg(a) as m from {array.name} group by month(time)",
        f"select avg(a) as m from {array.name} group by x order by m desc",
    ):
        from_view, direct = (local.query(text).using_views(use) for use in ("always", "off"))
        assert rows_of(from_view).keys() == rows_of(direct).keys()
        for place, row in rows_of(direct).items():
            assert all(same(rows_of(from_view)[place][name], value) for name, value in row.items())
    told = str(local.query(f"select a - avg(a) over (x) as d from {array.name}").using_views("always").explain())
    assert "V: used" in told


def test_bad_groups_change_nothing(local: Any) -> None:
    array = weather(local)
    before = array.version
    for text in (
        "select avg(t) as m from T group by month(lat) into B",
        "insert into T select t - avg(t) over (q) as t, n from T",
        "update T set t = avg(t) over (lat)",
        "create array B as select t from T order by t",
        "select n / (n - max(n) over ()) as z from T into B",
    ):
        with pytest.raises(wr.Error):
            local.query(text)
    assert array.version == before
    assert [one.name for one in local.arrays()] == ["T"]


@pytest.mark.parametrize("sparse", [False, True])
def test_arrays_without_cells_have_no_groups(local: Any, sparse: bool) -> None:
    local.create("E", "<v: float64, k: int32 null> [time=1:*:10, x=0:5]", sparse=sparse)
    local.create(
        "L",
        "<v: float64> [x=0:*, time=0:2]",
        sparse=sparse,
        labels={"time": np.array(["2011-01-01", "2012-02-01", "2012-02-02"], "M8[us]")},
    )
    for text in (
        "select v, k, v - avg(v) over (x) as d, count(*) over () as n, max(k) over () as m from E",
        "select v from E order by v limit 3",
        "select v from E limit 3",
        "select avg(v) as m, count(*) as n from L group by month(time)",
        "select v - avg(v) over (month(time)) as d from L",
        "select v - avg(v) over (x, year(time)) as d from L where v > 0 order by d limit 2",
    ):
        assert rows_of(local.query(text)) == {}, text
