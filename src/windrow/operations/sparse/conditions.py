"""Cells that satisfy a condition: found part by part, then marked as dead, and written anew if they are updated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.execution.executor import Executor, Job
from windrow.expressions.evaluate import evaluate
from windrow.expressions.nodes import Node
from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.operations.dense.sources import assigned
from windrow.storage.cells import CellKeys, conform_cells, coordinates, from_stored, to_stored
from windrow.storage.part_writing import PartWriter
from windrow.storage.parts import PartReader
from windrow.storage.records import Int64Array, Part
from windrow.storage.upkeep.working_parts import add_run, mark_rows
from windrow.storage.working import WorkingArray

FEW_CELLS = 200_000
"""Up to so many updated cells of a part are handed back and written together with those of other parts."""

CELL_OVERHEAD = 6
"""Updating holds cells decoded, filtered and encoded; decoded cells are some times their stored size."""


@dataclass(frozen=True)
class FindCells:
    """A task: the rows of ``part`` in the box ``where`` that satisfy the condition (all of them if there is none)."""

    reader: PartReader
    part: Part
    where: Box | None
    condition: Node | None


def find_cells(task: FindCells) -> Int64Array:
    if task.condition is None:
        return task.reader.live_rows(task.part)
    schema = task.reader.schema
    named = {column.name for column in task.condition.columns()}
    columns = [name for name in (*schema.dimension_names, *schema.attribute_names) if name in named]
    columns = columns or [schema.dimension_names[0]]
    found = [np.empty(0, np.int64)]
    for table, rows in task.reader.numbered_batches(task.part, task.where, columns):
        found.append(rows[_satisfying(table, schema, task.condition)])
    return np.concatenate(found)


def mark_found(executor: Executor, working: WorkingArray, tasks: Sequence[FindCells]) -> int:
    """Let the cells be dead that tasks find; returns how many there were."""
    label = f"deleting from {working.record.name}"
    found = executor.run(Job(label, find_cells, tasks, _memory(working, tasks)))
    for task, rows in zip(tasks, found, strict=True):
        mark_rows(working, working.parts[task.part.path], rows)
    return sum(map(len, found))


@dataclass(frozen=True)
class UpdateCells:
    """A task: evaluate assignments in the cells of ``part`` in the box ``where`` that satisfy the condition."""

    reader: PartReader
    part: Part
    where: Box | None
    condition: Node | None
    assignments: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Updated:
    """The rows of a part that were updated, and the cells they became: handed back if they are few, else written."""

    rows: Int64Array
    cells: pa.Table
    parts: tuple[Part, ...]


def update_cells(task: UpdateCells) -> Updated:
    schema = task.reader.schema
    writer = PartWriter(task.reader.directory, schema)
    found, waiting, held = [np.empty(0, np.int64)], [], 0
    try:
        for table, rows in task.reader.numbered_batches(task.part, task.where):
            chosen = np.ones(table.num_rows, bool)
            if task.condition is not None:
                chosen = _satisfying(table, schema, task.condition)
            if chosen.any():
                found.append(rows[chosen])
                waiting.append(_update(table.filter(pa.array(chosen)), schema, task.assignments))
                held += waiting[-1].num_rows
            if held > FEW_CELLS:
                for cells in waiting:
                    writer.append(cells)
                waiting = []
        few = held <= FEW_CELLS
        for cells in () if few else waiting:
            writer.append(cells)
        parts = writer.close()
    except BaseException:
        writer.abandon()
        raise
    return Updated(np.concatenate(found), pa.concat_tables(waiting) if few and waiting else None, tuple(parts))


def _update(stored: pa.Table, schema: Schema, assignments: tuple[tuple[str, Node], ...]) -> pa.Table:
    cells = from_stored(stored, schema)
    columns = {name: cells.column(name) for name in cells.column_names}
    result = cells
    for name, expression in assignments:
        value = assigned(evaluate(expression, columns, cells.num_rows), schema.attribute(name))
        result = result.set_column(result.column_names.index(name), name, value)
    result = conform_cells(result, schema, _anywhere(schema.ndim))
    return to_stored(result, stored.column(CHUNK_COLUMN).to_numpy(), schema)


def replace_found(executor: Executor, working: WorkingArray, tasks: Sequence[UpdateCells]) -> int:
    """Replace the cells that tasks find by what they make of them; returns how many there were."""
    label = f"updating {working.record.name}"
    done = executor.run(Job(label, update_cells, tasks, _memory(working, tasks)))
    written = [part for updated in done for part in updated.parts]
    written += _write_few(working, [updated.cells for updated in done if updated.cells is not None])
    for task, updated in zip(tasks, done, strict=True):
        mark_rows(working, working.parts[task.part.path], updated.rows)
    add_run(working, written)
    return sum(len(updated.rows) for updated in done)


def _write_few(working: WorkingArray, tables: Sequence[pa.Table]) -> list[Part]:
    if not tables:
        return []
    table = pa.concat_tables(tables)
    keys = CellKeys(working.schema.grid, coordinates(table, working.schema))
    writer = PartWriter(working.path, working.schema)
    try:
        writer.append(table if keys.is_sorted() else table.take(pa.array(keys.order())))
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _memory(working: WorkingArray, tasks: Sequence[FindCells] | Sequence[UpdateCells]) -> int:
    largest = max((task.part.cells for task in tasks), default=0)
    return CELL_OVERHEAD * largest * (8 * (working.schema.ndim + 1) + working.schema.cell_bytes)


def _anywhere(ndim: int) -> Box:
    return Box((-(2**62),) * ndim, (2**62,) * ndim)


def _satisfying(table: pa.Table, schema: Schema, condition: Node) -> Any:
    cells = from_stored(table, schema)
    columns = {name: cells.column(name) for name in cells.column_names}
    return evaluate(condition, columns, cells.num_rows).fill_null(False).to_numpy(zero_copy_only=False)
