"""One look at many frames, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inlined, inner, kernel

Array = npt.NDArray[Any]

TOGETHER = 1024
"""Frames that are compared before it is asked whether any was different."""


@kernel
def survey_one(lo: Array, hi: Array, rows: int) -> Any:
    """The ``Survey`` of frames of one range each, cut off at the first and the last row.

    The numbers after it describe frames before they are cut off: the first and last start, the least and greatest
    length, and whether any reaches beyond the rows or ends before it starts.
    """
    begin, end = _cut(lo[0], hi[0], rows)
    first, last = begin, end
    fewest = most = end - begin
    moves = shifted = np.int64(0)
    least_start = most_start = lo[0]
    shortest = longest = hi[0] - lo[0]
    last_stop = hi[0]
    for k in range(1, len(lo)):
        low, high = _cut(lo[k], hi[k], rows)
        before, after = _cut(lo[k - 1], hi[k - 1], rows)
        size = high - low
        moved = abs(low - before) + abs(high - after)
        moves += min(moved, size + after - before)
        shifted += moved
        first, last = min(first, low), max(last, high)
        fewest, most = min(fewest, size), max(most, size)
        least_start, most_start = min(least_start, lo[k]), max(most_start, lo[k])
        shortest, longest = min(shortest, hi[k] - lo[k]), max(longest, hi[k] - lo[k])
        last_stop = max(last_stop, hi[k])
    outside = least_start < 0 or last_stop > rows or shortest < 0
    return (first, last, fewest, most, moves, shifted), (least_start, most_start, shortest, longest, outside)


@inlined
def bounds_at(begin: Array, end: Array, start: int, stop: int, rows: int, k: int) -> Any:
    """The bounds of frame k, which are in arrays or, if those are empty, at offsets from k; see ``Spans.one_range``."""
    if len(begin) > 0:
        return begin[k], end[k]
    low = min(max(np.int64(k + start), np.int64(0)), np.int64(rows))
    return low, min(max(np.int64(k + stop + 1), low), np.int64(rows))


@inner
def _cut(lo: int, hi: int, rows: int) -> Any:
    begin = min(max(lo, np.int64(0)), np.int64(rows))
    return begin, min(max(hi, begin), np.int64(rows))


@kernel
def cut_off(lo: Array, hi: Array, rows: int, begin: Array, end: Array) -> None:
    """Bounds without what lies beyond the rows."""
    for k in range(len(lo)):
        begin[k], end[k] = _cut(lo[k], hi[k], rows)


@kernel
def window_bounds(start: int, stop: int, rows: int, begin: Array, end: Array) -> None:
    """Where windows begin and end."""
    for k in range(len(begin)):
        begin[k], end[k] = _cut(np.int64(k + start), np.int64(k + stop + 1), rows)


@kernel
def are_windows(lo: Array, hi: Array, start: int, stop: int, rows: int) -> bool:
    """Whether frame k holds the rows from k + start to k + stop, as far as there are any."""
    count = len(lo)
    whole = min(max(0, -start), count)
    cut = max(whole, min(count, rows - stop))
    for first in range(whole, cut, TOGETHER):
        different = np.int64(0)
        for k in range(first, min(first + TOGETHER, cut)):
            different |= (lo[k] - k - start) | (hi[k] - k - (stop + 1))
        if different != 0:
            return False
    return _are_cut(lo, hi, start, stop, rows, 0, whole) and _are_cut(lo, hi, start, stop, rows, cut, count)


@inner
def _are_cut(lo: Array, hi: Array, start: int, stop: int, rows: int, first: int, last: int) -> bool:
    for k in range(first, last):
        begin, end = _cut(lo[k], hi[k], rows)
        low, high = _cut(np.int64(k + start), np.int64(k + stop + 1), rows)
        # Of an empty frame it does not matter where it is.
        if (begin != low or end != high) and (begin < end or low < high):
            return False
    return True


@kernel
def survey_several(begin: Array, end: Array) -> Any:
    """The ``Survey`` of frames of several ranges."""
    first, last = begin.min(), end.max()
    most, fewest = np.int64(0), np.int64(2**62)
    moves = shifted = np.int64(0)
    for k in range(begin.shape[1]):
        size = np.int64(0)
        for r in range(len(begin)):
            size += end[r, k] - begin[r, k]
            if k > 0:
                moved = abs(begin[r, k] - begin[r, k - 1]) + abs(end[r, k] - end[r, k - 1])
                anew = end[r, k] - begin[r, k] + end[r, k - 1] - begin[r, k - 1]
                moves += min(moved, anew)
                shifted += moved
        fewest, most = min(fewest, size), max(most, size)
    return first, last, fewest, most, moves, shifted
