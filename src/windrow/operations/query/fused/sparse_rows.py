"""Rows of sparse arrays as they are stored: a task reads a part, and gives the rows that conditions leave.

Rows come by chunk and, in a chunk, by coordinate, as parts hold them. Only rows of parts that overlap are sorted. What
tiles can compute is computed on tiles; the rest is Arrow's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.execution.executor import Job
from windrow.expressions.nodes import Column, Node
from windrow.expressions.tiles import condition_obstacle, tile_obstacle, tile_truth, tile_values
from windrow.model.arrow import arrow_to_block, arrow_type, block_to_arrow
from windrow.model.box import Box
from windrow.model.schema import VALID_SUFFIX, Schema
from windrow.model.types import TYPES
from windrow.operations.query.blocks import row_bytes, too_large
from windrow.operations.query.cellwise import COPIES, evaluate_on, needed_columns, number_types, plain_types
from windrow.operations.query.fused.pipeline import Pipeline, pipeline_of
from windrow.operations.query.scans import StoredCells
from windrow.storage.cells import CellKeys, cell_fields, coordinates, from_stored, in_stored_order
from windrow.storage.parts import MASKED_CELLS
from windrow.storage.records import Part

Array = npt.NDArray[Any]
Keys = tuple[str, ...] | None
"""The columns of tiles; None for what tiles cannot compute."""

SHORT_PIECE = 16_384
"""Rows below which pieces of a result are copied into one: many short ones take longer to read."""


@dataclass(frozen=True)
class SparseRows:
    """Columns at the cells of a stored sparse array that conditions choose. It pickles."""

    pipeline: Pipeline
    schema: Schema

    @property
    def stored(self) -> StoredCells:
        assert isinstance(self.pipeline.stored, StoredCells)
        return self.pipeline.stored

    @property
    def box(self) -> Box | None:
        """Where cells are looked for; None: everywhere."""
        return None if self.stored.box in self.pipeline.box else self.pipeline.box

    @cached_property
    def conditions(self) -> tuple[tuple[Node, Keys], ...]:
        """What rows have to meet, and the columns of tiles that can tell."""
        types = number_types(self.stored.schema)
        nodes = self.pipeline.conditions
        return tuple((node, None if condition_obstacle(node, types) else _keys(node)) for node in nodes)

    @cached_property
    def outputs(self) -> tuple[tuple[Node, pa.DataType, Keys], ...]:
        """What becomes of a row: expressions, their types, and the columns of tiles that they are computed on."""
        types = plain_types(self.stored.schema)
        found = []
        for attribute in self.schema.attributes:
            node = self.pipeline.outputs[attribute.name]
            tiled = attribute.type == TYPES["float64"] and not isinstance(node, Column)
            tiled = tiled and tile_obstacle(node, types) is None
            found.append((node, arrow_type(attribute.type), _keys(node) if tiled else None))
        return tuple(found)

    @cached_property
    def columns(self) -> list[str]:
        """The stored columns that are read."""
        return [*self.stored.schema.dimension_names, *self.pipeline.needed(self.schema.attribute_names)]

    @cached_property
    def kept(self) -> list[str]:
        """Those of which outputs are made."""
        return [
            *self.stored.schema.dimension_names,
            *needed_columns((one[0] for one in self.outputs), self.stored.schema),
        ]

    @property
    def parts(self) -> list[Part]:
        return [] if self.pipeline.box.is_empty else self.stored.snapshot.touching(self.box)

    @property
    def touched_bytes(self) -> int:
        return sum(part.cells for part in self.parts) * row_bytes(self.stored.schema)

    def can_run(self, engine: Engine) -> bool:
        """Whether a worker can hold the rows of a part."""
        largest = max(map(self.task_bytes, self.parts), default=0)
        return largest <= engine.choose(self.touched_bytes).worker_memory

    def task_bytes(self, part: Part) -> int:
        """A row group is held several times, and the rows of the part once."""
        group = min(part.cells, MASKED_CELLS) * (row_bytes(self.stored.schema) + row_bytes(self.schema))
        return COPIES * group + part.cells * row_bytes(self.schema)


def rows_of(source: Any) -> SparseRows | None:
    """A source as rows that are read as they are stored, if it is made of nothing but cells looked at one by one."""
    pipeline = pipeline_of(source)
    if isinstance(pipeline, str) or not isinstance(pipeline.stored, StoredCells):
        return None
    return SparseRows(pipeline, source.schema)


@dataclass(frozen=True)
class RowsTask:
    """A task: the rows of a part."""

    work: SparseRows
    part: Part


def read_rows(task: RowsTask) -> pa.Table:
    """The rows of a part in stored order."""
    work, part = task.work, task.part
    empty = cell_fields(work.schema).empty_table()
    return _in_few_pieces(pa.concat_tables([empty, *_part_rows(work, part)]))


def _in_few_pieces(table: pa.Table) -> pa.Table:
    pieces = table.column(0).num_chunks
    return table if table.num_rows >= SHORT_PIECE * (pieces - 1) else table.combine_chunks()


def _part_rows(work: SparseRows, part: Part) -> Iterator[pa.Table]:
    stored, snapshot = work.stored.schema, work.stored.snapshot
    for table, mask in snapshot.reader.masked_batches(part, work.box, work.columns):
        rows = _chosen_rows(work, from_stored(table, stored), mask)
        if rows.num_rows:
            yield _output_rows(work, rows)


def _chosen_rows(work: SparseRows, table: pa.Table, mask: Array | None) -> pa.Table:
    """The rows that are alive and meet all conditions; one that may fail sees no others than those before it leave."""
    for condition, keys in work.conditions:
        if keys is not None:
            truth = np.broadcast_to(tile_truth(condition, _tile(keys, table)), (table.num_rows,))
            mask = truth if mask is None else mask & truth
        else:
            table, mask = _filtered(table, mask), None
            table = table.filter(evaluate_on(condition, table))
    return _filtered(table.select(work.kept), mask)


def _filtered(table: pa.Table, mask: Array | None) -> pa.Table:
    if mask is None:
        return table
    chosen = np.flatnonzero(mask)
    return table if len(chosen) == len(mask) else table.take(pa.array(chosen))


def _tile(keys: Sequence[str], table: pa.Table) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for key in keys:
        found[key], valid = arrow_to_block(table.column(key))
        if valid is not None:
            found[key + VALID_SUFFIX] = valid
    return found


def _keys(node: Node) -> tuple[str, ...]:
    return tuple({column.key for column in node.columns()})


def _output_rows(work: SparseRows, table: pa.Table) -> pa.Table:
    values = []
    for node, wanted, keys in work.outputs:
        if keys is not None:
            found = np.broadcast_to(tile_values(node, _tile(keys, table)), (table.num_rows,))
            values.append(block_to_arrow(found.astype(np.float64, copy=False)))
        else:
            column = evaluate_on(node, table)
            values.append(column if column.type == wanted else column.cast(wanted))
    places = [table.column(name) for name in work.stored.schema.dimension_names]
    return pa.table([*places, *values], schema=cell_fields(work.schema))


def share_parts(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts in the order of their chunks; those whose chunks overlap are together."""
    shared: list[list[Part]] = []
    last = -1
    for part in sorted(parts, key=lambda part: (part.first, part.last, part.run, part.path)):
        if shared and part.first <= last:
            shared[-1].append(part)
        else:
            shared.append([part])
        last = max(last, part.last)
    return shared


