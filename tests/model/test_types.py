"""Types by name and by NumPy dtype."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from windrow.errors import SchemaError
from windrow.model.types import ALIASES, TYPES, data_type, data_type_of


def test_the_types_of_the_specification() -> None:
    widths = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    assert set(TYPES) == {"bool", *widths, "float32", "float64", "string", "datetime"}
    assert (data_type("int"), data_type("float"), data_type("double")) == (
        TYPES["int64"],
        TYPES["float32"],
        TYPES["float64"],
    )


@pytest.mark.parametrize("name", [*TYPES, *ALIASES])
def test_names_in_any_case(name: str) -> None:
    found = data_type(name.upper())
    assert found == data_type(name)
    assert found.name == ALIASES.get(name, name)
    assert data_type_of(found.dtype) == found
    assert np.full(2, found.fill, found.dtype).dtype == found.dtype
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.itemsize > 0


def test_kinds() -> None:
    assert {name for name, kind in TYPES.items() if kind.is_float} == {"float32", "float64"}
    assert {name for name, kind in TYPES.items() if kind.is_integer} == {n for n in TYPES if "int" in n}
    assert {name for name, kind in TYPES.items() if kind.is_number} == {n for n in TYPES if "int" in n or "float" in n}


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (">i4", "int32"),
        ("<f8", "float64"),
        ("f2", "float32"),
        ("U5", "string"),
        ("O", "string"),
        ("M8[ns]", "datetime"),
    ],
)
def test_dtypes_of_other_sources(dtype: str, name: str) -> None:
    assert data_type_of(np.dtype(dtype)).name == name


def test_unknown_types() -> None:
    with pytest.raises(SchemaError, match=r"got 'flaot64'\. Did you mean 'float64'"):
        data_type("flaot64")
    for dtype in ("complex128", "m8[s]", "S4", "V3", [("a", "i4")]):
        with pytest.raises(SchemaError, match="no windrow type"):
            data_type_of(np.dtype(dtype))
