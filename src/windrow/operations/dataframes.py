"""Arrays as lazy Spark DataFrames: one row a cell, missing values as NULL."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from windrow.execution.executor import Executor, Job
from windrow.model.arrow import block_to_arrow
from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.model.source import ComputedCells
from windrow.operations.query.sparse_run import cell_blocks
from windrow.storage.cells import cell_fields, stored_fields
from windrow.storage.dense.snapshots import DenseSnapshot
from windrow.storage.records import Part
from windrow.storage.sparse import SparseSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.execution.spark import SparkExecutor

BLOCK_CELLS = 4_000_000
ROWS_PER_BATCH = 65_536


def frame_fields(schema: Schema) -> pa.Schema:
    """The columns of an array's DataFrame: Spark, like Delta, has no unsigned types."""
    return stored_fields(schema).remove(0)


def live_rows(executor: Executor, snapshot: SparseSnapshot, box: Box | None) -> Any:
    """The cells in ``box`` in the form that an executor sorts: a table here, a DataFrame on Spark."""
    if executor.name == "spark":
        return sparse_frame(cast("SparkExecutor", executor), snapshot, box)
    tables = executor.run(Job("reading", lambda part: snapshot.reader.read(part, box), snapshot.touching(box)))
    return pa.concat_tables([cell_fields(snapshot.schema).empty_table(), *tables])


def sparse_frame(executor: SparkExecutor, snapshot: SparseSnapshot, box: Box | None) -> DataFrame:
    """Spark reads the parts itself; a selection becomes a filter that skips row groups, dead rows are taken out."""
    parts = snapshot.touching(box)
    if not parts:
        return executor.frame(_nothing, [], frame_fields(snapshot.schema))
    for part in parts:
        snapshot.reader.check_footer(part)
    whole = [part for part in parts if part.vector is None]
    marked = [part for part in parts if part.vector is not None]
    frames = []
    if whole:
        frames.append(_within(_frame_of(executor, snapshot, whole), snapshot, box))
    if marked:
        rows = _frame_of(executor, snapshot, marked).selectExpr("*", *_PLACE)
        dead = executor.session.createDataFrame(_dead_rows(snapshot, marked))
        alive = _within(rows, snapshot, box).join(dead, [_FILE, _ROW], "left_anti")
        frames.append(alive.drop(_FILE, _ROW))
    return functools.reduce(lambda left, right: left.unionByName(right), frames).drop(CHUNK_COLUMN)


_FILE, _ROW = f"{CHUNK_COLUMN} file", f"{CHUNK_COLUMN} row"
"""Names that no column of a user's can have."""
_PLACE = f"_metadata.file_name as `{_FILE}`", f"_metadata.row_index as `{_ROW}`"


def _frame_of(executor: SparkExecutor, snapshot: SparseSnapshot, parts: Sequence[Part]) -> DataFrame:
    return executor.read_parquet([os.path.join(snapshot.path, part.path) for part in parts])


def _within(rows: DataFrame, snapshot: SparseSnapshot, box: Box | None) -> DataFrame:
    if box is not None:
        for name, lo, hi in zip(snapshot.schema.dimension_names, box.lo, box.hi, strict=True):
            rows = rows.where(f"`{name}` between {lo} and {hi}")
    return rows


def _dead_rows(snapshot: SparseSnapshot, parts: Sequence[Part]) -> pa.Table:
    """File and number of every dead row, as Spark numbers them."""
    dead = [snapshot.reader.dead_rows(part) for part in parts]
    files = np.repeat(np.arange(len(parts), dtype=np.int32), [len(rows) for rows in dead])
    names = pa.DictionaryArray.from_arrays(pa.array(files), pa.array([part.path for part in parts]))
    return pa.table({_FILE: names.cast(pa.string()), _ROW: pa.array(np.concatenate(dead))})


def _nothing(_task: object) -> Iterator[pa.RecordBatch]:
    return iter(())


@dataclass(frozen=True)
class ComputedRows:
    """A task: the cells of a computed source in one box, as rows."""

    source: ComputedCells
    box: Box


def computed_rows(task: ComputedRows) -> Iterator[pa.RecordBatch]:
    fields = frame_fields(task.source.schema)
    return iter(task.source.read(task.box).cast(fields).to_batches(ROWS_PER_BATCH))


def computed_frame(executor: SparkExecutor, source: ComputedCells, box: Box) -> DataFrame:
    """Each task computes a block and hands its cells to Spark."""
    blocks = cell_blocks(source, source.reading_grid, box, executor) if not box.is_empty else []
    tasks = [ComputedRows(source.within(block), block) for block in blocks]
    return executor.frame(computed_rows, tasks, frame_fields(source.schema))


@dataclass(frozen=True)
class BlockRows:
    """A task: the cells of one block as rows."""

    snapshot: DenseSnapshot
    box: Box


def block_rows(task: BlockRows) -> Iterator[pa.RecordBatch]:
    schema = task.snapshot.growing_schema
    blocks = task.snapshot.read(task.box)
    fields = frame_fields(schema)
    columns: list[pa.Array] = [
        block_to_arrow(blocks[a.name], blocks.get(a.companion)).cast(fields.field(a.name).type)
        for a in schema.attributes
    ]
    for start in range(0, task.box.size, ROWS_PER_BATCH):
        count = min(ROWS_PER_BATCH, task.box.size - start)
        index: Any = np.unravel_index(np.arange(start, start + count), task.box.shape)
        at = [pa.array((axis + lo).astype(np.int64)) for axis, lo in zip(index, task.box.lo, strict=True)]
        yield pa.record_batch([*at, *(column.slice(start, count) for column in columns)], schema=fields)


def dense_frame(executor: SparkExecutor, snapshot: DenseSnapshot, box: Box) -> DataFrame:
    """Each task reads a block from the store and hands its cells to Spark."""
    blocks = snapshot.growing_schema.grid.blocks(box, BLOCK_CELLS) if not box.is_empty else []
    return executor.frame(block_rows, [BlockRows(snapshot, block) for block in blocks], frame_fields(snapshot.schema))


@dataclass(frozen=True)
class PartRows:
    """A task: the live cells of one part as rows."""

    snapshot: SparseSnapshot
    part: Part


def part_rows(task: PartRows) -> Iterator[pa.RecordBatch]:
    fields = frame_fields(task.snapshot.schema)
    for table in task.snapshot.reader.batches(task.part, None, task.snapshot.columns()):
        yield from table.select(fields.names).cast(fields).to_batches(ROWS_PER_BATCH)


def row_tasks(snapshot: DenseSnapshot | SparseSnapshot) -> list[BlockRows | PartRows]:
    """What workers that have no executor's help do to give all cells of an array as rows."""
    if isinstance(snapshot, SparseSnapshot):
        return [PartRows(snapshot, part) for part in snapshot.touching(None)]
    box = snapshot.box
    blocks = snapshot.growing_schema.grid.blocks(box, BLOCK_CELLS) if not box.is_empty else []
    return [BlockRows(snapshot, block) for block in blocks]


def task_rows(task: BlockRows | PartRows) -> Iterator[pa.RecordBatch]:
    """The rows of one task, in the columns of ``frame_fields``."""
    return part_rows(task) if isinstance(task, PartRows) else block_rows(task)
