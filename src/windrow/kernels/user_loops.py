"""The loops that run user-defined aggregates, compiled around their functions."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from windrow.kernels.incremental import first_cell, next_cell, offset_of, round_base, round_count
from windrow.kernels.user import StateFunctions

Array = npt.NDArray[Any]


def state_loop(functions: StateFunctions, strategy: str) -> Any:
    """The loop for an aggregate's functions; ``strategy`` naive adds up every window."""
    empty, add, result = (numba.njit(f) for f in (functions.empty, functions.add, functions.result))
    if strategy != "naive" and functions.remove is not None:
        return _sliding_loop(empty, add, numba.njit(functions.remove), result)
    if strategy != "naive" and functions.merge is not None:
        return _merging_loop(empty, add, numba.njit(functions.merge), result)
    return _adding_loop(empty, add, result)


def _adding_loop(empty: Any, add: Any, result: Any) -> Any:
    @numba.njit(nogil=True)
    def loop(flat: Array, there: Array, place: Any, axis: int, out: Array, counts: Array) -> None:
        ndim = len(place.extent)
        lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
        rounds, apart = round_count(place, axis)
        for round_ in range(rounds):
            output = round_base(place, axis, round_, lo, hi)
            for k in range(place.outputs[axis]):
                state = empty()
                found = 0
                for unit in range(place.lo[axis, k], place.hi[axis, k] + 1):
                    more = first_cell(axis, unit, lo, hi, cell)
                    while more:
                        at = offset_of(place, cell)
                        if there[at]:
                            state = add(state, flat[at])
                            found += 1
                        more = next_cell(axis, lo, hi, cell)
                counts[output + k * apart] = found
                if found > 0:
                    out[output + k * apart] = result(state)

    return loop


def _sliding_loop(empty: Any, add: Any, remove: Any, result: Any) -> Any:
    @numba.njit(nogil=True)
    def loop(flat: Array, there: Array, place: Any, axis: int, out: Array, counts: Array) -> None:
        ndim = len(place.extent)
        lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
        rounds, apart = round_count(place, axis)
        for round_ in range(rounds):
            output = round_base(place, axis, round_, lo, hi)
            state = empty()
            found = 0
            entered, left = np.int64(0), np.int64(0)
            for k in range(place.outputs[axis]):
                first, last = place.lo[axis, k], place.hi[axis, k]
                if first > entered:
                    state = empty()
                    found = 0
                    entered = left = first
                while entered <= last:
                    more = first_cell(axis, entered, lo, hi, cell)
                    while more:
                        at = offset_of(place, cell)
                        if there[at]:
                            state = add(state, flat[at])
                            found += 1
                        more = next_cell(axis, lo, hi, cell)
                    entered += 1
                while left < first:
                    more = first_cell(axis, left, lo, hi, cell)
                    while more:
                        at = offset_of(place, cell)
                        if there[at]:
                            state = remove(state, flat[at])
                            found -= 1
                        more = next_cell(axis, lo, hi, cell)
                    left += 1
                counts[output + k * apart] = found
                if found > 0:
                    out[output + k * apart] = result(state)

    return loop


def _merging_loop(empty: Any, add: Any, merge: Any, result: Any) -> Any:
    @numba.njit(nogil=True)
    def loop(flat: Array, there: Array, place: Any, axis: int, out: Array, counts: Array) -> None:
        ndim = len(place.extent)
        lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
        rounds, apart = round_count(place, axis)
        units = [empty() for _ in range(place.extent[axis] + 1)]
        inside = np.zeros(place.extent[axis] + 1, np.int64)
        for round_ in range(rounds):
            output = round_base(place, axis, round_, lo, hi)
            back = empty()
            found = 0
            entered, left, split = np.int64(0), np.int64(0), np.int64(0)
            for k in range(place.outputs[axis]):
                first, last = place.lo[axis, k], place.hi[axis, k]
                if first > entered:
                    back = empty()
                    found = 0
                    entered = left = split = first
                while entered <= last:
                    state = empty()
                    inside[entered] = 0
                    more = first_cell(axis, entered, lo, hi, cell)
                    while more:
                        at = offset_of(place, cell)
                        if there[at]:
                            state = add(state, flat[at])
                            inside[entered] += 1
                        more = next_cell(axis, lo, hi, cell)
                    units[entered] = state
                    back = merge(back, state)
                    found += inside[entered]
                    entered += 1
                while left < first:
                    if left == split:
                        for unit in range(entered - 2, left - 1, -1):
                            units[unit] = merge(units[unit], units[unit + 1])
                        split = entered
                        back = empty()
                    found -= inside[left]
                    left += 1
                counts[output + k * apart] = found
                if found > 0:
                    out[output + k * apart] = result(merge(units[left], back) if left < split else back)

    return loop
