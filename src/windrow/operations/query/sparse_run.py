"""Running computed sparse data: cut into tasks where its cells are, and gathered here or written where computed."""

from __future__ import annotations

import bisect
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.errors import MemoryLimitError, SchemaError, StoreError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.source import CellSource, ComputedCells, CountedCells
from windrow.operations.query.blocks import MORE_READING, TASK_BYTES, TASKS_PER_WORKER, row_bytes
from windrow.storage.cells import cell_fields, conform_cells, in_coordinate_order
from windrow.storage.sparse import SparseStore
from windrow.storage.upkeep.working_parts import add_run
from windrow.storage.working import WorkingArray

if TYPE_CHECKING:
    from windrow.operations.sparse.insert import InsertCounts
    from windrow.operations.sparse.tasks import CellsReceipt, WriteCells

SMALLEST_TASK = 200_000
"""Cells below which a task of its own costs more than it saves."""


MOST_TASKS = 1_000_000
"""Tasks that nobody would wait for: to count them takes too long already."""

BEST_COMPRESSION = 16
"""How many times smaller than in memory cells are when stored, if their values hardly differ."""

LESS = 0.95
"""What is left of a task's memory, at most, after a cut within chunks; others are not worth their reading."""


def cell_blocks(
    source: ComputedCells, grid: ChunkGrid, box: Box, executor: Executor, uncut: Sequence[int] = ()
) -> list[Box]:
    """``box`` in blocks along the borders of ``grid``: the most costly one is cut until there are enough tasks.

    Where cells crowd blocks are small, and no more are cut than are needed, since each reads a halo. One that does not
    fit a task is cut in any case, within a chunk too, unless it is along an axis that must stay ``uncut`` there. Blocks
    without cells are left out.
    """
    limit = task_limit(executor)
    blocks: list[Box] = []
    pending: list[tuple[int, Box]] = []  # by cost, the largest last

    def enter(block: Box) -> None:
        if not block.is_empty and source.cells_in(block):
            bisect.insort(pending, (source.cells_decoded(block), block), key=lambda entry: entry[0])

    whole = grid.clip(box)
    _check_tasks(source, whole, limit)
    enter(whole)
    while pending:
        cost, block = pending.pop()
        enough = 1 + len(blocks) + len(pending) >= TASKS_PER_WORKER * executor.workers
        fits = source.task_bytes(block) <= limit
        small = (enough or cost <= SMALLEST_TASK) and fits
        halves = [] if small else _halves(source, grid, block)
        if not halves and not fits:
            halves = _halves_within(source, block, uncut)
        for half in halves:
            enter(half)
        if not halves:
            blocks.append(block)
    return sorted(blocks, key=lambda block: block.lo)


def task_limit(executor: Executor) -> int:
    """What a task may hold, if cuts can make it so small."""
    return min(TASK_BYTES, executor.worker_memory)


def largest_task(
    source: ComputedCells, grid: ChunkGrid, box: Box, executor: Executor, uncut: Sequence[int] = ()
) -> int:
    """About what the largest task needs into which a box is cut, found by cutting nothing but that one."""
    limit, block = task_limit(executor), grid.clip(box)
    while not block.is_empty and source.task_bytes(block) > limit:
        halves = _halves(source, grid, block) or _halves_within(source, block, uncut)
        if not halves:
            break
        block = max(halves, key=source.task_bytes)
    return 0 if block.is_empty else source.task_bytes(block)


def _check_tasks(source: ComputedCells, box: Box, limit: int) -> None:
    tasks = 0 if box.is_empty else source.task_bytes(box) // max(1, limit)
    if tasks > MOST_TASKS:
        cells = source.cells_in(box)
        raise MemoryLimitError(
            f"the work needs about {tasks:,} tasks that fit into memory",
            got=f"about {cells:,} cells to compute",
            hint="Ask for less, as by a smaller shape or selection, or for aggregates",
        )


