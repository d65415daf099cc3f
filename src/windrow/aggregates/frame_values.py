"""Columns of any type as what kernels of frames take: whole numbers or floats of 64 bits, all of them present.

Strings, and whatever else has an order but is no number, are numbered in their order; decimals become whole numbers, if
64 bits hold them, or are numbered too. ``FrameValues`` knows the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.columns import Column
from windrow.errors import DataError
from windrow.model.types import TYPES, DataType, data_type_of

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

MISSING, VALUE = "missing", "value"
NANS = (MISSING, VALUE)
"""What NaN is: nothing, as in arrays, or a value larger than all others, as on DataFrames."""
_DECIMALS = Context(prec=200)
"""Python's own context rounds to 28 digits."""


@dataclass(frozen=True)
class Coded:
    """A column as numbers into a dictionary in ascending order, as Arrow has them."""

    codes: Array
    dictionary: Array
    present: Mask | None = None


@dataclass(frozen=True, eq=False)
class FrameValues:
    """Values for kernels, one for each row that ``there`` marks (None: all rows), and the way back to the column's own.

    ``numbers`` are the values as floats where they are decimals, for averages and the like; None where the values
    themselves will do. ``nans`` marks the rows that hold NaN as a value: those are numbered like strings.
    """

    values: Array
    there: Mask | None
    type: DataType
    decode: Callable[[Array], Array]
    coded: bool = False
    numbers: Array | None = None
    nans: Mask | None = None
    unscaled: tuple[list[int], int] | None = None  # the whole numbers behind decimals, and their scale


def frame_values(column: Column | Coded, keep: Mask | None, nan: str) -> FrameValues:
    """The rows of a column that are present and that ``keep`` (a FILTER) leaves in."""
    if isinstance(column, Coded):
        there = _both(column.present, keep)
        codes = np.asarray(column.codes).astype(np.int64) if there is None else column.codes[there].astype(np.int64)
        return _from_codes(codes, np.asarray(column.dictionary), there)
    values = np.asarray(column.values)
    there = _both(column.present, keep)
    if values.dtype.kind == "O":
        return _of_objects(values, there)
    if values.dtype.kind in "TU":
        return _of_strings(values if there is None else values[there], there)
    found = data_type_of(values.dtype)
    if values.dtype.kind == "M":
        return _of_moments(values, there, found)
    if values.dtype.kind == "f":
        return _of_floats(values, there, found, nan)
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    taken = values if there is None else values[there]
    return FrameValues(
        np.ascontiguousarray(taken, wide), there, found, lambda picked: picked.astype(values.dtype, copy=False)
    )


def _both(one: Mask | None, other: Mask | None) -> Mask | None:
    masks = [np.asarray(mask, bool) for mask in (one, other) if mask is not None]
    both = masks[0] & masks[1] if len(masks) == 2 else masks[0] if masks else None
    return None if both is None or both.all() else both


def _from_codes(codes: Array, dictionary: Array, there: Mask | None) -> FrameValues:
    if not len(dictionary):  # every result is missing, but something must stand there
        dictionary = np.zeros(1, dictionary.dtype)

    def decode(picked: Array) -> Array:
        words: Array = dictionary[np.clip(picked, 0, len(dictionary) - 1)]
        return words

    return FrameValues(codes, there, data_type_of(dictionary.dtype), decode, coded=True)


def _of_strings(values: Array, there: Mask | None) -> FrameValues:
    if not len(values):
        return _from_codes(np.zeros(0, np.int64), np.array([""], np.dtypes.StringDType()), there)
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = pa.array(values.astype(object), pa.string()).dictionary_encode()
    words = np.array(encoded.dictionary.to_pylist(), np.dtypes.StringDType())
    order = np.argsort(words, kind="stable")
    rank = np.empty(len(words), np.int64)
    rank[order] = np.arange(len(words))
    codes = rank[pc.cast(encoded.indices, pa.int64()).to_numpy()]
    return _from_codes(codes, words[order], there)


def _of_moments(values: Array, there: Mask | None, found: DataType) -> FrameValues:
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("="))
    there = _both(there, ~np.isnat(values))
    taken = np.ascontiguousarray(values if there is None else values[there])
    return FrameValues(taken.view(np.int64), there, found, lambda picked: picked.view(values.dtype))


