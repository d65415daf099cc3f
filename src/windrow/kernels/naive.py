"""Every window on its own: the papers' baseline, and the oracle that faster kernels are held against.

Each cell of each window is visited; a percentile sorts the window by quicksort (000 §4.1, 001 §4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.direct import between
from windrow.kernels.geometry import Geometry, geometry, most_cells
from windrow.kernels.jit import inner, kernel
from windrow.kernels.overflow import sum_overflows
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import OPERATIONS, Outcome, RankArrays, prepared, rank_arrays
from windrow.kernels.sweep import AnySweep

Array = npt.NDArray[Any]


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
    buffer = np.empty(max(1, most_cells(values.shape, sweeps)), flat.dtype)
    tables = rank_arrays(ranks)
    place = geometry(values.shape, sweeps)
    overflowed = _windows(
        OPERATIONS[operation], flat, there, place, tables, buffer, reals.reshape(-1), exact.reshape(-1),
        counts.reshape(-1),
    )  # fmt: skip
    if overflowed:
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    return Outcome(reals, exact, counts)


@kernel
def _windows(
    operation: int, flat: Array, there: Array, place: Geometry, tables: RankArrays, buffer: Array, reals: Array,
    exact: Array, counts: Array,
) -> bool:  # fmt: skip
    ndim = len(place.extent)
    index = np.zeros(ndim, np.int64)
    lo = np.zeros(ndim, np.int64)
    hi = np.zeros(ndim, np.int64)
    cell = np.zeros(ndim, np.int64)
    overflowed = False
    for output in range(len(counts)):
        for axis in range(ndim):
            lo[axis] = place.lo[axis, index[axis]]
            hi[axis] = place.hi[axis, index[axis]]
        found = _gather(flat, there, place.stride, lo, hi, cell, buffer)
        counts[output] = found
        if found > 0:
            overflowed |= _reduce(operation, buffer, found, tables, reals, exact, output)
        axis = ndim - 1
        while axis >= 0:
            index[axis] += 1
            if index[axis] < place.outputs[axis]:
                break
            index[axis] = 0
            axis -= 1
    return overflowed


@inner
def _gather(flat: Array, there: Array, stride: Array, lo: Array, hi: Array, cell: Array, buffer: Array) -> int:
    """The present values of one box, copied into the buffer; returns how many there are."""
    ndim = len(lo)
    for axis in range(ndim):
        if hi[axis] < lo[axis]:
            return 0
        cell[axis] = lo[axis]
    found = 0
    last = ndim - 1
    while True:
        offset = 0
        for axis in range(last):
            offset += cell[axis] * stride[axis]
        for column in range(lo[last], hi[last] + 1):
            if there[offset + column]:
                buffer[found] = flat[offset + column]
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


@inner
def _reduce(
    operation: int, buffer: Array, found: int, tables: RankArrays, reals: Array, exact: Array, output: int
) -> bool:
    """One aggregate of the gathered values; True if an integer sum overflowed."""
    if operation == 0:
        return _sum(buffer, found, reals, exact, output)
    if operation == 1:
        reals[output] = _squares(buffer, found)
    elif operation == 2 or operation == 3:
        best = buffer[0]
        for k in range(1, found):
            if (operation == 2 and buffer[k] < best) or (operation == 3 and buffer[k] > best):
                best = buffer[k]
        exact[output] = best
    else:
        window = buffer[:found]
        window.sort()
        if operation == 4:
            exact[output] = window[tables.lower[found]]
            reals[output] = between(float(exact[output]), float(window[tables.upper[found]]), tables.weight[found])
        else:
            _runs(operation, window, exact, reals, output)
    return False


@inner
def _sum(buffer: Array, found: int, reals: Array, exact: Array, output: int) -> bool:
    """Floats are summed with a running correction of what rounding lost, integers exactly."""
    total = 0.0
    lost = 0.0
    whole = exact[output]
    overflowed = False
    for k in range(found):
        value = float(buffer[k])
        added = total + value
        if abs(total) >= abs(value):
            lost += (total - added) + value
        else:
            lost += (value - added) + total
        total = added
        overflowed |= sum_overflows(whole, buffer[k])
        whole += buffer[k]
    # A sum that met an infinity has nothing to correct, and its correction is not a number.
    reals[output] = total + lost if np.isfinite(lost) else total
    exact[output] = whole
    return overflowed


@inner
def _squares(buffer: Array, found: int) -> float:
    mean = 0.0
    for k in range(found):
        mean += float(buffer[k]) / found
    squares = 0.0
    for k in range(found):
        squares += (float(buffer[k]) - mean) ** 2
    return squares


@inner
def _runs(operation: int, window: Array, exact: Array, reals: Array, output: int) -> None:
    """Distinct values, or the most frequent one (the smallest of several), of a sorted window."""
    distinct = 1
    run = 1
    longest = 1
    exact[output] = window[0]
    for k in range(1, len(window)):
        if window[k] == window[k - 1]:
            run += 1
        else:
            distinct += 1
            run = 1
        if run > longest:
            longest = run
            exact[output] = window[k]
    if operation == 5:
        reals[output] = distinct
