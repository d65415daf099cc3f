"""The pairs of a join, some left rows at a time: found by shape, then by conditions, then the nearest of them.

What a query says is applied in this order: shape, conditions on pairs, nearest, and at last ``where``, which also
drops left rows without a partner where it is not true of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.expressions.nodes import Node
from windrow.operations.join.partners import Share
from windrow.operations.join.rows import Cells, Rows
from windrow.plan.bound import DISTANCE
from windrow.plan.join_terms import BoundNearest

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Pair = tuple[Int64Array, Int64Array]
NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Selection:
    """Which of the pairs that a shape finds belong to a join."""

    kind: str
    condition: Node | None
    where: Node | None
    nearest: BoundNearest | None

    def nodes(self) -> list[Node]:
        by = None if self.nearest is None else self.nearest.by
        return [node for node in (self.condition, self.where, by) if node is not None]


class Distances(Protocol):
    """How far the cells of pairs are from one another."""

    def __call__(self, left: Int64Array, right: Int64Array) -> Float64Array: ...


@dataclass(frozen=True, eq=False)
class CellDistances:
    """The Euclidean lengths of offsets in cells, along some axes; the shorter way round along periodic ones."""

    centres: Sequence[Int64Array | None]
    at: Sequence[Int64Array]
    axes: tuple[int, ...]
    periods: tuple[int, ...]

    def __call__(self, left: Int64Array, right: Int64Array) -> Float64Array:
        squares = np.zeros(len(left))
        for axis in self.axes:
            centre = self.centres[axis]
            if centre is not None:
                offset = self.at[axis][right] - centre[left]
                if self.periods[axis]:
                    offset = offset % self.periods[axis]
                    offset = np.minimum(offset, self.periods[axis] - offset)
                squares += offset.astype(np.float64) ** 2
        return np.sqrt(squares)


@dataclass(frozen=True, eq=False)
class Meeting:
    """Left rows and right cells that meet, and how far they are from one another."""

    rows: Rows
    cells: Cells
    centres: Sequence[Int64Array | None]
    distances: Distances

    def pairs(self, left: Int64Array, right: Int64Array, nodes: Sequence[Node]) -> Rows:
        """The columns that expressions read, for each pair."""
        keys = {column.key for node in nodes for column in node.columns()}
        found = self.rows.select(keys).take(left).beside(self.cells.rows.select(keys).take(right))
        if DISTANCE.key in keys:
            far = pa.array(self.distances(left, right), mask=right < 0)
            found = found.beside(Rows(len(left), {DISTANCE.key: far}))
        return found


def select_pairs(meeting: Meeting, selection: Selection, found: Iterable[Share]) -> Iterator[Share]:
    """What is left of the pairs that a shape finds."""
    for rows, left, right in found:
        left, right = _satisfying(meeting, selection.condition, left, right)
        if selection.nearest is not None:
            left, right = _nearest(meeting, selection.nearest, left, right)
        yield _completed(meeting, selection, rows, left, right)


def select_mutual(meeting: Meeting, selection: Selection, found: Iterable[Share], own: Mask) -> Iterator[Share]:
    """The pairs that are each other's first, of the left rows ``own``; the others are there to be compared with."""
    pieces = [_satisfying(meeting, selection.condition, left, right) for _, left, right in found]
    left, right = (np.concatenate([piece[side] for piece in pieces] or [NOTHING]) for side in (0, 1))
    assert selection.nearest is not None
    forth = _ranks(meeting, selection.nearest, left, right, left, right) == 0
    cells = meeting.cells.identity[right]
    back = _ranks(meeting, selection.nearest, left, right, cells, left) == 0
    kept = forth & back & own[left]
    yield _completed(meeting, selection, np.flatnonzero(own), left[kept], right[kept])


def _satisfying(meeting: Meeting, condition: Node | None, left: Int64Array, right: Int64Array) -> Pair:
    if condition is None:
        return left, right
    holds = meeting.pairs(left, right, [condition]).holds(condition)
    return left[holds], right[holds]


def _completed(meeting: Meeting, selection: Selection, rows: Int64Array, left: Int64Array, right: Int64Array) -> Share:
    """The pairs with the left rows that have none, where these are kept, as far as ``where`` is true of them."""
    if selection.kind != "inner":
        alone = rows[~np.isin(rows, left)]
        nobody = np.full(len(alone), -1, np.int64)
        if selection.kind == "anti":
            left, right = alone, nobody
        else:
            left, right = np.concatenate([left, alone]), np.concatenate([right, nobody])
    return rows, *_satisfying(meeting, selection.where, left, right)


def _nearest(meeting: Meeting, nearest: BoundNearest, left: Int64Array, right: Int64Array) -> Pair:
    """The pairs of each left row with the smallest distances; of equal ones, those whose right cell comes first."""
    kept = _ranks(meeting, nearest, left, right, left, right) < nearest.count
    return left[kept], right[kept]


def _ranks(
    meeting: Meeting, nearest: BoundNearest, left: Int64Array, right: Int64Array, group: Int64Array, tie: Int64Array
) -> Int64Array:
    """The place of each pair in its group, nearest first; pairs of which it is not known how near come last."""
    if nearest.by is None:
        order = np.lexsort((tie, meeting.distances(left, right), group))
    else:
        column = meeting.pairs(left, right, [nearest.by]).values(nearest.by)
        values = column.values
        if values.dtype.kind == "T":
            values = np.unique(values, return_inverse=True)[1]
        unknown = np.zeros(len(left), bool) if column.present is None else ~column.present
        if values.dtype.kind == "f":
            unknown = unknown | np.isnan(values)
        order = np.lexsort((tie, values, unknown, group))
    ordered = group[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    return ranks
