"""The order of cells by their coordinates, against the comparison of tuples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.sparse.order import coordinate_order, needed_order

COORDINATES = st.one_of(st.integers(-3, 3), st.sampled_from([-(2**63), -(2**62), 2**62, 2**63 - 1, 2**40]))


@given(st.integers(1, 5).flatmap(lambda ndim: st.lists(st.tuples(*[COORDINATES] * ndim), max_size=12)), st.booleans())
def test_cells_come_in_the_order_of_their_coordinates(cells: list[tuple[int, ...]], arranged: bool) -> None:
    cells = sorted(cells) if arranged else cells
    ndim = len(cells[0]) if cells else 2
    columns = [np.array([cell[axis] for cell in cells], np.int64) for axis in range(ndim)]
    wanted = sorted(range(len(cells)), key=cells.__getitem__)  # stable, as the order must be
    assert coordinate_order(columns).tolist() == wanted
    assert (needed_order(columns) is None) == (wanted == list(range(len(cells))))
