"""Deleting and updating cells by condition, and putting the parts of a sparse array in order again."""

from __future__ import annotations

import os
from collections.abc import Mapping

from windrow.errors import DataError, MachineError
from windrow.execution.engine import Engine
from windrow.expressions.bounds import box_of
from windrow.expressions.nodes import Node
from windrow.expressions.types import check, check_condition
from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.model.types import TYPES, DataType
from windrow.operations.cell_tasks import (
    DeleteCells,
    PartRewrite,
    UpdateCells,
    delete_cells,
    update_cells,
)
from windrow.operations.insert import apply_parts, run_rewrites, writable, write_parts
from windrow.operations.write import update_dense
from windrow.storage.parts import PartReader
from windrow.storage.records import Part
from windrow.storage.transaction import WorkingArray


def column_types(schema: Schema) -> dict[str, DataType]:
    """What an expression over an array's cells may name, and of which type it is."""
    return dict.fromkeys(schema.dimension_names, TYPES["int64"]) | {a.name: a.type for a in schema.attributes}


def checked_condition(condition: Node | None, schema: Schema) -> Node | None:
    if condition is not None:
        check_condition(condition, column_types(schema))
    return condition


def delete(engine: Engine, working: WorkingArray, condition: Node | None) -> int:
    """Delete the cells that satisfy the condition; returns how many there were."""
    if working.record.sparse is False:
        raise DataError(
            f"array {working.record.name} is dense: its cells cannot be deleted",
            hint="Make values missing instead: update({'a': 'null'}, where=…)",
        )
    checked_condition(condition, working.schema)
    reader = PartReader(working.title, working.path, working.schema)
    tasks = [DeleteCells(reader, part, condition) for part in _candidates(working, condition)]
    executor = engine.choose(sum(task.part.bytes for task in tasks))
    label = f"deleting from {working.record.name}"
    rewrites = run_rewrites(executor, working, label, delete_cells, tasks)
    deleted = sum(rewrite.touched for rewrite in rewrites)
    apply_parts(working, [], rewrites, f"delete {deleted} cells")
    return deleted


def update(engine: Engine, working: WorkingArray, assignments: Mapping[str, Node], condition: Node | None) -> int:
    """Evaluate assignments in the cells that satisfy the condition; returns how many there were."""
    if not assignments:
        raise DataError("there is nothing to set", hint="As in update({'a': 'a + 1'}, where='a > 3')")
    checked_condition(condition, working.schema)
    types = column_types(working.schema)
    for name, expression in assignments.items():
        if name in working.schema.dimension_names:
            raise DataError("a cell's coordinates cannot be updated", got=name, hint="Delete and insert instead")
        _check_assignable(working.schema.attribute(name).type, check(expression, types), name, expression)
    ordered = tuple(assignments.items())
    box = working.box if condition is None else box_of(condition, working.schema.dimension_names, working.box)
    if not working.record.sparse:
        return 0 if box.is_empty else update_dense(engine, working, ordered, condition, box)
    reader = PartReader(working.title, working.path, working.schema)
    tasks = [UpdateCells(reader, part, ordered, condition) for part in _candidates(working, condition)]
    executor = engine.choose(sum(task.part.bytes for task in tasks))
    label = f"updating {working.record.name}"
    rewrites = run_rewrites(executor, working, label, update_cells, tasks)
    updated = sum(rewrite.touched for rewrite in rewrites)
    apply_parts(working, [], rewrites, f"update {updated} cells")
    return updated


def _check_assignable(target: DataType, found: DataType, name: str, expression: Node) -> None:
    fits = target == found or (target.is_number and found.is_number) or found.name == "null"
    if not fits:
        raise DataError(f"attribute {name} is of type {target}", got=f"{expression}, which is of type {found}")


def _candidates(working: WorkingArray, condition: Node | None) -> list[Part]:
    parts = list(working.parts.values())
    if condition is None:
        return list(parts)
    box = box_of(condition, working.schema.dimension_names, Box(working.schema.lo, writable(working.schema).hi))
    return [part for part in parts if part.box.overlaps(box)]


def compact_sparse(engine: Engine, working: WorkingArray, chunks: Mapping[str, int]) -> Schema:
    """Write all cells anew, in order, in parts of a good size."""
    schema = working.schema.with_chunks(chunks)
    old = list(working.parts.values())
    reader = PartReader(working.title, working.path, working.schema)
    working.schema = schema
    if not old:
        return schema
    executor = engine.choose(4 * sum(part.bytes for part in old))
    for part in old:
        reader.check_footer(part)
    try:
        rows = executor.read_parquet([os.path.join(working.path, part.path) for part in old]).drop(CHUNK_COLUMN)
        receipts = write_parts(executor, working, rows, "error")
    except (OSError, MachineError):
        for part in old:
            reader.check(part)  # if one is damaged, this names it
        raise
    written = [part for receipt in receipts for part in receipt.parts]
    apply_parts(working, written, [PartRewrite(part, (), part.cells) for part in old], "compact")
    return schema
