"""Arrow columns as what aggregates over frames take, and their results as Arrow columns again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column
from windrow.dataframes.keys import numbers, rescale, unscale

Array = npt.NDArray[Any]
Decode = Callable[[Column, pa.DataType], pa.Array]

_WHOLE_DIGITS = 18  # digits that always fit int64
_EXACT_DIGITS = 15  # digits that always fit float64
_ROOM = 2**62


@dataclass(frozen=True, eq=False)
class Taken:
    """A column as an aggregate takes it, and the way back from results to Arrow."""

    form: str  # aggregates of a column in the same form share what is worked out of it
    column: Column
    decode: Decode


def take_column(array: pa.Array, aggregate: Aggregate) -> Taken:
    """A column in the form in which an aggregate of it is fastest and exact."""
    kind = array.type
    definition = aggregate.definition
    # Counts, and results that are among the values themselves, ask for nothing but their order.
    ordinal = definition.picks or not definition.least
    if pa.types.is_decimal(kind):
        return _take_decimals(array, definition.sums, ordinal)
    if pa.types.is_date32(kind):
        values = numbers(array)
        assert values is not None
        return Taken("days", Column(values.astype(np.int64).view("M8[D]"), _present(array)), _plain)
    if pa.types.is_timestamp(kind):
        values = numbers(array)
        assert values is not None
        return Taken("moments", Column(values.view("M8[us]"), _present(array)), _plain)
    values = numbers(array)
    if values is not None:
        return Taken("numbers", Column(values, _present(array)), _plain)
    return _encode_texts(array)


def _present(array: pa.Array) -> Array | None:
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def _plain(found: Column, kind: pa.DataType) -> pa.Array:
    values = found.values
    if values.dtype.kind == "M":
        values = values.view(np.int64)
        if pa.types.is_date32(kind):
            values = values.astype(np.int32)
    elif values.dtype.kind == "O":
        return pa.array([v if p else None for v, p in zip(values, _flags(found), strict=True)], kind)
    mask = None if found.present is None else ~found.present
    array = pa.array(values, mask=mask)
    if pa.types.is_decimal(kind) and pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(38, 0)).cast(kind)
    return array if array.type == kind else array.cast(kind)


def _flags(found: Column) -> Array:
    return np.ones(len(found.values), bool) if found.present is None else found.present


def _encode_texts(array: pa.Array) -> Taken:
    """Strings and bytes, numbered in their order."""
    encoded = array.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    words = encoded.dictionary.take(order)
    rank = np.zeros(len(order) + 1, np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    codes = rank[pc.fill_null(encoded.indices, 0).to_numpy()]

    def decode(found: Column, kind: pa.DataType) -> pa.Array:
        if pa.types.is_integer(kind):
            return _plain(found, kind)
        mask = None if found.present is None else ~found.present
        chosen = np.clip(found.values.astype(np.int64), 0, max(len(words) - 1, 0))
        if not len(words):
            return pa.nulls(len(chosen), kind)
        picked = words.take(pa.array(chosen, mask=mask))
        return picked if picked.type == kind else picked.cast(kind)

    return Taken("codes", Column(codes, _present(array)), decode)


def _take_decimals(array: pa.Array, sums: bool, ordinal: bool) -> Taken:
    digits = array.type.precision
    if digits <= _WHOLE_DIGITS and len(array):
        whole = unscale(array)
        if array.null_count:
            whole[~array.is_valid().to_numpy(zero_copy_only=False)] = 0
        small = sums and int(np.abs(whole).max(initial=0)) * len(whole) < _ROOM
        if ordinal or small:
            return Taken("whole", Column(whole, _present(array)), _whole)
        if not sums and digits <= _EXACT_DIGITS:
            # Both are exact as floats, so the quotient is the float nearest to the decimal.
            return Taken("floats", Column(whole / 10.0**array.type.scale, _present(array)), _plain)
    elif ordinal:
        return _encode_texts(array)
    return Taken("objects", Column(np.array(array.to_pylist(), object), None), _plain)


def _whole(found: Column, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return rescale(found.values.astype(np.int64), kind, found.present)
    return _plain(found, kind)
