"""Joins by bands of keys against a loop over all pairs of cells."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.kernels.sparse import band_totals, places
from windrow.kernels.sparse import bands as bands_module
from windrow.kernels.sparse.bands import (
    Bands,
    Reduction,
    count_bands,
    list_bands,
    met_bands,
    present_before,
    reduce_bands,
    reduce_several,
)
from windrow.kernels.sparse.keys import KeySpace, key_space
from windrow.kernels.sparse.places import expected_pairs
from windrow.kernels.sparse.sorting import sort_keys

Cell = tuple[int, ...]
Run = tuple[Cell, int, int]  # offsets of the leading dimensions, and a range along the last one


class Problem(NamedTuple):
    left: list[Cell]
    right: list[Cell]
    runs: list[Run]
    wide: tuple[int, int]  # how much further before and after left cells look, in the last dimension
    ndim: int


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Cells of both sides, with twins, near 0 or far from it; left ones may lie anywhere."""
    ndim = draw(st.integers(1, 3))
    base = draw(st.sampled_from([0, -3, 10**15, -(2**61)]))
    longest = draw(st.sampled_from([2, 6, 200]))
    place = st.tuples(*[st.integers(0, 4)] * (ndim - 1), st.integers(0, longest))
    far = st.tuples(*[st.sampled_from([-(2**62), -9, -2, 0, 1, 2, 5, 12, 2**62])] * ndim)
    left = draw(st.lists(st.one_of(place, place, far), max_size=25))
    right = draw(st.lists(place, max_size=80))
    shifted = [[tuple(x + base if abs(x) < 2**60 else x for x in cell) for cell in side] for side in (left, right)]
    leading = draw(st.sets(st.tuples(*[st.integers(-2, 2)] * (ndim - 1)), max_size=6))
    runs = []
    for offset in sorted(leading):
        start = draw(st.integers(-9, 6))
        runs.append((offset, start, start + draw(st.sampled_from([0, 0, 1, 3, 300]))))
    # Bounds that depend on the place alone never fall from one cell to the next.
    more = draw(st.sampled_from([(0, 0), (0, 3), (2, 1)]))
    return Problem(shifted[0], shifted[1], runs, more, ndim)


def space_of(problem: Problem) -> KeySpace:
    ndim = problem.ndim
    right = problem.right or [(0,) * ndim]
    lo, hi = ([pick(cell[axis] for cell in right) for axis in range(ndim)] for pick in (min, max))
    reach_before, reach_after = [2] * (ndim - 1) + [9 + 2], [2] * (ndim - 1) + [306 + 3]
    space = key_space(lo, hi, reach_before, reach_after)
    assert space is not None
    return space


def columns(cells: list[Cell], ndim: int) -> list[Any]:
    return list(np.array(cells, np.int64).reshape(len(cells), ndim).T)


class Joined(NamedTuple):
    """Both sides in the order of their keys, and for each left cell the places of what it meets."""

    right: Any
    bands: Bands
    met: list[list[int]]
    places: list[Cell]


def joined(problem: Problem, skips: bool = False) -> Joined:
    space = space_of(problem)
    ndim = len(space.lo)
    left, left_order = sort_keys(space.keys(columns(problem.left, ndim)), space.bits)
    right, right_order = sort_keys(space.keys(columns(problem.right, ndim)), space.bits)
    leading = np.array([run[0] for run in problem.runs], np.int64).reshape(len(problem.runs), ndim - 1)
    first, last = (np.array([run[k] for run in problem.runs], np.int64) for k in (1, 2))
    first, last = space.differences(leading, first, last)
    before, after = problem.wide
    lefts, rights = [problem.left[k] for k in left_order], [problem.right[k] for k in right_order]
    skip = np.full(len(left), -1, np.int64)
    if skips and rights:
        for number, cell in enumerate(lefts):
            twins = [place for place, other in enumerate(rights) if other == cell]
            skip[number] = twins[number % len(twins)] if twins else number % (len(rights) + 1) - 1
    bands = Bands(left - before, left + after, first, last, skip if skips else np.zeros(0, np.int64))
    met = [
        [place for place, other in enumerate(rights) if place != out and meets(cell, other, problem)]
        for cell, out in zip(lefts, skip.tolist(), strict=True)
    ]
    return Joined(right, bands, met, rights)


