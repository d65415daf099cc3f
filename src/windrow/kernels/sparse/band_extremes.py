"""Minima and maxima over the places of bands."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.sparse.places import Block

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

_SIGN = np.int64(-(2**63))
_LOWEST = np.int64(-(2**63))


class Extremes:
    """The largest or smallest value that cells meet, a block at a time.

    Values of all types become whole numbers in the same order, for minima in the opposite order, and missing ones the
    lowest of all: one loop without conditions then finds every extreme.
    """

    def __init__(self, operation: str, flat: Array, there: npt.NDArray[np.bool_], cells: int) -> None:
        self._kind, self._smallest = flat.dtype, operation == "min"
        self._ranks = _ranks(flat, there, self._smallest)
        self._best = np.full(cells, _LOWEST)

    def take(self, block: Block) -> None:
        _largest(self._ranks, block.starts, block.stops, block.skip, self._best[block.begin : block.end])

    def result(self) -> Array:
        return _values(~self._best if self._smallest else self._best, self._kind)


def _ranks(flat: Array, there: npt.NDArray[np.bool_], reversed_order: bool) -> Int64Array:
    """Whole numbers in the order of the values, of which none is NaN and no 0 negative, or in the opposite order."""
    # The bits of negative floats rise where the numbers fall, and unsigned numbers begin in the middle of signed ones.
    turned = ~_SIGN if flat.dtype.kind == "f" else np.int64(0)
    moved = _SIGN if flat.dtype == np.uint64 else np.int64(0)
    return _ranked(flat.view(np.int64), there, turned, moved ^ np.int64(-1 if reversed_order else 0))


def _values(ranks: Int64Array, kind: np.dtype[Any]) -> Array:
    if kind.kind == "f":
        return (ranks ^ (ranks >> 63 & ~_SIGN)).view(kind)
    return (ranks ^ _SIGN).view(kind) if kind == np.uint64 else ranks


@kernel
def _ranked(bits: Array, there: Array, turned: int, moved: int) -> Array:
    ranks = np.empty(len(bits), np.int64)
    for place in range(len(bits)):
        rank = bits[place] ^ (bits[place] >> 63 & turned) ^ moved
        ranks[place] = rank if there[place] else _LOWEST
    return ranks


@inner
def _larger(ranks: Array, start: int, stop: int, best: int) -> int:
    for place in range(start, stop):
        best = max(best, ranks[place])
    return best


@kernel
def _largest(ranks: Array, starts: Array, stops: Array, skip: Array, found: Array) -> None:
    for cell in range(len(found)):
        left_out = skip[cell] if len(skip) > 0 else np.int64(-1)
        best = found[cell]
        for run in range(len(starts)):
            start, stop = np.uint64(starts[run, cell]), np.uint64(stops[run, cell])
            if np.int64(start) <= left_out < np.int64(stop):
                best = _larger(ranks, start, np.uint64(left_out), best)
                start = np.uint64(left_out + 1)
            best = _larger(ranks, start, stop, best)
        found[cell] = best