def _of_floats(values: Array, there: Mask | None, found: DataType, nan: str) -> FrameValues:
    def decode(picked: Array) -> Array:
        return picked.astype(values.dtype, copy=False)

    # Adding 0.0 makes -0.0 a 0.0, or which of two equal zeros is found would be chance.
    floats = np.add(values if there is None else values[there], 0.0, dtype=np.float64)
    nans = np.isnan(floats)
    if not nans.any():
        return FrameValues(floats, there, found, decode)
    if nan == MISSING:
        if there is None:
            there = ~nans
        else:
            there = there.copy()
            there[there] = ~nans
        return FrameValues(floats[~nans], there, found, decode)
    ordered, codes = np.unique(floats, return_inverse=True)

    def decode_numbers(picked: Array) -> Array:
        return decode(ordered[np.clip(picked, 0, len(ordered) - 1)])

    return FrameValues(
        codes.astype(np.int64), there, found, decode_numbers, coded=True, numbers=np.where(nans, 0.0, floats), nans=nans
    )


def _of_objects(values: Array, there: Mask | None) -> FrameValues:
    """Python's own objects; None is missing."""
    known = np.fromiter((value is not None for value in values), bool, len(values))
    there = _both(there, known)
    taken = values if there is None else values[there]
    kinds = {type(value) for value in taken}
    if not kinds or all(issubclass(kind, str) for kind in kinds):
        return _of_strings(taken.astype(np.dtypes.StringDType()), there)
    if any(issubclass(kind, Decimal) for kind in kinds) and all(issubclass(kind, (int, Decimal)) for kind in kinds):
        return _of_decimals(taken, there)
    if all(issubclass(kind, (date, np.datetime64)) for kind in kinds):
        taken = np.array([_at_utc(value) for value in taken], "M8[us]")
    plain = _plain(taken) if taken.dtype.kind == "O" else taken
    if plain.dtype.kind not in "biufM":
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(
            "values of this type cannot be aggregated in frames",
            got=names,
            hint="Numbers, decimals, booleans, strings, dates and times can",
        )
    filled = np.zeros(len(values), plain.dtype)
    filled[there if there is not None else slice(None)] = plain
    return frame_values(Column(filled, there), None, MISSING)


def _at_utc(moment: Any) -> Any:
    """Times have no zone of their own: those that do are taken at UTC."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def _plain(taken: Array) -> Array:
    try:
        return np.array(taken.tolist())
    except (TypeError, ValueError, OverflowError):
        return taken


def _of_decimals(taken: Array, there: Mask | None) -> FrameValues:
    exact = [Decimal(value) for value in taken]
    if not all(value.is_finite() for value in exact):
        raise DataError("decimals must be finite numbers", got="NaN or infinity")
    scale = max(0, *(-int(value.as_tuple().exponent) for value in exact))
    whole = [int(_DECIMALS.scaleb(value, scale)) for value in exact]
    numbers = np.array([float(value) for value in exact])
    if max(abs(number) for number in whole) < 2**62:

        def decode(picked: Array) -> Array:
            return decimals(picked, scale)

        narrow = np.array(whole, np.int64)
        return FrameValues(narrow, there, TYPES["int64"], decode, numbers=numbers, unscaled=(whole, scale))
    ordered = sorted(set(whole))
    rank = {number: place for place, number in enumerate(ordered)}

    def decode_codes(picked: Array) -> Array:
        return decimals([ordered[min(max(int(p), 0), len(ordered) - 1)] for p in picked], scale)

    codes = np.array([rank[number] for number in whole], np.int64)
    return FrameValues(codes, there, TYPES["int64"], decode_codes, coded=True, numbers=numbers, unscaled=(whole, scale))


def decimals(unscaled: Iterable[int], scale: int) -> Array:
    """Whole numbers as decimals with ``scale`` digits after the point."""
    values = [_DECIMALS.scaleb(Decimal(int(number)), -scale) for number in unscaled]
    array = np.empty(len(values), object)
    array[:] = values
    return array
