"""Every way to compute shapes against loops over offsets in plain Python that know nothing of them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.kernels.contract.ranks import cont_ranks, percentile_ranks
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.shapes import scan
from windrow.kernels.shapes.problems import Runs, ShapeProblem, shape_problem
from windrow.kernels.shapes.row_plans import plan_build
from windrow.kernels.shapes.strategies import CHAINS, choose_shapes, compute_shapes
from windrow.kernels.shapes.user import user_shapes
from windrow.kernels.user.windows import StateFunctions

Offset = tuple[int, ...]
OPERATIONS = ("count", "sum", "squares", "min", "max", "percentile", "median", "distinct", "mode")
INF = math.inf


def runs_of(offsets: Sequence[Offset], ndim: int) -> Runs:
    """Sorted offsets as runs, with no regard to speed."""
    rows: list[list[Any]] = []
    for *leading, last in sorted(offsets):
        if rows and rows[-1][0] == leading and rows[-1][2] == last - 1:
            rows[-1][2] = last
        else:
            rows.append([leading, last, last])
    leading = np.array([row[0] for row in rows], np.int64).reshape(len(rows), ndim - 1)
    return Runs(leading, np.array([row[1] for row in rows], np.int64), np.array([row[2] for row in rows], np.int64))


def present_values(values: Any, present: Any, position: Offset, offsets: Sequence[Offset]) -> list[Any]:
    found = []
    for offset in sorted(offsets):
        cell = tuple(p + o for p, o in zip(position, offset, strict=True))
        if all(0 <= c < n for c, n in zip(cell, values.shape, strict=True)):
            value = values[cell].item()
            if value == value and (present is None or present[cell]):
                found.append(value)
    return found


def expected(operation: str, found: list[Any]) -> Any:
    ordered, size = sorted(found), len(found)
    if operation == "sum":
        return sum(map(Fraction, found)) if all(map(math.isfinite, found)) else sum(found)
    if operation == "squares":
        if not all(map(math.isfinite, found)):
            return math.nan
        mean = sum(map(Fraction, found)) / size
        return sum((Fraction(value) - mean) ** 2 for value in found)
    if operation in ("min", "max"):
        return ordered[0] if operation == "min" else ordered[-1]
    if operation == "percentile":
        return ordered[min(size, 70 * size // 100 + 1) - 1]
    if operation == "median":
        low, high = ordered[(size - 1) // 2], ordered[size // 2]
        return low if low == high else low / 2 + high / 2
    if operation == "distinct":
        return len(set(found))
    counts = Counter(found)
    return min(value for value in counts if counts[value] == max(counts.values()))


def agrees(got: Any, wanted: Any, scale: Any, tolerance: Fraction) -> bool:
    if isinstance(wanted, float) and not math.isfinite(wanted):
        return bool(np.array_equal(got, wanted, equal_nan=True))
    return abs(Fraction(float(got)) - Fraction(wanted)) <= Fraction(scale) * tolerance


@st.composite
def cells(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, Any]:
    size = math.prod(shape)
    kind = draw(st.sampled_from(["float64", "float32", "spikes", "int64", "int8", "uint64", "masked", "bool"]))
    if kind in ("float64", "float32", "spikes"):
        rare = [INF, -INF] if kind == "float64" else [1e16, -1e16] if kind == "spikes" else [-0.0]
        one = st.sampled_from([0.0, 1.5, -2.0, 3.25, 7.0, math.nan, *rare])
        values = np.array(draw(st.lists(one, min_size=size, max_size=size)))
        return values.astype("float32" if kind == "float32" else "float64").reshape(shape), None
    low, high = {"bool": (0, 1), "uint64": (0, 9), "int64": (-(2**58), 2**58)}.get(kind, (-3, 3))
    whole = np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), np.int64)
    dtype = {"int8": np.int8, "uint64": np.uint64, "bool": np.bool_}.get(kind, np.int64)
    mask = draw(st.lists(st.booleans(), min_size=size, max_size=size)) if kind == "masked" else None
    return whole.astype(dtype).reshape(shape), None if mask is None else np.array(mask).reshape(shape)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, list[Sweep], list[Offset]]:
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=4 if draw(st.booleans()) else 2)))
    if math.prod(shape) > 250:
        shape = shape[:2]
    reach = draw(st.sampled_from([1, 2, 9]))
    every = st.tuples(*[st.integers(-reach, reach)] * len(shape))
    offsets = draw(st.lists(every, max_size=12, unique=True))
    if draw(st.booleans()):  # whole runs, some longer than the input
        offsets = list({(*o[:-1], o[-1] + k) for o in offsets[:4] for k in range(draw(st.integers(1, 9)))})
    sweeps = [
        Sweep(draw(st.integers(-2, 2)), draw(st.integers(1, min(n + 2, 6))), 0, 0, draw(st.sampled_from([1, 1, 2, 5])))
        for n in shape
    ]
    return *draw(cells(shape)), sweeps, offsets


def check(operation: str, strategy: str, problem: tuple[Any, Any, list[Sweep], list[Offset]]) -> None:
    values, present, sweeps, offsets = problem
    runs = runs_of(offsets, values.ndim)
    asked = "select" if operation in ("percentile", "median") else operation
    ranks = None
    if asked == "select":
        ranks = percentile_ranks(70, len(offsets)) if operation == "percentile" else cont_ranks(0.5, len(offsets))
    choice = choose_shapes(asked, values.shape, values.dtype, sweeps, runs, ranks)
    able = {one.name for one in choice.chain if one.can(choice.problem) is None}
    if strategy not in able:
        return
    outcome = compute_shapes(asked, values, present, sweeps, runs, ranks, strategy=strategy)
    for output in itertools.product(*(range(sweep.count) for sweep in sweeps)):
        position = tuple(s.first + k * s.step for s, k in zip(sweeps, output, strict=True))
        found = present_values(values, present, position, offsets)
        counts = outcome.counts
        if counts is not None:
            assert counts[output] == len(found)
        if operation == "count":
            continue
        if not found:
            if counts is None and outcome.empty is not None:
                assert outcome.empty[output]
            elif counts is None:  # NaN says it
                assert np.isnan((outcome.reals if outcome.reals.size else outcome.exact)[output])
            continue
        assert outcome.empty is None or not outcome.empty[output]
        whole = values.dtype.kind != "f" and operation != "median"
        real = operation in ("squares", "median", "distinct") or (operation == "sum" and not whole)
        got = (outcome.reals if real else outcome.exact)[output]
        size = sum(abs(Fraction(value)) for value in found if math.isfinite(value))
        if operation == "squares":
            size = sum(Fraction(value) ** 2 for value in found if math.isfinite(value)) * 1000
        exact = operation in ("min", "max", "percentile", "distinct", "mode") or (whole and operation == "sum")
        tolerance = Fraction(0) if exact else Fraction(1, 10**12)
        if exact and isinstance(found[0], int):
            assert int(got) == expected(operation, found)
        else:
            assert agrees(got, expected(operation, found), size, tolerance), (got, expected(operation, found))


STRATEGIES = [
    (operation, one.name)
    for operation in OPERATIONS
    for one in CHAINS["select" if operation in ("percentile", "median") else operation]
]


@pytest.mark.parametrize(("operation", "strategy"), STRATEGIES)
@settings(max_examples=12, deadline=None)
@given(problem=problems())
def test_shapes_by_definition(operation: str, strategy: str, problem: Any) -> None:
    check(operation, strategy, problem)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 300), st.integers(0, 9), st.integers(1, 70), st.integers(1, 3), st.booleans())
def test_rows_wider_than_a_strip(columns: int, radius: int, most: int, step: int, holes: bool) -> None:
    """Strips, slots of lanes and blocks end within rows; the shape stays a disc."""
    shape = (5, columns)
    offsets = [
        (i, j) for i in range(-radius, radius + 1) for j in range(-radius, radius + 1) if i * i + j * j <= radius**2
    ]
    values = np.random.default_rng(columns).integers(-most, most, shape).astype(float)
    if holes:
        values[values > most // 2] = np.nan
    sweeps = [Sweep(0, 5, 0, 0), Sweep(0, -(-columns // step), 0, 0, step)]
    runs = runs_of(offsets, 2)
    ranks = cont_ranks(0.5, len(offsets))
    before, scan.STRIP_BYTES, scan.NARROWEST = (scan.STRIP_BYTES, scan.NARROWEST), 1, 17
    try:
        for operation, chain in CHAINS.items():
            table = ranks if operation == "select" else None
            results = [
                compute_shapes(operation, values, None, sweeps, runs, table, strategy=one.name)
                for one in chain
                if one.can(shape_problem(operation, shape, float, sweeps, runs, table)) is None
            ]
            held = {"count": "counts", "min": "exact", "max": "exact", "mode": "exact"}.get(operation, "reals")
            there = np.asarray(results[-1].counts) > 0
            for result in results[:-1]:
                one, other = getattr(result, held), getattr(results[-1], held)
                assert np.allclose(one[there], other[there], rtol=1e-12, atol=1e-9), operation
    finally:
        scan.STRIP_BYTES, scan.NARROWEST = before


@pytest.mark.parametrize("strategy", ["tiny", "rows", "incremental", "naive"])
@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_whole_sums_do_not_wrap(strategy: str, value: int) -> None:
    values = np.full((3, 3), value, np.int64)
    runs = runs_of([(0, 0), (1, 0), (0, 1)], 2)
    with pytest.raises(DataError, match="overflows int64"):
        compute_shapes("sum", values, None, [Sweep(0, 3, 0, 0)] * 2, runs, strategy=strategy)
    one = compute_shapes("sum", values, None, [Sweep(0, 3, 0, 0)] * 2, runs_of([(0, 0)], 2), strategy=strategy)
    assert (one.exact == value).all()


def test_large_unsigned_numbers_keep_their_order() -> None:
    values = np.array([[2**64 - 1, 5, 2**63]], np.uint64)
    runs = runs_of([(0, -1), (0, 1)], 2)
    for strategy in ("rows", "incremental", "naive"):
        found = compute_shapes("max", values, None, [Sweep(0, 1, 0, 0), Sweep(0, 3, 0, 0)], runs, strategy=strategy)
        assert found.exact.astype(np.uint64).tolist() == [[5, 2**64 - 1, 5]]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12), st.booleans())
def test_windows_of_a_row_are_built_of_their_own_cells(lengths: list[int], overlapping: bool) -> None:
    build = plan_build(tuple(sorted(set(lengths))), overlapping)
    held: dict[int, Counter[int]] = {0: Counter([0])}
    for to, one, other, shift, third, further, width in build.steps.tolist():
        held[to] = held[one] + Counter({cell + shift: n for cell, n in held[other].items()})
        if third >= 0:
            held[to] += Counter({cell + further: n for cell, n in held[third].items()})
        assert set(held[to]) == set(range(width))
        assert overlapping or set(held[to].values()) == {1}
    assert all(set(held[build.level_of[length]]) == set(range(length)) for length in lengths)


SPREADS = [
    StateFunctions(lambda: (0.0, 0), lambda s, v: (s[0] + v, s[1] + 1), lambda s: s[0] * s[1], remove, merge)
    for remove, merge in (
        (lambda s, v: (s[0] - v, s[1] - 1), None),
        (None, lambda s, o: (s[0] + o[0], s[1] + o[1])),
        (None, None),
    )
]  # fmt: skip


@pytest.mark.parametrize("functions", SPREADS)
@settings(max_examples=20, deadline=None)
@given(problem=problems())
def test_aggregates_of_users(functions: StateFunctions, problem: Any) -> None:
    values, present, sweeps, offsets = problem
    if values.dtype.kind != "f" or np.isinf(values).any() or (np.abs(values) > 100).any():
        values = np.round(np.sin(np.arange(values.size))).reshape(values.shape)
    asked: ShapeProblem = shape_problem("user", values.shape, values.dtype, sweeps, runs_of(offsets, values.ndim))
    for method in ("auto", "incremental", "naive"):
        found, counts = user_shapes(functions, asked, values, present, np.dtype(np.float64), method)
        for output in itertools.product(*(range(sweep.count) for sweep in sweeps)):
            position = tuple(s.first + k * s.step for s, k in zip(sweeps, output, strict=True))
            there = present_values(values, present, position, offsets)
            assert counts[output] == len(there)
            assert not there or found[output] == pytest.approx(sum(there) * len(there), abs=1e-9)
