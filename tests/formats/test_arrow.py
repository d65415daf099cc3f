"""Blocks to Arrow and back."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from formats.memory import MemorySource, sources
from windrow.errors import DataError, SchemaError
from windrow.model.arrow import arrow_to_block, arrow_type, block_to_arrow, data_type_from_arrow
from windrow.model.types import TYPES


@pytest.mark.parametrize("name", list(TYPES))
def test_types_there_and_back(name: str) -> None:
    assert data_type_from_arrow(arrow_type(TYPES[name])) is TYPES[name]


@given(source=sources())
def test_blocks_there_and_back(source: MemorySource) -> None:
    for attribute in source.schema.attributes:
        values = source.cells[attribute.name]
        valid = source.cells.get(attribute.companion)
        array = block_to_arrow(values, valid)
        assert array.type == arrow_type(attribute.type)
        missing = (
            np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool) if valid is None else ~valid
        )
        assert array.is_null().to_pylist() == missing.reshape(-1).tolist()
        for form in (array, pa.chunked_array([array[:1], array[1:]]), array.dictionary_encode()):
            back, present = arrow_to_block(form)
            np.testing.assert_array_equal(back, values.reshape(-1), strict=True)
            expected = None if valid is None or valid.all() else valid.reshape(-1).tolist()
            assert (None if present is None else present.tolist()) == expected


def test_no_copy_where_none_is_needed() -> None:
    values = np.arange(10.0)
    array = block_to_arrow(values)
    assert np.shares_memory(arrow_to_block(array)[0], values)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([decimal.Decimal(7)], pa.decimal128(18, 0)), np.array([7])),
        (pa.array([1], pa.date32()), np.array(["1970-01-02"], "M8[us]")),
        (pa.array([1001], pa.timestamp("ns")), np.array([1], "M8[us]")),
        (pa.array([1], pa.timestamp("s", "Europe/Berlin")), np.array([10**6], "M8[us]")),
        (pa.array([1.5], pa.float16()), np.array([1.5], "f4")),
        (pa.array(["é"], pa.large_string()), np.array(["é"], np.dtypes.StringDType())),
        (pa.array(["é"], pa.string_view()), np.array(["é"], np.dtypes.StringDType())),
        (pa.chunked_array([], pa.int8()), np.array([], "i1")),
    ],
)
def test_other_arrow_types(array: pa.Array, values: np.ndarray) -> None:
    back, valid = arrow_to_block(array)
    np.testing.assert_array_equal(back, values, strict=True)
    assert valid is None


@pytest.mark.parametrize(
    "arrow", [pa.decimal128(19, 0), pa.decimal128(5, 2), pa.binary(), pa.list_(pa.int8()), pa.null()]
)
def test_types_windrow_lacks(arrow: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="no windrow type"):
        data_type_from_arrow(arrow)


def test_times_out_of_range() -> None:
    with pytest.raises(DataError, match="do not fit"):
        arrow_to_block(pa.array([2**60], pa.timestamp("s")))


def test_foreign_blocks() -> None:
    assert block_to_arrow(np.array([[1, 2], [3, 4]], ">i2").T).to_pylist() == [1, 3, 2, 4]
    assert block_to_arrow(np.array(["2020-01-01", "NaT"], "M8[D]")).null_count == 1
    assert block_to_arrow(np.array([1.5], "f2")).type == pa.float32()
    with pytest.raises(SchemaError, match="complex"):
        block_to_arrow(np.array([1j]))
