"""Windows over rows and columns, one cell apart, against each window cut out and reduced by NumPy."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windrow.kernels.compiler.vectors import vector_bytes
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.scans.divide import divide
from windrow.kernels.scans.loops import Merge
from windrow.kernels.scans.widening import widening
from windrow.kernels.scans.windows import (
    averages_directly,
    window_average,
    window_count,
    window_max,
    window_min,
    window_total,
)

FLOATS = ("float64", "float32")
WHOLE = ("int64", "int32", "int16", "uint8")


@st.composite
def planes(draw: st.DrawFn, kinds: tuple[str, ...]) -> tuple[Any, list[Sweep]]:
    """Often whole lines of cells, often not; often more rows than are merged directly."""
    shape = (draw(st.sampled_from([1, 2, 5, 23, 60])), draw(st.sampled_from([1, 7, 8, 9, 31, 64, 130, 200])))
    sweeps = []
    for cells, widths in zip(shape, ([2, 3, 5, 12, 13, 14, 29], [2, 3, 4, 5, 9, 21, 40, 70]), strict=True):
        width = draw(st.sampled_from(widths))
        start = draw(st.integers(-width - 3, 4))
        first, count = draw(st.sampled_from([(0, cells), (0, cells), (-5, cells + 9), (cells // 2, 10)]))
        sweeps.append(Sweep(first, count, start, start + width - 1))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(kinds))
    values = random.integers(0, 50, shape).astype(kind)
    if kind in FLOATS:
        values = (values - 25) / np.array(7, kind)
        for odd, share in (
            (np.nan, draw(st.sampled_from([0, 0.02, 0.3, 1]))),
            (np.inf, draw(st.sampled_from([0, 0.01]))),
        ):
            values[random.random(shape) < share] = odd
    return values, sweeps


def windows(values: Any, sweeps: list[Sweep]) -> Iterator[tuple[tuple[int, int], Any]]:
    """Some outputs' indices, and the present cells of their windows as float64 or int64."""
    ends = [sweep.clipped(cells) for sweep, cells in zip(sweeps, values.shape, strict=True)]
    for number in range(0, sweeps[0].count * sweeps[1].count, 7):
        index = divmod(number, sweeps[1].count)
        (low, high), (left, right) = ((lo[k], hi[k]) for (lo, hi), k in zip(ends, index, strict=True))
        cells = values[low : max(high + 1, low), left : max(right + 1, left)].ravel()
        if values.dtype.kind == "f":
            yield index, cells[~np.isnan(cells)].astype(np.float64)
        else:
            yield index, cells.astype(np.int64)


@settings(deadline=None)
@given(planes(FLOATS))
@example((np.full((30, 40), -0.0), [Sweep(0, 30, 0, 2), Sweep(0, 40, 0, 2)]))
def test_floats(problem: tuple[Any, list[Sweep]]) -> None:
    values, sweeps = problem
    sums, averages = window_total(values, sweeps), window_average(values, sweeps)
    smallest, largest, counts = window_min(values, sweeps), window_max(values, sweeps), window_count(values, sweeps)
    for index, cells in windows(values, sweeps):
        assert counts[index] == len(cells)
        for found in (sums, averages, smallest, largest):
            assert (found.empty is not None and bool(found.empty[index])) == (not len(cells))
        if not len(cells):
            continue
        exact = math.fsum(cells) if np.isfinite(cells).all() else math.inf
        size = math.fsum(np.abs(cells))
        for found, expected, scale in ((sums, exact, size), (averages, exact / len(cells), size / len(cells))):
            got = found.values[index]
            assert got == expected or abs(got - expected) <= 1e-12 * scale
        assert smallest.values[index] == cells.min()
        assert largest.values[index] == cells.max()
        assert not np.signbit(largest.values[index]) or cells.max() < 0


@settings(deadline=None)
@given(planes(WHOLE))
def test_whole_numbers(problem: tuple[Any, list[Sweep]]) -> None:
    values, sweeps = problem
    sums, smallest, largest = window_total(values, sweeps), window_min(values, sweeps), window_max(values, sweeps)
    averages = window_average(values, sweeps) if averages_directly(values.dtype, 29 * 70) else None
    for index, cells in windows(values, sweeps):
        assert sums.values[index] == cells.sum()
        assert (sums.empty is not None and bool(sums.empty[index])) == (not len(cells))
        if len(cells):
            if averages is not None:
                assert math.isclose(averages.values[index], cells.sum() / len(cells), rel_tol=4e-16)
            assert (smallest.values[index], largest.values[index]) == (cells.min(), cells.max())


