"""The two sides of a placed join: what of an array's chunks is a left or a right cell, before and after the batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from windrow.kernels.sparse.matching import found_in
from windrow.model.schema import Schema
from windrow.operations.query.run import source_of
from windrow.plan.bound import Bound, BoundHeld, BoundScan
from windrow.storage.cells import cell_fields, coordinates
from windrow.views.changes import CellChange, net_tables
from windrow.views.placed.shelf import Shelf
from windrow.views.steps import CELLWISE, put_on, scan_below

_NO_ENGINE = cast(Any, None)
"""Cells are looked at one by one: nothing is computed elsewhere."""


@dataclass(frozen=True)
class Side:
    """One side: the steps between the array and the join, before and after, and what the results depend on."""

    array: int
    """Which of the task's arrays it reads."""
    before: Bound
    after: Bound
    used: Schema

    @classmethod
    def of(cls, array: int, before: Bound, after: Bound, used: Schema) -> Side:
        return cls(array, on_nothing(before), on_nothing(after), used)

    def change(self, shelf: Shelf, ordinal: int) -> CellChange:
        """The cells of a chunk that left and came, as far as the results depend on them."""
        found = shelf.change(ordinal)
        if not found.left.num_rows and not found.came.num_rows:
            nothing = cell_fields(self.used).empty_table()
            return CellChange(self.used, nothing, nothing)
        return net_tables(self.used, _through(self.before, found.left), _through(self.after, found.came))

    def staying(self, shelf: Shelf, ordinal: int, left: pa.Table) -> pa.Table:
        """The cells of a chunk that were there before and are there still; ``left`` are those that are not."""
        table = _through(self.after, shelf.old(ordinal)).select(cell_fields(self.used).names)
        if not left.num_rows:
            return table
        stays = ~found_in(coordinates(table, self.used), coordinates(left, self.used))
        return table.filter(pa.array(stays))


def on_nothing(step: Bound) -> Bound:
    """A side's steps on no cells: what a task gets, without all that the array knows."""
    scan = scan_below(step)
    assert isinstance(scan, BoundScan)
    nothing = cell_fields(scan.schema).empty_table()
    held = BoundHeld(schema=scan.schema, box=scan.box, labels=scan.labels, gridding=scan.gridding, table=nothing)
    return put_on(step, scan, held)


def _through(step: Bound, table: pa.Table) -> pa.Table:
    """What a side's steps make of some cells of the array."""
    held = step
    while isinstance(held, CELLWISE):
        held = held.source
    assert isinstance(held, BoundHeld)
    cells = table.select(cell_fields(held.schema).names)
    if step is held:
        return cells
    source = source_of(_NO_ENGINE, put_on(step, held, replace(held, table=cells.combine_chunks())))
    found: pa.Table = source.read(step.box) if not step.box.is_empty else cell_fields(step.schema).empty_table()
    return found


def join_tables(tables: list[pa.Table], schema: Schema) -> pa.Table:
    """Cells of several chunks together, in the order of their coordinates."""
    if len(tables) == 1:
        return tables[0].combine_chunks()
    table = pa.concat_tables([cell_fields(schema).empty_table(), *tables]).combine_chunks()
    return table.take(pa.array(np.lexsort(coordinates(table, schema)[::-1])))
