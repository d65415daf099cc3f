"""The SUM-list: sums of the window units that are in the window, and their total without any subtraction (000 §3.2).

The total is kept by two stacks. Units at the front have suffix totals, so that dropping the oldest costs nothing; units
at the back have one running total; when the front is used up, the back becomes the front.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel
from windrow.kernels.compiler.overflow import sum_overflows
from windrow.kernels.papers.slide import Results, Unit, slide, structure

Array = npt.NDArray[Any]

OLDEST, BACK, END, OVERFLOWED = 0, 1, 2, 3


class SumList(NamedTuple):
    """Unit sums in the order they came, suffix totals in place of them at the front.

    ``state`` is [oldest, back, end, whether a whole sum overflowed]; the last place of each column is the running total
    of the back.
    """

    real: npt.NDArray[np.float64]
    square: npt.NDArray[np.float64]
    whole: Array
    present: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    middle: float
    wants_squares: bool


def empty_list(units: int, dtype: Any, middle: float, wants_squares: bool) -> SumList:
    """Room for so many units; squares are those of distances from ``middle``."""
    real, square, whole, present = (np.zeros(units + 1, kind) for kind in (np.float64, np.float64, dtype, np.int64))
    return SumList(real, square, whole, present, np.zeros(4, np.int64), middle, wants_squares)


def _forget(totals: SumList, _oldest: Unit, _stride: int, _units: int) -> None:
    totals.state[OLDEST] = totals.state[BACK] = totals.state[END] = 0
    _empty_back(totals)


@bare
def _empty_back(totals: SumList) -> None:
    running = len(totals.real) - 1
    totals.real[running] = totals.square[running] = 0.0
    totals.whole[running] = 0
    totals.present[running] = 0


def _enter(totals: SumList, unit: Unit) -> None:
    """Scan one window unit and put its sums at the end of the list."""
    real = square = 0.0
    whole = totals.whole[0] * 0
    count = 0
    overflowed = False
    for offset in unit.offsets:
        at = unit.start + offset
        if unit.there[at]:
            value = float(unit.flat[at]) - totals.middle
            real += value
            square += value * value
            overflowed |= sum_overflows(whole, unit.flat[at])
            whole += unit.flat[at]
            count += 1
    end, running = totals.state[END], len(totals.real) - 1
    totals.state[END] += 1
    totals.real[end], totals.square[end], totals.whole[end], totals.present[end] = real, square, whole, count
    overflowed |= _add(totals, running, end)
    totals.state[OVERFLOWED] |= overflowed


@bare
def _add(totals: SumList, to: int, other: int) -> bool:
    """Add one place to another; whether a whole sum overflowed."""
    totals.real[to] += totals.real[other]
    totals.square[to] += totals.square[other]
    totals.present[to] += totals.present[other]
    overflowed = sum_overflows(totals.whole[to], totals.whole[other])
    totals.whole[to] += totals.whole[other]
    return overflowed


def _leave(totals: SumList, _unit: Unit) -> None:
    """Drop the oldest unit."""
    if totals.state[OLDEST] == totals.state[BACK]:
        for place in range(totals.state[END] - 2, totals.state[OLDEST] - 1, -1):
            totals.state[OVERFLOWED] |= _add(totals, place, place + 1)
        totals.state[BACK] = totals.state[END]
        _empty_back(totals)
    totals.state[OLDEST] += 1


def _answer(totals: SumList, results: Results, at: int) -> None:
    running = len(totals.real) - 1
    real, square = totals.real[running], totals.square[running]
    whole, count = totals.whole[running], totals.present[running]
    oldest = totals.state[OLDEST]
    if oldest < totals.state[BACK]:
        totals.state[OVERFLOWED] |= sum_overflows(totals.whole[oldest], whole)
        real += totals.real[oldest]
        square += totals.square[oldest]
        whole += totals.whole[oldest]
        count += totals.present[oldest]
    results.counts[at] = count
    if totals.wants_squares:
        deviations = square - real * real / max(count, 1)
        results.reals[at] = 0.0 if deviations < 0.0 else deviations  # NaN stays: of infinities there is no variance
    else:
        results.reals[at] = real
        results.exact[at] = whole


structure(SumList, enter=_enter, leave=_leave, answer=_answer, forget=_forget)
slide_sums = bare_kernel(slide, __name__)
