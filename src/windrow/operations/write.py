"""Writing boxes of values into dense arrays, and reshaping the arrays that take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.errors import DataError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import MOST_CELLS, Schema
from windrow.model.source import GridSource
from windrow.operations.blocks import ComputedSource, computed_blocks
from windrow.operations.sources import MemorySource, UpdatedSource, narrowed
from windrow.storage.dense import bounded
from windrow.storage.dense_blocks import BlockReceipt, BlockWrite, write_block
from windrow.storage.dense_store import DenseStore
from windrow.storage.transaction import WorkingArray

if TYPE_CHECKING:
    from windrow.expressions.nodes import Node

BLOCK_BYTES = 64 * 2**20
"""The largest block a task writes, if chunks allow it."""

COPIES = 4
"""How often a task holds its block: as read, as conformed, as encoded, and a partial chunk read back."""


def write(
    engine: Engine,
    working: WorkingArray,
    source: GridSource,
    at: Sequence[int],
    labels: Mapping[str, Labels] | None = None,
) -> int:
    """Write all of ``source`` with its first cell at ``at``; returns the number of cells."""
    region = Box.at(at, source.schema.box().shape)
    _check_region(working, region)
    reshape(working, region, labels or {})
    shift = tuple(there - here for there, here in zip(region.lo, source.schema.lo, strict=True))
    size = region.size * working.schema.cell_bytes
    if isinstance(source, ComputedSource):
        size = source.touched_bytes(source.schema.box())
    executor = engine.local if isinstance(source, MemorySource) and engine.name == "auto" else engine.choose(size)
    if isinstance(source, ComputedSource):
        blocks = _computed_blocks(source, working, region, shift, executor)
        memory = max(source.task_bytes(box.shift([-s for s in shift])) for box in blocks)
    else:
        blocks = working.schema.grid.blocks(region, _block_cells(working.schema, region, executor))
        memory = 0
    tasks = [(narrowed(source, box.shift([-s for s in shift])), box, shift) for box in blocks]
    run_blocks(executor, working, tasks, f"writing {working.record.name}", memory)
    return region.size


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
    """Write blocks through forked sessions, and commit what they wrote to the store; returns the cells changed.

    ``computing`` is the memory that a task needs before it has its block.
    """
    store = DenseStore(working.path)
    repository, session = store.begin()
    tasks = [
        BlockWrite(session.fork(), working.schema, working.box, source, box, shift, working.title)
        for source, box, shift in pieces
    ]
    largest = max((box.size for _, box, _ in pieces), default=0) * working.schema.cell_bytes
    receipts = executor.run(Job(label, write_block, tasks, max(computing, COPIES * largest)))
    keep_blocks(working, store.finish(repository, session, receipts, label), receipts)
    return sum(receipt.cells for receipt in receipts)


def keep_blocks(working: WorkingArray, pointer: str, receipts: Sequence[BlockReceipt]) -> None:
    """Make what tasks wrote the working state."""
    working.pointer = pointer
    working.written_chunks.extend(receipt.chunks for receipt in receipts)


def _block_cells(schema: Schema, region: Box, executor: Executor) -> int:
    fits = min(BLOCK_BYTES, executor.worker_memory // (2 * COPIES)) // max(1, schema.cell_bytes)
    share = -(-region.size // executor.workers)
    return max(1, min(fits, share))


def _check_region(working: WorkingArray, region: Box) -> None:
    for dimension, lo, hi in zip(working.schema.dimensions, region.lo, region.hi, strict=True):
        last = "*" if dimension.hi is None else dimension.hi
        if lo < dimension.lo or (dimension.hi is not None and hi > dimension.hi):
            raise DataError(
                f"array {working.record.name}: dimension {dimension.name} runs from {dimension.lo} to {last}",
                got=f"values for {lo} to {hi}",
                hint="Check at= and the shape of the values",
            )


def reshape(working: WorkingArray, region: Box, labels: Mapping[str, Labels]) -> None:
    """Grow the array to hold ``region`` and note its labels, in the store and in the working state."""
    grown = working.schema.box(tuple(map(max, working.hi, region.hi))).hi
    check_cells(working.schema, grown)
    changed: dict[str, Labels] = {}
    for axis, dimension in enumerate(working.schema.dimensions):
        first = region.lo[axis] - dimension.lo
        known, given = working.labels.get(dimension.name), labels.get(dimension.name)
        merged = _merge_labels(dimension.name, known, given, first, region.shape[axis], grown[axis] - dimension.lo + 1)
        if merged is not None:
            working.set_labels(dimension.name, merged, 0 if known is None else min(first, len(known)))
            changed[dimension.name] = merged
    if grown != working.hi or changed:
        store = DenseStore(working.path)
        store.reshape(working.schema, working.hi, grown, {**working.labels, **changed})
        working.pointer, working.hi = store.head(), grown


def check_cells(schema: Schema, hi: tuple[int, ...]) -> None:
    """Refuse a dense array with more cells than can be counted."""
    if schema.box(hi).size > MOST_CELLS:
        raise DataError(
            "a dense array has at most 2^62 cells", got=f"{schema.box(hi).size:,}", hint="Make it sparse, or smaller"
        )


def _merge_labels(
    name: str, known: Labels | None, given: Labels | None, first: int, count: int, extent: int
) -> Labels | None:
    """The dimension's labels after a write, or None if they stay as they are."""
    if given is not None and len(given) != count:
        raise DataError(f"dimension {name} gets {count} cells", got=f"{len(given)} labels")
    if known is None:
        if given is None:
            return None
        if first != 0 or count != extent:
            raise DataError(
                f"dimension {name} has no labels, and a write can only label all of it",
                got=f"labels for {count} of {extent} cells",
                hint="Set all labels with set_labels()",
            )
        return given
    if given is None:
        if extent > len(known):
            raise DataError(
                f"dimension {name} has labels, so cells that are added need some", got="none", hint="Give labels="
            )
        return None
    if first > len(known):
        raise DataError(f"dimension {name} would be left with unlabelled cells", got=f"labels from cell {first} on")
    if len(known):
        given = Labels.of(given.values, given.attributes, known.kind)  # dates may be given as text
    overlap = min(count, len(known) - first)
    if not known.slice(first, first + overlap).same_values(given.slice(0, overlap)):
        raise DataError(
            f"the labels given for dimension {name} differ from those of the cells written to",
            got=f"{given.values[0]} where the array has {known.values[first]}",
            hint="Check at=, or change the labels with set_labels()",
        )
    return None if overlap == count else known.concat(given.slice(overlap, count))


