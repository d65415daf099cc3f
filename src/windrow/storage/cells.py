"""Cells as Arrow tables: checked against a schema, numbered by chunk, sorted.

Cells are kept in the order of their chunks and, inside a chunk, of their coordinates. A cell's *key* packs both into
numbers that compare in that order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import DataError, UnknownNameError, nearest
from windrow.kernels.sparse.order import needed_order
from windrow.model.arrow import arrow_type
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.schema import CHUNK_COLUMN, Attribute, Schema

Int64Array = npt.NDArray[np.int64]

_STORED = {
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "datetime": pa.timestamp("us", tz="UTC"),
}
"""Delta has no unsigned types, and times without a zone need a table feature that many readers lack."""


def cell_fields(schema: Schema) -> pa.Schema:
    """Dimensions and attributes as the columns of a table of cells."""
    dimensions = [pa.field(name, pa.int64(), nullable=False) for name in schema.dimension_names]
    attributes = [pa.field(a.name, arrow_type(a.type), nullable=a.can_be_missing) for a in schema.attributes]
    return pa.schema(dimensions + attributes)


def stored_fields(schema: Schema) -> pa.Schema:
    """The columns of a stored part: the chunk, then the cells in types that every Delta reader has."""
    fields = [pa.field(CHUNK_COLUMN, pa.int64(), nullable=False)]
    for field in cell_fields(schema):
        name = "" if field.name in schema.dimension_names else schema.attribute(field.name).type.name
        fields.append(field.with_type(_STORED.get(name, field.type)))
    return pa.schema(fields)


def to_stored(cells: pa.Table, ordinals: Int64Array, schema: Schema) -> pa.Table:
    table = cells.add_column(0, CHUNK_COLUMN, pa.array(ordinals))
    return table.cast(stored_fields(schema))


def from_stored(table: pa.Table, schema: Schema) -> pa.Table:
    """Stored columns (some or all) in windrow's own types, without the chunk column."""
    wanted = cell_fields(schema)
    names = [name for name in table.column_names if name != CHUNK_COLUMN]
    found, fields = table.select(names), pa.schema([wanted.field(name) for name in names])
    return found if found.schema.equals(fields) else found.cast(fields)


def conform_cells(table: pa.Table, schema: Schema, bounds: Box) -> pa.Table:
    """The table's columns in the schema's order and types, after checking every value.

    ``bounds`` are the cells that may be written; growing dimensions have a bound far away.
    """
    known = set(table.column_names)
    for name in (*schema.dimension_names, *schema.attribute_names):
        if name not in known:
            raise lacking_column(name, table.column_names)
    extra = sorted(known - {*schema.dimension_names, *schema.attribute_names, CHUNK_COLUMN})
    if extra:
        names = [*schema.dimension_names, *schema.attribute_names]
        raise UnknownNameError("the array has no such column", got=", ".join(extra), hint=nearest(extra[0], names))
    columns = [
        _coordinates(table.column(name), name, lo, hi)
        for name, lo, hi in zip(schema.dimension_names, bounds.lo, bounds.hi, strict=True)
    ]
    columns += [_attribute(table.column(a.name), a) for a in schema.attributes]
    return pa.table(columns, schema=cell_fields(schema))


def lacking_column(name: str, found: Sequence[str]) -> DataError:
    hint = "Cells need a column for each dimension and attribute"
    given = ", ".join(column for column in found if column != CHUNK_COLUMN)
    return DataError(f"the cells have no column {name}", got=given or "no columns", hint=hint)


def _coordinates(column: pa.ChunkedArray, name: str, lo: int, hi: int) -> pa.ChunkedArray:
    if column.null_count:
        raise DataError(f"coordinates of dimension {name} cannot be missing", got=f"{column.null_count} nulls")
    if not pa.types.is_integer(column.type) and not pa.types.is_null(column.type):
        if not pa.types.is_decimal(column.type) and not pa.types.is_floating(column.type):
            raise DataError(f"coordinates of dimension {name} are not integers", got=column.type)
        if pa.types.is_floating(column.type):
            raise DataError(
                f"coordinates of dimension {name} are not integers", got=column.type, hint="Give a grid= for points"
            )
    try:
        integers = column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(f"coordinates of dimension {name} do not fit int64", got=error) from None
    if len(integers):
        extremes = pc.min_max(integers).as_py()
        for value in (extremes["min"], extremes["max"]):
            if not lo <= value <= hi:
                raise DataError(
                    f"dimension {name} runs from {lo} to {hi}", got=f"a cell at {value}", hint="Nothing was inserted"
                )
    return integers


