"""Cells that lie anywhere, added to their groups: in runs and one by one the same, bit by bit, and near the truth."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.contract.ranks import CONT, DISC
from windrow.kernels.folds import cells, lanes, select
from windrow.operations.query.fused.lending import lend

FLOATS = [0.1, -0.0, 0.0, 1e16, -1e16, 3.5, math.nan, 1e-3]


def add(values: Any, present: Any, groups: Any, count: int) -> tuple[Any, Any, Any]:
    counts, high, low = np.zeros(count, np.int64), np.zeros(count), np.zeros(count)
    cells.sum_cells(values, present, groups, counts, high, low)
    return counts, high, low


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 40), st.booleans(), st.sampled_from(["f4", "f8"]))
@settings(max_examples=40, deadline=None)
def test_runs_and_single_cells_round_alike(seed: int, count: int, run: int, masked: bool, kind: str) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 200))
    values = random.choice(FLOATS, rows).astype(kind)
    groups = np.repeat(random.integers(0, count, rows), run)[:rows]
    present = (random.random(rows) < 0.7).astype(np.uint8) if masked else np.zeros(0, np.uint8)
    counts, high, low = add(values, present, groups, count)
    apart = [np.zeros(count, np.int64), np.zeros(count), np.zeros(count)]
    for row in range(rows):  # each alone, so that there are no runs
        one = slice(row, row + 1)
        cells.sum_cells(values[one], present[one], groups[one], *apart)
    assert (counts.tobytes(), high.tobytes(), low.tobytes()) == tuple(array.tobytes() for array in apart)
    there = [values[r] == values[r] and (not masked or present[r] == 1) for r in range(rows)]
    for group in range(count):
        own = [Fraction(float(values[r])) for r in range(rows) if there[r] and groups[r] == group]
        assert counts[group] == len(own)
        assert abs(Fraction(high[group]) + Fraction(low[group]) - sum(own)) <= Fraction(1e-15) * sum(map(abs, own))
    every = np.zeros(count, np.int64)
    cells.count_cells(present, groups, every)
    assert every.tolist() == [sum((groups == g) & (present == 1 if masked else True)) for g in range(count)]


@given(
    st.integers(0, 2**32),
    st.sampled_from([(0, 6), (20, 44), (100, 3000)]),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from(["f4", "f8"]),
)
@settings(max_examples=60, deadline=None)
def test_runs_of_any_length_are_near_the_truth(
    seed: int, lengths: tuple[int, int], long: int, masked: bool, kind: str
) -> None:
    random = np.random.default_rng(seed)
    count, rows = int(random.integers(1, 6)), int(random.integers(1, 4))
    own = random.permutation(np.append(random.integers(*lengths, 40), np.full(long, 5000)))  # one that is long
    runs = np.append(0, np.cumsum(own))
    codes = random.integers(0, count, len(own))
    values = random.choice([0.1, -0.0, 3.5, math.nan, 1e-3, -7e5], rows * runs[-1]).astype(kind)
    present = (random.random(len(values)) < 0.7).astype(np.uint8) if masked else np.zeros(0, np.uint8)
    bases = np.arange(rows) * count
    counts, high, low = np.zeros(rows * count, np.int64), np.zeros(rows * count), np.zeros(rows * count)
    lanes.fold_sums(values, present, np.arange(rows) * runs[-1], bases, runs, codes, False, counts, high, low)
    there = ~np.isnan(values) & (present == 1 if masked else True)
    groups = (bases[:, None] + np.repeat(codes, own)).reshape(-1)
    for group in range(rows * count):
        chosen = values[there & (groups == group)].astype(np.float64)
        assert counts[group] == len(chosen)
        assert abs(math.fsum([high[group], low[group], *-chosen])) <= 1e-13 * math.fsum(np.abs(chosen))


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_groups_laid_and_parted_have_the_ranks_of_sorted_ones(seed: int, rows: int, count: int) -> None:
    random = np.random.default_rng(seed)
    values, groups = random.choice([-1.5, 2.0, 2.0, 7.25, math.inf, -math.inf], rows), random.integers(0, count, rows)
    present = (random.random(rows) < 0.8).astype(np.uint8)
    own = [sorted(values[(groups == group) & (present == 1)].tolist()) for group in range(count)]
    counts = np.array([len(one) for one in own])
    places = np.concatenate([[0], np.cumsum(counts)])
    laid, where = np.empty(len(values)), places.copy()
    for half in (slice(0, rows // 2), slice(rows // 2, rows)):  # the second goes on where the first ended
        cells.lay_values(values[half], present[half], groups[half], where, laid)
    laid = laid[: places[-1]]
    assert [sorted(laid[start:stop].tolist()) for start, stop in itertools.pairwise(places)] == own
    for short in (0, 32):
        before, select.SHORT_GROUP = select.SHORT_GROUP, short
        try:
            asked = [(DISC.at(0.3, counts), False), (CONT.at(0.5, counts), True)]
            disc, cont = select.select_groups(laid.copy(), places, asked)
        finally:
            select.SHORT_GROUP = before
        for group, one in enumerate(own):
            if one:
                assert disc.exact[group] == one[(3 * len(one) - 1) // 10]
                low, high = one[(len(one) - 1) // 2], one[len(one) // 2]
                middle = low if low == high else low * 0.5 + high * 0.5
                assert cont.reals[group] == middle or (math.isnan(middle) and math.isnan(cont.reals[group]))


def test_read_only_memory_is_lent_and_not_copied() -> None:
    values = np.arange(5.0)
    values.flags.writeable = False
    lent = lend(values)
    assert lent.flags.writeable
    assert lent.__array_interface__["data"][0] == values.__array_interface__["data"][0]
    strided = lend(np.arange(10.0)[::2])
    assert strided.flags.c_contiguous
    assert strided.tolist() == [0, 2, 4, 6, 8]
    assert lend(values[:0]).shape == (0,)


@pytest.mark.parametrize("kind", ["i1", "i4", "i8"])
def test_whole_numbers_are_added_exactly(kind: str) -> None:
    values = np.array([np.iinfo(kind).max, np.iinfo(kind).max, np.iinfo(kind).min, 5], kind)
    counts, high, low = (np.zeros(2, np.int64) for _ in range(3))
    none = np.zeros(0, np.uint8)
    cells.sum_whole_cells(values, none, np.array([0, 0, 1, 1]), counts, high, low)
    assert [int(h) * 2**32 + int(w) for h, w in zip(high, low, strict=True)] == [
        2 * np.iinfo(kind).max.__int__(),
        int(np.iinfo(kind).min) + 5,
    ]
    assert counts.tolist() == [2, 2]
