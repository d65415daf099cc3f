"""Inserting cells: sort them by chunk across the workers, write parts, then mark the cells they replace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.errors import DataError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor
from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, MOST_CELLS, Schema
from windrow.operations.sparse.lookup import mark_replaced
from windrow.operations.sparse.tasks import CellsReceipt, Duplicates, WriteCells, refuse_duplicates
from windrow.storage.cells import lacking_column
from windrow.storage.sparse import SparseStore
from windrow.storage.upkeep.working_parts import add_run
from windrow.storage.working import WorkingArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POLICIES = ("error", "last", "keep")
_KEY_COLUMN = f"{CHUNK_COLUMN} and offset"
"""A name that no column of a user's can have."""


@dataclass(frozen=True)
class InsertCounts:
    """How an insert went."""

    cells: int
    replaced: int
    duplicates: int


def insert(engine: Engine, working: WorkingArray, rows: pa.Table | DataFrame, on_duplicate: Duplicates) -> InsertCounts:
    """Insert cells into a sparse array; a cell at an occupied coordinate replaces the one there."""
    on_spark = not isinstance(rows, pa.Table)
    schema = _check_policy(working.schema, on_duplicate, on_spark)
    executor: Executor = engine.spark() if on_spark else engine.local
    store = SparseStore(working.path)
    receipts = write_parts(executor, working, rows, on_duplicate)
    written = [part for receipt in receipts for part in receipt.parts]
    try:
        if on_duplicate == "error":
            refuse_duplicates(receipts, working.schema)
        replaced = mark_replaced(executor, working, written)
    except BaseException:
        store.discard(written)
        raise
    cells = sum(part.cells for part in written)
    working.schema = schema
    add_run(working, written)
    return InsertCounts(cells, replaced, sum(r.duplicates for r in receipts))


def _check_policy(schema: Schema, on_duplicate: str, on_spark: bool) -> Schema:
    """The schema after such an insert: the first that keeps duplicates marks the dimension that numbers them."""
    if on_duplicate not in POLICIES:
        raise DataError("on_duplicate must be one of " + ", ".join(POLICIES), got=repr(on_duplicate))
    if on_duplicate == "last" and on_spark:
        raise DataError(
            'on_duplicate="last" needs ordered input',
            got="a Spark DataFrame",
            hint="Drop the duplicates in Spark first",
        )
    if on_duplicate != "keep":
        return schema
    assert schema.numbering_name is not None  # whoever keeps duplicates has added one
    return schema.with_numbering(schema.numbering_name)


def writable(schema: Schema) -> Box:
    """The cells that may ever be written; growing dimensions end where their chunks can no longer be numbered."""
    grid = schema.grid
    last = [lo + n * size - 1 for lo, n, size in zip(grid.lo, grid.radix, grid.chunk, strict=True)]
    ends = zip(schema.dimensions, last, strict=True)
    return Box(schema.lo, tuple(min(end, MOST_CELLS) if d.hi is None else d.hi for d, end in ends))


def write_parts(executor: Executor, working: WorkingArray, rows: Any, on_duplicate: Duplicates) -> list[CellsReceipt]:
    """Sort rows by chunk across the workers, and write each range as parts."""
    schema = working.schema
    existing = tuple(working.parts.values()) if on_duplicate == "keep" else ()
    function = WriteCells(working.path, schema, writable(schema), on_duplicate, existing, working.title)
    numbering = schema.numbering_name if on_duplicate == "keep" else None
    dimensions = [name for name in schema.dimension_names if name != numbering]
    label = f"inserting into {working.record.name}"
    columns = rows.column_names if isinstance(rows, pa.Table) else rows.columns
    for name in dimensions:
        if name not in columns:
            raise lacking_column(name, columns)
    if isinstance(rows, pa.Table):
        return _write_local(executor, label, rows, dimensions, function)
    keyed, order = _with_key(rows, schema, dimensions)
    return executor.map_sorted(label, keyed, order, function)


