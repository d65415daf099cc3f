"""Aggregates over the partners of positions that cells share: patched by the pairs that left and came.

It is the rule for single cells with positions in their place. A position comes with its first cell and goes with its
last one; what else happens to cells there makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.kernels.sparse.matching import found_in
from windrow.operations.query.positions import distinct_positions
from windrow.operations.query.scans import StoredCells
from windrow.operations.sparse.patch import look_up
from windrow.plan.bound import BoundJoined
from windrow.plan.positions import BoundPositions
from windrow.storage.cells import cell_fields, coordinates
from windrow.storage.working import WorkingArray
from windrow.views.changes import CellChange, net_tables
from windrow.views.evaluate import read_boxes
from windrow.views.reduced.changes import moved_cells
from windrow.views.regions import cluster_cells
from windrow.views.rules.joined import JoinedRule
from windrow.views.rules.sides import Int64Array, used_side
from windrow.views.steps import step_change
from windrow.views.touched_joins import reaching_box

Places = list[Int64Array]


@dataclass(frozen=True)
class ReducedRule(JoinedRule):
    """The rule for results that each belong to all left cells of one position."""

    working: WorkingArray
    """The view, as it was brought up to date last."""
    is_told: bool
    """Whether the view has a result for every position, and so tells where left cells are."""

    def side_changes(self) -> tuple[CellChange, CellChange]:
        """The positions that came and went, and what happened to the right side."""
        before, after = self.before.source, self.after.source
        cells = moved_cells(self.engine, _left(self.before).source, _left(self.after).source, self.changes)
        found = step_change(self.engine, before.right, after.right, self.changes)
        return self._positions(cells), net_tables(used_side(self.after, 2), found.left, found.came)

    def _positions(self, cells: CellChange) -> CellChange:
        """Positions that may be new, and those that no left cell lies at any more."""
        left = _left(self.after)
        came, gone = (distinct_positions(cells.at(table), left.schema, left.axes) for table in (cells.came, cells.left))
        fresh = came
        if self.is_told and len(came[0]):
            known = look_up(self.engine.local, self.working, came).cells
            fresh = _without(came, coordinates(known, self.working.schema))
        gone = _without(gone, came)
        if len(gone[0]):
            stay = read_boxes(self.left_source, cluster_cells(gone, left.schema.grid), self.left_schema)
            gone = _without(gone, self.places_of(stay))
        return CellChange(self.left_schema, self._table(gone), self._table(fresh))

    def staying(self, cells: CellChange, partners: CellChange) -> pa.Table:
        """The positions within reach of changed right cells, without those that came or went themselves."""
        if not self.is_told:
            return super().staying(cells, partners)
        schema, whole = self.left_schema, self.after.source.left.box
        reach = [reaching_box(self.after.source, box) & whole for box in partners.regions]
        table = read_boxes(StoredCells(self.working.sparse()), reach, schema)
        at = coordinates(table, schema)
        moved = found_in(at, cells.at(cells.came)) | found_in(at, cells.at(cells.left))
        return table.filter(pa.array(~moved)).combine_chunks()

    def _table(self, places: Places) -> pa.Table:
        return pa.table([pa.array(column) for column in places], schema=cell_fields(self.left_schema))


def _left(bound: BoundJoined) -> BoundPositions:
    left = bound.source.left
    assert isinstance(left, BoundPositions)
    return left


def _without(places: Places, others: Places) -> Places:
    kept = ~found_in(places, others)
    return [column[kept] for column in places]
