"""Files into arrays and arrays into files, through the registry of formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.api.batch import Batch, Report, fill_array
from windrow.errors import DataError, FileFormatError, SchemaError, UnknownNameError, nearest
from windrow.formats.registry import FileFormat, GridOptions, TableOptions, TableSource, format_of
from windrow.model.arrow import data_type_from_arrow
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.source import Blocks, GridSource
from windrow.storage.cells import cell_fields
from windrow.storage.dense import DenseSnapshot

if TYPE_CHECKING:
    from windrow.api.array import Array
    from windrow.api.database import Database

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def import_file(
    database: Database,
    path: Paths,
    into: str,
    *,
    format: str | None = None,
    variables: Sequence[str] | None = None,
    along: str | None = None,
    grow: str | None = None,
    dimensions: Sequence[str] | None = None,
    chunks: Mapping[str, int] | None = None,
    delimiter: str | None = None,
    batch: str | None = None,
) -> Report:
    """Read a file into an array, creating it if it is not there.

    Gridded files (NetCDF, Zarr) become dense arrays; ``grow`` names a dimension that may grow later, and several files
    are joined ``along`` one. Tables (Parquet, CSV) become sparse arrays whose ``dimensions`` are the columns named.
    """
    opened = opened_file(path, format, variables, along, delimiter)
    created = into not in database
    if created:
        if opened.grid is not None:
            _create_grid(database, opened.grid, into, grow, chunks)
        else:
            database.create(into, _table_schema(opened.table, dimensions), sparse=True, chunks=chunks)
    return fill_array(database, into, created, batch, lambda change: fill(change, opened, into))


@dataclass(frozen=True)
class Opened:
    """A file of either kind; only a grid is no table."""

    table: Any
    grid: GridSource | None = None


def opened_file(
    path: Paths,
    format: str | None = None,
    variables: Sequence[str] | None = None,
    along: str | None = None,
    delimiter: str | None = None,
) -> Opened:
    """A file, or several of one kind, to be read into an array."""
    path = _anywhere(path)
    found = format_of(path, format)
    if found.open_grid is not None:
        names = None if variables is None else tuple(variables)
        return Opened(None, found.open_grid(path, GridOptions(variables=names, along=along)))
    if found.open_table is None:
        raise FileFormatError(f"files of the format {found.name} cannot be read", got=str(path))
    return Opened(found.open_table(path, TableOptions(delimiter=delimiter)))


def _anywhere(path: Paths) -> Paths:
    """Files that are there by their whole paths: a worker may stand in another folder."""
    if isinstance(path, Sequence) and not isinstance(path, str):
        return [os.fspath(one) if not os.path.exists(one) else os.path.abspath(one) for one in path]
    return os.path.abspath(path) if isinstance(path, str | os.PathLike) and os.path.exists(path) else path


def _create_grid(
    database: Database, source: GridSource, into: str, grow: str | None, chunks: Mapping[str, int] | None
) -> None:
    schema = source.schema if grow is None else _growing(source.schema, grow)
    fixed = {name: values for name, values in source.labels.items() if not schema.dimension(name).growing}
    database.create(into, schema, labels=fixed, chunks=chunks, metadata=getattr(source, "metadata", {}))


def fill(batch: Batch, opened: Opened, into: str) -> None:
    """Read a file into an array that is there, as a step of a batch."""
    if opened.grid is not None:
        batch.write(into, opened.grid, at=_place(batch.database.array(into), opened.grid))
    else:
        batch.insert(into, opened.table)


def _growing(schema: Schema, name: str) -> Schema:
    axis = schema.axis(name)
    dimensions = [replace(d, hi=None, chunk=None) if i == axis else d for i, d in enumerate(schema.dimensions)]
    return replace(schema, dimensions=tuple(dimensions))


def _place(array: Array, source: GridSource) -> tuple[int, ...]:
    """Where a file's cells go: to the cells of the same labels, or after the end of a growing dimension."""
    at = []
    known = array.labels
    for dimension, theirs in zip(array.schema.dimensions, source.schema.dimensions, strict=True):
        labels, given = known.get(dimension.name), source.labels.get(theirs.name)
        if labels is None or given is None or not len(labels):
            at.append(dimension.lo)
            continue
        try:
            at.append(dimension.lo + labels.find(given.values[0]))
        except UnknownNameError:
            if not dimension.growing:
                raise
            at.append(dimension.lo + len(labels))
    return tuple(at)


