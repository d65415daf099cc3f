"""One look at many frames, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.jit import kernel

Array = npt.NDArray[Any]


@kernel
def survey_one(begin: Array, end: Array) -> Any:
    """``frame_spans.Survey`` of frames of one range each; the common case, which uses vectors."""
    first, last = begin[0], end[0]
    fewest = most = end[0] - begin[0]
    moves = shifted = np.int64(0)
    for k in range(1, len(begin)):
        size = end[k] - begin[k]
        moved = abs(begin[k] - begin[k - 1]) + abs(end[k] - end[k - 1])
        moves += min(moved, size + end[k - 1] - begin[k - 1])
        shifted += moved
        first, last = min(first, begin[k]), max(last, end[k])
        fewest, most = min(fewest, size), max(most, size)
    return first, last, fewest, most, moves, shifted


@kernel
def survey_several(begin: Array, end: Array) -> Any:
    """``frame_spans.Survey`` of frames of several ranges."""
    first, last = begin.min(), end.max()
    most, fewest = np.int64(0), np.int64(2**62)
    moves = shifted = np.int64(0)
    for k in range(begin.shape[1]):
        size = np.int64(0)
        for r in range(len(begin)):
            size += end[r, k] - begin[r, k]
            if k > 0:
                moved = abs(begin[r, k] - begin[r, k - 1]) + abs(end[r, k] - end[r, k - 1])
                anew = end[r, k] - begin[r, k] + end[r, k - 1] - begin[r, k - 1]
                moves += min(moved, anew)
                shifted += moved
        fewest, most = min(fewest, size), max(most, size)
    return first, last, fewest, most, moves, shifted
