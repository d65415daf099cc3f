"""From a variable as a file stores it to a block as windrow means it, after the CF conventions.

Decoding happens block by block on raw values, because xarray's decoding would turn integers with missing values into
floats, which are inexact beyond 2^53.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from windrow.errors import FileFormatError, SchemaError
from windrow.model.types import TYPES, DataType, data_type_of

TYPE_MARK = "windrow_type"
"""Marks a variable whose stored type is not its own: a bool with missing values is stored as int8."""

_CALENDARS = ("standard", "gregorian", "proleptic_gregorian")
_MISSING = ("_FillValue", "missing_value")
_SCALING = ("scale_factor", "add_offset")
_TIME = ("units", "calendar")
_BOOKKEEPING = (*_MISSING, *_SCALING, "_Unsigned", "_Encoding", "dtype", TYPE_MARK, "coordinates", "bounds")
_MICROSECONDS = xr.coders.CFDatetimeCoder(use_cftime=False, time_unit="us")

Decoded = tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]


@dataclass(frozen=True)
class Encoded:
    """A variable of a file: its dimensions (without that of characters), stored dtype and attributes."""

    name: str
    dimensions: tuple[str, ...]
    dtype: np.dtype[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    companion: str | None = None

    @classmethod
    def of(cls, name: str, variable: xr.Variable) -> Encoded:
        characters = variable.dtype == np.dtype("S1") and variable.ndim > 0
        dimensions = tuple(map(str, variable.dims[:-1] if characters else variable.dims))
        return cls(name, dimensions, variable.dtype, {str(k): _scalar(v) for k, v in variable.attrs.items()})

    @property
    def is_time(self) -> bool:
        units = self.attributes.get("units")
        return self.dtype.kind in "iuf" and isinstance(units, str) and " since " in units

    @property
    def is_scaled(self) -> bool:
        return any(name in self.attributes for name in _SCALING)

    @property
    def is_characters(self) -> bool:
        return self.dtype == np.dtype("S1")

    @property
    def nullable(self) -> bool:
        """Whether values may be missing in a way that needs a companion."""
        if self.type.is_float:
            return False
        return self.companion is not None or any(name in self.attributes for name in _MISSING)

    @property
    def type(self) -> DataType:
        if self.is_time or self.dtype.kind == "M":
            return TYPES["datetime"]
        if self.attributes.get(TYPE_MARK) == "bool" or self.attributes.get("dtype") == "bool":
            return TYPES["bool"]
        if self.dtype.kind in "SUOT":
            return TYPES["string"]
        if self.is_scaled:
            return data_type_of(_apply_scale(np.zeros(1, self.dtype), self.attributes).dtype)
        try:
            return data_type_of(_signedness(self.dtype, self.attributes))
        except SchemaError as error:
            raise FileFormatError(f"variable {self.name} has a type windrow lacks", got=self.dtype) from error

    @property
    def metadata(self) -> dict[str, str]:
        """The attributes that describe the values, not their storage."""
        hidden = (*_BOOKKEEPING, *_TIME) if self.is_time else _BOOKKEEPING
        return {name: str(value) for name, value in self.attributes.items() if name not in hidden}

    def check(self) -> None:
        """Refuse at opening what could not be decoded later."""
        calendar = str(self.attributes.get("calendar", "standard")).lower()
        if self.is_time and calendar not in _CALENDARS:
            hint = "Convert it first, as with xarray's Dataset.convert_calendar('standard')"
            raise FileFormatError(f"the calendar of {self.name} has no place among datetimes", got=calendar, hint=hint)
        _ = self.type

    def decode(self, raw: npt.NDArray[Any]) -> Decoded:
        """Values and, where ``nullable``, their validity."""
        if self.dtype.kind in "SUOT":
            return self._text(raw)
        if self.dtype.kind == "M":
            values = raw.astype(TYPES["datetime"].dtype)
            return (values, ~np.isnat(values)) if self.nullable else (values, None)
        if self.is_scaled or (self.dtype.kind == "f" and not self.is_time):
            values = _apply_scale(raw, self.attributes)
            return self._time(values, ~np.isnan(values)) if self.is_time else (values.astype(self.type.dtype), None)
        values = raw.astype(raw.dtype.newbyteorder("="), copy=False).view(_signedness(self.dtype, self.attributes))
        valid = ~self._missing(values)
        if self.is_time:
            return self._time(values, valid)
        if self.nullable:
            values = np.where(valid, values, values.dtype.type(0))
        return values.astype(self.type.dtype, copy=False), valid if self.nullable else None

    def _text(self, raw: npt.NDArray[Any]) -> Decoded:
        if self.is_characters:
            width = raw.shape[-1] if raw.ndim else 1
            raw = np.ascontiguousarray(raw).view(f"S{width}").reshape(raw.shape[:-1])
        if raw.dtype.kind == "S" or (raw.dtype.kind == "O" and raw.size and isinstance(raw.flat[0], bytes)):
            raw = np.char.decode(raw.astype("S"), str(self.attributes.get("_Encoding", "utf-8")))
        values = raw.astype(TYPES["string"].dtype)
        if not self.nullable:
            return values, None
        marks = [_text_of(self.attributes[name]) for name in _MISSING if name in self.attributes]
        valid = ~np.isin(values.astype(object), np.array(marks, object)) if marks else np.ones(values.shape, bool)
        values[~valid] = ""
        return values, valid

    def _missing(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
        for name in _MISSING:
            for mark in np.atleast_1d(self.attributes.get(name, [])):
                missing |= values == _as_stored(mark, values.dtype)
        return missing

    def _time(self, values: npt.NDArray[Any], valid: npt.NDArray[np.bool_]) -> Decoded:
        if self.dtype.kind == "f" and not self.is_scaled:
            valid = ~self._missing(values)
        decoded = np.zeros(values.shape, TYPES["datetime"].dtype)
        if valid.any():
            attributes = {name: self.attributes[name] for name in _TIME if name in self.attributes}
            variable = xr.Variable(("cell",), values[valid], attributes)
            try:
                decoded[valid] = _MICROSECONDS.decode(variable, self.name).to_numpy()
            except (ValueError, OverflowError) as error:
                raise FileFormatError(f"the times of {self.name} cannot be decoded", got=error) from error
        if self.nullable:
            return decoded, valid
        decoded[~valid] = np.datetime64("NaT")
        return decoded, None


def _apply_scale(raw: npt.NDArray[Any], attributes: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Floats with NaN where the file has a fill value; a missing_value beside a _FillValue counts as well."""
    kept = {n: v for n, v in attributes.items() if n in (*_SCALING, *_MISSING, "_Unsigned")}
    dimensions = [f"d{axis}" for axis in range(raw.ndim)]
    if "_FillValue" in kept and "missing_value" in kept:
        marks = np.unique(np.concatenate([np.atleast_1d(kept.pop(name)).reshape(-1) for name in _MISSING]))
        values = _apply_scale(raw, kept)
        for mark in marks:
            values = np.where(raw == _as_stored(mark, raw.dtype), values.dtype.type(np.nan), values)
        return values
    data = xr.Dataset({"x": xr.Variable(dimensions, raw, kept)})
    decoded: npt.NDArray[Any] = xr.decode_cf(data, decode_times=False, decode_timedelta=False).variables["x"].to_numpy()
    return decoded if decoded.dtype.kind == "f" else decoded.astype(np.float64)


