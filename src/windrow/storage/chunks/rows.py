"""The catalog's rows about parts, their vectors and chunks: what publishing writes and what is read back."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.storage import tables
from windrow.storage.chunks.index import encode_index, pack_columns, unpack_columns
from windrow.storage.failures import damaged_rows
from windrow.storage.records import ChunkStatistics, Int64Array, Marked, NewVersion, Part, Vector
from windrow.storage.rows import pack, unpack_all

WHOLE_EVERY = 64
"""After so many changes of a dense array's chunks they are listed whole, so that reading them stays quick."""

MOST_PARAMETERS = 500
"""How many ids one question names: SQLite allows some hundreds of parameters everywhere."""

# Parts and vectors

_NUMBER: sa.BindParameter[int] = sa.bindparam("number")


def _holds(table: sa.Table) -> sa.ColumnElement[bool]:
    """Which rows of a table with ``since`` and ``until`` belong to a version."""
    return sa.and_(table.c.since <= _NUMBER, table.c.until.is_(None) | (table.c.until > _NUMBER))


_OF_VERSION = sa.and_(tables.parts.c.array_id == sa.bindparam("array_id"), _holds(tables.parts))
_PARTS = sa.select(tables.parts).where(_OF_VERSION).order_by(tables.parts.c.id)
_VECTORS = (
    sa.select(*tables.vectors.c["part_id", "file", "start", "length", "dead", "spent"])
    .join(tables.parts, tables.parts.c.id == tables.vectors.c.part_id)
    .where(_OF_VERSION, _holds(tables.vectors))
)
"""Both made once, because every change asks them."""


def read_parts(connection: Connection, array_id: int, number: int) -> tuple[Part, ...]:
    """The parts of a version, with the vectors that they have in it."""
    asked = {"array_id": array_id, "number": number}
    rows = connection.execute(_PARTS, asked).all()
    found = connection.execute(_VECTORS, asked).all()
    with damaged_rows("parts"):
        vectors = {row.part_id: row for row in found}
        lows, highs = unpack_all([row.lo for row in rows]), unpack_all([row.hi for row in rows])
        listed = [_part(row, Box(lo, hi), vectors.get(row.id)) for row, lo, hi in zip(rows, lows, highs, strict=True)]
        return tuple(sorted(listed, key=lambda part: part.box.lo))


def _part(row: Any, box: Box, vector: Any) -> Part:
    numbers = map(index, (row.cells, row.bytes, row.checksum, row.first, row.last, row.run))
    cells, size, checksum, first, last, run = numbers
    known, spent = None, 0
    if vector is not None:
        dead, start, length, spent = map(index, (vector.dead, vector.start, vector.length, vector.spent))
        known = Vector(dead, vector.file, start, length)
        if not 0 <= dead <= cells or min(start, length) < 0 or not vector.file:
            raise ValueError(f"a vector of {dead} rows")
    return Part(row.path, cells, size, checksum, box, None, row.id, first, last, run, known, spent)


def read_indexes(connection: Connection, ids: Sequence[int]) -> dict[int, bytes]:
    """The encoded indexes of parts, by id."""
    table, found = tables.part_chunks, {}
    for start in range(0, len(ids), MOST_PARAMETERS):
        chosen = table.c.part_id.in_(list(ids[start : start + MOST_PARAMETERS]))
        query = sa.select(table.c.part_id, table.c.encoded).where(chosen)
        found.update({row.part_id: row.encoded for row in connection.execute(query)})
    return found


def read_marks(connection: Connection, ids: Sequence[int], number: int) -> dict[int, list[tuple[int, Int64Array]]]:
    """For each part (version, chunks in which cells died of a change), up to a version."""
    table = tables.vectors
    marks: dict[int, list[tuple[int, Int64Array]]] = {}
    for start in range(0, len(ids), MOST_PARAMETERS):
        chosen = table.c.part_id.in_(list(ids[start : start + MOST_PARAMETERS])) & (table.c.since <= number)
        rows = connection.execute(sa.select(table.c.part_id, table.c.since, table.c.marked).where(chosen)).all()
        with damaged_rows("vectors"):
            for row in rows:
                ordinals = np.cumsum(unpack_columns(row.marked)[0])
                marks.setdefault(row.part_id, []).append((index(row.since), ordinals))
    return marks


