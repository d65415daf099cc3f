"""Arrays as lazy Spark DataFrames: one row a cell, missing values as NULL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.model.arrow import block_to_arrow
from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.storage.cells import stored_fields
from windrow.storage.dense import DenseSnapshot
from windrow.storage.sparse import SparseSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.execution.spark import SparkExecutor

BLOCK_CELLS = 4_000_000
ROWS_PER_BATCH = 65_536


def frame_fields(schema: Schema) -> pa.Schema:
    """The columns of an array's DataFrame: Spark, like Delta, has no unsigned types."""
    return stored_fields(schema).remove(0)


def sparse_frame(executor: SparkExecutor, snapshot: SparseSnapshot, box: Box | None) -> DataFrame:
    """Spark reads the parts itself; a selection becomes a filter that skips row groups."""
    paths = [os.path.join(snapshot.path, part.path) for part in snapshot.touching(box)]
    if not paths:
        return executor.frame(_nothing, [], frame_fields(snapshot.schema))
    rows = executor.read_parquet(paths).drop(CHUNK_COLUMN)
    if box is not None:
        for name, lo, hi in zip(snapshot.schema.dimension_names, box.lo, box.hi, strict=True):
            rows = rows.where(f"`{name}` between {lo} and {hi}")
    return rows


def _nothing(_task: object) -> Iterator[pa.RecordBatch]:
    return iter(())


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
