"""States of counts and sums: of numbers, of their products, of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from windrow.aggregates.bounded import TINY, Bounded, Float64Array, exactly, two_product
from windrow.aggregates.states.rule import (
    COUNT,
    Array,
    Finished,
    Groups,
    Int64Array,
    Mask,
    State,
    StateRule,
    counted,
    taken,
    values_there,
    writable,
)
from windrow.errors import DataError
from windrow.model.types import TYPES, DataType

Term = tuple[int, ...]
"""How often each argument is a factor: (1,) is the sum of x, (2,) of its squares, (1, 1) of the products of x and y."""

PLAIN: Term = (1,)
SUM_LIMIT = 1e-13
"""The error of a sum, of the sum of absolute values, from which on it is computed anew."""
PARTS = ("high", "low", "error", "size", "drift")
"""What is kept of a sum of floats, besides its infinities."""
INFINITIES = ("plus", "minus")


def for_types(rule: StateRule | None, types: Sequence[DataType]) -> StateRule | None:
    """The rule for arguments of given types: whole numbers have sums of their own."""
    if isinstance(rule, SumRule) and rule.whole and not any(found.is_float for found in types):
        return WholeSumRule(rule.averages)
    return rule


# Counts


@dataclass(frozen=True)
class CountRule(StateRule):
    """How many values are present, whatever they are."""

    why = "values are counted"
    by_runs = True

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        return {}

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        return {COUNT: values_there(arguments, present).astype(np.int64)}

    def reduce(self, rows: Groups) -> State:
        return {COUNT: rows.count_there(rows.there())}

    def merge(self, one: State, other: State) -> State:
        return {COUNT: counted(one, other, 1)}

    def remove(self, one: State, other: State) -> State:
        return {COUNT: counted(one, other, -1)}

    def finish(self, state: State) -> Finished:
        never = np.zeros(len(state[COUNT]), bool)
        return Finished(state[COUNT], never, never)


# Sums


class Sums(NamedTuple):
    """What is known of the sums of a term: each a number with its bound, and the infinities that are in them."""

    value: Bounded
    gross: Float64Array
    drift: Float64Array
    plus: Int64Array
    minus: Int64Array

    @property
    def size(self) -> Float64Array:
        """At least so large is the sum of absolute values."""
        with np.errstate(invalid="ignore"):
            # Of what is not known, whose size and drift are infinite, nothing is certain.
            return np.asarray(np.fmax(self.gross - self.drift, 0.0))

    @property
    def finite(self) -> Mask:
        return np.asarray((self.plus == 0) & (self.minus == 0))

    def real(self) -> Float64Array:
        """The sum as a double; opposite infinities make none."""
        with np.errstate(invalid="ignore", over="ignore"):
            found = self.value.high + self.value.low
        if not self.plus.any() and not self.minus.any():
            return found
        found = np.where(self.plus > 0, np.inf, found)
        found = np.where(self.minus > 0, -np.inf, found)
        return np.where((self.plus > 0) & (self.minus > 0), np.nan, found)


FinishSums = Callable[[Int64Array, Mapping[Term, Sums]], tuple[Float64Array, Mask, Mask]]
"""From counts and sums to results, where they are missing, and where they are not known well enough."""


@dataclass(frozen=True)
class SumRule(StateRule):
    """An aggregate of sums of products of its arguments. ``least`` is how many values make a result."""

    why = "sums are kept to 32 digits, with a bound on their error"
    by_runs = True

    terms: tuple[Term, ...]
    finish_sums: FinishSums
    least: int = 1
    whole: bool = False
    """Whether sums of whole numbers are whole."""
    averages: bool = False

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        kinds = dict.fromkeys(PARTS, "float64") | {"plus": "int64", "minus": "int64"}
        return {_name(term, part): TYPES[kind] for term in self.terms for part, kind in kinds.items()}

    def reduce(self, rows: Groups) -> State:
        if rows.few and self.terms == (PLAIN,):
            return _enter({}, rows, np.full(rows.groups, -1, np.int64))
        there = rows.there()
        reals = [writable(np.asarray(values, np.float64)) for values in rows.arguments]
        if not there.all():
            reals = [np.where(there, values, 0.0) for values in reals]
        room = [(np.zeros((len(PARTS), rows.groups)), np.zeros((2, rows.groups), np.int64)) for _ in self.terms]
        for begin, end, starts, stops in rows.ranges():
            for term, (sums, infinities) in zip(self.terms, room, strict=True):
                # Parts of groups are next to one another in memory for as long as they are folded.
                some, boundless = np.zeros((len(PARTS), end - begin)), np.zeros((2, end - begin), np.int64)
                _fold(term, reals, there, (starts, stops), (some, boundless))
                sums[:, begin:end], infinities[:, begin:end] = some, boundless
        state: dict[str, Array] = {COUNT: rows.count_there(there)}
        for term, found in zip(self.terms, room, strict=True):
            named = zip((*PARTS, *INFINITIES), (*found[0], *found[1]), strict=True)
            state |= {_name(term, part): values for part, values in named}
        return state

    def enter(self, state: State, rows: Any, at: Int64Array | None = None) -> State:
        if self.terms != (PLAIN,) or not rows.one_each:
            return super().enter(state, rows, at)
        return _enter(state, rows, np.arange(rows.groups) if at is None else at)

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        reals = [np.asarray(values, np.float64).reshape(-1) for values in arguments]
        there = values_there(arguments, present)
        state: dict[str, Array] = {COUNT: there.astype(np.int64)}
        for term in self.terms:
            state |= _lift(term, reals, there)
        return state

    def merge(self, one: State, other: State) -> State:
        return self._combine(one, other, 1)

    def remove(self, one: State, other: State) -> State:
        return self._combine(one, other, -1)

    def _combine(self, one: State, other: State, sign: int) -> State:
        counts = counted(one, other, sign)
        state: dict[str, Array] = {COUNT: counts}
        for term in self.terms:
            state |= _join(term, one, other, sign, counts == 0)
        return state

    def finish(self, state: State) -> Finished:
        counts = state[COUNT]
        sums = {term: _sums(term, state) for term in self.terms}
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            values, missing, doubtful = self.finish_sums(counts, sums)
        lacking = counts < self.least
        return Finished(values, missing | lacking, doubtful & ~lacking)


def _fold(
    term: Term, reals: Sequence[Float64Array], there: Mask, rows: tuple[Array, Array], room: tuple[Array, Array]
) -> None:
    from windrow.kernels.states.sums import fold_products, fold_values

    if sum(term) == 1:
        fold_values(reals[term.index(1)], there, *rows, *room)
    else:
        fold_products(reals[0], reals[-1], np.array([*term, 0][:2]), there, *rows, *room)


def _enter(state: State, rows: Groups, at: Int64Array) -> State:
    """The sums of groups after their rows came, of values as they are; ``at`` as ``enter`` has it."""
    from windrow.kernels.states.entering import enter_sums

    names = [COUNT, *(_name(PLAIN, part) for part in (*PARTS, *INFINITIES))]
    empty = {name: np.zeros(0, np.int64 if name.endswith((COUNT, *INFINITIES)) else np.float64) for name in names}
    if not all(state[name].flags.writeable for name in names if state):  # of what is not, all would be copied
        state, at = taken(state, at), np.arange(len(at))
    old = tuple(writable((state or empty)[name]) for name in names)
    values = writable(np.asarray(rows.arguments[0], np.float64))
    present = np.zeros(0, bool) if rows.present is None else writable(np.asarray(rows.present, bool))
    at = writable(at)
    counts, sums = np.zeros(len(at), np.int64), np.zeros((len(PARTS), len(at)))
    infinities = np.zeros((len(INFINITIES), len(at)), np.int64)
    for begin, _, starts, stops in rows.narrow_ranges():
        enter_sums(values, present, starts, stops, begin, at, old, counts, sums, infinities)
    return dict(zip(names, (counts, *sums, *infinities), strict=True))


def _name(term: Term, part: str) -> str:
    return "".join("xy"[number] * times for number, times in enumerate(term)) + "_" + part


def _lift(term: Term, reals: Sequence[Float64Array], there: Mask) -> dict[str, Array]:
    """One value's product for a term: exact up to two factors, to about 32 digits beyond."""
    factors = [reals[number] for number, times in enumerate(term) for _ in range(times)]
    with np.errstate(invalid="ignore", over="ignore"):
        product = exactly(factors[0])
        if len(factors) > 1:
            high, low = two_product(factors[0], factors[1])
            # A product of two numbers that are not 0 may be too small for a double, and then is not 0 either.
            product = Bounded(high, low, np.where((factors[0] == 0) | (factors[1] == 0), 0.0, TINY))
        for factor in factors[2:]:
            product = product.times(exactly(factor))
        plain = np.prod(np.stack(factors), axis=0)
    boundless = ~np.logical_and.reduce([np.isfinite(factor) for factor in factors])
    known = there & ~boundless
    # Finite factors whose product is not: the sum is not known while such a value is in it.
    beyond = known & ~np.isfinite(product.high + product.low)
    kept = known & ~beyond
    return {
        _name(term, "high"): np.where(kept, product.high, 0.0),
        _name(term, "low"): np.where(kept, product.low, 0.0),
        _name(term, "error"): np.where(kept, product.error, np.where(beyond, np.inf, 0.0)),
        _name(term, "size"): np.where(kept, np.abs(product.high), np.where(beyond, np.inf, 0.0)),
        _name(term, "drift"): np.zeros(len(there)),
        # A product that is not a number counts as both infinities, whose sum is none either.
        _name(term, "plus"): (there & boundless & ~(plain < 0)).astype(np.int64),
        _name(term, "minus"): (there & boundless & ~(plain > 0)).astype(np.int64),
    }


