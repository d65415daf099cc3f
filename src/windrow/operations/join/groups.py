"""Aggregates over the pairs that agree in some left dimensions, or over all pairs.

Where every aggregate's parts can be joined, each left row's partners are aggregated first and the rows of a group
joined afterwards, in each task and then once more over all tasks. Otherwise a task gets whole groups, pair by pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column, Result
from windrow.aggregates.parts import can_join, join_parts
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.expressions.nodes import Column as Name
from windrow.expressions.types import check
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.schema import Attribute, Schema
from windrow.model.types import TYPES
from windrow.operations.join.aggregates import Wanted, aggregate_rows
from windrow.operations.join.reader import JoinReader, first_source, read_nodes
from windrow.operations.join.sources import LISTED_BYTES, JoinedCells
from windrow.operations.query.sparse_run import cell_blocks
from windrow.operations.query.totals import (
    check_size,
    column_of,
    gather_groups,
    join_tables,
    part_schema,
    parts_of,
)
from windrow.plan.bound import BoundJoined, NamedAggregates, NamedNodes, side_name
from windrow.plan.pairs import sided_types
from windrow.storage.cells import cell_fields

PAIRED = "\0paired"
"""The column that is present wherever there is a pair: what count(*) counts."""


@dataclass(frozen=True)
class GroupPairs:
    """A task: the aggregates of the groups of pairs whose first cell lies in a box. It pickles."""

    reader: JoinReader
    box: Box
    groups: tuple[Name, ...]
    arguments: NamedNodes
    aggregates: NamedAggregates
    fields: Schema

    def parts(self) -> pa.Table:
        """Each left row by itself, then the rows of a group joined."""
        wanted = Wanted(self.arguments, tuple(aggregate for _, aggregate in self.aggregates))
        with self.reader.naming():
            rows, results = aggregate_rows(self.reader, self.box, wanted, [group.key for group in self.groups])
        columns = {name: _column(result) for (name, _), result in zip(self.aggregates, results, strict=True)}
        keys = [rows.places(group.key) for group in self.groups]
        found = gather_groups(keys, columns, rows.length)
        joined = []
        for name, aggregate in self.aggregates:
            own = {part: found.columns[column_of(needed)] for part, needed in aggregate.parts().items()}
            joined.append((name, join_parts(aggregate, own, found.starts)))
        return self._table(found.places, [result for _, result in joined])

    def whole(self) -> pa.Table:
        """All pairs of each group."""
        nodes = [node for _, node in self.arguments]
        meeting, shares = self.reader.meet(self.box, read_nodes([*nodes, *self.groups]))
        with self.reader.naming():
            pairs = [(left, right) for _, left, right in shares]
        left, right = (np.concatenate([np.zeros(0, np.int64), *(pair[side] for pair in pairs)]) for side in (0, 1))
        order = np.lexsort((right, left))
        left, right = left[order], right[order]
        rows = meeting.pairs(left, right, [*nodes, *self.groups])
        with self.reader.naming():
            columns = {name: rows.values(node) for name, node in self.arguments}
        columns[PLACES] = Column(np.arange(len(left)))
        columns[PAIRED] = Column(right, right >= 0)
        found = gather_groups([rows.places(group.key) for group in self.groups], columns, len(left))
        evaluation = found.evaluation()
        return self._table(found.places, [evaluation.result(_of_pairs(aggregate)) for _, aggregate in self.aggregates])

    def _table(self, places: list[np.typing.NDArray[np.int64]], results: list[Result]) -> pa.Table:
        values = [result.to_arrow(a.type) for result, a in zip(results, self.fields.attributes, strict=True)]
        at = [pa.array(place) for place in places] or [pa.array(np.zeros(1, np.int64))]
        return pa.table([*at, *values], schema=cell_fields(self.fields))


def group_parts(task: GroupPairs) -> pa.Table:
    return task.parts()


def group_whole(task: GroupPairs) -> pa.Table:
    return task.whole()


def _column(result: Result) -> Column:
    return Column(result.values, None if result.missing is None else ~result.missing)


def _of_pairs(aggregate: Aggregate) -> Aggregate:
    """The same aggregate; one without an argument counts pairs, not the rows of cells that have none."""
    return aggregate if aggregate.attribute is not None else Aggregate("count", PAIRED)


@dataclass(frozen=True)
class WholeGroups(JoinedCells):
    """The first array as it is cut for groups that must be whole: a task holds all their pairs."""

    def task_bytes(self, results: Box) -> int:
        inside = results & self.box
        if inside.is_empty:
            return 0
        width = LISTED_BYTES + 16 * len(self.wanted.arguments)
        return super().task_bytes(inside) + self.reader.rows_in(inside) * width


def cut_for_totals(reader: JoinReader, bound: BoundJoined) -> JoinedCells:
    """The first array as it is cut into tasks."""
    # Where a pair lies in the order of all pairs is known only to who has all of a group.
    parted = all(can_join(aggregate) and not aggregate.definition.ordered for _, aggregate in bound.aggregates)
    first = first_source(reader)
    kind = JoinedCells if parted else WholeGroups
    return kind(reader, first.schema, first.box, (), Wanted(bound.arguments, ()))


def join_totals(engine: Engine, reader: JoinReader, bound: BoundJoined) -> pa.Table:
    """A row for each group, in the order of their coordinates; of too few values a result is null."""
    if not bound.min_count:
        return _all_totals(engine, reader, bound)
    counted, counts = _with_counts(bound)
    table = _all_totals(engine, reader, counted)
    for (name, _), count in zip(bound.aggregates, counts, strict=True):
        column, index = table.column(name), table.column_names.index(name)
        enough = pc.greater_equal(table.column(count), bound.min_count)
        table = table.set_column(index, table.field(index), pc.if_else(enough, column, pa.scalar(None, column.type)))
    return table.select(cell_fields(bound.schema).names)


def _with_counts(bound: BoundJoined) -> tuple[BoundJoined, list[str]]:
    """The same totals and, beside them, how many present values each is of; the names of these, one for each total.

    A count is joined from parts as other aggregates are, so that groups are as few or as whole as they would be.
    """
    names: list[str] = []
    added: dict[tuple[str, ...], str] = {}
    for _, aggregate in bound.aggregates:
        name = f"present_{len(added)}"
        while name in (*bound.schema.dimension_names, *bound.schema.attribute_names):
            name += "_"
        names.append(added.setdefault(aggregate.attributes, name))
    counts = tuple((name, _count_of(arguments)) for arguments, name in added.items())
    attributes = tuple(Attribute(name, TYPES["int64"]) for name, _ in counts)
    schema = replace(bound.schema, attributes=(*bound.schema.attributes, *attributes))
    return replace(bound, schema=schema, aggregates=(*bound.aggregates, *counts), min_count=0), names


def _count_of(arguments: tuple[str, ...]) -> Aggregate:
    """How many pairs have all arguments."""
    if len(arguments) == 2:
        return Aggregate("pairs", arguments[0], second=arguments[1])
    return Aggregate("count", *arguments) if arguments else Aggregate("count", None)


def _all_totals(engine: Engine, reader: JoinReader, bound: BoundJoined) -> pa.Table:
    aggregates, schema = bound.aggregates, bound.schema
    cut = cut_for_totals(reader, bound)
    parted = not isinstance(cut, WholeGroups)
    wanted = parts_of(aggregates) if parted else aggregates
    fields = part_schema(_argument_schema(bound), wanted, schema) if parted else schema
    executor = engine.choose(0 if cut.box.is_empty else cut.touched_bytes(cut.box))
    blocks = _blocks(executor, cut, bound.groups)
    if not blocks and not bound.groups:  # nothing to read, yet a total over all of nothing has a result
        blocks = [cut.box]
    tasks = [GroupPairs(_within(reader, b), b, bound.groups, bound.arguments, wanted, fields) for b in blocks]
    largest = max(map(cut.task_bytes, blocks), default=0)
    pieces = executor.run(Job("computing totals of pairs", group_parts if parted else group_whole, tasks, largest))
    table = pa.concat_tables([cell_fields(fields).empty_table(), *pieces])
    check_size(engine, table)
    if parted:
        return join_tables(table, aggregates, schema, bool(bound.groups))
    return table.sort_by([(name, "ascending") for name in schema.dimension_names])


def _within(reader: JoinReader, block: Box) -> JoinReader:
    return reader if block.is_empty else reader.within(block)


def cutting_grid(cut: JoinedCells, groups: tuple[Name, ...]) -> tuple[ChunkGrid, tuple[int, ...]]:
    """Along which chunks the first array is cut, and the axes along which it is not: there groups must stay whole."""
    grid = cut.reading_grid
    if not isinstance(cut, WholeGroups):
        return grid, ()
    own = {group.name for group in groups if group.qualifier == side_name(1)}
    whole = [name not in own for name in cut.schema.dimension_names]
    chunk = tuple(
        extent if is_whole else size for size, extent, is_whole in zip(grid.chunk, cut.box.shape, whole, strict=True)
    )
    lo = tuple(b if is_whole else g for g, b, is_whole in zip(grid.lo, cut.box.lo, whole, strict=True))
    return ChunkGrid(lo, grid.hi, chunk), tuple(axis for axis, is_whole in enumerate(whole) if is_whole)


def _blocks(executor: Executor, cut: JoinedCells, groups: tuple[Name, ...]) -> list[Box]:
    """Boxes of the first array."""
    if cut.box.is_empty:
        return []
    grid, uncut = cutting_grid(cut, groups)
    return cell_blocks(cut, grid, cut.box, executor, uncut)


def _argument_schema(bound: BoundJoined) -> Schema:
    """The arguments as attributes, for the types that parts of aggregates have."""
    types = sided_types(bound.source)
    attributes = tuple(Attribute(name, check(node, types)) for name, node in bound.arguments)
    return replace(bound.schema, attributes=attributes) if attributes else bound.schema
