"""What happened to the cells that a view stored by position shows: by its results, and by the cells that there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.kernels.sparse.matching import found_in
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.operations.query.positions import RepeatedCells, distinct_positions
from windrow.operations.query.run import source_of
from windrow.operations.sparse.patch import look_up
from windrow.plan.bound import Bound, BoundScan
from windrow.plan.grouping.positions import Axes, BoundRepeated, Int64Array, cells_at, move_to_positions
from windrow.storage.cells import cell_fields, coordinates, in_coordinate_order
from windrow.storage.working import WorkingArray
from windrow.views.changes import CellChange, Change, differ, net_cells, net_tables
from windrow.views.evaluate import read_boxes
from windrow.views.regions import cluster_cells
from windrow.views.steps import Changes, scan_below, step_change


def moved_cells(engine: Engine, before: Bound, after: Bound, changes: Changes) -> CellChange:
    """The cells that left and came, whatever they hold."""
    found = step_change(engine, before, after, changes)
    return net_tables(found.schema.select(()), found.left, found.came)


def shown_change(engine: Engine, before: BoundRepeated, after: BoundRepeated) -> CellChange:
    """The shown cells that left and came."""
    axes, schema = after.axes, after.schema.select(())
    cells = moved_cells(engine, before.source, after.source, _below(before, after))
    rows = net_cells(before.results, after.results)
    both = [np.concatenate(pair) for pair in zip(rows.at(rows.left), rows.at(rows.came), strict=True)]
    places = distinct_positions(both, schema, axes)
    sides = ((before, cells.left), (after, cells.came))
    tables = [_repeat(engine, view, _with_cells_at(engine, view.source, moved, places, axes)) for view, moved in sides]
    return net_tables(after.schema, *tables)


def _below(before: BoundRepeated, after: BoundRepeated) -> dict[str, Change]:
    """What happened to the array at whose cells a view is shown."""
    was, now = scan_below(before.source), scan_below(after.source)
    assert isinstance(was, BoundScan)
    assert isinstance(now, BoundScan)
    return {now.name: net_cells(was, now)} if differ(was, now) else {}


def _with_cells_at(engine: Engine, source: Bound, moved: pa.Table, places: list[Int64Array], axes: Axes) -> pa.Table:
    """Some cells together with all that lie at some positions."""
    schema = source.schema.select(())
    there = read_cells_at(engine, source, places, axes)
    further = ~found_in(coordinates(there, schema), coordinates(moved, schema))
    moved = moved.select(cell_fields(schema).names).cast(cell_fields(schema))
    return in_coordinate_order(pa.concat_tables([moved, there.filter(pa.array(further))]), schema)


def read_cells_at(engine: Engine, source: Bound, places: Sequence[Int64Array], axes: Axes) -> pa.Table:
    """All cells of a step that lie at some positions."""
    schema = source.schema.select(())
    boxes = [cells_at(box, source.box, axes) for box in cluster_cells(places, schema.grid)]
    found = read_boxes(source_of(engine, source), [box for box in boxes if not box.is_empty], schema)
    at = move_to_positions(coordinates(found, schema), schema, axes)
    return found.filter(pa.array(found_in(at, places)))


def _repeat(engine: Engine, view: BoundRepeated, cells: pa.Table) -> pa.Table:
    source: RepeatedCells = source_of(engine, view)
    schema: Schema = view.schema
    if not cells.num_rows:
        return cell_fields(schema).empty_table()
    at = coordinates(cells, schema)
    around = Box(tuple(int(column.min()) for column in at), tuple(int(column.max()) for column in at))
    return source.repeat(cells, around, schema)


def count_shown(engine: Engine, working: WorkingArray, moved: CellChange, axes: Axes) -> int:
    """How many of the cells that left or came are shown where results are as they are stored now."""
    both = [np.concatenate(pair) for pair in zip(moved.at(moved.left), moved.at(moved.came), strict=True)]
    if not len(both[0]):
        return 0
    places = distinct_positions(both, working.schema, axes)
    known = coordinates(look_up(engine.local, working, places).cells, working.schema)
    return int(found_in(move_to_positions(both, working.schema, axes), known).sum())
