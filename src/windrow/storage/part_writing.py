"""Writing parts: sorted cells into Parquet files of a moderate size, with what is known of their chunks."""

from __future__ import annotations

import contextlib
import os
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.storage.cells import coordinates, stored_fields
from windrow.storage.checksums import footer_checksum
from windrow.storage.chunks.index import share_bytes
from windrow.storage.encoding import PartEncoding
from windrow.storage.failures import store_failures
from windrow.storage.records import ChunkStatistics, Part

if TYPE_CHECKING:
    import pyarrow.parquet as pq

GROUP_CELLS = 65_536
"""Opening a row group costs as much as decoding thousands of its cells, so that few of them are read faster; of larger
ones a small box decodes too much that it does not need."""

PART_BYTES = 8 * 2**20
"""Folding writes a part anew now and then, so that it must not be large."""


class PartWriter:
    """Writes sorted cells, with their chunk column, into parts of a moderate size."""

    def __init__(self, directory: str, schema: Schema, part_bytes: int | None = None) -> None:
        self._directory = directory
        self._schema = schema
        self._part_bytes = PART_BYTES if part_bytes is None else part_bytes
        self._waiting: list[pa.Table] = []
        self._waiting_cells = 0
        self._open: _OpenPart | None = None
        self.parts: list[Part] = []

    def append(self, table: pa.Table) -> None:
        if table.num_rows:
            self._waiting.append(table)
            self._waiting_cells += table.num_rows
        if self._waiting_cells >= 4 * GROUP_CELLS:
            self._write_groups(final=False)

    def close(self) -> list[Part]:
        self._write_groups(final=True)
        self._finish()
        return self.parts

    def abandon(self) -> None:
        """Remove everything written so far."""
        if self._open is not None:
            self._open.discard()
            self._open = None
        for part in self.parts:
            Path(self._directory, part.path).unlink(missing_ok=True)

    def _write_groups(self, final: bool) -> None:
        if not self._waiting_cells:
            return
        table = pa.concat_tables(self._waiting).combine_chunks()
        ordinals = table.column(CHUNK_COLUMN).to_numpy()
        borders = np.flatnonzero(np.diff(ordinals)) + 1
        start = 0
        while table.num_rows - start > GROUP_CELLS or (final and start < table.num_rows):
            stop = _group_end(borders, start, table.num_rows)
            self._write_group(table.slice(start, stop - start))
            start = stop
            if stop == table.num_rows or ordinals[stop] != ordinals[stop - 1]:
                self._finish_if_large()
        self._waiting = [table.slice(start)] if start < table.num_rows else []
        self._waiting_cells = table.num_rows - start

    def _write_group(self, group: pa.Table) -> None:
        with store_failures("a part of a sparse array"):
            if self._open is None:
                self._open = _OpenPart.create(self._directory, self._schema, group)
            self._open.write(group)

    def _finish_if_large(self) -> None:
        if self._open is not None and self._open.sink.tell() >= self._part_bytes:
            self._finish()

    def _finish(self) -> None:
        if self._open is not None:
            with store_failures("a part of a sparse array"):
                self.parts.append(self._open.finish())
            self._open = None


def _group_end(borders: npt.NDArray[np.intp], start: int, rows: int) -> int:
    """Where a row group that begins at ``start`` ends: after whole chunks, unless the first alone is too large."""
    if rows - start <= GROUP_CELLS:
        return rows
    index = np.searchsorted(borders, start + GROUP_CELLS, side="right") - 1
    if index >= 0 and borders[index] > start:
        return int(borders[index])
    return start + GROUP_CELLS


@dataclass
class _OpenPart:
    """A part being written."""

    directory: str
    path: str
    schema: Schema
    sink: Any
    writer: pq.ParquetWriter
    pieces: list[ChunkStatistics] = field(default_factory=list)

    @classmethod
    def create(cls, directory: str, schema: Schema, first: pa.Table) -> _OpenPart:
        """A part, encoded as its first row group is best."""
        import pyarrow.parquet as pq

        path = f"part-{uuid.uuid4().hex}.parquet"
        sink = pa.OSFile(os.path.join(directory, path), "wb")
        options = PartEncoding.of_cells(first, schema).options(schema)
        writer = pq.ParquetWriter(sink, stored_fields(schema), **options)
        return cls(directory, path, schema, sink, writer)

    def write(self, group: pa.Table) -> None:
        self.writer.write_table(group, row_group_size=group.num_rows)
        self.pieces.append(_statistics(group, self.schema))

    def discard(self) -> None:
        """Remove what cannot be finished, on a full disk for instance."""
        for resource in (self.writer, self.sink):
            with contextlib.suppress(OSError, pa.ArrowException):
                resource.close()
        Path(self.directory, self.path).unlink(missing_ok=True)

    def finish(self) -> Part:
        self.writer.close()
        size = self.sink.tell()
        self.sink.close()
        chunks = ChunkStatistics.concatenate(self.pieces, self.schema.ndim).merged()
        cells = int(chunks.cells.sum())
        chunks = replace(chunks, bytes=share_bytes(size, chunks.cells))
        box = Box(tuple(chunks.lo.min(axis=0).tolist()), tuple(chunks.hi.max(axis=0).tolist()))
        checksum = footer_checksum(os.path.join(self.directory, self.path))
        first, last = int(chunks.ordinals[0]), int(chunks.ordinals[-1])
        return Part(self.path, cells, size, checksum, box, chunks, first=first, last=last)


def _statistics(group: pa.Table, schema: Schema) -> ChunkStatistics:
    ordinals = group.column(CHUNK_COLUMN).to_numpy()
    starts = np.flatnonzero(np.diff(ordinals, prepend=ordinals[0] - 1))
    counts = np.diff(starts, append=len(ordinals))
    at = coordinates(group, schema)
    lo = np.stack([np.minimum.reduceat(column, starts) for column in at], axis=1)
    hi = np.stack([np.maximum.reduceat(column, starts) for column in at], axis=1)
    return ChunkStatistics(ordinals[starts], counts, np.zeros(len(starts), np.int64), lo, hi)
