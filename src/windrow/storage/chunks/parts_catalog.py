"""What the catalog knows of a version's cells: its parts with their dead rows, and its chunks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from windrow.errors import StoreError, UnknownNameError
from windrow.model.grid import ChunkGrid
from windrow.storage import tables
from windrow.storage.chunks.index import decode_index, existing_chunks, with_changes, with_live_cells
from windrow.storage.chunks.kept import Indexes
from windrow.storage.chunks.rows import (
    MOST_PARAMETERS,
    forget_dense_chunks,
    forget_parts,
    read_dense_chunks,
    read_indexes,
    read_marks,
    read_parts,
)
from windrow.storage.database import CatalogDatabase
from windrow.storage.delta.vectors import read_rows
from windrow.storage.failures import damaged_rows, vector_failures
from windrow.storage.places import check_directory, place_inside
from windrow.storage.records import ArrayRecord, ChunkStatistics, Part, VersionRecord
from windrow.storage.rows import clip_chunks

VERSIONS_REMEMBERED = 16
"""Of how many versions a connection keeps the parts and labels, which never change."""

CHUNKS_REMEMBERED = 4
"""Of how many it keeps what is known of chunks, which may be some tens of bytes for each of a million."""


class PartsCatalog(CatalogDatabase):
    """Reads of parts and chunks, of which those last used are kept."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._parts = functools.lru_cache(VERSIONS_REMEMBERED)(self._read_parts)
        self._chunks = functools.lru_cache(CHUNKS_REMEMBERED)(self._read_chunks)
        self._indexes = Indexes()
        self.stores: Path | None = None
        """The warehouse's folder, where vectors are read."""

    def parts(self, version: VersionRecord) -> tuple[Part, ...]:
        """The files of a sparse array's version, in the order of their first cells, each with its dead rows.

        Whoever reads them holds the version first: of one that was given up meanwhile only some may be found.
        """
        return self._parts(version.array_id, version.number)

    def _read_parts(self, array_id: int, number: int) -> tuple[Part, ...]:
        with self.reading() as connection:
            return read_parts(connection, array_id, number)

    def every_part(self, record: ArrayRecord) -> list[tuple[int, str, int, int | None]]:
        """(id, path, since, until) of all parts the catalog knows of, whatever the version."""
        table = tables.parts
        columns = (table.c.id, table.c.path, table.c.since, table.c.until)
        return self._spans(sa.select(*columns).where(table.c.array_id == record.id), "parts")

    def every_vector(self, record: ArrayRecord) -> list[tuple[int, str, int, int | None]]:
        """(part, file, since, until) of all vectors the catalog knows of."""
        table, part = tables.vectors, tables.parts
        columns = (table.c.part_id, table.c.file, table.c.since, table.c.until)
        joined = sa.select(*columns).join(part, part.c.id == table.c.part_id).where(part.c.array_id == record.id)
        return self._spans(joined, "vectors")

    def _spans(self, query: sa.Select[Any], what: str) -> list[tuple[int, str, int, int | None]]:
        with self.reading() as connection:
            rows = connection.execute(query).all()
        with damaged_rows(what):
            return [
                (key, name, index(since), None if until is None else index(until)) for key, name, since, until in rows
            ]

    def forget_parts(self, ids: Sequence[int]) -> None:
        with self.writing() as connection:
            for start in range(0, len(ids), MOST_PARAMETERS):
                forget_parts(connection, tables.parts.c.id.in_(list(ids[start : start + MOST_PARAMETERS])))

    def chunks(self, version: VersionRecord) -> ChunkStatistics:
        """The chunk metadata of a version, one row per chunk and part, of chunks that have live cells."""
        if version.schema.sparse:
            return self._chunks(version.array_id, version.number, version.schema.grid)
        with self.reading() as connection:
            ordinals, sizes, changed = read_dense_chunks(connection, version.array_id, version.number)
        none = np.zeros((len(ordinals), version.schema.ndim), np.int64)
        return clip_chunks(ChunkStatistics(ordinals, ordinals, sizes, none, none, changed), version)

    def _read_chunks(self, array_id: int, number: int, grid: ChunkGrid) -> ChunkStatistics:
        parts = self._parts(array_id, number)
        if not parts:
            return ChunkStatistics.empty(grid.ndim)
        name, folder = self._store(array_id) if any(part.vector for part in parts) else ("", "")
        pieces = []
        for part, told in zip(parts, self.indexes(parts, number, grid), strict=True):
            with vector_failures(f"{name}@{number}", part.path, part.vector):
                pieces.append(with_live_cells(told, read_rows(folder, part.vector)))
        return existing_chunks(pieces, grid.ndim)

    def indexes(self, parts: Sequence[Part], number: int, grid: ChunkGrid) -> list[ChunkStatistics]:
        """The indexes of parts as of a version: all rows of each chunk, and when its live cells last changed."""
        ids = [part.id for part in parts if part.id is not None and part.vector is not None]
        with self.reading() as connection:
            marks = read_marks(connection, ids, number)
        written = self.written_indexes(parts, grid)
        return [with_changes(told, marks.get(part.id or 0, [])) for part, told in zip(parts, written, strict=True)]

    def written_indexes(self, parts: Sequence[Part], grid: ChunkGrid) -> list[ChunkStatistics]:
        """The indexes of parts as they were written; decoded ones are kept, for they never change."""
        found = {part.path: part.chunks or self._indexes.find(part.path) for part in parts}
        lacking = {part.id: part for part in parts if part.id is not None and found[part.path] is None}
        if lacking:
            with self.reading() as connection:
                encoded = read_indexes(connection, list(lacking))
            with damaged_rows("the chunks of a part"):
                for part_id, part in lacking.items():
                    decoded = found[part.path] = decode_index(encoded[part_id], grid, part.bytes)
                    self._indexes.keep(part.path, decoded)
        return [known for part in parts if (known := found[part.path]) is not None]

    def _store(self, array_id: int) -> tuple[str, str]:
        """The name of an array, and the folder of its store."""
        if self.stores is None:
            raise StoreError("this catalog belongs to no warehouse", hint="Open the warehouse")
        columns = sa.select(tables.arrays.c.name, tables.arrays.c.directory).where(tables.arrays.c.id == array_id)
        with self.reading() as connection:
            row = connection.execute(columns).first()
        if row is None:
            raise UnknownNameError("the array was dropped", got=str(array_id))
        return row.name, place_inside(self.stores, check_directory(row.directory))

    def remember_indexes(self, parts: Sequence[Part]) -> None:
        """Keep the indexes of parts that were just written: the next batch asks for them."""
        for part in parts:
            if part.chunks is not None and (part.chunks.cells > 0).all():  # what is known of other chunks is reduced
                self._indexes.keep(part.path, part.chunks)

    def forget_dense_chunks(self, record: ArrayRecord, oldest: int) -> None:
        """Forget the metadata of chunks that no version from ``oldest`` on has."""
        with self.writing() as connection:
            forget_dense_chunks(connection, record.id, oldest)
