"""What publishing one array's next version writes into the catalog's tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from windrow.errors import ConflictError
from windrow.storage import tables
from windrow.storage.records import ChunkStatistics, NewVersion, Part, VersionRecord
from windrow.storage.rows import assemble, pack, version_row

LABEL_SEGMENTS = 32
"""After so many label changes the next one is stored whole, so that reading labels stays quick."""


def publish_one(connection: Connection, change: NewVersion, batch: str | None) -> VersionRecord:
    """Enter the version that follows ``change.base``, with what it adds and ends."""
    table = tables.versions
    newest = connection.execute(
        sa.select(table).where(table.c.array_id == change.array_id).order_by(table.c.number.desc()).limit(1)
    ).first()
    if newest is None or newest.number != change.base:
        raise ConflictError(
            "the array changed while this write was under way",
            got=f"version {newest.number if newest else 'dropped'} instead of {change.base}",
            hint="Write again",
        )
    number = newest.number + 1
    if change.replaces_all_chunks:
        _end(connection, tables.chunks, number, tables.chunks.c.array_id == change.array_id)
    if change.dense_chunks is not None:
        _replace_dense_chunks(connection, change.array_id, number, change.dense_chunks)
    _end_parts(connection, change.removed_parts, number)
    for part in change.added_parts:
        _add_part(connection, change.array_id, number, part)
    _add_labels(connection, change, number)
    cells, size = _totals(connection, change.array_id, change.added_parts, change.removed_parts, newest)
    if change.dense_chunks is not None or change.replaces_all_chunks:
        cells, size = change.schema.box(change.hi).size, _dense_bytes(connection, change.array_id)
    version = VersionRecord(
        change.array_id, number, change.pointer, change.schema, change.hi, change.operation, batch,
        datetime.now(UTC), cells, size, change.checksum,
    )  # fmt: skip
    connection.execute(sa.insert(table).values(version_row(version, change.array_id)))
    return version


def _end(connection: Connection, table: sa.Table, number: int, where: sa.ColumnElement[bool]) -> None:
    connection.execute(sa.update(table).where(where & table.c.until.is_(None)).values(until=number))


def _end_parts(connection: Connection, ids: Sequence[int], number: int) -> None:
    if ids:
        by_part = sa.update(tables.parts).where(tables.parts.c.id == sa.bindparam("ended")).values(until=number)
        by_chunk = sa.update(tables.chunks).where(tables.chunks.c.part_id == sa.bindparam("ended")).values(until=number)
        rows = [{"ended": part_id} for part_id in ids]
        connection.execute(by_part, rows)
        connection.execute(by_chunk, rows)


def _replace_dense_chunks(connection: Connection, array_id: int, number: int, chunks: ChunkStatistics) -> None:
    if not len(chunks):
        return
    table = tables.chunks
    ended = (table.c.array_id == array_id) & (table.c.chunk == sa.bindparam("ordinal")) & table.c.until.is_(None)
    connection.execute(
        sa.update(table).where(ended).values(until=number), [{"ordinal": int(o)} for o in chunks.ordinals]
    )
    connection.execute(sa.insert(table), _chunk_rows(array_id, number, chunks, None))


def _add_part(connection: Connection, array_id: int, number: int, part: Part) -> None:
    row = {
        "array_id": array_id,
        "path": part.path,
        "since": number,
        "cells": part.cells,
        "bytes": part.bytes,
        "checksum": part.checksum,
        "lo": pack(part.box.lo),
        "hi": pack(part.box.hi),
    }
    inserted = connection.execute(sa.insert(tables.parts).values(row))
    part_id = int(inserted.inserted_primary_key[0])  # type: ignore[index]
    if part.chunks is not None and len(part.chunks):
        connection.execute(sa.insert(tables.chunks), _chunk_rows(array_id, number, part.chunks, part_id))


def _chunk_rows(array_id: int, number: int, chunks: ChunkStatistics, part_id: int | None) -> list[dict[str, Any]]:
    lows, highs = (np.ascontiguousarray(bounds, "<i8") for bounds in (chunks.lo, chunks.hi))
    columns = zip(chunks.ordinals.tolist(), chunks.cells.tolist(), chunks.bytes.tolist(), lows, highs, strict=True)
    return [
        {
            "array_id": array_id,
            "part_id": part_id,
            "chunk": ordinal,
            "since": number,
            "cells": cells,
            "bytes": size,
            "lo": lo.tobytes(),
            "hi": hi.tobytes(),
        }
        for ordinal, cells, size, lo, hi in columns
    ]


def _add_labels(connection: Connection, change: NewVersion, number: int) -> None:
    table = tables.labels
    for label in change.labels:
        mine = (table.c.array_id == change.array_id) & (table.c.dimension == label.dimension)
        start, encoded = label.start, label.encoded
        if start > 0:
            query = sa.select(table.c.start, table.c.encoded).where(mine).order_by(table.c.since.desc())
            recent = connection.execute(query.limit(LABEL_SEGMENTS)).all()
            if not any(row.start == 0 for row in recent):
                rows = connection.execute(sa.select(table.c.start, table.c.encoded).where(mine).order_by(table.c.since))
                segments = [(row.start, row.encoded) for row in rows] + [(start, encoded)]
                newest_whole = max(index for index, segment in enumerate(segments) if segment[0] == 0)
                start, encoded = 0, assemble(segments[newest_whole:]).to_bytes()
        row = {"array_id": change.array_id, "dimension": label.dimension, "since": number, "start": start}
        connection.execute(sa.insert(table).values(row | {"encoded": encoded}))


def _totals(
    connection: Connection, array_id: int, added: Sequence[Part], removed: Sequence[int], newest: Any
) -> tuple[int, int]:
    """Cells and bytes after adding and removing parts, from those of the version before."""
    cells = newest.cells + sum(part.cells for part in added)
    size = newest.bytes + sum(part.bytes for part in added)
    for part_id in removed:
        columns = sa.select(tables.parts.c.cells, tables.parts.c.bytes)
        row = connection.execute(columns.where(tables.parts.c.id == part_id)).one()
        cells, size = cells - row.cells, size - row.bytes
    return cells, size


def _dense_bytes(connection: Connection, array_id: int) -> int:
    table = tables.chunks
    alive = (table.c.array_id == array_id) & table.c.until.is_(None)
    return int(connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(table.c.bytes), 0)).where(alive)) or 0)
