"""Which chunks hold partners of given rows: a box around them all may hold many more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.operations.join.reach import NOWHERE, offset_spans

Int64Array = npt.NDArray[np.int64]

MOST_ROWS, MOST_CHUNKS = 2**16, 2**21
"""Rows beyond which nobody looks, because so many lie nearly everywhere, and chunks that are listed at most.

A thousand places of a survey, each at a thousand nights, are a million: to list them costs far less than to read what
lies between.
"""
WORTH = 2
"""How many times fewer chunks there must be than the box touches, for the others to be left out."""


def partner_chunks(
    shape: BoundShape, centres: Sequence[Int64Array | None], grid: ChunkGrid, box: Box
) -> Int64Array | None:
    """The chunks in ``box`` that shapes around the centres touch, ascending; None where leaving out pays nothing.

    Centres are those of each row, one vector a dimension; None where a dimension is not bound to the rows.
    """
    bound = [(axis, at) for axis, at in enumerate(centres) if at is not None and not shape.free[axis]]
    if any(shape.wraps) or not bound or grid.clip(box).is_empty or len(bound[0][1]) > MOST_ROWS:
        return None
    keys = grid.key_box(box)
    spans, reaches = _spans(shape, bound, grid, box)
    found, told_apart = np.zeros(int(reaches.sum()), np.int64), set[int]()
    for axis, (first, last) in spans.items():
        first, last = first[reaches], last[reaches]
        # Rows that each reach about as far as all together are not told apart along that dimension.
        if len(first) and last.max() - first.min() + 1 > WORTH * (last - first + 1).mean():
            told_apart.add(axis)
            spans[axis] = (first, last)
    rows = np.arange(len(found))
    for axis in sorted(told_apart):
        first, last = (end[rows] for end in spans[axis])
        counts = last - first + 1
        if counts.sum() > MOST_CHUNKS:
            return None
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found = np.repeat(found + first * grid.strides[axis], counts) + steps * grid.strides[axis]
        rows = np.repeat(rows, counts)
    found = np.unique(found)
    others = [axis for axis in range(grid.ndim) if axis not in told_apart]
    count = len(found)
    for axis in others:
        count *= keys.hi[axis] - keys.lo[axis] + 1
    if not told_apart or count > min(MOST_CHUNKS, keys.size // WORTH):
        return None
    for axis in others:
        steps = np.arange(keys.lo[axis], keys.hi[axis] + 1, dtype=np.int64)
        found = (found[:, None] + steps * grid.strides[axis]).reshape(-1)
    return np.sort(found)


def _spans(
    shape: BoundShape, bound: Sequence[tuple[int, Int64Array]], grid: ChunkGrid, box: Box
) -> tuple[dict[int, tuple[Int64Array, Int64Array]], npt.NDArray[np.bool_]]:
    """For each bound dimension the first and last chunk along it that each row reaches; and which rows reach any."""
    reaches = np.ones(len(bound[0][1]), bool)
    spans = {}
    for axis, at in bound:
        start, stop = offset_spans(shape)[axis]
        lo, hi = np.maximum(at + start, box.lo[axis]), np.minimum(at + stop, box.hi[axis])
        reaches &= (lo <= hi) & (at != NOWHERE)
        spans[axis] = ((lo - grid.lo[axis]) // grid.chunk[axis], (hi - grid.lo[axis]) // grid.chunk[axis])
    return spans, reaches
