"""Between windrow's types and blocks and Apache Arrow's: tables, Parquet, Delta and Spark all speak Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import DataError, SchemaError
from windrow.model.types import TYPES, DataType

_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "datetime": pa.timestamp("us"),
}
_WINDROW = {arrow: TYPES[name] for name, arrow in _ARROW.items()}
_DIGITS_OF_INT64 = 18


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type that holds values of a windrow type exactly."""
    return _ARROW[data_type.name]


def data_type_from_arrow(arrow: pa.DataType) -> DataType:
    """The windrow type that holds values of an Arrow type; time zones are taken to UTC."""
    if arrow in _WINDROW:
        return _WINDROW[arrow]
    if pa.types.is_dictionary(arrow):
        return data_type_from_arrow(arrow.value_type)
    if pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return TYPES["string"]
    if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow):
        return TYPES["datetime"]
    if pa.types.is_float16(arrow):
        return TYPES["float32"]
    if pa.types.is_decimal(arrow) and arrow.scale == 0 and arrow.precision <= _DIGITS_OF_INT64:
        return TYPES["int64"]
    hint = "Cast it to float64 or to an integer" if pa.types.is_decimal(arrow) else "Known: " + ", ".join(TYPES)
    raise SchemaError("no windrow type holds Arrow's type", got=arrow, hint=hint)


def block_to_arrow(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """A block's values in row-major order as one Arrow array; NaN, NaT and cells that are not valid become null."""
    flat = np.ascontiguousarray(values).reshape(-1)
    mask = None if valid is None else ~np.ascontiguousarray(valid).reshape(-1)
    if flat.dtype.kind == "f":
        missing = np.isnan(flat)
        mask = missing if mask is None else mask | missing
    if mask is not None and not mask.any():
        mask = None
    data_type = _block_type(flat)
    if data_type.dtype.kind != "T" and flat.dtype != data_type.dtype:
        flat = flat.astype(data_type.dtype)
    array = pa.array(flat, type=arrow_type(data_type), mask=mask)
    if isinstance(array, pa.ChunkedArray):
        raise DataError("a block's strings take more than 2 GB", got=f"{len(flat):,} values", hint="Use smaller chunks")
    return array


def arrow_to_block(array: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """An Arrow array as values and their validity.

    Nulls become NaN in floats, and elsewhere the type's fill value with False in the validity, which is None when
    nothing is null.
    """
    data_type = data_type_from_arrow(array.type)
    plain = _cast(array, arrow_type(data_type))
    if isinstance(plain, pa.ChunkedArray):
        plain = plain.chunk(0) if plain.num_chunks == 1 else plain.combine_chunks()
    valid = None
    if plain.null_count and data_type.is_float:
        plain = pc.fill_null(plain, pa.scalar(np.nan, plain.type))
    elif plain.null_count:
        valid = plain.is_valid().to_numpy(zero_copy_only=False)
        plain = pc.fill_null(plain, pa.scalar(_fill(data_type), plain.type))
    values = plain.to_numpy(zero_copy_only=False)
    return (values.astype(data_type.dtype) if data_type.dtype.kind == "T" else values), valid


def _block_type(flat: npt.NDArray[Any]) -> DataType:
    kind = flat.dtype.kind
    if kind in "TUO":
        return TYPES["string"]
    if kind == "M":
        return TYPES["datetime"]
    name = "float32" if flat.dtype == np.float16 else flat.dtype.newbyteorder("=").name
    if name not in TYPES:
        raise SchemaError("no Arrow type holds a block's values", got=flat.dtype, hint="Known: " + ", ".join(TYPES))
    return TYPES[name]


def _fill(data_type: DataType) -> object:
    return 0 if data_type.dtype.kind == "M" else data_type.fill


def _cast(array: pa.Array | pa.ChunkedArray, target: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_dictionary(array.type):
        decoded = array.cast(array.type.value_type)
        return _cast(decoded, target)
    if array.type == target:
        return array
    finer = pa.types.is_timestamp(array.type) and array.type.unit == "ns"
    try:
        return array.cast(target, safe=not finer)
    except pa.ArrowInvalid as error:
        raise DataError(f"values of Arrow type {array.type} do not fit {target}", got=error) from error
