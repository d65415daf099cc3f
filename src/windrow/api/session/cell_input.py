"""Values typed in statements, as cells and as boxes of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.errors import DataError
from windrow.expressions.instants import timestamp
from windrow.expressions.written import Value
from windrow.model.arrow import arrow_type
from windrow.model.schema import Attribute, Schema
from windrow.plan.statements import Cell

if TYPE_CHECKING:
    from windrow.api.array import Array


def cell_table(array: Array, cells: Sequence[Cell]) -> pa.Table:
    """Cells as a table: labels are looked up, values take the types of their attributes."""
    schema = array.schema
    for cell in cells:
        _check_counts(cell, schema)
    columns: dict[str, Any] = {}
    for place, name in enumerate(_named(cells, schema)):
        places = [_place(array, name, cell.coordinates[place]) for cell in cells]
        columns[name] = pa.array(places, pa.int64())
    for number, attribute in enumerate(schema.attributes):
        columns[attribute.name] = _column([cell.values[number] for cell in cells], attribute)
    return pa.table(columns)


def _named(cells: Sequence[Cell], schema: Schema) -> Sequence[str]:
    """The dimensions that coordinates are typed for: the numbering one may be left to on_duplicate = 'keep'."""
    counts = {len(cell.coordinates) for cell in cells}
    if len(counts) > 1:
        raise DataError("some cells have a number and others have none", hint="Give it for all of them, or for none")
    if counts <= {schema.ndim}:
        return schema.dimension_names
    return [dimension.name for dimension in schema.dimensions if not dimension.numbering]


def _check_counts(cell: Cell, schema: Schema) -> None:
    shown = "(" + ", ".join(map(str, cell.coordinates)) + ")"
    if len(cell.coordinates) not in (schema.ndim, schema.ndim - len(schema.numbering)):
        names = ", ".join(schema.dimension_names)
        raise DataError(f"cell {shown} needs {schema.ndim} coordinates", got=len(cell.coordinates), hint=names)
    if len(cell.values) != len(schema.attributes):
        names = ", ".join(schema.attribute_names)
        wanted = len(schema.attributes)
        raise DataError(f"cell {shown} needs {wanted} values", got=len(cell.values), hint=f"Those of {names}")


def _place(array: Array, name: str, value: Value) -> int:
    if type(value) is int:
        return value
    box = array.sel({name: value}).box
    axis = array.schema.axis(name)
    if box.lo[axis] != box.hi[axis]:
        raise DataError(f"a cell needs one place along {name}", got=f"{value}, which several cells are called")
    return box.lo[axis]


def _column(values: Sequence[Value], attribute: Attribute) -> pa.Array:
    shown = [_value(value, attribute) for value in values]
    try:
        return pa.array(shown, arrow_type(attribute.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"values do not fit attribute {attribute}", got=error) from None


def _value(value: Value, attribute: Attribute) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    if attribute.type.name == "datetime" and isinstance(value, str):
        return timestamp(value)
    if attribute.type.is_float and type(value) is int:
        return float(value)
    return value


def dense_values(array: Array, rows: Sequence[Sequence[Value]]) -> dict[str, Any]:
    """Typed rows as a block for each attribute: cells in their order, the attributes of a cell side by side."""
    schema = array.schema
    if array.sparse:
        raise DataError(f"array {array.name} is sparse", got="rows of values", hint="Use insert into … values (…)")
    if not rows:
        raise DataError(f"the rows of {array.name} are missing", hint=f"As in load {array.name} 1 2 3")
    width = len(schema.attributes)
    flat = [value for row in rows for value in row]
    shape = _shape(array, len(flat), width)
    values = {}
    for number, attribute in enumerate(schema.attributes):
        values[attribute.name] = _block(flat[number::width], attribute).reshape(shape)
    return values


def _shape(array: Array, count: int, width: int) -> tuple[int, ...]:
    """The box that so many values fill: all of the array, or as much of its first dimension if that grows."""
    shape = list(array.schema.box(array.box.hi).shape)
    if array.schema.growing == (0,):
        rest = math.prod(shape[1:]) * width
        shape[0] = count // rest if count % rest == 0 else 0
    wanted = math.prod(shape) * width
    if wanted != count or not count:
        size = " × ".join(map(str, shape))
        got = f"{count} values"
        raise DataError(f"array {array.name} takes {wanted} values, {width} for each of {size} cells", got=got)
    return tuple(shape)


def _block(values: Sequence[Value], attribute: Attribute) -> Any:
    shown = [_value(value, attribute) for value in values]
    if attribute.type.is_float:
        try:
            return np.array([math.nan if value is None else value for value in shown], attribute.type.dtype)
        except (TypeError, ValueError) as error:
            raise DataError(f"values do not fit attribute {attribute}", got=error) from None
    block = np.empty(len(shown), object)
    block[:] = shown
    return block
