"""Window scans against windows cut out one by one and reduced in plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.scans.widening import widening
from windrow.kernels.scans.windows import (
    extents,
    window_count,
    window_max,
    window_min,
    window_sum,
    window_sum_squares,
)


def windows(values: Any, sweeps: list[Sweep]) -> Iterator[tuple[tuple[int, ...], list[Any]]]:
    """Each output's index, and the cells of its window."""
    for index in itertools.product(*(range(sweep.count) for sweep in sweeps)):
        ranges = []
        for k, sweep, cells in zip(index, sweeps, values.shape, strict=True):
            position = sweep.first + k * sweep.step
            offsets = range(sweep.start, sweep.stop + 1)
            ranges.append([position + offset for offset in offsets if 0 <= position + offset < cells])
        yield index, [values[cell] for cell in itertools.product(*ranges)]


def one_sweep(cells: int) -> st.SearchStrategy[Sweep]:
    def build(width: int, start: int, first: int, count: int, step: int) -> Sweep:
        return Sweep(first, count, start, start + width - 1, step)

    widths = st.one_of(st.just(1), st.integers(1, 9), st.integers(1, 40))
    firsts = st.one_of(st.just(0), st.integers(-12, 12))
    counts = st.one_of(st.just(cells), st.integers(0, 12))
    return st.builds(build, widths, st.integers(-9, 6), firsts, counts, st.sampled_from([1, 1, 2, 3, 7]))


NUMBERS = st.one_of(st.floats(-100, 100, width=32), st.sampled_from([0.0, -0.0, 1.0, 1.0]))
WILD = st.one_of(NUMBERS, st.sampled_from([math.nan, math.nan, math.inf, -math.inf, 1e16]))


@st.composite
def problems(draw: Any, numbers: Any = WILD, dtype: Any = np.float64) -> tuple[Any, list[Sweep]]:
    dimensions = draw(st.integers(1, 4))
    sides = {1: [0, 1, 7, 30, 300], 2: [0, 1, 3, 9, 17], 3: [1, 2, 5, 6], 4: [1, 2, 3]}[dimensions]
    shape = tuple(draw(st.sampled_from(sides)) for _ in range(dimensions))
    pool = np.array(draw(st.lists(numbers, min_size=1, max_size=20)), dtype)
    seed = draw(st.integers(0, 2**32 - 1))
    values = np.random.default_rng(seed).choice(pool, shape)
    return values, [draw(one_sweep(cells)) for cells in shape]


def close(got: float, exact: float, scale: float) -> bool:
    if math.isnan(exact) or math.isinf(exact):
        return got == exact or (math.isnan(got) and math.isnan(exact))
    return abs(got - exact) <= 1e-12 * scale


def exact_sum(cells: list[float]) -> float:
    if math.inf in cells and -math.inf in cells:
        return math.nan
    return math.fsum(cells)


@pytest.mark.parametrize("overlaps", [False, True])
def test_levels_of_widening_cover_windows(overlaps: bool) -> None:
    for width in range(1, 400):
        covered = {1: [1]}
        reached = 1
        for level in widening(width, overlaps):
            assert level.before == reached
            times = [0] * level.width
            parts = [(k * level.before, covered[level.before]) for k in range(level.rows)]
            if level.extra is not None:
                parts.append((level.extra, covered[level.before if overlaps else 1]))
            for begin, cells in parts:
                for k, many in enumerate(cells):
                    times[begin + k] += many
            covered[level.width] = times
            reached = level.width
        assert reached == width
        assert min(covered[width]) >= 1
        assert overlaps or max(covered[width]) == 1


@given(problems())
def test_sums_are_accurate_and_skip_nan(problem: tuple[Any, list[Sweep]]) -> None:
    values, sweeps = problem
    sums, squares = window_sum(values, sweeps), window_sum_squares(values, sweeps)
    counts = extents(values.shape, sweeps) if sums.counts is None else sums.counts
    for index, cells in windows(values, sweeps):
        there = [float(cell) for cell in cells if not math.isnan(cell)]
        assert counts[index] == len(there)
        assert close(sums.values[index], exact_sum(there), math.fsum(abs(cell) for cell in there))
        squared = [cell * cell for cell in there]
        assert close(squares.values[index], math.fsum(squared), math.fsum(squared))


@given(problems())
def test_minima_maxima_and_counts(problem: tuple[Any, list[Sweep]]) -> None:
    values, sweeps = problem
    smallest, largest, counts = window_min(values, sweeps), window_max(values, sweeps), window_count(values, sweeps)
    assert counts.dtype == np.int64
    for index, cells in windows(values, sweeps):
        there = [float(cell) for cell in cells if not math.isnan(cell)]
        assert counts[index] == len(there)
        for found, expected in ((smallest, min(there, default=None)), (largest, max(there, default=None))):
            empty = found.empty is not None and bool(found.empty[index])
            assert empty == (not there)
            assert empty or found.values[index] == expected


@given(problems(st.integers(-1000, 1000), np.int64), st.booleans())
def test_integers_with_and_without_missing(problem: tuple[Any, list[Sweep]], masked: bool) -> None:
    values, sweeps = problem
    present = values % 3 != 0 if masked else None
    sums, largest = window_sum(values, sweeps, present=present), window_max(values, sweeps, present=present)
    assert sums.values.dtype == largest.values.dtype == np.int64
    counts = extents(values.shape, sweeps) if sums.counts is None else sums.counts
    for index, cells in windows(values, sweeps):
        there = [int(cell) for cell in cells if not masked or cell % 3 != 0]
        assert counts[index] == len(there)
        assert sums.values[index] == sum(there)
        assert (largest.empty is not None and bool(largest.empty[index])) == (not there)
        assert not there or largest.values[index] == max(there)


