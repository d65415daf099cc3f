"""User-defined aggregates of groups of rows: states that are kept, rows that are added to them and removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import compiled, guarded
from windrow.kernels.user.windows import StateFunctions, run_user_loop

Array = npt.NDArray[Any]
Columns = tuple[Array, ...]
"""The fields of the states of all groups."""


class GroupLoops(NamedTuple):
    """Loops around an aggregate's functions; states are changed in place."""

    enter: Callable[..., None]
    leave: Callable[..., None]
    merge: Callable[..., None]
    result: Callable[..., None]


_COMPILED: dict[str, GroupLoops] = {}


def group_loops(functions: StateFunctions, fields: int) -> GroupLoops:
    if functions.token not in _COMPILED:
        _COMPILED[functions.token] = _made(functions, fields)
    return _COMPILED[functions.token]


def state_fields(functions: StateFunctions, kind: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
    """The types of a state's fields, for values of a type."""
    empty, add = guarded(functions.empty), guarded(functions.add)
    found: list[Any] = []

    def first_state() -> None:
        found.extend(add(empty(), np.ones(1, kind)[0]))

    run_user_loop(functions, first_state)
    return tuple(np.asarray(field).dtype for field in found)


def _made(functions: StateFunctions, fields: int) -> GroupLoops:
    empty, result = guarded(functions.empty), guarded(functions.result)
    merge = guarded(functions.merge or functions.empty)
    load, save = _loader(fields), _saver(fields)

    @compiled
    def results(columns: Columns, counts: Array, out: Array) -> None:
        for group in range(len(counts)):
            if counts[group] > 0:
                out[group] = result(load(columns, group))

    @compiled
    def merging(columns: Columns, others: Columns, groups: Array) -> None:
        for group in groups:
            save(columns, group, merge(load(columns, group), load(others, group)))

    enter = _stepping(empty, guarded(functions.add), load, save)
    leave = _stepping(empty, guarded(functions.remove or functions.add), load, save)
    return GroupLoops(enter, leave, merging, results)


def _stepping(empty: Any, step: Any, load: Any, save: Any) -> Any:
    """Take the state of each group through its rows; a group without values begins anew."""

    @compiled
    def loop(columns: Columns, counts: Array, values: Array, starts: Array) -> None:
        for group in range(len(counts)):
            if starts[group] == starts[group + 1]:
                continue
            begin = starts[group]
            if counts[group] == 0:
                save(columns, group, step(empty(), values[begin]))
                begin += 1
            state = load(columns, group)
            for row in range(begin, starts[group + 1]):
                state = step(state, values[row])
            save(columns, group, state)

    return loop


def _loader(fields: int) -> Any:
    """What makes a tuple of a group's fields."""
    if fields == 1:

        @compiled
        def load_one(columns: Columns, group: int) -> Any:
            return (columns[0][group],)

        return load_one
    rest = _loader(fields - 1)

    @compiled
    def load(columns: Columns, group: int) -> Any:
        return (columns[0][group], *rest(columns[1:], group))

    return load


def _saver(fields: int) -> Any:
    """What writes a tuple into a group's fields."""
    if fields == 1:

        @compiled
        def save_one(columns: Columns, group: int, state: Any) -> None:
            columns[0][group] = state[0]

        return save_one
    rest = _saver(fields - 1)

    @compiled
    def save(columns: Columns, group: int, state: Any) -> None:
        columns[0][group] = state[0]
        rest(columns[1:], group, state[1:])

    return save
