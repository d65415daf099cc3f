"""Every window on its own: the papers' baseline, and the oracle that faster kernels are held against.

Each cell of each window is visited; a percentile sorts the whole window by quicksort (000 §4.1, 001 §3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.compiler.jit import bare, bare_kernel
from windrow.kernels.compiler.overflow import sum_overflows
from windrow.kernels.contract.geometry import Geometry, geometry, most_cells
from windrow.kernels.contract.outcomes import OPERATIONS, Outcome, RankArrays, prepared, rank_arrays
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep
from windrow.kernels.order.direct import SHORT, between, partition, sort_short
from windrow.kernels.papers.slide import Results

Array = npt.NDArray[Any]

DEEPEST = 64  # the shorter part is sorted first, so that no more than this many are ever kept for later


class Room(NamedTuple):
    """Working memory: four cells, the values of one window, and the ends of parts yet to be sorted."""

    cells: npt.NDArray[np.int64]
    window: Array
    parts: npt.NDArray[np.int64]


def naive_windows(
    operation: str,
    values: Array,
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
) -> Outcome:
    """The result of ``operation`` in every window, and how many present values each window had.

    ``operation`` is sum, squares (of deviations from the mean), min, max, select (by a table of ranks), distinct or
    mode.
    """
    flat, there = prepared(values, present)
    shape = tuple(sweep.count for sweep in sweeps)
    reals, exact, counts = (np.zeros(shape, kind) for kind in (np.float64, flat.dtype, np.int64))
    room = Room(
        np.zeros((4, len(shape)), np.int64),
        np.empty(max(1, most_cells(values.shape, sweeps)), flat.dtype),
        np.zeros((DEEPEST, 2), np.int64),
    )
    results = Results(reals.reshape(-1), exact.reshape(-1), counts.reshape(-1))
    place = geometry(values.shape, sweeps)
    if _windows(OPERATIONS[operation], flat, there, place, rank_arrays(ranks), room, results):
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    return Outcome(reals, exact, counts)


def _every_window(
    operation: int, flat: Array, there: Array, place: Geometry, tables: RankArrays, room: Room, results: Results
) -> bool:
    """Fill in the results; whether an integer sum overflowed."""
    index, lo, hi, cell = room.cells[0], room.cells[1], room.cells[2], room.cells[3]
    ndim = len(index)
    index[:] = 0
    overflowed = False
    for output in range(len(results.counts)):
        for axis in range(ndim):
            lo[axis] = place.lo[axis, index[axis]]
            hi[axis] = place.hi[axis, index[axis]]
        found = _gather(flat, there, place.stride, lo, hi, cell, room.window)
        results.counts[output] = found
        if found > 0:
            overflowed |= reduce_gathered(operation, room, found, tables, results, output)
        axis = ndim - 1
        while axis >= 0:
            index[axis] += 1
            if index[axis] < place.outputs[axis]:
                break
            index[axis] = 0
            axis -= 1
    return overflowed


@bare
def _gather(flat: Array, there: Array, stride: Array, lo: Array, hi: Array, cell: Array, window: Array) -> int:
    """The present values of one box, copied into ``window``; returns how many there are."""
    last = len(lo) - 1
    for axis in range(last + 1):
        if hi[axis] < lo[axis]:
            return 0
        cell[axis] = lo[axis]
    found = 0
    while True:
        offset = 0
        for axis in range(last):
            offset += cell[axis] * stride[axis]
        for at in range(offset + lo[last], offset + hi[last] + 1):
            if there[at]:
                window[found] = flat[at]
                found += 1
        axis = last - 1
        while axis >= 0:
            cell[axis] += 1
            if cell[axis] <= hi[axis]:
                break
            cell[axis] = lo[axis]
            axis -= 1
        if axis < 0:
            return found


@bare
def reduce_gathered(operation: int, room: Room, found: int, tables: RankArrays, results: Results, output: int) -> bool:
    """One aggregate of the gathered values; True if an integer sum overflowed."""
    window = room.window[:found]
    if operation == 0:
        return _sum(window, results, output)
    if operation == 1:
        results.reals[output] = _squares(window)
    elif operation == 2 or operation == 3:
        best = window[0]
        # A branch: a new best is rare, and values that wait for one another would take twice as long.
        for value in window:
            if (operation == 2 and value < best) or (operation == 3 and value > best):
                best = value
        results.exact[output] = best
    else:
        _quicksort(window, room.parts)
        if operation == 4:
            lower, upper = window[tables.lower[found]], window[tables.upper[found]]
            results.exact[output] = lower
            results.reals[output] = between(float(lower), float(upper), tables.weight[found])
        else:
            _runs(operation, window, results, output)
    return False


@bare
def _quicksort(window: Array, parts: Array) -> None:
    """Around the middle of three values, the longer part kept for later; short parts by insertion."""
    low, high, kept = 0, len(window) - 1, 0
    while True:
        while high - low >= SHORT:
            left, right = partition(window, low, high)
            if right - low < high - left:
                parts[kept, 0], parts[kept, 1], high = left, high, right
            else:
                parts[kept, 0], parts[kept, 1], low = low, right, left
            kept += 1
        sort_short(window, low, high)
        if kept == 0:
            return
        kept -= 1
        low, high = parts[kept, 0], parts[kept, 1]


@bare
def _sum(window: Array, results: Results, output: int) -> bool:
    """Floats are summed with a running correction of what rounding lost, integers exactly."""
    total = 0.0
    lost = 0.0
    whole = results.exact[output]
    overflowed = False
    for item in window:
        value = float(item)
        added = total + value
        if abs(total) >= abs(value):
            lost += (total - added) + value
        else:
            lost += (value - added) + total
        total = added
        overflowed |= sum_overflows(whole, item)
        whole += item
    # A sum that met an infinity has nothing to correct, and its correction is not a number.
    results.reals[output] = total + lost if np.isfinite(lost) else total
    results.exact[output] = whole
    return overflowed


@bare
def _squares(window: Array) -> float:
    mean = 0.0
    for value in window:
        mean += float(value) / len(window)
    squares = 0.0
    for value in window:
        squares += (float(value) - mean) ** 2
    return squares


@bare
def _runs(operation: int, window: Array, results: Results, output: int) -> None:
    """Distinct values, or the most frequent one (the smallest of several), of a sorted window."""
    distinct = 1
    run = 1
    longest = 1
    results.exact[output] = window[0]
    for k in range(1, len(window)):
        if window[k] == window[k - 1]:
            run += 1
        else:
            distinct += 1
            run = 1
        if run > longest:
            longest = run
            results.exact[output] = window[k]
    if operation == 5:
        results.reals[output] = distinct


_windows = bare_kernel(_every_window, __name__)
