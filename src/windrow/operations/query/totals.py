"""Totals: aggregates over all cells, or over those that agree in some dimensions or in parts of their labels.

Where every aggregate's parts can be joined, tasks take blocks as they come and hand back a row of partial results for
each group, and the rows are aggregated once more. Otherwise a task gets whole groups.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.parts import can_join, evaluate_groups, join_parts
from windrow.aggregates.windows import Evaluation
from windrow.errors import MemoryLimitError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.kernels.sparse.order import coordinate_order, run_starts
from windrow.model.arrow import arrow_to_block
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.schema import Attribute, Schema
from windrow.model.source import ComputedCells
from windrow.model.types import TYPES
from windrow.operations.query.blocks import ComputedSource, computed_blocks
from windrow.operations.query.cell_keys import cell_keys
from windrow.operations.query.label_groups import DenseGroups
from windrow.operations.query.sparse_run import cell_blocks
from windrow.plan.bound import NamedAggregates
from windrow.plan.grouping.label_parts import Part, along_axes, key_attributes
from windrow.plan.windows import needed_attributes
from windrow.storage.cells import cell_fields

Int64Array = npt.NDArray[np.int64]
Source = ComputedSource | ComputedCells
Parts = tuple[Part | None, ...]

WORKING_COPIES = 3
"""How often a task holds what it read: as read, in the order of groups, and in what is being computed."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Cells sorted by group: where each group lies, and its coordinates."""

    places: list[Int64Array]
    columns: dict[str, Column]
    starts: Int64Array
    """The first cell of each group, and after the last one the number of cells."""

    def evaluation(self) -> Evaluation:
        return evaluate_groups(self.columns, self.starts)


def gather_groups(keys: list[Int64Array], columns: dict[str, Column], cells: int) -> Groups:
    """Cells brought into groups of equal keys; without keys they are one group, even if there are none."""
    if not keys:
        return Groups([], columns, np.array([0, cells]))
    order = coordinate_order(keys)
    keys = [key[order] for key in keys]
    taken = {name: _taken(column, order) for name, column in columns.items()}
    starts = run_starts(keys, cells)
    return Groups([key[starts[:-1]] for key in keys], taken, starts)


def _taken(column: Column, order: npt.NDArray[Any]) -> Column:
    return Column(column.values[order], None if column.present is None else column.present[order])