def _attribute(column: pa.ChunkedArray, attribute: Attribute) -> pa.ChunkedArray:
    target = arrow_type(attribute.type)
    values = column
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    if not _compatible(values.type, target):
        raise _mismatch(attribute, values.type)
    if values.null_count and not attribute.can_be_missing:
        raise DataError(
            f"attribute {attribute.name} cannot be missing",
            got=f"{values.null_count} missing values",
            hint=f"Declare it '{attribute.name}: {attribute.type} null'",
        )
    return _safe_cast(values, target, attribute)


def _compatible(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of one type may become another without changing what they mean."""
    kinds = {
        pa.types.is_integer: (pa.types.is_integer, lambda kind: pa.types.is_decimal(kind) and kind.scale == 0),
        pa.types.is_floating: (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        pa.types.is_timestamp: (pa.types.is_timestamp, pa.types.is_date),
        pa.types.is_string: (pa.types.is_large_string, pa.types.is_string_view),
    }
    if source == target or pa.types.is_null(source):
        return True
    return any(is_target(target) and any(fits(source) for fits in fitting) for is_target, fitting in kinds.items())


def _safe_cast(values: pa.ChunkedArray, target: pa.DataType, attribute: Attribute) -> pa.ChunkedArray:
    # Integers above 2^53 and times finer than a microsecond are rounded; numbers out of range are refused.
    rounding = pa.types.is_floating(target) or (pa.types.is_timestamp(values.type) and values.type.unit == "ns")
    try:
        cast = values.cast(target, safe=not rounding)
    except pa.ArrowInvalid as error:
        raise _mismatch(attribute, error) from None
    if pa.types.is_floating(target) and values.type != target:
        overflowed = pc.is_inf(cast)
        if pa.types.is_floating(values.type):
            overflowed = pc.and_(overflowed, pc.is_finite(values))
        if pc.any(overflowed).as_py():
            raise _mismatch(attribute, values.filter(overflowed)[0].as_py())
    return cast


def _mismatch(attribute: Attribute, got: object) -> DataError:
    return DataError(
        f"values do not fit attribute {attribute.name} of type {attribute.type}",
        got=got,
        hint="Convert them first, or give the attribute a type that holds them",
    )


def coordinates(table: pa.Table, schema: Schema) -> list[Int64Array]:
    """The coordinate columns as NumPy vectors."""
    return [table.column(name).to_numpy() for name in schema.dimension_names]


def in_coordinate_order(table: pa.Table, schema: Schema) -> pa.Table:
    """The same cells in one piece, in the order of their coordinates; those in order already are not moved."""
    table = table.combine_chunks()
    order = needed_order(coordinates(table, schema))
    return table if order is None else table.take(pa.array(order))


def in_stored_order(table: pa.Table, schema: Schema) -> pa.Table:
    """The same cells by chunk and, in a chunk, by coordinate; those in order already are not moved."""
    keys = CellKeys(schema.grid, coordinates(table, schema))
    return table if keys.is_sorted() else table.take(pa.array(keys.order()))


class CellKeys:
    """Sort keys of cells: chunk ordinal and offset inside the chunk, packed into one int64 where that fits."""

    def __init__(self, grid: ChunkGrid, at: Sequence[Int64Array]) -> None:
        self.ordinals = grid.ordinals(at)
        offsets = grid.offsets(at)
        largest = int(self.ordinals.max(initial=0))
        if (largest + 1) * grid.chunk_cells < 2**63:
            self._columns = [self.ordinals * grid.chunk_cells + offsets]
        else:
            self._columns = [self.ordinals, offsets]

    def order(self) -> npt.NDArray[np.intp]:
        """A stable order by key."""
        if len(self._columns) == 1:
            return np.argsort(self._columns[0], kind="stable")
        return np.lexsort(self._columns[::-1])

    def is_sorted(self) -> bool:
        first, *rest = self._columns
        if not rest:
            return bool((first[1:] >= first[:-1]).all())
        second = rest[0]
        rising = (first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (second[1:] >= second[:-1]))
        return bool(rising.all())

    def take(self, order: npt.NDArray[np.intp]) -> None:
        self.ordinals = self.ordinals[order]
        self._columns = [column[order] for column in self._columns]

    def repeats(self) -> npt.NDArray[np.bool_]:
        """For sorted keys, which cells have the same key as the cell before them."""
        same = np.ones(len(self.ordinals), bool)
        same[:1] = False
        for column in self._columns:
            same[1:] &= column[1:] == column[:-1]
        return same
