"""Rows in an order: each task orders its own and hands back no more than are asked for, and these are merged here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow.execution.engine import Engine
from windrow.execution.executor import Job
from windrow.model.box import Box
from windrow.model.source import CellSource, ComputedCells
from windrow.operations.query.blocks import too_large
from windrow.operations.query.sparse_run import cell_blocks
from windrow.plan.bound import BoundOrdered
from windrow.storage.cells import cell_fields

Keys = Sequence[tuple[str, bool]]
"""Columns, and whether the largest come first."""


@dataclass(frozen=True)
class OrderCells:
    """A task: the first rows of a box. It pickles."""

    source: CellSource
    box: Box
    keys: Keys
    dimensions: tuple[str, ...]
    limit: int | None


def order_cells(task: OrderCells) -> pa.Table:
    return put_in_order(task.source.read(task.box), task.keys, task.dimensions, task.limit)


def put_in_order(table: pa.Table, keys: Keys, dimensions: Sequence[str], limit: int | None) -> pa.Table:
    """Rows by the keys, missing values last; equal ones by their coordinates, so that nothing depends on chunks."""
    by, compared = [], table
    for number, (name, descending) in enumerate(keys):
        values = table.column(name)
        if pa.types.is_floating(values.type):
            # NaN is how a float is missing, and a sort would tell -0.0 from 0.0 by its bits.
            values = pc.add(pc.if_else(pc.is_nan(values), None, values), 0.0)
        key = f"key {number}"  # no column has a blank in its name
        compared = compared.append_column(key, values)
        by.append((key, "descending" if descending else "ascending"))
    by += [(name, "ascending") for name in dimensions]
    order = pc.sort_indices(compared, sort_keys=by)  # nulls are last whichever way
    return table.take(order if limit is None else order.slice(0, limit))


def order_rows(engine: Engine, source: ComputedCells, bound: BoundOrdered) -> pa.Table:
    """The rows of a result, in their order and gathered in this process."""
    dimensions, keys, limit = bound.schema.dimension_names, bound.keys, bound.limit
    kept = cell_fields(source.schema).empty_table()
    for box in [bound.box] if keys or limit is None else _growing_slabs(source, bound.box):
        for piece in _pieces(engine, source, box, bound):
            kept = pa.concat_tables([kept, piece])
            if limit is not None and kept.num_rows > max(2 * limit, _MERGED):
                kept = put_in_order(kept, keys, dimensions, limit).combine_chunks()
            if 3 * kept.nbytes > engine.memory:
                raise too_large(3 * kept.nbytes, engine)
        if not keys and limit is not None and kept.num_rows >= limit:
            break
    ordered = put_in_order(kept, keys, dimensions, limit)
    return ordered.select(cell_fields(bound.schema).names).combine_chunks()


_MERGED = 100_000
"""Rows that are merged at once: fewer would be put in order again and again."""


def _pieces(engine: Engine, source: ComputedCells, box: Box, bound: BoundOrdered) -> Iterator[pa.Table]:
    if box.is_empty:
        return
    executor = engine.choose(source.touched_bytes(box))
    blocks = cell_blocks(source, source.reading_grid, box, executor)
    at_once = 4 * executor.workers
    for start in range(0, len(blocks), at_once):
        together = blocks[start : start + at_once]
        tasks = [
            OrderCells(source.within(block), block, bound.keys, bound.schema.dimension_names, bound.limit)
            for block in together
        ]
        largest = max(map(source.task_bytes, together), default=0)
        yield from executor.run(Job("ordering", order_cells, tasks, largest))


def _growing_slabs(source: ComputedCells, box: Box) -> Iterator[Box]:
    """The box along its first dimension, which coordinates are ordered by first: few chunks, then twice as many."""
    if box.is_empty:
        return
    grid = source.reading_grid
    first, chunks = box.lo[0], 1
    while first <= box.hi[0]:
        begin = grid.lo[0] + (first - grid.lo[0]) // grid.chunk[0] * grid.chunk[0]
        last = min(box.hi[0], begin + chunks * grid.chunk[0] - 1)
        yield Box((first, *box.lo[1:]), (last, *box.hi[1:]))
        first, chunks = last + 1, 2 * chunks
