"""The types an attribute may have."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from windrow.errors import SchemaError, nearest


@dataclass(frozen=True, slots=True)
class DataType:
    """An attribute's type: its canonical name, and the NumPy dtype that holds its values."""

    name: str
    dtype: np.dtype = field(compare=False)

    @property
    def is_float(self) -> bool:
        """Floats carry their own missing value, NaN."""
        return self.dtype.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind in "iu"

    @property
    def is_number(self) -> bool:
        return self.dtype.kind in "iuf"

    @property
    def fill(self) -> object:
        """What a dense cell that was never written holds."""
        return {"f": np.nan, "b": False, "T": "", "M": np.datetime64(0, "us")}.get(self.dtype.kind, 0)

    @property
    def itemsize(self) -> int:
        """Bytes a value takes in memory, for estimates; strings are counted at a typical length."""
        return 24 if self.dtype.kind == "T" else self.dtype.itemsize

    def __str__(self) -> str:
        return self.name


_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")

TYPES: dict[str, DataType] = {
    "bool": DataType("bool", np.dtype("bool")),
    **{name: DataType(name, np.dtype(name)) for name in _NUMBERS},
    "string": DataType("string", np.dtypes.StringDType()),
    "datetime": DataType("datetime", np.dtype("datetime64[us]")),
}

ALIASES = {"int": "int64", "float": "float32", "double": "float64", "boolean": "bool", "str": "string"}


def data_type(name: str) -> DataType:
    """The type called ``name``, by canonical name or alias, in any case."""
    canonical = ALIASES.get(name.lower(), name.lower())
    if canonical not in TYPES:
        raise SchemaError("unknown type", got=repr(name), hint=nearest(canonical, [*TYPES, *ALIASES]))
    return TYPES[canonical]


def data_type_of(dtype: np.dtype) -> DataType:
    """The windrow type that holds values of a NumPy dtype."""
    if dtype.kind == "M":
        return TYPES["datetime"]
    if dtype.kind in "TUO":
        return TYPES["string"]
    if dtype.kind == "b":
        return TYPES["bool"]
    return _number_type(dtype)


@functools.cache
def _number_type(dtype: np.dtype) -> DataType:
    if dtype == np.float16:
        return TYPES["float32"]
    name = dtype.newbyteorder("=").name
    if name not in TYPES:
        raise SchemaError("no windrow type holds NumPy's dtype", got=dtype, hint="Known: " + ", ".join(TYPES))
    return TYPES[name]
