"""What all states have in common: rules that make, join and finish them, and the rows that they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.model.types import DataType

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]

State = Mapping[str, Array]
COUNT = "count"


class Finished(NamedTuple):
    """Results; where they are missing; and where the state does not say, so that they have to be computed anew."""

    values: Array
    missing: Mask
    recompute: Mask


class Rows(NamedTuple):
    """The values of rows, group by group; ``starts`` has where each group begins, and the end of the last."""

    arguments: tuple[Array, ...]
    present: Mask | None
    starts: Int64Array

    @property
    def groups(self) -> int:
        return len(self.starts) - 1

    def there(self) -> Mask:
        """Which rows have all arguments."""
        return values_there(self.arguments, self.present)


class StateRule(ABC):
    """How the states of an aggregate are made, joined and finished. A state of zeros is that of no values."""

    why: ClassVar[str]
    """Why the state is enough, for people."""

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

    def reduce(self, rows: Rows) -> State:
        """The state of each group of rows."""
        return fold_groups(self, rows)

    def enter(self, state: State, rows: Rows) -> State:
        """The states after the rows of each group have come."""
        return self.merge(state, self.reduce(rows))

    def leave(self, state: State, rows: Rows) -> State:
        """The states after the rows of each group have left."""
        return self.remove(state, self.reduce(rows))


def values_there(arguments: Sequence[Array], present: Mask | None) -> Mask:
    """Where all arguments have a value: NaN and times that are none are missing."""
    there = np.ones(np.size(arguments[0]), bool) if present is None else np.array(present, bool).reshape(-1)
    for values in arguments:
        flat = np.asarray(values).reshape(-1)
        if flat.dtype.kind in "fM":
            there &= flat == flat
    return there


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
    """The states of some groups."""
    return {name: part[places] for name, part in state.items()}


def writable(values: Array) -> Array:
    """One flat array of which compiled code has one version, whatever memory it comes from."""
    flat: Array = np.require(np.asarray(values).reshape(-1), requirements=["C", "W"])
    return flat


def count_there(there: Mask, starts: Int64Array) -> Int64Array:
    """How many rows of each group are there."""
    from windrow.kernels.states.sums import count_groups

    counts = np.zeros(len(starts) - 1, np.int64)
    count_groups(there, writable(starts), counts)
    return counts


def counted(one: State, other: State, sign: int) -> Int64Array:
    counts: Int64Array = one[COUNT] + sign * other[COUNT]
    if (counts < 0).any():
        raise DataError("more values leave a group than it has", got=int(counts.min()))
    return counts
