"""Order statistics of frames that slide over many different values: a frame is a set of ranks, one bit each.

Values are ranked block by block. Rows that come and go set and clear bits, and the wanted rank is found by counting
bits from where it was last time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.bits import count_bits, lowest_bit, select_bit, walk
from windrow.kernels.compiler.jit import inlined, inner, kernel
from windrow.kernels.contract.outcomes import RankArrays, rank_arrays
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.blocks import Room, block_end, rank_rows, room
from windrow.kernels.frames.spans import Spans
from windrow.kernels.order.direct import between

Array = npt.NDArray[Any]


def bitset_select(keys: Array, spans: Spans, order: Array, ranks: RankTable) -> Array:
    """The order statistic of every frame, as a float64 if ``ranks`` interpolates, else as a key."""
    out = np.zeros(spans.count, np.float64 if ranks.interpolates else keys.dtype)
    space = room(keys, spans.most)
    _select(keys, spans.begin, spans.end, order, rank_arrays(ranks), ranks.interpolates, space, out)
    return out


@kernel
def _select(
    keys: Array, begin: Array, end: Array, order: Array, tables: RankArrays, interpolates: bool, space: Room, out: Array
) -> None:
    limit = len(space.values) - 1
    bits = np.zeros(limit // 64 + 2, np.uint64)
    shift = np.uint64(0)  # of words to groups: about as many words in a group as there are groups
    while np.uint64(1) << (np.uint64(2) * shift) < np.uint64(len(bits)):
        shift += np.uint64(1)
    start = np.int64(0)
    while start < len(out):
        stop, low, high = block_end(begin, end, order, start, limit)
        rank_rows(keys, low, high, space)
        bits[: (high - low) // 64 + 2] = 0
        if tables.each:
            _sweep_anywhere(
                space.ranks, space.ordered, bits, shift, begin, end, order, start, stop, low, tables, interpolates, out
            )
        else:
            _sweep(
                space.ranks, space.ordered, bits, begin, end, order, start, stop, low, tables.lower, tables.upper,
                tables.weight, interpolates, out,
            )  # fmt: skip
        start = stop


@inner
def _sweep(
    ranks: Array, ordered: Array, bits: Array, begin: Array, end: Array, order: Array, start: int, stop: int, low: int,
    lower: Array, upper: Array, weight: Array, interpolates: bool, out: Array,
) -> None:  # fmt: skip
    """The frames of a block. ``below`` of ``count`` bits are set before ``word``."""
    word = below = count = np.int64(0)
    ranges = len(begin)
    first, last = np.full(ranges, low, np.int64), np.full(ranges, low, np.int64)
    for j in range(start, stop):
        k = order[j] if len(order) else j
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            if lo >= hi:
                lo = hi = last[r]  # an empty range may lie outside the block
            if lo >= last[r] or hi <= first[r]:
                below -= _flip(ranks, bits, first[r] - low, last[r] - low, word)
                count -= last[r] - first[r]
                first[r] = last[r] = lo
            below += _flip(ranks, bits, last[r] - low, hi - low, word)
            below += _flip(ranks, bits, lo - low, first[r] - low, word)
            below -= _flip(ranks, bits, first[r] - low, lo - low, word)
            below -= _flip(ranks, bits, hi - low, last[r] - low, word)
            count += (hi - lo) - (last[r] - first[r])
            first[r], last[r] = lo, hi
        if count == 0:
            continue
        rank = np.int64(lower[count])
        word, below = walk(bits, word, below, rank)
        bit = select_bit(bits[np.uint64(word)], rank - below)
        value = ordered[word * 64 + bit]
        if interpolates:
            other = value
            if upper[count] > rank:
                other = ordered[_next(bits, word, bit)]
            out[k] = between(np.float64(value), np.float64(other), weight[count])
        else:
            out[k] = value


@inner
def _sweep_anywhere(
    ranks: Array, ordered: Array, bits: Array, shift: int, begin: Array, end: Array, order: Array, start: int,
    stop: int, low: int, tables: RankArrays, interpolates: bool, out: Array,
) -> None:  # fmt: skip
    """The frames of a block whose wanted ranks are anywhere: words are counted in groups, and each walk begins anew."""
    groups = np.zeros(np.int64(np.uint64(len(bits)) >> shift) + 2, np.int64)
    ranges, count = len(begin), np.int64(0)
    first, last = np.full(ranges, low, np.int64), np.full(ranges, low, np.int64)
    for j in range(start, stop):
        k = order[j] if len(order) else j
        for r in range(ranges):
            lo, hi = begin[r, k], end[r, k]
            if lo >= hi:
                lo = hi = last[r]  # an empty range may lie outside the block
            if lo >= last[r] or hi <= first[r]:
                _flip_in_groups(ranks, bits, groups, shift, first[r] - low, last[r] - low, np.int64(-1))
                count -= last[r] - first[r]
                first[r] = last[r] = lo
            _flip_in_groups(ranks, bits, groups, shift, last[r] - low, hi - low, np.int64(1))
            _flip_in_groups(ranks, bits, groups, shift, lo - low, first[r] - low, np.int64(1))
            _flip_in_groups(ranks, bits, groups, shift, first[r] - low, lo - low, np.int64(-1))
            _flip_in_groups(ranks, bits, groups, shift, hi - low, last[r] - low, np.int64(-1))
            count += (hi - lo) - (last[r] - first[r])
            first[r], last[r] = lo, hi
        if count == 0:
            continue
        rank = np.int64(tables.lower[np.uint64(k)])
        group = np.uint64(0)
        left = rank
        while left >= groups[group]:
            left -= groups[group]
            group += np.uint64(1)
        word = group << shift
        inside = count_bits(bits[word])
        while left >= inside:
            left -= inside
            word += np.uint64(1)
            inside = count_bits(bits[word])
        bit = select_bit(bits[word], left)
        value = ordered[np.int64(word) * 64 + bit]
        if interpolates:
            other = value
            if tables.upper[np.uint64(k)] > rank:
                other = ordered[_next(bits, np.int64(word), bit)]
            out[k] = between(np.float64(value), np.float64(other), tables.weight[np.uint64(k)])
        else:
            out[k] = value


@inlined
def _flip_in_groups(ranks: Array, bits: Array, groups: Array, shift: int, first: int, last: int, by: int) -> None:
    """Put rows into the set or take them out, and count them in their groups of words."""
    for row in range(first, last):
        rank = np.uint64(ranks[np.uint64(row)])
        word = rank >> np.uint64(6)
        bits[word] ^= np.uint64(1) << (rank & np.uint64(63))
        groups[word >> shift] += by


@inlined
def _flip(ranks: Array, bits: Array, first: int, last: int, word: int) -> Any:
    """Put rows into the set or take them out; how many lie before ``word``."""
    below = np.int64(0)
    for row in range(first, last):
        rank = np.uint64(ranks[np.uint64(row)])
        bits[rank >> np.uint64(6)] ^= np.uint64(1) << (rank & np.uint64(63))
        below += np.int64(rank >> np.uint64(6)) < word
    return below


@inlined
def _next(bits: Array, word: int, bit: int) -> Any:
    """The place of the set bit after one."""
    rest = bits[np.uint64(word)] & ~((np.uint64(2) << np.uint64(bit)) - np.uint64(1))
    while rest == 0:
        word += 1
        rest = bits[np.uint64(word)]
    return word * 64 + lowest_bit(rest)
