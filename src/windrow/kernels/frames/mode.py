"""Modes of frames: the most frequent value, the smallest of several; what stands for an empty frame means nothing.

Frames slide over the values, and how often each occurs is counted. How many values have each count is kept too, so that
the largest count is always known. The mode is the first value with that count: the last answer holds until that value
loses a row or a smaller one draws level, and then a scan finds the next. With many values, these are ranked block by
block, and a tournament of counts takes the place of the scan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inlined, inner, kernel
from windrow.kernels.contract.keys import keys_of
from windrow.kernels.frames.blocks import Room, block_end, rank_rows, room
from windrow.kernels.frames.spans import Spans, find_uncut
from windrow.kernels.frames.survey import bounds_at

Array = npt.NDArray[Any]

TOGETHER = 32
"""Counters that a scan looks at together."""
UNKNOWN = -1


def mode_side_by_side(way: Callable[..., None], values: Array, close: tuple[int, int], spans: Spans) -> Array:
    """The modes of windows of whole numbers that lie close together.

    Whole windows by ``way``, many side by side, and one after the other those that are cut off at either end.
    """
    modes, bits = np.zeros(spans.count, np.int64), values.view(np.int64)
    start, stop = spans.offsets or (0, 0)
    first, last = find_uncut(spans)
    way(bits[first + start :], *close, stop - start + 1, modes[first:last])
    for part in (slice(0, first), slice(last, spans.count)):
        _slide_one(bits, close[0], *_counters(close, spans, part.start), modes[part])
    return modes.view(values.dtype)


def mode_by_counters(values: Array, close: tuple[int, int], spans: Spans, order: Array) -> Array:
    """The modes of whole numbers that lie close together, while frames slide in some order."""
    modes, bits = np.zeros(spans.count, np.int64), values.view(np.int64)
    if spans.whole and not len(order):
        _slide_one(bits, close[0], *_counters(close, spans, 0), modes)
    else:
        counts, _, _, _, _, having = _counters(close, spans, 0)
        _slide(bits, close[0], counts, spans.begin, spans.end, order, having, modes)
    return modes.view(values.dtype)


def _counters(close: tuple[int, int], spans: Spans, first: int) -> tuple[Array, Array, Array, int, int, Array]:
    """Empty counters, the frames from one on, and how many values have each count."""
    # The fewer bytes there are to scan, the better; a multiple of what is looked at together.
    counts = np.zeros(-(-close[1] // TOGETHER) * TOGETHER, np.uint8 if spans.most < 255 else np.int32)
    return counts, *spans.one_range(first), np.zeros(spans.most + 2, np.int32)


def mode_by_blocks(values: Array, spans: Spans, order: Array) -> Array:
    """The modes of any values, ranked block by block."""
    keys = keys_of(values, None)
    found = np.zeros(spans.count, keys.floats.dtype)
    _slide_blocks(keys.floats, spans.begin, spans.end, order, room(keys.floats, spans.most), found)
    return keys.values(found)[0]


@inlined
def _count_in(code: Any, counts: Array, having: Array, best: int, mode: int) -> Any:
    """Count a row in; returns the largest count, and the first value that has it, if known."""
    times = np.int64(counts[code]) + 1
    counts[code] = times
    having[np.uint64(times - 1)] -= 1
    having[np.uint64(times)] += 1
    if times > best:
        best, mode = np.int64(times), np.int64(code)
    elif times == best and np.int64(code) < mode:
        mode = np.int64(code)
    return best, mode


@inlined
def _count_out(code: Any, counts: Array, having: Array, best: int, mode: int) -> Any:
    """Count a row out; returns the same."""
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
            best, mode = _count_out(np.uint64(values[np.uint64(first)] - low), counts, having, best, mode)
            first += 1
        while last > hi:
            last -= 1
            best, mode = _count_out(np.uint64(values[np.uint64(last)] - low), counts, having, best, mode)
        while last < hi:
            best, mode = _count_in(np.uint64(values[np.uint64(last)] - low), counts, having, best, mode)
            last += 1
        while first > lo:
            first -= 1
            best, mode = _count_in(np.uint64(values[np.uint64(first)] - low), counts, having, best, mode)
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
                best, mode = _count_out(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
            for row in range(max(first[r], hi), last[r]):
                best, mode = _count_out(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            for row in range(lo, min(hi, first[r])):
                best, mode = _count_in(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
            for row in range(max(lo, last[r]), hi):
                best, mode = _count_in(np.uint64(values[np.uint64(row)] - low), counts, having, best, mode)
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
