"""Aggregates over groups of cells, or over all of them: patched by the cells that left and came."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.states.layout import Layout, state_layout
from windrow.aggregates.states.rule import State
from windrow.execution.engine import Engine
from windrow.kernels.sparse.matching import match_cells
from windrow.model.arrow import arrow_to_block
from windrow.model.box import Box
from windrow.plan.bound import BoundTotals
from windrow.plan.windows import needed_attributes
from windrow.storage.cells import coordinates
from windrow.views.changes import CellChange, net_tables
from windrow.views.evaluate import evaluate_cells
from windrow.views.regions import cluster_cells
from windrow.views.rules.pairs import can_order
from windrow.views.rules.results import Patched, Patcher, Touched
from windrow.views.rules.rows import Entering, number_places
from windrow.views.state_store import StateStore
from windrow.views.steps import Changes, cells_in, step_change

Int64Array = npt.NDArray[np.int64]


def totals_layout(bound: BoundTotals) -> Layout:
    """What is kept of each group."""
    types = {attribute.name: attribute.type for attribute in bound.source.schema.attributes}
    return state_layout(bound.aggregates, types)


def why_not_patched(bound: BoundTotals) -> str | None:
    """Why groups are not patched but computed anew where they are touched; None if they are patched."""
    kept = totals_layout(bound)
    if kept.recomputed:
        return f"{', '.join(kept.recomputed)} has no state from which a value can be taken out again"
    ordered = any(aggregate.definition.ordered for _, aggregate in bound.aggregates)
    return "cells have no order that a number could tell" if ordered and not can_order(bound.source.box) else None


@dataclass(frozen=True)
class TotalsRule:
    """The rule for one view at one batch."""

    engine: Engine
    before: BoundTotals
    after: BoundTotals
    changes: Changes
    store: StateStore

    def patch(self) -> Patched:
        """The groups that cells left or came to."""
        change = self._source_change()
        both = [np.concatenate(pair) for pair in zip(self._keys(change.left), self._keys(change.came), strict=True)]
        places, numbers = number_places(both) if self.after.schema.sparse else _number_box(both)
        cut = change.left.num_rows
        touched = Touched(places, self._rows(change.left, numbers[:cut]), self._rows(change.came, numbers[cut:]))
        nothing = [np.zeros(0, np.int64) for _ in places]
        return self._patcher.patch(touched, nothing, nothing)

    def _source_change(self) -> CellChange:
        found = step_change(self.engine, self.before.source, self.after.source, self.changes)
        return net_tables(found.schema.select(self._names), found.left, found.came)

    @property
    def _names(self) -> tuple[str, ...]:
        return needed_attributes(self.after.aggregates)

    def _keys(self, table: pa.Table) -> list[Int64Array]:
        """The coordinates of each cell's group; all cells are one group if there are no others."""
        names = self.after.source.schema.dimension_names
        found = [table.column(names[axis]).to_numpy() for axis in self.after.axes]
        return found or [np.zeros(table.num_rows, np.int64)]

    def _rows(self, table: pa.Table, numbers: Int64Array) -> Entering:
        columns = {name: Column(*arrow_to_block(table.column(name))) for name in self._names}
        if any(aggregate.definition.ordered for _, aggregate in self.after.aggregates):
            keys, box = np.zeros(table.num_rows, np.int64), self.after.source.box
            at = coordinates(table, self.after.source.schema)
            for column, lo, extent in zip(at, box.lo, box.shape, strict=True):
                keys = keys * extent + (column - lo)
            columns[PLACES] = Column(keys)
        return Entering(numbers, columns)

    @cached_property
    def _patcher(self) -> Patcher:
        layout = totals_layout(self.after)
        return Patcher(layout, self.store, self.after.schema, self._reduce, self._evaluate, self.after.scalar)

    def _reduce(self, places: list[Int64Array]) -> State:
        """The states of all cells of some groups."""
        source = self.after.source
        boxes = [self._source_box(box) for box in cluster_cells(places, self.after.schema.grid)]
        table = cells_in(self.engine, source, boxes)
        numbers = match_cells(self._keys(table), places)
        kept = np.flatnonzero(numbers >= 0)
        rows = self._rows(table.take(pa.array(kept)), numbers[kept])
        return totals_layout(self.after).reduce(*rows.sorted_into(len(places[0])))

    def _source_box(self, groups: Box) -> Box:
        lo, hi = list(self.after.source.box.lo), list(self.after.source.box.hi)
        for number, axis in enumerate(self.after.axes):
            lo[axis], hi[axis] = max(lo[axis], groups.lo[number]), min(hi[axis], groups.hi[number])
        return Box(tuple(lo), tuple(hi))

    def _evaluate(self, places: list[Int64Array]) -> pa.Table:
        found = evaluate_totals(self.engine, self.after, cluster_cells(places, self.after.schema.grid))
        numbers = match_cells(coordinates(found, self.after.schema), places)
        return found.filter(pa.array(numbers >= 0))


def _number_box(at: list[Int64Array]) -> tuple[list[Int64Array], Int64Array]:
    """All places of the box that holds some, and the number of each of those: a dense result is written by boxes."""
    if not len(at[0]):
        return [column.astype(np.int64) for column in at], np.zeros(0, np.int64)
    sides = [np.arange(int(column.min()), int(column.max()) + 1) for column in at]
    places = [place.reshape(-1) for place in np.meshgrid(*sides, indexing="ij")]
    return places, match_cells(at, places)


def evaluate_totals(engine: Engine, bound: BoundTotals, boxes: list[Box]) -> pa.Table:
    """Groups in some boxes as cells, also of a dense array."""
    if bound.schema.sparse:
        return evaluate_cells(engine, bound, boxes)
    return cells_in(engine, bound, boxes)
