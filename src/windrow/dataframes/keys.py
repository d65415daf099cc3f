"""Sort keys in Arrow columns, compared as Spark compares them: -0.0 is 0.0, NaN is equal to itself and above all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.model.frame import DAY, SortKey

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Steps = npt.NDArray[np.int8]


def steps(table: pa.Table, keys: Sequence[SortKey]) -> Steps:
    """For each row but the first, whether it sorts after (1), with (0) or before (-1) the row above it."""
    found = np.zeros(max(table.num_rows - 1, 0), np.int8)
    for key in keys:
        undecided = found == 0
        if not undecided.any():
            break
        step = _column_steps(join_chunks(table.column(key.column)), key)
        found = np.where(undecided, step, found) if not undecided.all() else step
    return found


def join_chunks(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """One piece of a column that may be in several."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _column_steps(column: pa.Array, key: SortKey) -> Steps:
    less, greater = _compare_neighbours(column)
    step: Steps = greater.astype(np.int8) - less.astype(np.int8)
    if key.descending:
        step = -step
    if column.null_count:
        there = column.is_valid().to_numpy(zero_copy_only=False)
        above, below = there[:-1], there[1:]
        toward = 1 if key.nulls_first else -1
        step = np.where(above & below, step, (below.astype(np.int8) - above.astype(np.int8)) * toward).astype(np.int8)
    return step


def _compare_neighbours(column: pa.Array) -> tuple[Mask, Mask]:
    """Whether each value is less, and whether it is greater, than the one above it; anything where one is null."""
    values = numbers(column)
    if values is None:
        above, below = column.slice(0, len(column) - 1), column.slice(1)
        less, greater = (pc.fill_null(compare(below, above), False) for compare in (pc.less, pc.greater))
        return less.to_numpy(zero_copy_only=False), greater.to_numpy(zero_copy_only=False)
    above, below = values[:-1], values[1:]
    less, greater = below < above, below > above
    if values.dtype.kind == "f":
        nans = np.isnan(values)
        if nans.any():
            less |= nans[:-1] & ~nans[1:]
            greater |= nans[1:] & ~nans[:-1]
    return less, greater


def numbers(column: pa.Array) -> Array | None:
    """A column as NumPy's numbers, where it has any: integers, floats, booleans, dates and times; 0 where null."""
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(0, pa.int64()).cast(column.type))
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


def unscale(column: pa.Array) -> Array:
    """The whole numbers behind decimals of at most 18 digits."""
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, 2)
    return words[column.offset : column.offset + len(column), 0].copy()


def rescale(whole: Array, kind: pa.DataType, present: Mask | None) -> pa.Array:
    """Decimals from the whole numbers behind them."""
    words = np.empty((len(whole), 2), np.int64)
    words[:, 0] = whole
    words[:, 1] = whole >> 63
    validity = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(kind, len(whole), [validity, pa.py_buffer(words)])


def distances(column: pa.Array, key: SortKey) -> tuple[Array, Mask | None]:
    """A key as numbers that rise along the order, whose differences are distances, and where it is an ordinary value.

    Dates count in microseconds like times; rows with NULL or NaN are no ordinary values (None: there are none such).
    """
    values = unscale(column) if pa.types.is_decimal(column.type) else numbers(column)
    assert values is not None
    plain = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
        nans = np.isnan(values)
        if nans.any():
            plain = ~nans if plain is None else plain & ~nans
        return -values if key.descending else values, plain
    whole = values.astype(np.int64, copy=False)
    if pa.types.is_date32(column.type):
        whole = whole * DAY
    # The complement falls where the value rises, and unlike the negative it always exists.
    return ~whole if key.descending else whole, plain


def ordinals(column: pa.Array, key: SortKey) -> npt.NDArray[np.int64]:
    """Numbers that sort as the column does."""
    encoded = column.dictionary_encode()
    values = numbers(encoded.dictionary)
    if values is not None:
        ordered, codes = np.unique(values, return_inverse=True)
        rank, count = codes.astype(np.int64), len(ordered)
    else:
        order = pc.array_sort_indices(encoded.dictionary).to_numpy()
        rank, count = np.empty(len(order), np.int64), len(order)
        rank[order] = np.arange(count)
    if key.descending:
        rank = count - 1 - rank
    found = np.full(len(column), -1 if key.nulls_first else count, np.int64)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    found[there] = rank[encoded.indices.drop_null().to_numpy()]
    return found


def sorted_order(table: pa.Table, keys: Sequence[SortKey]) -> npt.NDArray[np.int64]:
    """The order in which a small table's rows sort."""
    if not keys:
        return np.arange(table.num_rows)
    columns = [ordinals(join_chunks(table.column(key.column)), key) for key in keys]
    return np.lexsort(columns[::-1])
