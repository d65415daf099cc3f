"""Aggregates over the partners of each cell: patched by the pairs that left and came."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.aggregates.states.rule import State
from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.operations.join.sources import JoinedCells
from windrow.plan.bound import BoundJoined
from windrow.storage.cells import cell_fields
from windrow.views.changes import CellChange
from windrow.views.evaluate import read_boxes
from windrow.views.regions import cluster_cells
from windrow.views.rules.pairs import can_order
from windrow.views.rules.results import Patched, Patcher, Touched
from windrow.views.rules.sides import Int64Array, JoinRule, used_side


def why_not_patched(bound: BoundJoined) -> str | None:
    """Why results of cells are computed anew where they are touched; None if they are patched."""
    if not bound.schema.sparse or bound.step:
        return "results on a grid are computed again where they are touched"
    ordered = any(aggregate.definition.ordered for _, aggregate in bound.aggregates)
    return "cells have no order that a number could tell" if ordered and not can_order(bound.source.right.box) else None


@dataclass(frozen=True)
class JoinedRule(JoinRule):
    """The rule for results that each belong to one cell of the left side."""

    def patch(self) -> Patched:
        """Results of cells that came, left, or have other partners than before."""
        return self.patch_lefts()[0]

    def patch_lefts(self) -> tuple[Patched, pa.Table]:
        """The same, and the left cells that have these results, as far as they are there."""
        cells, partners = self.side_changes()
        stay = self.staying(cells, partners)
        came = self.finder.with_held(stay, partners.came)
        left = self.finder.with_held(stay, partners.left)
        rows = np.union1d(came.results, left.results)
        renumbered = np.full(stay.num_rows, -1, np.int64)
        renumbered[rows] = np.arange(len(rows))
        touched = stay.take(pa.array(rows))
        new, gone = self.places_of(cells.came), self.places_of(cells.left)
        vanished = ~found_in(gone, new)
        lefts = pa.concat_tables([touched, cells.came.select(touched.column_names)])
        moved = Touched(self.places_of(touched), left.of(renumbered), came.of(renumbered))
        return self._patcher(lefts).patch(moved, new, [column[vanished] for column in gone]), lefts

    def recompute(self, places: list[Int64Array]) -> Patched:
        """Results of some left cells, computed from all their rows."""
        lefts = read_boxes(self.left_source, cluster_cells(places, self.left_schema.grid), self.left_schema)
        nothing = [column[:0] for column in places]
        none = self.finder.with_held(lefts.slice(0, 0), cell_fields(used_side(self.after, 2)).empty_table())
        return self._patcher(lefts).patch(Touched(nothing, none, none), places, nothing)

    @property
    def left_change(self) -> CellChange:
        """What happened to the left side, as far as results depend on it."""
        return self.side_changes()[0]

    def _patcher(self, lefts: pa.Table) -> Patcher:
        """What patches results, given all left cells that may be looked at."""
        at = self.places_of(lefts)

        def cells_at(places: list[Int64Array]) -> pa.Table:
            return lefts.take(pa.array(match_cells(places, at)))

        def reduce(places: list[Int64Array]) -> State:
            return self.finder.reduce_stored(self.engine, cells_at(places))

        def evaluate(places: list[Int64Array]) -> pa.Table:
            reader = replace(self.finder.reader, left=self.finder.held(cells_at(places)), itself=False)
            return JoinedCells(reader, self.after.schema, self.after.box, (), self.wanted).read()

        layout, schema = self.finder.kept.layout, self.after.schema
        return Patcher(layout, self.store, schema, reduce, evaluate, min_count=self.after.min_count)
