"""Aggregates over the partners of each cell: patched by the pairs that left and came."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.state_layout import PAIRS, ROWS, Layout, state_layout
from windrow.execution.engine import Engine
from windrow.expressions.types import check
from windrow.model.schema import Schema
from windrow.operations.join.aggregates import Wanted
from windrow.operations.join.build import is_by_cell, join_reader
from windrow.operations.join.reader import FirstSide
from windrow.operations.join.sources import JoinedCells
from windrow.operations.query.run import source_of
from windrow.plan.bound import BoundJoined, makes_pairs
from windrow.plan.pairs import sided_types
from windrow.storage.cells import coordinates, found_in
from windrow.views.changes import CellChange, net_tables
from windrow.views.evaluate import read_boxes
from windrow.views.rules.pairs import PairLister, can_order, used_attributes
from windrow.views.rules.results import Patched, Patcher, Rows, Touched
from windrow.views.state_store import StateStore, match
from windrow.views.steps import Changes, step_change
from windrow.views.touched_joins import reaching_box

Int64Array = npt.NDArray[np.int64]


def joined_layout(bound: BoundJoined) -> Layout:
    """What is kept of each result of a join."""
    types = sided_types(bound.source)
    arguments = {name: check(node, types) for name, node in bound.arguments}
    counters = (PAIRS, ROWS) if bound.source.kind == "left" else (PAIRS,)
    return state_layout(bound.aggregates, arguments, counters)


def why_not_patched(bound: BoundJoined) -> str | None:
    """Why results are not patched but computed anew where they are touched; None if they are patched."""
    join = bound.source
    if not is_by_cell(bound) or not bound.schema.sparse or bound.step:
        return "results on a grid, or of groups of cells, are computed again where they are touched"
    if makes_pairs(join.left):
        return "partners in a chain of joins are looked for again"
    if join.nearest is not None:
        return "which partners are nearest is looked up again"
    if join.kind not in ("inner", "left") or (join.kind == "left" and join.where is not None):
        return "cells without a partner are looked for again"
    if join.sky is not None:
        return "distances on the sky are measured again"
    if bound.min_count:
        return "results of few values are missing, which is decided anew"
    kept = joined_layout(bound)
    if kept.recomputed:
        return f"{', '.join(kept.recomputed)} has no state from which a value can be taken out again"
    ordered = any(aggregate.definition.ordered for _, aggregate in bound.aggregates)
    return "cells have no order that a number could tell" if ordered and not can_order(join.right.box) else None


@dataclass(frozen=True)
class JoinedRule:
    """The rule for one view at one batch: the join as it was, as it is, and what changed below."""

    engine: Engine
    before: BoundJoined
    after: BoundJoined
    changes: Changes
    store: StateStore

    def patch(self) -> Patched:
        """Results of cells that came, left, or have other partners than before."""
        cells, partners = self._side_change(1), self._side_change(2)
        stay = self._staying(cells, partners)
        came = self.lister.with_held(stay, partners.came)
        left = self.lister.with_held(stay, partners.left)
        rows = np.union1d(came.numbers, left.numbers)
        renumbered = np.full(stay.num_rows, -1, np.int64)
        renumbered[rows] = np.arange(len(rows))
        touched = stay.take(pa.array(rows))
        new, gone = self._places(cells.came), self._places(cells.left)
        vanished = ~found_in(self.left_schema.grid, gone, new)
        return self._patcher(pa.concat_tables([touched, cells.came.select(touched.column_names)])).patch(
            Touched(self._places(touched), left.of(renumbered), came.of(renumbered)),
            new,
            [column[vanished] for column in gone],
        )

    # The two sides

    @property
    def left_schema(self) -> Schema:
        return self._used(1)

    def _used(self, number: int) -> Schema:
        """A side with those attributes that the results depend on."""
        join = self.after.source
        side = join.sides[number - 1].schema
        said = [node for node in (join.condition, join.where) if node is not None]
        names = used_attributes([*(node for _, node in self.after.arguments), *said], number)
        kept = tuple(attribute for attribute in side.attributes if attribute.name in names)
        return replace(side, attributes=kept, sparse=True)

    def _side_change(self, number: int) -> CellChange:
        """What happened to a side, as far as it matters: another value that nobody reads is no change."""
        before, after = (bound.source.sides[number - 1] for bound in (self.before, self.after))
        found = step_change(self.engine, before, after, self.changes)
        return net_tables(self._used(number), found.left, found.came)

    def _staying(self, cells: CellChange, partners: CellChange) -> pa.Table:
        """The left cells within reach of changed right cells, without those that came themselves."""
        source = self.lister.reader.left
        schema, whole = self.left_schema, self.after.source.left.box
        assert isinstance(source, FirstSide)
        reach = [reaching_box(self.after.source, box) & whole for box in partners.boxes]
        table = read_boxes(source.source, reach, schema)
        came = found_in(schema.grid, coordinates(table, schema), coordinates(cells.came, schema))
        return table.filter(pa.array(~came)).combine_chunks()

    def _places(self, table: pa.Table) -> list[Int64Array]:
        return coordinates(table, self.left_schema)

    # Rows of results

    @cached_property
    def lister(self) -> PairLister:
        join = self.after.source
        reader = join_reader(join, lambda side: source_of(self.engine, side))
        ordered = any(aggregate.definition.ordered for _, aggregate in self.after.aggregates)
        wanted = Wanted(self.after.arguments, tuple(aggregate for _, aggregate in self.after.aggregates))
        return PairLister(reader, self.left_schema, join.left.box, wanted.used(), ordered)

    def _patcher(self, lefts: pa.Table) -> Patcher:
        """What patches results, given all left cells that may be looked at."""
        at = self._places(lefts)

        def cells_at(places: list[Int64Array]) -> pa.Table:
            return lefts.take(pa.array(match(places, at)))

        def all_rows(places: list[Int64Array]) -> Rows:
            counts = np.ones(len(places[0]), np.int64) if self.after.source.kind == "left" else None
            return Rows(self.lister.with_stored(self.engine, cells_at(places)), counts)

        def evaluate(places: list[Int64Array]) -> pa.Table:
            reader = replace(self.lister.reader, left=self.lister.held(cells_at(places)), itself=False)
            wanted = Wanted(self.after.arguments, tuple(aggregate for _, aggregate in self.after.aggregates))
            return JoinedCells(reader, self.after.schema, self.after.box, (), wanted).read()

        return Patcher(joined_layout(self.after), self.store, self.after.schema, all_rows, evaluate)
