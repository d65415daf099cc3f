"""Stored pieces: what a reader of a sparse array reads, as values that can be compared from version to version.

Two versions hold the same cells in the pieces that they share. What they do not share is found by the difference of two
sets, and only that has to be read to tell what came and what went.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.storage.cells import from_stored
from windrow.storage.records import Int64Array, Part, Vector
from windrow.storage.sparse import SparseSnapshot


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
