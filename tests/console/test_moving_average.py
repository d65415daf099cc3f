"""The demo's moving average equals a plain loop, however the array is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from windrow.console.moving_average import MovingAverage, trailing_mean
from windrow.model.box import Box

rows = hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(-1e6, 1e6, width=32))


@given(rows, st.integers(1, 50))
def test_trailing_mean(values: Any, width: int) -> None:
    expected = [np.mean(values[max(0, i - width + 1) : i + 1].astype(np.float64)) for i in range(len(values))]
    np.testing.assert_allclose(trailing_mean(values, width), expected, rtol=1e-12, atol=1e-6 * 1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_agree_with_the_whole(local: Any, axis: int) -> None:
    values = np.random.default_rng(1).normal(280, 10, (7, 11)).astype(np.float32)
    array = local.create("A", "<a: float32> [i=-2:4:3, j=5:15:4]")
    array.write({"a": values})
    source = MovingAverage(array._snapshot(), "a", "ij"[axis], 5)
    expected = np.moveaxis(trailing_mean(np.moveaxis(values, axis, -1), 5), -1, axis)
    for box in (source.schema.box(), Box((-2, 5), (-2, 5)), Box((1, 9), (4, 13)), Box((4, 15), (4, 15))):
        np.testing.assert_array_equal(source.read(box)["avg"], expected[box.slices((-2, 5))])
