"""Aggregates over the nearest partners of each cell: computed again where the nearest can be others than before.

Which partners are nearest is no sum over pairs. What is kept of every left cell is how many partners it has, up to as
many as are asked for, and how far the last of them is. A cell that comes beyond it, or leaves from there, is not looked
at; only where one came or left before it, or where there are too few, all partners are looked for again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column as Values
from windrow.aggregates.states.layout import PAIRS, Layout
from windrow.aggregates.states.rule import COUNT, State
from windrow.aggregates.states.units import PREFIX
from windrow.expressions.nodes import Node
from windrow.expressions.types import check
from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.model.arrow import arrow_to_block
from windrow.model.schema import Attribute
from windrow.model.types import TYPES
from windrow.operations.join.build import is_by_cell
from windrow.operations.join.sources import JoinedCells
from windrow.plan.bound import DISTANCE, BoundJoin, BoundJoined
from windrow.plan.pairs import sided_types
from windrow.storage.cells import cell_fields
from windrow.views.rules.alone import FOUND, Mask, chosen_results, counted
from windrow.views.rules.results import Patched
from windrow.views.rules.rows import Entering
from windrow.views.rules.sides import Int64Array, JoinRule

KNOWN, LAST = f"{PREFIX}known", f"{PREFIX}last"
"""Of how many of its nearest partners a cell knows how far they are, and how far the last of these is."""

SLACK = 1e-12
"""How much nearer than it seems a cell may be: distances are rounded, and looking at one cell more harms nobody."""

Places = list[Int64Array]


def why_not_patched(bound: BoundJoined) -> str | None:
    """Why all touched results are computed anew; None if only those whose nearest partners can be others are."""
    join = bound.source
    assert join.nearest is not None
    if join.nearest.mutual:
        return "which partners are each other's nearest is looked up again"
    if not is_by_cell(bound) or not bound.schema.sparse or bound.step:
        return "which partners of a group's cells are nearest is looked up again"
    if bound.min_count:
        return "which results are of too few values is looked up again"
    kind = check(_distance(join), sided_types(join))
    return None if kind.is_integer or kind.is_float else "how near partners are is no number"


def _distance(join: BoundJoin) -> Node:
    assert join.nearest is not None
    return DISTANCE if join.nearest.by is None else join.nearest.by


def ranked(core: BoundJoined, own: bool) -> BoundJoined:
    """The left join with how far the nearest partners of every left cell are; with the view's own aggregates, too."""
    join = core.source
    made = counted(core)
    kind = check(_distance(join), sided_types(join))
    extent = ((KNOWN, Aggregate("count", LAST)), (LAST, Aggregate("max", LAST)))
    attributes = (Attribute(KNOWN, TYPES["int64"]), Attribute(LAST, kind, nullable=not kind.is_float))
    known = len(made.schema.attributes) if own else 1
    return replace(
        made,
        schema=replace(made.schema, attributes=(*made.schema.attributes[:known], *attributes)),
        source=replace(made.source, nearest=join.nearest),
        arguments=(*(made.arguments if own else ()), (LAST, _distance(join))),
        aggregates=(*made.aggregates[:known], *extent),
    )


@dataclass(frozen=True)
class NearestRule(JoinRule):
    """The rule of ``ranked`` joins, for a view of which ``core`` is the step that they stand for."""

    core: BoundJoined

    def patch(self) -> Patched:
        """Results of cells that came or left, and of those whose nearest partners can be others than before."""
        cells, partners = self.side_changes()
        stay = self.staying(cells, partners)
        met = [self.finder.list_held(stay, others) for others in (partners.left, partners.came)]
        changed = stay.take(pa.array(self._changed(stay, met)))
        new, gone = self.places_of(cells.came), self.places_of(cells.left)
        lefts = pa.concat_tables([changed, cells.came.select(changed.column_names)]).combine_chunks()
        anew, vanished = self.places_of(lefts), ~found_in(gone, new)
        away = [column[vanished] for column in gone]
        self.store.load(anew, [away])
        results = self._evaluate(lefts)
        places = self.places_of(results)
        self.store.save(places, self._state(results))
        own = lefts.take(pa.array(match_cells(places, anew)))
        at = [np.concatenate(pair) for pair in zip(anew, away, strict=True)]
        pairs = sum(one.count for one in met)
        return Patched(at, chosen_results(self.core, results, own), 0, lefts.num_rows, pairs)

    def _changed(self, stay: pa.Table, met: list[Entering]) -> Int64Array:
        """The left rows of which a pair that came or left is among the nearest, or was."""
        rows = np.unique(np.concatenate([one.numbers for one in met]))
        numbers, states = self.store.load([column[rows] for column in self.places_of(stay)], [])
        found = [rows[:0]]
        for one in met:
            own = numbers[np.searchsorted(rows, one.numbers)]
            found.append(one.numbers[self._is_near(self._layout.take(states, own), one.columns[LAST])])
        return np.unique(np.concatenate(found))

    def _is_near(self, state: State, distance: Values) -> Mask:
        """Which pairs are no further than the last of the nearest that their left cell has, or it has too few.

        One of which nothing is kept has none.
        """
        assert self.core.source.nearest is not None
        finished = self._layout.finish(state)
        found, known, last = (finished[name].values for name in (FOUND, KNOWN, LAST))
        with np.errstate(invalid="ignore", over="ignore"):
            near = distance.values <= last + SLACK * np.abs(last)
        if distance.present is not None:
            near &= distance.present
        if distance.values.dtype.kind == "f":
            near &= ~np.isnan(distance.values)
        return np.asarray((found < self.core.source.nearest.count) | (known < found) | near)

    @property
    def _layout(self) -> Layout:
        return self.store.layout

    def _evaluate(self, lefts: pa.Table) -> pa.Table:
        if not lefts.num_rows:
            return cell_fields(self.after.schema).empty_table()
        reader = replace(self.finder.reader, left=self.finder.held(lefts), itself=False)
        return JoinedCells(reader, self.after.schema, self.after.box, (), self.wanted).read()

    def _state(self, results: pa.Table) -> State:
        """What is kept of results: each is one row, whose value is that of the last of the nearest."""
        count = results.num_rows
        last = {LAST: Values(*arrow_to_block(results.column(LAST)))}
        state = self._layout.reduce(last, np.arange(count + 1), np.ones(count, np.int64))
        (unit,) = self._layout.units
        counts = {PAIRS: results.column(FOUND).to_numpy(), unit.columns[COUNT]: results.column(KNOWN).to_numpy()}
        return {**state, **counts}
