"""Totals: aggregates over all cells, or over those that agree in some dimensions.

Where every aggregate's parts can be joined, tasks take blocks as they come and hand back a row of partial results for
each group, and the rows are aggregated once more. Otherwise a task gets whole groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.evaluate import Column, Evaluation, Result
from windrow.errors import MemoryLimitError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.kernels.cell_order import coordinate_order, run_starts
from windrow.kernels.sweep import VariableSweep
from windrow.kernels.tiny import is_tiny
from windrow.model.arrow import arrow_to_block, block_to_arrow
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.schema import Attribute, Schema
from windrow.model.source import ComputedCells
from windrow.model.types import TYPES
from windrow.operations.blocks import ComputedSource, computed_blocks
from windrow.operations.cellwise import read_grid, reading_grid
from windrow.operations.computed_cells import cell_blocks
from windrow.plan.bound import NamedAggregates
from windrow.plan.windows import needed_attributes
from windrow.storage.cells import cell_fields

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
Source = ComputedSource | ComputedCells

PARTS = {
    "count": ("count",),
    "sum": ("count", "sum"),
    "avg": ("count", "avg"),
    **dict.fromkeys(("var", "std", "var_pop", "std_pop"), ("count", "avg", "var_pop")),
    "min": ("min",),
    "max": ("max",),
}
"""The aggregates whose parts can be joined, and which aggregates of a part are needed for that."""

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
        windows = VariableSweep(self.starts[:-1], self.starts[1:] - 1)
        cells = int(self.starts[-1])
        # Groups do not overlap, so there is nothing to reuse; but what is tiny needs no compiled code at all.
        method = "auto" if cells and is_tiny((cells,), [windows]) else "naive"
        return Evaluation(self.columns, (cells,), [windows], method)


def grouped(keys: list[Int64Array], columns: dict[str, Column], cells: int) -> Groups:
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

    def groups(self) -> Groups:
        names = needed_attributes(self.aggregates)
        if isinstance(self.source, ComputedCells):
            table = self.source.read(self.box, names)
            dimensions = self.source.schema.dimension_names
            keys = [table.column(dimensions[axis]).to_numpy() for axis in self.axes]
            columns = {name: Column(*arrow_to_block(table.column(name))) for name in names}
            return grouped(keys, columns, table.num_rows)
        schema = self.source.schema
        blocks = read_grid(self.source, self.box, names)
        columns = {}
        for name in names:
            companion = blocks.get(schema.attribute(name).companion)
            columns[name] = Column(self._flat(blocks[name]), None if companion is None else self._flat(companion))
        sides = [range(self.box.lo[axis], self.box.hi[axis] + 1) for axis in self.axes]
        places = [place.reshape(-1) for place in np.meshgrid(*map(np.asarray, sides), indexing="ij")]
        count = math.prod(map(len, sides))
        return Groups(places, columns, np.arange(count + 1) * (self.box.size // max(1, count)))

    def _flat(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A dense block's values, one group after the other."""
        others = [axis for axis in range(block.ndim) if axis not in self.axes]
        return np.ascontiguousarray(block.transpose([*self.axes, *others])).reshape(-1)


def total_block(task: TotalBlock) -> pa.Table:
    groups = task.groups()
    evaluation = groups.evaluation()
    values = []
    for (_, aggregate), attribute in zip(task.aggregates, task.fields.attributes, strict=True):
        values.append(_column(evaluation.result(aggregate), attribute))
    places = [pa.array(place) for place in groups.places] or [pa.array(np.zeros(1, np.int64))]
    return pa.table([*places, *values], schema=cell_fields(task.fields))


def _column(result: Result, attribute: Attribute) -> pa.Array:
    values = result.values.astype(attribute.type.dtype, copy=False)
    return block_to_arrow(values, None if result.missing is None else ~result.missing)


def totals(
    engine: Engine, source: Source, box: Box, axes: tuple[int, ...], aggregates: NamedAggregates, schema: Schema
) -> pa.Table:
    """A row for each group, in the order of their coordinates; ``schema`` is that of the result."""
    parted = all(aggregate.name in PARTS and aggregate.user is None for _, aggregate in aggregates)
    wanted = _parts(aggregates) if parted else aggregates
    fields = _part_schema(source.schema, wanted, schema) if parted else schema
    executor = engine.choose(0 if box.is_empty else source.touched_bytes(box))
    blocks = _blocks(executor, source, box, None if parted else axes)
    if not blocks:  # nothing to read, yet a total over all of nothing has a result
        blocks = [] if axes else [box]
    tasks = [TotalBlock(_within(source, block), block, axes, wanted, fields) for block in blocks]
    largest = max((_task_bytes(source, block) for block in blocks), default=0)
    pieces = executor.run(Job("computing totals", total_block, tasks, largest))
    table = pa.concat_tables([cell_fields(fields).empty_table(), *pieces])
    _check_size(engine, table)
    if parted:
        return _joined(table, aggregates, schema, bool(axes))
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
    grid = reading_grid(source)
    if whole_groups is not None:
        chunk = [grid.chunk[axis] if axis in whole_groups else box.shape[axis] for axis in range(box.ndim)]
        lo = [grid.lo[axis] if axis in whole_groups else box.lo[axis] for axis in range(box.ndim)]
        grid = ChunkGrid(tuple(lo), grid.hi, tuple(chunk))
    if isinstance(source, ComputedCells):
        return cell_blocks(source, grid, box, executor)
    return computed_blocks(source, grid, box, executor)


