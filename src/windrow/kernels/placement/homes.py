"""Homes of array chunks: paper 004's Algorithm 3, and where a chunk was joined most."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.placement.batch import Lists, find

Array = npt.NDArray[Any]


@kernel
def follow_views(
    chunks: Array, views: Array, view_homes: Array, homes: Array, holders: Lists, weights: Array, quota: Array
) -> Array:
    """Algorithm 3: (chunk, view chunk) in descending order of score, and each chunk goes to its view chunk's home.

    Only where it is already, at home or replicated, and as long as the quota of that node lasts. -1: no node was found.
    """
    found = np.full(len(homes), -1, np.int32)
    for entry in range(len(chunks)):
        chunk = chunks[entry]
        if found[chunk] >= 0:
            continue
        node = view_homes[views[entry]]
        if (homes[chunk] == node or find(holders, chunk, node) >= 0) and quota[node] >= weights[chunk]:
            quota[node] -= weights[chunk]
            found[chunk] = node
    return found


@kernel
def follow_joins(homes: Array, holders: Lists, loyalty: float) -> Array:
    """The node that joined most bytes of each chunk; the home stays if no node has ``loyalty`` times as many.

    -1: the chunk has no home and is in no pair.
    """
    found = np.empty(len(homes), np.int32)
    for chunk in range(len(homes)):
        best, most = homes[chunk], 0.0
        begin = holders.first[chunk]
        if best >= 0:
            place = find(holders, chunk, best)
            most = loyalty * holders.amounts[place] if place >= 0 else 0.0
        for place in range(begin, begin + holders.count[chunk]):
            amount, node = holders.amounts[place], holders.nodes[place]
            if best < 0 or amount > most or (amount == most and best != homes[chunk] and node < best):
                best, most = node, amount
        found[chunk] = best
    return found
