"""Pairs of given left cells, listed with the values that aggregates take of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.windows import PLACES, Column
from windrow.execution.engine import Engine
from windrow.execution.executor import Job
from windrow.expressions.nodes import Column as Name
from windrow.expressions.nodes import Node
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.operations.join.pairs import Selection
from windrow.operations.join.reader import FirstSide, JoinReader, read_nodes
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.held import HeldCells
from windrow.plan.bound import NamedNodes, side_name
from windrow.storage.cells import coordinates
from windrow.views.evaluate import READ_CELLS
from windrow.views.regions import cluster_numbers
from windrow.views.rules.rows import Entering, join_rows

Int64Array = npt.NDArray[np.int64]

PAIR_BYTES = 200
"""What a listed pair takes with its values, for deciding where work runs."""


@dataclass(frozen=True)
class PairLister:
    """Lists pairs of a join without nearest: those of left cells in memory with right cells, wherever these are."""

    reader: JoinReader
    left: Schema
    box: Box
    """All cells that the left side can have."""
    arguments: NamedNodes
    ordered: bool

    def held(self, table: pa.Table) -> FirstSide:
        return FirstSide(HeldCells(self.left, self.box, (), table))

    def with_held(self, left: pa.Table, right: pa.Table) -> Entering:
        """The pairs of left and right cells that are both in memory, numbered by left row."""
        source = self.reader.right
        held = HeldCells(source.schema, source.box, (), right.select(_names(source.schema, right)))
        return self._list(replace(self.reader, left=self.held(left), right=held, itself=False))

    def with_stored(self, engine: Engine, left: pa.Table) -> Entering:
        """The pairs of left cells with all right cells; cells far from one another are tasks of their own."""
        held = replace(self.reader, left=self.held(left), itself=False)
        size = left.num_rows * row_bytes(self.left) + PAIR_BYTES * left.num_rows
        places = self._tasks_of(held, left, engine) if left.num_rows else []
        if len(places) <= 1 and not engine.goes_to_spark(size):
            return self._list(held)
        readers = [replace(held, left=self.held(left.take(pa.array(rows)))) for rows in places]
        tasks = [ListPairs(replace(self, reader=reader)) for reader in readers]
        found = engine.choose(size).run(Job("listing pairs", list_pairs, tasks))
        pieces = [Entering(rows[piece.numbers], piece.columns) for rows, piece in zip(places, found, strict=True)]
        return join_rows(pieces, pieces[0]) if pieces else self._list(held)

    def _tasks_of(self, held: JoinReader, left: pa.Table, engine: Engine) -> list[npt.NDArray[np.intp]]:
        """Left rows that are looked at together: all of them, unless that reads more than clusters one by one do."""
        at = coordinates(left, self.left)
        numbers = cluster_numbers(at, self.left.grid, 4 * engine.local.workers)
        clusters = [np.flatnonzero(numbers == number) for number in range(int(numbers.max()) + 1)]
        whole = held.cells_decoded(_around(at))
        apart = sum(held.cells_decoded(_around([column[rows] for column in at])) for rows in clusters)
        many = engine.goes_to_spark(left.num_rows * PAIR_BYTES) or whole > apart + READ_CELLS * len(clusters)
        return clusters if many else [np.arange(left.num_rows)]

    def _list(self, reader: JoinReader) -> Entering:
        reader = replace(reader, selection=Selection("inner", reader.selection.condition, reader.selection.where, None))
        nodes: list[Node] = [node for _, node in self.arguments]
        own = [Name(name, reader.side) for name in reader.right.schema.dimension_names] if self.ordered else []
        meeting, shares = reader.meet(self.box, read_nodes([*nodes, *own]))
        pieces = []
        with reader.naming():
            for _, left, right in shares:
                pairs = meeting.pairs(left, right, [*nodes, *own])
                columns = {name: pairs.values(node) for name, node in self.arguments}
                if self.ordered:
                    columns[PLACES] = Column(_order_keys([pairs.places(name.key) for name in own], reader.right.box))
                pieces.append(Entering(left, columns))
            if not pieces:
                nothing = np.zeros(0, np.int64)
                none = meeting.pairs(nothing, nothing, [*nodes, *own])
                columns = {name: none.values(node) for name, node in self.arguments}
                return Entering(nothing, columns | ({PLACES: Column(nothing)} if self.ordered else {}))
        return join_rows(pieces, pieces[0])


def _around(at: Sequence[Int64Array]) -> Box:
    return Box(tuple(int(column.min()) for column in at), tuple(int(column.max()) for column in at))


@dataclass(frozen=True)
class ListPairs:
    """A task: all pairs of some left cells. It pickles."""

    lister: PairLister


def list_pairs(task: ListPairs) -> Entering:
    return task.lister._list(task.lister.reader)


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
