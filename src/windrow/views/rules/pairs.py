"""Pairs of given left cells, with the values that aggregates take of them, and states made of them.

Pairs that the shape alone decides are runs of right cells, and are not listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.bands import BandNeighbours
from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.states.layout import ROWS, Layout, state_layout
from windrow.aggregates.states.rule import State
from windrow.aggregates.states.runs import Runs
from windrow.execution.engine import Engine
from windrow.execution.executor import Job
from windrow.expressions.nodes import Column as Name
from windrow.expressions.nodes import Node
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.model.source import ComputedCells
from windrow.model.types import DataType
from windrow.operations.join.aggregates import is_plain, ordered_columns
from windrow.operations.join.pairs import Selection
from windrow.operations.join.reader import FirstSide, JoinReader, read_nodes
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.held import HeldCells
from windrow.plan.bound import NamedNodes, side_name
from windrow.storage.cells import coordinates
from windrow.views.evaluate import READ_CELLS
from windrow.views.regions import cluster_numbers
from windrow.views.rules.rows import Entering, EnteringRuns, FoundRows, join_rows

Int64Array = npt.NDArray[np.int64]

LITTLE_CELLS = 10 * READ_CELLS
"""What is read in one go without asking whether less would do."""

TASK_CELLS = 300_000
"""What a task costs whatever it reads, in cells: chunks are looked for, and row groups opened that others open too."""

PAIR_BYTES = 200
"""What a listed pair takes with its values, for deciding where work runs."""


@dataclass(frozen=True)
class Kept:
    """What is kept of results, in a form that goes to workers."""

    aggregates: tuple[tuple[str, Aggregate], ...]
    types: tuple[tuple[str, DataType], ...]
    """Of what the aggregates take."""
    counters: tuple[str, ...]

    @cached_property
    def layout(self) -> Layout:
        return state_layout(self.aggregates, dict(self.types), self.counters)


@dataclass(frozen=True)
class PairFinder:
    """Finds pairs of a join without nearest: those of left cells in memory with right cells, wherever these are."""

    reader: JoinReader
    left: Schema
    box: Box
    """All cells that the left side can have."""
    arguments: NamedNodes
    ordered: bool
    kept: Kept

    @property
    def source(self) -> ComputedCells:
        """All left cells."""
        assert isinstance(self.reader.left, FirstSide)
        return self.reader.left.source

    def held(self, table: pa.Table) -> FirstSide:
        return FirstSide(HeldCells(self.left, self.box, (), table))

    def with_held(self, left: pa.Table, right: pa.Table) -> FoundRows:
        """The pairs of left and right cells that are both in memory, numbered by left row."""
        return self._find(self._holding(left, right))

    def list_held(self, left: pa.Table, right: pa.Table) -> Entering:
        """The same, each pair by itself."""
        return join_rows(list(self._list(_inner(self._holding(left, right)))))

    def _holding(self, left: pa.Table, right: pa.Table) -> JoinReader:
        source = self.reader.right
        held = HeldCells(source.schema, source.box, (), right.select(_names(source.schema, right)))
        some = left if right.num_rows else left.slice(0, 0)
        return replace(self.reader, left=self.held(some), right=held, itself=False)

    def reduce_stored(self, engine: Engine, left: pa.Table) -> State:
        """The states of left cells with all right cells; cells far from one another are tasks of their own."""
        if not left.num_rows:
            return self.kept.layout.empty(0)
        held = replace(self.reader, left=self.held(left), itself=False)
        size = left.num_rows * row_bytes(self.left) + PAIR_BYTES * left.num_rows
        places = self._tasks_of(held, left, engine)
        if len(places) <= 1 and not engine.goes_to_spark(size):
            return reduce_pairs(ReducePairs(replace(self, reader=held), left.num_rows))
        readers = [replace(held, left=self.held(left.take(pa.array(rows)))) for rows in places]
        tasks = [
            ReducePairs(replace(self, reader=reader), len(rows)) for reader, rows in zip(readers, places, strict=True)
        ]
        found = engine.choose(size).run(Job("states of pairs", reduce_pairs, tasks))
        order = np.argsort(np.concatenate(places), kind="stable")
        return self.kept.layout.take(self.kept.layout.concatenate(found), order)

    def _tasks_of(self, held: JoinReader, left: pa.Table, engine: Engine) -> list[npt.NDArray[np.intp]]:
        """Left rows that are looked at together: all of them, unless that reads more than clusters one by one do.

        Along dimensions in which partners lie far away, clusters would read the same cells again.
        """
        at, together = coordinates(left, self.left), [np.arange(left.num_rows)]
        whole, spark = held.cells_decoded(_around(at)), engine.goes_to_spark(left.num_rows * PAIR_BYTES)
        narrow = self._narrow_axes(held)
        if not spark and (whole <= LITTLE_CELLS or not narrow):
            return together
        parted = [column if axis in narrow else np.zeros_like(column) for axis, column in enumerate(at)]
        numbers = cluster_numbers(parted if narrow else at, self.left.grid, 4 * engine.local.workers)
        clusters = [np.flatnonzero(numbers == number) for number in range(int(numbers.max()) + 1)]
        apart = sum(held.cells_decoded(_around([column[rows] for column in at])) for rows in clusters)
        return clusters if spark or whole > apart + TASK_CELLS * len(clusters) else together

    def _narrow_axes(self, held: JoinReader) -> set[int]:
        """The left dimensions along which partners are no further away than a chunk is long.

        Cells are stored in the order of chunks, so that after a dimension in which partners are anywhere a cut saves
        nothing: what lies on both sides of it is in the same row groups.
        """
        shape, grid, found = held.shape, held.right.schema.grid, set[int]()
        names = [Name(name, side_name(1)).key for name in self.left.dimension_names]
        for axis, place in enumerate(held.mapping):
            if grid.radix[axis] == 1:
                continue
            near = place is not None and not shape.free[axis]
            if place is None or not near or shape.stop[axis] - shape.start[axis] > grid.chunk[axis]:
                break
            found.update([names.index(place.cell.key)] if place.cell.key in names else [])
        return found

    def reduce(self, count: int) -> State:
        """The states of so many left cells with all right cells; of listed pairs only some are held at a time."""
        layout = self.kept.layout
        lefts = np.ones(count, np.int64) if ROWS in self.kept.counters else None
        reader = _inner(self.reader)
        found = self._as_runs(reader)
        if found is not None:
            return layout.reduce(*found.sorted_into(count), lefts)
        pieces = self._list(reader)
        state = layout.reduce(*next(pieces).sorted_into(count), lefts)
        for piece in pieces:
            state = piece.come_to(layout, state, count) if piece.count else state
        return state

    def _find(self, reader: JoinReader) -> FoundRows:
        reader = _inner(reader)
        found = self._as_runs(reader)
        return join_rows(list(self._list(reader))) if found is None else found

    def _as_runs(self, reader: JoinReader) -> EnteringRuns | None:
        """Pairs as runs of right cells; None if they cannot be said so, or there is none to speak of."""
        if not is_plain(reader, [node for _, node in self.arguments]):
            return None
        own = self._places_of(reader)
        meeting = reader.gather(self.box, read_nodes([*(node for _, node in self.arguments), *own]))
        if not meeting.rows.length:
            return None
        partners = reader.partners(meeting)
        if partners.itself is not None or not isinstance(partners.neighbours, BandNeighbours):
            return None
        columns = ordered_columns(meeting, partners, self.arguments)
        if self.ordered:
            keys = _order_keys([meeting.cells.rows.places(name.key) for name in own], reader.right.box)
            columns[PLACES] = Column(keys[partners.order])
        return EnteringRuns(Runs(partners.neighbours, partners.numbers), columns)

    def _places_of(self, reader: JoinReader) -> list[Name]:
        """The coordinates of right cells, where their order matters."""
        return [Name(name, reader.side) for name in reader.right.schema.dimension_names] if self.ordered else []

    def _list(self, reader: JoinReader) -> Iterator[Entering]:
        """Pairs one by one, those of some left cells at a time; at least one piece, which may be empty."""
        nodes: list[Node] = [node for _, node in self.arguments]
        own = self._places_of(reader)
        meeting, shares = reader.meet(self.box, read_nodes([*nodes, *own]))
        nothing = np.zeros(0, np.int64)
        with reader.naming():
            for _, left, right in chain(shares, [(None, nothing, nothing)]):
                pairs = meeting.pairs(left, right, [*nodes, *own])
                columns = {name: pairs.values(node) for name, node in self.arguments}
                if self.ordered:
                    columns[PLACES] = Column(_order_keys([pairs.places(name.key) for name in own], reader.right.box))
                yield Entering(left, columns)


def _inner(reader: JoinReader) -> JoinReader:
    """Left cells without partners have no pairs."""
    return replace(reader, selection=Selection("inner", reader.selection.condition, reader.selection.where, None))


def _around(at: Sequence[Int64Array]) -> Box:
    return Box(tuple(int(column.min()) for column in at), tuple(int(column.max()) for column in at))


@dataclass(frozen=True)
class ReducePairs:
    """A task: the states of so many left cells. It pickles."""

    finder: PairFinder
    count: int


def reduce_pairs(task: ReducePairs) -> State:
    return task.finder.reduce(task.count)


def _names(schema: Schema, table: pa.Table) -> list[str]:
    return [name for name in (*schema.dimension_names, *schema.attribute_names) if name in table.column_names]


def _order_keys(at: Sequence[Int64Array], box: Box) -> Int64Array:
    """Where cells are in the order of all of an array's coordinates."""
    keys = np.zeros(len(at[0]), np.int64)
    for column, lo, extent in zip(at, box.lo, box.shape, strict=True):
        keys = keys * extent + (column - lo)
    return keys


def can_order(box: Box) -> bool:
    """Whether each cell of a box has a number in that order."""
    size: Any = box.size
    return bool(size < 2**62)


def used_attributes(nodes: Sequence[Node], number: int) -> set[str]:
    """The attributes and dimensions of a side that expressions read."""
    side = side_name(number)
    return {column.name for node in nodes for column in node.columns() if column.qualifier == side}
