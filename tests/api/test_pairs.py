"""Aggregates of two arguments, of order and of shape: everywhere an aggregate can stand, against brute force."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import window_oracle as oracle
import windrow as wr

Connect = Callable[..., Any]

PAIRED = {
    "wavg": wr.avg("a", weight="b"),
    "covar": wr.covar("a", "b"),
    "covar_pop": wr.covar_pop("a", "b"),
    "corr": wr.corr("a", "b"),
}
SINGLE = {
    "range": wr.range("a"),
    "first": wr.first("a"),
    "last": wr.last("a"),
    "skew": wr.skew("a"),
    "kurtosis": wr.kurtosis("a"),
}
METHODS = ["auto", "incremental", "naive"]


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shape = (draw(st.integers(1, 7)), draw(st.integers(1, 9)))
    return {
        "shape": shape,
        "chunks": [draw(st.integers(1, extent)) for extent in shape],
        "reach": [(draw(st.integers(-3, 0)), draw(st.integers(0, 3))) for _ in shape],
        "min_count": draw(st.sampled_from([0, 0, 2])),
        "method": draw(st.sampled_from(METHODS)),
        "sparse": draw(st.booleans()),
        "kind": draw(st.sampled_from(["varied", "ties", "far", "constant", "infinite"])),
        "seed": draw(st.integers(0, 2**32)),
    }


def contents(problem: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Two attributes with missing values, and which cells there are."""
    random = np.random.default_rng(problem["seed"])
    shape = problem["shape"]
    a, b = random.normal(size=shape), random.uniform(0.5, 2.0, shape)
    if problem["kind"] == "ties":
        a, b = np.round(a), np.round(b)
    if problem["kind"] == "far":
        a = a + 1e6 * np.arange(shape[1])
    if problem["kind"] == "constant":
        a = np.full(shape, 2.5)
    if problem["kind"] == "infinite":
        a[random.random(shape) < 0.1] = math.inf
    a[random.random(shape) < 0.2] = math.nan
    b[random.random(shape) < 0.2] = math.nan
    there = random.random(shape) < 0.7 if problem["sparse"] else np.ones(shape, bool)
    return a, b, there


def made(database: Any, problem: dict[str, Any]) -> tuple[Any, dict[tuple[int, int], tuple[Any, Any]]]:
    a, b, there = contents(problem)
    rows, columns = problem["shape"]
    schema = (
        f"<a: float64, b: float64> [i=0:{rows - 1}:{problem['chunks'][0]}, j=0:{columns - 1}:{problem['chunks'][1]}]"
    )
    array = database.create(f"A{uuid.uuid4().hex[:8]}", schema, sparse=problem["sparse"])
    if problem["sparse"]:
        i, j = np.nonzero(there)
        array.insert(
            pa.table(
                {"i": i, "j": j, "a": pa.array(a[there], from_pandas=True), "b": pa.array(b[there], from_pandas=True)}
            )
        )
    else:
        array.write({"a": a, "b": b})
    known = {(int(i), int(j)): (float(a[i, j]), float(b[i, j])) for i, j in zip(*np.nonzero(there), strict=True)}
    return array, known


def expected(name: str, pairs: list[tuple[Any, Any]], min_count: int = 0) -> Any:
    if name in PAIRED:
        whole = [(x, y) for x, y in pairs if not math.isnan(x) and not math.isnan(y)]
        return None if len(whole) < min_count else oracle.of_pairs(name, whole)
    values = [x for x, _ in pairs if not math.isnan(x)]
    return None if len(values) < min_count else oracle.aggregate(name, None, values, len(pairs))


def same(name: str, found: Any, wanted: Any, pairs: list[tuple[Any, Any]]) -> None:
    lacking = found is None or (isinstance(found, float) and math.isnan(found))
    if wanted is None or (isinstance(wanted, float) and math.isnan(wanted)):
        assert lacking, (name, found, wanted)
        return
    assert not lacking, (name, found, wanted)
    finite = [x for x, _ in pairs if math.isfinite(x)]
    scale = max([1.0, *map(abs, finite)]) if name in ("covar", "covar_pop", "wavg") else 1.0
    exact = name in ("range", "first", "last")
    near = 1e-9 * scale + (shaken(finite) if name in ("corr", "skew", "kurtosis") else 0.0)
    assert found == (wanted if exact else pytest.approx(wanted, rel=1e-7, abs=near)), name


