"""Aggregates of the few values that few cells meet among many, from the values as they are.

What is done to every value before it is looked at, to make sums exact and comparisons simple, takes longer than
looking at those that are met.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.kernels.sparse.places import Block

Array = npt.NDArray[Any]

_PLAIN = 4_096  # additions without a correction: these stay within 5e-13 of the sum of absolute values


class FewValues:
    """Number, sum, minimum and maximum of floats, all together; NaN is no value."""

    def __init__(self, values: Array, cells: int) -> None:
        self._values = np.ascontiguousarray(values).reshape(-1)
        self._counts = np.zeros(cells, np.int64)
        self._sums, self._lost = np.zeros(cells), np.zeros(cells)
        self._low, self._high = np.full(cells, np.inf), np.full(cells, -np.inf)

    def take(self, block: Block) -> None:
        own = slice(block.begin, block.end)
        results = (part[own] for part in (self._counts, self._sums, self._lost, self._low, self._high))
        _meet(self._values, block.starts, block.stops, block.skip, *results)

    def outcome(self, operation: str, every: npt.NDArray[np.int64]) -> Outcome:
        """One of them; what ``every`` says of how many cells were met, values or not, is not needed."""
        if operation == "count":
            return Outcome(NO_VALUES, NO_VALUES, self._counts)
        if operation != "sum":  # adding 0.0 makes -0.0 a 0.0
            return Outcome(NO_VALUES, (self._low if operation == "min" else self._high) + 0.0, self._counts)
        with np.errstate(invalid="ignore"):
            sums = np.where(np.isfinite(self._lost), self._sums + self._lost, self._sums)
        return Outcome(sums, sums, self._counts)


@inner
def _look(values: Array, start: int, stop: int, low: float, high: float) -> tuple[int, float, float, float]:
    """How many values there are, their plain sum, and the extremes of these and those before."""
    count, total = 0, 0.0
    for place in range(start, stop):
        value = np.float64(values[place])
        there = value == value
        count += there
        total += value if there else 0.0
        low = value if value < low else low
        high = value if value > high else high
    return count, total, low, high


@kernel
def _meet(
    values: Array, starts: Array, stops: Array, skip: Array, counts: Array, sums: Array, lost: Array, lows: Array,
    highs: Array,
) -> None:  # fmt: skip
    for cell in range(len(counts)):
        left_out = np.uint64(skip[cell]) if len(skip) > 0 and skip[cell] >= 0 else np.uint64(len(values))
        count, total, correction, low, high = 0, 0.0, 0.0, np.inf, -np.inf
        for run in range(len(starts)):
            start, stop = np.uint64(starts[run, cell]), np.uint64(stops[run, cell])
            while start < stop:
                until = min(stop, start + np.uint64(_PLAIN))
                if start <= left_out < until:  # up to it, then on behind it
                    until = left_out
                more, value, low, high = _look(values, start, until, low, high)
                count += more
                added = total + value
                if abs(total) >= abs(value):
                    correction += (total - added) + value
                else:
                    correction += (value - added) + total
                total = added
                start = until + np.uint64(until == left_out)
        counts[cell], sums[cell], lost[cell], lows[cell], highs[cell] = count, total, correction, low, high
