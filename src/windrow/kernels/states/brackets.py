"""Brackets: some neighbouring order statistics of each group, and how many values lie below them.

``held[:inside[group], group]`` are the values of the ranks ``below[group]`` and following, in order; zeros follow.
Values that come or go on either side move the bracket's ranks; those within it move its values. A group whose bracket
has run out of values, while others are still there, is not known any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel

Array = npt.NDArray[Any]


class Brackets(NamedTuple):
    """The brackets of some groups, and how many values each group has."""

    held: Array
    below: Array
    inside: Array
    counts: Array


class Moving(NamedTuple):
    """The values that come or go: those of group g from ``starts[g]`` up to ``stops[g]``."""

    values: Array
    starts: Array
    stops: Array


@kernel
def enter_values(brackets: Brackets, moving: Moving, share: float) -> None:
    """Values come; ``share`` of a group's values lie below the rank that is asked for, which stays in the middle."""
    held, below, inside, counts = brackets
    room = held.shape[0]
    for group in range(len(counts)):
        start, stop = moving.starts[group], moving.stops[group]
        if stop == start:
            continue
        if counts[group] == 0:
            ordered = np.sort(moving.values[start:stop])
            counts[group] = len(ordered)
            first = min(max(_rank(len(ordered), share) - (room - 1) // 2, 0), max(len(ordered) - room, 0))
            below[group], inside[group] = first, min(len(ordered) - first, room)
            for place in range(inside[group]):
                held[place, group] = ordered[first + place]
            continue
        for place in range(start, stop):
            _enter(brackets, group, moving.values[place], share)


@kernel
def leave_values(brackets: Brackets, moving: Moving) -> Any:
    """Values go; the first group that did not have what was to go, or -1."""
    wrong = np.int64(-1)
    for group in range(len(brackets.counts)):
        for place in range(moving.starts[group], moving.stops[group]):
            if not _leave(brackets, group, moving.values[place]) and wrong < 0:
                wrong = np.int64(group)
    return wrong


@inner
def _rank(count: int, share: float) -> Any:
    return np.int64(share * (count - 1))


@inner
def _enter(brackets: Brackets, group: int, value: Any, share: float) -> None:
    held, below, inside, counts = brackets
    room, size, count = held.shape[0], inside[group], counts[group]
    counts[group] = count + 1
    if size == 0 and count > 0:
        return
    above = count - below[group] - size
    if size > 0 and value < held[0, group] and below[group] > 0:
        below[group] += 1
        return
    if size > 0 and value > held[size - 1, group] and above > 0:
        return
    if size == room:
        # One of its ends goes: the one that is further from the rank.
        middle = _rank(count + 1, share) - below[group]
        if 2 * middle > room:
            if value <= held[0, group]:
                below[group] += 1
                return
            _close(held, group, 0, size)
            below[group] += 1
        elif value >= held[size - 1, group]:
            return
        size -= 1
    place = size
    while place > 0 and held[place - 1, group] > value:
        held[place, group] = held[place - 1, group]
        place -= 1
    held[place, group] = value
    inside[group] = size + 1


@inner
def _leave(brackets: Brackets, group: int, value: Any) -> bool:
    held, below, inside, counts = brackets
    size, count = inside[group], counts[group]
    if count == 0:
        return False
    counts[group] = count - 1
    if size > 0:
        if value < held[0, group]:
            if below[group] == 0:
                return False
            below[group] -= 1
        elif value > held[size - 1, group]:
            if count == below[group] + size:
                return False
        else:
            place = 0
            while held[place, group] < value:
                place += 1
            if held[place, group] != value:
                return False
            _close(held, group, place, size)
            inside[group] = size - 1
    if counts[group] == 0 or inside[group] == 0:
        below[group] = 0
    return True


@inner
def _close(held: Array, group: int, gap: int, size: int) -> None:
    """Move what is above a value that goes, so that a zero follows."""
    for place in range(gap, size - 1):
        held[place, group] = held[place + 1, group]
    held[size - 1, group] = 0
