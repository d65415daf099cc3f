"""Sums over the places of bands: added up place by place, or as differences of running totals.

Running totals of whole numbers are exact, so their differences are too, and a run of any length takes one subtraction.
Floats become whole numbers in two parts: one in units so fine that the sum of all values just fits into 62 bits, and
the rest in units as fine again. Where that cannot hold every value to a few units of 1e-14, or some are infinite,
values are added up one by one: up to 4,096 plain additions stay within 5e-13 of the sum of absolute values, and what
they come to is added with a correction of what rounding lost.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.sparse.places import Block

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

_ROOM = 62  # bits that a running total may take
_PLAIN = 4_096  # additions without a correction
_WORTH_TOTALS = 2.0  # runs and additions per value from which on running totals are faster
_ACCURACY = 2.0**-45  # of each value, relative to itself
_LARGEST_SCALE = 1_000  # powers of two beyond which scaling itself would overflow


class Totals(Protocol):
    """Sums of one column, a block at a time; at last as floats and in the column's own type."""

    def take(self, block: Block) -> None: ...

    def result(self) -> tuple[Array, Array]: ...


def totals_of(flat: Array, there: npt.NDArray[np.bool_], cells: int, work: float) -> Totals:
    """A way to sum values for so many cells, whose runs and pairs are so many together."""
    if flat.dtype.kind != "f":
        return _WholeTotals(flat, there, cells)
    kept = flat if there.all() else np.where(there, flat, 0.0)
    scale = _scales(kept) if work > _WORTH_TOTALS * len(flat) else None
    return _PlainTotals(kept, cells) if scale is None else _ScaledTotals(kept, scale, cells)


class _Scales(NamedTuple):
    """Powers of two that make a value a whole number, and what is left of it another."""

    coarse: int
    fine: int


def _scales(values: Array) -> _Scales | None:
    """How values become whole numbers whose totals are exact; None if they cannot."""
    total, smallest = _extent(values)
    if not math.isfinite(total):
        return None
    if total == 0.0:
        return _Scales(0, 0)
    coarse = _ROOM - math.frexp(total)[1] - 1
    fine = coarse + _ROOM - len(values).bit_length()
    lost = math.ldexp(0.5, -fine) if coarse > -_LARGEST_SCALE and fine < _LARGEST_SCALE else math.inf
    return _Scales(coarse, fine) if lost <= _ACCURACY * smallest else None


class _ScaledTotals:
    """Floats as whole numbers, by differences of running totals."""

    def __init__(self, values: Array, scales: _Scales, cells: int) -> None:
        self._scales = scales
        self._running = np.zeros((len(values) + 1, 2), np.int64)
        fine = _split_floats(values, math.ldexp(1.0, scales.coarse), math.ldexp(1.0, -scales.coarse),
                             math.ldexp(1.0, scales.fine), self._running)  # fmt: skip
        if not fine:
            self._running = np.ascontiguousarray(self._running[:, :1])
        self._sums = np.zeros((cells, self._running.shape[1]), np.int64)

    def take(self, block: Block) -> None:
        _subtract(self._running, block.starts, block.stops, block.skip, self._sums[block.begin : block.end])

    def result(self) -> tuple[Array, Array]:
        sums = np.ldexp(self._sums[:, 0].astype(np.float64), -self._scales.coarse)
        if self._sums.shape[1] > 1:
            sums += np.ldexp(self._sums[:, 1].astype(np.float64), -self._scales.fine)
        return sums, sums


class _WholeTotals:
    """Whole numbers, in halves of 32 bits where they might leave 64."""

    def __init__(self, flat: Array, there: npt.NDArray[np.bool_], cells: int) -> None:
        self._kind = flat.dtype
        kept = np.where(there, flat, flat.dtype.type(0))
        small = float(np.abs(kept.astype(np.float64)).sum()) < 2.0**_ROOM
        self._running = np.zeros((len(kept) + 1, 1 if small else 2), np.int64)
        if small:
            np.cumsum(kept.astype(np.int64), out=self._running[1:, 0])
        else:
            np.cumsum((kept >> flat.dtype.type(32)).astype(np.int64), out=self._running[1:, 0])
            np.cumsum((kept & flat.dtype.type(2**32 - 1)).astype(np.int64), out=self._running[1:, 1])
        self._sums = np.zeros((cells, self._running.shape[1]), np.int64)

    def take(self, block: Block) -> None:
        _subtract(self._running, block.starts, block.stops, block.skip, self._sums[block.begin : block.end])

    def result(self) -> tuple[Array, Array]:
        if self._sums.shape[1] == 1:
            sums = self._sums[:, 0]
            return sums.astype(np.float64), sums.astype(self._kind)
        high = self._sums[:, 0] + (self._sums[:, 1] >> 32)
        low = self._sums[:, 1] & 2**32 - 1
        least, most = (0, 2**32) if self._kind == np.uint64 else (-(2**31), 2**31)
        if len(high) and (high.min() < least or high.max() >= most):
            raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
        return high * 2.0**32 + low, ((high << 32) | low).view(self._kind)


