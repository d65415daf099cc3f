"""Deleting and updating cells by condition, and putting the parts of a sparse array in order again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from windrow.errors import DataError, MachineError
from windrow.execution.engine import Engine
from windrow.expressions.bounds import box_of
from windrow.expressions.nodes import Node
from windrow.expressions.types import check, check_condition
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.model.types import TYPES, DataType
from windrow.operations.dataframes import live_rows
from windrow.operations.dense.write import update_dense
from windrow.operations.sparse.conditions import FindCells, UpdateCells, mark_found, replace_found
from windrow.operations.sparse.insert import writable, write_parts
from windrow.storage.records import Part
from windrow.storage.upkeep.working_parts import chunks_of
from windrow.storage.working import WorkingArray


def column_types(schema: Schema) -> dict[str, DataType]:
    """What an expression over an array's cells may name, and of which type it is."""
    return dict.fromkeys(schema.dimension_names, TYPES["int64"]) | {a.name: a.type for a in schema.attributes}


def checked_condition(condition: Node | None, schema: Schema) -> Node | None:
    if condition is not None:
        check_condition(condition, column_types(schema))
    return condition


def delete(engine: Engine, working: WorkingArray, condition: Node | None) -> int:
    """Delete the cells that satisfy the condition; returns how many there were."""
    name = working.record.name
    if working.record.sparse is False:
        raise DataError(
            f"array {name} is dense: its cells cannot be deleted",
            hint=f"Make values missing instead: update {name} set {working.schema.attribute_names[0]} = null where …",
        )
    checked_condition(condition, working.schema)
    where = _reach(working, condition)
    tasks = [FindCells(working.reader, part, where, condition) for part in _candidates(working, where)]
    executor = engine.choose(sum(task.part.bytes for task in tasks))
    return mark_found(executor, working, tasks)


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
    where = _reach(working, condition)
    tasks = [UpdateCells(working.reader, part, where, condition, ordered) for part in _candidates(working, where)]
    executor = engine.choose(sum(task.part.bytes for task in tasks))
    return replace_found(executor, working, tasks)


def _check_assignable(target: DataType, found: DataType, name: str, expression: Node) -> None:
    fits = target == found or (target.is_number and found.is_number) or found.name == "null"
    if not fits:
        raise DataError(f"attribute {name} is of type {target}", got=f"{expression}, which is of type {found}")


def _reach(working: WorkingArray, condition: Node | None) -> Box | None:
    """The box outside of which no cell satisfies a condition."""
    if condition is None:
        return None
    return box_of(condition, working.schema.dimension_names, Box(working.schema.lo, writable(working.schema).hi))


def _candidates(working: WorkingArray, where: Box | None) -> list[Part]:
    return [replace(part, chunks=None) for part in working.sparse().touching(where)]


def compact_sparse(engine: Engine, working: WorkingArray, chunks: Mapping[str, int]) -> Schema:
    """Write all cells anew, in order, in parts of a good size."""
    schema = working.schema.with_chunks(chunks)
    old = working.sparse()
    told = chunks_of(working) if schema.grid == working.schema.grid else None
    working.schema = schema
    if not old.parts:
        return schema
    executor = engine.choose(4 * sum(part.bytes for part in old.parts))
    try:
        receipts = write_parts(executor, working, live_rows(executor, old, None), "error")
    except (OSError, MachineError):
        for part in old.parts:
            old.reader.check(part)  # if one is damaged, this names it
        raise
    working.parts.clear()
    working.steps += 1
    for part in (part for receipt in receipts for part in receipt.parts):
        assert part.chunks is not None
        known = np.zeros(len(part.chunks), np.int64)
        if told is not None:
            merged = told.merged()
            known = merged.changed[np.searchsorted(merged.ordinals, part.chunks.ordinals)]
        working.parts[part.path] = replace(part, run=0, chunks=replace(part.chunks, changed=known))
    return schema
