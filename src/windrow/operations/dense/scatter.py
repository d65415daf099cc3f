"""Setting single cells of dense arrays from tables of coordinates and values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.errors import DataError, DuplicateError
from windrow.execution.engine import Engine
from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.operations.dense.sources import ScatterSource
from windrow.operations.dense.write import grow, keep_blocks, run_blocks, settle
from windrow.operations.sparse.insert import with_chunk, writable
from windrow.operations.sparse.tasks import gathered
from windrow.storage.cells import CellKeys, conform_cells, coordinates
from windrow.storage.dense.blocks import BlockReceipt, BlockWrite, Fork, write_block
from windrow.storage.dense.snapshots import DenseSnapshot
from windrow.storage.dense.store import DenseStore
from windrow.storage.records import ChunkStatistics
from windrow.storage.working import WorkingArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def scatter(engine: Engine, working: WorkingArray, table: pa.Table, on_duplicate: str) -> int:
    """Set cells from a table in memory; returns how many."""
    cells = _unique(conform_cells(table, working.schema, writable(working.schema)), working.schema, on_duplicate)
    if not cells.num_rows:
        return 0
    at = coordinates(cells, working.schema)
    snapshot = working.dense()
    grow(working, Box(tuple(int(c.min()) for c in at), tuple(int(c.max()) for c in at)))
    grid = working.schema.grid
    source = ScatterSource(snapshot, cells)
    keys = [grid.key(int(ordinal)) for ordinal in np.unique(grid.ordinals(at))]
    zero = (0,) * working.schema.ndim
    executor = engine.local if engine.name == "auto" else engine.choose(cells.nbytes)
    pieces = [(source, grid.box_of(key) & working.box, zero) for key in keys]
    return run_blocks(executor, working, pieces, f"writing {working.record.name}")


def _unique(cells: pa.Table, schema: Schema, on_duplicate: str) -> pa.Table:
    keys = CellKeys(schema.grid, coordinates(cells, schema))
    order = keys.order()
    keys.take(order)
    repeated = keys.repeats()
    if not repeated.any():
        return cells
    if on_duplicate != "last":
        first = order[np.flatnonzero(repeated)[0]]
        place = ", ".join(f"{name}={cells.column(name)[first]}" for name in schema.dimension_names)
        raise DuplicateError(
            "several cells for one coordinate in one insert",
            got=f"{int(repeated.sum()):,} too many, the first at {place}",
            hint='Use on_duplicate="last" to keep the last of each',
        )
    return cells.take(pa.array(order[np.append(~repeated[1:], True)]))


def scatter_frame(engine: Engine, working: WorkingArray, rows: DataFrame) -> int:
    """Set cells from a Spark DataFrame of any size: each chunk's cells meet on one worker, which writes it."""
    schema = working.schema
    for name in schema.dimension_names:
        if name not in rows.columns:
            raise DataError(f"the cells have no column {name}", got=", ".join(rows.columns) or "no columns")
    snapshot = working.dense()
    if schema.growing:
        names = [schema.dimension_names[axis] for axis in schema.growing]
        highest = rows.selectExpr(*(f"max(`{name}`) as `{name}`" for name in names)).first()
        if highest is None or highest[0] is None:
            return 0
        hi = list(working.hi)
        for axis, name in zip(schema.growing, names, strict=True):
            hi[axis] = max(hi[axis], int(highest[name]))
        grow(working, Box(schema.lo, tuple(hi)))
    settle(working)
    store = DenseStore(working.path)
    repository, session = store.begin()
    label = f"writing {working.record.name}"
    function = ScatterChunks(session.fork(), schema, working.box, snapshot)
    keyed = with_chunk(rows, schema, schema.dimension_names)
    receipts = engine.spark().map_grouped(label, keyed, CHUNK_COLUMN, function)
    keep_blocks(working, store.finish(repository, session, receipts, label), receipts)
    return sum(receipt.cells for receipt in receipts)


@dataclass(frozen=True)
class ScatterChunks:
    """Writes the chunks whose cells a worker was given, one after another, through one session."""

    fork: Fork
    schema: Schema
    bounds: Box
    snapshot: DenseSnapshot

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> BlockReceipt:
        pieces: list[BlockReceipt] = [self._write(cells) for cells in self._chunks(batches)]
        chunks = ChunkStatistics.concatenate([piece.chunks for piece in pieces], self.schema.ndim)
        boxes = tuple(box for piece in pieces for box in piece.boxes)
        return BlockReceipt(self.fork, chunks, sum(piece.cells for piece in pieces), boxes)

    def _chunks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The cells of one chunk after another; rows come sorted by chunk."""
        waiting: pa.Table | None = None
        for table in gathered(batches):
            table = table if waiting is None else pa.concat_tables([waiting, table])
            ordinals = table.column(CHUNK_COLUMN).to_numpy()
            borders = [0, *(np.flatnonzero(np.diff(ordinals)) + 1).tolist()]
            for start, stop in itertools.pairwise(borders):
                yield table.slice(start, stop - start)
            waiting = table.slice(borders[-1])
        if waiting is not None:
            yield waiting

    def _write(self, table: pa.Table) -> BlockReceipt:
        cells = _unique(conform_cells(table, self.schema, writable(self.schema)), self.schema, "error")
        key = self.schema.grid.key(int(table.column(CHUNK_COLUMN)[0].as_py()))
        box = self.schema.grid.box_of(key) & self.bounds
        zero = (0,) * self.schema.ndim
        source = ScatterSource(self.snapshot, cells)
        return write_block(BlockWrite(self.fork, self.schema, self.bounds, source, box, zero, self.snapshot.title))
