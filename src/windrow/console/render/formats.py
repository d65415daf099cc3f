"""Results for other programs: CSV, JSON lines and Arrow streams, every cell a row, in the order of coordinates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, Literal

import pyarrow as pa

from windrow.api.results import Result

if TYPE_CHECKING:
    from windrow.api.query import Query
    from windrow.api.sql_queries import SqlResult

Format = Literal["table", "csv", "json", "arrow"]


def write_query(query: Query, format: Format, stream: IO[bytes]) -> int:
    """Write a query's result piece by piece, and count its cells; dense ones of any size fit."""
    rows = Result(query).rows()
    return _write_batches(rows.fields, rows.batches, format, stream)


def write_rows(found: SqlResult, format: Format, stream: IO[bytes]) -> int:
    """Write what a SQL query gives piece by piece, and count its rows."""
    return _write_batches(*found.batches(), format, stream)


def write_table(found: pa.Table, format: Format, stream: IO[bytes]) -> int:
    return _write_batches(found.schema, iter(found.to_batches()), format, stream)


def _write_batches(fields: pa.Schema, batches: Iterator[pa.RecordBatch], format: Format, stream: IO[bytes]) -> int:
    rows = 0
    if format == "json":
        for batch in batches:
            rows += batch.num_rows
            stream.write(b"".join(json.dumps(_plain(row)).encode() + b"\n" for row in batch.to_pylist()))
        stream.flush()
        return rows
    with _writer(fields, format, stream) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(batch)
    stream.flush()
    return rows


def _writer(fields: pa.Schema, format: Format, stream: IO[bytes]) -> Any:
    # Arrow closes what it writes to; what comes after this result goes to the same stream.
    kept = pa.PythonFile(_Open(stream), mode="w")
    if format == "arrow":
        return pa.ipc.new_stream(kept, fields)
    from pyarrow import csv

    return csv.CSVWriter(kept, fields, write_options=csv.WriteOptions(quoting_style="needed"))


class _Open:
    """A stream that stays open."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.write = stream.write
        self.flush = stream.flush
        self.closed = False

    def close(self) -> None:
        self.flush()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row in what JSON has: moments and infinite numbers are texts."""
    return {name: _plain_value(value) for name, value in row.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value.isoformat() if hasattr(value, "isoformat") else value
