"""A heap of (value, unit) whose top is dropped only once its unit has left the window (000 §3.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.jit import inner

Array = npt.NDArray[Any]


class Heap(NamedTuple):
    """``length[0]`` entries; the smallest value is on top."""

    value: Array
    unit: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]


def empty_heap(capacity: int, dtype: Any) -> Heap:
    return Heap(np.zeros(capacity, dtype), np.zeros(capacity, np.int64), np.zeros(1, np.int64))


@inner
def push(heap: Heap, value: Any, unit: int, largest: bool) -> None:
    """Enter a unit's value; ``largest`` turns the order round."""
    place = heap.length[0]
    heap.length[0] = place + 1
    while place > 0:
        parent = (place - 1) // 2
        if not _before(value, heap.value[parent], largest):
            break
        heap.value[place] = heap.value[parent]
        heap.unit[place] = heap.unit[parent]
        place = parent
    heap.value[place] = value
    heap.unit[place] = unit


@inner
def drop_before(heap: Heap, unit: int, largest: bool) -> None:
    """Drop the top while its unit lies before ``unit``."""
    while heap.length[0] > 0 and heap.unit[0] < unit:
        heap.length[0] -= 1
        _sift(heap, heap.value[heap.length[0]], heap.unit[heap.length[0]], largest)


@inner
def _sift(heap: Heap, value: Any, unit: int, largest: bool) -> None:
    place = 0
    length = heap.length[0]
    while True:
        child = 2 * place + 1
        if child >= length:
            break
        if child + 1 < length and _before(heap.value[child + 1], heap.value[child], largest):
            child += 1
        if not _before(heap.value[child], value, largest):
            break
        heap.value[place] = heap.value[child]
        heap.unit[place] = heap.unit[child]
        place = child
    heap.value[place] = value
    heap.unit[place] = unit


@inner
def _before(one: Any, other: Any, largest: bool) -> bool:
    return bool(one > other) if largest else bool(one < other)
