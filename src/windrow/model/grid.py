"""The regular grid of chunks that an array is cut into.

A chunk has a *key* (its position on the grid, per dimension, from 0) and an *ordinal*: one int64, row-major in the
keys, that never changes while the array grows. A growing dimension has no last chunk, so it is given a share of the
numbers that bounded dimensions leave over.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, SchemaError
from windrow.model.box import Box

Int64Array = npt.NDArray[np.int64]

_LARGEST_ORDINAL = 2**62


@dataclass(frozen=True)
class ChunkGrid:
    """Chunks of size ``chunk``, the first at ``lo``; ``hi`` is None where a dimension grows."""

    lo: tuple[int, ...]
    hi: tuple[int | None, ...]
    chunk: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.chunk):
            raise SchemaError("a chunk needs at least one cell per dimension", got=self.chunk)

    @property
    def ndim(self) -> int:
        return len(self.lo)

    @property
    def chunk_cells(self) -> int:
        return math.prod(self.chunk)

    @cached_property
    def radix(self) -> tuple[int, ...]:
        """How many chunk positions each dimension may number."""
        bounded = [
            None if hi is None else max(1, -(-(hi - lo + 1) // size))
            for lo, hi, size in zip(self.lo, self.hi, self.chunk, strict=True)
        ]
        growing = bounded.count(None)
        taken = math.prod(count for count in bounded if count is not None)
        if taken > _LARGEST_ORDINAL or (growing and _LARGEST_ORDINAL // taken < 2**growing):
            raise SchemaError("the array has too many chunks to number", got=f"{taken:,}", hint="Use larger chunks")
        share = _integer_root(_LARGEST_ORDINAL // taken, growing) if growing else 1
        return tuple(share if count is None else count for count in bounded)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """What one step along each dimension of the grid adds to a chunk's ordinal."""
        strides = [1]
        for count in reversed(self.radix[1:]):
            strides.append(strides[-1] * count)
        return tuple(reversed(strides)) if self.radix else ()

    def key_of(self, cell: Sequence[int]) -> tuple[int, ...]:
        """The key of the chunk that holds a cell."""
        return tuple((c - lo) // size for c, lo, size in zip(cell, self.lo, self.chunk, strict=True))

    def box_of(self, key: Sequence[int]) -> Box:
        """The cells of a chunk, clipped to the array's bounds."""
        lo = [start + k * size for start, k, size in zip(self.lo, key, self.chunk, strict=True)]
        box = Box.at(lo, self.chunk)
        return Box(box.lo, tuple(h if top is None else min(h, top) for h, top in zip(box.hi, self.hi, strict=True)))

    def ordinal(self, key: Sequence[int]) -> int:
        for k, count in zip(key, self.radix, strict=True):
            if not 0 <= k < count:
                raise DataError("the chunk is outside the array", got=tuple(key), hint=f"There are {self.radix} chunks")
        return sum(k * stride for k, stride in zip(key, self.strides, strict=True))

    def key(self, ordinal: int) -> tuple[int, ...]:
        return tuple(ordinal // stride % count for stride, count in zip(self.strides, self.radix, strict=True))

    def ordinals(self, coordinates: Sequence[npt.NDArray[np.integer]]) -> Int64Array:
        """The ordinal of the chunk of each cell, from one coordinate vector per dimension."""
        result = np.zeros(len(coordinates[0]) if coordinates else 0, np.int64)
        for cells, lo, size, stride in zip(coordinates, self.lo, self.chunk, self.strides, strict=True):
            result += (np.asarray(cells, np.int64) - lo) // size * stride
        return result

    def offsets(self, coordinates: Sequence[npt.NDArray[np.integer]]) -> Int64Array:
        """The row-major position of each cell inside its chunk."""
        result = np.zeros(len(coordinates[0]) if coordinates else 0, np.int64)
        for cells, lo, size in zip(coordinates, self.lo, self.chunk, strict=True):
            steps = np.asarray(cells, np.int64) - lo
            before = steps // size  # quicker than a remainder
            before *= size
            steps -= before
            result *= size
            result += steps
        return result

    def key_box(self, box: Box) -> Box:
        """The keys of all chunks that touch ``box``, as a box of keys."""
        inside = self.clip(box)
        return Box(self.key_of(inside.lo), self.key_of(inside.hi))

    def clip(self, box: Box) -> Box:
        """The part of ``box`` that lies in the array; growing dimensions have no end."""
        tops = zip(box.hi, self.hi, strict=True)
        return Box(tuple(map(max, box.lo, self.lo)), tuple(h if top is None else min(h, top) for h, top in tops))

    def keys_touching(self, box: Box) -> Iterator[tuple[int, ...]]:
        if self.clip(box).is_empty:
            return iter(())
        keys = self.key_box(box)
        return itertools.product(*(range(lo, hi + 1) for lo, hi in zip(keys.lo, keys.hi, strict=True)))

    def ordinals_touching(self, box: Box) -> Int64Array:
        """The ordinals of all chunks that touch ``box``, ascending."""
        if self.clip(box).is_empty:
            return np.empty(0, np.int64)
        keys = self.key_box(box)
        result = np.zeros(1, np.int64)
        for lo, hi, stride in zip(keys.lo, keys.hi, self.strides, strict=True):
            result = (result[:, None] + np.arange(lo, hi + 1, dtype=np.int64) * stride).reshape(-1)
        return result

    def aligned(self, box: Box) -> Box:
        """The smallest box of whole chunks, clipped to the bounds, that holds what of ``box`` lies in the array."""
        box = self.clip(box)
        if box.is_empty:
            return box
        return self.box_of(self.key_of(box.lo)) | self.box_of(self.key_of(box.hi))

    def blocks(self, box: Box, max_cells: int, keep_whole: Sequence[int] = ()) -> list[Box]:
        """Cut ``box`` along chunk borders into blocks of at most ``max_cells`` cells, if chunks allow it.

        Dimensions in ``keep_whole`` are cut last. A block is never smaller than one chunk, so the caller checks
        whether a single chunk fits its memory.
        """
        box = self.clip(box)
        if box.is_empty:
            return []
        keys = self.key_box(box)
        pieces = [1] * self.ndim
        chunks = keys.shape

        def cells_of_largest_block() -> int:
            sizes = zip(chunks, pieces, self.chunk, box.shape, strict=True)
            return math.prod(min(-(-count // n) * size, extent) for count, n, size, extent in sizes)

        while cells_of_largest_block() > max_cells:
            cuttable = [d for d in range(self.ndim) if pieces[d] < chunks[d]]
            if not cuttable:
                break
            free = [d for d in cuttable if d not in keep_whole] or cuttable
            widest = max(free, key=lambda d: -(-chunks[d] // pieces[d]))
            pieces[widest] += 1
        starts = [
            [keys.lo[d] + step * chunks[d] // pieces[d] for step in range(pieces[d] + 1)] for d in range(self.ndim)
        ]
        blocks = []
        for index in itertools.product(*(range(n) for n in pieces)):
            first = self.box_of([starts[d][index[d]] for d in range(self.ndim)])
            last = self.box_of([starts[d][index[d] + 1] - 1 for d in range(self.ndim)])
            blocks.append((first | last) & box)
        return blocks


def _integer_root(value: int, degree: int) -> int:
    """The largest r with r**degree <= value."""
    root: int = round(value ** (1 / degree))
    while root**degree > value:
        root -= 1
    while (root + 1) ** degree <= value:
        root += 1
    return root


DENSE_CHUNK_BYTES = 4 * 2**20
DENSE_PATCHED_CHUNK_BYTES = 3 * 2**18
"""For arrays that are changed a few cells at a time: a chunk is written anew for each of them."""

DENSE_GROWING_STEPS = 8
SPARSE_CHUNK_CELLS = 2**19
SPARSE_CHUNKS = 2**16
SPARSE_GROWING_STEPS = 1024
MOST_SPARSE_CHUNK_CELLS = 2**40


def dense_chunks(
    extents: Sequence[int | None], itemsize: int, stated: Mapping[int, int], chunk_bytes: int = DENSE_CHUNK_BYTES
) -> tuple[int, ...]:
    """Chunk sizes of a dense array for dimensions whose chunk was not stated: by default a few MB to a chunk.

    Growing dimensions get short chunks, or every append would rewrite a long one.
    """
    return _halve(extents, stated, DENSE_GROWING_STEPS, max(1, chunk_bytes // itemsize))


def sparse_chunks(extents: Sequence[int | None], stated: Mapping[int, int]) -> tuple[int, ...]:
    """Chunk sizes of a sparse array for dimensions whose chunk was not stated.

    How densely the cells will lie is not known, so the number of chunks is bounded instead of their size.
    """
    positions = math.prod(extent for extent in extents if extent is not None)
    target = max(SPARSE_CHUNK_CELLS, positions // SPARSE_CHUNKS)
    growing = sum(1 for axis, extent in enumerate(extents) if extent is None and axis not in stated)
    # Several growing dimensions share the steps that one would get, or their product would leave no room.
    steps = max(1, int(SPARSE_GROWING_STEPS ** (1 / max(1, growing))))
    return _halve(extents, stated, steps, min(target, MOST_SPARSE_CHUNK_CELLS))


def _halve(
    extents: Sequence[int | None], stated: Mapping[int, int], growing_steps: int, most_cells: int
) -> tuple[int, ...]:
    """Whole extents, of which the longest is halved until a chunk has at most ``most_cells``."""
    chunk = [stated.get(d, growing_steps if extent is None else extent) for d, extent in enumerate(extents)]
    free = [d for d, extent in enumerate(extents) if d not in stated and extent is not None]
    while math.prod(chunk) > most_cells and any(chunk[d] > 1 for d in free):
        longest = max(free, key=lambda d: chunk[d])
        chunk[longest] = -(-chunk[longest] // 2)
    return tuple(chunk)
