"""Results into files, computed while they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.errors import DataError, FileFormatError
from windrow.formats.registry import format_of
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks, ComputedCells, GridSource
from windrow.operations.queries import source_of, stream_cells
from windrow.plan.bound import Metadata, carried_metadata
from windrow.storage.cells import cell_fields

if TYPE_CHECKING:
    from windrow.api.query import Query


@dataclass(frozen=True)
class Described:
    """A dense result with what is known of its attributes, as a GridSource."""

    source: GridSource
    metadata: Metadata

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.source.labels

    def read(self, box: Box) -> Blocks:
        return self.source.read(box)


def save(query: Query, path: str, format: str | None = None, overwrite: bool = False) -> int:
    """Write a query's result to a file; returns the number of its cells."""
    found = format_of(path, format)
    bound, engine = query._optimized().bound, query.database.engine
    source = source_of(engine, bound)
    if not isinstance(source, ComputedCells):
        if found.write_grid is None:
            raise FileFormatError(f"files of the format {found.name} cannot be written", got=path)
        if bound.box.is_empty:
            raise DataError("there are no cells to save", got=str(bound.box))
        found.write_grid(path, Described(source, carried_metadata(bound)), overwrite=overwrite)
        return bound.box.size
    if found.write_table is None:
        hint = "Use .parquet or .csv"
        raise FileFormatError(f"a sparse result cannot be written as {found.name}", got=path, hint=hint)
    cells = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal cells
        for table in stream_cells(engine, source, bound.box):
            cells += table.num_rows
            yield from table.to_batches()

    found.write_table(path, cell_fields(source.schema), batches(), overwrite=overwrite)
    return cells
