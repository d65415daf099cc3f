"""The least loaded of many nodes while loads grow: a binary heap that knows where each node stands."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from windrow.kernels.compiler.jit import rare

Array = npt.NDArray[Any]


@rare
def sink(heap: Array, places: Array, keys: Array, node: int) -> None:
    """Let a node whose key has grown sink to its place."""
    place, count = places[node], len(heap)
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[node]:
            break
        heap[place] = heap[child]
        places[heap[place]] = place
        place = child
    heap[place] = node
    places[node] = place


@rare
def build(heap: Array, places: Array, keys: Array) -> None:
    for node in range(len(heap)):
        heap[node], places[node] = node, node
    for place in range(len(heap) // 2 - 1, -1, -1):
        sink(heap, places, keys, heap[place])
