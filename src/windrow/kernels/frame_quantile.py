"""Quantiles of frames as in paper 003 §5: QuickSelect on indexes, ``naive``, with ``reuse`` and with ``replace``.

Algorithm 5 returns where the pivot came to stand. A continuous quantile takes the smallest value behind the selected
one as its other neighbour (§5.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.direct import between
from windrow.kernels.frame_spans import Spans
from windrow.kernels.jit import inner, kernel
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import Outcome, RankArrays, rank_arrays

Array = npt.NDArray[Any]

NAIVE, REUSE, REPLACE = 0, 1, 2
WAYS = {"naive": NAIVE, "reuse": REUSE, "replace": REPLACE}


def quantile_frames(values: Array, spans: Spans, ranks: RankTable, way: str) -> Outcome:
    """The order statistic of every frame by one of the paper's ways."""
    reals, exact = np.zeros(spans.count), np.zeros(spans.count, values.dtype)
    index = np.zeros(spans.most + 1, np.int64)
    _select_frames(values, spans.begin, spans.end, rank_arrays(ranks), WAYS[way], index, reals, exact)
    return Outcome(reals, exact, spans.sizes)


@kernel
def _select_frames(
    values: Array, begin: Array, end: Array, ranks: RankArrays, way: int, index: Array, reals: Array, exact: Array
) -> None:
    held = np.int64(0)  # indexes in ``index``
    for k in range(begin.shape[1]):
        size = np.int64(0)
        for r in range(len(begin)):
            size += end[r, k] - begin[r, k]
        same = False
        if way == REPLACE and k > 0 and _slides(begin, end, k, held, size):
            same = _replace(values, index, size, begin[0, k], end[0, k], ranks.lower[size], ranks.upper[size])
        elif way != NAIVE and k > 0:
            _reuse(begin, end, k, index, held)
        else:
            _list(begin, end, k, index)
        held = size
        if size == 0:
            continue
        if same:
            reals[k], exact[k] = reals[k - 1], exact[k - 1]
            continue
        rank = np.int64(ranks.lower[size])
        _quick_select(rank, values, index, size, way != NAIVE and k > 0)
        exact[k] = values[index[rank]]
        reals[k] = exact[k]
        if ranks.upper[size] > rank:
            other = values[index[rank + 1]]
            for place in range(rank + 2, size):
                other = min(other, values[index[place]])
            reals[k] = between(reals[k], np.float64(other), ranks.weight[size])


@inner
def _list(begin: Array, end: Array, k: int, index: Array) -> None:
    count = 0
    for r in range(len(begin)):
        for row in range(begin[r, k], end[r, k]):
            index[count] = row
            count += 1


@inner
def _reuse(begin: Array, end: Array, k: int, index: Array, held: int) -> None:
    """Algorithm 9: keep the indexes that are still in the frame, in their order, and add the new ones."""
    count = np.int64(0)
    for place in range(held):
        row = index[place]
        inside = False
        for r in range(len(begin)):
            inside |= begin[r, k] <= row < end[r, k]
        index[count] = row
        count += inside
    if len(begin) == 1:
        # A frame that was empty may stand anywhere.
        before, after = min(begin[0, k - 1], end[0, k]), max(end[0, k - 1], begin[0, k])
        for row in range(begin[0, k], before):
            index[count] = row
            count += 1
        for row in range(max(after, before), end[0, k]):
            index[count] = row
            count += 1
        return
    for r in range(len(begin)):
        for row in range(begin[r, k], end[r, k]):
            old = False
            for q in range(len(begin)):
                old |= begin[q, k - 1] <= row < end[q, k - 1]
            if not old:
                index[count] = row
                count += 1


@inner
def _slides(begin: Array, end: Array, k: int, held: int, size: int) -> bool:
    """Whether the frame is the one before, moved by one row."""
    return len(begin) == 1 and held == size and size > 0 and begin[0, k] == begin[0, k - 1] + 1


@inner
def _replace(values: Array, index: Array, size: int, low: int, high: int, rank: int, upper: int) -> bool:
    """Algorithm 10: put the new row where the old one was; whether the result stays what it was.

    That holds if the row stays on its side of the selected one, and if that is the lower side for continuous quantiles.
    """
    hole = np.int64(0)
    while low <= index[hole] < high:
        hole += 1
    index[hole] = high - 1
    new = values[high - 1]
    if hole < rank:
        return new <= values[index[rank]]
    if hole > rank and upper == rank:
        return new >= values[index[rank]]
    return False


@inner
def _quick_select(rank: int, values: Array, index: Array, size: int, parted: bool) -> None:
    """Algorithm 6, with the median of three as pivot and both sides moving, so that equal values do no harm.

    Indexes that are ``parted`` by the frame before have, where the result was, the best guess at where it is; then
    it is close to an end of what is left. Their order is far from random, so places to look at have to be.
    """
    low, high = np.int64(0), size - 1
    guess, random = parted, np.uint64(rank)
    while low < high:
        if parted and rank in (low, high):
            _bring_extreme(values, index, low, high, rank)
            return
        if guess:
            pivot = values[index[rank]]
            guess = False
        elif parted:
            random = random * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            width = np.uint64(high - low + 1)
            first = low + np.int64((random >> np.uint64(48)) % width)
            second = low + np.int64((random >> np.uint64(32)) % width)
            pivot = _middle(values[index[first]], values[index[second]], values[index[(low + high) >> 1]])
        else:
            pivot = _middle(values[index[low]], values[index[(low + high) >> 1]], values[index[high]])
        left, right = low, high
        while left <= right:
            while values[index[left]] < pivot:
                left += 1
            while pivot < values[index[right]]:
                right -= 1
            if left <= right:
                index[left], index[right] = index[right], index[left]
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            return


@inner
def _bring_extreme(values: Array, index: Array, low: int, high: int, rank: int) -> None:
    """The smallest or the largest of the values to the end where ``rank`` is."""
    best = rank
    for place in range(low, high + 1):
        if rank == low:
            best = place if values[index[place]] < values[index[best]] else best
        else:
            best = place if values[index[place]] > values[index[best]] else best
    index[rank], index[best] = index[best], index[rank]


@inner
def _middle(a: Any, b: Any, c: Any) -> Any:
    return max(min(a, b), min(max(a, b), c))
