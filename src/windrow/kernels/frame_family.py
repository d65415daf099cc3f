"""Frames of one length, in whatever order: all of them are among the windows that slide over the rows.

So the windows are computed, one after the other, and each frame takes the result of the window that it is. Frames cut
off at the first or the last row are windows cut off there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.frame_spans import Spans
from windrow.kernels.jit import kernel

Array = npt.NDArray[Any]

WORTH = 2
"""Windows that may be computed for each frame."""


class Family:
    """Windows that slide, and which of them each frame is."""

    def __init__(self, windows: Spans, member: npt.NDArray[np.int32], lowest: int) -> None:
        self.windows, self.member, self.lowest = windows, member, lowest

    def results(self, found: Array) -> Array:
        """The frames' results from those of the windows."""
        return _taken(found, self.member, self.lowest)


def family_of(spans: Spans) -> Family | None:
    """The windows of frames that are all of one length, and not as they come already."""
    length = spans.most
    if not spans.whole or length == 0 or spans.rows >= 2**31:
        return None
    member = np.empty(spans.count, np.int32)
    lowest, highest, slides = _members(spans.begin[0], spans.end[0], length, spans.rows, member)
    if slides or highest - lowest >= WORTH * spans.count:
        return None
    begin, end = _windows(lowest, highest + 1, length, spans.rows)
    return Family(Spans(begin[None], end[None], spans.rows), member, lowest)


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
def _windows(lowest: int, stop: int, length: int, rows: int) -> tuple[Array, Array]:
    """Where the windows that start from ``lowest`` to before ``stop`` begin and end."""
    begin, end = np.empty(stop - lowest, np.int64), np.empty(stop - lowest, np.int64)
    for start in range(lowest, stop):
        begin[start - lowest] = min(max(start, 0), rows)
        end[start - lowest] = min(max(start + length, 0), rows)
    return begin, end


@kernel
def _taken(found: Array, member: Array, lowest: int) -> Array:
    out = np.empty(len(member), found.dtype)
    for k in range(len(member)):
        out[k] = found[np.uint64(member[k] - lowest)]
    return out