def meets(cell: Cell, other: Cell, problem: Problem) -> bool:
    before, after = problem.wide
    for leading, first, last in problem.runs:
        in_row = all(b - a == offset for a, b, offset in zip(cell[:-1], other[:-1], leading, strict=True))
        if in_row and first - before <= other[-1] - cell[-1] <= last + after:
            return True
    return False


@pytest.fixture(params=["few", "plain", "running totals"], autouse=True)
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to sum and compare, where it can be; one of them in blocks of very few cells."""
    monkeypatch.setattr(bands_module, "_FEW_STEPS", math.inf if request.param == "few" else -1.0)
    monkeypatch.setattr(band_totals, "_WORTH_TOTALS", -1.0 if request.param == "running totals" else math.inf)
    if request.param == "running totals":
        monkeypatch.setattr(places, "_PLACES", 8)
        monkeypatch.setattr(places, "_FEWEST_CELLS", 4)


@given(problems(), st.booleans())
def test_bands_hold_every_partner_once(problem: Problem, skips: bool) -> None:
    right, bands, met, _ = joined(problem, skips)
    counts = count_bands(right, bands)
    assert counts.tolist() == list(map(len, met))
    listed = list_bands(right, bands, counts)
    assert [found.tolist() for found in np.split(listed, np.cumsum(counts))[:-1]] == met
    assert met_bands(right, bands).tolist() == sorted({place for found in met for place in found})
    odd = present_before(np.arange(len(right)) % 2 == 1)
    assert count_bands(right, bands, odd).tolist() == [sum(k % 2 for k in found) for found in met]


@given(problems(), st.integers(0, 25), st.integers(0, 25))
def test_a_part_of_the_cells_is_as_the_whole(problem: Problem, one: int, other: int) -> None:
    right, bands, met, _ = joined(problem, skips=True)
    begin, end = sorted((min(one, bands.cells), min(other, bands.cells)))
    assert count_bands(right, bands.part(begin, end)).tolist() == list(map(len, met[begin:end]))


@given(problems(), st.booleans(), st.data())
def test_floats_are_summed_and_compared(problem: Problem, skips: bool, data: st.DataObject) -> None:
    right, bands, met, rights = joined(problem, skips)
    pool = data.draw(
        st.sampled_from(
            [
                [0.0, 1.5, -2.0, 0.1, math.nan],
                [0.0, -0.0, 1e16, 1.0, -1e16, math.nan, math.inf],
                [math.inf, -math.inf, 3.0, math.nan],
                [1e-300, 1e300, -1e300, 5e-324, 0.3],
                [19.123456789, 15.25, 21.1],
            ]
        )
    )
    kind = data.draw(st.sampled_from([np.float64, np.float32, np.float16]))
    drawn = data.draw(st.lists(st.sampled_from(pool), min_size=len(rights), max_size=len(rights)))
    with np.errstate(over="ignore"):
        values = np.array(drawn, np.float64).astype(kind)
    present = data.draw(st.sampled_from([None, np.arange(len(values)) % 3 != 1]))
    results = {name: reduce_bands(name, values, present, right, bands) for name in ("sum", "min", "max")}
    for number, found in enumerate(met):
        kept = [float(values[k]) for k in found if not math.isnan(values[k]) and (present is None or present[k])]
        for name, outcome in results.items():
            assert outcome.counts is not None
            assert outcome.counts[number] == len(kept), name
        if kept:
            assert results["min"].exact[number] == min(kept)
            assert results["max"].exact[number] == max(kept)
            check_sum(float(results["sum"].reals[number]), kept)


def check_sum(got: float, kept: list[float]) -> None:
    infinite = [value for value in kept if math.isinf(value)]
    if infinite:
        assert math.isnan(got) if len(set(infinite)) > 1 else got == infinite[0]
        return
    exact, sizes = sum(map(Fraction, kept)), sum(abs(Fraction(value)) for value in kept)
    assert abs(Fraction(got) - exact) <= Fraction(5e-13) * sizes


@given(problems(), st.booleans(), st.data())
def test_integers_are_summed_exactly_or_refused(problem: Problem, skips: bool, data: st.DataObject) -> None:
    right, bands, met, rights = joined(problem, skips)
    kind = np.dtype(data.draw(st.sampled_from(["int8", "int64", "uint64", "int32", "bool"])))
    pools = {"u": [0, 1, 2**63, 2**64 - 1, 2**62], "b": [0, 1]}
    pool = pools.get(kind.kind, [0, 1, -1, 7] + ([2**62, -(2**63), 2**63 - 1] if kind.itemsize == 8 else [-128]))
    values = np.array(data.draw(st.lists(st.sampled_from(pool), min_size=len(rights), max_size=len(rights))), kind)
    present = data.draw(st.sampled_from([None, np.arange(len(values)) % 3 != 1]))
    kept = [[int(values[k]) for k in found if present is None or present[k]] for found in met]
    least, most = (0, 2**64 - 1) if kind == np.uint64 else (-(2**63), 2**63 - 1)
    for name, pick in (("min", min), ("max", max)):
        outcome = reduce_bands(name, values, present, right, bands)
        assert outcome.counts is not None
        assert outcome.counts.tolist() == list(map(len, kept))
        assert [int(x) for x, some in zip(outcome.exact, kept, strict=True) if some] == [pick(x) for x in kept if x]
    if any(not least <= sum(some) <= most for some in kept):
        with pytest.raises(DataError, match="overflow"):
            reduce_bands("sum", values, present, right, bands)
        return
    outcome = reduce_bands("sum", values, present, right, bands)
    assert [int(x) for x in outcome.exact] == list(map(sum, kept))
    assert outcome.reals == pytest.approx([float(sum(some)) for some in kept], rel=1e-12)


@settings(max_examples=40)
@given(problems(), st.booleans())
def test_several_aggregates_are_as_each_alone(problem: Problem, skips: bool) -> None:
    right, bands, _, rights = joined(problem, skips)
    floats = np.sqrt(np.arange(len(rights), dtype=np.float64))
    holes = np.where(np.arange(len(rights)) % 4 == 2, np.nan, floats)
    whole = np.arange(len(rights)) * 7 % 5
    asked = [Reduction(name, column) for column in (floats, holes, whole) for name in ("sum", "max", "min", "count")]
    for reduction, outcome in zip(asked, reduce_several(asked, right, bands), strict=True):
        alone = reduce_bands(*reduction, right, bands)
        assert outcome.counts is not None
        assert outcome.counts.tolist() == (alone.counts.tolist() if alone.counts is not None else None)
        np.testing.assert_array_equal(outcome.exact, alone.exact)


@given(problems())
def test_expected_pairs_of_few_cells_are_exact(problem: Problem) -> None:
    right, bands, met, _ = joined(problem)
    assert expected_pairs(right, bands) == sum(map(len, met))


@pytest.mark.parametrize("distinct", [60_000, 900])
@pytest.mark.parametrize("left", [1, 3, 90, 700, 5_000])
def test_few_and_many_against_many(left: int, distinct: int) -> None:
    """Sizes at which the right side is thinned out by different powers of two, or by its duplicates."""
    random = np.random.default_rng(left)
    right = np.sort(random.integers(0, distinct, 20_011) * (60_000 // distinct))
    near = np.sort(random.integers(-500, 61_000, left))
    bands = Bands(near, near, np.array([-40, 0, 1_000]), np.array([-3, 20, 1_007]))
    starts = np.searchsorted(right, near[:, None] + bands.first, "left")
    stops = np.searchsorted(right, near[:, None] + bands.last, "right")
    assert count_bands(right, bands).tolist() == (stops - starts).sum(1).tolist()
    values = random.normal(size=len(right))
    outcome = reduce_bands("sum", values, None, right, bands)
    wanted = [
        sum(values[a:b].sum() for a, b in zip(low, high, strict=True)) for low, high in zip(starts, stops, strict=True)
    ]
    assert outcome.reals == pytest.approx(wanted, rel=1e-12, abs=1e-9)
