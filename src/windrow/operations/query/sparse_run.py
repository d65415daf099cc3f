"""Running computed sparse data: cut into tasks where its cells are, and gathered here or written where computed."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.errors import MemoryLimitError, SchemaError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.source import CellSource, ComputedCells
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


def cell_blocks(source: ComputedCells, grid: ChunkGrid, box: Box, executor: Executor) -> list[Box]:
    """``box`` in blocks along the borders of ``grid``: the most costly one is cut until there are enough tasks.

    Where cells crowd blocks are small, and no more are cut than are needed, since each reads a halo. One that does not
    fit a task is cut in any case. Blocks without cells are left out.
    """
    limit = min(TASK_BYTES, executor.worker_memory)
    blocks: list[Box] = []
    pending: list[tuple[int, Box]] = []  # by cost, the largest last

    def enter(block: Box) -> None:
        if not block.is_empty and source.cells_in(block):
            bisect.insort(pending, (source.cells_decoded(block), block), key=lambda entry: entry[0])

    enter(grid.clip(box))
    while pending:
        cost, block = pending.pop()
        enough = 1 + len(blocks) + len(pending) >= TASKS_PER_WORKER * executor.workers
        small = (enough or cost <= SMALLEST_TASK) and source.task_bytes(block) <= limit
        halves = [] if small else _halves(source, grid, block)
        for half in halves:
            enter(half)
        if not halves:
            blocks.append(block)
    return sorted(blocks, key=lambda block: block.lo)


def _halves(source: ComputedCells, grid: ChunkGrid, block: Box) -> list[Box]:
    """A block cut in two between chunks, where that is possible.

    Cells are stored by the first dimension first. A cut along it parts what is stored; after any other, both halves
    decode nearly all of it. So it is made there, unless the halo would cost more.
    """
    keys = grid.key_box(block)
    cuttable = [axis for axis, chunks in enumerate(keys.shape) if chunks > 1]
    free = [axis for axis in cuttable if axis not in source.keep_whole] or cuttable
    cuts = [_cut(grid, block, axis, keys.lo[axis] + keys.shape[axis] // 2) for axis in free]
    if len(cuts) < 2:
        return cuts[0] if cuts else []
    read = [sum(map(source.cells_decoded, halves)) for halves in cuts]
    return next(halves for halves, cells in zip(cuts, read, strict=True) if cells <= MORE_READING * min(read))


def _cut(grid: ChunkGrid, block: Box, axis: int, key: int) -> list[Box]:
    """A block in two: before the chunk of a number along an axis, and from it on."""
    cut = grid.lo[axis] + key * grid.chunk[axis]
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
