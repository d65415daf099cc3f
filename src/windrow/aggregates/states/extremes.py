"""States of what one value of a group decides: the smallest and the largest, the first and the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.aggregates.states.rule import (
    COUNT,
    AbsentError,
    Array,
    Finished,
    Groups,
    Mask,
    Rows,
    State,
    StateRule,
    counted,
    values_there,
    writable,
)
from windrow.kernels.contract.outcomes import prepared
from windrow.model.types import TYPES, DataType


@dataclass(frozen=True)
class ExtremeRule(StateRule):
    """The smallest or the largest value; when the last of its kind leaves, the rest has to be looked at again.

    Until then ``value`` is a bound that all values keep to and none has, and ``times`` is 0.
    """

    largest: bool
    why = "the value and how often it is there are kept; when the last of its kind leaves, the cell is computed again"
    by_runs = True

    @property
    def _names(self) -> tuple[str, str]:
        side = "max" if self.largest else "min"
        return f"{side}_value", f"{side}_times"

    def _split(self, state: State) -> tuple[Array, Array, Array]:
        value, times = self._names
        return state[COUNT], state[value], state[times]

    def _state(self, counts: Array, value: Array, times: Array) -> State:
        value_name, times_name = self._names
        emptied = counts == 0
        return {COUNT: counts, value_name: blanked(value, emptied), times_name: np.where(emptied, 0, times)}

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        value, times = self._names
        return {value: types[0], times: TYPES["int64"]}

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        there = values_there(arguments[:1], present).astype(np.int64)
        return self._state(there, _positive_zeros(np.asarray(arguments[0]).reshape(-1)), there)

    def reduce(self, rows: Groups) -> State:
        values, there = np.asarray(rows.arguments[0]).reshape(-1), rows.there()
        found, times = _outermost_rows(_comparable(values), there, rows, self.largest)
        return self._state(rows.count_there(there), _positive_zeros(_rows_of(values, found)), times)

    def merge(self, one: State, other: State) -> State:
        (mine_count, mine, mine_times), (count, theirs, times) = self._split(one), self._split(other)
        takes = (count > 0) & ((mine_count == 0) | _beyond(theirs, mine, self.largest))
        equal = (count > 0) & (mine_count > 0) & (mine == theirs)
        # Of a group whose extreme is not known any more, a value is only known to be one if it is not within the bound.
        unknown = (mine_count > 0) & (mine_times == 0) & ~takes & ~equal
        joined = np.where(takes, times, mine_times + np.where(equal, times, 0))
        return self._state(mine_count + count, np.where(takes, theirs, mine), np.where(unknown, 0, joined))

    def remove(self, one: State, other: State) -> State:
        counts = counted(one, other, -1)
        (_, mine, mine_times), (count, theirs, times) = self._split(one), self._split(other)
        left = mine_times - np.where((count > 0) & (mine == theirs), times, 0)
        if (left < 0).any() or ((count > 0) & _beyond(theirs, mine, self.largest)).any():
            raise AbsentError("a value leaves a group that does not have it")
        return self._state(counts, mine, left)

    def finish(self, state: State) -> Finished:
        counts, value, times = self._split(state)
        return Finished(value, counts == 0, (counts > 0) & (times == 0))


@dataclass(frozen=True)
class RangeRule(StateRule):
    """Both extremes, and their distance."""

    why = "both extremes and how often they are there are kept; when the last of one leaves, the cell is computed again"

    @property
    def units(self) -> tuple[StateRule, ...]:
        return (ExtremeRule(largest=False), ExtremeRule(largest=True))

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        return {name: kind for side in self.units for name, kind in side.parts(types).items()}

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        return _unite([side.of_values(arguments, present) for side in self.units])

    def merge(self, one: State, other: State) -> State:
        return _unite([side.merge(one, other) for side in self.units])

    def remove(self, one: State, other: State) -> State:
        return _unite([side.remove(one, other) for side in self.units])

    def finish(self, state: State) -> Finished:
        from windrow.aggregates.composed import distance

        low, high = (side.finish(state) for side in self.units)
        recompute = low.recompute | high.recompute
        values = distance(high.values, low.values, ~high.missing & ~recompute)
        # Between two infinities of one sign there is no distance.
        missing = high.missing | (np.isnan(values) & ~recompute) if values.dtype.kind == "f" else high.missing
        return Finished(values, missing, recompute)


@dataclass(frozen=True)
class OutermostRule(StateRule):
    """The value at the first or the last place; places are the second argument, whole numbers.

    ``times`` says how many values are at ``place``: with one it is the result. None is there once it has left, and of
    several at one place nobody knows which is meant.
    """

    last: bool
    why = "the value and its place are kept; when it leaves, the cell is computed again"

    @property
    def _names(self) -> tuple[str, str, str]:
        side = "last" if self.last else "first"
        return f"{side}_value", f"{side}_place", f"{side}_times"

    def _split(self, state: State) -> tuple[Array, ...]:
        return (state[COUNT], *(state[name] for name in self._names))

    def _state(self, counts: Array, value: Array, place: Array, times: Array) -> State:
        emptied = counts == 0
        parts = blanked(value, emptied), np.where(emptied, 0, place), np.where(emptied, 0, np.minimum(times, 2))
        return {COUNT: counts, **dict(zip(self._names, parts, strict=True))}

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        return dict(zip(self._names, (types[0], TYPES["int64"], TYPES["int64"]), strict=True))

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        values, places = (np.asarray(argument).reshape(-1) for argument in arguments)
        there = values_there(arguments[:1], present).astype(np.int64)
        return self._state(there, values, places.astype(np.int64), there)

    def reduce(self, rows: Rows) -> State:
        values, places = (np.asarray(argument).reshape(-1) for argument in rows.arguments)
        there = rows.there()
        found, times = _outermost_rows(places.astype(np.int64), there, rows, self.last)
        return self._state(rows.count_there(there), _rows_of(values, found), _rows_of(places, found), times)

    def merge(self, one: State, other: State) -> State:
        mine_count, mine, mine_place, mine_times = self._split(one)
        count, theirs, place, times = self._split(other)
        equal = (count > 0) & (mine_count > 0) & (place == mine_place)
        takes = (count > 0) & ((mine_count == 0) | _beyond(place, mine_place, self.last) | (equal & (mine_times == 0)))
        kept = np.where(equal, mine_times + times, mine_times)
        return self._state(
            mine_count + count,
            np.where(takes, theirs, mine),
            np.where(takes, place, mine_place),
            np.where(takes, times, kept),
        )

    def remove(self, one: State, other: State) -> State:
        counts = counted(one, other, -1)
        _, mine, mine_place, mine_times = self._split(one)
        count, _, place, times = self._split(other)
        leaves = (count > 0) & (mine_place == place)
        absent = leaves & (mine_times < times) | ((count > 0) & _beyond(place, mine_place, self.last))
        if absent.any():
            raise AbsentError("a value leaves a group that does not have it")
        # Of several at one place it is not known which are left.
        left = np.where(leaves & (mine_times == 1), 0, mine_times)
        return self._state(counts, mine, mine_place, left)

    def finish(self, state: State) -> Finished:
        counts, value, _, times = self._split(state)
        return Finished(value, counts == 0, (counts > 0) & (times != 1))


def blanked(values: Array, nothing: Mask) -> Array:
    """Values that mean nothing become the type's zero, so that equal states are equal bit by bit."""
    return np.where(nothing, np.zeros(1, values.dtype), values) if nothing.any() else values


