"""Rows of the catalog's tables as records, and records as rows."""

from __future__ import annotations

import functools
import json
import operator
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from windrow.errors import SchemaError, StoreError
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.schema import Schema, check_name
from windrow.storage.failures import damaged_rows
from windrow.storage.places import check_directory
from windrow.storage.records import ArrayRecord, ChunkStatistics, VersionRecord

_KINDS = {"dense": False, "sparse": True}


def now_microseconds() -> int:
    return time.time_ns() // 1000


def pack(bounds: Sequence[int]) -> bytes:
    return np.array(bounds, "<i8").tobytes()


def unpack_all(packed: Sequence[bytes]) -> list[tuple[int, ...]]:
    with damaged_rows("the bounds of parts"):
        bounds = np.frombuffer(b"".join(packed), "<i8").reshape(len(packed), -1) if packed else np.empty((0, 0))
        return list(map(tuple, bounds.tolist()))


def array_record(row: Any) -> ArrayRecord:
    with damaged_rows("an array"):
        metadata = {key: dict(value) for key, value in json.loads(row.metadata).items()}
        check_name(row.name, "an array")
        return ArrayRecord(row.id, row.name, check_directory(row.directory), _KINDS[row.kind], row.gridding, metadata)


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
    with damaged_rows("a version"):
        schema = _schema(row.schema, sparse)
        created = datetime.fromtimestamp(row.created / 1_000_000, UTC)
        hi = tuple(map(operator.index, json.loads(row.hi)))
        schema.box(hi)
        operation, checksum = check_text(row.operation), check_text(row.checksum)
        numbers = (operator.index(value) for value in (row.array_id, row.number, row.cells, row.bytes))
        array_id, number, cells, size = numbers
        return VersionRecord(
            array_id, number, check_text(row.pointer), schema, hi, operation, row.batch, created, cells, size, checksum
        )


def check_text(value: object) -> str:
    """A text of the catalog's; SQLite holds anything in any column."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


@functools.lru_cache(maxsize=256)
def _schema(text: str, sparse: bool) -> Schema:
    try:
        return parse_schema(text, sparse=sparse)[1]
    except SchemaError as error:
        raise StoreError("the catalog holds a schema this windrow cannot read", got=text, hint=str(error)) from None


def assemble(segments: Sequence[tuple[int, bytes]]) -> Labels:
    """A dimension's labels, joined from the pieces in which they were set: each holds all from its start on."""
    with damaged_rows("labels"):
        result = Labels.from_bytes(segments[0][1])
        for start, encoded in segments[1:]:
            piece = Labels.from_bytes(encoded)
            result = result.slice(0, start).concat(piece) if start else piece
        return result


def clip_chunks(chunks: ChunkStatistics, version: VersionRecord) -> ChunkStatistics:
    """Dense chunks with the cells they have in this version: a dimension may have grown since they were written."""
    if not len(chunks):
        return chunks
    grid, box = version.schema.grid, version.box
    keys = [chunks.ordinals // stride % count for stride, count in zip(grid.strides, grid.radix, strict=True)]
    corners = [start + key * size for start, key, size in zip(grid.lo, keys, grid.chunk, strict=True)]
    lo = np.stack(corners, axis=1)
    hi = np.minimum(lo + np.array(grid.chunk, np.int64) - 1, np.array(box.hi, np.int64))
    cells = np.maximum(hi - lo + 1, 0).prod(axis=1)
    return ChunkStatistics(chunks.ordinals, cells, chunks.bytes, lo, hi, chunks.changed)
