"""Rows of one task in order: by their keys as Spark sorts them, and among equal keys by the hash of the whole row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.dataframes.cuts import TIE
from windrow.dataframes.keys import join_chunks, numbers, ordinals, unscale
from windrow.kernels.frames.row_hashing import SEED, hash_bytes, hash_ints, hash_longs
from windrow.kernels.frames.row_sorting import mark_equal, sort_rows
from windrow.model.frame import SortKey

Int64Array = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint64]
SIGN = np.uint64(1 << 63)

_INTS = ("boolean", "tinyint", "smallint", "int", "date", "float")
_LONGS = ("bigint", "timestamp", "timestamp_ntz", "double")
_TEXTS = ("string", "binary")


def can_hash(kind: Any) -> bool:
    """Whether ``hash_rows`` knows a column of Spark's; of others only Spark works out the hash."""
    text = kind.simpleString()
    return text in (*_INTS, *_LONGS, *_TEXTS) or (text.startswith("decimal") and kind.precision <= 18)


def hash_rows(table: pa.Table, columns: Sequence[str]) -> Int64Array:
    """Spark's ``xxhash64`` of some columns of each row."""
    hashes = np.full(table.num_rows, SEED, np.uint64)
    for name in columns:
        _add_column(join_chunks(table.column(name)), hashes)
    return hashes.view(np.int64)


def _add_column(column: pa.Array, hashes: Codes) -> None:
    kind = column.type
    present = column.is_valid().to_numpy(zero_copy_only=False)
    large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if large or pa.types.is_string(kind) or pa.types.is_binary(kind):
        places = np.frombuffer(column.buffers()[1], np.int64 if large else np.int32)
        ends = places[column.offset : column.offset + len(column) + 1]
        data = column.buffers()[2]
        hash_bytes(np.zeros(1, np.uint8) if data is None else np.frombuffer(data, np.uint8), ends, present, hashes)
        return
    values = unscale(column) if pa.types.is_decimal(kind) else numbers(column)
    assert values is not None
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # makes -0.0 a 0.0
        values[np.isnan(values)] = np.nan  # one of the many that there are
    if values.dtype == np.float32:
        hash_ints(values.view(np.uint32), present, hashes)
    elif values.dtype.itemsize == 8:
        hash_longs(values.view(np.uint64), present, hashes)
    else:
        hash_ints(values.astype(np.int32).view(np.uint32), present, hashes)


def sort_table(table: pa.Table, keys: Sequence[SortKey], hashed: Sequence[str]) -> pa.Table:
    """A table's rows in order; ``hashed`` are the columns whose hash orders rows with equal keys.

    If a column of the table holds that hash, it is taken from there. Rows without equals need none.
    """
    table = table.combine_chunks()
    codes = [code for key in keys for code in encode_key(join_chunks(table.column(key.column)), key)]
    order = sort_rows(codes, table.num_rows)
    if has_ties(codes, order):
        sent = TIE in table.column_names
        hashes = join_chunks(table.column(TIE)).to_numpy() if sent else hash_rows(table, hashed)
        order = sort_rows([*codes, encode_hashes(hashes)], table.num_rows)
    return table.take(pa.array(order))


def encode_hashes(hashes: Int64Array) -> Codes:
    """Hashes as numbers without a sign that sort as they do."""
    return hashes.view(np.uint64) ^ SIGN


def has_ties(codes: Sequence[Codes], order: Int64Array) -> bool:
    """Whether rows in order have equal neighbours."""
    equal = np.ones(len(order), bool)
    equal[:1] = False
    for code in codes:
        mark_equal(code, order, equal)
    return bool(equal.any())


def encode_key(column: pa.Array, key: SortKey) -> list[Codes]:
    """Numbers without a sign that sort as a column does; where values are missing, first whether they are."""
    kind = column.type
    if pa.types.is_decimal(kind) and kind.precision <= 18:
        values: Any = unscale(column)
    else:
        values = numbers(column)
    if values is None:
        return [ordinals(column, key).view(np.uint64) ^ SIGN]
    codes = _encode_floats(values) if values.dtype.kind == "f" else values.astype(np.int64).view(np.uint64) ^ SIGN
    if key.descending:
        codes = ~codes
    if not column.null_count:
        return [codes]
    there = column.is_valid().to_numpy(zero_copy_only=False)
    codes[~there] = 0
    return [np.where(there == key.nulls_first, np.uint64(1), np.uint64(0)), codes]


def _encode_floats(values: npt.NDArray[Any]) -> Codes:
    values = values.astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    bits = values.view(np.uint64)
    # NumPy's NaN has no sign, and so becomes larger than infinity.
    return np.where(bits & SIGN != 0, ~bits, bits | SIGN)


def match_types(table: pa.Table, wanted: Mapping[str, pa.DataType]) -> pa.Table:
    """A table whose columns have the types that they have elsewhere."""
    for number, field in enumerate(table.schema):
        kind = wanted.get(field.name, field.type)
        if kind != field.type:
            table = table.set_column(number, field.name, table.column(number).cast(kind))
    return table
