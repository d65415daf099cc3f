"""Sets of cells as a few boxes: clusters of single cells, and boxes put together where they meet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.model.grid import ChunkGrid

Int64Array = npt.NDArray[np.int64]

MOST_CLUSTERS = 64
"""Boxes that are looked at one by one; more of them are put together, at the price of cells between them."""


def cluster_numbers(at: Sequence[Int64Array], grid: ChunkGrid, most: int = MOST_CLUSTERS) -> Int64Array:
    """A number for each cell: cells of one number lie in one chunk, or in chunks side by side if there are many."""
    chunks = [(column - lo) // size for column, lo, size in zip(at, grid.lo, grid.chunk, strict=True)]
    chunks = [column - column.min() for column in chunks] if len(at[0]) else chunks
    distinct, places = _distinct(chunks)
    numbers = places
    while distinct > most:
        # One of each place is enough from here on, and halving an axis at most halves their number.
        firsts = np.zeros(distinct, np.int64)
        firsts[places] = np.arange(len(places))
        chunks = [column[firsts] for column in chunks]
        for _ in range(max(1, (distinct // most).bit_length() - 1)):
            widest = int(np.argmax([int(column.max()) for column in chunks]))
            chunks[widest] = chunks[widest] // 2
        distinct, places = _distinct(chunks)
        numbers = places[numbers]
    return numbers


def _distinct(columns: Sequence[Int64Array]) -> tuple[int, Int64Array]:
    """How many different places there are, from 0 along each axis, and the number of each row's."""
    keys, extents = np.zeros(len(columns[0]), np.int64), [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(extents) < 2**62:  # one number says it all, and one sort is enough
        for column, extent in zip(columns, extents, strict=True):
            keys = keys * extent + column
        keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    else:
        for column in columns:
            values, place = np.unique(column, return_inverse=True)
            keys = np.unique(keys * len(values) + place, return_inverse=True)[1].astype(np.int64)
    return int(keys.max(initial=-1)) + 1, keys


def cluster_cells(at: Sequence[Int64Array], grid: ChunkGrid, most: int = MOST_CLUSTERS) -> list[Box]:
    """Boxes that hold all cells, and little else if they lie close together."""
    if not len(at[0]):
        return []
    numbers = cluster_numbers(at, grid, most)
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    lows = [np.minimum.reduceat(column[order], starts) for column in at]
    highs = [np.maximum.reduceat(column[order], starts) for column in at]
    ends = zip(zip(*lows, strict=True), zip(*highs, strict=True), strict=True)
    return [Box(tuple(map(int, lo)), tuple(map(int, hi))) for lo, hi in ends]


def merge_boxes(boxes: Iterable[Box], most: int = MOST_CLUSTERS) -> list[Box]:
    """The same cells in fewer boxes: those that fill a box together are one, and none lies within another.

    If there are still too many, neighbours in the order of their corners are put together, whatever lies between.
    """
    waiting = sorted({box for box in boxes if not box.is_empty}, key=lambda box: (box.lo, box.hi))
    merged = True
    while merged:
        waiting, merged = _merge_once(waiting)
    while len(waiting) > most:
        pairs = [waiting[number : number + 2] for number in range(0, len(waiting), 2)]
        waiting = [pair[0] if len(pair) == 1 else pair[0] | pair[1] for pair in pairs]
    return waiting


def _merge_once(boxes: Sequence[Box]) -> tuple[list[Box], bool]:
    found: list[Box] = []
    for box in boxes:
        # Neighbours in the order of corners are neighbours in space along the last axis, then along the others.
        for number in range(len(found) - 1, max(-1, len(found) - 9), -1):
            both = _together(found[number], box)
            if both is not None:
                found[number] = both
                break
        else:
            found.append(box)
    return found, len(found) < len(boxes)


def _together(one: Box, other: Box) -> Box | None:
    """Two boxes as one, if they fill it: one holds the other, or they lie side by side."""
    apart = [(a, b, c, d) for a, b, c, d in zip(one.lo, one.hi, other.lo, other.hi, strict=True) if a != c or b != d]
    if len(apart) <= 1:
        return one | other if all(max(a, c) <= min(b, d) + 1 for a, b, c, d in apart) else None
    a, b, c, d = apart[0]
    if a <= c and b >= d:
        return one if all(a <= c and b >= d for a, b, c, d in apart) else None
    return other if all(a >= c and b <= d for a, b, c, d in apart) else None


def project(boxes: Iterable[Box], axes: Sequence[int]) -> list[Box]:
    """Where boxes lie along some axes."""
    return merge_boxes(Box(tuple(b.lo[a] for a in axes), tuple(b.hi[a] for a in axes)) for b in boxes)


def stretch(box: Box, axis: int, whole: Box) -> Box:
    """The box, along one axis as long as another."""
    lo, hi = list(box.lo), list(box.hi)
    lo[axis], hi[axis] = whole.lo[axis], whole.hi[axis]
    return replace(box, lo=tuple(lo), hi=tuple(hi))
