"""The states of all results of a view that is stored by position, made when it is built.

Positions are few, and each is looked at by every batch near it: to make its state later means to read all cells around
it. Other views have states for each cell, of which most are never touched again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.operations.join.sources import JoinedCells
from windrow.operations.query.run import source_of
from windrow.operations.query.sparse_run import insert_computed
from windrow.operations.query.standing import OnSource
from windrow.plan.bound import Bound, BoundJoined, LabelItems
from windrow.storage.cells import cell_fields, coordinates
from windrow.views.reduced.form import positions_in
from windrow.views.rules.choose import core_of
from windrow.views.rules.pairs import PairFinder
from windrow.views.rules.sides import find_pairs
from windrow.views.state_store import StateStore


def keep_states(engine: Engine, store: StateStore | None, bound: Bound) -> str | None:
    """Keep the states of all results, if they are of positions and have any; the array that was made for them."""
    core, left = core_of(bound), positions_in(bound)
    if store is None or left is None or bound.box.is_empty or not isinstance(core, BoundJoined):
        return None
    store.forget_all()
    working = store.opened()
    source: JoinedCells = source_of(engine, core)
    states = StateCells(source, replace(working.schema, sparse=True), source.box, (), find_pairs(engine, core))
    insert_computed(engine, working, states)
    working.note("patch")
    store.transaction.maintained.add(store.name)
    return store.name if working.made is not None else None


@dataclass(frozen=True)
class StateCells(OnSource):
    """What is kept of each result of a join, computed when it is read. It pickles."""

    source: JoinedCells
    """The results themselves, which are read from the same cells."""
    schema: Schema
    box: Box
    label_items: LabelItems
    finder: PairFinder

    def cells_in(self, box: Box) -> int:
        return self.source.cells_in(box)

    def cells_decoded(self, results: Box) -> int:
        return self.source.cells_decoded(results)

    def touched_bytes(self, results: Box) -> int:
        return self.source.touched_bytes(results)

    def task_bytes(self, results: Box) -> int:
        return self.source.task_bytes(results) + self.cells_in(results) * self.schema.cell_bytes

    def within(self, results: Box) -> StateCells:
        inside = results & self.box
        if inside.is_empty:
            return self
        reader = self.finder.reader.within(inside)
        return replace(self, source=self.source.within(inside), finder=replace(self.finder, reader=reader))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        finder, layout = self.finder, self.finder.kept.layout
        left = finder.source.read(self.box if box is None else box & self.box, finder.left.attribute_names)
        held = replace(finder, reader=replace(finder.reader, left=finder.held(left), itself=False))
        state = held.reduce(left.num_rows)
        kept = np.flatnonzero(~layout.is_empty(state))
        at = [pa.array(column[kept]) for column in coordinates(left, finder.left)]
        columns = layout.to_arrow(layout.take(state, kept)).values()
        return pa.table([*at, *columns], schema=cell_fields(self.schema))