class _PlainTotals:
    """Floats added one by one."""

    def __init__(self, values: Array, cells: int) -> None:
        self._values = values
        self._sums, self._lost = np.zeros(cells), np.zeros(cells)

    def take(self, block: Block) -> None:
        own = slice(block.begin, block.end)
        _add(self._values, block.starts, block.stops, block.skip, self._sums[own], self._lost[own])

    def result(self) -> tuple[Array, Array]:
        with np.errstate(invalid="ignore"):
            sums = np.where(np.isfinite(self._lost), self._sums + self._lost, self._sums)
        return sums, sums


@kernel
def _extent(values: Array) -> tuple[float, float]:
    """The sum of all sizes, and the smallest of those that are not 0."""
    total, smallest = 0.0, np.inf
    for value in values:
        size = abs(value)
        total += size
        if size > 0.0:
            smallest = min(smallest, size)
    return total, smallest


@kernel
def _split_floats(values: Array, coarse: float, back: float, fine: float, running: Array) -> bool:
    """Running totals of both parts of each value; whether any second part is not 0."""
    whole = rest = np.int64(0)
    used = False
    for place in range(len(values)):
        part = np.rint(values[place] * coarse)
        left = np.rint((values[place] - part * back) * fine)
        whole += np.int64(part)
        rest += np.int64(left)
        used |= left != 0.0
        running[place + 1, 0], running[place + 1, 1] = whole, rest
    return used


@kernel
def _subtract(running: Array, starts: Array, stops: Array, skip: Array, sums: Array) -> None:
    """What was added between the ends of each cell's runs, in one part or two."""
    parts = running.shape[1]
    for cell in range(len(sums)):
        one = two = np.int64(0)
        for run in range(len(starts)):
            start, stop = np.uint64(starts[run, cell]), np.uint64(stops[run, cell])
            one += running[stop, 0] - running[start, 0]
            if parts > 1:
                two += running[stop, 1] - running[start, 1]
        sums[cell, 0] = one
        if parts > 1:
            sums[cell, 1] = two
    for cell in range(len(skip)):
        for run in range(len(starts)):
            if np.int64(starts[run, cell]) <= skip[cell] < np.int64(stops[run, cell]):
                sums[cell] -= running[skip[cell] + 1] - running[skip[cell]]


@inner
def _added(values: Array, start: int, stop: int) -> float:
    """The plain sum of some values, in four parts at a time."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    place = start
    while place + np.uint64(4) <= stop:
        one += values[place]
        two += values[place + np.uint64(1)]
        three += values[place + np.uint64(2)]
        four += values[place + np.uint64(3)]
        place += np.uint64(4)
    while place < stop:
        one += values[place]
        place += np.uint64(1)
    return (one + two) + (three + four)


@inner
def _fold(values: Array, start: int, stop: int, total: float, lost: float) -> tuple[float, float]:
    """Add some values to a sum that has a correction."""
    while start < stop:
        until = min(stop, start + np.uint64(_PLAIN))
        value = _added(values, start, until)
        added = total + value
        if abs(total) >= abs(value):
            lost += (total - added) + value
        else:
            lost += (value - added) + total
        total, start = added, until
    return total, lost


@kernel
def _add(values: Array, starts: Array, stops: Array, skip: Array, sums: Array, lost: Array) -> None:
    for cell in range(len(sums)):
        left_out = skip[cell] if len(skip) > 0 else np.int64(-1)
        total = correction = 0.0
        for run in range(len(starts)):
            start, stop = np.uint64(starts[run, cell]), np.uint64(stops[run, cell])
            if np.int64(start) <= left_out < np.int64(stop):
                total, correction = _fold(values, start, np.uint64(left_out), total, correction)
                start = np.uint64(left_out + 1)
            total, correction = _fold(values, start, stop, total, correction)
        sums[cell], lost[cell] = total, correction
