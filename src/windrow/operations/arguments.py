"""What users hand over (arrays, datasets, tables, frames, file names), brought into one form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.errors import DataError, SchemaError, UnknownNameError, nearest
from windrow.execution.engine import Engine
from windrow.model.box import Box
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Dimension, Schema
from windrow.model.source import Blocks, GridSource
from windrow.operations.dense.placed import arranged
from windrow.operations.dense.sources import memory_source, unnamed_values
from windrow.operations.tables import as_table
from windrow.storage.working import WorkingArray

if TYPE_CHECKING:
    import xarray as xr

    from windrow.formats.registry import TableOptions, TableSource


At = Sequence[int] | Mapping[str, int] | None
"""The first cell of a write as users state it: in the order of dimensions, or by their names."""
Start = tuple[int | None, ...]
"""The first cell of a write along each dimension; None where its labels say where it goes."""


@dataclass(frozen=True)
class Region:
    """Values for a box of a dense array: where from, where to, and the labels they came with."""

    source: GridSource
    at: Start
    labels: Mapping[str, Labels]


def region_of(values: Any, working: WorkingArray, at: At, labels: Mapping[str, Any]) -> Region:
    """A user's values for ``write``."""
    schema = working.schema
    for name in labels:
        schema.axis(name)
    given = {name: _as_labels(name, label) for name, label in labels.items()}
    if isinstance(values, Mapping) and not _is_xarray(values) and any(map(_is_xarray, values.values())):
        values = _gather(values, schema)
    if _is_xarray(values):
        return _from_xarray(values, working, at, given)
    if _is_grid_source(values):
        return _from_source(values, working, at, given)
    if not isinstance(values, Mapping):
        if len(schema.attributes) != 1:
            raise DataError(
                f"array {working.record.name} has several attributes",
                got=type(values).__name__,
                hint="Give a mapping: " + "{" + ", ".join(f"{name!r}: …" for name in schema.attribute_names) + "}",
            )
        values = {schema.attribute_names[0]: values}
    start = _start(at, schema)
    if at is None:
        start = tuple(None if name in given else lo for name, lo in zip(schema.dimension_names, schema.lo, strict=True))
    return Region(memory_source(schema, values), start, given)


def _as_labels(name: str, values: Any) -> Labels:
    return values if isinstance(values, Labels) else Labels.of(values)


def _start(at: At, schema: Schema) -> Start:
    if at is None:
        return (None,) * schema.ndim
    if isinstance(at, (int, np.integer)):
        at = (int(at),)
    if isinstance(at, Mapping) and set(at) == set(schema.dimension_names):
        at = tuple(at[name] for name in schema.dimension_names)
    if not isinstance(at, Sequence | np.ndarray) or len(at) != schema.ndim or not all(map(_is_cell, at)):
        raise DataError(
            f"at= needs {schema.ndim} integers, one per dimension",
            got=repr(at),
            hint=f"As in {schema.lo}, the first cell",
        )
    return tuple(int(cell) for cell in at)


