"""Ranges of sparse neighbours against a loop over all pairs of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.kernels.sparse.order import coordinate_order
from windrow.kernels.sparse.rows import Neighbourhoods, rows_of, shapes_at, windows_at
from windrow.kernels.sparse.windows import neighbour_counts, neighbour_lists, reduce_ranges, strip_sizes, strips

Cell = tuple[int, ...]
Windows = list[tuple[int, int]]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Cell], list[Cell], Windows]:
    """Cells, those at which to look, and the window's offsets per dimension; rows long and short."""
    ndim = draw(st.integers(1, 4))
    longest = draw(st.sampled_from([3, 6, 200]))
    place = st.tuples(*[st.integers(0, 4)] * (ndim - 1), st.integers(0, longest))
    cells = sorted(draw(st.sets(place, max_size=60)))
    looked_at = sorted(draw(st.sets(place, max_size=12)))
    starts = draw(st.lists(st.integers(-6, 4), min_size=ndim, max_size=ndim))
    widths = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, 300]), min_size=ndim, max_size=ndim))
    return cells, looked_at, [(start, start + width) for start, width in zip(starts, widths, strict=True)]


def columns(cells: Sequence[Cell], ndim: int) -> list[Any]:
    return list(np.array(cells, np.int64).reshape(len(cells), ndim).T.copy())


def windows(looked_at: Sequence[Cell], offsets: Windows) -> Neighbourhoods:
    at = columns(looked_at, len(offsets))
    lows = [column + start for column, (start, _) in zip(at, offsets, strict=True)]
    return windows_at(at, lows, [column + stop for column, (_, stop) in zip(at, offsets, strict=True)])


def near(cells: Sequence[Cell], cell: Cell, offsets: Windows) -> list[int]:
    """The numbers of the cells in a window."""
    return [
        number
        for number, other in enumerate(cells)
        if all(start <= b - a <= stop for a, b, (start, stop) in zip(cell, other, offsets, strict=True))
    ]


@given(problems())
def test_ranges_hold_every_neighbour_once(problem: tuple[list[Cell], list[Cell], Windows]) -> None:
    cells, looked_at, offsets = problem
    rows, hoods = rows_of(columns(cells, len(offsets))), windows(looked_at, offsets)
    wanted = [near(cells, cell, offsets) for cell in looked_at]
    counts = neighbour_counts(rows, hoods)
    assert counts.tolist() == list(map(len, wanted))
    listed = neighbour_lists(rows, hoods, counts)
    assert [sorted(found) for found in np.split(listed, np.cumsum(counts))[:-1]] == wanted
    odd = np.arange(len(cells)) % 2 == 1
    assert neighbour_counts(rows, hoods, odd).tolist() == [sum(k % 2 for k in found) for found in wanted]


@given(problems(), st.integers(0, 12), st.integers(0, 12))
def test_a_part_of_neighbourhoods_is_as_the_whole(
    problem: tuple[list[Cell], list[Cell], Windows], one: int, other: int
) -> None:
    cells, looked_at, offsets = problem
    begin, end = sorted((min(one, len(looked_at)), min(other, len(looked_at))))
    rows, hoods = rows_of(columns(cells, len(offsets))), windows(looked_at, offsets)
    part = neighbour_counts(rows, hoods.part(begin, end))
    assert part.tolist() == neighbour_counts(rows, hoods)[begin:end].tolist()


@given(problems())
def test_windows_slide_over_strips(problem: tuple[list[Cell], list[Cell], Windows]) -> None:
    cells, looked_at, offsets = problem
    rows, hoods = rows_of(columns(cells, len(offsets))), windows(looked_at, offsets)
    listed, lo, hi = strips(rows, hoods, strip_sizes(rows, hoods))
    assert (np.diff(lo) >= 0).all()
    assert (np.diff(hi) >= 0).all()
    for number, cell in enumerate(looked_at):
        assert sorted(listed[lo[number] : hi[number] + 1].tolist()) == near(cells, cell, offsets)


offset_lists = st.sets(st.tuples(st.integers(-2, 2), st.integers(-9, 9)), max_size=8)


@given(problems(), offset_lists)
def test_shapes_list_their_rows(problem: tuple[list[Cell], list[Cell], Windows], shape: set[tuple[int, int]]) -> None:
    """Each offset of the first dimensions with a range of its own, of which several may lie in one row."""
    cells, looked_at, offsets = problem
    ndim = len(offsets)
    ranges = [((lead,) * (ndim - 1), last, last + 1) for lead, last in sorted(shape)]
    leading = np.array([lead for lead, _, _ in ranges], np.int64).reshape(len(ranges), ndim - 1)
    first, last = (np.array([entry[k] for entry in ranges], np.int64) for k in (1, 2))
    rows, hoods = rows_of(columns(cells, ndim)), shapes_at(columns(looked_at, ndim), leading, first, last)
    wanted = []
    for cell in looked_at:
        boxes = [[*((o, o) for o in lead), (low, high)] for lead, low, high in ranges]
        wanted.append(sorted(number for box in boxes for number in near(cells, cell, box)))
    counts = neighbour_counts(rows, hoods)
    listed = neighbour_lists(rows, hoods, counts)
    assert [sorted(found) for found in np.split(listed, np.cumsum(counts))[:-1]] == wanted


@settings(max_examples=60)
@given(problems(), st.data())
def test_sums_and_extremes_come_straight_from_the_ranges(
    problem: tuple[list[Cell], list[Cell], Windows], data: st.DataObject
) -> None:
    cells, looked_at, offsets = problem
    rows, hoods = rows_of(columns(cells, len(offsets))), windows(looked_at, offsets)
    pool = st.sampled_from([0.0, 1.5, -2.0, 1e16, math.nan, math.inf])
    values = data.draw(st.lists(pool, min_size=len(cells), max_size=len(cells)))
    outcomes = {name: reduce_ranges(name, np.array(values, float), None, rows, hoods) for name in ("sum", "min", "max")}
    for number, cell in enumerate(looked_at):
        found = [values[k] for k in near(cells, cell, offsets) if not math.isnan(values[k])]
        assert {int(outcome.counts[number]) for outcome in outcomes.values()} == {len(found)}
        if found:
            assert outcomes["min"].exact[number] == min(found)
            assert outcomes["max"].exact[number] == max(found)
        if math.inf in found:
            assert outcomes["sum"].reals[number] == math.inf
        elif found:
            error = abs(Fraction(float(outcomes["sum"].reals[number])) - sum(map(Fraction, found)))
            assert error <= sum(abs(Fraction(value)) for value in found) / 10**12


def test_whole_sums_are_exact_and_refuse_to_overflow() -> None:
    at = columns([(0,), (1,), (5,)], 1)
    rows, hoods = rows_of(at), windows_at(at, [at[0]], [at[0] + 1])
    outcome = reduce_ranges("sum", np.array([2**62, 2**62 - 1, 7]), np.array([True, True, True]), rows, hoods)
    assert outcome.exact.tolist() == [2**63 - 1, 2**62 - 1, 7]
    with pytest.raises(DataError, match="overflows"):
        reduce_ranges("sum", np.array([2**62, 2**62, 7]), None, rows, hoods)


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([-(2**61), 0, 5, 2**61])), max_size=12))
def test_coordinates_are_ordered_however_far_apart(cells: list[Cell]) -> None:
    far = [(a * 2**50, b) for a, b in cells]
    for places in (cells, far):
        order = coordinate_order(columns(places, 2))
        assert [places[k] for k in order] == sorted(places)
