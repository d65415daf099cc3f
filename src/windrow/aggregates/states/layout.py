"""Layouts: which states a view keeps of its groups, as columns of a table, for all of its aggregates together.

>>> import numpy as np
>>> from windrow.aggregates.aggregate import Aggregate
>>> from windrow.aggregates.columns import Column
>>> from windrow.model.types import TYPES
>>> asked = (("n", Aggregate("count", None)), ("mean", Aggregate("avg", "x")), ("top", Aggregate("max", "x")))
>>> layout = state_layout(asked, {"x": TYPES["float64"]})
>>> state = layout.reduce({"x": Column(np.array([1.0, 3.0, 5.0]))}, np.array([0, 2, 3]))  # groups {1, 3} and {5}
>>> state = layout.leave(state, {"x": Column(np.array([3.0]))}, np.array([0, 1, 1]))  # 3 leaves the first
>>> state = layout.enter(state, {"x": Column(np.array([7.0]))}, np.array([0, 0, 1]))  # 7 comes to the second
>>> finished = layout.finish(state)
>>> finished["mean"].values.tolist(), finished["top"].recompute.tolist()
([1.0, 6.0], [True, False])

A *state* is a mapping from column names to arrays, one entry for each group; the names begin with ``__windrow_`` and
are those of ``layout.attributes``. ``take``, ``concatenate`` and ``empty`` (groups without rows) bring tables of the
same groups together; ``to_arrow`` and ``from_arrow`` go to the store and back. What is shared (the sums of one x, the
extremes of min and range) is kept once.

Where ``finish`` says ``recompute``, the aggregate has to be evaluated on all rows of the group, and the group's state
replaced by the ``reduce`` of those rows: the evaluated value counts, whatever the fresh state finishes to. Aggregates
that keep no state (``layout.measures``) ask for it wherever a group has rows.

Rows leave before others come, so that a replaced value never stands beside its old one. What leaves and is not there
raises an AbsentError. ``first`` and ``last`` need the column ``PLACES``: whole numbers in the order of cells, no two
alike in a group.

Rows are given group by group, or as ``Runs``: neighbourhoods of cells, which are folded without listing their cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column
from windrow.aggregates.states.rule import COUNT, AbsentError, Array, Finished, Int64Array, Mask, State, taken
from windrow.aggregates.states.units import (
    PREFIX,
    RECOMPUTED,
    Grouping,
    Measure,
    Unit,
    measure_of,
    shared_units,
    state_rule,
)
from windrow.model.schema import Attribute
from windrow.model.types import TYPES, DataType

if TYPE_CHECKING:
    import pyarrow as pa

PAIRS, ROWS = f"{PREFIX}pairs", f"{PREFIX}rows"
"""How many rows (of a join: pairs) a group has; in left joins also how many left cells, with or without a partner."""


@dataclass(frozen=True)
class Layout:
    """What is kept of each group, and how it becomes results."""

    measures: tuple[Measure, ...]
    units: tuple[Unit, ...]
    counters: tuple[str, ...] = (PAIRS,)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns of the table of states."""
        types = dict.fromkeys(self.counters, TYPES["int64"])
        for unit in self.units:
            types |= unit.types
        return tuple(Attribute(name, kind) for name, kind in types.items())

    @property
    def counts(self) -> tuple[str, ...]:
        """The columns that say how many rows or values there are: never fewer than none."""
        return tuple(dict.fromkeys([*self.counters, *(unit.columns[COUNT] for unit in self.units)]))

    @property
    def arguments(self) -> tuple[str, ...]:
        """The columns of rows that states are made of; ``PLACES`` among them if the order of rows matters."""
        return tuple(dict.fromkeys(name for unit in self.units for name in unit.arguments))

    @property
    def recomputed(self) -> tuple[str, ...]:
        """The aggregates that keep no state."""
        return tuple(measure.name for measure in self.measures if measure.way == RECOMPUTED)

    def reduce(self, columns: Mapping[str, Column], grouping: Grouping, rows: Int64Array | None = None) -> State:
        """The state of each group of rows; ``rows`` is how many left cells each group has, in left joins."""
        state: dict[str, Array] = {}
        for unit in self.units:
            given = unit.rows(columns, grouping)
            state |= unit.named(given.spread(unit.rule.reduce(given)))
        # Last, since whoever looks at runs of cells also finds out how many cells there are.
        return self._count(grouping, rows) | state

    def merge(self, one: State, other: State) -> State:
        """Both tables' groups together, one by one."""
        state = {name: one[name] + other[name] for name in self.counters}
        for unit in self.units:
            state |= unit.named(unit.rule.merge(unit.part(one), unit.part(other)))
        return state

    def remove(self, one: State, other: State) -> State:
        """The groups of ``one`` without the rows of ``other``, which are among them."""
        state = self._without(one, {name: other[name] for name in self.counters})
        for unit in self.units:
            state |= unit.named(unit.rule.remove(unit.part(one), unit.part(other)))
        return state

    def fold(self, state: State, numbers: Int64Array, groups: int) -> State:
        """The states of so many groups, put together of states of which ``numbers`` says what group each belongs to."""
        order = np.argsort(numbers, kind="stable")
        numbers, state = numbers[order], self.take(state, order)
        while True:
            first = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))[: len(numbers)]
            lengths = np.diff(np.append(first, len(numbers)))
            if not (lengths > 1).any():
                break
            ranks = np.arange(len(numbers)) - np.repeat(first, lengths)
            kept = np.flatnonzero(ranks % 2 == 0)
            beside = np.where(ranks[kept] + 1 < np.repeat(lengths, lengths)[kept], kept + 1, -1)
            state, numbers = self.merge(self.take(state, kept), self.take(state, beside)), numbers[kept]
        places = np.full(groups, -1, np.int64)
        places[numbers] = np.arange(len(numbers))
        return self.take(state, places)

    def enter(
        self,
        state: State,
        columns: Mapping[str, Column],
        grouping: Grouping,
        rows: Int64Array | None = None,
        at: Int64Array | None = None,
    ) -> State:
        """The groups with more rows; keeps more than ``merge`` with what ``reduce`` gives of them.

        With ``at`` the groups are those of the state that ``take`` would give for it, which takes less time than that.
        """
        changed: dict[str, Array] = {}
        for unit in self.units:
            changed |= unit.named(unit.rule.enter(unit.part(state), unit.rows(columns, grouping), at))
        known = {name: state[name] for name in self.counters}
        known = known if at is None else taken(known, at)
        return {name: known[name] + more for name, more in self._count(grouping, rows).items()} | changed

    def leave(
        self, state: State, columns: Mapping[str, Column], grouping: Grouping, rows: Int64Array | None = None
    ) -> State:
        """The groups without some rows; keeps more than ``remove`` with what ``reduce`` gives of them."""
        changed = self._without(state, self._count(grouping, rows))
        for unit in self.units:
            changed |= unit.named(unit.rule.leave(unit.part(state), unit.rows(columns, grouping)))
        return changed

    def finish(self, state: State, min_count: int = 0) -> dict[str, Finished]:
        """The results of all aggregates, by their names; of fewer than ``min_count`` values they are missing."""
        return {measure.name: self._finish(measure, state, min_count) for measure in self.measures}

    def is_empty(self, state: State) -> Mask:
        """Which groups are gone: those without rows, in left joins without left cells."""
        return np.asarray(state[self.counters[-1]] == 0)

    def empty(self, groups: int) -> State:
        """So many groups without rows."""
        return {attribute.name: np.zeros(groups, attribute.type.dtype) for attribute in self.attributes}

    def take(self, state: State, places: Int64Array) -> State:
        """The states of some groups, in the order asked for; -1 asks for one without rows."""
        return taken({attribute.name: state[attribute.name] for attribute in self.attributes}, np.asarray(places))

    def concatenate(self, states: Iterable[State]) -> State:
        """The groups of several tables, one after the other."""
        tables = [self.empty(0), *states]
        return {attribute.name: np.concatenate([t[attribute.name] for t in tables]) for attribute in self.attributes}

    def to_arrow(self, state: State) -> dict[str, pa.Array]:
        """The columns of the table, by name."""
        from windrow.model.arrow import block_to_arrow

        return {a.name: block_to_arrow(state[a.name].astype(a.type.dtype, copy=False)) for a in self.attributes}

    def from_arrow(self, table: pa.Table) -> State:
        """The states in the rows of a table."""
        from windrow.model.arrow import arrow_to_block

        return {a.name: arrow_to_block(table.column(a.name))[0] for a in self.attributes}

    def _count(self, grouping: Grouping, rows: Int64Array | None) -> dict[str, Array]:
        found = {PAIRS: np.diff(grouping) if isinstance(grouping, np.ndarray) else grouping.sizes}
        if ROWS in self.counters:
            found[ROWS] = np.zeros(len(found[PAIRS]), np.int64) if rows is None else np.asarray(rows, np.int64)
        return found

    def _without(self, one: State, other: State) -> dict[str, Array]:
        left = {name: one[name] - other[name] for name in self.counters}
        for counts in left.values():
            if (counts < 0).any():
                raise AbsentError("more rows leave a group than it has", got=int(counts.min()))
        return left

    def _finish(self, measure: Measure, state: State, min_count: int) -> Finished:
        pairs = state[PAIRS]
        if measure.way == RECOMPUTED:
            # Of what is computed anew, those who do it find out how many values there are.
            lacking = pairs < max(min_count, min(measure.aggregate.definition.least, 1))
            return Finished(np.zeros(len(pairs), measure.result.dtype), lacking, (pairs > 0) & ~lacking)
        if measure.rule is None:
            return Finished(pairs, pairs < min_count, np.zeros(len(pairs), bool))
        parts = {part: state[column] for part, column in measure.columns.items()}
        values, missing, recompute = measure.rule.finish(parts)
        lacking = parts[COUNT] < min_count
        return Finished(values.astype(measure.result.dtype, copy=False), missing | lacking, recompute & ~lacking)


def state_layout(
    aggregates: Sequence[tuple[str, Aggregate]], types: Mapping[str, DataType], counters: tuple[str, ...] = (PAIRS,)
) -> Layout:
    """The layout for aggregates of arguments of given types; left joins count ``(PAIRS, ROWS)``."""
    rules = [state_rule(aggregate, types) for _, aggregate in aggregates]
    units = shared_units([(one, rule) for (_, one), rule in zip(aggregates, rules, strict=True)], types)
    measures = [measure_of(name, one, rule, types, units) for (name, one), rule in zip(aggregates, rules, strict=True)]
    return Layout(tuple(measures), units, counters)
