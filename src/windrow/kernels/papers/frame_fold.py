"""Sums, minima and maxima of frames as in paper 003 §6.2: ``naive``, ``incremental`` and ``segment_tree``.

None of them subtracts: a running sum from which values are taken again drifts, and never recovers from an infinity. So
``incremental`` keeps two stacks, and a frame that moves backwards begins anew. What rounding takes from long sums of
floats is summed apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.compiler.rounding import corrected
from windrow.kernels.frames.spans import Spans

Array = npt.NDArray[Any]

SUM, MIN, MAX = 0, 1, 2
FOLDS = {"sum": SUM, "min": MIN, "max": MAX}


def fold(operation: str, values: Array, spans: Spans, method: str) -> Array:
    """One value for each frame; what stands for an empty one means nothing, and sums of whole numbers may wrap."""
    out = np.zeros(spans.count, values.dtype)
    run = {"naive": _naive, "incremental": _two_stacks, "segment_tree": _by_tree}[method]
    run(FOLDS[operation], values, spans.begin, spans.end, out)
    return out


@inner
def join(operation: int, one: Any, other: Any) -> Any:
    if operation == SUM:
        return one + other
    if operation == MIN:
        return min(one, other)
    return max(one, other)


@inner
def rounding_loss(operation: int, one: Any, other: Any) -> float:
    """What rounding takes from the sum of two floats."""
    if operation != SUM:
        return 0.0
    large, small = np.float64(one), np.float64(other)
    if abs(large) < abs(small):
        large, small = small, large
    return (large - (large + small)) + small


@kernel
def _naive(operation: int, values: Array, begin: Array, end: Array, out: Array) -> None:
    for k in range(begin.shape[1]):
        known, lost = False, 0.0
        for r in range(len(begin)):
            for row in range(begin[r, k], end[r, k]):
                if known:
                    lost += rounding_loss(operation, out[k], values[row])
                    out[k] = join(operation, out[k], values[row])
                else:
                    out[k], known = values[row], True
        out[k] = corrected(out[k], lost)


@kernel
def _two_stacks(operation: int, values: Array, begin: Array, end: Array, out: Array) -> None:
    """Each range slides on its own, and its frames are folded in order."""
    known = np.zeros(len(out), np.bool_)
    lost = np.zeros(len(out))
    folds = np.zeros(len(values), values.dtype)
    short = np.zeros(len(values))
    for r in range(len(begin)):
        _slide(operation, values, begin[r], end[r], folds, short, out, lost, known)
    for k in range(len(out)):
        out[k] = corrected(out[k], lost[k])


@inner
def _slide(
    operation: int, values: Array, begin: Array, end: Array, folds: Array, short: Array, out: Array, lost: Array,
    known: Array,
) -> None:  # fmt: skip
    """Rows before ``split`` are folded from the back, so that the first can go; those behind it from the front."""
    low = split = high = np.int64(0)
    back, back_short = values.dtype.type(0), 0.0
    for k in range(len(begin)):
        first, last = begin[k], end[k]
        if first < low or last < high or first >= high:
            low = split = high = first  # backwards, or to other rows: begin anew
        while high < last:
            if high > split:
                back_short += rounding_loss(operation, back, values[high])
                back = join(operation, back, values[high])
            else:
                back, back_short = values[high], 0.0
            high += 1
        if first >= split and first > low:
            _refold(operation, values, first, last, folds, short)
            split = last
        low = first
        if low < split:
            _take(operation, folds[low], short[low], k, out, lost, known)
        if high > split:
            _take(operation, back, back_short, k, out, lost, known)


@inner
def _take(operation: int, value: Any, short: float, k: int, out: Array, lost: Array, known: Array) -> None:
    if known[k]:
        lost[k] += rounding_loss(operation, out[k], value) + short
        out[k] = join(operation, out[k], value)
    else:
        out[k], lost[k], known[k] = value, short, True


@inner
def _refold(operation: int, values: Array, first: int, last: int, folds: Array, short: Array) -> None:
    for row in range(last - 1, first - 1, -1):
        if row < last - 1:
            short[row] = short[row + 1] + rounding_loss(operation, folds[row + 1], values[row])
            folds[row] = join(operation, values[row], folds[row + 1])
        else:
            folds[row], short[row] = values[row], 0.0


@kernel
def _by_tree(operation: int, values: Array, begin: Array, end: Array, out: Array) -> None:
    """A binary tree over all rows, of which a frame takes at most two nodes a level."""
    leaves = np.int64(1)
    while leaves < len(values):
        leaves *= 2
    tree = np.zeros(2 * leaves, values.dtype)
    rows = np.zeros(2 * leaves, np.int64)
    for row in range(len(values)):
        tree[leaves + row], rows[leaves + row] = values[row], 1
    for node in range(leaves - 1, 0, -1):
        left, right = 2 * node, 2 * node + 1
        rows[node] = rows[left] + rows[right]
        tree[node] = join(operation, tree[left], tree[right]) if rows[right] > 0 else tree[left]
    for k in range(begin.shape[1]):
        known = False
        for r in range(len(begin)):
            left, right = begin[r, k] + leaves, end[r, k] + leaves
            while left < right:
                if left & 1:
                    out[k] = join(operation, out[k], tree[left]) if known else tree[left]
                    known = True
                    left += 1
                if right & 1:
                    right -= 1
                    out[k] = join(operation, out[k], tree[right]) if known else tree[right]
                    known = True
                left, right = left >> 1, right >> 1