def _halves(source: ComputedCells, grid: ChunkGrid, block: Box) -> list[Box]:
    """A block cut in two between chunks, where that is possible.

    Cells are stored by the first dimension first. A cut along it parts what is stored; after any other, both halves
    decode nearly all of it. So it is made there, unless the halo would cost more.
    """
    keys = grid.key_box(block)
    cuttable = [axis for axis, chunks in enumerate(keys.shape) if chunks > 1]
    free = [axis for axis in cuttable if axis not in source.keep_whole] or cuttable
    cuts = [
        _cut(block, axis, grid.lo[axis] + (keys.lo[axis] + keys.shape[axis] // 2) * grid.chunk[axis]) for axis in free
    ]
    if len(cuts) < 2:
        return cuts[0] if cuts else []
    read = [sum(map(source.cells_decoded, halves)) for halves in cuts]
    return next(halves for halves, cells in zip(cuts, read, strict=True) if cells <= MORE_READING * min(read))


def _halves_within(source: ComputedCells, block: Box, uncut: Sequence[int]) -> list[Box]:
    """A block of one chunk cut in two along the axis that leaves the smallest tasks, if they get smaller at all."""
    axes = [axis for axis, extent in enumerate(block.shape) if extent > 1 and axis not in uncut]
    cuts = [_cut(block, axis, block.lo[axis] + block.shape[axis] // 2) for axis in axes]
    sizes = [max(map(source.task_bytes, halves)) for halves in cuts]
    if not cuts or min(sizes) > LESS * source.task_bytes(block):
        return []
    return cuts[sizes.index(min(sizes))]


def _cut(block: Box, axis: int, cut: int) -> list[Box]:
    """A block in two: before a coordinate along an axis, and from it on."""
    hi, lo = list(block.hi), list(block.lo)
    hi[axis], lo[axis] = cut - 1, cut
    return [Box(block.lo, tuple(hi)), Box(tuple(lo), block.hi)]


@dataclass(frozen=True)
class ComputeCells:
    """A task: compute the cells in one box and return them."""

    source: CellSource
    box: Box


def compute_cells(task: ComputeCells) -> pa.Table:
    return task.source.read(task.box)


def compute(engine: Engine, source: ComputedCells, box: Box) -> pa.Table:
    """The results in ``box``, gathered in this process in the order of their coordinates."""
    needed = 3 * source.cells_in(box) * row_bytes(source.schema)
    if needed > engine.memory:
        raise MemoryLimitError(
            f"the result needs about {needed / 2**30:.1f} GB of memory",
            got=f"a limit of {engine.memory / 2**30:.1f} GB",
            hint="Use store(), or connect with a larger memory=",
        )
    executor = engine.choose(source.touched_bytes(box))
    blocks = cell_blocks(source, source.schema.grid, box, executor)
    pieces = _computed(executor, source, blocks)
    if len(pieces) == 1:
        return pieces[0]
    table = pa.concat_tables([cell_fields(source.schema).empty_table(), *pieces])
    return in_coordinate_order(table, source.schema)


def _computed(executor: Executor, source: ComputedCells, blocks: Sequence[Box]) -> list[pa.Table]:
    tasks = [ComputeCells(source.within(block), block) for block in blocks]
    return executor.run(Job("computing windows", compute_cells, tasks, _largest(source, blocks)))


def _largest(source: ComputedCells, blocks: Sequence[Box]) -> int:
    return max(map(source.task_bytes, blocks), default=0)


@dataclass(frozen=True)
class StoreCells:
    """A task: compute the cells in one box of whole chunks and write them as parts of an array."""

    source: CellSource
    box: Box
    write: WriteCells


def store_cells(task: StoreCells) -> CellsReceipt:
    return task.write(iter(task.source.read(task.box).to_batches()))


def insert_computed(engine: Engine, working: WorkingArray, source: ComputedCells) -> InsertCounts:
    """Insert computed cells into a sparse array, written where they are computed."""
    from windrow.operations.sparse.insert import InsertCounts, writable
    from windrow.operations.sparse.lookup import mark_replaced
    from windrow.operations.sparse.tasks import WriteCells

    bounds = writable(working.schema)
    _check_fit(source, working, bounds)
    _check_room(source, working)
    executor = engine.choose(source.touched_bytes(source.box))
    blocks = cell_blocks(source, working.schema.grid, source.box, executor)
    write = WriteCells(working.path, working.schema, bounds, "error", (), working.title)
    tasks = [StoreCells(source.within(block), block, write) for block in blocks]
    label = f"computing {working.record.name}"
    receipts = executor.run(Job(label, store_cells, tasks, _largest(source, blocks)))
    written = [part for receipt in receipts for part in receipt.parts]
    try:
        replaced = mark_replaced(executor, working, written)
    except BaseException:
        SparseStore(working.path).discard(written)
        raise
    cells = sum(part.cells for part in written)
    add_run(working, written)
    return InsertCounts(cells, replaced, 0)


def _check_fit(source: ComputedCells, working: WorkingArray, bounds: Box) -> None:
    """Refuse columns and coordinates that the array cannot hold, before any work."""
    conform_cells(cell_fields(source.schema).empty_table(), working.schema, bounds)
    title = f"the dimensions of array {working.record.name} do not hold the result"
    if source.schema.dimension_names != working.schema.dimension_names:
        raise SchemaError(title, got=", ".join(source.schema.dimension_names), hint="They must come in the same order")
    if source.box not in bounds:
        raise SchemaError(title, got=f"results in {source.box}", hint=f"The array has room for {bounds}")


def _check_room(source: ComputedCells, working: WorkingArray) -> None:
    """Refuse a result that is far larger than what is free on the disk, before any work."""
    expected = source.cells_expected() if isinstance(source, CountedCells) else 0
    needed = expected * row_bytes(source.schema) // BEST_COMPRESSION
    try:
        free = shutil.disk_usage(working.path).free
    except OSError:  # it will be seen when it is written
        return
    if needed > free:
        raise StoreError(
            f"the result does not fit on the disk of the warehouse: about {expected:,} cells",
            got=f"{free / 2**30:,.1f} GB free for at least {needed / 2**30:,.1f} GB",
            hint="Use a smaller shape or selection, or ask for aggregates",
        )