def _write_local(
    executor: Executor, label: str, rows: pa.Table, dimensions: Sequence[str], function: WriteCells
) -> list[CellsReceipt]:
    if not rows.num_rows:
        return [function(iter(rows.to_batches()))]
    keys = _sort_keys(rows, dimensions, function)
    for name, column in keys.items():
        rows = rows if name in dimensions else rows.append_column(name, pa.array(column))
    return executor.map_sorted(label, rows, list(keys), function)


def _sort_keys(rows: pa.Table, dimensions: Sequence[str], function: WriteCells) -> dict[str, Any]:
    """Columns that sort as chunk and coordinates do: one number where that fits, which is sorted fastest."""
    grid = function.schema.grid
    ordinals, offsets = np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, np.int64)
    checked = {name: _integer_column(rows, name) for name in dimensions}
    for name, column in checked.items():
        axis = function.schema.axis(name)
        steps = np.clip(column, function.bounds.lo[axis], function.bounds.hi[axis]) - grid.lo[axis]
        chunks = steps // grid.chunk[axis]
        ordinals += chunks * grid.strides[axis]
        offsets = offsets * grid.chunk[axis] + steps - chunks * grid.chunk[axis]
    if int(ordinals.max()) < (2**63 - 1) // grid.chunk_cells:
        return {_KEY_COLUMN: ordinals * grid.chunk_cells + offsets}
    return {CHUNK_COLUMN: ordinals} | checked


def _integer_column(rows: pa.Table, name: str) -> Any:
    column = rows.column(name)
    if column.null_count or not pa.types.is_integer(column.type):
        what = f"{column.null_count} nulls" if column.null_count else column.type
        points = pa.types.is_floating(column.type)
        hint = "Give a grid= for points" if points else "Convert the column, or leave those rows out"
        raise DataError(f"coordinates of dimension {name} must be integers, none missing", got=what, hint=hint)
    try:
        return column.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise DataError(f"coordinates of dimension {name} do not fit int64", got=error, hint="Shift them") from None


def with_chunk(rows: DataFrame, schema: Schema, dimensions: Sequence[str]) -> DataFrame:
    """The frame with its chunk column, computed by Spark itself; out-of-range cells are left to the writer's check."""
    strides = schema.grid.strides
    sizes = schema.grid.chunk
    steps = _steps_from_first_cell(schema, dimensions)
    terms = [f"({step} div {sizes[axis]}L) * {strides[axis]}L" for axis, step in steps.items()]
    return rows.selectExpr("*", f"{' + '.join(terms)} as {CHUNK_COLUMN}")


def _with_key(rows: DataFrame, schema: Schema, dimensions: Sequence[str]) -> tuple[DataFrame, list[str]]:
    """The frame with a column that sorts as chunk and coordinates do, and the columns to sort by.

    One number is what Spark sorts fastest. Where growing dimensions leave no room for it, the largest numbers are
    all the same, and the chunk and coordinates decide.
    """
    grid = schema.grid
    offset = "0L"
    for axis, step in _steps_from_first_cell(schema, dimensions).items():
        offset = f"({offset} * {grid.chunk[axis]}L + {step} % {grid.chunk[axis]}L)"
    most = (2**63 - 1) // grid.chunk_cells
    key = f"{CHUNK_COLUMN} * {grid.chunk_cells}L + {offset}"
    fits = math.prod(grid.radix) <= most
    chosen = key if fits else f"if({CHUNK_COLUMN} >= {most}L, {2**63 - 1}L, {key})"
    keyed = with_chunk(rows, schema, dimensions).selectExpr("*", f"{chosen} as `{_KEY_COLUMN}`")
    return (keyed.drop(CHUNK_COLUMN), [_KEY_COLUMN]) if fits else (keyed, [_KEY_COLUMN, CHUNK_COLUMN, *dimensions])


def _steps_from_first_cell(schema: Schema, dimensions: Sequence[str]) -> dict[int, str]:
    """For each axis, Spark's expression for how far a cell is from the dimension's first."""
    bounds = writable(schema)
    steps = {}
    for name in dimensions:
        axis = schema.axis(name)
        lo, hi = bounds.lo[axis], bounds.hi[axis]
        steps[axis] = f"(least(greatest(cast(`{name}` as bigint), {lo}L), {hi}L) - {schema.lo[axis]}L)"
    return steps
