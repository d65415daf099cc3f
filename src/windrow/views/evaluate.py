"""A part of a query's result, and no more read or computed than that part needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.model.box import Box, hull
from windrow.model.schema import Schema
from windrow.model.source import ComputedCells
from windrow.operations.join.build import is_by_cell
from windrow.operations.query.cellwise import GridCells
from windrow.operations.query.run import compute_cells_in, source_of
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundSelection,
    BoundTotals,
    makes_pairs,
)
from windrow.plan.steps import selected
from windrow.storage.cells import cell_fields, coordinates
from windrow.views.regions import merge_boxes, stretch

READ_CELLS = 20_000
"""What a read costs whatever it reads, in cells."""

RUN_CELLS = 5_000
"""What it costs to compute a part of a result, however small: less, in cells, because cells that are computed with cost
more than cells that are read."""


def evaluate_cells(engine: Engine, bound: Bound, boxes: Sequence[Box]) -> pa.Table:
    """The results of a sparse query in some boxes, each once; boxes close to one another are computed in one go."""
    wanted = [inside for box in boxes if not (inside := box & bound.box).is_empty]
    whole = hull(wanted)
    if whole is not None and len(wanted) > 1 and _is_cheaper_whole(engine, bound, wanted, whole):
        found = _evaluate(engine, bound, whole)
        return found.filter(pa.array(~_none_of(found, bound.schema, wanted))).combine_chunks()
    pieces, done = [cell_fields(bound.schema).empty_table()], list[Box]()
    for box in wanted:
        pieces.append(outside(_evaluate(engine, bound, box), bound.schema, done))
        done.append(box)
    return pa.concat_tables(pieces).combine_chunks()


def all_cells(engine: Engine, bound: Bound) -> pa.Table:
    """All results as a table of cells, in the order of their coordinates; those of a dense query, too."""
    if bound.box.is_empty:
        return cell_fields(bound.schema).empty_table()
    source = source_of(engine, bound)
    if not bound.schema.sparse:
        source = GridCells(source, replace(source.schema, sparse=True), bound.box, bound.labels, None)
    return compute_cells_in(engine, source, bound.box)


def _evaluate(engine: Engine, bound: Bound, box: Box) -> pa.Table:
    return compute_cells_in(engine, source_of(engine, restrict(bound, box)), box)


def _is_cheaper_whole(engine: Engine, bound: Bound, boxes: Sequence[Box], whole: Box) -> bool:
    if _gathers(bound):  # even to ask what it would read gathers all groups
        return bool(whole.size <= 2 * sum(box.size for box in boxes))
    source = source_of(engine, bound)
    apart = sum(source.cells_decoded(box) for box in boxes) + RUN_CELLS * len(boxes)
    return bool(source.cells_decoded(whole) <= apart)


def _gathers(bound: Bound) -> bool:
    """Whether groups of cells or pairs are gathered somewhere below."""
    return any(
        isinstance(step, BoundTotals) or (isinstance(step, BoundJoined) and not is_by_cell(step))
        for step in bound.walk()
    )


def read_boxes(source: ComputedCells, boxes: Sequence[Box], schema: Schema) -> pa.Table:
    """The cells of a source in some boxes, each once; boxes that are close to one another are read in one go."""
    wanted = merge_boxes(boxes)
    whole = hull(wanted)
    if whole is None:
        return cell_fields(schema).empty_table()
    apart = sum(source.cells_decoded(box) for box in wanted) + READ_CELLS * len(wanted)
    if source.cells_decoded(whole) <= apart:
        table = source.read(whole, schema.attribute_names).cast(cell_fields(schema))
        return table.filter(pa.array(~_none_of(table, schema, wanted)))
    pieces, done = [cell_fields(schema).empty_table()], list[Box]()
    for box in wanted:
        pieces.append(outside(source.read(box, schema.attribute_names).cast(cell_fields(schema)), schema, done))
        done.append(box)
    return pa.concat_tables(pieces)


def outside(table: pa.Table, schema: Schema, boxes: Sequence[Box]) -> pa.Table:
    """The rows that lie in none of the boxes."""
    if not boxes:
        return table
    kept = _none_of(table, schema, boxes)
    return table if kept.all() else table.filter(pa.array(kept))


def _none_of(table: pa.Table, schema: Schema, boxes: Sequence[Box]) -> npt.NDArray[np.bool_]:
    kept = np.ones(table.num_rows, bool)
    at = coordinates(table, schema)
    for box in boxes:
        inside = np.ones(table.num_rows, bool)
        for column, lo, hi in zip(at, box.lo, box.hi, strict=True):
            inside &= (column >= lo) & (column <= hi)
        kept &= ~inside
    return kept


def restrict(bound: Bound, box: Box) -> Bound:
    """The same query as far as a box of its results goes: groups that nobody asks for are not gathered.

    Other steps compute what is read of them and need no telling.
    """
    if isinstance(bound, (BoundColumns, BoundFilter, BoundSelection)):
        return replace(bound, source=restrict(bound.source, box))
    if isinstance(bound, BoundTotals) and bound.axes:
        source = bound.source.box
        lo, hi = list(source.lo), list(source.hi)
        for number, axis in enumerate(bound.axes):
            lo[axis], hi[axis] = max(lo[axis], box.lo[number]), min(hi[axis], box.hi[number])
        return replace(bound, source=selected(bound.source, Box(tuple(lo), tuple(hi))))
    if isinstance(bound, BoundJoined) and bound.groups and not is_by_cell(bound) and not _is_mutual(bound.source):
        first = bound.source.sides[0]
        chosen = first.box
        for number, group in enumerate(bound.groups):
            if group.qualifier == "side1":
                axis = first.schema.axis(group.name)
                part = Box(
                    tuple(box.lo[number] if a == axis else lo for a, lo in enumerate(chosen.lo)),
                    tuple(box.hi[number] if a == axis else hi for a, hi in enumerate(chosen.hi)),
                )
                chosen = stretch(chosen, axis, part)
        return replace(bound, source=_with_first(bound.source, chosen & first.box))
    return bound


def _with_first(join: BoundJoin, box: Box) -> BoundJoin:
    """A join of which the first array's cells in a box alone are on the left."""
    if makes_pairs(join.left):
        return replace(join, left=_with_first(join.left, box))
    return replace(join, left=selected(join.left, box))


def _is_mutual(join: BoundJoin) -> bool:
    """Whether left cells are compared with one another, so that none may be left out."""
    own = join.nearest is not None and join.nearest.mutual
    return own or (makes_pairs(join.left) and _is_mutual(join.left))
