"""A heap of (value, unit) whose top is dropped only once its unit has left the window (000 §3.3).

Entries that never come to the top would stay for ever, as many as the array is long; so when most entries are of units
that have left, the others are heaped anew, which costs each step no more than a push.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel, rare
from windrow.kernels.compiler.leaves import limits
from windrow.kernels.papers.slide import Results, Unit, slide, structure

Array = npt.NDArray[Any]

LENGTH, LEFT, ENTERED, PRESENT = 0, 1, 2, 3
FEW = 64  # entries that are not worth sorting out


class Heap(NamedTuple):
    """The smallest value, or the ``largest``, of each unit that has any, the best of them on top.

    Units are numbered as they come; ``inside`` says how many present values each has, and ``state`` is [entries, units
    that have left, units that have entered, present values in the window].
    """

    value: Array
    unit: npt.NDArray[np.int64]
    inside: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    worst: Array  # one value: the worst there is, behind all others
    largest: bool


def empty_heap(units: int, dtype: Any, largest: bool) -> Heap:
    value, unit, inside = (np.zeros(units, kind) for kind in (dtype, np.int64, np.int64))
    worst = np.array([limits(dtype)[0 if largest else 1]], dtype)
    return Heap(value, unit, inside, np.zeros(4, np.int64), worst, largest)


def _forget(heap: Heap, _oldest: Unit, _stride: int, _units: int) -> None:
    heap.state[:] = 0


def _enter(heap: Heap, unit: Unit) -> None:
    """Scan one window unit and push the best of its values."""
    best = heap.worst[0]
    inside = 0
    # Which way round is decided outside of the loop, or every cell would compare twice.
    if heap.largest:
        for offset in unit.offsets:
            if unit.there[unit.start + offset]:
                value = unit.flat[unit.start + offset]
                best = value if value > best else best
                inside += 1
    else:
        for offset in unit.offsets:
            if unit.there[unit.start + offset]:
                value = unit.flat[unit.start + offset]
                best = value if value < best else best
                inside += 1
    number = heap.state[ENTERED]
    heap.inside[number] = inside
    heap.state[ENTERED] += 1
    heap.state[PRESENT] += inside
    if inside > 0:
        if heap.state[LENGTH] > max(FEW, 2 * (number - heap.state[LEFT] + 1)):
            _heap_anew(heap)
        _push(heap, best, number)


def _leave(heap: Heap, _unit: Unit) -> None:
    heap.state[PRESENT] -= heap.inside[heap.state[LEFT]]
    heap.state[LEFT] += 1


def _answer(heap: Heap, results: Results, at: int) -> None:
    while heap.state[LENGTH] > 0 and heap.unit[0] < heap.state[LEFT]:
        heap.state[LENGTH] -= 1
        _sift(heap, np.int64(0), heap.value[heap.state[LENGTH]], heap.unit[heap.state[LENGTH]])
    results.counts[at] = heap.state[PRESENT]
    if heap.state[PRESENT] > 0:
        results.exact[at] = heap.value[0]


@bare
def _push(heap: Heap, value: Any, unit: int) -> None:
    place = heap.state[LENGTH]
    heap.state[LENGTH] = place + 1
    while place > 0:
        parent = (place - 1) >> 1
        if not _before(value, heap.value[parent], heap.largest):
            break
        heap.value[place] = heap.value[parent]
        heap.unit[place] = heap.unit[parent]
        place = parent
    heap.value[place] = value
    heap.unit[place] = unit


@rare
def _heap_anew(heap: Heap) -> None:
    """Keep the entries of units that are in the window."""
    kept = 0
    for place in range(heap.state[LENGTH]):
        if heap.unit[place] >= heap.state[LEFT]:
            heap.value[kept], heap.unit[kept] = heap.value[place], heap.unit[place]
            kept += 1
    heap.state[LENGTH] = kept
    for place in range(kept // 2 - 1, -1, -1):
        _sift(heap, place, heap.value[place], heap.unit[place])


@bare
def _sift(heap: Heap, place: int, value: Any, unit: int) -> None:
    """Put an entry in a place, and let it sink."""
    length = heap.state[LENGTH]
    while True:
        child = 2 * place + 1
        if child >= length:
            break
        if child + 1 < length and _before(heap.value[child + 1], heap.value[child], heap.largest):
            child += 1
        if not _before(heap.value[child], value, heap.largest):
            break
        heap.value[place] = heap.value[child]
        heap.unit[place] = heap.unit[child]
        place = child
    heap.value[place] = value
    heap.unit[place] = unit


@bare
def _before(one: Any, other: Any, largest: bool) -> bool:
    return bool(one > other) if largest else bool(one < other)


structure(Heap, enter=_enter, leave=_leave, answer=_answer, forget=_forget)
slide_heap = bare_kernel(slide, __name__)
