"""``wr.sliding(…, shape=…)`` and ``ds.windrow.neighbours(…)`` against the definition of a neighbourhood."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import shape_oracle
import windrow as wr

AGGREGATES = ("count", "count_distinct", "sum", "avg", "min", "max", "first", "last", "range", "median", "mode", "var")


@st.composite
def shapes(draw: st.DrawFn, ndim: int) -> tuple[Any, shape_oracle.Member]:
    """A shape, and the same as a condition on offsets."""
    names = [f"axis{k}" for k in range(ndim)]
    on = sorted(draw(st.sets(st.integers(0, ndim - 1), min_size=1)))
    kind = draw(st.sampled_from(["L1", "L2", "Linf", "Hamming", "ranges", "any", "list"]))
    radius = draw(st.sampled_from([0, 1, 1.5, 2, 3, 9]))

    def elsewhere(offset: tuple[int, ...]) -> bool:
        return all(o == 0 for axis, o in enumerate(offset) if axis not in on)

    called = tuple(names[axis] for axis in on)
    if kind == "list":
        listed = draw(st.lists(st.tuples(*[st.integers(-3, 3)] * len(on)), min_size=1, max_size=6))
        return wr.offset_list(listed, on=called), lambda o: elsewhere(o) and tuple(o[axis] for axis in on) in listed
    if kind == "ranges":
        ends = [sorted((draw(st.integers(-4, 4)), draw(st.integers(-4, 4)))) for _ in on]
        ranges = dict(zip(called, map(tuple, ends), strict=True))
        return wr.offsets(
            **ranges
        ), lambda o: elsewhere(o) and all(lo <= o[axis] <= hi for axis, (lo, hi) in zip(on, ends, strict=True))
    if kind == "any":
        shape = wr.offsets(**{called[0]: wr.any_offset})
        if len(on) == 1:
            return shape, elsewhere
        return shape & wr.L1(
            radius, on=called[1:]
        ), lambda o: elsewhere(o) and sum(abs(o[axis]) for axis in on[1:]) <= radius
    if kind == "Hamming":
        return wr.Hamming(
            int(radius) % 3, on=called
        ), lambda o: elsewhere(o) and sum(o[axis] != 0 for axis in on) <= int(radius) % 3
    costs: dict[str, Any] = {
        "L1": lambda c: sum(map(abs, c)),
        "L2": lambda c: math.sqrt(sum(x * x for x in c)),
        "Linf": lambda c: max(map(abs, c)),
    }
    made = getattr(wr, kind)(radius, on=called)
    return made, lambda o: elsewhere(o) and costs[kind]([o[axis] for axis in on]) <= radius


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    extents = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    shape, member = draw(shapes(len(extents)))
    wraps = [draw(st.booleans()) for _ in extents]
    excluding = draw(st.booleans())
    if excluding:
        shape = shape.excluding_self()
    if draw(st.booleans()):
        shape = shape.wrap(*(f"axis{k}" for k, wrap in enumerate(wraps) if wrap))
        given_wrap: Any = False
    else:
        given_wrap = wraps
    one = st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e9, math.nan, math.inf, 3.0, 3.0])
    size = math.prod(extents)
    values = np.array(draw(st.lists(one, min_size=size, max_size=size))).reshape(extents)
    if draw(st.booleans()):
        values = np.nan_to_num(values, posinf=7, nan=-1).astype(draw(st.sampled_from([np.int64, np.int16, np.float32])))
    return {
        "values": values, "shape": shape, "member": member, "wraps": wraps, "wrap": given_wrap, "excluding": excluding,
        "step": draw(st.sampled_from([1, 1, 2, 3])), "min_count": draw(st.sampled_from([0, 0, 2, 5])),
    }  # fmt: skip


def expected(problem: dict[str, Any], name: str, cell: tuple[int, ...]) -> Any:
    values = problem["values"]
    around = shape_oracle.neighbours(values.shape, cell, problem["member"], problem["wraps"], problem["excluding"])
    found = [values[other].item() + 0 for other in around]
    found = [value for value in found if value == value]
    return None if len(found) < problem["min_count"] else shape_oracle.aggregate(name, found)


def agrees(got: Any, wanted: Any, found: Any) -> bool:
    if wanted is None or wanted != wanted:
        return bool(np.isnan(got))
    if math.isinf(wanted):
        return bool(got == wanted)
    return abs(float(got) - wanted) <= 1e-12 * max(1.0, found)


@pytest.mark.parametrize("method", ["auto", "incremental", "naive"])
@settings(max_examples=60, deadline=None)
@given(problem=problems(), name=st.sampled_from(AGGREGATES))
def test_every_aggregate_by_definition(method: str, problem: dict[str, Any], name: str) -> None:
    values = problem["values"]
    if name == "var":
        values[~np.isfinite(values)] = 4
    results = wr.sliding(
        values, name, shape=problem["shape"], wrap=problem["wrap"], step=problem["step"],
        min_count=problem["min_count"], method=method,
    )  # fmt: skip
    finite = np.abs(values[np.isfinite(values)].astype(float))
    scale = float((finite**2).sum() if name == "var" else finite.sum()) * (1000 if name == "var" else 1)
    assert results.shape == tuple(-(-n // problem["step"]) for n in values.shape)
    for output in itertools.product(*map(range, results.shape)):
        cell = tuple(problem["step"] * k for k in output)
        assert agrees(results[output], expected(problem, name, cell), scale), (name, cell)


@pytest.mark.parametrize("strategy", ["rows", "lanes", "bitset", "tiny", "incremental", "naive", "window"])
def test_a_strategy_can_be_asked_for(strategy: str) -> None:
    values = np.arange(20.0).reshape(4, 5)
    name = "median" if strategy in ("lanes", "bitset") else "sum"
    shape = wr.Linf(1) if strategy == "window" else wr.L1(1)
    assert np.allclose(wr.sliding(values, name, shape=shape, strategy=strategy), wr.sliding(values, name, shape=shape))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3), st.sampled_from(AGGREGATES))
def test_a_window_is_a_shape(rows: int, columns: int, radius: int, name: str) -> None:
    values = np.random.default_rng(rows * columns).integers(0, 9, (rows, columns))
    width = 2 * radius + 1
    by_window = wr.sliding(values, name, (width, width), "centred")
    for shape in (wr.Linf(radius), wr.offsets(axis0=(-radius, radius), axis1=(-radius, radius))):
        assert np.allclose(by_window, wr.sliding(values, name, shape=shape), equal_nan=True)


def test_two_arguments_strings_dates_and_masks() -> None:
    x = np.array([[1.0, 2.0], [3.0, np.nan]])
    w = np.array([[1.0, 3.0], [0.0, 9.0]])
    assert wr.sliding(x, "wavg", shape=wr.L1(1), second=w).tolist() == [[7 / 4, 7 / 4], [1.0, 2.0]]
    words = np.array([["b", "a"], ["c", "b"]])
    assert wr.sliding(words, "max", shape=wr.L1(1)).tolist() == [["c", "b"], ["c", "c"]]
    assert wr.sliding(words, "mode", shape=wr.L1(1)).tolist() == [["a", "b"], ["b", "a"]]
    days = np.array(["2001-01-03", "NaT", "2001-01-01"], "datetime64[D]")
    found = wr.sliding(days, "min", shape=wr.offsets(axis0=(-1, 0)))
    assert found.astype("datetime64[D]").astype(str).tolist() == ["2001-01-03", "2001-01-03", "2001-01-01"]
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    assert wr.sliding(masked, "sum", shape=wr.L1(1)).tolist() == [1, 4, 3]


def test_results_go_where_they_are_wanted() -> None:
    values = np.random.default_rng(0).normal(size=(30, 40))
    for name in ("sum", "max", "median", "avg"):
        out = np.full(values.shape, 9.0)
        assert wr.sliding(values, name, shape=wr.L2(2.5), out=out) is out
        assert np.array_equal(out, wr.sliding(values, name, shape=wr.L2(2.5)))
    assert wr.sliding(np.zeros((0, 3)), "sum", shape=wr.L2(1)).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "either a window or a shape"),
        ({"window": 3, "shape": wr.L1(1)}, "either a window or a shape"),
        ({"shape": "L1(1)"}, "must be one of windrow's"),
        ({"shape": wr.L1(1, on="time")}, "no such dimension"),
        ({"shape": wr.L1(1), "boundary": "drop"}, "clipped at the border"),
        ({"shape": wr.L1(1), "strategy": "scan"}, "no such strategy"),
        ({"shape": wr.L1(1), "method": "slow"}, "method must be one of"),
        ({"shape": wr.L1(1), "step": 0}, "a step must be"),
        ({"shape": wr.offsets(axis0=("-2 days", 0))}, "labels"),
    ],
)
def test_bad_input(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(wr.Error, match=says):
        wr.sliding(np.arange(5.0), "sum", **arguments)


def test_labelled_neighbours() -> None:
    """Irregular days: what lies within two days before, of four places on a ring."""
    days = np.array(["2001-01-01", "2001-01-02", "2001-01-05", "2001-01-06", "2001-01-07"], "datetime64[D]")
    values = np.random.default_rng(1).normal(size=(5, 4))
    values[1, 2] = np.nan
    data = xr.DataArray(values, {"time": days.astype("datetime64[ns]")}, ("time", "lon"), "t")
    around = data.windrow.neighbours(wr.L1(1, on="lon").wrap("lon") & wr.offsets(time=("-2 days", 0)))
    found, maxima = around.avg(), around.agg(m=wr.max("t"), n=wr.count("t"))
    for i, j in itertools.product(range(5), range(4)):
        cells = [
            values[a, b % 4] for a in range(i + 1) if (days[i] - days[a]).astype(int) <= 2 for b in (j - 1, j, j + 1)
        ]
        there = [cell for cell in cells if cell == cell]
        assert found[i, j] == pytest.approx(sum(there) / len(there))
        assert (float(maxima.m[i, j]), int(maxima.n[i, j])) == (max(there), len(there))


def test_neighbours_on_datasets() -> None:
    rng = np.random.default_rng(2)
    data = xr.Dataset({"t": (("y", "x"), rng.normal(size=(6, 7))), "w": (("y", "x"), rng.random((6, 7)))})
    around = data.windrow.neighbours(wr.L2(1.5).excluding_self(), step=2)
    plain = wr.sliding(data.t.to_numpy(), "median", shape=wr.L2(1.5).excluding_self(), step=2)
    assert np.array_equal(around.median("t").to_numpy(), plain)
    weighted = wr.sliding(
        data.t.to_numpy(), "wavg", shape=wr.L2(1.5).excluding_self(), step=2, second=data.w.to_numpy()
    )
    assert np.allclose(around.wavg("t", "w").to_numpy(), weighted)
    both = data.windrow.neighbours(wr.L1(1, on="x")).agg(a=wr.sum("t"), b=wr.percentile("w", 70))
    assert np.array_equal(both.b, wr.sliding(data.w.to_numpy(), wr.percentile("w", 70), shape=wr.L1(1, on="axis1")))
    with pytest.raises(wr.Error, match="no such dimension"):
        data.windrow.neighbours(wr.L1(1, on="z")).sum("t")
    with pytest.raises(wr.Error, match="one of windrow's shapes"):
        data.windrow.neighbours(3)