def _check_size(engine: Engine, table: pa.Table) -> None:
    if 4 * table.nbytes > engine.memory:
        raise MemoryLimitError(
            f"the groups need about {4 * table.nbytes / 2**30:.1f} GB of memory",
            got=f"a limit of {engine.memory / 2**30:.1f} GB",
            hint="Group by fewer dimensions, use regrid, or connect with a larger memory=",
        )


# Parts, and how they are joined


def _parts(aggregates: NamedAggregates) -> NamedAggregates:
    """What is computed of each block, each once."""
    parts: dict[str, Aggregate] = {}
    for _, aggregate in aggregates:
        for name in PARTS[aggregate.name]:
            parts[_part_name(name, aggregate.attribute)] = Aggregate(name, aggregate.attribute)
    return tuple(parts.items())


def _part_name(name: str, attribute: str | None) -> str:
    return name if attribute is None else f"{name}_of_{attribute}"


def _part_schema(source: Schema, parts: NamedAggregates, result: Schema) -> Schema:
    attributes = []
    for name, aggregate in parts:
        given = TYPES["int64"] if aggregate.attribute is None else source.attribute(aggregate.attribute).type
        attributes.append(Attribute(name, aggregate.definition.result(given), nullable=True))
    # No part is called so, whatever the result's own dimensions are called.
    dimensions = tuple(replace(d, name=f"d{number}") for number, d in enumerate(result.dimensions))
    return Schema(dimensions, tuple(attributes), sparse=True)


def _joined(table: pa.Table, aggregates: NamedAggregates, schema: Schema, by_group: bool) -> pa.Table:
    """Partial results of one group made one."""
    dimensions, names = table.column_names[: schema.ndim], table.column_names[schema.ndim :]
    keys = [table.column(name).to_numpy() for name in dimensions] if by_group else []
    columns = {name: Column(*arrow_to_block(table.column(name))) for name in names}
    groups = grouped(keys, columns, table.num_rows)
    merge = _Merge(groups)
    values = []
    for (_, aggregate), attribute in zip(aggregates, schema.attributes, strict=True):
        values.append(_column(merge.result(aggregate), attribute))
    places = [pa.array(place) for place in groups.places] or [pa.array(np.zeros(1, np.int64))]
    return pa.table([*places, *values], schema=cell_fields(schema))


class _Merge:
    """Groups of partial results; a part without values counts for nothing."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.evaluation = groups.evaluation()

    def result(self, aggregate: Aggregate) -> Result:
        name, attribute = aggregate.name, aggregate.attribute
        part = _part_name(name, attribute)
        if name == "count":
            return self.evaluation.result(Aggregate("sum", part))
        if name in ("min", "max") or (name == "sum" and self.groups.columns[part].values.dtype.kind != "f"):
            return self.evaluation.result(Aggregate(name, part))
        counts = self.evaluation.result(Aggregate("sum", _part_name("count", attribute))).values
        missing = counts < aggregate.definition.least
        if name == "sum":
            return Result(self._sums(self._values("sum", attribute)), missing)
        with np.errstate(invalid="ignore"):
            averages = self._sums(self._counts(attribute) * self._values("avg", attribute)) / np.maximum(counts, 1)
            if name == "avg":
                return Result(averages, missing)
            divisor = np.maximum(counts - (0 if name.endswith("_pop") else 1), 1)
            variance = self._squares(attribute, averages) / divisor
            return Result(np.sqrt(variance) if name.startswith("std") else variance, missing)

    def _squares(self, attribute: str | None, averages: Float64Array) -> Float64Array:
        """Squared distances from the average: those inside the parts, and those of the parts' averages."""
        counts = self._counts(attribute)
        apart = self._values("avg", attribute) - np.repeat(averages, np.diff(self.groups.starts))
        return self._sums(np.where(counts > 0, counts * (self._values("var_pop", attribute) + apart * apart), 0.0))

    def _counts(self, attribute: str | None) -> Float64Array:
        return self.groups.columns[_part_name("count", attribute)].values.astype(np.float64)

    def _values(self, name: str, attribute: str | None) -> Float64Array:
        values = self.groups.columns[_part_name(name, attribute)].values.astype(np.float64)
        return np.where(self._counts(attribute) > 0, values, 0.0)

    def _sums(self, values: Float64Array) -> Float64Array:
        """Sums by group; what is not a number here is the difference of infinities, and stays so."""
        lost = np.isnan(values)
        column = Column(np.where(lost, 0.0, values))
        sums = Groups([], {"part": column}, self.groups.starts).evaluation().result(Aggregate("sum", "part")).values
        return np.where(np.logical_or.reduceat(lost, self.groups.starts[:-1]), np.nan, sums) if lost.any() else sums
