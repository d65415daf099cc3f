"""The loops that run user-defined aggregates, compiled around their functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import compiled, guarded
from windrow.kernels.papers.slide import Path, Unit, cross_section, round_count
from windrow.kernels.user.windows import StateFunctions

Array = npt.NDArray[Any]


class Moves(NamedTuple):
    """How a window is remembered while units enter and leave it: what is kept of each unit, and a state."""

    keep: Any  # room for what is kept of so many units
    start: Any  # the state of a window without units, when the number of the next unit is given
    enter: Any
    leave: Any
    total: Any


def state_loop(functions: StateFunctions, strategy: str) -> Any:
    """The loop for an aggregate's functions; ``strategy`` naive adds up every window."""
    empty, add, result = (guarded(f) for f in (functions.empty, functions.add, functions.result))
    if strategy != "naive" and functions.remove is not None:
        return _moving_loop(_removing(empty, scan_unit(add), scan_unit(guarded(functions.remove))), result)
    if strategy != "naive" and functions.merge is not None:
        return _moving_loop(merging_units(empty, scan_unit(add), guarded(functions.merge)), result)
    return _adding_loop(empty, scan_unit(add), result)


def scan_unit(step: Any) -> Any:
    """Take a state through the present cells of a unit; it, and how many there were."""

    @compiled
    def scan(state: Any, unit: Unit) -> tuple[Any, int]:
        found = 0
        for offset in unit.offsets:
            if unit.there[unit.start + offset]:
                state = step(state, unit.flat[unit.start + offset])
                found += 1
        return state, found

    return scan


def _adding_loop(empty: Any, added: Any, result: Any) -> Any:
    @compiled
    def loop(flat: Array, there: Array, path: Path, out: Array, counts: Array) -> None:
        place, axis = path.place, path.axis
        rounds, apart = round_count(place, axis)
        for round_ in range(rounds):
            output, cells = cross_section(path, round_)
            for k in range(place.outputs[axis]):
                state = empty()
                found = 0
                for number in range(place.lo[axis, k], place.hi[axis, k] + 1):
                    unit = Unit(flat, there, path.offsets[:cells], number * place.stride[axis])
                    state, more = added(state, unit)
                    found += more
                counts[output + k * apart] = found
                if found > 0:
                    out[output + k * apart] = result(state)

    return loop


def _removing(empty: Any, added: Any, removed: Any) -> Moves:
    """One state, from which what leaves is removed."""

    @compiled
    def keep(units: int) -> int:
        return 0

    @compiled
    def start(number: int) -> Any:
        return empty()

    @compiled
    def enter(kept: int, state: Any, number: int, unit: Unit) -> tuple[Any, int]:
        return added(state, unit)

    @compiled
    def leave(kept: int, state: Any, number: int, end: int, unit: Unit) -> tuple[Any, int]:
        return removed(state, unit)

    @compiled
    def total(kept: int, state: Any, oldest: int) -> Any:
        return state

    return Moves(keep, start, enter, leave, total)


def merging_units(empty: Any, added: Any, merge: Any) -> Moves:
    """Two stacks: units have states, suffix totals at the front; the back has one total, and where it begins."""

    @compiled
    def keep(units: int) -> Any:
        return [(empty(), 0) for _ in range(units)]

    @compiled
    def start(number: int) -> Any:
        return empty(), number

    @compiled
    def enter(kept: Any, state: Any, number: int, unit: Unit) -> tuple[Any, int]:
        entering, found = added(empty(), unit)
        kept[number] = entering, found
        return (merge(state[0], entering), state[1]), found

    @compiled
    def leave(kept: Any, state: Any, number: int, end: int, unit: Unit) -> tuple[Any, int]:
        back, split = state
        if number == split:
            for place in range(end - 2, number - 1, -1):
                kept[place] = merge(kept[place][0], kept[place + 1][0]), kept[place][1]
            back, split = empty(), end
        return (back, split), kept[number][1]

    @compiled
    def total(kept: Any, state: Any, oldest: int) -> Any:
        return merge(kept[oldest][0], state[0]) if oldest < state[1] else state[0]

    return Moves(keep, start, enter, leave, total)


def _moving_loop(moves: Moves, result: Any) -> Any:
    keep, start, enter, leave, total = moves

    @compiled
    def loop(flat: Array, there: Array, path: Path, out: Array, counts: Array) -> None:
        place, axis = path.place, path.axis
        stride = place.stride[axis]
        rounds, apart = round_count(place, axis)
        kept = keep(place.extent[axis] + 1)
        for round_ in range(rounds):
            output, cells = cross_section(path, round_)
            offsets = path.offsets[:cells]
            entered = left = np.int64(0)
            state, found = start(left), 0
            for k in range(place.outputs[axis]):
                first, last = place.lo[axis, k], place.hi[axis, k]
                if first > entered:
                    entered = left = first
                    state, found = start(left), 0
                while left < first:
                    state, fewer = leave(kept, state, left, entered, Unit(flat, there, offsets, left * stride))
                    left, found = left + 1, found - fewer
                while entered <= last:
                    state, more = enter(kept, state, entered, Unit(flat, there, offsets, entered * stride))
                    entered, found = entered + 1, found + more
                counts[output + k * apart] = found
                if found > 0:
                    out[output + k * apart] = result(total(kept, state, left))

    return loop
