"""Which chunks can hold cells that meet, from what is known of the chunks alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.sparse.bands import Bands, list_shares
from windrow.kernels.sparse.keys import KeySpace, key_space
from windrow.kernels.sparse.sorting import is_sorted, sort_keys

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

_MOST_ROWS = 64
"""Rows of chunks that are searched for each box; dimensions that would make more of them are left to the bounds."""

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Chunks(NamedTuple):
    """Chunks of a grid: one vector per dimension of their numbers in it, and of the lowest and highest coordinates that
    any of their cells has."""

    numbers: Sequence[Int64Array]
    lo: Sequence[Int64Array]
    hi: Sequence[Int64Array]


class Grid(NamedTuple):
    """Chunk 0 begins at ``origin``, and all are ``lengths`` cells long."""

    origin: tuple[int, ...]
    lengths: tuple[int, ...]


def chunk_pairs(
    lo: Sequence[Int64Array], hi: Sequence[Int64Array], chunks: Chunks, grid: Grid
) -> tuple[Int64Array, Int64Array]:
    """Which of some boxes and which chunks can have cells in common, as ``ChunkIndex.meet``."""
    return ChunkIndex(chunks, grid).meet(lo, hi)


class ChunkIndex:
    """Chunks that are searched again and again: what does not depend on the boxes is worked out once and kept."""

    def __init__(self, chunks: Chunks, grid: Grid) -> None:
        self.chunks, self.grid = chunks, grid
        there = len(chunks.numbers[0]) > 0
        self._extents = [_extent(numbers) for numbers in chunks.numbers] if there else []
        self._keys: dict[tuple[tuple[int, ...], KeySpace], tuple[Int64Array, Int64Array | None]] = {}

    def meet(self, lo: Sequence[Int64Array], hi: Sequence[Int64Array]) -> tuple[Int64Array, Int64Array]:
        """Which of some boxes and which chunks can have cells in common: numbers of boxes, and of chunks, in order.

        A box, one vector of lowest and one of highest coordinates per dimension, is where the partners of a chunk's
        cells may lie: the bounds of its own cells, mapped and widened by as far as the shape reaches. Chunks are found
        by their numbers in the grid, then kept if their own bounds meet the box.
        """
        chunks = self.chunks
        if not len(lo[0]) or not self._extents:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        search = self._search(lo, hi)
        right, order = self._sorted_keys(search)
        near, own = sort_keys(search.space.keys(search.first, len(lo[0])), search.space.bits)
        bands = Bands(near, near, *search.space.differences(*search.runs))
        boxes, others = [own[:0]], [own[:0]]
        for begin, end, counts, places in list_shares(right, bands):
            box, other = np.repeat(own[begin:end], counts), places if order is None else order[places]
            kept = np.ones(len(box), bool)
            for axis in range(len(lo)):
                _keep_meeting(box, other, lo[axis], hi[axis], chunks.lo[axis], chunks.hi[axis], kept)
            boxes.append(box[kept])
            others.append(other[kept])
        box, by_box = sort_keys(np.concatenate(boxes), len(lo[0]).bit_length())
        return box, np.concatenate(others)[by_box]

    def _sorted_keys(self, search: _Search) -> tuple[Int64Array, Int64Array | None]:
        """The keys of all chunks in order, and where each came from if they were in another."""
        known = tuple(search.axes), search.space
        if known not in self._keys:
            numbers = [self.chunks.numbers[axis] for axis in search.axes]
            keys = search.space.keys(numbers, len(self.chunks.numbers[0]))
            self._keys[known] = (keys, None) if is_sorted(keys) else sort_keys(keys, search.space.bits)
        return self._keys[known]

    def _search(self, lo: Sequence[Int64Array], hi: Sequence[Int64Array]) -> _Search:
        """By which dimensions chunks are found: the widest are left out as long as keys would leave int64."""
        first, widths = [], []
        for axis, (origin, length) in enumerate(zip(*self.grid, strict=True)):
            low, high = self._extents[axis]
            # What reaches beyond all chunks is cut off; a box that lies there altogether meets no bounds in the end.
            edges = max(low * length + origin, _SMALLEST), min((high + 1) * length - 1 + origin, _LARGEST)
            begin, end = ((np.clip(side[axis], *edges) - origin) // length for side in (lo, hi))
            first.append(begin)
            widths.append(max(1, int((end - begin).max()) + 1))
        axes = list(range(len(widths)))
        while True:
            axes = _few_rows(axes, widths)
            # Rounded up, so that boxes of about the same size are searched by the same keys.
            reach = [(1 << (widths[axis] - 1).bit_length()) - 1 for axis in axes]
            lows, highs = ([self._extents[axis][end] for axis in axes] for end in (0, 1))
            space = key_space(lows, highs, [0] * len(axes), reach)
            if space is not None:
                break
            axes.remove(max(axes, key=lambda axis: widths[axis]))
        offsets = list(product(*(range(widths[axis]) for axis in axes[:-1])))
        leading = np.array(offsets, np.int64).reshape(len(offsets), max(0, len(axes) - 1))
        last = np.full(len(leading), widths[axes[-1]] - 1 if axes else 0, np.int64)
        return _Search(axes, space, [first[axis] for axis in axes], (leading, np.zeros_like(last), last))


class _Search(NamedTuple):
    """The dimensions to search by, their keys, the first number of each box, and the rows of chunks it may meet."""

    axes: list[int]
    space: KeySpace
    first: list[Int64Array]
    runs: tuple[Int64Array, Int64Array, Int64Array]


def _few_rows(axes: list[int], widths: list[int]) -> list[int]:
    """The dimensions in an order in which boxes meet few rows of chunks.

    It is the grid's, in which chunks most likely are, if that will do. Else the widest dimension comes last, and if
    there are still too many rows, is left out.
    """
    while math.prod(widths[axis] for axis in axes[:-1]) > _MOST_ROWS:
        widest = max(axes, key=lambda axis: widths[axis])
        left = [axis for axis in axes if axis != widest]
        axes = axes[:-1] if widths[axes[-1]] == widths[widest] else [*left, widest]
    return axes


@kernel
def _extent(numbers: Array) -> tuple[int, int]:
    low = high = numbers[0]
    for number in numbers:
        low, high = min(low, number), max(high, number)
    return low, high


@kernel
def _keep_meeting(
    boxes: Array, chunks: Array, box_lo: Array, box_hi: Array, chunk_lo: Array, chunk_hi: Array, kept: Array
) -> None:
    for pair in range(len(boxes)):
        box, chunk = np.uint64(boxes[pair]), np.uint64(chunks[pair])
        kept[pair] &= (box_lo[box] <= chunk_hi[chunk]) & (chunk_lo[chunk] <= box_hi[box])
