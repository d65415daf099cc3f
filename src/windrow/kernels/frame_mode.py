"""Modes of frames by counters: frames slide over the values, and how often each occurs is counted.

How many values have each count is kept too, so that the largest count is always known. The mode is the first value with
that count: the last answer holds until that value loses a row or a smaller one draws level, and then a scan finds the
next. With many values, these are ranked block by block, and a tournament of counts takes the place of the scan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from windrow.kernels.frame_blocks import Room, block_end, rank_rows, room
from windrow.kernels.frame_codes import span_of
from windrow.kernels.frame_lanes import fit_lanes, lane_modes
from windrow.kernels.frame_order import best_path
from windrow.kernels.frame_short import LONGEST, short_modes
from windrow.kernels.frame_spans import Spans, uncut
from windrow.kernels.frame_survey import bounds_at
from windrow.kernels.jit import inner, kernel
from windrow.kernels.keys import keys_of

Array = npt.NDArray[Any]

FEW = 1 << 10
"""Counters of so many values are quickly scanned."""
SIDE_BY_SIDE = 1 << 12
"""Rows of windows that are counted side by side; with more, to begin takes too long."""
TOGETHER = 32
"""Counters that a scan looks at together."""
UNKNOWN = -1


def mode_frames(values: Array, spans: Spans) -> Array:
    """The most frequent value of each frame, the smallest of several; what stands for an empty frame means nothing."""
    close = span_of(values)
    path = best_path(spans)
    if close is not None and close[1] <= FEW:
        modes = np.zeros(spans.count, np.int64)
        having = np.zeros(spans.most + 2, np.int32)  # how many values have each count
        # The fewer bytes there are to scan, the better; a multiple of what is looked at together.
        counts = np.zeros(-(-close[1] // TOGETHER) * TOGETHER, np.uint8 if spans.most < 255 else np.int32)
        bits = values.view(np.int64)
        if spans.most <= LONGEST and spans.offsets is not None:
            _side_by_side(short_modes, bits, close, counts, spans, having, modes)
        elif fit_lanes(spans, close[1], SIDE_BY_SIDE):
            _side_by_side(lane_modes, bits, close, counts, spans, having, modes)
        elif spans.whole and not len(path.order):
            _slide_one(bits, close[0], counts, *spans.one_range(), having, modes)
        else:
            _slide(bits, close[0], counts, spans.begin, spans.end, path.order, having, modes)
        return modes.view(values.dtype)
    keys = keys_of(values, None)
    found = np.zeros(spans.count, keys.floats.dtype)
    _slide_blocks(keys.floats, spans.begin, spans.end, path.order, room(keys.floats, spans.most), found)
    return keys.values(found)[0]


def _side_by_side(
    way: Callable[..., None], values: Array, close: tuple[int, int], counts: Array, spans: Spans, having: Array,
    modes: Array,
) -> None:  # fmt: skip
    """Whole windows side by side, and one after the other those that are cut off at either end."""
    start, stop = spans.offsets or (0, 0)
    first, last = uncut(spans)
    way(values[first + start :], *close, stop - start + 1, modes[first:last])
    for part in (slice(0, first), slice(last, spans.count)):
        counts[:] = 0
        having[:] = 0
        _slide_one(values, close[0], counts, *spans.one_range(part.start), having, modes[part])


@numba.njit(nogil=True, inline="always")
def _added(code: Any, counts: Array, having: Array, best: int, mode: int) -> Any:
    """Count a row in; the largest count, and the first value that has it, if known."""
    times = np.int64(counts[code]) + 1
    counts[code] = times
    having[np.uint64(times - 1)] -= 1
    having[np.uint64(times)] += 1
    if times > best:
        best, mode = np.int64(times), np.int64(code)
    elif times == best and np.int64(code) < mode:
        mode = np.int64(code)
    return best, mode


@numba.njit(nogil=True, inline="always")
def _removed(code: Any, counts: Array, having: Array, best: int, mode: int) -> Any:
    """Count a row out."""
    times = np.int64(counts[code])
    counts[code] = times - 1
    having[np.uint64(times)] -= 1
    having[np.uint64(times - 1)] += 1
    if times == best:
        if having[np.uint64(times)] == 0:
            # This value alone had the largest count, and leads still if no other has the next.
            best -= 1
            mode = mode if having[np.uint64(best)] == 1 else np.int64(UNKNOWN)
        elif np.int64(code) == mode:
            mode = np.int64(UNKNOWN)
    return best, mode


@kernel
def _slide_one(
    values: Array, low: int, counts: Array, begin: Array, end: Array, start: int, stop: int, having: Array, modes: Array
) -> None:
    """One range, frames as they come."""
    first = last = best = np.int64(0)
    mode = np.int64(UNKNOWN)
    for k in range(len(modes)):
        lo, hi = bounds_at(begin, end, start, stop, len(values), k)
        if lo >= last or hi <= first:
            while first < last:
                counts[np.uint64(values[np.uint64(first)] - low)] = 0
                first += 1
            having[: best + 1] = 0
            first, last, best, mode = lo, lo, np.int64(0), np.int64(UNKNOWN)
        while first < lo:
            best, mode = _removed(np.uint64(values[np.uint64(first)] - low), counts, having, best, mode)
            first += 1
        while last > hi:
            last -= 1
            best, mode = _removed(np.uint64(values[np.uint64(last)] - low), counts, having, best, mode)
        while last < hi:
            best, mode = _added(np.uint64(values[np.uint64(last)] - low), counts, having, best, mode)
            last += 1
        while first > lo:
            first -= 1
            best, mode = _added(np.uint64(values[np.uint64(first)] - low), counts, having, best, mode)
        if lo < hi:
            if mode == UNKNOWN:
                mode = _first_with(counts, counts.dtype.type(best))
            modes[k] = mode + low


@kernel
def _slide(
    values: Array, low: int, counts: Array, begin: Array, end: Array, order: Array, having: Array, modes: Array
) -> None:
    """Any ranges in any order."""
    ranges = len(begin)
    first, last = np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
    best, mode = np.int64(0), np.int64(UNKNOWN)
    for j in range(len(modes)):
        k = order[j] if len(order) else j
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            for row in range(first[r], min(last[r], lo)):
                best, mode = _removed(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
            for row in range(max(first[r], hi), last[r]):
                best, mode = _removed(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            for row in range(lo, min(hi, first[r])):
                best, mode = _added(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
            for row in range(max(lo, last[r]), hi):
                best, mode = _added(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
            first[r], last[r] = lo, hi
        if best > 0:
            if mode == UNKNOWN:
                mode = _first_with(counts, counts.dtype.type(best))
            modes[k] = mode + low


@inner
def _first_with(counts: Array, times: Any) -> Any:
    """The first counter that stands at ``times``."""
    for start in range(0, len(counts), TOGETHER):
        found = False
        for k in range(start, start + TOGETHER):
            found |= counts[np.uint64(k)] == times
        if found:
            for k in range(start, start + TOGETHER):
                if counts[np.uint64(k)] == times:
                    return k
    return UNKNOWN


@kernel
def _slide_blocks(keys: Array, begin: Array, end: Array, order: Array, space: Room, out: Array) -> None:
    limit = len(space.values) - 1
    leaves = np.int64(1)
    while leaves < limit:
        leaves *= 2
    tournament = np.zeros(2 * leaves, np.int32)
    start = np.int64(0)
    while start < len(out):
        stop, low, high = block_end(begin, end, order, start, limit)
        rank_rows(keys, low, high, space)
        distinct = _merge_equal(space.ranks, space.ordered, space.spare, high - low)
        leaves = np.int64(1)
        while leaves < distinct:
            leaves *= 2
        tournament[: 2 * leaves] = 0
        _sweep(space.ranks, space.ordered, tournament, leaves, begin, end, order, start, stop, low, out)
        start = stop


@inner
def _merge_equal(ranks: Array, ordered: Array, number: Array, count: int) -> Any:
    """Give equal values one rank; how many ranks are left."""
    distinct = np.int64(0)
    for rank in range(count):
        value = ordered[rank]
        if rank == 0 or value != ordered[distinct - 1]:
            ordered[distinct] = value
            distinct += 1
        number[rank] = distinct - 1
    for row in range(count):
        ranks[row] = number[ranks[row]]
    return distinct


@inner
def _sweep(
    ranks: Array, ordered: Array, tournament: Array, leaves: int, begin: Array, end: Array, order: Array, start: int,
    stop: int, low: int, out: Array,
) -> None:  # fmt: skip
    ranges = len(begin)
    first, last = np.full(ranges, low, np.int64), np.full(ranges, low, np.int64)
    for j in range(start, stop):
        k = order[j] if len(order) else j
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            if lo >= hi:
                lo = hi = last[r]  # an empty range may lie outside the block
            _change(ranks, leaves, first[r] - low, min(last[r], lo) - low, tournament, np.int32(-1))
            _change(ranks, leaves, max(first[r], hi) - low, last[r] - low, tournament, np.int32(-1))
            _change(ranks, leaves, max(last[r], lo) - low, hi - low, tournament, np.int32(1))
            _change(ranks, leaves, lo - low, min(first[r], hi) - low, tournament, np.int32(1))
            first[r], last[r] = lo, hi
        if tournament[1] > 0:
            out[k] = ordered[_leader(tournament, leaves)]


@inner
def _change(ranks: Array, leaves: int, first: int, last: int, tournament: Array, by: int) -> None:
    """Count rows in or out, and let each change climb while it changes the leading count."""
    for row in range(first, last):
        node = np.int64(ranks[np.uint64(row)]) + leaves
        tournament[np.uint64(node)] += by
        node >>= 1
        while node >= 1:
            lead = max(tournament[np.uint64(2 * node)], tournament[np.uint64(2 * node + 1)])
            if tournament[np.uint64(node)] == lead:
                break
            tournament[np.uint64(node)] = lead
            node >>= 1


@inner
def _leader(tournament: Array, leaves: int) -> Any:
    """The smallest value among the most frequent ones."""
    node, lead = np.int64(1), tournament[1]
    while node < leaves:
        node = 2 * node + np.int64(tournament[np.uint64(2 * node)] != lead)
    return node - leaves
