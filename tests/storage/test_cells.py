"""Cells as tables: what fits a schema, in which order they lie, and which repeat."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.notation import parse_schema
from windrow.model.types import TYPES
from windrow.storage.cells import CellKeys, cell_fields, conform_cells, from_stored, stored_fields, to_stored

GRIDS = [
    ChunkGrid((-3, 0), (9, 9), (4, 3)),
    ChunkGrid((-3, 0), (None, 9), (4, 3)),
    # So many chunks that ordinal and offset do not fit one number.
    ChunkGrid((-3, 0), (2**40, 2**40), (2**20, 2**20)),
]

places = st.lists(st.tuples(st.integers(-3, 9), st.integers(0, 9)), max_size=30)


def columns(cells: list[tuple[int, int]]) -> list[np.ndarray]:
    return [np.array([cell[axis] for cell in cells], np.int64) for axis in range(2)]


def key(grid: ChunkGrid, cell: tuple[int, int]) -> tuple[int, ...]:
    """Chunk position first, then the cell itself."""
    chunk = [(c - lo) // size for c, lo, size in zip(cell, grid.lo, grid.chunk, strict=True)]
    return (*chunk, *cell)


@given(places, st.sampled_from(GRIDS))
def test_cells_lie_by_chunk_then_coordinate(cells: list[tuple[int, int]], grid: ChunkGrid) -> None:
    keys = CellKeys(grid, columns(cells))
    order = keys.order().tolist()
    assert [cells[row] for row in order] == sorted(cells, key=lambda cell: key(grid, cell))
    assert order == sorted(order, key=lambda row: (key(grid, cells[row]), row))  # stable
    assert keys.is_sorted() == (cells == sorted(cells, key=lambda cell: key(grid, cell)))
    keys.take(keys.order())
    assert keys.is_sorted()
    arranged = [cells[row] for row in order]
    assert keys.repeats().tolist() == [row > 0 and arranged[row] == arranged[row - 1] for row in range(len(arranged))]


SCHEMA = parse_schema("<" + ", ".join(f"{name}_: {name} null" for name in TYPES) + "> [x=0:9:4, y=0:9:4]", sparse=True)[
    1
].with_chunks()
ANYWHERE = Box((0, 0), (9, 9))


def test_stored_types_are_those_that_delta_has() -> None:
    allowed = {"int8", "int16", "int32", "int64", "float", "double", "string", "bool", "decimal128(20, 0)"}
    assert {str(field.type) for field in stored_fields(SCHEMA)} <= allowed | {"timestamp[us, tz=UTC]"}


def test_cells_come_back_from_their_stored_form() -> None:
    extremes = {
        name: [np.iinfo(kind.dtype).min, np.iinfo(kind.dtype).max] for name, kind in TYPES.items() if kind.is_integer
    }
    values = {f"{name}_": extremes.get(name, [None, None]) for name in TYPES}
    values["datetime_"] = [0, -(2**62)]
    cells = pa.table({"x": [1, 2], "y": [3, 4]} | values, schema=cell_fields(SCHEMA))
    stored = to_stored(cells, np.array([0, 1]), SCHEMA)
    assert stored.schema == stored_fields(SCHEMA)
    assert from_stored(stored, SCHEMA).equals(cells)
    assert from_stored(stored.select(["y", "uint64_"]), SCHEMA).equals(cells.select(["y", "uint64_"]))


@pytest.mark.parametrize(
    ("column", "values", "fits"),
    [
        ("int8_", pa.array([127, -128]), True),
        ("int8_", pa.array([128, 0]), False),
        ("uint64_", pa.array([2**64 - 1, 0], pa.uint64()), True),
        ("uint64_", pa.array([-1, 0]), False),
        ("int64_", pa.array([1.0, 2.0]), False),
        ("int64_", pa.array([True, False]), False),
        ("float32_", pa.array([1e38, np.inf]), True),
        ("float32_", pa.array([1e39, 0.0]), False),
        ("float64_", pa.array([2**53 + 1, 0]), True),
        ("float64_", pa.array(["1", "2"]), False),
        ("string_", pa.array(["a", "b"]).dictionary_encode(), True),
        ("string_", pa.array(["a", "b"], pa.large_string()), True),
        ("string_", pa.array([b"a", b"b"]), False),
        ("bool_", pa.array([1, 0]), False),
        ("datetime_", pa.array([1, 2], pa.timestamp("ns")), True),
        ("datetime_", pa.array([1, 2], pa.date32()), True),
        ("datetime_", pa.array([1, 2]), False),
        ("int32_", pa.array([None, None]), True),
    ],
)
def test_values_fit_or_are_refused(column: str, values: pa.Array, fits: bool) -> None:
    nothing = {f"{name}_": pa.nulls(2) for name in TYPES}
    table = pa.table({"x": [1, 2], "y": [3, 4]} | nothing | {column: values})
    if fits:
        assert conform_cells(table, SCHEMA, ANYWHERE).schema == cell_fields(SCHEMA)
    else:
        with pytest.raises(DataError, match=column):
            conform_cells(table, SCHEMA, ANYWHERE)


def test_all_cells_of_a_grid_have_keys_of_their_own() -> None:
    grid = ChunkGrid((0, 0), (6, 6), (4, 3))
    cells = list(itertools.product(range(7), range(7)))
    keys = CellKeys(grid, columns(cells))
    keys.take(keys.order())
    assert not keys.repeats().any()
