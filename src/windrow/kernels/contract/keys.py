"""Values of any type as floats in the same order, so that one or two compiled versions of a kernel serve all types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

# Whole numbers up to here are doubles without rounding.
EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Keys:
    """Floats in the order of the values, NaN where a value is missing, and the way back."""

    floats: Array
    dtype: np.dtype[Any]  # of the values
    offset: int | None = None  # key = value - offset
    codes: Array | None = None  # value = codes[key]

    @property
    def coded(self) -> bool:
        """Whether keys differ from the values as numbers, so that they must not be interpolated."""
        return self.offset is not None or self.codes is not None

    def values(self, picked: Array) -> tuple[Array, Mask | None]:
        """The values behind picked keys, and where there is none; for floats NaN says that."""
        if self.dtype.kind == "f":
            return picked.astype(self.dtype, copy=False), None
        missing = np.isnan(picked)
        if missing.any():
            picked = np.where(missing, picked.dtype.type(0), picked)
        return self._decoded(picked), missing if missing.any() else None

    def _decoded(self, picked: Array) -> Array:
        if self.codes is not None:
            return self.codes[picked.astype(np.int64)]
        if self.offset is not None:
            moved = picked.astype(np.uint64) + np.uint64(self.offset % 2**64)
            return moved.view(self.dtype)
        whole = np.int64 if self.dtype.kind in "mM" else self.dtype
        return picked.astype(whole).view(self.dtype)


def key_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The float type whose numbers hold, or can number, the values of a type."""
    if dtype.kind not in "fbiumM" or dtype.itemsize > 8:
        raise DataError("order statistics need numbers, booleans or datetimes", got=dtype)
    return np.dtype(np.float32 if dtype.itemsize < 4 or dtype == np.float32 else np.float64)


def keys_of(values: Array, valid: Mask | None) -> Keys:
    """Keys for ``values``; NaN, NaT and whatever is not ``valid`` is missing."""
    dtype = values.dtype
    kind = key_type(dtype)
    if dtype.kind in "mM":
        there = ~np.isnat(values)
        if not there.all():
            valid = there if valid is None else there & valid
        values = values.view(np.int64)
    if dtype.kind == "f" or dtype.itemsize < 8:
        return Keys(_masked(values, valid, kind.type), dtype)
    return _wide_keys(values, valid, dtype)


def _masked(values: Array, valid: Mask | None, kind: Any) -> Array:
    if valid is None or valid.all():
        return np.ascontiguousarray(values, kind)
    return np.where(valid, values.astype(kind), kind(np.nan))


def _wide_keys(values: Array, valid: Mask | None, dtype: np.dtype[Any]) -> Keys:
    """64-bit whole numbers: as they are if doubles hold them, else counted from the smallest, else numbered."""
    present = values if valid is None or valid.all() else values[valid]
    if present.size == 0:
        return Keys(np.full(values.shape, np.nan), dtype)
    low, high = int(present.min()), int(present.max())
    if max(abs(low), abs(high)) <= EXACT:
        return Keys(_masked(values, valid, np.float64), dtype)
    if high - low <= EXACT:
        return Keys(_masked(values.view(np.uint64) - np.uint64(low % 2**64), valid, np.float64), dtype, offset=low)
    codes = np.unique(present)
    return Keys(_masked(np.searchsorted(codes, values), valid, np.float64), dtype, codes=codes.view(dtype))
