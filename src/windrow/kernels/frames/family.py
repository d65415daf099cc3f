"""Frames of one length, in whatever order: all of them are among the windows that slide over the rows.

So the windows are computed, one after the other, and each frame takes the result of the window that it is. Frames cut
off at the first or the last row are windows cut off there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.frames.spans import Spans, Starts, Windows

Array = npt.NDArray[Any]

WORTH = 2
"""Windows that may be computed for each frame."""


class Family:
    """Windows that slide, and where each frame would start if it were whole."""

    def __init__(self, windows: Spans, starts: Array, lowest: int) -> None:
        self.windows, self.starts, self.lowest = windows, starts, lowest

    def results(self, found: Array) -> Array:
        """The frames' results from those of the windows, or nothing from nothing."""
        if not len(found):
            return found
        out = np.empty(len(self.starts), found.dtype)
        _take_results(found, self.starts, self.lowest, out)
        return out


def family_of(spans: Spans) -> Family | None:
    """The windows that frames of one length are; None for other frames, and for frames that slide already."""
    if not spans.whole or spans.most == 0 or spans.rows >= 2**31:
        return None
    starts = spans.starts or _starts(spans)
    if starts is None:
        return None
    # What begins behind the last row is as empty as what ends before the first.
    lowest, highest = max(starts.first, -starts.length), min(starts.last, spans.rows)
    if highest - lowest >= WORTH * spans.count:
        return None
    windows = Windows(highest - lowest + 1, spans.rows, lowest, lowest + starts.length - 1)
    return Family(windows, starts.place, lowest)


def _starts(spans: Spans) -> Starts | None:
    """Where frames that are cut off already would start; None unless they are of one length, and do not slide."""
    member = np.empty(spans.count, np.int32)
    lowest, highest, slides = _members(spans.begin[0], spans.end[0], spans.most, spans.rows, member)
    return None if slides else Starts(member, int(lowest), int(highest), spans.most)


@kernel
def _members(begin: Array, end: Array, length: int, rows: int, member: Array) -> tuple[int, int, bool]:
    """Where each frame would start if it were whole; the least and greatest, and whether there is nothing to gain."""
    lowest, highest = rows, -length
    falls = False
    for k in range(len(begin)):
        first, last = begin[k], end[k]
        if first == last:
            start = rows  # an empty window behind all rows
        elif last - first == length or last == rows:
            start = first
        elif first == 0:
            start = last - length
        else:
            return 0, 0, True
        member[k] = start
        falls |= k > 0 and start < member[k - 1]
        lowest, highest = min(lowest, start), max(highest, start)
    return lowest, highest, not falls


@kernel
def _take_results(found: Array, starts: Array, lowest: int, out: Array) -> None:
    last = len(found) - 1
    for k in range(len(out)):
        out[k] = found[np.uint64(min(max(starts[k] - lowest, 0), last))]
