"""Frames in blocks that cover few rows, whose values are ranked once for all frames of the block.

With many different values, counters and bits for all of them would not stay in the cache; ranks within a block do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.bits import rank_values
from windrow.kernels.compiler.jit import inner

Array = npt.NDArray[Any]

SMALLEST = 1 << 14
"""Rows of a block, unless frames are longer than half of it."""


class Room(NamedTuple):
    """Working memory of a block: the values by rank, the rank of each row, and room for sorting."""

    values: Array
    ranks: npt.NDArray[np.uint32]
    ordered: Array
    packed: npt.NDArray[np.uint64]
    spare: npt.NDArray[np.uint64]


def room(keys: Array, most: int) -> Room:
    """Memory for blocks of frames of at most ``most`` rows."""
    rows = min(len(keys), max(SMALLEST, 2 * most)) + 1
    return Room(
        np.empty(rows, keys.dtype), np.empty(rows, np.uint32), np.empty(rows, keys.dtype), np.empty(rows, np.uint64),
        np.empty(rows, np.uint64),
    )  # fmt: skip


@inner
def block_end(begin: Array, end: Array, order: Array, start: int, limit: int) -> Any:
    """Where the block that begins with frame ``start`` ends: the frame after its last one, and the rows it covers."""
    low, high = np.int64(0), np.int64(0)
    stop = start
    while stop < begin.shape[1]:
        k = order[stop] if len(order) else stop
        wide_low, wide_high = low, high
        for r in range(len(begin)):
            if begin[r, k] < end[r, k]:
                if wide_low == wide_high:
                    wide_low, wide_high = begin[r, k], end[r, k]
                wide_low, wide_high = min(wide_low, begin[r, k]), max(wide_high, end[r, k])
        if wide_high - wide_low > limit and stop > start:
            break
        low, high = wide_low, wide_high
        stop += 1
    return stop, low, high


@inner
def rank_rows(keys: Array, low: int, high: int, space: Room) -> None:
    """Rank the rows from ``low`` to before ``high``; equal values get ranks of their own, next to each other."""
    count = high - low
    space.values[:count] = keys[low:high]
    rank_values(space.values, count, space.ranks, space.ordered, space.packed, space.spare)
