"""New results into a view: the cells that are not as they were are written, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.kernels.sparse.matching import found_in
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Dimension, Schema
from windrow.model.source import Blocks, ComputedCells
from windrow.operations.dense.sources import MemorySource
from windrow.operations.dense.write import follow, write
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.run import compute_cells_in, compute_grid, source_of
from windrow.operations.query.sparse_run import insert_computed
from windrow.operations.sparse.patch import look_up, patch_cells, replace_found
from windrow.operations.sparse.rewrite import delete
from windrow.plan.bound import Bound, BoundHeld
from windrow.plan.steps import selected
from windrow.storage.cells import cell_fields
from windrow.storage.dense.store import DenseStore
from windrow.storage.working import WorkingArray
from windrow.views.changes import CellChange, bounding_box, net_tables, same_blocks
from windrow.views.evaluate import evaluate_cells, outside, restrict
from windrow.views.rules.results import Patched
from windrow.views.steps import put_on

HELD_BYTES = 64 * 2**20
"""The largest box of a dense view that is compared with what is stored before it is written."""


@dataclass(frozen=True)
class Applied:
    """What was done to a view: how many of its cells are other ones than before."""

    cells: int
    touched: int = 0
    """Results that were looked at again."""
    pairs: int = 0
    """Rows that left results or came to them."""
    rewritten: bool = False
    """Whether all of it was written, be it as before or not."""


def recompute_cells(engine: Engine, working: WorkingArray, bound: Bound, boxes: Sequence[Box]) -> Applied:
    """Compute the results in some boxes again, and write those of a sparse view that are not as they were."""
    return replace_cells(engine, working, boxes, evaluate_cells(engine, bound, boxes))


def replace_cells(engine: Engine, working: WorkingArray, boxes: Sequence[Box], cells: pa.Table) -> Applied:
    """Make ``cells`` all that a sparse view has in some boxes."""
    snapshot = working.sparse()
    pieces, done = [cell_fields(working.schema).empty_table()], list[Box]()
    for box in boxes:
        pieces.append(outside(snapshot.read(box), working.schema, done))
        done.append(box)
    change = net_tables(working.schema, pa.concat_tables(pieces), cells.cast(cell_fields(working.schema)))
    apply_change(engine, working, change)
    return Applied(change.cells, cells.num_rows)


def apply_change(engine: Engine, working: WorkingArray, change: CellChange) -> None:
    """Write what came into a sparse view, and remove what left it."""
    if change.is_empty:
        return
    at = change.at(change.left)
    gone = ~found_in(at, change.at(change.came))
    patch_cells(engine, working, change.came, [column[gone] for column in at])
    working.note("patch")


def put_results(engine: Engine, working: WorkingArray, bound: Bound, core: Bound, found: Patched) -> Applied:
    """Results of the step that a view keeps, through the steps above it, into the view."""
    if not len(found.at[0]):  # as after a write that the steps below make nothing of: abs(6) for abs(-6)
        return Applied(0, pairs=found.pairs)
    held = BoundHeld(schema=core.schema, box=core.box, labels=core.labels, gridding=core.gridding, table=found.cells)
    if not bound.schema.sparse:  # all results of a box
        box = Box(tuple(int(column.min()) for column in found.at), tuple(int(column.max()) for column in found.at))
        written = write_box(engine, working, put_on(bound, core, replace(held, box=box)), box)
        return Applied(written, box.size, found.pairs)
    # What goes through no further step is what was found.
    results = found.cells if bound is core else evaluate_cells(engine, put_on(bound, core, held), [bound.box])
    stored = look_up(engine.local, working, found.at)
    change = net_tables(working.schema, stored.cells, results.cast(cell_fields(working.schema)))
    if not change.is_empty:
        dead = found_in(change.at(stored.cells), change.at(change.left))
        replace_found(engine.local, working, stored, dead, change.came)
        working.note("patch")
    return Applied(change.cells, len(found.at[0]), found.pairs)


def recompute_boxes(engine: Engine, working: WorkingArray, bound: Bound, boxes: Sequence[Box]) -> Applied:
    """Compute some boxes of a dense view again."""
    inside = [box & bound.box for box in boxes]
    there = [box for box in inside if not box.is_empty]
    cells = sum(write_box(engine, working, restrict(bound, box), box) for box in there)
    return Applied(cells, sum(box.size for box in there))


def write_box(engine: Engine, working: WorkingArray, bound: Bound, box: Box) -> int:
    """Compute a box of a dense view, and write what is not as it was; returns how many cells that are.

    A box too large to be held is written whole, while it is computed.
    """
    source = source_of(engine, selected(bound, box))
    if box.size * working.schema.cell_bytes > HELD_BYTES:
        write(engine, working, source, box.lo)
        working.note("patch")
        return box.size
    blocks = compute_grid(engine, source, box)
    differs = _unlike_stored(working, box, blocks)
    if not differs.any():
        return 0
    part = bounding_box(differs, box)
    ends = zip(working.schema.dimensions, part.lo, part.hi, strict=True)
    dimensions = tuple(Dimension(d.name, first, last, last - first + 1) for d, first, last in ends)
    held = {name: values[part.slices(box.lo)] for name, values in blocks.items()}
    write(engine, working, MemorySource(Schema(dimensions, working.schema.attributes), held), part.lo)
    working.note("patch")
    return int(differs.sum())


def _unlike_stored(working: WorkingArray, box: Box, blocks: Blocks) -> npt.NDArray[np.bool_]:
    """Which results are not as they are stored; what is stored ends where the array ended before it grew."""
    known = working.hi if working.growth is None else working.growth.old_hi
    differs = np.ones(box.shape, bool)
    common = box & working.schema.box(known)
    if common.is_empty:
        return differs
    stored = replace(working.dense(), hi=known).read(common)
    inside = np.zeros(common.shape, bool)
    for name, values in blocks.items():
        if name in stored:
            inside |= ~same_blocks(values[common.slices(box.lo)], stored[name])
    differs[common.slices(box.lo)] = inside
    return differs


def rebuild(engine: Engine, working: WorkingArray, bound: Bound) -> Applied:
    """Compute all of a view again, written where it is computed. What is stored is not looked at: it may be damaged."""
    if not working.record.sparse:
        return recompute_boxes(engine, working, bound, [bound.box])
    return _write_all(engine, working, source_of(engine, bound))


def _write_all(engine: Engine, working: WorkingArray, source: ComputedCells) -> Applied:
    delete(engine, working, None)
    found = insert_computed(engine, working, source)
    working.note("rebuild")
    return Applied(found.cells, rewritten=True)


def rebuild_unlike(engine: Engine, working: WorkingArray, bound: Bound) -> Applied:
    """Compute all of a view again; one that can be held is compared with what is stored, and only written if unlike."""
    if not working.record.sparse:
        return recompute_boxes(engine, working, bound, [bound.box])
    source = source_of(engine, bound)  # once: totals are computed by it
    there = sum(part.cells for part in working.parts.values())
    coming = 0 if bound.box.is_empty else source.cells_in(bound.box)
    if (there + coming) * row_bytes(working.schema) > HELD_BYTES:
        return _write_all(engine, working, source)
    nothing = cell_fields(bound.schema).empty_table()
    cells = nothing if bound.box.is_empty else compute_cells_in(engine, source, bound.box)
    return replace_cells(engine, working, [working.schema.box(working.hi) | bound.box], cells)


def move(engine: Engine, working: WorkingArray, schema: Schema, bound: Bound) -> None:
    """Let a view begin and end elsewhere: nothing of it stays, and all results are to be written anew."""
    working.note("rebuild")
    if working.record.sparse:
        delete(engine, working, None)
        working.schema = schema
        working.hi = tuple(d.lo - 1 if d.hi is None else d.hi for d in schema.dimensions)
        return
    store, nowhere = DenseStore(working.path), tuple(lo - 1 for lo in schema.lo)
    store.rechunk(schema, nowhere, working.record.metadata)
    working.schema, working.hi, working.pointer = schema, nowhere, store.head()
    working.replaces_all_chunks, working.written_chunks = True, []
    follow(working, bound.box.hi, dict(bound.labels))


def follow_query(working: WorkingArray, bound: Bound) -> None:
    """Give a view the extent and the labels of its query, which may have grown, before results are written."""
    ends = zip(working.schema.dimensions, working.hi, bound.box.hi, strict=True)
    hi = tuple(max(hi, now) if d.growing else hi for d, hi, now in ends)
    changed = {}
    for name, labels in bound.labels:
        known = working.labels.get(name)
        if known is None or len(known) != len(labels) or not known.same_values(labels):
            changed[name] = labels
    if working.record.sparse:
        working.hi = hi
        for name, labels in changed.items():
            working.set_labels(name, labels, _common(working.labels.get(name), labels))
    else:
        follow(working, hi, changed)
    if changed:
        working.note("labels")


def _common(one: Labels | None, other: Labels) -> int:
    """How many labels both begin with."""
    if one is None:
        return 0
    length = min(len(one), len(other))
    differs = np.flatnonzero(np.asarray(one.values[:length] != other.values[:length]))
    return int(differs[0]) if len(differs) else length
