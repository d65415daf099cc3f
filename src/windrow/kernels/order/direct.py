"""Order statistics window by window: copy what is present, select. Always right; fast where windows are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inlined, inner, kernel

Array = npt.NDArray[Any]

# Below this many values sorting by insertion beats partitioning.
SHORT = 16


@kernel
def select_direct(
    flat: Array, extent: Array, sweeps: Array, lower: Array, upper: Array, weight: Array, interpolates: bool, out: Array
) -> None:
    """Fill ``out`` (flat). ``sweeps`` has a row [first, count, start, stop, step] per axis."""
    axes = len(extent)
    index = np.zeros(axes, np.int64)
    buffer = np.empty(len(lower), flat.dtype)
    box = np.empty((3, axes), np.int64)
    for place in range(len(out)):
        count = _gather(flat, extent, sweeps, index, box, buffer)
        out[place] = _select(buffer, count, lower, upper, weight, interpolates)
        for axis in range(axes - 1, -1, -1):
            index[axis] += 1
            if index[axis] < sweeps[axis, 1]:
                break
            index[axis] = 0


@kernel
def select_listed(
    flat: Array, extent: Array, sweeps: Array, lower: Array, upper: Array, weight: Array, interpolates: bool,
    numbers: Array, out: Array,
) -> None:  # fmt: skip
    """Fill in only the outputs with these numbers (in C order)."""
    index = np.zeros(len(extent), np.int64)
    buffer = np.empty(len(lower), flat.dtype)
    box = np.empty((3, len(extent)), np.int64)
    for number in numbers:
        rest = number
        for axis in range(len(extent) - 1, -1, -1):
            index[axis] = rest % sweeps[axis, 1]
            rest //= sweeps[axis, 1]
        count = _gather(flat, extent, sweeps, index, box, buffer)
        out[number] = _select(buffer, count, lower, upper, weight, interpolates)


@inner
def _select(buffer: Array, count: int, lower: Array, upper: Array, weight: Array, interpolates: bool) -> Any:
    """The result for the first ``count`` values in ``buffer``."""
    if count == 0:
        return np.nan
    value = np.float64(_nth(buffer, np.int64(0), count, lower[count]))
    if not interpolates:
        return value + 0.0
    other = value
    if upper[count] > lower[count]:
        # After selection everything behind the rank is at least as large.
        other = np.float64(_nth(buffer, lower[count] + 1, count, upper[count]))
    return between(value, other, weight[count])


@inlined
def between(value: float, other: float, weight: float) -> float:
    """The point at ``weight`` of the way; infinite or overflowing distances give what they should, not NaN."""
    if weight == 0.0 or value == other:
        return value + 0.0
    distance = other - value
    if np.isfinite(distance):
        return value + weight * distance
    return value * (1.0 - weight) + other * weight


@inner
def _gather(flat: Array, extent: Array, sweeps: Array, index: Array, box: Array, buffer: Array) -> int:
    """Copy the present values of one window into ``buffer``; how many there are. ``box`` is room for three cells."""
    axes = len(extent)
    lo, hi, cell = box[0], box[1], box[2]
    for axis in range(axes):
        position = sweeps[axis, 0] + index[axis] * sweeps[axis, 4]
        lo[axis] = max(position + sweeps[axis, 2], 0)
        hi[axis] = min(position + sweeps[axis, 3], extent[axis] - 1)
        if lo[axis] > hi[axis]:
            return 0
        cell[axis] = lo[axis]
    count = 0
    while True:
        row = np.int64(0)
        for axis in range(axes - 1):
            row = (row + cell[axis]) * extent[axis + 1]
        for place in range(row + lo[axes - 1], row + hi[axes - 1] + 1):
            value = flat[place]
            buffer[count] = value
            count += value == value
        axis = axes - 2
        while axis >= 0:
            cell[axis] += 1
            if cell[axis] <= hi[axis]:
                break
            cell[axis] = lo[axis]
            axis -= 1
        if axis < 0:
            return count


@inner
def _nth(values: Array, begin: int, end: int, rank: int) -> Any:
    """What a sort of ``values[begin:end]`` would put at ``rank``; they are reordered around it (quickselect)."""
    low, high = begin, end - 1
    while high - low >= SHORT:
        left, right = partition(values, low, high)
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            return values[rank]
    sort_short(values, low, high)
    return values[rank]


@inlined
def partition(values: Array, low: int, high: int) -> tuple[int, int]:
    """Part ``values[low:high + 1]`` around the middle of three: up to the second place none is larger than it, from the
    first on none smaller.
    """
    pivot = _middle(values[low], values[(low + high) >> 1], values[high])
    left, right = low, high
    while left <= right:
        while values[left] < pivot:
            left += 1
        while pivot < values[right]:
            right -= 1
        if left <= right:
            values[left], values[right] = values[right], values[left]
            left += 1
            right -= 1
    return left, right


@inlined
def sort_short(values: Array, low: int, high: int) -> None:
    """Sort ``values[low:high + 1]`` by insertion."""
    for place in range(low + 1, high + 1):
        value = values[place]
        gap = place
        while gap > low and values[gap - 1] > value:
            values[gap] = values[gap - 1]
            gap -= 1
        values[gap] = value


@inlined
def _middle(a: Any, b: Any, c: Any) -> Any:
    return max(min(a, b), min(max(a, b), c))