def _unite(sides: Sequence[State]) -> State:
    return {name: part for state in sides for name, part in state.items()}


def _beyond(values: Array, others: Array, largest: bool) -> Mask:
    return np.asarray(values > others if largest else values < others)


def _positive_zeros(values: Array) -> Array:
    # Adding 0.0 makes -0.0 a 0.0, or which of two equal zeros is found would be chance.
    return values + values.dtype.type(0) if values.dtype.kind == "f" else values


def _comparable(values: Array) -> Array:
    """Numbers in the order of the values, of a type that compiled code knows."""
    if values.dtype.kind == "T":
        return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return prepared(values, None)[0]


def _outermost_rows(values: Array, there: Mask, groups: Groups, largest: bool) -> tuple[Array, Array]:
    from windrow.kernels.states.extremes import find_largest, find_smallest

    find, values = find_largest if largest else find_smallest, writable(values)
    rows, times = np.zeros(groups.groups, np.int64), np.zeros(groups.groups, np.int64)
    rows -= 1
    for begin, end, starts, stops in groups.ranges():
        find(values, there, starts, stops, rows[begin:end], times[begin:end])
    return rows, times


def _rows_of(values: Array, rows: Array) -> Array:
    """The values in some rows; -1 is no row."""
    if not len(values):
        return np.zeros(len(rows), values.dtype)
    return blanked(values[np.maximum(rows, 0)], rows < 0)