def publish_parts(connection: Connection, change: NewVersion, number: int, before: tuple[int, int]) -> tuple[int, int]:
    """Enter what a version adds, marks and ends; returns its live cells and stored bytes, from those before."""
    cells, size = before
    touched = [*change.removed_parts, *(marked.part.id for marked in change.marked_parts if marked.part.id is not None)]
    dead = _dead_rows(connection, touched)
    for row in _rows_of(connection, change.removed_parts):
        cells, size = cells - (row.cells - dead.get(row.id, 0)), size - row.bytes
    _end(connection, tables.parts, tables.parts.c.id, change.removed_parts, number)
    _end(connection, tables.vectors, tables.vectors.c.part_id, touched, number)
    for marked in change.marked_parts:
        assert marked.part.id is not None
        cells -= marked.part.cells - marked.part.live - dead.get(marked.part.id, 0)
    _add_vectors(connection, number, change.marked_parts)
    for part in change.added_parts:
        _add_part(connection, change.array_id, number, part, change.schema.grid)
        cells, size = cells + part.live, size + part.bytes
    return cells, size


def _pieces(ids: Sequence[int]) -> list[list[int]]:
    return [list(ids[start : start + MOST_PARAMETERS]) for start in range(0, len(ids), MOST_PARAMETERS)]