def _is_cell(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def _is_xarray(values: Any) -> bool:
    return type(values).__module__.split(".")[0] == "xarray"


def _gather(values: Mapping[str, Any], schema: Schema) -> xr.Dataset:
    """A mapping some of whose values name their dimensions, as one Dataset; the others have the array's own order."""
    import xarray as xr

    arrays: dict[str, xr.DataArray] = {}
    for name, given in values.items():
        if isinstance(given, xr.Dataset):
            raise DataError(f"attribute {name} takes one array", got="a Dataset", hint="Give the Dataset alone")
        if isinstance(given, xr.DataArray | xr.Variable):
            arrays[name] = xr.DataArray(given).reset_coords(drop=True)
        elif isinstance(given, np.ma.MaskedArray):
            # xarray would make floats of masked integers.
            hint = "Make it a DataArray with None or NaN"
            raise DataError(f"attribute {name} is masked, beside others that name dimensions", hint=hint)
        else:
            arrays[name] = xr.DataArray(unnamed_values(name, given, schema), dims=schema.dimension_names)
    try:
        return xr.Dataset(dict(zip(arrays, xr.align(*arrays.values(), join="exact"), strict=True)))
    except ValueError as error:
        raise DataError(
            "the attributes' arrays differ in their coordinates", got=error, hint="Give all the same box"
        ) from None


def _is_grid_source(values: Any) -> bool:
    return hasattr(values, "read") and isinstance(getattr(values, "schema", None), Schema)


def _from_source(source: GridSource, working: WorkingArray, at: At, given: Mapping[str, Labels]) -> Region:
    """A file or a result. What it has no labels for goes where its cells are counted, or is all there is."""
    schema = working.schema
    source = arranged(source, schema.dimension_names, "what is written")
    start, labels = list(_start(at, schema)), {**source.labels, **given}
    counted = getattr(source, "numbered", ())
    for axis, dimension in enumerate(source.schema.dimensions if at is None else ()):
        if dimension.name in counted:
            start[axis] = dimension.lo
        elif dimension.name not in labels:
            start[axis] = _only_place(working, axis, dimension.extent or 0)
    return Region(source, tuple(start), labels)


def _from_xarray(
    values: xr.Dataset | xr.DataArray, working: WorkingArray, at: At, given: Mapping[str, Labels]
) -> Region:
    schema = working.schema
    dataset = _as_dataset(values, schema)
    source = XarraySource(dataset.transpose(*schema.dimension_names), schema)
    start = list(_start(at, schema))
    labels: dict[str, Labels] = {}
    for axis, name in enumerate(schema.dimension_names):
        coordinate = dataset.coords[name] if name in dataset.indexes else None
        if coordinate is not None and _is_named(coordinate, working, axis, start[axis]):
            labels[name] = Labels.of(coordinate.values, {k: str(v) for k, v in coordinate.attrs.items()})
        elif at is None and name not in given:
            start[axis] = (
                _only_place(working, axis, dataset.sizes[name]) if coordinate is None else _counted(name, coordinate)
            )
    in_memory = all(variable.variable._in_memory for variable in source.dataset.data_vars.values())
    if in_memory:
        blocks = {str(name): variable.values for name, variable in source.dataset.data_vars.items()}
        return Region(memory_source(schema, blocks), tuple(start), {**labels, **given})
    return Region(source, tuple(start), {**labels, **given})


def _is_named(coordinate: Any, working: WorkingArray, axis: int, start: int | None) -> bool:
    """Whether a coordinate says what cells are called: whole numbers count cells where there are no labels.

    A stated place is enough for a part of a dimension that has none.
    """
    dimension = working.schema.dimensions[axis]
    if dimension.name in working.labels:
        return True
    covers = start in (None, dimension.lo) and coordinate.size >= working.box.shape[axis]
    return coordinate.dtype.kind not in "iu" and (start is None or covers)


def _only_place(working: WorkingArray, axis: int, cells: int) -> int:
    """Where data goes that does not say so itself: to all cells of a dimension, or where there are none yet."""
    dimension, present = working.schema.dimensions[axis], working.box.shape[axis]
    if present and (dimension.growing or (cells != present and dimension.name in working.labels)):
        raise DataError(
            f"nothing says to which cells of {dimension.name} the data goes",
            got=f"{cells} cells without labels, where the array has {present}",
            hint="Give at=, or use append()",
        )
    return dimension.lo


def _as_dataset(values: Any, schema: Schema) -> xr.Dataset:
    if hasattr(values, "to_dataset"):
        name = values.name if values.name in schema.attribute_names else None
        if name is None and len(schema.attributes) > 1:
            raise DataError("the DataArray's name is no attribute of the array", got=values.name)
        values = values.to_dataset(name=name or schema.attribute_names[0])
    names = {*schema.attribute_names, *(a.companion for a in schema.attributes if a.has_companion)}
    for name in values.data_vars:
        if name not in names:
            raise UnknownNameError("no such attribute", got=repr(name), hint=nearest(str(name), names))
        dimensions = {str(dimension) for dimension in values[name].dims}
        if dimensions != set(schema.dimension_names):
            raise DataError(
                f"attribute {name} needs the dimensions {', '.join(schema.dimension_names)}",
                got=", ".join(sorted(dimensions)) or "none",
            )
    if not values.data_vars:
        raise DataError("there is nothing to write", got="a Dataset without variables")
    dataset: xr.Dataset = values
    return dataset


def _counted(name: str, coordinate: Any) -> int:
    """The first cell of a coordinate that numbers cells."""
    cells = coordinate.values
    if len(cells) > 1 and not (np.diff(cells) == 1).all():
        raise DataError(f"the coordinate {name} does not count cells one by one", hint="Give at=")
    return int(cells[0])


@dataclass(frozen=True)
class XarraySource:
    """A lazy Dataset (dask or file backed) as a GridSource: each task loads only its own box."""

    dataset: Any
    target: Schema

    @cached_property
    def schema(self) -> Schema:
        sizes = [self.dataset.sizes[name] for name in self.target.dimension_names]
        dimensions = tuple(
            Dimension(name, 0, size - 1, size) for name, size in zip(self.target.dimension_names, sizes, strict=True)
        )
        names = [a.name for a in self.target.attributes if a.name in self.dataset.data_vars]
        return Schema(dimensions, tuple(self.target.attribute(name) for name in names))

    @property
    def labels(self) -> Mapping[str, Labels]:
        return {}

    def read(self, box: Box) -> Blocks:
        chosen = dict(zip(self.target.dimension_names, box.slices(self.schema.lo), strict=True))
        part = self.dataset.isel(chosen)
        return {str(name): np.asarray(part[name].values) for name in part.data_vars}


def rows_of(values: Any, engine: Engine, *, ordered: bool = False) -> Any:
    """A user's cells for ``insert``: an Arrow table, or a Spark DataFrame if they are one or are many.

    Where the ``ordered`` rows' order counts they stay in this process, for Spark would lose it.
    """
    if is_spark_frame(values):
        return values
    if isinstance(values, (str, os.PathLike)) or _is_table_source(values):
        return _rows_of_file(values, engine, ordered)
    table = as_table(values)
    if engine.name != "spark" or ordered:
        return table
    return engine.spark().session.createDataFrame(_for_spark(table))


_SPARK_LACKS = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def _for_spark(table: pa.Table) -> pa.Table:
    """The table in types that Spark has."""
    for index, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        kind = _SPARK_LACKS.get(kind, kind)
        if kind != field.type:
            table = table.set_column(index, field.name, table.column(index).cast(kind))
    return table


def is_spark_frame(values: Any) -> bool:
    return type(values).__module__.startswith("pyspark.")


def _is_table_source(values: Any) -> bool:
    return hasattr(values, "batches") and hasattr(values, "spark_frame")


def _rows_of_file(values: Any, engine: Engine, ordered: bool) -> Any:
    source = values if _is_table_source(values) else open_table(values)
    if not ordered and engine.choose(4 * source.bytes).name == "spark":
        return source.spark_frame(engine.spark().session)
    return pa.Table.from_batches(list(source.batches()), source.arrow_schema)


def open_table(path: str | os.PathLike[str], options: TableOptions | None = None) -> TableSource:
    """A file of rows."""
    from windrow.formats.registry import TableOptions, format_of

    found = format_of(path)
    if found.open_table is None:
        raise DataError(f"a {found.name} file holds no table of cells", got=Path(path).name)
    return found.open_table(path, options or TableOptions())


@dataclass(frozen=True)
class GridPoints:
    """Turns coordinate columns into cell numbers, keeping the exact values beside them."""

    gridding: Gridding

    def __call__(self, table: pa.Table) -> pa.Table:
        for axis, kept in zip(self.gridding.axes, self.gridding.exact_attributes(), strict=True):
            if axis.name not in table.column_names:
                raise DataError(f"the points have no column {axis.name}", got=", ".join(table.column_names))
            column = table.column(axis.name)
            if kept.name not in table.column_names:
                table = table.append_column(kept.name, pa.array(axis.exact(_values(column))))
            cells = pa.array(axis.cells(_values(column)), pa.int64())
            table = table.set_column(table.column_names.index(axis.name), axis.name, cells)
        return table

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = self(pa.Table.from_batches([batch])).combine_chunks()
            yield from table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


def _values(column: pa.ChunkedArray) -> Any:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit))
    return column.to_numpy()


def gridded(rows: Any, gridding: Gridding, schema: Schema, engine: Engine) -> Any:
    """Points as cells, here or on Spark."""
    lacking = [a for a in gridding.exact_attributes() if a.name not in schema.attribute_names]
    if lacking:
        wanted = ", ".join(map(str, lacking))
        raise SchemaError(
            "gridded points keep their exact coordinates, for which the array has no attributes",
            got=str(schema),
            hint=f"Add <{wanted}>, or create the array with grid=",
        )
    if is_spark_frame(rows):
        return engine.spark().map_batches(rows, GridPoints(gridding).batches)
    return GridPoints(gridding)(rows)
