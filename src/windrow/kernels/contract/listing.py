"""Windows written out cell by cell, for what has to look at each of them on its own. NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.geometry import geometry
from windrow.kernels.contract.sweeps import AnySweep

Int64Array = npt.NDArray[np.int64]
Listed = tuple[Int64Array, Int64Array, Int64Array]

AT_ONCE = 2**21
"""Cells that are listed at a time, which bounds the memory that wide windows take; never less than one window."""


def listed_windows(shape: Sequence[int], sweeps: Sequence[AnySweep], wanted: npt.NDArray[np.bool_]) -> Iterator[Listed]:
    """Some windows at a time: their numbers, all their cells, and where the cells of each begin and the last ends.

    Cells come in row-major order.
    """
    where = geometry(shape, sweeps)
    outputs = np.flatnonzero(wanted.reshape(-1))
    places = np.unravel_index(outputs, tuple(sweep.count for sweep in sweeps))
    low = [where.lo[axis, place] for axis, place in enumerate(places)]
    width = [
        np.maximum(where.hi[axis, place] - first + 1, 0)
        for axis, (place, first) in enumerate(zip(places, low, strict=True))
    ]
    sizes = np.prod(np.stack(width), axis=0, dtype=np.int64) if width else np.ones(len(outputs), np.int64)
    for begin, end in in_shares(sizes):
        part = slice(begin, end)
        starts = np.concatenate([[0], np.cumsum(sizes[part])])
        local = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes[part])
        cells = np.zeros(len(local), np.int64)
        for axis in reversed(range(len(shape))):
            along = np.repeat(width[axis][part], sizes[part])
            cells += (np.repeat(low[axis][part], sizes[part]) + local % along) * where.stride[axis]
            local //= along
        yield outputs[part], cells, starts


def in_shares(sizes: Int64Array, at_once: int = AT_ONCE) -> Iterator[tuple[int, int]]:
    """Ranges of about as much work as memory should hold; never less than one."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + at_once, "right")))
        yield begin, end
        begin = end
