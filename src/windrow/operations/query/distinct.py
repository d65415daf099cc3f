"""The values that an attribute has, each once: what cells that are grouped by it can be in groups of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.execution.engine import Engine
from windrow.execution.executor import Job
from windrow.expressions.nodes import Column
from windrow.model.arrow import arrow_type, block_to_arrow
from windrow.model.box import Box
from windrow.operations.query.blocks import computed_blocks, too_large
from windrow.operations.query.fused.sparse_rows import RowsTask, SparseRows, read_rows, rows_of
from windrow.operations.query.run import source_of
from windrow.operations.query.sparse_run import cell_blocks
from windrow.plan.bound import Bound
from windrow.plan.rewriting import optimize
from windrow.plan.steps import columns
from windrow.storage.cells import from_stored
from windrow.storage.records import Part


def distinct_values(engine: Engine, bound: Bound, name: str) -> pa.Array:
    """The values of an attribute of a step, in order, without missing ones."""
    chosen = optimize(columns(bound, ((name, Column(name)),))).bound
    kind = arrow_type(chosen.schema.attribute(name).type)
    pieces = [] if chosen.box.is_empty else _pieces(engine, source_of(engine, chosen), chosen, name)
    size = 4 * sum(piece.nbytes for piece in pieces)
    if size > engine.memory:
        raise too_large(size, engine)
    found = pc.unique(pa.chunked_array([piece.cast(kind) for piece in pieces], kind)).drop_null()
    return found.take(pc.array_sort_indices(found))


def _pieces(engine: Engine, source: Any, bound: Bound, name: str) -> list[pa.Array]:
    rows = rows_of(source) if bound.schema.sparse else None
    if rows is not None and rows.can_run(engine):
        parts = rows.parts
        largest = max(map(rows.task_bytes, parts), default=0)
        tasks: list[Any] = [PartValues(rows, part, name) for part in parts]
        return engine.choose(rows.touched_bytes).run(Job("finding groups", part_values, tasks, largest))
    executor = engine.choose(source.touched_bytes(bound.box))
    if bound.schema.sparse:
        blocks = cell_blocks(source, source.reading_grid, bound.box, executor)
        tasks = [BlockValues(source.within(block), block, name) for block in blocks]
    else:
        blocks = computed_blocks(source, source.reading_grid, bound.box, executor)
        tasks = [BlockValues(source, block, name) for block in blocks]
    return executor.run(Job("finding groups", block_values, tasks, max(map(source.task_bytes, blocks), default=0)))


@dataclass(frozen=True)
class BlockValues:
    """A task: the values of an attribute in a box. It pickles."""

    source: Any
    box: Box
    name: str


def block_values(task: BlockValues) -> pa.Array:
    found = task.source.read(task.box, [task.name])
    if isinstance(found, pa.Table):
        return found.column(task.name).unique()
    companion = task.source.schema.attribute(task.name).companion
    return block_to_arrow(found[task.name], found.get(companion)).unique()


@dataclass(frozen=True)
class PartValues:
    """A task: the values of an attribute in a part. It pickles."""

    work: SparseRows
    part: Part
    name: str


def part_values(task: PartValues) -> pa.Array:
    work, node = task.work, task.work.pipeline.outputs[task.name]
    stored = work.stored.schema
    if work.pipeline.conditions or not isinstance(node, Column) or node.key in stored.dimension_names:
        return read_rows(RowsTask(work, task.part)).column(task.name).unique()
    pieces = []
    for table, mask in work.stored.snapshot.reader.masked_batches(task.part, work.box, [node.key]):
        column = from_stored(table, stored).column(node.key)
        pieces.append((column if mask is None else column.filter(pa.array(mask))).unique())
    return pc.unique(pa.chunked_array(pieces, arrow_type(stored.attribute(node.key).type)))
