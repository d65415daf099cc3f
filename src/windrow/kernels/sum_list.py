"""The SUM-list: sums of the window units that are in the window, and their total without any subtraction (000 §3.2).

The total is kept by two stacks. Units at the front have suffix totals, so that dropping the oldest costs nothing; units
at the back have one running total; when the front is used up, the back becomes the front.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.jit import inner
from windrow.kernels.overflow import sum_overflows

Array = npt.NDArray[Any]


class SumList(NamedTuple):
    """Unit sums by unit number, suffix totals in place of them at the front; ``state`` is [oldest, back, end]."""

    real: npt.NDArray[np.float64]
    square: npt.NDArray[np.float64]
    whole: Array
    present: npt.NDArray[np.int64]
    back_real: npt.NDArray[np.float64]  # running totals of the back: [sum, sum of squares]
    back_whole: Array
    back_count: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]


def empty_list(units: int, dtype: Any) -> SumList:
    return SumList(
        np.zeros(units), np.zeros(units), np.zeros(units, dtype), np.zeros(units, np.int64),
        np.zeros(2), np.zeros(1, dtype), np.zeros(1, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip


@inner
def clear(totals: SumList, unit: int) -> None:
    """Empty the list; ``unit`` is the next to enter."""
    totals.state[:] = unit
    totals.back_real[:] = 0.0
    totals.back_whole[0] = 0
    totals.back_count[0] = 0


@inner
def push(totals: SumList, real: float, square: float, whole: Any, count: int) -> bool:
    """Add the sums of the next unit; True if a whole total overflowed."""
    unit = totals.state[2]
    totals.real[unit], totals.square[unit], totals.whole[unit], totals.present[unit] = real, square, whole, count
    totals.state[2] = unit + 1
    totals.back_real[0] += real
    totals.back_real[1] += square
    totals.back_count[0] += count
    overflowed = sum_overflows(totals.back_whole[0], whole)
    totals.back_whole[0] += whole
    return overflowed


@inner
def drop(totals: SumList) -> bool:
    """Forget the oldest unit; True if a whole total overflowed."""
    overflowed = False
    if totals.state[0] == totals.state[1]:
        for unit in range(totals.state[2] - 2, totals.state[0] - 1, -1):
            totals.real[unit] += totals.real[unit + 1]
            totals.square[unit] += totals.square[unit + 1]
            totals.present[unit] += totals.present[unit + 1]
            overflowed |= sum_overflows(totals.whole[unit], totals.whole[unit + 1])
            totals.whole[unit] += totals.whole[unit + 1]
        totals.state[1] = totals.state[2]
        totals.back_real[:] = 0.0
        totals.back_whole[0] = 0
        totals.back_count[0] = 0
    totals.state[0] += 1
    return overflowed


@inner
def total(totals: SumList) -> tuple[float, float, Any, int, bool]:
    """Sum, sum of squares, whole sum and count of all units, and whether the whole sum overflowed."""
    real, square = totals.back_real[0], totals.back_real[1]
    whole, count = totals.back_whole[0], totals.back_count[0]
    oldest = totals.state[0]
    if oldest >= totals.state[1]:
        return real, square, whole, count, False
    overflowed = sum_overflows(totals.whole[oldest], whole)
    joined = totals.whole[oldest] + whole
    return (
        totals.real[oldest] + real,
        totals.square[oldest] + square,
        joined,
        totals.present[oldest] + count,
        overflowed,
    )
