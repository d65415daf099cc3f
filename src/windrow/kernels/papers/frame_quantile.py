"""Quantiles of frames as in paper 003 §5: QuickSelect on indexes, ``naive``, with ``reuse`` and with ``replace``.

Algorithm 5 returns where the pivot came to stand. Of the two neighbours of a continuous quantile one is selected, such
that the other is to be found among fewer values: the largest before it, or the smallest behind it (§5.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.contract.outcomes import Outcome, RankArrays, rank_arrays
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.spans import Spans
from windrow.kernels.order.direct import between

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
    old_lower, old_upper, old_weight = np.int64(-1), np.int64(-1), 0.0
    for k in range(begin.shape[1]):
        size = np.int64(0)
        for r in range(len(begin)):
            size += end[r, k] - begin[r, k]
        same = False
        at = k if ranks.each else size
        lower, upper, weight = np.int64(ranks.lower[at]), np.int64(ranks.upper[at]), ranks.weight[at]
        rank = select_one(lower, upper, size)
        if way == REPLACE and k > 0 and _slides(begin, end, k, held, size):
            stays = lower == old_lower and upper == old_upper and weight == old_weight
            same = _replace(values, index, begin[0, k], end[0, k], rank, lower, upper) and stays
        elif way != NAIVE and k > 0:
            _reuse(begin, end, k, index, held)
        else:
            _list(begin, end, k, index)
        held = size
        old_lower, old_upper, old_weight = lower, upper, weight
        if size == 0:
            continue
        if same:
            reals[k], exact[k] = reals[k - 1], exact[k - 1]
            continue
        _quick_select(rank, values, index, size, way != NAIVE and k > 0)
        exact[k] = values[index[rank]]
        reals[k] = exact[k]
        if upper > lower:
            other = _neighbour(values, index, size, rank, lower)
            low, high = min(exact[k], other), max(exact[k], other)
            exact[k] = low
            reals[k] = between(np.float64(low), np.float64(high), weight)


@inner
def select_one(lower: int, upper: int, size: int) -> int:
    """Which of two neighbouring ranks is selected: the one behind or before which fewer values stand."""
    return lower if size - lower <= upper else upper


@inner
def _neighbour(values: Array, index: Array, size: int, rank: int, lower: int) -> Any:
    """The other neighbour: the smallest behind the selected one if that is the lower, else the largest before it."""
    if rank == lower:
        other = values[index[rank + 1]]
        for place in range(rank + 2, size):
            other = min(other, values[index[place]])
        return other
    other = values[index[0]]
    for place in range(1, rank):
        other = max(other, values[index[place]])
    return other


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
def _replace(values: Array, index: Array, low: int, high: int, rank: int, lower: int, upper: int) -> bool:
    """Algorithm 10: put the new row where the old one was; whether the result stays what it was.

    That is so if the new value lies on the same side of the selected one as the old value; for continuous quantiles
    only on the side that does not hold the other neighbour.
    """
    hole = np.int64(0)
    while low <= index[hole] < high:
        hole += 1
    index[hole] = high - 1
    new = values[high - 1]
    if hole < rank and lower == rank:
        return new <= values[index[rank]]
    if hole > rank and upper == rank:
        return new >= values[index[rank]]
    return False


@inner
def _quick_select(rank: int, values: Array, index: Array, size: int, parted: bool) -> None:
    """Algorithm 6, with the median of three as pivot and both sides moving, so that equal values do no harm.

    ``parted`` indexes are in the order in which the frame before left them, so the best first pivot is the value at
    ``rank``: after it, the result is close to an end of what is left. Further pivots are taken at random places,
    because such an order is far from random.
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
