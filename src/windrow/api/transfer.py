"""Files into arrays and arrays into files, through the registry of formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.api.batch import Batch
from windrow.api.reports import Report
from windrow.api.selected import chosen_attributes
from windrow.errors import DataError, FileFormatError, SchemaError, UnknownNameError, nearest
from windrow.formats.place import expand
from windrow.formats.registry import FileFormat, GridOptions, TableOptions, TableSource, format_of
from windrow.model.arrow import data_type_from_arrow
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.source import Blocks, GridSource
from windrow.operations.dense.placed import arranged
from windrow.operations.query.run import source_of
from windrow.plan.bound import Bound, BoundScan, LabelItems
from windrow.plan.steps import ended
from windrow.storage.cells import cell_fields

if TYPE_CHECKING:
    from windrow.api.database import Database
    from windrow.api.selected import Selected
    from windrow.operations.query.blocks import ComputedSource

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

    Gridded files (NetCDF, GRIB, Zarr) become dense arrays; ``grow`` names a dimension that may grow later, and several
    files are joined ``along`` one. Tables (Parquet, CSV, FITS) become sparse arrays; ``dimensions`` names the columns
    that are theirs.
    """
    opened = opened_file(path, format, variables, along, delimiter)
    with database.batch(batch) as change:
        import_in(change, opened, into, grow, dimensions, chunks)
    assert change.report is not None
    return change.report


def import_in(
    batch: Batch,
    opened: Opened,
    into: str,
    grow: str | None = None,
    dimensions: Sequence[str] | None = None,
    chunks: Mapping[str, int] | None = None,
) -> None:
    """Read a file into an array, which is created if it is not there, as a step of a batch."""
    if batch._claim(into):
        if opened.grid is not None:
            _create_grid(batch, opened.grid, into, grow, chunks)
        else:
            batch.create(into, _table_schema(opened.table, dimensions), sparse=True, chunks=chunks)
    fill(batch, opened, into)


def found_files(paths: Sequence[str], format: str | None = None) -> list[str]:
    """The files that paths and patterns name; an error if there are none, or none that windrow can read."""
    found = expand(paths)
    format_of(found, format)
    return found


def array_name(file: str) -> str:
    """What an array is called after its file: ``data/air.2m.nc`` becomes ``air_2m``."""
    from windrow.formats.dataset import legal_name

    name = Path(file).name
    for suffix in (".gz", Path(name.removesuffix(".gz")).suffix):
        name = name.removesuffix(suffix)
    return legal_name(name)


@dataclass(frozen=True)
class Opened:
    """A file of either kind; only a grid is no table."""

    table: Any
    grid: GridSource | None = None
    name: str = ""
    chosen: bool = False
    """Whether its variables were chosen."""


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
        grid = found.open_grid(path, GridOptions(variables=names, along=along))
        return Opened(None, grid, _shown(path), names is not None)
    if found.open_table is None:
        raise FileFormatError(f"files of the format {found.name} cannot be read", got=str(path))
    return Opened(found.open_table(path, TableOptions(delimiter=delimiter)))


def _shown(path: Paths) -> str:
    listed = [path] if isinstance(path, str | os.PathLike) else list(path)
    return f"{listed[0]}" if len(listed) == 1 else f"{listed[0]} and {len(listed) - 1} more"


def _anywhere(path: Paths) -> Paths:
    """Files that are there by their whole paths: a worker may stand in another folder."""
    if isinstance(path, Sequence) and not isinstance(path, str):
        return [os.fspath(one) if not os.path.exists(one) else os.path.abspath(one) for one in path]
    return os.path.abspath(path) if isinstance(path, str | os.PathLike) and os.path.exists(path) else path


def _create_grid(
    batch: Batch, source: GridSource, into: str, grow: str | None, chunks: Mapping[str, int] | None
) -> None:
    schema = source.schema if grow is None else _growing(source.schema, grow)
    fixed = {name: values for name, values in source.labels.items() if not schema.dimension(name).growing}
    batch.create(into, schema, labels=fixed, chunks=chunks, metadata=getattr(source, "metadata", {}))


