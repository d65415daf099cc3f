"""Cells found among others, however far apart they lie."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.kernels.sparse.order import coordinate_order, needed_order

near = st.tuples(st.integers(-3, 9), st.integers(0, 9), st.integers(5, 6))
far = st.tuples(*[st.sampled_from([-(2**61), -(2**40), -1, 0, 1, 7, 2**40, 2**61])] * 3)
Cell = tuple[int, ...]


def columns(cells: list[Cell]) -> list[np.ndarray]:
    return [np.array([cell[axis] for cell in cells], np.int64) for axis in range(3)]


@given(st.lists(near | far, max_size=30), st.lists(near | far, max_size=30, unique=True), st.booleans())
def test_cells_are_found_among_others(mine: list[Cell], others: list[Cell], ordered: bool) -> None:
    others = sorted(others) if ordered else others
    expected = [others.index(cell) if cell in others else -1 for cell in mine]
    assert match_cells(columns(mine), columns(others)).tolist() == expected
    assert found_in(columns(mine), columns(others)).tolist() == [number >= 0 for number in expected]


@given(st.lists(near, max_size=30), st.lists(near, max_size=30))
def test_others_may_come_twice_where_only_membership_is_asked(mine: list[Cell], others: list[Cell]) -> None:
    assert found_in(columns(mine), columns(others)).tolist() == [cell in others for cell in mine]


@given(st.lists(near | far, max_size=30))
def test_cells_are_put_in_order(cells: list[Cell]) -> None:
    assert (needed_order(columns(cells)) is None) == (cells == sorted(cells))
    order = coordinate_order(columns(cells)).tolist()
    assert order == sorted(range(len(cells)), key=lambda row: (cells[row], row))
