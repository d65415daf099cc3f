"""Aggregates over the partners of positions that cells share: patched by the pairs that left and came.

It is the rule for single cells with positions in their place. A position comes with its first cell and goes with its
last one; what else happens to cells there makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from windrow.kernels.sparse.matching import found_in
from windrow.operations.query.positions import distinct_positions
from windrow.operations.query.scans import StoredCells
from windrow.plan.bound import BoundJoined
from windrow.plan.grouping.positions import BoundPositions
from windrow.storage.cells import cell_fields
from windrow.storage.working import WorkingArray
from windrow.views.changes import FEW_CLUSTERS, CellChange, net_tables
from windrow.views.evaluate import read_boxes
from windrow.views.reduced.changes import moved_cells
from windrow.views.regions import cluster_cells
from windrow.views.rules.joined import JoinedRule
from windrow.views.rules.sides import Int64Array, used_side
from windrow.views.steps import step_change
from windrow.views.touched_joins import reaching_boxes

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
        cells, partners, _ = self._moved
        return cells, partners

    @cached_property
    def _moved(self) -> tuple[CellChange, CellChange, pa.Table]:
        """The same, and the positions known before that may be near."""
        before, after = self.before.source.right, self.after.source.right
        lefts = _left(self.before).source, _left(self.after).source
        found = step_change(self.engine, before, after, self.changes)
        partners = net_tables(used_side(self.after, 2), found.left, found.came)
        if lefts == (before, after):
            cells = net_tables(found.schema.select(()), found.left, found.came)
        else:
            cells = moved_cells(self.engine, *lefts, self.changes)
        left = _left(self.after)
        came, gone = (distinct_positions(cells.at(table), left.schema, left.axes) for table in (cells.came, cells.left))
        known = self._known_near(partners, came) if self.is_told else cell_fields(self.left_schema).empty_table()
        moved = CellChange(
            self.left_schema,
            self._table(self._emptied(_without(gone, came))),
            self._table(_without(came, self.places_of(known))),
        )
        return moved, partners, known

    def _known_near(self, partners: CellChange, came: Places) -> pa.Table:
        """The positions of the view within reach of changed right cells, and those that left cells came to."""
        whole = self.after.source.left.box
        reach = [near & whole for box in partners.regions for near in reaching_boxes(self.after.source, box)]
        boxes = [*reach, *cluster_cells(came, self.left_schema.grid, FEW_CLUSTERS)]
        return read_boxes(StoredCells(self.working.sparse()), boxes, self.left_schema)

    def _emptied(self, places: Places) -> Places:
        """The positions at which no left cell lies any more."""
        if not len(places[0]):
            return places
        boxes = cluster_cells(places, self.left_schema.grid)
        return _without(places, self.places_of(read_boxes(self.left_source, boxes, self.left_schema)))

    def staying(self, cells: CellChange, partners: CellChange) -> pa.Table:
        """The positions within reach of changed right cells, without those that came or went themselves."""
        if not self.is_told:
            return super().staying(cells, partners)
        known = self._moved[2]
        gone = found_in(self.places_of(known), cells.at(cells.left))
        return known.filter(pa.array(~gone)).combine_chunks()

    def _table(self, places: Places) -> pa.Table:
        return pa.table([pa.array(column) for column in places], schema=cell_fields(self.left_schema))


def _left(bound: BoundJoined) -> BoundPositions:
    left = bound.source.left
    assert isinstance(left, BoundPositions)
    return left


def _without(places: Places, others: Places) -> Places:
    kept = ~found_in(places, others)
    return [column[kept] for column in places]
