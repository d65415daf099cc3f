"""Which state each aggregate needs, which of them can be shared, and the columns that they are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.states.rule import COUNT, Array, Int64Array, Rows, State, StateRule
from windrow.aggregates.states.sums import CountRule, SumRule, for_types
from windrow.model.types import TYPES, DataType

if TYPE_CHECKING:
    from windrow.aggregates.states.runs import RunRows, Runs

PREFIX = "__windrow_"
PATCHED, RECOMPUTED = "patched", "recomputed"

Grouping: TypeAlias = "Int64Array | Runs"
"""Where the rows of each group begin, and the last ends; or runs of cells."""


@dataclass(frozen=True)
class Measure:
    """How one aggregate is maintained; ``rule`` is None if it keeps no state, or only counts pairs."""

    name: str
    aggregate: Aggregate
    result: DataType
    rule: StateRule | None
    columns: Mapping[str, str]
    """From the parts of the rule's state to columns of the table."""
    way: str
    why: str


@dataclass(frozen=True)
class Unit:
    """A state that is kept of some arguments."""

    rule: StateRule
    arguments: tuple[str, ...]
    columns: Mapping[str, str]
    types: Mapping[str, DataType]

    def part(self, state: State) -> State:
        return {part: state[column] for part, column in self.columns.items()}

    def named(self, part: State) -> dict[str, Array]:
        return {self.columns[name]: values for name, values in part.items()}

    def rows(self, columns: Mapping[str, Column], grouping: Grouping) -> Rows | RunRows:
        """The rows at which all arguments are present, in the form that the rule takes."""
        given = [columns[name] for name in self.arguments]
        masks = [column.present for column in given if column.present is not None]
        present = np.logical_and.reduce([mask.reshape(-1) for mask in masks]) if masks else None
        values = tuple(column.values for column in given)
        if isinstance(grouping, np.ndarray):
            return Rows(values, present, grouping)
        found = grouping.rows(values, present)
        return found if self.rule.by_runs else found.listed()


def state_rule(aggregate: Aggregate, types: Mapping[str, DataType]) -> StateRule | None:
    """The rule of an aggregate's state for arguments of given types; None if it keeps none of its own."""
    if aggregate.attribute is None:
        return None
    definition = aggregate.definition
    found = [types[name] for name in aggregate.attributes]
    if definition.ranks is not None:
        from windrow.aggregates.states.order import BracketRule

        return BracketRule(definition.ranks, aggregate.fraction)
    if aggregate.user is not None:
        if not aggregate.user.exact_remove:
            return None
        from windrow.aggregates.states.user import user_rule

        return user_rule(aggregate.user.functions, aggregate.user.result, found[0])
    return for_types(definition.state, found)


Needed = Iterable[tuple[Aggregate, StateRule | None]]


def shared_units(needed: Needed, types: Mapping[str, DataType]) -> tuple[Unit, ...]:
    """What is kept for some aggregates, each state once."""
    found: dict[tuple[tuple[str, ...], object], StateRule] = {}
    for aggregate, rule in needed:
        for unit in () if rule is None else rule.units:
            # All sums of products of the same arguments are one state, which has what any of them needs.
            key = (_arguments(aggregate), SumRule if isinstance(unit, SumRule) else unit)
            known = found.get(key)
            found[key] = unit if known is None else _unite(known, unit)
    counted = {_counted(arguments) for (arguments, _), rule in found.items() if not isinstance(rule, CountRule)}
    kept = [
        (arguments, rule)
        for (arguments, _), rule in found.items()
        if not (isinstance(rule, CountRule) and _counted(arguments) in counted)
    ]
    numbers = {own: number for number, own in enumerate(dict.fromkeys(_counted(arguments) for arguments, _ in kept))}
    return tuple(
        _unit(rule, arguments, types, (number, numbers[_counted(arguments)]))
        for number, (arguments, rule) in enumerate(kept)
    )


def measure_of(
    name: str,
    aggregate: Aggregate,
    rule: StateRule | None,
    types: Mapping[str, DataType],
    units: Sequence[Unit],
) -> Measure:
    """How an aggregate is maintained with what is kept."""
    if aggregate.attribute is None:
        return Measure(name, aggregate, TYPES["int64"], None, {}, PATCHED, "rows are counted")
    result = aggregate.definition.result(types[aggregate.attribute])
    if rule is None:
        return Measure(name, aggregate, result, None, {}, RECOMPUTED, _reason(aggregate))
    own = _arguments(aggregate)
    wanted = {COUNT, *rule.parts([types[argument] for argument in aggregate.attributes])}
    columns: dict[str, str] = {}
    for unit in units:
        if unit.arguments == own or (wanted == {COUNT} and _counted(unit.arguments) == _counted(own)):
            serves = any(_serves(unit.rule, needed) for needed in rule.units) or wanted == {COUNT}
            columns |= {part: column for part, column in unit.columns.items() if serves and part in wanted}
    return Measure(name, aggregate, result, rule, columns, PATCHED, rule.why)


def _unit(rule: StateRule, arguments: tuple[str, ...], types: Mapping[str, DataType], at: tuple[int, int]) -> Unit:
    own, counts = at
    parts = rule.parts([types[name] for name in _counted(arguments)])
    columns = {part: f"{PREFIX}{own}_{part}" for part in parts}
    kinds = {columns[part]: kind for part, kind in parts.items()}
    columns[COUNT] = f"{PREFIX}count_{counts}"
    return Unit(rule, arguments, columns, {columns[COUNT]: TYPES["int64"], **kinds})


def _unite(known: StateRule, unit: StateRule) -> StateRule:
    if isinstance(known, SumRule) and isinstance(unit, SumRule):
        return replace(known, terms=tuple(dict.fromkeys((*known.terms, *unit.terms))))
    return known


def _serves(kept: StateRule, needed: StateRule) -> bool:
    return kept == needed or (isinstance(kept, SumRule) and isinstance(needed, SumRule))


def _arguments(aggregate: Aggregate) -> tuple[str, ...]:
    return (*aggregate.attributes, PLACES) if aggregate.definition.ordered else aggregate.attributes


def _counted(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments whose values are counted."""
    return tuple(name for name in arguments if name != PLACES)


def _reason(aggregate: Aggregate) -> str:
    if aggregate.user is not None:
        return "its remove is not declared exact: touched cells are computed again"
    return f"{aggregate.name} keeps no state: touched cells are computed again"
