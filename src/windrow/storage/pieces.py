"""Stored pieces: what a reader of a sparse array reads, as values that can be compared from version to version.

Two versions hold the same cells in the pieces that they share. What they do not share is found by the difference of two
sets, and only that has to be read to tell what came and what went.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.storage.cells import cell_fields, from_stored
from windrow.storage.records import Int64Array, Part, Vector
from windrow.storage.sparse import SparseSnapshot
from windrow.storage.upkeep.working_parts import died_rows
from windrow.storage.working import WorkingArray


@dataclass(frozen=True)
class Piece:
    """A part, and the vector of its dead rows if it has any. Pieces are equal if they hold the same cells."""

    path: str
    vector: Vector | None
    part: Part = field(compare=False)


def pieces_of(snapshot: SparseSnapshot) -> frozenset[Piece]:
    """The pieces of a version, or of a working state (``working.sparse()``)."""
    return frozenset(Piece(part.path, part.vector, part) for part in snapshot.parts if part.live)


def read_piece(snapshot: SparseSnapshot, piece: Piece, columns: Iterable[str] | None = None) -> pa.Table:
    """The live cells of one piece, in the order of chunks."""
    return snapshot.reader.read(piece.part, None, columns)


def read_rows_of(snapshot: SparseSnapshot, piece: Piece, rows: Int64Array) -> pa.Table:
    """Some cells of a piece by their row numbers, dead or alive: how cells were before they died."""
    return from_stored(snapshot.reader.take(piece.part, rows), snapshot.schema)


def added_cells(working: WorkingArray) -> pa.Table:
    """The cells that a transaction has brought into an array so far, with their values."""
    snapshot = working.sparse()
    new = [part for path, part in working.parts.items() if path not in working.base_parts and part.live]
    return _join(snapshot, [snapshot.reader.read(part) for part in new])


def removed_cells(working: WorkingArray) -> pa.Table:
    """The cells that a transaction has replaced or deleted so far, with the values that they had."""
    snapshot = working.sparse()
    tables = []
    for path, before in working.base_parts.items():
        now = working.parts.get(path)
        rows = snapshot.reader.live_rows(before) if now is None else died_rows(working, now)
        if len(rows):
            tables.append(read_rows_of(snapshot, Piece(path, before.vector, before), rows))
    return _join(snapshot, tables)


def _join(snapshot: SparseSnapshot, tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([cell_fields(snapshot.schema).empty_table(), *tables])
