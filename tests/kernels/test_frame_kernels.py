"""Every way to compute aggregates over frames against brute force, and the ways that ``auto`` chooses from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frame_oracle
import windrow as wr
from windrow.aggregates.frames import Column, Frames, evaluate_frames
from windrow.errors import DataError
from windrow.kernels import tiny
from windrow.kernels.counting.codes import previous_close, previous_near, previous_rows
from windrow.kernels.frames import spans as frame_spans
from windrow.kernels.frames.family import family_of
from windrow.kernels.frames.paths import best_path, count_moves, order_by
from windrow.kernels.frames.spans import Spans, spans_of, survey
from windrow.kernels.frames.survey import survey_one, survey_several
from windrow.kernels.papers.frame_quantile import select_one
from windrow.kernels.user.frames import user_frames
from windrow.kernels.user.windows import StateFunctions

AGGREGATES: list[tuple[str, float | None]] = [
    ("count", None), ("sum", None), ("avg", None), ("var", None), ("std", None), ("var_pop", None), ("std_pop", None),
    ("min", None), ("max", None), ("percentile", 70), ("quantile_disc", 0.3), ("quantile_cont", 0.9),
    ("quantile_index", 0.5), ("median", None), ("count_distinct", None), ("mode", None),
]  # fmt: skip
METHODS = {
    "select": ("naive", "incremental", "reuse", "replace"),
    "distinct": ("naive", "incremental"),
    "mode": ("naive", "incremental"),
}
FOLDS = ("naive", "incremental", "segment_tree")
FRAME_KINDS = ("sliding", "one length", "growing", "jumping", "arbitrary", "whole", "empty")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code even where there is next to nothing to do."""
    monkeypatch.setattr(tiny, "MOST_CELLS", 0)


@st.composite
def frames(draw: st.DrawFn, rows: int, kind: str) -> tuple[list[int], list[int]]:
    """A frame for each row."""
    width = draw(st.integers(1, rows + 3))
    place = range(rows)
    if kind == "sliding":
        before = draw(st.integers(-width, width))
        return [row - before for row in place], [row - before + width for row in place]
    if kind == "growing":
        return [0] * rows, [row + 1 for row in place]
    if kind == "whole":
        return [0] * rows, [rows] * rows
    if kind == "empty":
        return list(place), [row - draw(st.integers(0, 2)) for row in place]
    if kind == "jumping":
        return [row // 3 * 5 - 2 for row in place], [row // 3 * 5 - 2 + width for row in place]
    lo = [draw(st.integers(-2, rows + 2)) for _ in place]
    if kind == "one length":
        return lo, [first + width for first in lo]
    return lo, [first + draw(st.integers(-2, rows)) for first in lo]


@st.composite
def columns(draw: st.DrawFn) -> list[Any]:
    """Values of one type; None is missing."""
    numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**55), 2**55), st.sampled_from([2**40, -(2**40), 10**9, -7]))
    floats = st.one_of(st.sampled_from([math.inf, -math.inf, -0.0, 0.0, 1.5, math.nan]), st.floats(-1e6, 1e6, width=32))
    kind = draw(st.sampled_from([numbers, floats, st.integers(0, 5).map(float), st.booleans()]))
    return draw(st.lists(st.one_of(kind, st.none()) if draw(st.booleans()) else kind, min_size=1, max_size=40))


def as_array(values: list[Any]) -> Column:
    known = [value for value in values if value is not None]
    kind: Any = type(known[0]) if known else int
    array = np.array([kind(0) if value is None else value for value in values], kind)
    present = np.array([value is not None for value in values])
    return Column(array, None if present.all() else present)


def same(found: Column, expected: list[Any], scale: float) -> None:
    for k, want in enumerate(expected):
        if found.present is not None and not found.present[k]:
            assert want is None, k
            continue
        got = found.values[k].item() if hasattr(found.values[k], "item") else found.values[k]
        assert want is not None, k
        if isinstance(want, float) and not isinstance(got, int):
            both_nan = math.isnan(want) and math.isnan(got)
            assert both_nan or got == want or abs(got - want) <= 1e-9 * scale, (k, got, want)
        else:
            assert got == want, (k, got, want)


def scale_of(name: str, values: list[Any]) -> float:
    """How large numbers an error is measured against."""
    sizes = [abs(float(v)) for v in values if v is not None and v == v and math.isfinite(v)]
    largest = max([1.0, *sizes])
    return largest**2 if name.startswith("var") else 1e3 * largest if name.startswith("std") else largest * len(values)


