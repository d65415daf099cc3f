"""States of order statistics: a bracket of neighbouring ones, and how many values are below it.

The bracket moves with the rank as values come and go. It is not enough once the rank has left it, or when groups are
put together of which neither is held whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.aggregates.states.extremes import blanked
from windrow.aggregates.states.rule import (
    COUNT,
    AbsentError,
    Array,
    Finished,
    Int64Array,
    Mask,
    Rows,
    State,
    StateRule,
    taken,
    values_there,
    writable,
)
from windrow.kernels.contract.outcomes import prepared
from windrow.kernels.contract.ranks import RankRule
from windrow.kernels.states.brackets import Brackets, Moving, enter_values, leave_values
from windrow.model.types import TYPES, DataType

WIDTH = 16
"""How many neighbouring order statistics are kept: of 8, several in a hundred groups lose their rank in a batch."""
HELD = tuple(f"held_{number:02}" for number in range(WIDTH))


@dataclass(frozen=True)
class BracketRule(StateRule):
    """An order statistic."""

    ranks: RankRule
    fraction: float
    adds_up = False
    why = f"{WIDTH} neighbouring order statistics are kept; when the rank leaves them, the cell is computed again"

    @property
    def _share(self) -> float:
        return self.fraction / self.ranks.limit

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        whole = TYPES["int64"]
        return {"below": whole, "inside": whole, **dict.fromkeys(HELD, types[0])}

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        there = values_there(arguments, present)
        values = np.asarray(arguments[0]).reshape(-1)
        values = values + values.dtype.type(0) if values.dtype.kind == "f" else values
        nothing = np.zeros(len(values), np.int64)
        state = {COUNT: there.astype(np.int64), "below": nothing, "inside": there.astype(np.int64)}
        empty = np.zeros(len(values), values.dtype)
        return state | dict.fromkeys(HELD, empty) | {HELD[0]: blanked(values, ~there)}

    def reduce(self, rows: Rows) -> State:
        kind = np.asarray(rows.arguments[0]).dtype
        zero = np.zeros(rows.groups, np.int64)
        empty = {COUNT: zero, "below": zero, "inside": zero, **dict.fromkeys(HELD, np.zeros(rows.groups, kind))}
        return self.enter(empty, rows)

    def enter(self, state: State, rows: Rows, at: Int64Array | None = None) -> State:
        state = state if at is None else taken(state, at)
        coding, brackets, moving = _prepare(state, rows)
        enter_values(brackets, moving, self._share)
        return coding.state(brackets)

    def leave(self, state: State, rows: Rows) -> State:
        coding, brackets, moving = _prepare(state, rows)
        _leave(brackets, moving)
        return coding.state(brackets)

    def merge(self, one: State, other: State) -> State:
        whole = other["inside"] == other[COUNT]
        # Merging goes into the bracket of the larger group, from one that is held whole.
        swap = ~whole & (one["inside"] == one[COUNT])
        mine, theirs = _choose(swap, other, one), _choose(swap, one, other)
        coding, brackets, moving, known = _of_states(mine, theirs)
        enter_values(brackets, moving, self._share)
        return _forget(coding.state(brackets), ~known, one[COUNT] + other[COUNT])

    def remove(self, one: State, other: State) -> State:
        coding, brackets, moving, known = _of_states(one, other)
        _leave(brackets, moving)
        counts = one[COUNT] - other[COUNT]
        if (counts < 0).any():
            raise AbsentError("more values leave a group than it has", got=int(counts.min()))
        return _forget(coding.state(brackets), ~known, counts)

    def finish(self, state: State) -> Finished:
        counts, below, inside = state[COUNT], state["below"], state["inside"]
        lower, upper, weight = self.ranks.at(self.fraction, counts)
        there = counts > 0
        recompute = there & ((lower < below) | (upper >= below + inside))
        known = there & ~recompute
        held = _held(state)
        groups = np.arange(len(counts))
        low, high = (held[np.where(known, rank - below, 0), groups] for rank in (lower, upper))
        values = _between(low, high, weight) if self.ranks.interpolates else low
        return Finished(values, ~there, recompute)


def _leave(brackets: Brackets, moving: Moving) -> None:
    if leave_values(brackets, moving) >= 0:
        raise AbsentError("a value leaves a group that does not have it")


def _choose(where: Mask, one: State, other: State) -> State:
    return {name: np.where(where, one[name], other[name]) for name in other}


def _forget(state: State, lost: Mask, counts: Array) -> State:
    """Groups whose ranks are not known any more hold nothing; one without values is as new."""
    parts = {name: blanked(part, lost) for name, part in state.items()}
    return {**parts, COUNT: counts}


def _between(low: Array, high: Array, weight: Array) -> Array:
    """As kernels interpolate: infinite or overflowing distances give what they should, not NaN."""
    one, other = low.astype(np.float64), high.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = other - one
        moved = np.where(np.isfinite(distance), one + weight * distance, one * (1.0 - weight) + other * weight)
    return np.where((weight == 0.0) | (one == other), one + 0.0, moved)


@dataclass(frozen=True)
class _Coding:
    """Values as numbers in the same order, and back."""

    kind: np.dtype
    words: Array | None = None

    def numbers(self, values: Array) -> Array:
        if self.words is not None:
            return np.searchsorted(self.words, values).astype(np.int64)
        return writable(prepared(values, None)[0])

    def kept(self, held: Array, shared: bool) -> Array:
        """The same of values that a state holds, which are ordinary ones; to be changed."""
        if self.kind == np.float64:
            return held.copy() if shared else held
        return np.array(self.numbers(held.reshape(-1))).reshape(held.shape)

    def values(self, numbers: Array) -> Array:
        if self.words is not None:
            words: Array = self.words[np.clip(numbers, 0, len(self.words) - 1)]
            return words
        return numbers.view(self.kind) if self.kind.kind == "M" else numbers.astype(self.kind, copy=False)

    def state(self, brackets: Brackets) -> State:
        held = self.values(brackets.held.reshape(-1)).reshape(brackets.held.shape)
        return {
            COUNT: brackets.counts, "below": brackets.below, "inside": brackets.inside,
            **dict(zip(HELD, held, strict=True)),
        }  # fmt: skip


def _coding(*values: Array) -> _Coding:
    kind = values[0].dtype
    if kind.kind != "T":
        return _Coding(kind)
    return _Coding(kind, np.unique(np.concatenate([*values, np.zeros(1, kind)])))


def _held(state: State) -> Array:
    """A row for each place of the brackets; what a step before made is taken as it is, and not to be changed."""
    columns = [state[name] for name in HELD]
    whole = columns[0].base
    if whole is not None and whole.shape == (WIDTH, len(columns[0])) and whole.dtype == columns[0].dtype:
        begins = [column.__array_interface__["data"][0] for column in columns]
        rows = [row.__array_interface__["data"][0] for row in whole]
        if begins == rows and all(column.flags.c_contiguous for column in columns):
            return whole
    return np.stack(columns)


def _brackets(coding: _Coding, state: State, held: Array) -> Brackets:
    """Brackets that may be changed."""
    numbers = coding.kept(held, any(np.may_share_memory(held, state[name]) for name in (HELD[0], HELD[-1])))
    return Brackets(numbers, *(np.array(state[name], np.int64) for name in ("below", "inside", COUNT)))


def _prepare(state: State, rows: Rows) -> tuple[_Coding, Brackets, Moving]:
    present = rows.there()
    values, bounds = np.asarray(rows.arguments[0]).reshape(-1), rows.starts
    if not present.all():
        there = np.flatnonzero(present)
        values, bounds = values[there], np.searchsorted(there, bounds)
    held = _held(state)
    coding = _coding(values, held.reshape(-1))
    moving = Moving(coding.numbers(values), bounds[:-1].copy(), bounds[1:].copy())
    return coding, _brackets(coding, state, held), moving


def _of_states(one: State, other: State) -> tuple[_Coding, Brackets, Moving, Mask]:
    """The values of other groups as what moves; and which groups are known well enough for that."""
    mine, theirs = _held(one), _held(other)
    coding = _coding(mine.reshape(-1), theirs.reshape(-1))
    whole = other["inside"] == other[COUNT]
    starts = np.arange(len(whole)) * WIDTH
    each = np.ascontiguousarray(coding.numbers(theirs.reshape(-1)).reshape(theirs.shape).T).reshape(-1)
    moving = Moving(each, starts, starts + np.where(whole, other["inside"], 0))
    known = whole & ((one["inside"] > 0) | (one[COUNT] == 0))
    return coding, _brackets(coding, one, mine), moving, known