def compute_rows(engine: Engine, work: SparseRows) -> pa.Table:
    """The rows in stored order, gathered in this process; how many conditions leave is seen on the way."""
    shared = share_parts(work.parts)
    read = _read_parts(engine, work, [part for together in shared for part in together])
    pieces, size = [cell_fields(work.schema).empty_table()], 0
    for together in shared:
        some = [next(read) for _ in together]
        size += 3 * sum(piece.nbytes for piece in some)
        if size > engine.memory:
            raise too_large(size, engine)
        table = pa.concat_tables(some)
        pieces.append(table if _follow_one_another(some, work.schema) else in_stored_order(table, work.schema))
    return _in_few_pieces(pa.concat_tables(pieces))


def _follow_one_another(tables: Sequence[pa.Table], schema: Schema) -> bool:
    """Whether no table begins before the one that precedes it ends; each is in stored order."""
    ends = [end for table in tables for end in (table.slice(0, 1), table.slice(max(0, table.num_rows - 1)))]
    return len(tables) == 1 or CellKeys(schema.grid, coordinates(pa.concat_tables(ends), schema)).is_sorted()


def _read_parts(engine: Engine, work: SparseRows, parts: Sequence[Part]) -> Iterator[pa.Table]:
    """The rows of each part, as many at a time as there are workers."""
    executor = engine.choose(work.touched_bytes)
    at_once = 4 * executor.workers
    for start in range(0, len(parts), at_once):
        some = parts[start : start + at_once]
        tasks = [RowsTask(work, part) for part in some]
        yield from executor.run(Job("computing", read_rows, tasks, max(map(work.task_bytes, some))))
