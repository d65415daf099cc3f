"""What the catalog knows of chunks, a blob per part: in small integers, compressed, with a checksum.

A part's rows lie in the order of its chunks, so that the running sums of an index say where each chunk's rows are, and
dead row numbers say how many of them are alive. Stored bytes are not kept: they are shares of the part's.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.grid import ChunkGrid
from windrow.storage.records import ChunkStatistics, Int64Array

_LEVEL = 3
_CHECKSUM = struct.Struct("<I")
_HEAD = struct.Struct("<IH")  # rows, columns
_COLUMN = struct.Struct("<qB")  # what was taken off each number, and the bytes that the rest takes


def pack_columns(columns: Sequence[Int64Array]) -> bytes:
    """Columns of one length as few bytes as they need."""
    heads, bodies = [], []
    for column in columns:
        lowest = int(column.min(initial=2**63 - 1)) if len(column) else 0
        span = int(column.max()) - lowest if len(column) else 0
        width = next(width for width in (0, 1, 2, 4, 8) if span < 256**width)
        heads.append(_COLUMN.pack(lowest, width))
        if width:
            bodies.append((column - lowest).astype(f"<u{width}").tobytes())
    raw = b"".join(bodies)
    body = pa.Codec("zstd", compression_level=_LEVEL).compress(raw, asbytes=True) if raw else b""
    packed = _HEAD.pack(len(columns[0]), len(columns)) + b"".join(heads) + body
    return _CHECKSUM.pack(zlib.crc32(packed)) + packed


def unpack_columns(packed: bytes) -> list[Int64Array]:
    """The columns again; a ValueError if the bytes are not those that were made."""
    try:
        (checksum,) = _CHECKSUM.unpack_from(packed)
        if zlib.crc32(packed[_CHECKSUM.size :]) != checksum:
            raise ValueError("the checksum is not that of what was written")
        rows, count = _HEAD.unpack_from(packed, _CHECKSUM.size)
        rest = packed[_CHECKSUM.size + _HEAD.size :]
        heads = [_COLUMN.unpack_from(rest, number * _COLUMN.size) for number in range(count)]
        size = sum(width for _, width in heads) * rows
        body = rest[count * _COLUMN.size :]
        raw = pa.decompress(body, size, codec="zstd", asbytes=True) if size else b""
    except (struct.error, pa.ArrowException, OSError, TypeError) as error:
        raise ValueError(f"the columns cannot be unpacked: {error}") from None
    columns, start = [], 0
    for lowest, width in heads:
        if width:
            column = np.frombuffer(raw, f"<u{width}", rows, start).astype(np.int64)
            column += lowest
            start += width * rows
        else:
            column = np.full(rows, lowest, np.int64)
        column.flags.writeable = False
        columns.append(column)
    return columns


def encode_index(chunks: ChunkStatistics, grid: ChunkGrid) -> bytes:
    """The index of a part: ordinals ascending, a row each; bounds as steps inside the chunk."""
    corner = _corners(chunks.ordinals, grid)
    alive = chunks.cells > 0
    inside = np.where(alive[:, None], chunks.lo - corner, 0)
    extent = np.where(alive[:, None], chunks.hi - chunks.lo, 0)
    steps = np.diff(chunks.ordinals, prepend=0)
    return pack_columns([steps, chunks.cells, chunks.changed, *inside.T, *extent.T])


def decode_index(encoded: bytes, grid: ChunkGrid, part_bytes: int) -> ChunkStatistics:
    """An index as columns; a ValueError if it is none of an array with such a grid."""
    columns = unpack_columns(encoded)
    if len(columns) != 3 + 2 * grid.ndim:
        raise ValueError("the index is of another number of dimensions")
    steps, cells, changed = columns[:3]
    ordinals = np.cumsum(steps)
    lo = _corners(ordinals, grid)
    hi = np.empty_like(lo)
    for axis in range(grid.ndim):
        lo[:, axis] += columns[3 + axis]
        np.add(lo[:, axis], columns[3 + grid.ndim + axis], out=hi[:, axis])
    return ChunkStatistics(ordinals, cells, share_bytes(part_bytes, cells), lo, hi, changed)


def share_bytes(size: int, cells: Int64Array) -> Int64Array:
    """A part's bytes shared out among its chunks by their cells."""
    shares: Int64Array = np.round(size * cells / max(1, int(cells.sum()))).astype(np.int64)
    return shares


