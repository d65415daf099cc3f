"""The chunk grid against enumeration of cells."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError, SchemaError
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid, dense_chunks, sparse_chunks

END = 12


@st.composite
def grids(draw: st.DrawFn) -> tuple[ChunkGrid, Box, Box]:
    """A grid, the cells looked at (growing dimensions end at END), and a box that may stick out of it."""
    ndim = draw(st.integers(1, 3))
    lo = tuple(draw(st.integers(-3, 3)) for _ in range(ndim))
    hi = tuple(draw(st.none() | st.integers(start, 8)) for start in lo)
    grid = ChunkGrid(lo, hi, tuple(draw(st.integers(1, 5)) for _ in range(ndim)))
    corner = tuple(start + draw(st.integers(-2, 5)) for start in lo)
    box = Box(corner, tuple(min(END, c + draw(st.integers(-1, 5))) for c in corner))
    return grid, Box(lo, tuple(END if top is None else top for top in hi)), box


def cells_of(box: Box) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(lo, hi + 1) for lo, hi in zip(box.lo, box.hi, strict=True))))


@settings(deadline=None)
@given(grids())
def test_cells_keys_and_ordinals(case: tuple[ChunkGrid, Box, Box]) -> None:
    grid, bounds, _ = case
    cells = cells_of(bounds)
    columns = [np.array(column) for column in zip(*cells, strict=True)]
    ordinals, places = grid.ordinals(columns), grid.offsets(columns)
    assert len(set(zip(ordinals.tolist(), places.tolist(), strict=True))) == len(cells)
    for cell, ordinal, place in zip(cells, ordinals.tolist(), places.tolist(), strict=True):
        key = grid.key_of(cell)
        assert cell in grid.box_of(key)
        assert grid.ordinal(key) == ordinal
        assert grid.key(ordinal) == key
        first = [lo + k * size for lo, k, size in zip(grid.lo, key, grid.chunk, strict=True)]
        assert place == np.ravel_multi_index(tuple(np.subtract(cell, first)), grid.chunk)
    keys = sorted({grid.key_of(cell) for cell in cells})
    assert sorted(keys, key=grid.ordinal) == keys
    bounded = [key for key in keys if all(h is not None for h in grid.hi)]
    assert sum(grid.box_of(key).size for key in bounded) == (len(cells) if bounded else 0)


@settings(deadline=None)
@given(grids())
def test_chunks_touching_a_box(case: tuple[ChunkGrid, Box, Box]) -> None:
    grid, bounds, box = case
    inside = box & bounds
    touched = sorted({grid.key_of(cell) for cell in cells_of(inside)})
    assert list(grid.keys_touching(box)) == touched
    assert grid.ordinals_touching(box).tolist() == [grid.ordinal(key) for key in touched]
    if touched:
        assert cells_of(grid.key_box(box)) == touched
        whole = {cell for key in touched for cell in cells_of(grid.box_of(key))}
        assert set(cells_of(grid.aligned(box))) == whole
    else:
        assert grid.aligned(box).is_empty


@settings(deadline=None)
@given(grids(), st.integers(1, 80), st.sets(st.integers(0, 2)))
def test_blocks(case: tuple[ChunkGrid, Box, Box], most: int, keep: set[int]) -> None:
    grid, bounds, box = case
    blocks = grid.blocks(box, most, [d for d in keep if d < grid.ndim])
    listed = [cell for block in blocks for cell in cells_of(block)]
    assert sorted(listed) == cells_of(box & bounds)
    owners: dict[tuple[int, ...], set[int]] = {}
    for number, block in enumerate(blocks):
        for cell in cells_of(block):
            owners.setdefault(grid.key_of(cell), set()).add(number)
        if block.size > most:
            assert len({grid.key_of(cell) for cell in cells_of(block)}) == 1
    assert all(len(numbers) == 1 for numbers in owners.values())


def test_blocks_cut_the_kept_dimension_last() -> None:
    grid = ChunkGrid((0, 0), (99, 99), (10, 10))
    whole = Box((0, 0), (99, 99))
    assert {block.shape[1] for block in grid.blocks(whole, 1000, keep_whole=[1])} == {100}
    assert {block.shape[0] for block in grid.blocks(whole, 1000, keep_whole=[0])} == {100}
    assert len(grid.blocks(whole, 10_000)) == 1


def test_ordinals_stay_while_an_array_grows() -> None:
    grid = ChunkGrid((1, 0), (None, 9), (16, 5))
    assert [grid.ordinal(key) for key in ((0, 0), (0, 1), (1, 0), (10**9, 1))] == [0, 1, 2, 2 * 10**9 + 1]
    two = ChunkGrid((0, 0), (None, None), (1, 1))
    assert two.key(two.ordinal((2**30, 2**30))) == (2**30, 2**30)


def test_grids_that_cannot_be() -> None:
    with pytest.raises(SchemaError, match="at least one cell"):
        ChunkGrid((0,), (1,), (0,))
    with pytest.raises(SchemaError, match="too many chunks"):
        _ = ChunkGrid((0, 0), (2**40, 2**40), (1, 1)).radix
    with pytest.raises(DataError, match="outside the array"):
        ChunkGrid((0,), (9,), (5,)).ordinal((2,))
    with pytest.raises(DataError, match="outside the array"):
        ChunkGrid((0,), (9,), (5,)).ordinal((-1,))


extents_lists = st.lists(st.none() | st.integers(1, 10**6), min_size=1, max_size=4)
stated_sizes = st.dictionaries(st.integers(0, 3), st.integers(1, 50))


def check_chunks(chunk: tuple[int, ...], extents: list[int | None], stated: dict[int, int], steps: int) -> bool:
    """Check what any default must keep to; whether dimensions could still be cut is the answer."""
    assert len(chunk) == len(extents)
    for d, (size, extent) in enumerate(zip(chunk, extents, strict=True)):
        if d in stated:
            assert size == stated[d]
        elif extent is None:
            assert size == steps
        else:
            assert 1 <= size <= extent
    return any(chunk[d] > 1 for d, extent in enumerate(extents) if d not in stated and extent is not None)


@settings(deadline=None)
@given(extents_lists, st.integers(1, 24), stated_sizes)
def test_dense_chunks(extents: list[int | None], itemsize: int, stated: dict[int, int]) -> None:
    chunk = dense_chunks(extents, itemsize, stated)
    if check_chunks(chunk, extents, stated, 8):
        assert math.prod(chunk) * itemsize <= 4 * 2**20


@settings(deadline=None)
@given(extents_lists, stated_sizes)
def test_sparse_chunks(extents: list[int | None], stated: dict[int, int]) -> None:
    chunk = sparse_chunks(extents, stated)
    growing = sum(1 for d, extent in enumerate(extents) if extent is None and d not in stated)
    steps = {0: 1024, 1: 1024, 2: 32, 3: 10, 4: 5}[growing]
    if check_chunks(chunk, extents, stated, steps):
        positions = math.prod(extent for extent in extents if extent is not None)
        assert math.prod(chunk) <= min(2**40, max(2**19, positions // 2**16))


def test_chunks_of_known_arrays() -> None:
    assert dense_chunks([288, 145, None], 4, {}) == (288, 145, 8)
    assert dense_chunks([1000, 1000], 8, {}) == (500, 1000)
    assert dense_chunks([1000, 1000], 8, {1: 250}) == (1000, 250)
    assert sparse_chunks([10, None], {}) == (10, 1024)
