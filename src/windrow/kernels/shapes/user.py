"""Users' own aggregates over shapes, by the best way that the functions given allow.

With ``remove`` one state slides along, runs entering and leaving it; with ``merge`` the runs of each length have two
stacks of states, whose totals are merged; with neither, every neighbourhood is added up anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import compiled, guarded
from windrow.kernels.papers.slide import Unit
from windrow.kernels.shapes.incremental import Groups, groups_of
from windrow.kernels.shapes.layout import Walk, lay_out
from windrow.kernels.shapes.problems import ShapeProblem
from windrow.kernels.user.loops import merging_units, scan_unit
from windrow.kernels.user.windows import StateFunctions, run_user_loop

Array = npt.NDArray[Any]

_COMPILED: dict[tuple[str, str], Any] = {}


def user_shapes(
    functions: StateFunctions,
    problem: ShapeProblem,
    values: Array,
    present: npt.NDArray[np.bool_] | None,
    result: np.dtype[Any],
    method: str = "auto",
) -> tuple[Array, npt.NDArray[np.int64]]:
    """The aggregate in every neighbourhood, and how many present values each had."""
    flat = np.ascontiguousarray(values.view(np.int64) if values.dtype.kind == "M" else values).reshape(-1)
    there = np.ones(len(flat), bool) if present is None else np.ascontiguousarray(present).reshape(-1)
    if flat.dtype.kind == "f":
        there = there & ~np.isnan(flat)
    layout = lay_out(problem, flat, there)
    out, counts = np.zeros(problem.counts, result), np.zeros(problem.counts, np.int64)
    key = (functions.token, "naive" if method == "naive" else "sliding")
    if key not in _COMPILED:
        _COMPILED[key] = _loop(functions, key[1])
    groups = groups_of(problem, layout)
    arguments = (layout.flat, layout.there, layout.walk, groups, out.reshape(-1), counts.reshape(-1))
    run_user_loop(functions, _COMPILED[key], *arguments)
    return out, counts


def _loop(functions: StateFunctions, method: str) -> Any:
    empty, add, result = (guarded(f) for f in (functions.empty, functions.add, functions.result))
    if method != "naive" and functions.remove is not None:
        return _removing_loop(empty, scan_unit(add), scan_unit(guarded(functions.remove)), result)
    if method != "naive" and functions.merge is not None:
        return _merging_loop(empty, scan_unit(add), guarded(functions.merge), result)
    return _adding_loop(empty, scan_unit(add), result)


def _adding_loop(empty: Any, added: Any, result: Any) -> Any:
    @compiled
    def loop(flat: Array, there: Array, walk: Walk, groups: Groups, out: Array, counts: Array) -> None:
        output = 0
        for base in walk.bases:
            for k in range(walk.count):
                state, found = added(empty(), Unit(flat, there, groups.every, base + k * walk.step))
                counts[output] = found
                if found > 0:
                    out[output] = result(state)
                output += 1

    return loop


def _removing_loop(empty: Any, added: Any, removed: Any, result: Any) -> Any:
    """One state, from which what leaves is removed."""

    @compiled
    def moved(state: Any, flat: Array, there: Array, groups: Groups, at: int) -> tuple[Any, int]:
        """The state one cell further on, and how many values more it holds."""
        more = 0
        for group in range(len(groups.lengths)):
            offsets = groups.starts[groups.begins[group] : groups.begins[group + 1]]
            state, gone = removed(state, Unit(flat, there, offsets, at))
            state, came = added(state, Unit(flat, there, offsets, at + groups.lengths[group]))
            more += came - gone
        return state, more

    @compiled
    def loop(flat: Array, there: Array, walk: Walk, groups: Groups, out: Array, counts: Array) -> None:
        longest = groups.lengths[-1] if len(groups.lengths) > 0 else 0
        output = 0
        for base in walk.bases:
            state, found = added(empty(), Unit(flat, there, groups.every, base))
            for k in range(walk.count):
                at = base + k * walk.step
                if k > 0 and walk.step < longest:
                    for place in range(at - walk.step, at):
                        state, more = moved(state, flat, there, groups, place)
                        found += more
                elif k > 0:
                    state, found = added(empty(), Unit(flat, there, groups.every, at))
                counts[output] = found
                if found > 0:
                    out[output] = result(state)
                output += 1

    return loop


def _merging_loop(empty: Any, added: Any, merge: Any, result: Any) -> Any:
    """Two stacks for the runs of each length, as in windows."""
    keep, start, enter, leave, total = merging_units(empty, added, merge)

    @compiled
    def slide(
        kept: Any, totals: Any, flat: Array, there: Array, offsets: Array, base: int, step: int, length: int
    ) -> None:
        entered = left = np.int64(0)
        state, found = start(left), 0
        for k in range(len(totals)):
            first, last = k * step, k * step + length - 1
            if first > entered:
                entered = left = np.int64(first)
                state, found = start(left), 0
            while left < first:
                state, fewer = leave(kept, state, left, entered, Unit(flat, there, offsets, base + left))
                left, found = left + 1, found - fewer
            while entered <= last:
                state, more = enter(kept, state, entered, Unit(flat, there, offsets, base + entered))
                entered, found = entered + 1, found + more
            if found > 0:
                totals[k] = merge(totals[k][0], total(kept, state, left)), totals[k][1] + found

    @compiled
    def loop(flat: Array, there: Array, walk: Walk, groups: Groups, out: Array, counts: Array) -> None:
        longest = groups.lengths[-1] if len(groups.lengths) > 0 else 0
        kept = keep(walk.count * walk.step + longest + 1)
        output = 0
        for base in walk.bases:
            totals = [(empty(), 0) for _ in range(walk.count)]
            for group in range(len(groups.lengths)):
                offsets = groups.starts[groups.begins[group] : groups.begins[group + 1]]
                slide(kept, totals, flat, there, offsets, base, walk.step, groups.lengths[group])
            for state, found in totals:
                counts[output] = found
                if found > 0:
                    out[output] = result(state)
                output += 1

    return loop
