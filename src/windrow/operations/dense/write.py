"""Writing boxes of values into dense arrays, and reshaping the arrays that take them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.errors import DataError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.placing import Placed, Side, place
from windrow.model.schema import MOST_CELLS, Schema
from windrow.model.source import GridSource
from windrow.operations.dense.placed import placed_source
from windrow.operations.dense.sources import MemorySource, UpdatedSource, narrowed
from windrow.operations.query.blocks import ComputedSource, computed_blocks
from windrow.storage.dense.blocks import BlockReceipt, BlockWrite, write_block
from windrow.storage.dense.snapshots import bound_schema
from windrow.storage.dense.store import DenseStore, Reshape
from windrow.storage.working import WorkingArray

if TYPE_CHECKING:
    from windrow.expressions.nodes import Node

BLOCK_BYTES = 64 * 2**20
"""The largest block a task writes, if chunks allow it."""

ALONE_BYTES = 16 * 2**20
"""Chunks of no more than this, as they are in memory, are written by one task."""

COPIES = 4
"""How often a task holds its block: as read, as conformed, as encoded, and a partial chunk read back."""


@dataclass(frozen=True)
class Written:
    """What a write did: the cells it brought, those of them that were there before, and others that it moved."""

    cells: int
    replaced: int = 0
    moved: int = 0


def write(
    engine: Engine,
    working: WorkingArray,
    source: GridSource,
    at: Sequence[int | None],
    labels: Mapping[str, Labels] | None = None,
) -> Written:
    """Write all of ``source`` with its first cell at ``at``; where that is None, its labels say where it goes."""
    placed = _place(working, source.schema.box().shape, at, labels or {})
    snapshot = working.dense()
    region = _touched(working, placed)
    _check_region(working, region)
    _check_values(working, source, placed)
    _reshape_to(working, placed)
    moves = any(one.moved_to is not None for one in placed)
    # In an array that does not grow all cells were there, which says nothing.
    there = [one.replaced(extent) for one, extent in zip(placed, snapshot.box.shape, strict=True)]
    replaced = math.prod(there) if working.schema.growing else 0
    if not moves and all(one.is_run for one in placed):
        _write_as_it_lies(engine, working, source, region)
        return Written(region.size, replaced)
    names = working.schema.attribute_names if moves else _brought(working, source)
    target = placed_source(source, snapshot, region, placed, names)
    cells = math.prod(len(one.targets) for one in placed)
    executor = engine.choose(region.size * working.schema.cell_bytes)
    blocks = working.schema.grid.blocks(region, block_cells(working.schema, region, executor))
    touched = blocks if moves else [box for box in blocks if target.touches(box)]
    zero = (0,) * working.schema.ndim
    tasks = [(target.narrow(box), box, zero) for box in touched]
    run_blocks(executor, working, tasks, f"writing {working.record.name}")
    return Written(cells, replaced, region.size - cells if moves else 0)


def _brought(working: WorkingArray, source: GridSource) -> tuple[str, ...]:
    return tuple(name for name in working.schema.attribute_names if name in source.schema.attribute_names)


def _place(
    working: WorkingArray, shape: Sequence[int], at: Sequence[int | None], labels: Mapping[str, Labels]
) -> list[Placed]:
    """Where the cells of a write go along each dimension."""
    placed = []
    for axis, dimension in enumerate(working.schema.dimensions):
        start = at[axis]
        if start is not None and start < dimension.lo:
            raise _outside(working, axis, start, start + shape[axis] - 1)
        side = Side(dimension.name, dimension.growing, working.box.shape[axis], working.labels.get(dimension.name))
        first = None if start is None else start - dimension.lo
        placed.append(place(side, shape[axis], labels.get(dimension.name), first))
    return placed


def _touched(working: WorkingArray, placed: Sequence[Placed]) -> Box:
    """The box of all cells that a write changes: what is moved is moved along its whole slice."""
    first, last = [one.first for one in placed], [one.last for one in placed]
    moving = [axis for axis, one in enumerate(placed) if one.moved_to is not None]
    if moving:
        first, last = [0] * len(placed), [one.extent - 1 for one in placed]
    if len(moving) == 1:
        one = placed[moving[0]]
        first[moving[0]] = min(one.first, one.first_moved)
    return Box(tuple(first), tuple(last)).shift(working.schema.lo)


def _write_as_it_lies(engine: Engine, working: WorkingArray, source: GridSource, region: Box) -> None:
    """Write a source whose cells lie side by side in the array, too."""
    shift = tuple(there - here for there, here in zip(region.lo, source.schema.lo, strict=True))
    size = region.size * working.schema.cell_bytes
    if isinstance(source, ComputedSource):
        size = source.touched_bytes(source.schema.box())
    executor = engine.local if isinstance(source, MemorySource) and engine.name == "auto" else engine.choose(size)
    if isinstance(source, ComputedSource):
        blocks = _computed_blocks(source, working, region, shift, executor)
        memory = max(source.task_bytes(box.shift([-s for s in shift])) for box in blocks)
    else:
        blocks = working.schema.grid.blocks(region, block_cells(working.schema, region, executor))
        memory = 0
    tasks = [(narrowed(source, box.shift([-s for s in shift])), box, shift) for box in blocks]
    run_blocks(executor, working, tasks, f"writing {working.record.name}", memory)


def _computed_blocks(
    source: ComputedSource, working: WorkingArray, region: Box, shift: tuple[int, ...], executor: Executor
) -> list[Box]:
    """Blocks along the chunks of the array that is written, chosen by what it costs to compute them."""
    back = [-s for s in shift]
    grid = working.schema.grid
    moved = ChunkGrid(
        tuple(lo - s for lo, s in zip(grid.lo, shift, strict=True)),
        tuple(None if hi is None else hi - s for hi, s in zip(grid.hi, shift, strict=True)),
        grid.chunk,
    )
    return [box.shift(shift) for box in computed_blocks(source, moved, region.shift(back), executor)]


def run_blocks(
    executor: Executor,
    working: WorkingArray,
    pieces: Sequence[tuple[GridSource, Box, tuple[int, ...]]],
    label: str,
    computing: int = 0,
) -> int:
    """Write blocks and commit what they wrote to the store; returns the cells changed.

    ``computing`` is the memory that a task needs before it has its block. In this process the blocks and the growth
    that they need are one commit; elsewhere tasks have forks of the session, and a session with changes has none.
    """
    store = DenseStore(working.path)
    is_local, title = executor.name == "local", working.title
    if is_local:
        growth, working.growth = working.growth, None
    else:
        settle(working)
        growth = None
    repository, session = store.begin(growth)
    tasks = [
        BlockWrite(session if is_local else session.fork(), working.schema, working.box, source, box, shift, title)
        for source, box, shift in pieces
    ]
    largest = max((box.size for _, box, _ in pieces), default=0) * working.schema.cell_bytes
    receipts = executor.run(Job(label, write_block, tasks, max(computing, COPIES * largest)))
    keep_blocks(working, store.finish(repository, session, receipts, label), receipts)
    return sum(receipt.cells for receipt in receipts)


def settle(working: WorkingArray) -> None:
    """Commit growth that nothing was written with."""
    if working.growth is not None:
        store = DenseStore(working.path)
        store.reshape(working.growth)
        working.growth, working.pointer = None, store.head()


def keep_blocks(working: WorkingArray, pointer: str, receipts: Sequence[BlockReceipt]) -> None:
    """Make what tasks wrote the working state."""
    working.pointer = pointer
    working.written_chunks.extend(receipt.chunks for receipt in receipts)
    working.written_boxes.extend(box for receipt in receipts for box in receipt.boxes)


def block_cells(schema: Schema, region: Box, executor: Executor) -> int:
    """How many cells a task may write at once."""
    fits = min(BLOCK_BYTES, executor.worker_memory // (2 * COPIES)) // max(1, schema.cell_bytes)
    # To start tasks takes longer than to write the chunks of a small box one after another.
    is_small = schema.grid.aligned(region).size * schema.cell_bytes <= ALONE_BYTES
    share = region.size if is_small else -(-region.size // executor.workers)
    return max(1, min(fits, share))


def _check_region(working: WorkingArray, region: Box) -> None:
    for axis, dimension in enumerate(working.schema.dimensions):
        if region.lo[axis] < dimension.lo or (dimension.hi is not None and region.hi[axis] > dimension.hi):
            raise _outside(working, axis, region.lo[axis], region.hi[axis])


def _check_values(working: WorkingArray, source: GridSource, placed: Sequence[Placed]) -> None:
    """Refuse new slices without a value for an attribute that cannot be missing: 0 would be made up."""
    if all(one.extent == extent for one, extent in zip(placed, working.box.shape, strict=True)):
        return
    brought = _brought(working, source)
    for attribute in working.schema.attributes:
        if attribute.name not in brought and not attribute.can_be_missing:
            raise DataError(
                f"array {working.record.name}: cells are added, which need values of attribute {attribute.name}",
                got=f"values of {', '.join(brought)}",
                hint=f"Give {attribute.name}, too; or declare it null, and it is missing there",
            )


def _outside(working: WorkingArray, axis: int, lo: int, hi: int) -> DataError:
    dimension = working.schema.dimensions[axis]
    last = "*" if dimension.hi is None else dimension.hi
    return DataError(
        f"array {working.record.name}: dimension {dimension.name} runs from {dimension.lo} to {last}",
        got=f"values for {lo} to {hi}",
        hint="Check at= and the shape of the values",
    )


def grow(working: WorkingArray, region: Box) -> None:
    """Grow the array to hold ``region``, whose cells bring no labels; what is written next brings it to the store."""
    _reshape_to(working, _place(working, region.shape, region.lo, {}))


def _reshape_to(working: WorkingArray, placed: Sequence[Placed]) -> None:
    """Grow the array to what ``placed`` says and note its labels; what is written next brings it to the store."""
    ends = zip(working.schema.dimensions, placed, strict=True)
    grown = tuple(dimension.lo + one.extent - 1 for dimension, one in ends)
    check_cells(working.schema, grown)
    changed = {}
    for dimension, one in zip(working.schema.dimensions, placed, strict=True):
        if one.labels is not None:
            changed[dimension.name] = one.labels
            working.set_labels(dimension.name, one.labels, one.label_start)
    if grown != working.hi or changed:
        working.growth = Reshape(working.schema, working.hi, grown, {**working.labels, **changed})
        working.hi = grown


def follow(working: WorkingArray, hi: tuple[int, ...], labels: Mapping[str, Labels]) -> None:
    """Let the array end and be labelled as another one does, whatever it had; what is written next brings it along."""
    for name, found in labels.items():
        working.set_labels(name, found)
    if hi != working.hi or labels:
        working.growth = Reshape(working.schema, working.hi, hi, {**working.labels, **labels})
        working.hi = hi


def check_cells(schema: Schema, hi: tuple[int, ...]) -> None:
    """Refuse a dense array with more cells than can be counted."""
    if schema.box(hi).size > MOST_CELLS:
        raise DataError(
            "a dense array has at most 2^62 cells", got=f"{schema.box(hi).size:,}", hint="Make it sparse, or smaller"
        )


def set_labels(working: WorkingArray, dimension: str, labels: Labels) -> None:
    """Give a dimension new labels."""
    axis = working.schema.axis(dimension)
    extent = working.hi[axis] - working.schema.lo[axis] + 1
    if len(labels) != extent:
        raise DataError(f"dimension {dimension} has {extent} cells", got=f"{len(labels)} labels")
    working.set_labels(dimension, labels)
    if not working.record.sparse:
        store = DenseStore(working.path)
        store.reshape(Reshape(working.schema, working.hi, working.hi, {dimension: labels}))
        working.pointer = store.head()


def update_dense(
    engine: Engine, working: WorkingArray, assignments: tuple[tuple[str, Node], ...], condition: Node | None, box: Box
) -> int:
    """Evaluate assignments in every cell of ``box`` that satisfies the condition; returns how many did."""
    source = UpdatedSource(working.dense(), assignments, condition)
    executor = engine.choose(box.size * working.schema.cell_bytes)
    blocks = working.schema.grid.blocks(box, block_cells(working.schema, box, executor))
    zero = (0,) * working.schema.ndim
    return run_blocks(executor, working, [(source, block, zero) for block in blocks], f"updating {working.record.name}")


def compact_dense(engine: Engine, working: WorkingArray, chunks: Mapping[str, int]) -> Schema:
    """Store the array anew with other chunk sizes: by default long ones along growing dimensions."""
    if working.box.is_empty:
        return working.schema
    working.schema.with_chunks(chunks)  # refuses names and sizes that cannot be
    snapshot = working.dense()
    stated = {d.name: d.chunk for d in working.schema.dimensions if d.chunk is not None and not d.growing} | dict(
        chunks
    )
    ended = bound_schema(working.schema, working.hi)
    sizes = replace(ended, dimensions=tuple(replace(d, chunk=stated.get(d.name)) for d in ended.dimensions))
    new = {d.name: d.chunk for d in sizes.with_chunks().dimensions if d.chunk is not None}
    schema = working.schema.with_chunks(new)
    store = DenseStore(working.path)
    store.rechunk(schema, working.hi, working.record.metadata)
    working.schema, working.pointer = schema, store.head()
    working.replaces_all_chunks, working.written_chunks = True, []
    executor = engine.choose(2 * working.box.size * schema.cell_bytes)
    blocks = schema.grid.blocks(working.box, block_cells(schema, working.box, executor))
    zero = (0,) * schema.ndim
    run_blocks(executor, working, [(snapshot, block, zero) for block in blocks], f"compacting {working.record.name}")
    return schema
