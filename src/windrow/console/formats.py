"""Results for other programs: CSV, JSON lines and Arrow streams, every cell a row, in the order of coordinates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from windrow.formats.cells import LABEL_SUFFIX, cells_schema, dense_to_batches
from windrow.model.arrow import block_to_arrow
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import ComputedCells
from windrow.operations.blocks import ComputedSource
from windrow.operations.held import HeldGrid
from windrow.operations.queries import compute_grid, source_of
from windrow.plan.bound import Bound

if TYPE_CHECKING:
    from windrow.api.query import Query

Format = Literal["table", "csv", "json", "arrow"]
FORMATS: tuple[Format, ...] = ("table", "csv", "json", "arrow")

_CELLS_AT_ONCE = 2**19


def write_query(query: Query, format: Format, stream: IO[bytes]) -> int:
    """Write a query's result piece by piece, and count its cells; dense ones of any size fit."""
    bound, engine = query._optimized().bound, query.database.engine
    source = source_of(engine, bound)
    if isinstance(source, ComputedCells):
        found = query.compute()
        assert isinstance(found, pa.Table)
        return write_table(_with_labels(found, source.schema, dict(source.labels)), format, stream)
    pieces = (_held(query, source, slab) for slab in _slabs(bound.box, source.schema.grid.chunk))
    fields = cells_schema(source, bool(source.labels))
    batches: Iterator[pa.RecordBatch] = (
        batch for piece in pieces for batch in dense_to_batches(piece, bool(source.labels))
    )
    if bound.scalar:
        fields, batches = _without_place(bound, fields, batches)
    return _written(fields, batches, format, stream)


def write_table(found: pa.Table, format: Format, stream: IO[bytes]) -> int:
    return _written(found.schema, iter(found.to_batches()), format, stream)


def _written(fields: pa.Schema, batches: Iterator[pa.RecordBatch], format: Format, stream: IO[bytes]) -> int:
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


def _held(query: Query, source: ComputedSource, box: Box) -> HeldGrid:
    """A part of a dense result, with the labels of its cells."""
    sides = zip(source.schema.dimensions, box.lo, box.hi, strict=True)
    dimensions = tuple(replace(d, lo=lo, hi=hi, chunk=hi - lo + 1) for d, lo, hi in sides)
    labels = tuple(
        (d.name, source.labels[d.name].slice(lo - d.lo, hi + 1 - d.lo))
        for d, lo, hi in zip(source.schema.dimensions, box.lo, box.hi, strict=True)
        if d.name in source.labels
    )
    blocks = compute_grid(query.database.engine, source, box)
    return HeldGrid(replace(source.schema, dimensions=dimensions), box, labels, blocks)


def _slabs(box: Box, chunk: tuple[int, ...]) -> Iterator[Box]:
    """A box in parts that follow one another in row-major order, of whole chunks where these are small."""
    if box.is_empty:
        return
    rest = math.prod(box.shape[1:])
    if rest > _CELLS_AT_ONCE and box.ndim > 1:
        for place in range(box.lo[0], box.hi[0] + 1):
            for part in _slabs(Box(box.lo[1:], box.hi[1:]), chunk[1:]):
                yield Box((place, *part.lo), (place, *part.hi))
        return
    rows = max(1, _CELLS_AT_ONCE // rest)
    rows = rows - rows % chunk[0] if rows > chunk[0] else rows
    for start in range(box.lo[0], box.hi[0] + 1, rows):
        yield Box((start, *box.lo[1:]), (min(box.hi[0], start + rows - 1), *box.hi[1:]))


def _without_place(
    bound: Bound, fields: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """One result over all cells lies nowhere."""
    names = [name for name in fields.names if name not in bound.schema.dimension_names]
    return pa.schema([fields.field(name) for name in names]), (batch.select(names) for batch in batches)


def _with_labels(found: pa.Table, schema: Schema, labels: dict[str, Labels]) -> pa.Table:
    """Cells with the labels of their coordinates beside these."""
    for dimension in schema.dimensions:
        if dimension.name in labels and dimension.name in found.column_names:
            numbers = np.asarray(found.column(dimension.name).to_numpy())
            shown = block_to_arrow(labels[dimension.name].values[numbers - dimension.lo])
            place = sum(name in schema.dimension_names or name.endswith(LABEL_SUFFIX) for name in found.column_names)
            found = found.add_column(place, dimension.name + LABEL_SUFFIX, shown)
    return found
