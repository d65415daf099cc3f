"""Makes values fit an attribute without ever changing what they mean: what cannot fit is an error."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.model.schema import Attribute

Values = npt.NDArray[Any]
Valid = npt.NDArray[np.bool_]


def conform(values: Values, attribute: Attribute, valid: Valid | None = None) -> tuple[Values, Valid | None]:
    """``values`` in the attribute's own dtype, with the companion where the attribute keeps one.

    Masked arrays, NaT and None say where values are missing, and so does ``valid``.
    """
    present = _present(values, valid)
    plain = np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else values
    if plain.dtype.kind == "O":
        plain, present = _from_objects(plain, present, attribute)
    if plain.dtype == np.dtype("M8"):  # NaT alone has no unit, and nothing can be cast to that
        plain = plain.astype("M8[us]")
    if present is not None and present.all():
        present = None
    if present is not None and not attribute.can_be_missing:
        raise DataError(
            f"attribute {attribute.name} cannot be missing",
            got=f"{int((~present).sum())} missing values",
            hint=f"Declare it '{attribute.name}: {attribute.type} null'",
        )
    if present is not None and plain.dtype != attribute.type.dtype:
        plain = plain.copy()
        plain[~present] = _neutral(plain.dtype)  # what stands at a missing place must not fail the cast
    cast = _cast(plain, attribute)
    if attribute.type.is_float and present is not None:
        cast = np.where(present, cast, np.array(np.nan, cast.dtype))
    if not attribute.has_companion:
        return cast, None
    return cast, np.ones(cast.shape, bool) if present is None else present


def _neutral(dtype: np.dtype[Any]) -> Any:
    return {"T": "", "U": "", "S": b"", "M": np.datetime64(0, "us")}.get(dtype.kind, 0)


def _present(values: Values, valid: Valid | None) -> Valid | None:
    present = None if valid is None else np.asarray(valid, bool)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        unmasked = ~np.ma.getmaskarray(values)
        present = unmasked if present is None else present & unmasked
    if values.dtype.kind == "M":
        not_a_time = np.isnat(np.ma.getdata(values))
        if not_a_time.any():
            present = ~not_a_time if present is None else present & ~not_a_time
    return present


def _from_objects(values: Values, present: Valid | None, attribute: Attribute) -> tuple[Values, Valid | None]:
    """Python objects, None standing for missing, become an array of the attribute's kind of values."""
    there = np.array([value is not None for value in values.ravel()], bool).reshape(values.shape)
    present = there if present is None else present & there
    filled = values.copy()
    filled[~present] = attribute.type.fill
    try:
        if attribute.type.name == "string":
            if not all(isinstance(value, str) for value in filled.ravel()):
                raise TypeError("not text")
            return filled.astype(np.dtypes.StringDType()), present
        if attribute.type.name == "datetime" and all(isinstance(v, date | np.datetime64) for v in filled.ravel()):
            return np.array([_utc(value) for value in filled.ravel()], "M8[us]").reshape(values.shape), present
        guess = np.array(filled.ravel().tolist()).reshape(values.shape)
        return guess, present
    except (TypeError, ValueError, OverflowError) as error:
        raise _mismatch(attribute, f"Python objects ({error})") from None


def _utc(moment: Any) -> Any:
    """Datetimes have no time zone of their own: those that do are taken at UTC."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def _mismatch(attribute: Attribute, got: object) -> DataError:
    return DataError(
        f"values do not fit attribute {attribute.name} of type {attribute.type}",
        got=got,
        hint="Convert them first, or give the attribute a type that holds them",
    )


def _cast(values: Values, attribute: Attribute) -> Values:
    target = attribute.type.dtype
    source, wanted = values.dtype.kind, target.kind
    if values.dtype == target:
        return values
    if wanted in "iu" and source in "iu":
        return _cast_integers(values, attribute)
    if wanted == "f" and source in "iuf":
        return _cast_floats(values, attribute)
    if wanted == "M" and source == "M":
        return _cast_times(values, attribute)
    if wanted == "T" and source in "UT":
        return values.astype(target)
    raise _mismatch(attribute, f"dtype {values.dtype}")


def _cast_integers(values: Values, attribute: Attribute) -> Values:
    limits = np.iinfo(attribute.type.dtype)
    if values.size and (int(values.min()) < limits.min or int(values.max()) > limits.max):
        outside = int(values.min()) if int(values.min()) < limits.min else int(values.max())
        raise _mismatch(attribute, outside)
    return values.astype(attribute.type.dtype)


def _cast_floats(values: Values, attribute: Attribute) -> Values:
    with np.errstate(over="ignore"):
        cast = values.astype(attribute.type.dtype)
    if values.dtype.kind == "f" and values.dtype.itemsize > cast.dtype.itemsize:
        overflowed = np.isinf(cast) & np.isfinite(values)
        if overflowed.any():
            raise _mismatch(attribute, values[overflowed].flat[0])
    return cast


def _cast_times(values: Values, attribute: Attribute) -> Values:
    with np.errstate(all="ignore"):
        cast = values.astype(attribute.type.dtype)
    if np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D", "h", "m", "s", "ms"):
        wrapped = cast.astype(values.dtype) != values
        if wrapped.any():
            raise _mismatch(attribute, values[wrapped].flat[0])
    return cast
