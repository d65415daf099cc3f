"""Static assignments, and homes when nodes come and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError, UnknownNameError
from windrow.placement import ASSIGNMENTS, assign, renumber_homes

GRID = np.array([(i, j) for i in range(12) for j in range(15)])


@given(st.sampled_from(sorted(ASSIGNMENTS)), st.integers(1, 40), st.integers(0, 200))
@settings(max_examples=40, deadline=None)
def test_every_chunk_gets_a_node_that_is_there(name: str, nodes: int, count: int) -> None:
    homes = assign(name, GRID[:count], nodes)
    assert len(homes) == min(count, len(GRID))
    assert ((homes >= 0) & (homes < nodes)).all()


def test_round_robin_is_row_major_and_goes_on() -> None:
    """Fig. 1: six chunks on X, Y, Z in turn, then chunks 7 and 8 on X and Y."""
    assert assign("round_robin", [[0, 1], [0, 0], [1, 0], [1, 1], [2, 0], [2, 1]], 3).tolist() == [1, 0, 2, 0, 1, 2]
    assert assign("round_robin", [[0, 2], [1, 3]], 3, before=6).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["round_robin", "curve"])
def test_shares_are_equal(name: str) -> None:
    assert np.ptp(np.bincount(assign(name, GRID, 8), minlength=8)) <= 1


def test_a_tile_is_three_chunks_wide_and_on_one_node() -> None:
    homes = assign("tiles", GRID, 50).reshape(12, 15)
    for row in range(0, 12, 3):
        for column in range(0, 15, 3):
            assert len(np.unique(homes[row : row + 3, column : column + 3])) == 1
    assert len(np.unique(homes)) > 10


def test_tiles_leave_out_dimensions_that_the_shape_spans() -> None:
    nights = np.array([(night, 4, 7) for night in range(30)])
    assert len(np.unique(assign("tiles", nights, 16, narrow=(1, 2)))) == 1
    assert len(np.unique(assign("tiles", nights, 16))) > 1


def test_a_curve_keeps_neighbours_together() -> None:
    grid = np.array([(i, j) for i in range(16) for j in range(16)])
    homes = assign("curve", grid, 4).reshape(16, 16)
    assert [len(np.unique(homes[i : i + 8, j : j + 8])) for i in (0, 8) for j in (0, 8)] == [1, 1, 1, 1]


def test_a_home_depends_on_the_chunk_alone() -> None:
    for name in ("hash", "tiles"):
        np.testing.assert_array_equal(assign(name, GRID, 7)[40:60], assign(name, GRID[40:60], 7))


def test_homes_follow_nodes_that_are_still_there() -> None:
    assert renumber_homes([], ["a"], []).tolist() == []
    assert renumber_homes([1, 0, 1], ["a", "b"], ["b"]).tolist() == [0, -1, 0]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tiles'"):
        assign("tile", GRID, 3)
    with pytest.raises(DataError, match="at least one node"):
        assign("hash", GRID, 0)
    with pytest.raises(DataError, match="rows of their numbers"):
        assign("hash", [1, 2, 3], 4)
    with pytest.raises(DataError, match="listed twice"):
        renumber_homes([0], ["a"], ["b", "b"])
    with pytest.raises(UnknownNameError, match="never there, got 4"):
        renumber_homes([0, 4], ["a", "b"], ["a"])