def _table_schema(table: TableSource, dimensions: Sequence[str] | None) -> Schema:
    """Dimensions from the range of their columns, attributes from the rest."""
    fields = table.arrow_schema
    if not dimensions:
        raise DataError(
            "a table needs to know which columns are dimensions",
            got=", ".join(fields.names),
            hint="Give dimensions=, or create the array first",
        )
    for name in dimensions:
        if name not in fields.names:
            raise UnknownNameError("the table has no such column", got=repr(name), hint=nearest(name, fields.names))
        if not pa.types.is_integer(fields.field(name).type):
            raise SchemaError(
                f"column {name} cannot be a dimension: it is not of integers", got=fields.field(name).type
            )
    ranges = _ranges(table, dimensions)
    attributes = []
    for field in fields:
        if field.name not in dimensions:
            kind = data_type_from_arrow(field.type)
            attributes.append(Attribute(field.name, kind, nullable=not kind.is_float))
    return Schema(tuple(Dimension(name, *ranges[name]) for name in dimensions), tuple(attributes), sparse=True)


def _ranges(table: TableSource, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    ranges: dict[str, tuple[int, int]] = {}
    for batch in table.batches():
        for name in names:
            extremes = pc.min_max(batch.column(name)).as_py()
            if extremes["min"] is not None:
                lo, hi = ranges.get(name, (extremes["min"], extremes["max"]))
                ranges[name] = (min(lo, extremes["min"]), max(hi, extremes["max"]))
    if len(ranges) != len(names):
        raise DataError("the table has no rows to take the dimensions' ranges from", hint="Create the array first")
    return ranges


def export_file(
    database: Database,
    array: str,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    overwrite: bool = False,
    attributes: Sequence[str] | None = None,
    **selection: object,
) -> None:
    """Write an array (or "A@3", or a selection of it) to a file."""
    opened = database.array(array)
    found = format_of(path, format)
    if opened.sparse:
        _export_cells(opened, found, path, overwrite, attributes, selection)
        return
    if found.write_grid is None:
        raise FileFormatError(f"files of the format {found.name} cannot be written", got=str(path))
    snapshot = opened._snapshot()
    assert isinstance(snapshot, DenseSnapshot)
    box = opened._select(selection)
    if box.is_empty:
        raise DataError("there are no cells to export", got=f"{array}{box}")
    names = opened._attributes(attributes)
    found.write_grid(path, Excerpt(snapshot, box, names, opened._record().metadata), overwrite=overwrite)


def _export_cells(
    array: Array,
    found: FileFormat,
    path: str | os.PathLike[str],
    overwrite: bool,
    attributes: Sequence[str] | None,
    selection: Mapping[str, object],
) -> None:
    if found.write_table is None:
        raise FileFormatError(
            f"a sparse array cannot be written as {found.name}", got=str(path), hint="Use .parquet or .csv"
        )
    fields = cell_fields(array.schema.select(array._attributes(attributes)))

    def batches() -> Iterator[pa.RecordBatch]:
        for table in array.batches(attributes, **selection):
            yield from table.to_batches()

    found.write_table(path, fields, batches(), overwrite=overwrite)


@dataclass(frozen=True)
class Excerpt:
    """A box of a dense array and some of its attributes, as a GridSource."""

    snapshot: DenseSnapshot
    box: Box
    attributes: tuple[str, ...]
    metadata: Mapping[str, Mapping[str, str]]

    @property
    def schema(self) -> Schema:
        whole = self.snapshot.growing_schema.select(self.attributes)
        ends = zip(whole.dimensions, self.box.lo, self.box.hi, strict=True)
        return replace(whole, dimensions=tuple(replace(d, lo=lo, hi=hi) for d, lo, hi in ends))

    @property
    def labels(self) -> Mapping[str, Labels]:
        result: dict[str, Labels] = {}
        for axis, dimension in enumerate(self.snapshot.growing_schema.dimensions):
            named: Any = self.snapshot.labels.get(dimension.name)
            if named is not None:
                start = self.box.lo[axis] - dimension.lo
                result[dimension.name] = named.slice(start, start + self.box.shape[axis])
        return result

    def read(self, box: Box) -> Blocks:
        return self.snapshot.read(box, self.attributes)