@pytest.mark.parametrize("width", [(3, 3), (5, 5), (12, 3), (40, 30), (13, 100)])
def test_wide_rows_are_cut_into_strips(width: tuple[int, int]) -> None:
    values = np.random.default_rng(1).integers(0, 9, (70, 5003)).astype(np.float64)
    values[33, 2500] = np.inf
    sweeps = [Sweep(0, n, -(w // 2), (w - 1) // 2) for n, w in zip(values.shape, width, strict=True)]
    sums, largest = window_total(values, sweeps).values, window_max(values, sweeps).values
    padded = np.pad(values, [(w // 2, (w - 1) // 2) for w in width])
    seen = np.lib.stride_tricks.sliding_window_view(padded, width)[::3, ::41]
    np.testing.assert_array_equal(sums[::3, ::41], seen.sum((2, 3)))
    np.testing.assert_array_equal(largest[::3, ::41], seen.max((2, 3)))
    values[values == 8] = np.nan
    padded = np.pad(values, [(w // 2, (w - 1) // 2) for w in width], constant_values=np.nan)
    seen = np.lib.stride_tricks.sliding_window_view(padded, width)[::3, ::41]
    averages = window_average(values, sweeps)
    np.testing.assert_allclose(averages.values[::3, ::41], np.nanmean(seen, (2, 3)), rtol=1e-14)


def test_constant_averages_are_exact() -> None:
    for height, width in ((3, 3), (7, 7), (25, 25), (13, 41)):
        sweeps = [Sweep(0, 60, 0, height - 1), Sweep(0, 90, 0, width - 1)]
        for constant in (1.0, 0.1, -3.7e200):
            found = window_average(np.full((60, 90), constant), sweeps).values
            np.testing.assert_allclose(found, constant, rtol=2e-14)
        assert (window_average(np.ones((60, 90)), sweeps).values == 1).all()


def test_results_are_the_same_wherever_memory_begins() -> None:
    room = np.empty(40 * 51 + 8)
    values = np.random.default_rng(0).random((40, 51))
    for window in ((3, 3), (14, 30)):
        sweeps = [Sweep(0, n, 0, w - 1) for n, w in zip(values.shape, window, strict=True)]
        expected = window_total(values, sweeps).values
        for begin in range(8):
            room[:] = 7
            out = room[begin : begin + values.size].reshape(values.shape)
            np.testing.assert_array_equal(window_total(values, sweeps, out).values, expected)
            assert (room[:begin] == 7).all()
            assert (room[begin + values.size :] == 7).all()


@pytest.mark.parametrize(("rule", "kind"), [("sum", "<f8"), ("max", "<f4"), ("min", "<i4")])
def test_rows_through_registers(rule: str, kind: str) -> None:
    merge, lanes, items = Merge(rule, kind, kind), vector_bytes() // np.dtype(kind).itemsize, 64 // int(kind[2])
    reduce = {"sum": np.sum, "max": np.max, "min": np.min}[rule]
    row = np.random.default_rng(0).integers(0, 100, 40 * items).astype(kind)
    for width in range(lanes, 9 * lanes):
        to, first, final = np.zeros(9 * items, kind), np.zeros(items, kind), np.zeros(items, kind)
        loop = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)(merge.stretch(width))
        loop(to.ctypes.data, first.ctypes.data, final.ctypes.data, row.ctypes.data, 0, 64 * 4)
        found = np.concatenate([first, to[items : 4 * items], final])
        expected = reduce(np.lib.stride_tricks.sliding_window_view(row, width), axis=1)[: 5 * items]
        np.testing.assert_array_equal(found, expected)
        assert not to[:items].any()
        assert not to[4 * items :].any()


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_division_by_counts(kind: str) -> None:
    for number in (0, 1, 3, 4, 5, 31):
        counts = np.arange(1, number + 1).astype(kind)
        totals = 2.0 * counts
        assert not divide(totals, counts)
        assert (totals == 2).all()
        if number:
            counts[-1] = 0
            assert divide(totals, counts)


@given(st.integers(2, 3000), st.booleans(), st.sampled_from([0, 2, 4, 8]))
def test_levels_lead_to_the_width(width: int, overlaps: bool, lanes: int) -> None:
    covered = {1: [0]}
    for level in widening(width, overlaps, lanes):
        before = np.array(covered[level.before])
        parts = [before + k * level.before for k in range(level.rows)] if level.rows else [np.arange(level.width)]
        if level.extra is not None:
            parts.append((before if overlaps else np.zeros(1, int)) + level.extra)
        cells = np.concatenate(parts)
        covered[level.width] = sorted(set(cells)) if overlaps else sorted(cells)
    assert covered[width] == list(range(width))
