"""Windows of user-defined aggregates, by the best way that the functions given allow.

With ``remove`` one state slides along the sweep axis; with ``merge`` each window unit has a state and two stacks keep
their total; with neither, every window is added up anew. Loops are compiled for each aggregate, around its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.geometry import geometry
from windrow.kernels.incremental import first_cell, next_cell, offset_of, round_base, round_count, sweep_axis
from windrow.kernels.sweep import AnySweep

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class StateFunctions:
    """What a user-defined aggregate is made of; the state is a tuple of scalars."""

    empty: Callable[[], tuple[Any, ...]]
    add: Callable[[tuple[Any, ...], Any], tuple[Any, ...]]
    result: Callable[[tuple[Any, ...]], Any]
    remove: Callable[[tuple[Any, ...], Any], tuple[Any, ...]] | None = None
    merge: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]] | None = None

    @property
    def strategy(self) -> str:
        if self.remove is not None:
            return "add and remove along the sweep axis"
        return "merge window units, two stacks" if self.merge is not None else "add up every window"


_COMPILED: dict[tuple[int, str], tuple[StateFunctions, Any]] = {}


def user_windows(
    functions: StateFunctions,
    values: Array,
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    result: np.dtype[Any],
    strategy: str = "auto",
) -> tuple[Array, npt.NDArray[np.int64]]:
    """The aggregate in every window, and how many present values each had."""
    flat = np.ascontiguousarray(values.view(np.int64) if values.dtype.kind == "M" else values).reshape(-1)
    there = np.ones(len(flat), bool) if present is None else np.ascontiguousarray(present).reshape(-1)
    if flat.dtype.kind == "f":
        there = there & ~np.isnan(flat)
    shape = tuple(sweep.count for sweep in sweeps)
    out, counts = np.zeros(shape, result), np.zeros(shape, np.int64)
    loop = _compiled(functions, strategy)
    place = geometry(values.shape, sweeps)
    try:
        loop(flat, there, place, sweep_axis(values.shape, sweeps), out.reshape(-1), counts.reshape(-1))
    except numba.core.errors.NumbaError as error:
        raise DataError("a user-defined aggregate does not compile", got=_reason(error)) from error
    except Exception as error:
        raise DataError("a user-defined aggregate failed", got=f"{type(error).__name__}: {error}") from error
    return out, counts


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or ["no reason given"])[0][:300]


def _compiled(functions: StateFunctions, strategy: str) -> Any:
    key = (id(functions), strategy)
    if key not in _COMPILED:  # the functions are kept with their loop, so that their id stays theirs
        _COMPILED[key] = (functions, _build(functions, strategy))
    return _COMPILED[key][1]


def _build(functions: StateFunctions, strategy: str) -> Any:
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
