"""Sums and variances of frames from whatever folds values: whole numbers that leave 64 bits are an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome, centre
from windrow.kernels.frames.spans import Spans

Array = npt.NDArray[Any]
Sum = Callable[[Array], Array]

HALF = 32


def sum_frames(values: Array, spans: Spans, sum_of: Sum) -> Outcome:
    """``sum_of`` gives the sum of any values over the frames, modulo 2**64 if they are whole."""
    sums = sum_of(values)
    if values.dtype.kind != "f" and may_overflow(values, spans):
        _check(values, spans, sum_of)
    return Outcome(sums.astype(np.float64, copy=False), sums, spans.sizes)


def may_overflow(values: Array, spans: Spans) -> bool:
    """Whether a sum could leave int64, judged by the largest value and the largest frame."""
    if not len(values):
        return False
    return max(abs(int(values.min())), abs(int(values.max()))) * spans.most >= 2**63


def _check(values: Array, spans: Spans, sum_of: Sum) -> None:
    """Sum the upper and the lower halves of the numbers apart: those sums cannot overflow."""
    high = (values >> HALF).astype(np.int64)
    low = (values & values.dtype.type(2**HALF - 1)).astype(np.int64)
    upper = sum_of(high) + (sum_of(low) >> HALF)
    outside = (upper < -(2 ** (63 - HALF))) | (upper >= 2 ** (63 - HALF))
    if (outside & (spans.sizes > 0)).any():
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")


def squares(values: Array, spans: Spans, sum_of: Sum) -> Outcome:
    """Σ(x-c)² - (Σ(x-c))²/n for one c near all values."""
    floats = values.astype(np.float64)
    floats = floats - centre(floats, np.ones(len(floats), bool))
    with np.errstate(invalid="ignore", over="ignore"):
        sums = sum_of(floats)
        deviations = sum_of(floats**2) - sums**2 / np.maximum(spans.sizes, 1)
    return Outcome(np.where(deviations < 0, 0.0, deviations), NO_VALUES, spans.sizes)
