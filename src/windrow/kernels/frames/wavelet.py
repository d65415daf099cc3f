"""Order statistics of arbitrary frames: wavelet matrices over the ranks of blocks of rows.

Level by level, from the highest bit of the ranks, rows are parted into those whose bit is 0 and those whose bit is 1,
and how many zeros there are before each row is kept. The k-th smallest rank of a range of rows is found by following
the range down the levels, in a step for each bit however long the range is. Frames are taken by their start, so that
blocks of little more than the longest frame serve many of them, and stay in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.bits import count_bits
from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.contract.outcomes import RankArrays, rank_arrays
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.blocks import Room, block_end, rank_rows, room
from windrow.kernels.frames.paths import AS_THEY_COME, order_by, rises
from windrow.kernels.frames.spans import Spans
from windrow.kernels.order.direct import between

Array = npt.NDArray[Any]


def wavelet_select(keys: Array, spans: Spans, ranks: RankTable) -> Array:
    """The order statistic of every frame, as a float64 if ``ranks`` interpolates, else as a key."""
    out = np.zeros(spans.count, np.float64 if ranks.interpolates else keys.dtype)
    space = room(keys, spans.most)
    levels = max(1, (len(space.values) - 1).bit_length())
    words = np.zeros((levels, (len(space.values) >> 6) + 1, 2), np.uint64)  # bits, and how many zeros come before
    start = spans.begin.min(0)
    order = AS_THEY_COME if rises(start) else order_by(start, spans.rows)
    _select(keys, spans.begin, spans.end, order, rank_arrays(ranks), ranks.interpolates, space, words, out)
    return out


@kernel
def _select(
    keys: Array, begin: Array, end: Array, order: Array, tables: RankArrays, interpolates: bool, space: Room,
    words: Array, out: Array,
) -> None:  # fmt: skip
    limit = len(space.values) - 1
    zeros = np.zeros(len(words), np.int64)
    spare, ones = np.empty(limit + 1, np.uint32), np.empty(limit + 1, np.uint32)
    start = np.int64(0)
    while start < len(out):
        stop, low, high = block_end(begin, end, order, start, limit)
        rank_rows(keys, low, high, space)
        levels = _build(space.ranks[: high - low], spare, ones, words, zeros)
        _answer(
            words, zeros[:levels], space.ordered, begin, end, order, start, stop, low, tables.lower, tables.upper,
            tables.weight, tables.each, interpolates, out,
        )  # fmt: skip
        start = stop


@inner
def _build(ranks: Array, spare: Array, ones: Array, words: Array, zeros: Array) -> Any:
    """Fill the levels; how many there are."""
    count = len(ranks)
    levels = np.int64(0)
    while np.int64(1) << levels < count:
        levels += 1
    for level in range(levels):
        shift = np.uint32(levels - 1 - level)
        left = right = np.int64(0)
        for first in range(0, count, 64):
            word = np.uint64(0)
            words[level, first >> 6, 1] = left
            for k in range(first, min(first + 64, count)):
                rank = ranks[np.uint64(k)]
                bit = np.int64(rank >> shift) & 1
                word |= np.uint64(bit) << np.uint64(k - first)
                # Both places are written and only one is kept: a branch here could not be predicted.
                spare[np.uint64(left)] = rank
                ones[np.uint64(right)] = rank
                left += 1 - bit
                right += bit
            words[level, first >> 6, 0] = word
        if count & 63 == 0:
            words[level, count >> 6, 0], words[level, count >> 6, 1] = 0, left
        zeros[level] = left
        ranks[:left] = spare[:left]
        ranks[left:] = ones[:right]
    return levels


@inner
def _zeros_before(words: Array, level: int, row: int) -> Any:
    """How many of the rows before one have a 0 at a level."""
    word = np.uint64(row >> 6)
    below = (np.uint64(1) << np.uint64(row & 63)) - np.uint64(1)
    return np.int64(words[level, word, 1]) + count_bits(~words[level, word, 0] & below)


@inner
def _answer(
    words: Array, zeros: Array, ordered: Array, begin: Array, end: Array, order: Array, start: int, stop: int, low: int,
    lower: Array, upper: Array, weight: Array, each: bool, interpolates: bool, out: Array,
) -> None:  # fmt: skip
    ranges = len(begin)
    first, last = np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
    other_first, other_last = np.zeros(ranges, np.int64), np.zeros(ranges, np.int64)
    for j in range(start, stop):
        k = order[j] if len(order) else j
        size = np.int64(0)
        for r in range(ranges):
            empty = begin[r, k] >= end[r, k]
            first[r] = 0 if empty else begin[r, k] - low
            last[r] = 0 if empty else end[r, k] - low
            size += last[r] - first[r]
        if size == 0:
            continue
        at = k if each else size
        both = interpolates and upper[at] > lower[at]
        place, other = _two(words, zeros, first, last, other_first, other_last, np.int64(lower[at]), both)
        if interpolates:
            out[k] = between(np.float64(ordered[place]), np.float64(ordered[other]), weight[at])
        else:
            out[k] = ordered[place]


@inner
def _two(
    words: Array, zeros: Array, first: Array, last: Array, other_first: Array, other_last: Array, rank: int, both: bool
) -> Any:
    """The value of a rank in ranges of rows and, if ``both``, that of the next rank; they share most of the descent."""
    found = other = np.int64(0)
    ranges = len(first)
    parted = np.int64(-1)
    for level in range(len(zeros)):
        small = np.int64(0)
        for r in range(ranges):
            other_first[r] = _zeros_before(words, level, first[r])
            other_last[r] = _zeros_before(words, level, last[r])
            small += other_last[r] - other_first[r]
        found *= 2
        if rank < small:
            if both and rank + 1 == small:
                for r in range(ranges):
                    first[r] += zeros[level] - other_first[r]
                    last[r] += zeros[level] - other_last[r]
                parted, other = level, found + 1
                break
            for r in range(ranges):
                first[r], last[r] = other_first[r], other_last[r]
        else:
            rank -= small
            found += 1
            for r in range(ranges):
                first[r] += zeros[level] - other_first[r]
                last[r] += zeros[level] - other_last[r]
    if parted < 0:
        return found, found
    # One is the largest among the zeros, the other the smallest among the ones.
    low = _extreme(words, zeros, parted + 1, found, other_first, other_last, True)
    return low, _extreme(words, zeros, parted + 1, other, first, last, False)


@inner
def _extreme(words: Array, zeros: Array, begin: int, found: int, first: Array, last: Array, largest: bool) -> Any:
    """The largest or smallest rank of ranges of rows, from a level on."""
    for level in range(begin, len(zeros)):
        small = large = np.int64(0)
        for r in range(len(first)):
            zeros_in = _zeros_before(words, level, last[r]) - _zeros_before(words, level, first[r])
            small += zeros_in
            large += last[r] - first[r] - zeros_in
        up = large > 0 if largest else small == 0
        found = 2 * found + np.int64(up)
        for r in range(len(first)):
            low, high = _zeros_before(words, level, first[r]), _zeros_before(words, level, last[r])
            first[r] = zeros[level] + first[r] - low if up else low
            last[r] = zeros[level] + last[r] - high if up else high
    return found