@given(st.integers(1, 700), st.integers(130, 500), st.integers(-400, 100), st.sampled_from([1, 1, 5]), st.randoms())
def test_wide_windows(cells: int, width: int, start: int, step: int, random: Any) -> None:
    values = np.array([random.choice([math.nan, random.uniform(-1, 1)]) for _ in range(2 * cells)]).reshape(2, cells)
    sweeps = [Sweep(0, 2, 0, 0), Sweep(random.randint(-9, 9), cells // step, start, start + width - 1, step)]
    sums, largest = window_sum(values, sweeps), window_max(values, sweeps)
    for index, found in itertools.islice(windows(values, sweeps), 0, None, 37):
        there = [float(cell) for cell in found if not math.isnan(cell)]
        assert close(sums.values[index], math.fsum(there), math.fsum(abs(cell) for cell in there))
        assert not there or largest.values[index] == max(there)


@pytest.mark.parametrize("shape", [(1_000_000, 1), (1, 300_000), (20_000, 2)])
@pytest.mark.parametrize("width", [200_001, 9_999])
def test_very_wide_sums_stay_accurate(shape: tuple[int, int], width: int) -> None:
    cells = max(shape)
    values = np.full(shape, 0.1)
    values[0, 0] = 1e16
    sweeps = [Sweep(0, n, 1 - width, 0) if n == cells else Sweep(0, n, 0, 0) for n in shape]
    sums = window_sum(values, sweeps).values.reshape(cells, -1)[:, 0]
    for position in (cells // 2, cells - 1):
        covered = min(width, position + 1)
        spike = 1e16 if position < width else 0.1
        exact = math.fsum([spike] + [0.1] * (covered - 1))
        assert abs(sums[position] - exact) <= 1e-12 * exact


@given(problems(NUMBERS), st.integers(1, 5))
def test_extremes_do_not_depend_on_blocks(problem: tuple[Any, list[Sweep]], size: int) -> None:
    values, sweeps = problem
    whole = window_min(values, sweeps).values
    first = sweeps[0]
    for begin in range(0, first.count, size):
        count = min(size, first.count - begin)
        part = Sweep(first.first + begin * first.step, count, first.start, first.stop, first.step)
        assert window_min(values, [part, *sweeps[1:]]).values.tobytes() == whole[begin : begin + count].tobytes()


@pytest.mark.parametrize("kind", ["int32", "float32", "bool", "datetime64[s]"])
def test_other_types(kind: str) -> None:
    values = np.random.default_rng(0).integers(0, 2 if kind == "bool" else 200, (9, 70)).astype(kind)
    sweeps = [Sweep(0, 9, -1, 1), Sweep(3, 60, -2, 2)]
    largest = window_max(values, sweeps)
    assert largest.values.dtype == values.dtype
    assert largest.empty is None
    for index, cells in windows(values, sweeps):
        assert largest.values[index] == max(cells)
    if kind.startswith("datetime"):
        return
    sums = window_sum(values, sweeps)
    assert sums.values.dtype == (np.float64 if kind == "float32" else np.int64)
    for index, cells in windows(values, sweeps):
        assert sums.values[index] == sum(cell.item() for cell in cells)


def test_times_that_are_not_there() -> None:
    values = np.array(["2020-01-01", "NaT", "2019-01-01", "NaT", "NaT"], "datetime64[D]")
    found = window_min(values, [Sweep(0, 5, 0, 1)])
    assert found.empty is not None
    assert found.empty.tolist() == [False, False, False, True, True]
    assert found.values[:3].astype(str).tolist() == ["2020-01-01", "2019-01-01", "2019-01-01"]
    assert window_count(values, [Sweep(0, 5, 0, 1)]).tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_overflow_is_an_error_and_its_neighbourhood_is_exact(dtype: Any) -> None:
    largest = 2**63 - 1
    values = np.array([largest - 5, 0, 3, 2, 0, 0], dtype)
    assert window_sum(values, [Sweep(0, 6, 0, 3)]).values.tolist()[:2] == [largest, 5]
    values[4] = 1
    with pytest.raises(DataError, match="integer sum overflows int64"):
        window_sum(values, [Sweep(0, 6, 0, 4)])
    assert window_sum(values, [Sweep(0, 6, 0, 3)]).values[0] == largest


def test_opposite_signs_beyond_the_bound_do_not_overflow() -> None:
    values = np.array([2**62, -(2**62), 2**62, -(2**62)] * 4)
    assert window_sum(values, [Sweep(0, 16, -3, 4)]).values[3] == 0


def test_results_can_be_written_into_an_array() -> None:
    out = np.empty(5)
    assert window_sum(np.arange(5.0), [Sweep(0, 5, 0, 1)], out).values is out
    assert out.tolist() == [1.0, 3.0, 5.0, 7.0, 4.0]
    with pytest.raises(ValueError, match="contiguous float64 array of shape"):
        window_sum(np.arange(5.0), [Sweep(0, 4, 0, 1)], out)