def fill(batch: Batch, opened: Opened, into: str) -> None:
    """Read a file into an array that is there, as a step of a batch."""
    if batch.applied_before:
        batch._working(into)  # which checks that it was applied to this array
    elif opened.grid is not None:
        schema = batch.array(into).schema
        source = arranged(opened.grid, schema.dimension_names, f"file {opened.name}")
        _check_variables(source.schema, schema, opened)
        try:
            batch.write(into, source)
        except (DataError, UnknownNameError) as error:
            raise type(error)(f"file {opened.name}: {error.what}", got=error.got, hint=error.hint) from error
    else:
        batch.insert(into, opened.table)


def _check_variables(found: Schema, wanted: Schema, opened: Opened) -> None:
    """Refuse a file that lacks variables of the array, unless some were asked for: the rest would be missing."""
    names = found.attribute_names if opened.chosen else wanted.attribute_names
    for name in names:
        if name not in found.attribute_names or name not in wanted.attribute_names:
            lacks = f"file {opened.name}" if name in wanted.attribute_names else "the array"
            raise FileFormatError(
                f"{lacks} has no variable {name}",
                got=f"{', '.join(found.attribute_names)} in the file, {', '.join(wanted.attribute_names)} in the array",
                hint="Name those to be read with variables=",
            )


def _growing(schema: Schema, name: str) -> Schema:
    axis = schema.axis(name)
    dimensions = [replace(d, hi=None, chunk=None) if i == axis else d for i, d in enumerate(schema.dimensions)]
    return replace(schema, dimensions=tuple(dimensions))


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
    database.array(array)._attempt(
        lambda now: export_selected(
            now._chosen(selection), path, format=format, overwrite=overwrite, attributes=attributes
        )
    )


def export_selected(
    selected: Selected,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    overwrite: bool = False,
    attributes: Sequence[str] | None = None,
) -> None:
    """Write selected cells to a file."""
    found = format_of(path, format)
    query = selected.bind()  # which keeps what is read from being removed
    bound = query.bound
    names = chosen_attributes(bound.schema, attributes)
    if bound.schema.sparse:
        _export_cells(selected, bound, found, path, overwrite, names)
        return
    if found.write_grid is None:
        raise FileFormatError(f"files of the format {found.name} cannot be written", got=str(path))
    if bound.box.is_empty:
        raise DataError("there are no cells to export", got=f"{selected.name}{bound.box}")
    source = source_of(selected.database.engine, bound)
    # All that is known of the array, of which a query's result carries what belongs to attributes.
    metadata = next(step.metadata for step in bound.walk() if isinstance(step, BoundScan))
    found.write_grid(path, Excerpt(source, bound.box, names, bound.labels, metadata), overwrite=overwrite)


def _export_cells(
    selected: Selected,
    bound: Bound,
    found: FileFormat,
    path: str | os.PathLike[str],
    overwrite: bool,
    names: Sequence[str],
) -> None:
    if found.write_table is None:
        raise FileFormatError(
            f"a sparse array cannot be written as {found.name}", got=str(path), hint="Use .parquet or .csv"
        )
    whole = cell_fields(bound.schema)
    fields = pa.schema([whole.field(name) for name in (*bound.dimension_names, *names)])

    def batches() -> Iterator[pa.RecordBatch]:
        for table in selected.batches(names):
            yield from table.to_batches()

    found.write_table(path, fields, batches(), overwrite=overwrite)


@dataclass(frozen=True)
class Excerpt:
    """A box of a dense array and some of its attributes, as a GridSource."""

    source: ComputedSource
    box: Box
    attributes: tuple[str, ...]
    label_items: LabelItems
    metadata: Mapping[str, Mapping[str, str]]

    @property
    def schema(self) -> Schema:
        return ended(self.source.schema.select(self.attributes), self.box)

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    def read(self, box: Box) -> Blocks:
        return self.source.read(box, self.attributes)
