"""Sums, minima and maxima of any frames in a few steps each, however long: totals of blocks, and tables over them.

Rows are cut into blocks. Within a block, folds from its first row and to its last row are kept; over the blocks a
disjoint sparse table: level l has folds from the middle of every stretch of 2**(l+1) blocks outwards. A frame is then
the end of one block, the beginning of another, and two folds of the table between; nothing is ever subtracted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.compiler.rounding import corrected
from windrow.kernels.frames.spans import Spans
from windrow.kernels.papers.frame_fold import FOLDS, join, rounding_loss

Array = npt.NDArray[Any]

BLOCK = 32
SHIFT = 5


def fold_ranges(operation: str, values: Array, spans: Spans) -> Array:
    """One value for each frame; what stands for an empty one means nothing, and sums of whole numbers may wrap."""
    out = np.zeros(spans.count, values.dtype)
    blocks = -(-len(values) // BLOCK)
    levels = max(1, (blocks - 1).bit_length())
    table = np.zeros((levels, max(1, blocks)), values.dtype)
    heads, tails = np.zeros(len(values), values.dtype), np.zeros(len(values), values.dtype)
    _fold(FOLDS[operation], values, spans.begin, spans.end, heads, tails, table, out)
    return out


@kernel
def _fold(
    operation: int, values: Array, begin: Array, end: Array, heads: Array, tails: Array, table: Array, out: Array
) -> None:
    totals = np.zeros(table.shape[1], values.dtype)
    _fold_blocks(operation, values, heads, tails, totals)
    _fill_table(operation, totals, table)
    for k in range(begin.shape[1]):
        known = False
        for r in range(len(begin)):
            first, last = begin[r, k], end[r, k]
            if first >= last:
                continue
            value = _range(operation, values, heads, tails, table, first, last - 1)
            out[k] = join(operation, out[k], value) if known else value
            known = True


@inner
def _fold_blocks(operation: int, values: Array, heads: Array, tails: Array, totals: Array) -> None:
    for block in range(-(-len(values) // BLOCK)):
        first, last = block * BLOCK, min((block + 1) * BLOCK, len(values))
        heads[first] = values[first]
        for row in range(first + 1, last):
            heads[row] = join(operation, heads[row - 1], values[row])
        tails[last - 1] = values[last - 1]
        for row in range(last - 2, first - 1, -1):
            tails[row] = join(operation, values[row], tails[row + 1])
        totals[block] = heads[last - 1]


@inner
def _fill_table(operation: int, totals: Array, table: Array) -> None:
    """Sums run over many blocks, so the rounding errors are summed too, and added at the end."""
    blocks = len(totals)
    for level in range(len(table)):
        reach: Any = np.int64(1) << level
        for middle in range(reach, blocks + reach, 2 * reach):
            lost = 0.0
            total = totals[min(middle, blocks) - 1]
            table[level, min(middle, blocks) - 1] = total
            for block in range(min(middle, blocks) - 2, middle - reach - 1, -1):
                lost += rounding_loss(operation, total, totals[block])
                total = join(operation, total, totals[block])
                table[level, block] = corrected(total, lost)
            if middle >= blocks:
                continue
            lost, total = 0.0, totals[middle]
            table[level, middle] = total
            for block in range(middle + 1, min(middle + reach, blocks)):
                lost += rounding_loss(operation, total, totals[block])
                total = join(operation, total, totals[block])
                table[level, block] = corrected(total, lost)


@inner
def _range(operation: int, values: Array, heads: Array, tails: Array, table: Array, first: int, last: int) -> Any:
    """The fold from one row to another, both included."""
    low, high = first >> SHIFT, last >> SHIFT
    if low == high:
        if first & (BLOCK - 1) == 0:
            return heads[last]
        value = values[first]
        for row in range(first + 1, last + 1):
            value = join(operation, value, values[row])
        return value
    value = tails[first]
    if high - low == 2:
        value = join(operation, value, table[0, low + 1])
    elif high - low > 2:
        level = _level(low + 1, high - 1)
        value = join(operation, value, join(operation, table[level, low + 1], table[level, high - 1]))
    return join(operation, value, heads[last])


@inner
def _level(one: int, other: int) -> Any:
    """The highest bit in which two numbers differ."""
    differ, level = (one ^ other) >> 1, np.int64(0)
    while differ:
        differ >>= 1
        level += 1
    return level
