"""Counted values that only ever grow: order statistics, modes and distinct counts of everything up to a row.

Values are numbered in their order; counts may begin with those of rows that are not here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]


@inner
def _add(tree: Int64Array, code: int) -> None:
    place = code + 1
    while place < len(tree):
        tree[place] += 1
        place += place & -place


@inner
def _select(tree: Int64Array, top: int, rank: int) -> int:
    """The value of a rank counted from 0: binary descent through the partial counts of the tree."""
    place, step, left = 0, top, rank
    while step > 0:
        further = place + step
        if further < len(tree) and tree[further] <= left:
            place = further
            left -= tree[further]
        step >>= 1
    return place


@kernel
def growing_ranks(
    codes: Int64Array, counts: Int64Array, order: Int64Array, stop: Int64Array, ranks: Int64Array, out: Int64Array
) -> None:
    """For each frame, which ends before row ``stop``, the values of two ranks; ``order`` has the frames by their ends.

    Codes below 0 are passed over, and so are frames whose ranks are below 0.
    """
    tree = np.zeros(len(counts) + 1, np.int64)
    for place in range(1, len(tree)):  # a Fenwick tree, filled in one pass
        tree[place] += counts[place - 1]
        above = place + (place & -place)
        if above < len(tree):
            tree[above] += tree[place]
    top = 1
    while top * 2 < len(tree):
        top *= 2
    row = 0
    for k in order:
        while row < stop[k]:
            if codes[row] >= 0:
                _add(tree, codes[row])
            row += 1
        if ranks[0, k] >= 0:
            out[0, k] = _select(tree, top, ranks[0, k])
            out[1, k] = out[0, k] if ranks[1, k] == ranks[0, k] else _select(tree, top, ranks[1, k])


@kernel
def growing_counts(codes: Int64Array, counts: Int64Array, order: Int64Array, stop: Int64Array, out: Int64Array) -> None:
    """For each frame the most frequent value (the smallest of several, -1 for none), and how many there are."""
    held = counts.copy()
    best, distinct = -1, 0
    for code in range(len(held)):
        if held[code] > 0:
            distinct += 1
            if best < 0 or held[code] > held[best]:
                best = code
    row = 0
    for k in order:
        while row < stop[k]:
            code = codes[row]
            if code >= 0:
                held[code] += 1
                if held[code] == 1:
                    distinct += 1
                if best < 0 or held[code] > held[best] or (held[code] == held[best] and code < best):
                    best = code
            row += 1
        out[0, k] = best
        out[1, k] = distinct