def _dead_rows(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """How many rows of each part are dead in the newest version, if any are."""
    table, found = tables.vectors, {}
    for some in _pieces(ids):
        chosen = sa.select(table.c.part_id, table.c.dead).where(table.c.part_id.in_(some) & table.c.until.is_(None))
        found.update({row.part_id: int(row.dead) for row in connection.execute(chosen)})
    return found


def _rows_of(connection: Connection, ids: Sequence[int]) -> list[Any]:
    query = sa.select(tables.parts.c.id, tables.parts.c.cells, tables.parts.c.bytes)
    found = [connection.execute(query.where(tables.parts.c.id.in_(some))).all() for some in _pieces(ids)]
    return [row for rows in found for row in rows]


def _end(connection: Connection, table: sa.Table, column: Any, ids: Sequence[int], number: int) -> None:
    for some in _pieces(ids):
        connection.execute(sa.update(table).where(column.in_(some) & table.c.until.is_(None)).values(until=number))


def _add_vectors(connection: Connection, number: int, marked: Sequence[Marked]) -> None:
    rows = [_vector_row(each.part.id or 0, number, each) for each in marked]
    if rows:
        connection.execute(sa.insert(tables.vectors), rows)


def _vector_row(part_id: int, number: int, marked: Marked) -> dict[str, Any]:
    vector = marked.part.vector
    assert vector is not None
    return {
        "part_id": part_id,
        "since": number,
        "file": vector.file,
        "start": vector.start,
        "length": vector.length,
        "dead": vector.dead,
        "spent": marked.part.spent,
        "marked": pack_columns([np.diff(marked.chunks, prepend=0)]),
    }


def _add_part(connection: Connection, array_id: int, number: int, part: Part, grid: ChunkGrid) -> None:
    row = {
        "array_id": array_id,
        "path": part.path,
        "since": number,
        "cells": part.cells,
        "bytes": part.bytes,
        "checksum": part.checksum,
        "lo": pack(part.box.lo),
        "hi": pack(part.box.hi),
        "first": part.first,
        "last": part.last,
        "run": part.run,
    }
    inserted = connection.execute(sa.insert(tables.parts), row)
    part_id = int(inserted.inserted_primary_key[0])  # type: ignore[index]
    assert part.chunks is not None
    add_index(connection, part_id, part.chunks, grid)
    if part.vector is not None:
        row = _vector_row(part_id, number, Marked(part, np.empty(0, np.int64)))
        connection.execute(sa.insert(tables.vectors), row)


def add_index(connection: Connection, part_id: int, chunks: ChunkStatistics, grid: ChunkGrid) -> None:
    row = {"part_id": part_id, "chunks": len(chunks), "encoded": encode_index(chunks, grid)}
    connection.execute(sa.insert(tables.part_chunks), row)


def forget_parts(connection: Connection, chosen: sa.ColumnElement[bool]) -> None:
    """Forget parts, with their indexes and vectors."""
    ids = sa.select(tables.parts.c.id).where(chosen)
    for table in (tables.part_chunks, tables.vectors):
        connection.execute(sa.delete(table).where(table.c.part_id.in_(ids)))
    connection.execute(sa.delete(tables.parts).where(chosen))


# Chunks of dense arrays


def read_dense_chunks(connection: Connection, array_id: int, number: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(ordinals, bytes, versions) of the chunks that a version of a dense array has, by ordinal."""
    table = tables.dense_chunks
    mine = (table.c.array_id == array_id) & (table.c.since <= number)
    newest_whole = sa.select(sa.func.max(table.c.since)).where(mine & (table.c.whole == 1)).scalar_subquery()
    query = sa.select(table.c.encoded).where(mine, table.c.since >= newest_whole).order_by(table.c.since)
    rows = connection.execute(query).all()
    with damaged_rows("chunks"):
        pieces = [unpack_columns(row.encoded) for row in rows]
        columns = [np.concatenate([np.empty(0, np.int64), *(piece[n] for piece in pieces)]) for n in range(3)]
    return newest_of_each(*columns)


def newest_of_each(ordinals: Int64Array, sizes: Int64Array, changed: Int64Array) -> tuple[Any, Any, Any]:
    """What was written last of each chunk, of lists in the order in which they were written."""
    order = np.argsort(ordinals, kind="stable")
    last = np.append(np.diff(ordinals[order]) != 0, True)[: len(order)]
    kept = order[last]
    return ordinals[kept], sizes[kept], changed[kept]


def publish_dense_chunks(connection: Connection, change: NewVersion, number: int) -> int:
    """Enter the chunks that a version wrote; returns the bytes of all that it has."""
    written = change.dense_chunks or ChunkStatistics.empty(change.schema.ndim)
    new = written.ordinals, written.bytes, np.full(len(written), number, np.int64)
    nothing = np.empty(0, np.int64)
    before: tuple[Any, Any, Any] = (nothing, nothing, nothing)
    if not change.replaces_all_chunks:
        before = read_dense_chunks(connection, change.array_id, number)
    joined = (np.concatenate(pair) for pair in zip(before, new, strict=True))
    now = newest_of_each(*joined)
    whole = change.replaces_all_chunks or not len(before[0]) or _whole_is_due(connection, change.array_id)
    enter_dense_chunks(connection, change.array_id, number, now if whole else newest_of_each(*new), whole)
    return int(now[1].sum())


def _whole_is_due(connection: Connection, array_id: int) -> bool:
    table = tables.dense_chunks
    recent = sa.select(table.c.whole).where(table.c.array_id == array_id).order_by(table.c.since.desc())
    return not any(connection.scalars(recent.limit(WHOLE_EVERY - 1)))


def enter_dense_chunks(
    connection: Connection, array_id: int, number: int, columns: tuple[Any, Any, Any], whole: bool
) -> None:
    row = {"array_id": array_id, "since": number, "whole": int(whole), "encoded": pack_columns(columns)}
    connection.execute(sa.insert(tables.dense_chunks).values(row))


def forget_dense_chunks(connection: Connection, array_id: int, oldest: int) -> None:
    """Forget what no version from ``oldest`` on needs: all before the last whole list that it builds on."""
    table = tables.dense_chunks
    mine = table.c.array_id == array_id
    whole = sa.select(sa.func.max(table.c.since)).where(mine & (table.c.whole == 1) & (table.c.since <= oldest))
    needed = connection.scalar(whole)
    if needed is not None:
        connection.execute(sa.delete(table).where(mine & (table.c.since < needed)))
