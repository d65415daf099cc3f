"""Rows of the catalog's tables as records, and records as rows."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa

from windrow.errors import SchemaError, StoreError
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.schema import Schema
from windrow.storage.records import ArrayRecord, ChunkStatistics, VersionRecord


def now_microseconds() -> int:
    return time.time_ns() // 1000


def alive(table: sa.Table, array_id: int, number: int) -> sa.ColumnElement[bool]:
    """Which rows of a table with ``since`` and ``until`` belong to a version."""
    return (
        (table.c.array_id == array_id)
        & (table.c.since <= number)
        & (table.c.until.is_(None) | (table.c.until > number))
    )


def pack(bounds: Sequence[int]) -> bytes:
    return np.array(bounds, "<i8").tobytes()


def unpack_all(packed: Sequence[bytes]) -> list[tuple[int, ...]]:
    bounds = np.frombuffer(b"".join(packed), "<i8").reshape(len(packed), -1) if packed else np.empty((0, 0))
    return list(map(tuple, bounds.tolist()))


def array_record(row: Any) -> ArrayRecord:
    metadata = json.loads(row.metadata)
    return ArrayRecord(row.id, row.name, row.directory, row.kind == "sparse", row.gridding, metadata)


def version_row(version: VersionRecord, array_id: int) -> dict[str, Any]:
    return {
        "array_id": array_id,
        "number": version.number,
        "pointer": version.pointer,
        "schema": str(version.schema),
        "hi": json.dumps(version.hi),
        "operation": version.operation,
        "batch": version.batch,
        "created": int(version.created.timestamp() * 1_000_000),
        "cells": version.cells,
        "bytes": version.bytes,
        "checksum": version.checksum,
    }


def version_record(row: Any, sparse: bool) -> VersionRecord:
    schema = _schema(row.schema, sparse)
    created = datetime.fromtimestamp(row.created / 1_000_000, UTC)
    hi = tuple(json.loads(row.hi))
    return VersionRecord(
        row.array_id, row.number, row.pointer, schema, hi, row.operation, row.batch, created, row.cells, row.bytes,
        row.checksum,
    )  # fmt: skip


@functools.lru_cache(maxsize=256)
def _schema(text: str, sparse: bool) -> Schema:
    try:
        return parse_schema(text, sparse=sparse)[1]
    except SchemaError as error:
        raise StoreError("the catalog holds a schema this windrow cannot read", got=text, hint=str(error)) from None


def assemble(segments: Sequence[tuple[int, bytes]]) -> Labels:
    """A dimension's labels from the pieces in which they were set, the first of which begins them."""
    result = Labels.from_bytes(segments[0][1])
    for start, encoded in segments[1:]:
        piece = Labels.from_bytes(encoded)
        result = result.concat(piece) if start == len(result) else result.replaced(start, piece.values)
    return result


def clipped(chunks: ChunkStatistics, version: VersionRecord) -> ChunkStatistics:
    """Dense chunks with the cells they have in this version: a dimension may have grown since they were written."""
    grid, box = version.schema.grid, version.box
    boxes = [grid.box_of(grid.key(ordinal)) & box for ordinal in chunks.ordinals.tolist()]
    cells = np.array([chunk.size for chunk in boxes], np.int64)
    lo, hi = (np.array([getattr(chunk, end) for chunk in boxes], np.int64) for end in ("lo", "hi"))
    return ChunkStatistics(chunks.ordinals, cells, chunks.bytes, lo, hi)
