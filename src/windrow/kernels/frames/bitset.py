"""Order statistics of frames that slide over many different values: a frame is a set of ranks, one bit each.

Values are ranked block by block. Rows that come and go set and clear bits, and the wanted rank is found by counting
bits from where it was last time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.bits import lowest_bit, select_bit, walk
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
    start = np.int64(0)
    while start < len(out):
        stop, low, high = block_end(begin, end, order, start, limit)
        rank_rows(keys, low, high, space)
        bits[: (high - low) // 64 + 2] = 0
        _sweep(
            space.ranks, space.ordered, bits, begin, end, order, start, stop, low, tables.lower, tables.upper,
            tables.weight, tables.each, interpolates, out,
        )  # fmt: skip
        start = stop


@inner
def _sweep(
    ranks: Array, ordered: Array, bits: Array, begin: Array, end: Array, order: Array, start: int, stop: int, low: int,
    lower: Array, upper: Array, weight: Array, each: bool, interpolates: bool, out: Array,
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
        at = k if each else count
        rank = np.int64(lower[at])
        word, below = walk(bits, word, below, rank)
        bit = select_bit(bits[np.uint64(word)], rank - below)
        value = ordered[word * 64 + bit]
        if interpolates:
            other = value
            if upper[at] > rank:
                other = ordered[_next(bits, word, bit)]
            out[k] = between(np.float64(value), np.float64(other), weight[at])
        else:
            out[k] = value


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