def _signedness(dtype: np.dtype[Any], attributes: Mapping[str, Any]) -> np.dtype[Any]:
    """The stored dtype, unsigned (or signed) where the file says so in the NetCDF 3 way."""
    says = str(attributes.get("_Unsigned", "")).lower()
    native = dtype.newbyteorder("=")
    if dtype.kind == "i" and says == "true":
        return np.dtype(f"u{dtype.itemsize}")
    return np.dtype(f"i{dtype.itemsize}") if dtype.kind == "u" and says == "false" else native


def _as_stored(mark: Any, dtype: np.dtype[Any]) -> Any:
    """A fill value in the variable's own dtype: files write -1 for 255, and doubles beside floats."""
    value = np.asarray(mark)
    if dtype.kind in "iu" and value.dtype.kind in "iuf" and np.isfinite(value) and value == np.floor(value):
        limits = np.iinfo(dtype)
        whole = int(value)
        wrapped = whole + 2 ** (8 * dtype.itemsize) if whole < limits.min and dtype.kind == "u" else whole
        wrapped = wrapped - 2 ** (8 * dtype.itemsize) if wrapped > limits.max and dtype.kind == "i" else wrapped
        return dtype.type(wrapped) if limits.min <= wrapped <= limits.max else np.nan
    return value.astype(dtype) if dtype.kind == "f" else np.nan


def _scalar(value: Any) -> Any:
    return value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else value


def _text_of(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
