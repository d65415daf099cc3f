"""What happened to the cells of a step of a query, between two moments of the arrays below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.model.box import Box
from windrow.operations.query.cellwise import GridCells
from windrow.operations.query.run import compute_cells_in, source_of
from windrow.plan.bound import Bound, BoundColumns, BoundFilter, BoundHeld, BoundNamed, BoundSelection
from windrow.storage.cells import cell_fields
from windrow.views.changes import CellChange, Change, net_tables
from windrow.views.evaluate import evaluate_cells, outside
from windrow.views.touched import find_touched

CELLWISE = (BoundColumns, BoundFilter, BoundSelection)
Changes = Mapping[str, Change]


def step_change(engine: Engine, before: Bound, after: Bound, changes: Changes) -> CellChange:
    """The cells of a step that left and came; those of a dense one, too."""
    scan = scan_below(after)
    known = None if scan is None else changes.get(scan.name)
    if scan is not None and isinstance(known, CellChange):
        tables = [
            _through(engine, step, cast(BoundNamed, scan_below(step)), table)
            for step, table in ((before, known.left), (after, known.came))
        ]
        return net_tables(after.schema, *tables)
    boxes = find_touched(before, after, {name: change.boxes for name, change in changes.items()})
    return net_tables(_as_sparse(after).schema, *(cells_in(engine, step, boxes) for step in (before, after)))


def scan_below(bound: Bound) -> BoundNamed | None:
    """The array or view that a step reads cell by cell, if it does no more than that."""
    while isinstance(bound, CELLWISE):
        bound = bound.source
    return bound if isinstance(bound, BoundNamed) else None


def _through(engine: Engine, step: Bound, scan: BoundNamed, table: pa.Table) -> pa.Table:
    """What a step makes of some cells of the array that it reads."""
    held = BoundHeld(
        schema=scan.schema, box=scan.box, labels=scan.labels, gridding=scan.gridding, table=table.combine_chunks()
    )
    source = source_of(engine, put_on(step, scan, held))
    return source.read(step.box) if not step.box.is_empty else cell_fields(step.schema).empty_table()


def put_on(step: Bound, below: Bound, instead: Bound) -> Bound:
    """The steps above one, put on another."""
    if step is below:
        return instead
    assert isinstance(step, CELLWISE)
    return replace(step, source=put_on(step.source, below, instead))


def cells_in(engine: Engine, bound: Bound, boxes: Sequence[Box]) -> pa.Table:
    """A step's cells in some boxes, each once, also if it is dense."""
    if bound.schema.sparse:
        return evaluate_cells(engine, bound, boxes)
    schema = _as_sparse(bound).schema
    source = source_of(engine, bound)
    cells = GridCells(source, replace(source.schema, sparse=True), bound.box, bound.labels, None)
    pieces, done = [cell_fields(schema).empty_table()], list[Box]()
    for box in boxes:
        inside = box & bound.box
        if not inside.is_empty:
            read = compute_cells_in(engine, cells, inside).select(cell_fields(schema).names)
            pieces.append(outside(read.cast(cell_fields(schema)), schema, done))
            done.append(inside)
    return pa.concat_tables(pieces).combine_chunks()


def _as_sparse(bound: Bound) -> Bound:
    return bound if bound.schema.sparse else replace(bound, schema=replace(bound.schema, sparse=True))
