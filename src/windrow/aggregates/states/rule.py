"""What all states have in common: rules that make, join and finish them, and the rows that they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from windrow.aggregates.states.rows import Array, Groups, Int64Array, Mask, Rows, State, values_there, writable
from windrow.errors import DataError
from windrow.model.types import DataType

__all__ = [
    "COUNT",
    "AbsentError",
    "Array",
    "Finished",
    "Groups",
    "Int64Array",
    "Mask",
    "Rows",
    "State",
    "StateRule",
    "counted",
    "fold_groups",
    "taken",
    "values_there",
    "writable",
]

COUNT = "count"


class AbsentError(DataError):
    """What leaves a group is not in it: the state is not that of the group's rows."""


class Finished(NamedTuple):
    """Results; where they are missing; and where the state does not say, so that they have to be computed anew."""

    values: Array
    missing: Mask
    recompute: Mask


class StateRule(ABC):
    """How the states of an aggregate are made, joined and finished. A state of zeros is that of no values."""

    why: ClassVar[str]
    """Why the state is enough, for people."""
    adds_up: ClassVar[bool] = True
    """Whether states that were put together, or taken out of one another, say as much as if rows had come and left."""
    by_runs: ClassVar[bool] = False
    """Whether runs of cells are folded as they are; otherwise rows are listed one by one."""

    @property
    def units(self) -> tuple[StateRule, ...]:
        """The rules whose states are kept for it, which other aggregates of the same arguments may share."""
        return (self,)

    @abstractmethod
    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        """What a state has besides the number of values, for arguments of given types."""

    @abstractmethod
    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        """The state of each value by itself."""

    @abstractmethod
    def merge(self, one: State, other: State) -> State:
        """The states of both groups' values together."""

    @abstractmethod
    def remove(self, one: State, other: State) -> State:
        """The states of ``one`` after the values of ``other``, which are among them, have left."""

    @abstractmethod
    def finish(self, state: State) -> Finished:
        """The results."""

    def reduce(self, rows: Any) -> State:
        """The state of each group of rows: ``Rows``, or what else ``Groups`` there are if it is ``by_runs``."""
        return fold_groups(self, rows)

    def enter(self, state: State, rows: Any, at: Int64Array | None = None) -> State:
        """The states after the rows of each group have come; ``at`` says where they were among those given.

        A group that had no rows is at -1. Without ``at`` the groups are those given, in their order.
        """
        return self.merge(state if at is None else taken(state, at), rows.spread(self.reduce(rows)))

    def leave(self, state: State, rows: Any) -> State:
        """The states after the rows of each group have left."""
        return self.remove(state, rows.spread(self.reduce(rows)))


def fold_groups(rule: StateRule, rows: Rows) -> State:
    """One value of each group after the other, merged: slow for long groups, and right for every rule."""
    there = np.flatnonzero(rows.there())
    lifted = rule.of_values([np.asarray(values)[there] for values in rows.arguments])
    starts = np.searchsorted(there, rows.starts)
    sizes = np.diff(starts)
    state = {name: np.zeros(rows.groups, part.dtype) for name, part in lifted.items()}
    for step in range(int(sizes.max(initial=0))):
        groups = np.flatnonzero(sizes > step)
        merged = rule.merge(taken(state, groups), taken(lifted, starts[groups] + step))
        for name, part in merged.items():
            state[name][groups] = part
    return state


def taken(state: State, places: Int64Array) -> dict[str, Array]:
    """The states of some groups; -1 asks for one without rows."""
    if not len(places) or places.min() >= 0:
        return {name: part[places] for name, part in state.items()}
    lacking, there = places < 0, np.maximum(places, 0)
    found = {}
    for name, part in state.items():
        nothing = np.zeros(len(places), part.dtype)
        found[name] = nothing if lacking.all() else np.where(lacking, nothing, part[there])
    return found


def counted(one: State, other: State, sign: int) -> Int64Array:
    counts: Int64Array = one[COUNT] + sign * other[COUNT]
    if (counts < 0).any():
        raise AbsentError("more values leave a group than it has", got=int(counts.min()))
    return counts
