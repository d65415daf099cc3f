"""What a fold keeps of groups: counts, sums, moments and extremes of each argument, joined in a stated order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.folds import COUNT, MAX, MIN, SQUARES, SUM, Primitive, outcome_of_sums
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.kernels.folds.extremes import KeyRule
from windrow.model.types import DataType

Array = npt.NDArray[Any]
_HALF = 32


@dataclass(frozen=True)
class Kept:
    """What is kept of one argument; of the cells themselves, only how many there are."""

    argument: str | None
    type: DataType | None
    operations: frozenset[str]

    @property
    def is_float(self) -> bool:
        return self.type is not None and self.type.is_float

    @property
    def totals(self) -> bool:
        """Whether values are added."""
        return bool(self.operations & {SUM, SQUARES})

    @property
    def extremes(self) -> list[KeyRule]:
        if self.type is None:
            return []
        wanted = [(MIN, False), (MAX, True)]
        return [KeyRule(self.type.dtype, largest) for name, largest in wanted if name in self.operations]

    def bytes(self) -> int:
        """For one group."""
        sums = 16 if self.totals else 0
        moments = 16 if SQUARES in self.operations else 0
        return 8 + sums + moments + sum(1 + rule.dtype.itemsize for rule in self.extremes)


def kept_of(primitives: Iterable[Primitive], types: dict[str, DataType]) -> tuple[Kept, ...]:
    """What has to be kept, by argument, in an order that does not change."""
    found: dict[str | None, set[str]] = {}
    for argument, operation in primitives:
        found.setdefault(argument, set()).add(operation)
    ordered = sorted(found, key=lambda name: (name is not None, name or ""))
    return tuple(Kept(name, None if name is None else types[name], frozenset(found[name])) for name in ordered)


@dataclass(eq=False)
class State:
    """What is kept of one argument for some groups, flat."""

    kept: Kept
    groups: int
    arrays: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.arrays:
            return
        kept, groups, arrays = self.kept, self.groups, self.arrays
        arrays["counts"] = np.zeros(groups, np.int64)
        if kept.totals:
            kind = np.float64 if kept.is_float or SQUARES in kept.operations else np.int64
            arrays["high"], arrays["low"] = np.zeros(groups, kind), np.zeros(groups, kind)
            if SQUARES in kept.operations:
                arrays["means"], arrays["squares"] = np.zeros(groups), np.zeros(groups)
                if not kept.is_float and SUM in kept.operations:
                    arrays["above"], arrays["below"] = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        for rule in kept.extremes:
            arrays[_name(rule, "best")] = np.full(groups, rule.lowest, rule.key_dtype)
            arrays[_name(rule, "seen")] = np.zeros(groups, np.uint8)

    def at(self, groups: slice | Array) -> State:
        """Some of the groups."""
        arrays = {name: values[groups] for name, values in self.arrays.items()}
        return State(self.kept, len(arrays["counts"]), arrays)

    def join(self, groups: slice | Array, other: State) -> None:
        """Add another state to those groups of this one; each is named once."""
        mine = {name: values[groups] for name, values in self.arrays.items()}
        theirs = other.arrays
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            if "squares" in mine:
                _join_moments(mine, theirs)
            if "high" in mine:
                _join_sums(mine, theirs)
        mine["counts"] = mine["counts"] + theirs["counts"]
        for name in mine:
            if name.startswith("best"):
                mine[name] = np.maximum(mine[name], theirs[name])
            elif name.startswith("seen"):
                mine[name] = mine[name] | theirs[name]
            elif name in ("above", "below"):
                mine[name] = mine[name] + theirs[name]
        for name, values in mine.items():
            self.arrays[name][groups] = values

    def put(self, groups: slice, other: State) -> None:
        """Make another state that of some groups, of which nothing is kept yet."""
        for name, values in self.arrays.items():
            values[groups] = other.arrays[name]

    def outcome(self, operation: str) -> Outcome:
        """A primitive of every group, as window kernels give it."""
        arrays = self.arrays
        if operation == COUNT:
            return Outcome(NO_VALUES, NO_VALUES, arrays["counts"])
        if operation == SQUARES:
            return Outcome(arrays["squares"], NO_VALUES, arrays["counts"])
        if operation == SUM:
            if self.kept.is_float:
                return outcome_of_sums(arrays["counts"], arrays["high"], arrays["low"])
            names = ("above", "below") if "above" in arrays else ("high", "low")
            return _whole_outcome(arrays["counts"], arrays[names[0]], arrays[names[1]])
        rule = KeyRule(self.kept.type.dtype, operation == MAX)  # type: ignore[union-attr]
        seen = arrays[_name(rule, "seen")].astype(np.int64)
        return Outcome(NO_VALUES, rule.values(arrays[_name(rule, "best")]), seen)


def _name(rule: KeyRule, what: str) -> str:
    return f"{what}_{MAX if rule.largest else MIN}"


def extreme_arrays(state: State, rule: KeyRule) -> tuple[Array, Array]:
    return state.arrays[_name(rule, "seen")], state.arrays[_name(rule, "best")]


def _join_sums(mine: dict[str, Array], theirs: dict[str, Array]) -> None:
    if mine["high"].dtype == np.int64:
        mine["high"], mine["low"] = mine["high"] + theirs["high"], mine["low"] + theirs["low"]
        return
    before, value = mine["high"], theirs["high"]
    total = before + value
    part = total - before
    mine["low"] = mine["low"] + theirs["low"] + ((before - (total - part)) + (value - part))
    mine["high"] = total


def _join_moments(mine: dict[str, Array], theirs: dict[str, Array]) -> None:
    before, count = mine["counts"], theirs["counts"]
    away = theirs["means"] - mine["means"]
    share = count / np.maximum(before + count, 1)
    means = mine["means"] + away * share
    squares = mine["squares"] + theirs["squares"] + away * away * before * share
    none, only = count == 0, before == 0
    mine["means"] = np.where(none, mine["means"], np.where(only, theirs["means"], means))
    mine["squares"] = np.where(none, mine["squares"], np.where(only, theirs["squares"], squares))


def _whole_outcome(counts: Array, high: Array, low: Array) -> Outcome:
    """Sums of whole numbers. One that int64 cannot hold is an error when it is asked for, but none for an average."""
    high = high + (low >> _HALF)
    low = low & (2**_HALF - 1)
    reals = high.astype(np.float64) * 2.0**_HALF + low.astype(np.float64)
    fits = (high >= -(2 ** (_HALF - 1))) & (high < 2 ** (_HALF - 1))
    if fits.all():
        return Outcome(reals, (high << _HALF) | low, counts)
    return Outcome(reals, np.full(len(high), 2**64 - 1, np.uint64), counts)
