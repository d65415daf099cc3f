"""Windows over inputs so small that loading a compiler would take longer than the work: plain NumPy, nothing else.

All windows are laid out as the rows of one table, where a cell outside the input is missing like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

MOST_CELLS = 1 << 15
"""Of a table: more than that take longer than it takes to load compiled code, and much memory."""


def tiny_windows(
    operation: str, values: Array, present: Mask | None, sweeps: Sequence[AnySweep], ranks: RankTable | None = None
) -> Outcome:
    """As ``naive_windows``, without compiled code."""
    place, inside = _laid_out(values, sweeps)
    return reduce_table(operation, values, present, place, inside, tuple(sweep.count for sweep in sweeps), ranks)


def reduce_table(
    operation: str, values: Array, present: Mask | None, place: Array, inside: Mask, shape: tuple[int, ...],
    ranks: RankTable | None = None,
) -> Outcome:  # fmt: skip
    """An operation on rows of places in the input, where ``inside`` says which of them count."""
    cells, there = _taken(values, present, place, inside)
    counts = there.sum(1, dtype=np.int64)
    reals = exact = NO_VALUES
    if operation == "sum":
        reals = exact = _sums(cells, there)
    elif operation == "squares":
        reals = _squares(cells, there, counts)
    elif operation in ("min", "max"):
        exact = _extremes(operation, cells, there)
    elif operation == "select":
        assert ranks is not None
        reals, exact = _selected(_ordered(cells, there), counts, ranks)
    elif operation in ("distinct", "mode"):
        reals, exact = _frequencies(_ordered(cells, there), counts)
    if values.dtype.kind == "M":
        exact = exact.view(values.dtype)
    return Outcome(*(found.reshape(shape) if found.size == counts.size else found for found in (reals, exact, counts)))


def _laid_out(values: Array, sweeps: Sequence[AnySweep]) -> tuple[Array, Mask]:
    """A row per window: where its cells are, and which of them there are."""
    place = np.zeros((1, 1), np.int64)
    inside = np.ones((1, 1), bool)
    for extent, sweep in zip(values.shape, sweeps, strict=True):
        first, last = sweep.clipped(extent)
        offsets = np.arange(max(1, int((last - first + 1).max(initial=0))))
        index = first[:, None] + offsets
        place = _combined(place * extent, np.minimum(index, extent - 1), np.add)
        inside = _combined(inside, index <= last[:, None], np.logical_and)
    return place, inside


def _taken(values: Array, present: Mask | None, place: Array, inside: Mask) -> tuple[Array, Mask]:
    """The cells of a table, and which of them are present."""
    flat = np.ascontiguousarray(values).reshape(-1) if values.size else np.zeros(1, values.dtype)
    there = _there(flat)
    if present is not None and values.size:
        there = there & present.reshape(-1)
    cells, there = flat[place * inside], there[place * inside] & inside
    if cells.dtype.kind == "f":
        return cells + cells.dtype.type(0), there  # makes -0.0 a 0.0, or which of two zeros is found would be chance
    return cells.view(np.int64) if cells.dtype.kind == "M" else cells, there


def _combined(one: Array, other: Array, combine: np.ufunc) -> Array:
    """Rows of one with rows of the other, and so their columns."""
    both: Array = combine(one[:, None, :, None], other[None, :, None, :])
    return both.reshape(one.shape[0] * other.shape[0], one.shape[1] * other.shape[1])


def _there(flat: Array) -> Mask:
    if flat.dtype.kind == "f":
        return ~np.isnan(flat)
    return ~np.isnat(flat) if flat.dtype.kind == "M" else np.ones(flat.shape, bool)


def _limit(dtype: np.dtype[Any], sign: int) -> Any:
    """Nothing is larger, or smaller."""
    if dtype.kind == "f":
        return dtype.type(sign * math.inf)
    if dtype.kind == "b":
        return dtype.type(sign > 0)
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _sums(cells: Array, there: Mask) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        if cells.dtype.kind == "f":
            sums: Array = np.where(there, cells, 0).sum(1, dtype=np.float64)
            return sums
    # Python's integers do not overflow.
    whole = np.where(there, cells, cells.dtype.type(0)).astype(object).sum(1)
    if any(not -(2**63) <= total < 2**63 for total in whole):
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    return whole.astype(np.int64)


def _squares(cells: Array, there: Mask, counts: Array) -> Array:
    floats = np.where(there, cells, cells.dtype.type(0)).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = floats.sum(1) / np.maximum(counts, 1)
        squares: Array = (np.where(there, floats - mean[:, None], 0.0) ** 2).sum(1)
    return squares


def _extremes(operation: str, cells: Array, there: Mask) -> Array:
    sign = 1 if operation == "min" else -1
    known = np.where(there, cells, _limit(cells.dtype, sign)).astype(cells.dtype, copy=False)
    found: Array = known.min(1) if operation == "min" else known.max(1)
    return found


def _ordered(cells: Array, there: Mask) -> Array:
    """Each row by size; what is missing comes last, or is equal to what comes last."""
    return np.sort(np.where(there, cells, _limit(cells.dtype, 1)).astype(cells.dtype, copy=False), 1)


def _selected(ordered: Array, counts: Array, ranks: RankTable) -> tuple[Array, Array]:
    rows = np.arange(len(ordered))
    at = rows if ranks.each else counts
    low = ordered[rows, ranks.lower[at]]
    if not ranks.interpolates:
        return low, low
    return _between(low.astype(np.float64), ordered[rows, ranks.upper[at]].astype(np.float64), ranks.weight[at]), low


def _between(low: Array, high: Array, weight: Array) -> Array:
    """The point at ``weight`` of the way; infinite or overflowing distances give what they should, not NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = high - low
        moved = np.where(np.isfinite(distance), low + weight * distance, low * (1.0 - weight) + high * weight)
    return np.where((weight == 0.0) | (low == high), low, moved) + 0.0


def _frequencies(ordered: Array, counts: Array) -> tuple[Array, Array]:
    """How many different values each row has, and the most frequent one, the smallest of several."""
    column = np.arange(ordered.shape[1])
    fresh = np.ones(ordered.shape, bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    known = column < counts[:, None]
    begun = np.maximum.accumulate(np.where(fresh, column, 0), 1)
    longest = np.where(known, column - begun, -1).argmax(1)  # the first of equals: rows ascend
    return (fresh & known).sum(1).astype(np.float64), ordered[np.arange(len(ordered)), longest]