def _join(term: Term, one: State, other: State, sign: int, emptied: Mask) -> dict[str, Array]:
    from windrow.kernels.states.sums import join_groups

    kept = [_parts(term, state, PARTS) for state in (one, other)]
    boundless = [_parts(term, state, INFINITIES) for state in (one, other)]
    sums, infinities = np.empty((len(PARTS), len(emptied))), np.empty((len(INFINITIES), len(emptied)), np.int64)
    join_groups(*kept, *boundless, float(sign), emptied, sums, infinities)
    named = zip((*PARTS, *INFINITIES), (*sums, *infinities), strict=True)
    return {_name(term, part): values for part, values in named}


def _parts(term: Term, state: State, parts: Sequence[str]) -> tuple[Array, ...]:
    return tuple(writable(state[_name(term, part)]) for part in parts)


def _number(term: Term, state: State) -> Bounded:
    return Bounded(*(state[_name(term, part)] for part in ("high", "low", "error")))


def _sums(term: Term, state: State) -> Sums:
    return Sums(_number(term, state), *(state[_name(term, part)] for part in ("size", "drift", "plus", "minus")))


# Whole sums


@dataclass(frozen=True)
class WholeSumRule(StateRule):
    """Sums and averages of whole numbers: an upper and a lower half, each of which int64 holds."""

    averages: bool
    why = "sums of whole numbers are kept exactly, in 96 bits"
    by_runs = True

    @property
    def units(self) -> tuple[StateRule, ...]:
        return (WholeSumRule(averages=False),)

    def parts(self, types: Sequence[DataType]) -> dict[str, DataType]:
        return {"upper": TYPES["int64"], "lower": TYPES["int64"]}

    def reduce(self, rows: Groups) -> State:
        from windrow.kernels.states.sums import fold_whole

        there, values = rows.there(), writable(_wide(rows.arguments[0]))
        upper, lower = np.zeros(rows.groups, np.int64), np.zeros(rows.groups, np.int64)
        for begin, end, starts, stops in rows.ranges():
            fold_whole(values, there, starts, stops, upper[begin:end], lower[begin:end])
        return {COUNT: rows.count_there(there), "upper": upper, "lower": lower}

    def of_values(self, arguments: Sequence[Array], present: Mask | None = None) -> State:
        wide = _wide(arguments[0])
        there = values_there(arguments, present)
        halves = ((wide >> wide.dtype.type(32)).astype(np.int64), (wide & wide.dtype.type(2**32 - 1)).astype(np.int64))
        upper, lower = (np.where(there, half, 0) for half in halves)
        return {COUNT: there.astype(np.int64), "upper": upper, "lower": lower}

    def merge(self, one: State, other: State) -> State:
        return self._combine(one, other, 1)

    def remove(self, one: State, other: State) -> State:
        return self._combine(one, other, -1)

    def _combine(self, one: State, other: State, sign: int) -> State:
        counts = counted(one, other, sign)
        lower = one["lower"] + sign * other["lower"]
        upper = one["upper"] + sign * other["upper"] + (lower >> 32)
        return {COUNT: counts, "upper": upper, "lower": lower & (2**32 - 1)}

    def finish(self, state: State) -> Finished:
        upper, lower, counts = state["upper"], state["lower"], state[COUNT]
        never = np.zeros(len(counts), bool)
        if self.averages:
            total = upper.astype(np.float64) * 2.0**32 + lower
            return Finished(total / np.maximum(counts, 1), counts < 1, never)
        if ((upper < -(2**31)) | (upper >= 2**31)).any():
            raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
        return Finished((upper << 32) | lower, counts < 1, never)


def _wide(values: Array) -> Array:
    flat = np.asarray(values).reshape(-1)
    return flat if flat.dtype == np.uint64 else flat.astype(np.int64)