def _corners(ordinals: Int64Array, grid: ChunkGrid) -> Int64Array:
    """The first cell of each chunk, column by column in memory, because that is how they are compared."""
    corners = np.empty((len(ordinals), grid.ndim), np.int64, order="F")
    rest = ordinals
    for axis, (stride, lo, size) in enumerate(zip(grid.strides, grid.lo, grid.chunk, strict=True)):
        key = rest // stride
        rest = rest - key * stride
        np.multiply(key, size, out=corners[:, axis])
        corners[:, axis] += lo
    return corners


def row_starts(chunks: ChunkStatistics) -> Int64Array:
    """Where the rows of each chunk begin in its part, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(chunks.cells)])


def dead_in_chunks(chunks: ChunkStatistics, dead: npt.NDArray[Any]) -> Int64Array:
    """How many rows of each chunk are dead."""
    return np.diff(np.searchsorted(dead, row_starts(chunks)))


def chunks_of_rows(chunks: ChunkStatistics, rows: npt.NDArray[Any]) -> Int64Array:
    """The ordinals of the chunks that hold these rows, each once."""
    return chunks.ordinals[dead_in_chunks(chunks, rows) > 0]


def with_live_cells(chunks: ChunkStatistics, dead: npt.NDArray[Any]) -> ChunkStatistics:
    """An index with the cells that are alive; those of whole chunks may be none."""
    if not len(dead):
        return chunks
    alive = chunks.cells - dead_in_chunks(chunks, dead)
    return ChunkStatistics(chunks.ordinals, alive, chunks.bytes, chunks.lo, chunks.hi, chunks.changed)


def with_changes(chunks: ChunkStatistics, marks: Sequence[tuple[int, Int64Array]]) -> ChunkStatistics:
    """An index that knows of later changes: (version, ordinals of the chunks in which cells died of it)."""
    if not marks:
        return chunks
    changed = chunks.changed.copy()
    for version, ordinals in marks:
        places = np.searchsorted(chunks.ordinals, ordinals)
        places = places[places < len(changed)]
        np.maximum.at(changed, places, version)
    return ChunkStatistics(chunks.ordinals, chunks.cells, chunks.bytes, chunks.lo, chunks.hi, changed)


def newest_changes(pieces: Sequence[ChunkStatistics]) -> tuple[Int64Array, Int64Array]:
    """(ordinals, versions) at which each chunk in any of the pieces last changed."""
    ordinals = np.concatenate([np.empty(0, np.int64), *(piece.ordinals for piece in pieces)])
    changed = np.concatenate([np.empty(0, np.int64), *(piece.changed for piece in pieces)])
    unique, inverse = np.unique(ordinals, return_inverse=True)
    newest = np.zeros(len(unique), np.int64)
    np.maximum.at(newest, inverse.reshape(-1), changed)
    return unique, newest


def existing_chunks(pieces: Sequence[ChunkStatistics], ndim: int) -> ChunkStatistics:
    """The chunks of several parts that have live cells, a row each per part, with when each chunk last changed."""
    every = ChunkStatistics.concatenate(sorted(pieces, key=_first_ordinal), ndim)
    if not every.is_ascending:  # some chunks are in several parts
        unique, newest = newest_changes(pieces)
        changed = newest[np.searchsorted(unique, every.ordinals)]
        every = ChunkStatistics(every.ordinals, every.cells, every.bytes, every.lo, every.hi, changed)
    return every if (every.cells > 0).all() else every.take(np.flatnonzero(every.cells > 0))


def _first_ordinal(piece: ChunkStatistics) -> int:
    return int(piece.ordinals[0]) if len(piece) else -1