def shaken(values: list[float]) -> float:
    """What becomes of a shape if values move by a rounding: much, where they lie far from 0 and close together."""
    apart = float(np.std(values))
    return 100 * np.finfo(float).eps * max(map(abs, values)) / apart if apart else 0.0


def by_cell(result: Any, names: list[str]) -> dict[tuple[int, int], dict[str, Any]]:
    if isinstance(result, pa.Table):
        return {(row["i"], row["j"]): row for row in result.to_pylist()}
    sides = range(result.sizes["i"]), range(result.sizes["j"])
    return {(i, j): {name: float(result[name].values[i, j]) for name in names} for i in sides[0] for j in sides[1]}


@settings(max_examples=60, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(problem=problems())
def test_windows(problem: dict[str, Any], local: Any) -> None:
    array, cells = made(local, problem)
    (up, down), (left, right) = problem["reach"]
    window = array.window(i=wr.between(up, down), j=wr.between(left, right), min_count=problem["min_count"])
    wanted = PAIRED | SINGLE
    found = by_cell(window.agg(method=problem["method"], **wanted).compute(), list(wanted))
    assert set(found) == set(cells)
    for (i, j), row in found.items():
        inside = [
            cells[cell] for cell in sorted(cells) if i + up <= cell[0] <= i + down and j + left <= cell[1] <= j + right
        ]
        for name in wanted:
            same(name, row[name], expected(name, inside, problem["min_count"]), inside)


@settings(max_examples=40, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(problem=problems())
def test_regrids_and_totals(problem: dict[str, Any], local: Any) -> None:
    array, cells = made(local, problem)
    wanted = PAIRED | SINGLE
    blocks = by_cell(array.regrid(i=2, j=3).agg(**wanted).compute(), list(wanted))
    for (i, j), row in blocks.items():
        inside = [cells[cell] for cell in sorted(cells) if (cell[0] // 2, cell[1] // 3) == (i, j)]
        for name in wanted:
            same(name, row[name], expected(name, inside), inside)
    items = ", ".join(f"{aggregate} as {name}" for name, aggregate in wanted.items())
    whole = local.query(f"select {items} from {array.name}").compute()
    inside = [cells[cell] for cell in sorted(cells)]
    for name in wanted:
        value = whole[name][0].as_py() if isinstance(whole, pa.Table) else float(whole[name].values)
        same(name, value, expected(name, inside), inside)
    groups = local.query(f"select {items} from {array.name} group by j").compute()
    rows = groups.to_pylist() if isinstance(groups, pa.Table) else None
    for j in range(problem["shape"][1]):
        inside = [cells[cell] for cell in sorted(cells) if cell[1] == j]
        if rows is not None:
            row = next((row for row in rows if row["j"] == j), None)
            assert (row is None) == (not inside)
            if row is None:
                continue
        else:
            row = {name: float(groups[name].values[j]) for name in wanted}
        for name in wanted:
            same(name, row[name], expected(name, inside), inside)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from(["auto", "incremental", "naive", "segment_tree"]))
def test_frames(seed: int, rows: int, method: str) -> None:
    random = np.random.default_rng(seed)
    a, b = random.normal(size=rows) + 1e4 * random.integers(0, 2), np.round(random.uniform(0, 3, rows))
    a[random.random(rows) < 0.2] = math.nan
    lo = random.integers(-2, rows, rows)
    hi = lo + random.integers(-1, 12, rows)
    for name in PAIRED | SINGLE:
        second = b if name in PAIRED else None
        found = wr.framed(a, name, lo=lo, hi=hi, method=method, second=second)
        for k in range(rows):
            inside = [(a[r], b[r]) for r in range(max(0, lo[k]), min(rows, hi[k]))]
            same(name, float(found[k]), expected(name, inside), inside)


def test_weights_may_be_expressions_of_labels(local: Any) -> None:
    lat = np.array([-60.0, 0.0, 60.0])
    array = local.create("T", "<t: float64> [lat=0:2, lon=0:1]", labels={"lat": lat})
    values = np.array([[1.0, 2.0], [3.0, math.nan], [5.0, 6.0]])
    array.write({"t": values})
    weights = np.broadcast_to(np.cos(np.radians(lat))[:, None], values.shape)
    there = ~np.isnan(values)
    known = np.sum(values[there] * weights[there]) / np.sum(weights[there])
    told = local.query("select wavg(t, cos(radians(lat))) as m from T").compute()
    named = local.query("select avg(t, weight = cos(radians(lat))) as m from T").compute()
    assert named.identical(told)
    assert float(told["m"]) == pytest.approx(known)
    grouped = array.regrid(lat=3, lon=2).agg(m=wr.avg("t", weight="cos(radians(lat))")).compute()
    assert grouped["m"].values[0, 0] == pytest.approx(known)
    ds = xr.Dataset({"t": (("lat", "lon"), values)}, {"lat": lat})
    accessed = ds.windrow.window(lat=wr.between(0, 2), lon=wr.between(0, 1)).wavg("t", "cos(radians(lat))")
    assert accessed.values[0, 0] == pytest.approx(known)
    window = ds.windrow.window(lat=wr.between(0, 2), lon=wr.between(0, 1))
    xr.testing.assert_identical(window.avg("t", weight="cos(radians(lat))"), accessed)
    alone = ds["t"].windrow.window(lat=wr.between(0, 2), lon=wr.between(0, 1))
    xr.testing.assert_identical(alone.avg(weight=np.cos(np.radians(ds.lat))), accessed)
    xr.testing.assert_identical(alone.avg(), window.avg("t"))


def test_a_second_array_is_matched_by_its_coordinates() -> None:
    values = xr.DataArray([1.0, 2.0, 4.0], dims="x", coords={"x": [3, 2, 1]}, name="v")
    weights = xr.DataArray([1.0, 2.0, 3.0], dims="x", coords={"x": [1, 2, 3]})
    window = values.windrow.window(x=wr.corner(2))
    wanted = [(3 + 4) / 5, (4 + 4) / 3, 4.0]
    assert window.avg(weight=weights).values.tolist() == pytest.approx(wanted)
    assert window.avg(weight=weights[::-1].drop_vars("x")).values.tolist() == pytest.approx(wanted)
    for other in ([0, 1, 2], [1, 1, 2]):
        with pytest.raises(wr.SchemaError, match="does not fit the cells"):
            window.avg(weight=weights.assign_coords(x=other))


def test_shapes_are_those_of_pandas() -> None:
    values = np.random.default_rng(3).gamma(2.0, size=200)
    series = pd.Series(values)
    for name, kurt in (("skew", series.rolling(9).skew()), ("kurtosis", series.rolling(9).kurt())):
        found = wr.sliding(values, name, 9, "trailing", boundary="drop")
        np.testing.assert_allclose(found, kurt.to_numpy(), rtol=1e-6)
    pairs = wr.sliding(values, "corr", 9, "trailing", boundary="drop", second=values[::-1])
    np.testing.assert_allclose(pairs, series.rolling(9).corr(pd.Series(values[::-1])).to_numpy(), rtol=1e-6)


def test_first_and_last_round_a_border_follow_coordinates() -> None:
    values = np.arange(5.0)
    # The window of cell 4 holds cells 3, 4 and, round the border, 0: in coordinate order 0 comes first.
    assert wr.sliding(values, "first", [wr.between(-1, 1)], wrap=True).tolist() == [0.0, 0.0, 1.0, 2.0, 0.0]
    assert wr.sliding(values, "last", [wr.between(-1, 1)], wrap=True).tolist() == [4.0, 2.0, 3.0, 4.0, 4.0]


def test_ranges_that_overflow_are_errors() -> None:
    assert wr.sliding(np.array([-100, 27], np.int8), "range", 2).tolist() == [127, 0]
    with pytest.raises(wr.DataError, match="a range overflows int8"):
        wr.sliding(np.array([-100, 28], np.int8), "range", 2)
    assert wr.sliding(np.array([True, False, False]), "range", 2).tolist() == [True, False, False]
    assert wr.sliding(np.array([2**64 - 1, 0], np.uint64), "range", 2).tolist() == [2**64 - 1, 0]


@pytest.mark.parametrize("kind", ["int64", "uint64"])
@pytest.mark.parametrize("method", METHODS)
def test_averages_of_large_whole_numbers_are_floats(kind: str, method: str) -> None:
    values = np.full(6, np.iinfo(kind).max, kind)
    assert wr.sliding(values, "avg", 4, method=method)[0] == pytest.approx(float(np.iinfo(kind).max))
    assert wr.sliding(values, "std_pop", 4, method=method)[0] == pytest.approx(0.0, abs=1e6)
    with pytest.raises(wr.DataError, match="overflows int64"):
        wr.sliding(values, "sum", 4, method=method)


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda: wr.sliding(np.zeros(3), "corr", 2), "takes two arrays"),
        (lambda: wr.sliding(np.zeros(3), "max", 2, second=np.zeros(3)), "takes one array"),
        (lambda: wr.sliding(np.zeros(3), "wavg", 2, second=np.zeros(2)), "as large as the first.*(2,)"),
        (lambda: wr.framed(np.zeros(3), "corr", lo=[0], hi=[1]), "takes two vectors"),
        (lambda: wr.Aggregate("corr", "a"), "corr takes two arguments"),
        (lambda: wr.Aggregate("max", "a", second="b"), "max takes one argument"),
        (lambda: wr.Aggregate("quantile", "a"), "needs a parameter q"),
        (lambda: wr.sliding(np.array(["x"]), "range", 1), "range cannot take"),
    ],
)
def test_mistakes(ask: Callable[[], Any], match: str) -> None:
    with pytest.raises(wr.Error, match=match):
        ask()


