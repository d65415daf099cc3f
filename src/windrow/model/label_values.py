"""The values of coordinate labels: what users give, brought into one of four normal forms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.model import units

LabelKind = Literal["number", "datetime", "string"]

STRING = np.dtypes.StringDType()
DATETIME = np.dtype("datetime64[us]")
NORMAL_FORMS = (np.dtype(np.int64), np.dtype(np.float64), DATETIME, STRING)
KINDS: dict[str, LabelKind] = {"i": "number", "f": "number", "M": "datetime", "T": "string"}
_DTYPE_OF_KIND: dict[LabelKind, np.dtype[Any]] = {
    "number": np.dtype(np.float64),
    "datetime": DATETIME,
    "string": STRING,
}


def parse_label(value: object, kind: LabelKind) -> Any:
    """``value`` (text or a value) as a label of a kind; a date is its first instant."""
    if kind == "datetime":
        return np.datetime64(units.period(value).first, "us")
    if kind == "number":
        return label_number(value)
    if not isinstance(value, str):
        raise DataError("the labels are text", got=repr(value), hint="Give the label in quotes")
    return str(value)


def label_number(value: object) -> int | float:
    """A number from a number or its text; never NaN."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                raise DataError("the labels are numbers", got=repr(value), hint="As in 12.5") from None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise DataError("the labels are numbers", got=repr(value), hint="As in 12.5")
    if isinstance(value, (int, np.integer)):
        if abs(int(value)) < 2**1000:
            return int(value)
        return math.inf if value > 0 else -math.inf
    if math.isnan(value):
        raise DataError("a label cannot be NaN", hint="Give a number")
    return float(value)


def normalised(values: Any, kind: LabelKind | None) -> npt.NDArray[Any]:
    """``values`` as int64, float64, datetime64[us] or strings, or a DataError saying why not."""
    array = _as_array(values)
    if array.ndim != 1:
        raise DataError("labels have one dimension", got=f"{array.ndim}")
    if array.dtype.kind == "S":
        array = text_array([text.decode(errors="surrogateescape") for text in array.tolist()])
    if array.dtype.kind in "UT" and kind in ("number", "datetime"):
        array = np.array([parse_label(text, kind) for text in array.tolist()])
    converted = _convert(array)
    if converted.dtype.kind in "fM" and np.isnan(converted).any():
        position = int(np.argmax(np.isnan(converted)))
        raise DataError("every cell needs a label", got=f"a missing one at position {position}")
    if kind is not None and not len(converted):
        return np.empty(0, _DTYPE_OF_KIND[kind])
    if kind is not None and KINDS[converted.dtype.kind] != kind:
        raise DataError(f"labels of kind {kind} are needed", got=KINDS[converted.dtype.kind])
    return converted


def _as_array(values: Any) -> npt.NDArray[Any]:
    """The values as an ndarray, in which mixed types stay objects instead of all becoming text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError("labels are a sequence", got=repr(values), hint="As in [0.5, 1.5, 2.5]")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError("every cell needs a label", got="masked values")
    array = np.asarray(values) if hasattr(values, "__array__") else _objects(list(values))
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    return _from_objects(array.tolist())


def _objects(items: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _from_objects(items: list[Any]) -> npt.NDArray[Any]:
    """An ndarray of one kind from Python objects that are all of that kind."""
    for position, item in enumerate(items):
        if item is None or item is np.ma.masked or type(item).__name__ in ("NAType", "NaTType"):
            raise DataError("every cell needs a label", got=f"a missing one at position {position}")
        if type(item).__module__.startswith("cftime"):
            raise DataError(
                "labels in a calendar other than the standard one cannot be kept as datetimes",
                got=f"{type(item).__name__} at position {position}",
                hint="Convert them with xarray's convert_calendar('standard'), or give them as text",
            )
    if all(isinstance(item, str) for item in items):
        return text_array(items) if items else np.empty(0, np.float64)
    if all(isinstance(item, (date, np.datetime64)) for item in items):  # a datetime is a date too
        if any(isinstance(item, np.datetime64) and np.isnat(item) for item in items):
            raise DataError("every cell needs a label", got="NaT")
        return np.array([units.period(item).first for item in items], np.int64).view(DATETIME)
    numbers = (int, float, np.integer, np.floating)
    odd = [item for item in items if isinstance(item, (bool, np.bool_)) or not isinstance(item, numbers)]
    if odd:
        kinds = sorted({type(item).__name__ for item in items})
        raise DataError(
            "labels are all numbers, all dates or all text", got=" and ".join(kinds), hint="Convert them to one kind"
        )
    try:
        return np.array(items, np.int64 if all(isinstance(item, (int, np.integer)) for item in items) else np.float64)
    except OverflowError as error:
        raise DataError("a label is too large for int64", got=max(items, key=abs), hint="Give them as text") from error


def text_array(items: Any) -> npt.NDArray[Any]:
    try:
        return np.array(items, STRING)
    except UnicodeEncodeError as error:
        raise DataError("a label is not valid text", got=repr(error.object)) from error
    except ValueError as error:
        raise DataError("every cell needs a label", got="a missing one among text") from error


def _convert(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64 and np.any(array > np.iinfo(np.int64).max):
            raise DataError("a label is too large for int64", got=array.max(), hint="Give them as floats or text")
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype.kind == "M":
        return units.microseconds(array)
    if array.dtype.kind in "UT":
        return text_array(array)
    hint = "Give them as numbers, as in values / np.timedelta64(1, 'h')" if array.dtype.kind == "m" else None
    raise DataError("labels are numbers, dates or text", got=array.dtype, hint=hint or "Convert them to one of these")
