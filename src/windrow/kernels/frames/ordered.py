"""Order statistics of short frames that slide: a frame's values are kept in order, so that any rank is at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inlined, kernel
from windrow.kernels.contract.outcomes import RankArrays, rank_arrays
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.spans import Spans
from windrow.kernels.frames.survey import bounds_at
from windrow.kernels.order.direct import between

Array = npt.NDArray[Any]

LONGEST = 64
"""Rows of a frame whose values are moved about; of longer ones a set of bits is faster."""


def ordered_select(keys: Array, spans: Spans, ranks: RankTable) -> Array:
    """The order statistic of every frame, as a float64 if ``ranks`` interpolates, else as a key."""
    out = np.zeros(spans.count, np.float64 if ranks.interpolates else keys.dtype)
    held = np.empty(2 * spans.most + 2, keys.dtype)  # rows may come before others go
    _slide(keys, *spans.one_range(), held, rank_arrays(ranks), ranks.interpolates, out)
    return out


@kernel
def _slide(
    keys: Array, begin: Array, end: Array, start: int, stop: int, held: Array, tables: RankArrays, interpolates: bool,
    out: Array,
) -> None:  # fmt: skip
    """Frames as they come; those that share no row with the one before are filled anew."""
    first = last = np.int64(0)
    for k in range(len(out)):
        lo, hi = bounds_at(begin, end, start, stop, len(keys), k)
        if lo >= last or hi <= first or lo < first or hi < last:
            first = last = lo
        if last < hi and first < lo:
            _replace(held, last - first, keys[np.uint64(first)], keys[np.uint64(last)])
            first += 1
            last += 1
        while last < hi:
            _replace(held, last - first + 1, _make_room(held, last - first), keys[np.uint64(last)])
            last += 1
        while first < lo:
            _drop(held, last - first, keys[np.uint64(first)])
            first += 1
        if lo < hi:
            at = k if tables.each else hi - lo
            value = held[np.uint64(tables.lower[np.uint64(at)])]
            if interpolates:
                other = held[np.uint64(tables.upper[np.uint64(at)])]
                out[k] = between(np.float64(value), np.float64(other), tables.weight[np.uint64(at)])
            else:
                out[k] = value


@inlined
def _make_room(held: Array, count: int) -> Any:
    """Put a value behind all others, which is then replaced; the value."""
    held[np.uint64(count)] = np.inf
    return np.inf


@inlined
def _replace(held: Array, count: int, old: float, new: float) -> None:
    """Take out one value that is there and put in another: those between the two move by one place."""
    place = np.int64(0)
    for k in range(count):  # how many are smaller; there is no branch to guess wrong
        place += held[np.uint64(k)] < old
    while place + 1 < count and held[np.uint64(place + 1)] < new:
        held[np.uint64(place)] = held[np.uint64(place + 1)]
        place += 1
    while place > 0 and held[np.uint64(place - 1)] > new:
        held[np.uint64(place)] = held[np.uint64(place - 1)]
        place -= 1
    held[np.uint64(place)] = new


@inlined
def _drop(held: Array, count: int, old: float) -> None:
    place = np.int64(0)
    for k in range(count):
        place += held[np.uint64(k)] < old
    for k in range(place, count - 1):
        held[np.uint64(k)] = held[np.uint64(k + 1)]
