"""Which chunks of a join's two sides can hold partners, from their metadata alone.

By the chunks' own bounds, which are those of the cells that they hold; or by the grid, as if every chunk were full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.sparse.chunk_pairs import Chunks, Grid
from windrow.kernels.sparse.chunk_pairs import chunk_pairs as meet
from windrow.model.box import Box
from windrow.operations.join.reach import image, offset_spans
from windrow.plan.bound import Bound, BoundColumns, BoundFilter, BoundJoin, BoundScan, BoundSelection, makes_pairs
from windrow.plan.join_terms import AxisMap

Int64Array = npt.NDArray[np.int64]


MOST_COMPARED = 20_000_000
"""Pairs of chunks that are counted one by one: to list them all would take longer than the answer is worth."""


class ChunkPairs(NamedTuple):
    """The ordinals of left and right chunks that can hold partners, pair by pair in order."""

    left: Int64Array
    right: Int64Array

    def __len__(self) -> int:
        return len(self.left)


def stored_scan(bound: Bound) -> BoundScan | None:
    """The stored array whose cells a side takes where they are, or None if it is computed."""
    while isinstance(bound, (BoundColumns, BoundFilter, BoundSelection)):
        bound = bound.source
    return bound if isinstance(bound, BoundScan) else None


def find_chunk_pairs(join: BoundJoin, by_grid: bool = False) -> ChunkPairs | None:
    """The pairs of chunks of a join of two stored arrays; None where a side's chunks are not known."""
    sides = _sides(join, by_grid)
    return None if sides is None else _meeting(join, *sides)


def count_chunk_pairs(join: BoundJoin, by_grid: bool = False) -> int | None:
    """How many there are; of very many, about: partners are looked for of some left chunks at equal steps."""
    sides = _sides(join, by_grid)
    if sides is None:
        return None
    left, right = sides
    step = max(1, len(left.ordinals) * len(right.ordinals) // MOST_COMPARED)
    found = len(_meeting(join, left.every(step), right))
    return found if step == 1 else round(found * len(left.ordinals) / len(left.ordinals[::step]))


def _sides(join: BoundJoin, by_grid: bool) -> tuple[_Side, _Side] | None:
    if makes_pairs(join.left) or join.sky is not None:
        return None
    scans = stored_scan(join.left), stored_scan(join.right)
    left, right = (None if scan is None else _chunks(scan, by_grid) for scan in scans)
    return None if left is None or right is None else (left, right)


def _meeting(join: BoundJoin, left: _Side, right: _Side) -> ChunkPairs:
    scan = stored_scan(join.right)
    assert scan is not None, "its chunks are known"
    lo, hi = _partner_boxes(join, left, scan.box)
    boxes, chunks = meet(lo, hi, right.chunks, right.grid)
    near = _near_enough(join, left, right, boxes, chunks)
    return ChunkPairs(left.ordinals[boxes[near]], right.ordinals[chunks[near]])


class _Side(NamedTuple):
    ordinals: Int64Array
    chunks: Chunks
    grid: Grid
    names: tuple[str, ...]

    def every(self, step: int) -> _Side:
        """Some of the chunks, the first of each ``step``."""
        if step == 1:
            return self
        some = Chunks(*([np.ascontiguousarray(column[::step]) for column in columns] for columns in self.chunks))
        return self._replace(ordinals=self.ordinals[::step], chunks=some)


def _chunks(scan: BoundScan, by_grid: bool) -> _Side | None:
    """The chunks of an array, each once."""
    if scan.chunks is None:
        return None
    found: Any = scan.chunks().merged()
    grid = scan.schema.grid
    numbers = [found.ordinals // stride % count for stride, count in zip(grid.strides, grid.radix, strict=True)]
    lo, hi = list(found.lo.T), list(found.hi.T)
    if by_grid:
        lo = [first + number * size for first, number, size in zip(grid.lo, numbers, grid.chunk, strict=True)]
        hi = [np.minimum(low + size - 1, end) for low, size, end in zip(lo, grid.chunk, scan.box.hi, strict=True)]
    chunks = Chunks(numbers, [np.ascontiguousarray(side) for side in lo], [np.ascontiguousarray(side) for side in hi])
    return _Side(found.ordinals, chunks, Grid(grid.lo, grid.chunk), scan.schema.dimension_names)


def _partner_boxes(join: BoundJoin, left: _Side, bounds: Box) -> tuple[list[Int64Array], list[Int64Array]]:
    """Where the partners of each left chunk's cells may lie, per right dimension."""
    lows, highs = [], []
    spans = offset_spans(join.offsets)
    for axis, place in enumerate(join.mapping):
        whole = np.full(len(left.ordinals), bounds.lo[axis]), np.full(len(left.ordinals), bounds.hi[axis])
        if place is None or join.offsets.free[axis]:
            low, high = whole
        else:
            low, high = _reached(place, left, spans[axis])
            if join.offsets.wraps[axis]:  # what leaves a periodic dimension at one end may be anywhere in it
                crossing = (low < bounds.lo[axis]) | (high > bounds.hi[axis])
                low, high = np.where(crossing, whole[0], low), np.where(crossing, whole[1], high)
        lows.append(low)
        highs.append(high)
    return lows, highs


def _near_enough(
    join: BoundJoin, left: _Side, right: _Side, boxes: Int64Array, chunks: Int64Array
) -> npt.NDArray[np.bool_]:
    """Which pairs have cells, as far as bounds tell, whose offset the shape's norms allow: its corners are cut off."""
    near = np.ones(len(boxes), bool)
    for distance in join.offsets.distances:
        if any(join.offsets.wraps[axis] for axis in distance.axes):
            continue
        cost = np.zeros(len(boxes), np.int64)
        for axis in distance.axes:
            place = join.mapping[axis]
            assert place is not None, "norms measure along dimensions that are mapped"
            low, high = _reached(place, left, (0, 0))
            first, last = right.chunks.lo[axis][chunks] - high[boxes], right.chunks.hi[axis][chunks] - low[boxes]
            start, stop = offset_spans(join.offsets)[axis]
            cost += distance.cost(np.clip(np.clip(0, first, last), start, stop))
        near &= cost <= distance.limit
    return near


def _reached(place: AxisMap, left: _Side, span: tuple[int, int]) -> tuple[Int64Array, Int64Array]:
    axis = left.names.index(place.cell.name)
    return image(place, left.chunks.lo[axis]) + span[0], image(place, left.chunks.hi[axis]) + span[1]