def test_mistakes_in_text(local: Any) -> None:
    local.query("create A [i=1:3] <a: float64, s: string>")
    for text, match in (
        ("select corr(a) from A", "corr takes two values"),
        ("select corr(a, s) from A", "corr cannot take values of type string"),
        ("select wavg(a, b) from A", "no such column"),
        ("select max(a, i) from A", "max takes one value"),
        ("select sum(a, weight = i) from A", "sum takes one value"),
        ("select percentile(a, i) from A", "the parameter of percentile is a number"),
        ("select covar(a, i, i) from A", "at most one more"),
    ):
        with pytest.raises(wr.Error, match=match):
            local.query(text)


@pytest.mark.parametrize("chunk", [1, 2, 4])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_joined_parts_that_lie_far_from_0(local: Any, chunk: int, sparse: bool) -> None:
    """A part of one or two values has no shape of its own, and must not bring in what rounding makes of it."""
    random = np.random.default_rng(chunk)
    shape = (7, 5)
    a, b = (random.normal(size=shape) + 1e6 * (1 + np.arange(5)) for _ in range(2))
    b += a
    array = local.create("F", f"<a: float64, b: float64> [i=0:6:{chunk}, j=0:4:2]", sparse=sparse)
    i, j = np.indices(shape)
    if sparse:
        array.insert({"i": i.reshape(-1), "j": j.reshape(-1), "a": a.reshape(-1), "b": b.reshape(-1)})
    else:
        array.write({"a": a, "b": b})
    names = ("corr", "skew", "kurtosis", "covar", "var", "std")
    items = ", ".join(f"{name}(a{', b' if name in PAIRED else ''}) as {name}" for name in names)
    groups = local.query(f"select {items} from F group by j").compute()
    for column in range(5):
        pairs = list(zip(map(float, a[:, column]), map(float, b[:, column]), strict=True))
        for name in names:
            found = groups[name][column].as_py() if sparse else float(groups[name].values[column])
            wanted = expected(name, pairs)
            near = 10 * shaken([x for x, _ in pairs]) * max(1.0, abs(wanted))
            assert found == pytest.approx(wanted, rel=0, abs=near), name