def set_labels(working: WorkingArray, dimension: str, labels: Labels) -> None:
    """Give a dimension new labels."""
    axis = working.schema.axis(dimension)
    extent = working.hi[axis] - working.schema.lo[axis] + 1
    if len(labels) != extent:
        raise DataError(f"dimension {dimension} has {extent} cells", got=f"{len(labels)} labels")
    working.set_labels(dimension, labels)
    if not working.record.sparse:
        store = DenseStore(working.path)
        store.reshape(working.schema, working.hi, working.hi, {dimension: labels})
        working.pointer = store.head()


def update_dense(
    engine: Engine, working: WorkingArray, assignments: tuple[tuple[str, Node], ...], condition: Node | None, box: Box
) -> int:
    """Evaluate assignments in every cell of ``box`` that satisfies the condition; returns how many did."""
    source = UpdatedSource(working.dense(), assignments, condition)
    executor = engine.choose(box.size * working.schema.cell_bytes)
    blocks = working.schema.grid.blocks(box, _block_cells(working.schema, box, executor))
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
    ended = bounded(working.schema, working.hi)
    sizes = replace(ended, dimensions=tuple(replace(d, chunk=stated.get(d.name)) for d in ended.dimensions))
    new = {d.name: d.chunk for d in sizes.with_chunks().dimensions if d.chunk is not None}
    schema = working.schema.with_chunks(new)
    store = DenseStore(working.path)
    store.rechunk(schema, working.hi, working.record.metadata)
    working.schema, working.pointer = schema, store.head()
    working.replaces_all_chunks, working.written_chunks = True, []
    executor = engine.choose(2 * working.box.size * schema.cell_bytes)
    blocks = schema.grid.blocks(working.box, _block_cells(schema, working.box, executor))
    zero = (0,) * schema.ndim
    run_blocks(executor, working, [(snapshot, block, zero) for block in blocks], f"compacting {working.record.name}")
    return schema
