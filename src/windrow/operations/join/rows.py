"""Rows of a join's sides: columns under the names that expressions over pairs read them by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.columns import Column as Values
from windrow.expressions.evaluate import evaluate
from windrow.expressions.nodes import Column, Node
from windrow.kernels.sparse.order import coordinate_order, run_starts
from windrow.model.arrow import arrow_to_block
from windrow.model.source import CellSource
from windrow.operations.join.reach import NOWHERE, Piece

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Cells of one side, or pairs of several: a column for each key (``side1.i``) that somebody reads."""

    length: int
    columns: Mapping[str, pa.Array]

    def places(self, key: str) -> Int64Array:
        """Coordinates; those of a partner that is not there lie out of every shape's reach."""
        column = self.columns[key]
        found: Int64Array = (pc.fill_null(column, NOWHERE) if column.null_count else column).to_numpy()
        return found

    def take(self, chosen: npt.NDArray[Any]) -> Rows:
        """Some of the rows; a negative number gives a row of which nothing is known."""
        absent = chosen < 0
        index = pa.array(chosen, mask=absent) if absent.any() else pa.array(chosen)
        return Rows(len(chosen), {key: column.take(index) for key, column in self.columns.items()})

    def select(self, keys: Iterable[str]) -> Rows:
        """The columns that are asked for, as far as they are here."""
        return Rows(self.length, {key: self.columns[key] for key in keys if key in self.columns})

    def beside(self, other: Rows) -> Rows:
        """The columns of both, row by row."""
        return Rows(self.length, {**self.columns, **other.columns})

    def evaluate(self, node: Node) -> pa.Array:
        """The value of an expression in each row."""
        if type(node) is Column:
            return self.columns[node.key]
        return evaluate(node, {column.key: self.columns[column.key] for column in node.columns()}, self.length)

    def holds(self, condition: Node) -> npt.NDArray[np.bool_]:
        """In which rows a condition is true."""
        found = pc.fill_null(self.evaluate(condition), False)
        return np.asarray(found.to_numpy(zero_copy_only=False), bool)

    def values(self, node: Node) -> Values:
        """The values of an expression for aggregates."""
        return Values(*arrow_to_block(self.evaluate(node)))


def read_rows(source: CellSource, side: str, box: Any, names: Sequence[str]) -> Rows:
    """The cells of a side in a box, in the order of their coordinates: all its dimensions and some attributes."""
    return as_rows(source.read(box, names), side)


def as_rows(table: pa.Table, side: str) -> Rows:
    columns = {f"{side}.{name}": _whole(table.column(name)) for name in table.column_names}
    return Rows(table.num_rows, columns)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


@dataclass(frozen=True, eq=False)
class Cells:
    """Right cells in the order of their coordinates, and where the shape meets each.

    Beyond the border of a periodic dimension a cell is met once more, at another place; ``identity`` numbers the cells
    themselves.
    """

    rows: Rows
    at: list[Int64Array]
    identity: Int64Array


def read_cells(source: CellSource, side: str, pieces: Sequence[Piece], names: Sequence[str]) -> Cells:
    """The right cells of some boxes."""
    dimensions = source.schema.dimension_names
    tables = [source.read(piece.box, names) for piece in pieces]
    if not tables:
        tables, pieces = [source.read(_nothing(source), names)], [Piece(_nothing(source), (0,) * len(dimensions))]
    rows = as_rows(tables[0] if len(tables) == 1 else pa.concat_tables(tables), side)
    at = []
    for axis, name in enumerate(dimensions):
        moved = [piece.shift[axis] for piece in pieces]
        places = rows.places(f"{side}.{name}")
        if any(moved):
            places = places + np.repeat(moved, [table.num_rows for table in tables])
        at.append(places)
    if len(tables) == 1:
        return Cells(rows, at, np.arange(rows.length))
    own = [rows.places(f"{side}.{name}") for name in dimensions]
    order = coordinate_order(own)
    starts = run_starts([column[order] for column in own], rows.length)
    identity = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return Cells(rows.take(order), [places[order] for places in at], identity)


def _nothing(source: CellSource) -> Any:
    from windrow.model.box import Box

    lo = source.schema.lo
    return Box(lo, tuple(first - 1 for first in lo))