@settings(max_examples=60)
@given(st.data(), columns(), st.sampled_from(FRAME_KINDS), st.sampled_from(AGGREGATES))
@pytest.mark.parametrize("exclude", ["no others", "current row", "group", "ties"])
def test_all_methods_agree_with_brute_force(
    exclude: str, data: st.DataObject, values: list[Any], kind: str, wanted: tuple[str, float | None]
) -> None:
    rows = len(values)
    lo, hi = data.draw(frames(rows, kind))
    keys = sorted(data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows)))
    peers = (np.searchsorted(keys, keys, "left"), np.searchsorted(keys, keys, "right"))
    keep = data.draw(st.none() | st.lists(st.booleans(), min_size=rows, max_size=rows))
    nan = data.draw(st.sampled_from(["missing", "value"]))
    name, parameter = wanted
    expected_rows = frame_oracle.without(frame_oracle.frame_rows(lo, hi, rows), exclude, keys)
    expected = frame_oracle.evaluate(values, expected_rows, wanted, keep=keep, nan_is_value=nan == "value")
    aggregate = wr.Aggregate(name, "x", parameter)
    methods = METHODS.get(aggregate.definition.operation or "", FOLDS if name != "count" else ())
    for method in ("auto", "compiled", *methods):
        with pytest.MonkeyPatch.context() as patch:
            if method == "compiled":
                patch.setattr(tiny, "MOST_CELLS", 0)
                patch.setattr(frame_spans, "COMPILED", 0)
            found = evaluate_frames(
                {"x": as_array(values)},
                Frames(np.array(lo), np.array(hi), exclude, peers),
                aggregate,
                method="auto" if method == "compiled" else method,
                keep=None if keep is None else np.array(keep),
                nan=nan,
                tau=data.draw(st.sampled_from([0.0, 0.25, 0.9])),
            )
        same(found, expected, scale_of(name, values))


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], Spans]:
    """Values and frames for one kernel, with more rows than brute force in Python would like."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, count = draw(st.integers(1, 400)), draw(st.integers(1, 60))
    values = random.integers(0, draw(st.sampled_from([1, 3, 50, 1000])), rows) * draw(st.sampled_from([1, 10**9]))
    if draw(st.booleans()):
        values = values / 2
    lo = random.integers(-2, rows + 2, count)
    hi = lo + random.integers(-2, draw(st.sampled_from([3, 30, 500])), count)
    if draw(st.booleans()):
        lo, hi = np.sort(lo), np.sort(hi)
    cut = None
    if draw(st.booleans()):
        cut = np.sort(random.integers(0, rows + 1, (2, count)), 0)
    return values, spans_of(lo, hi, rows, None if cut is None else (cut[0], cut[1]))


@given(problems())
def test_frames_of_one_length_are_windows(problem: tuple[np.ndarray[Any, Any], Spans]) -> None:
    _, spans = problem
    for length in (1, 7, 500):
        begin = spans.begin[0]
        cut = spans_of(begin, begin + length, spans.rows)
        family = family_of(cut)
        if family is not None:
            np.testing.assert_array_equal(family.results(family.windows.begin[0]), np.clip(cut.begin[0], 0, None))
            np.testing.assert_array_equal(family.results(family.windows.end[0]), cut.end[0])


@given(problems())
def test_orders_hold_every_frame_once(problem: tuple[np.ndarray[Any, Any], Spans]) -> None:
    _, spans = problem
    order = order_by(spans.begin[0], spans.rows)
    assert sorted(order) == list(range(spans.count))
    assert (np.diff(spans.begin[0][order]) >= 0).all()
    path = best_path(spans)
    if len(path.order):
        assert sorted(path.order) == list(range(spans.count))
        assert path.moves == count_moves(spans.begin, spans.end, path.order)[0] <= spans.survey.moves


@given(st.lists(st.integers(-4, 4), max_size=200), st.integers(1, 20))
def test_previous_rows(values: list[int], reach: int) -> None:
    expected = [max((j for j in range(k) if values[j] == value), default=-1) for k, value in enumerate(values)]
    array = np.array(values, np.int64)
    assert previous_rows(array).tolist() == expected
    assert previous_close(array, -4, 9).tolist() == expected
    near = previous_near(array, reach).tolist()
    for k, (got, want) in enumerate(zip(near, expected, strict=True)):
        assert got == want or (got == -1 and k - want > reach)


def test_integer_sums_that_overflow_are_errors_and_others_are_exact(compiled: None) -> None:
    big = np.array([2**62, 2**62, -(2**62), 5, 2**62], np.int64)
    for method in ("auto", *FOLDS):
        exact = wr.framed(big, "sum", lo=[0, 1, 3], hi=[3, 4, 5], method=method)
        assert exact.tolist() == [2**62, 5, 2**62 + 5]
        with pytest.raises(DataError, match="overflows int64"):
            wr.framed(big, "sum", lo=[0], hi=[2], method=method)
        assert wr.framed(big, "avg", lo=[0], hi=[2], method=method)[0] == 2.0**62


def test_sums_do_not_drift_and_recover_from_infinity(compiled: None) -> None:
    values = np.ones(500)
    values[100], values[200] = 1e16, math.inf
    place = np.arange(500)
    for method in ("auto", *FOLDS):
        found = wr.framed(values, "sum", lo=place - 9, hi=place + 1, method=method)
        assert (found[110:200] == 10).all()
        assert (found[210:] == 10).all()
        assert np.isposinf(found[200:210]).all()


@pytest.mark.parametrize("method", ["auto", "naive", "incremental", "segment_tree"])
def test_long_sums_of_floats_are_exact_to_twelve_digits(method: str) -> None:
    values = np.random.default_rng(5).random(60_000) + 1e3
    hi = np.array([60_000, 59_999, 31_000])
    found = wr.framed(values, "sum", lo=[0, 1, 3], hi=hi, method=method)
    for got, first, last in zip(found, (0, 1, 3), hi, strict=True):
        exact = math.fsum(values[first:last])
        assert abs(got - exact) <= 1e-12 * exact


def spread() -> Any:
    def add(state: Any, x: Any) -> Any:
        return (min(state[0], x), max(state[1], x))

    def merge(one: Any, other: Any) -> Any:
        return (min(one[0], other[0]), max(one[1], other[1]))

    return StateFunctions(lambda: (np.inf, -np.inf), add, lambda state: state[1] - state[0], merge=merge)


def total() -> Any:
    return StateFunctions(
        lambda: (0,),
        lambda state, x: (state[0] + x,),
        lambda state: state[0],
        remove=lambda state, x: (state[0] - x,),
    )


def last() -> Any:
    return StateFunctions(lambda: (0.0,), lambda state, x: (x * 1.0,), lambda state: state[0])


SPREAD, TOTAL, LAST = spread(), total(), last()


@settings(max_examples=40)
@given(problems())
def test_user_defined_aggregates(problem: tuple[np.ndarray[Any, Any], Spans]) -> None:
    values, spans = problem
    if values.dtype.kind == "f":
        values = (values * 2).astype(np.int64)
    rows = [
        np.concatenate([np.arange(a, b) for a, b in zip(spans.begin[:, k], spans.end[:, k], strict=True)])
        for k in range(spans.count)
    ]
    for functions, method, expected in (
        (SPREAD, "auto", lambda x: np.ptp(x)),
        (SPREAD, "segment_tree", lambda x: np.ptp(x)),
        (SPREAD, "naive", lambda x: np.ptp(x)),
        (TOTAL, "auto", np.sum),
        (TOTAL, "incremental", np.sum),
        (LAST, "auto", lambda x: x[-1]),
    ):
        found = user_frames(functions, values, spans, np.dtype(np.float64), method)
        for k, frame in enumerate(rows):
            if len(frame):
                assert found[k] == expected(values[frame])


def test_large_whole_numbers_stay_exact(compiled: None) -> None:
    values = 2**62 + np.arange(20) % 7
    lo = np.arange(20) // 4
    for name in ("quantile_disc(0.5)", "quantile_cont(0.3)", "mode", "max"):
        for first in (lo, lo[::-1], lo * 7 % 11):
            expected = wr.framed(values, name, lo=first, hi=first + 9, method="naive")
            found = wr.framed(values, name, lo=first, hi=first + 9)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype


@given(problems())
def test_the_compiled_survey_sees_the_same(problem: tuple[np.ndarray[Any, Any], Spans]) -> None:
    _, spans = problem
    plain = survey(spans.begin, spans.end)
    assert tuple(survey_several(spans.begin, spans.end)) == plain
    if spans.whole:
        assert tuple(survey_one(spans.begin[0], spans.end[0], spans.rows)[0]) == plain


@given(st.integers(2, 1000).flatmap(lambda size: st.tuples(st.integers(0, size - 2), st.just(size))))
def test_the_neighbour_of_a_continuous_quantile_is_on_the_smaller_side(problem: tuple[int, int]) -> None:
    lower, size = problem
    others = {lower: size - lower - 1, lower + 1: lower + 1}  # behind the lower rank, before the upper one
    rank = getattr(select_one, "py_func", select_one)(lower, lower + 1, size)
    assert others[rank] == min(others.values())
