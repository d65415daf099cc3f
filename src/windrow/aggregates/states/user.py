"""States of users' own aggregates: the tuple that their functions work on, if they say that ``remove`` is exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.aggregates.states.extremes import blanked
from windrow.aggregates.states.rule import (
    COUNT,
    Array,
    Finished,
    Int64Array,
    Mask,
    Rows,
    State,
    StateRule,
    counted,
    taken,
    values_there,
)
from windrow.errors import DataError
from windrow.kernels.user.groups import GroupLoops, group_loops, state_fields
from windrow.kernels.user.windows import StateFunctions, run_user_loop
from windrow.model.types import TYPES, DataType, data_type_of

LOST = "lost"
"""1 where states were put together that only the values themselves could have been."""


@dataclass(frozen=True)
class UserRule(StateRule):
    """``fields`` are the types of the state's parts for the values of one type."""

    functions: StateFunctions
    result: DataType
    fields: tuple[DataType, ...]
    adds_up = False
    why = "the state is kept; values are added to it and removed from it, exactly as the aggregate declares"

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"field_{number}" for number in range(len(self.fields)))

    @property
    def _loops(self) -> GroupLoops:
        return group_loops(self.functions, len(self.fields))

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        return {LOST: TYPES["int64"], **dict(zip(self._names, self.fields, strict=True))}

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        there = values_there(arguments, present)
        return self.reduce(Rows(tuple(arguments), there, np.arange(len(there) + 1)))

    def reduce(self, rows: Rows) -> State:
        zero = np.zeros(rows.groups, np.int64)
        fields = {name: np.zeros(rows.groups, kind.dtype) for name, kind in zip(self._names, self.fields, strict=True)}
        return self.enter({COUNT: zero, LOST: zero, **fields}, rows)

    def enter(self, state: State, rows: Rows, at: Int64Array | None = None) -> State:
        state = state if at is None else taken(state, at)
        values, starts = _values(rows)
        columns = self._copy(state)
        run_user_loop(self.functions, self._loops.enter, columns, state[COUNT], values, starts)
        return self._state(state[COUNT] + np.diff(starts), columns, state[LOST])

    def leave(self, state: State, rows: Rows) -> State:
        values, starts = _values(rows)
        counts = counted(state, {COUNT: np.diff(starts)}, -1)
        columns = self._copy(state)
        run_user_loop(self.functions, self._loops.leave, columns, state[COUNT], values, starts)
        return self._state(counts, columns, state[LOST])

    def merge(self, one: State, other: State) -> State:
        mine, theirs = one[COUNT] > 0, other[COUNT] > 0
        columns = tuple(np.where(mine, one[name], other[name]) for name in self._names)
        lost = one[LOST] | other[LOST]
        both = mine & theirs
        if self.functions.merge is None:
            lost = np.where(both, 1, lost)
        else:
            run_user_loop(self.functions, self._loops.merge, columns, self._copy(other), np.flatnonzero(both))
        return self._state(one[COUNT] + other[COUNT], columns, lost)

    def remove(self, one: State, other: State) -> State:
        # What a user's aggregate removes are values, not states.
        lost = np.where(other[COUNT] > 0, 1, one[LOST])
        return self._state(counted(one, other, -1), self._copy(one), lost)

    def finish(self, state: State) -> Finished:
        counts = state[COUNT]
        lost = (counts > 0) & (state[LOST] > 0)
        values = np.zeros(len(counts), self.result.dtype)
        run_user_loop(self.functions, self._loops.result, self._copy(state), np.where(lost, 0, counts), values)
        return Finished(values, counts == 0, lost)

    def _copy(self, state: State) -> tuple[Array, ...]:
        return tuple(np.array(state[name], kind.dtype) for name, kind in zip(self._names, self.fields, strict=True))

    def _state(self, counts: Array, columns: Sequence[Array], lost: Array) -> State:
        emptied = counts == 0
        named = zip(self._names, columns, strict=True)
        fields = {name: blanked(column, emptied) for name, column in named}
        return {COUNT: counts, LOST: np.where(emptied, 0, lost), **fields}


def user_rule(functions: StateFunctions, result: DataType, found: DataType) -> UserRule:
    """The rule for values of a type."""
    kinds = state_fields(functions, np.dtype(np.int64) if found.dtype.kind == "M" else found.dtype)
    if any(kind.kind not in "biuf" for kind in kinds):
        raise DataError("the state of a user-defined aggregate must be a tuple of numbers", got=kinds)
    return UserRule(functions, result, tuple(data_type_of(kind) for kind in kinds))


def _values(rows: Rows) -> tuple[Array, Array]:
    """The values that are there, and where the groups of those begin."""
    there = np.flatnonzero(rows.there())
    values = np.asarray(rows.arguments[0]).reshape(-1)[there]
    plain = values.view(np.int64) if values.dtype.kind == "M" else values
    return plain, np.searchsorted(there, rows.starts).astype(np.int64)