@dataclass(frozen=True)
class TotalBlock:
    """A task: the aggregates of the groups in a box. It pickles."""

    source: Source
    box: Box
    axes: tuple[int, ...]
    aggregates: NamedAggregates
    fields: Schema
    whole: Box
    """All cells of the source, of which those in ``box`` are this task's."""
    parts: Parts = ()
    """For each axis the part of its labels that is meant, if any has one."""

    def groups(self) -> Groups:
        names = needed_attributes(self.aggregates)
        if isinstance(self.source, ComputedCells):
            table = self.source.read(self.box, dict.fromkeys([*names, *key_attributes(self.parts)]))
            dimensions = self.source.schema.dimension_names
            keys, there = cell_keys(table, dimensions, self.axes, self.parts)
            if there is not None:
                table = table.filter(pa.array(there))
            columns = {name: Column(*arrow_to_block(table.column(name))) for name in names}
            if self.ordered:
                columns[PLACES] = Column(self._places([table.column(name).to_numpy() for name in dimensions]))
            return gather_groups(keys, columns, table.num_rows)
        schema = self.source.schema
        blocks = self.source.read(self.box, names)
        columns = {name: Column(blocks[name], blocks.get(schema.attribute(name).companion)) for name in names}
        if self.ordered:
            inside = np.meshgrid(
                *(np.arange(lo, hi + 1) for lo, hi in zip(self.box.lo, self.box.hi, strict=True)),
                indexing="ij",
                sparse=True,
            )
            columns[PLACES] = Column(self._places(list(inside)))
        if self.parts:
            return Groups(*DenseGroups(self.box, self.axes, along_axes(self.parts)).gather(columns))
        sides = [range(self.box.lo[axis], self.box.hi[axis] + 1) for axis in self.axes]
        places = [place.reshape(-1) for place in np.meshgrid(*map(np.asarray, sides), indexing="ij")]
        count = math.prod(map(len, sides))
        flat = {name: self._flat(column) for name, column in columns.items()}
        return Groups(places, flat, np.arange(count + 1) * (self.box.size // max(1, count)))

    @property
    def ordered(self) -> bool:
        """Whether it matters in which order cells come."""
        return any(aggregate.definition.ordered for _, aggregate in self.aggregates)

    def _places(self, coordinates: list[Int64Array]) -> Int64Array:
        """Where cells are in the order of all of the array's coordinates."""
        places = np.zeros((), np.int64)
        for coordinate, lo, extent in zip(coordinates, self.whole.lo, self.whole.shape, strict=True):
            places = places * extent + (coordinate - lo)
        return places

    def _flat(self, column: Column) -> Column:
        """A dense block's values, one group after the other."""
        order = [*self.axes, *(axis for axis in range(self.box.ndim) if axis not in self.axes)]
        values, present = (
            None if block is None else np.ascontiguousarray(block.transpose(order)).reshape(-1)
            for block in (column.values, column.present)
        )
        assert values is not None
        return Column(values, present)


def total_block(task: TotalBlock) -> pa.Table:
    groups = task.groups()
    evaluation = groups.evaluation()
    values = []
    for (_, aggregate), attribute in zip(task.aggregates, task.fields.attributes, strict=True):
        values.append(evaluation.result(aggregate).to_arrow(attribute.type))
    places = [pa.array(place) for place in groups.places] or [pa.array(np.zeros(1, np.int64))]
    return pa.table([*places, *values], schema=cell_fields(task.fields))


def totals(
    engine: Engine,
    source: Source,
    box: Box,
    axes: tuple[int, ...],
    aggregates: NamedAggregates,
    schema: Schema,
    parts: Parts = (),
) -> pa.Table:
    """A row for each group, in the order of their coordinates; ``schema`` is that of the result.

    ``parts`` says of each axis which part of its labels is meant, where that is not the cell itself.
    """
    parted = all(can_join_in(aggregate, box) for _, aggregate in aggregates)
    wanted = parts_of(aggregates) if parted else aggregates
    fields = part_schema(source.schema, wanted, schema) if parted else schema
    executor = engine.choose(0 if box.is_empty else source.touched_bytes(box))
    # The cells of a month lie here and there along their axis, so that groups are whole only where it is not cut.
    whole = tuple(axis for axis, part in itertools.zip_longest(axes, parts) if part is None)
    blocks = _blocks(executor, source, box, None if parted else whole)
    if not blocks:  # nothing to read, yet a total over all of nothing has a result
        blocks = [] if axes else [box]
    tasks = [TotalBlock(_within(source, block), block, axes, wanted, fields, box, parts) for block in blocks]
    largest = max((_task_bytes(source, block) for block in blocks), default=0)
    pieces = executor.run(Job("computing totals", total_block, tasks, largest))
    table = pa.concat_tables([cell_fields(fields).empty_table(), *pieces])
    check_size(engine, table)
    if parted:
        return join_tables(table, aggregates, schema, bool(axes))
    order = coordinate_order([table.column(name).to_numpy() for name in schema.dimension_names])
    return table.take(pa.array(order)).combine_chunks()


def _within(source: Source, block: Box) -> Any:
    return source.within(block) if isinstance(source, ComputedCells) else source


def _task_bytes(source: Source, block: Box) -> int:
    if block.is_empty:
        return 0
    cells = source.cells_in(block) if isinstance(source, ComputedCells) else block.size
    return source.task_bytes(block) + WORKING_COPIES * cells * (8 * source.schema.ndim + source.schema.cell_bytes)


def _blocks(executor: Executor, source: Source, box: Box, whole_groups: tuple[int, ...] | None) -> list[Box]:
    """Boxes of whole chunks; if groups must be whole, the other dimensions are not cut at all."""
    if box.is_empty:
        return []
    grid = source.reading_grid
    if whole_groups is not None:
        chunk = [grid.chunk[axis] if axis in whole_groups else box.shape[axis] for axis in range(box.ndim)]
        lo = [grid.lo[axis] if axis in whole_groups else box.lo[axis] for axis in range(box.ndim)]
        grid = ChunkGrid(tuple(lo), grid.hi, tuple(chunk))
    working: Any = _Working(source)
    steady: Any = _Steady(executor.worker_memory)
    if isinstance(source, ComputedCells):
        uncut = () if whole_groups is None else [axis for axis in range(box.ndim) if axis not in whole_groups]
        return cell_blocks(working, grid, box, steady, uncut)
    return computed_blocks(working, grid, box, steady)


@dataclass(frozen=True)
class _Steady:
    """An executor as blocks are cut for it: always for as many workers, or float sums would depend on their number."""

    worker_memory: int
    workers: int = 4


@dataclass(frozen=True)
class _Working:
    """A source as blocks are cut from it, with the memory that totals of a block take."""

    source: Source

    def task_bytes(self, block: Box) -> int:
        return _task_bytes(self.source, block)

    def cells_decoded(self, block: Box) -> int:
        return self.source.cells_decoded(block)

    def cells_in(self, block: Box) -> int:
        return self.source.cells_in(block) if isinstance(self.source, ComputedCells) else block.size

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return self.source.keep_whole


def check_size(engine: Engine, table: pa.Table) -> None:
    if 4 * table.nbytes > engine.memory:
        raise MemoryLimitError(
            f"the groups need about {4 * table.nbytes / 2**30:.1f} GB of memory",
            got=f"a limit of {engine.memory / 2**30:.1f} GB",
            hint="Group by fewer dimensions, use regrid, or connect with a larger memory=",
        )


# Parts, and how they are joined


def can_join_in(aggregate: Aggregate, box: Box) -> bool:
    # Places in arrays of more than 2**62 positions are not numbered.
    return can_join(aggregate) and not (aggregate.definition.ordered and box.size > 2**62)


def parts_of(aggregates: NamedAggregates) -> NamedAggregates:
    """What is computed of each block, each once."""
    parts: dict[str, Aggregate] = {}
    for _, aggregate in aggregates:
        for part in aggregate.parts().values():
            parts[column_of(part)] = part
    return tuple(parts.items())


def column_of(part: Aggregate) -> str:
    return "_of_".join([part.name, *part.attributes])


def part_schema(source: Schema, parts: NamedAggregates, result: Schema) -> Schema:
    attributes = []
    for name, aggregate in parts:
        given = TYPES["int64"] if aggregate.attribute is None else source.attribute(aggregate.attribute).type
        attributes.append(Attribute(name, aggregate.definition.result(given), nullable=True))
    # No part is called so, whatever the result's own dimensions are called.
    dimensions = tuple(replace(d, name=f"d{number}") for number, d in enumerate(result.dimensions))
    return Schema(dimensions, tuple(attributes), sparse=True)


def join_tables(table: pa.Table, aggregates: NamedAggregates, schema: Schema, by_group: bool) -> pa.Table:
    """Partial results of one group made one."""
    dimensions, names = table.column_names[: schema.ndim], table.column_names[schema.ndim :]
    keys = [table.column(name).to_numpy() for name in dimensions] if by_group else []
    columns = {name: Column(*arrow_to_block(table.column(name))) for name in names}
    groups = gather_groups(keys, columns, table.num_rows)
    values = []
    for (_, aggregate), attribute in zip(aggregates, schema.attributes, strict=True):
        own = {name: groups.columns[column_of(part)] for name, part in aggregate.parts().items()}
        values.append(join_parts(aggregate, own, groups.starts).to_arrow(attribute.type))
    places = [pa.array(place) for place in groups.places] or [pa.array(np.zeros(1, np.int64))]
    return pa.table([*places, *values], schema=cell_fields(schema))
