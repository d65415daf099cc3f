"""A dimension of numbers for cells that share all other coordinates, added to an array that has none yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import SchemaError
from windrow.execution.engine import Engine
from windrow.model.schema import NUMBERING, Dimension, Schema
from windrow.operations.dataframes import live_rows
from windrow.operations.sparse.insert import write_parts
from windrow.storage.working import WorkingArray


def add_numbering(engine: Engine, working: WorkingArray) -> None:
    """Let cells of one place be told apart by a number. Those that are there get 0, and are written anew with it."""
    schema = numbered_schema(working.schema)
    old = working.sparse()
    working.schema, working.hi = schema, (*working.hi, 0 if old.parts else -1)
    if not old.parts:
        return
    executor = engine.choose(4 * sum(part.bytes for part in old.parts))
    receipts = write_parts(executor, working, _with_number(live_rows(executor, old, None)), "error")
    working.parts.clear()
    working.steps += 1
    for part in (part for receipt in receipts for part in receipt.parts):
        assert part.chunks is not None
        known = np.zeros(len(part.chunks), np.int64)
        working.parts[part.path] = replace(part, run=0, chunks=replace(part.chunks, changed=known))


def numbered_schema(schema: Schema) -> Schema:
    """The schema with a last dimension that numbers cells of one place."""
    if NUMBERING in schema.attribute_names:
        hint = f"Make the array with one of another name, as in [{_listed(schema)}, number=0:* numbering]"
        raise SchemaError(f"cells are numbered along {NUMBERING}, which is the name of an attribute", hint=hint)
    dimensions = (*schema.dimensions, Dimension(NUMBERING, 0, None, numbering=True))
    return Schema(dimensions, schema.attributes, sparse=True).with_chunks()


def _listed(schema: Schema) -> str:
    return ", ".join(map(str, schema.dimensions))


def _with_number(rows: Any) -> Any:
    if isinstance(rows, pa.Table):
        return rows.append_column(NUMBERING, pa.array(np.zeros(rows.num_rows, np.int64)))
    return rows.selectExpr("*", f"cast(0 as bigint) as {NUMBERING}")
