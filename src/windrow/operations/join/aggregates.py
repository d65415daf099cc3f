"""Aggregates over the partners of left rows: straight from bands of cells where that is enough, else pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.bands import BandNeighbours, evaluate_bands
from windrow.aggregates.columns import PLACES, Column, Result
from windrow.aggregates.sparse_windows import CellEvaluation, Neighbours
from windrow.aggregates.windows import Evaluation
from windrow.kernels.contract.sweeps import VariableSweep
from windrow.model.box import Box
from windrow.operations.join.pairs import Meeting
from windrow.operations.join.partners import Partners, Share
from windrow.operations.join.reader import JoinReader, read_nodes
from windrow.operations.join.rows import Rows
from windrow.plan.bound import NamedNodes

Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Wanted:
    """Aggregates of named expressions over pairs."""

    arguments: NamedNodes
    aggregates: tuple[Aggregate, ...]
    min_count: int = 0
    method: str = "auto"

    @property
    def ordered(self) -> bool:
        return any(aggregate.definition.ordered for aggregate in self.aggregates)

    def used(self) -> NamedNodes:
        """The arguments that the aggregates read."""
        names = {name for aggregate in self.aggregates for name in aggregate.attributes}
        return tuple((name, node) for name, node in self.arguments if name in names)


def aggregate_rows(reader: JoinReader, box: Box, wanted: Wanted, keys: Iterable[str]) -> tuple[Rows, list[Result]]:
    """The left rows in a box that the join keeps, in their order, with aggregates over the partners of each.

    ``keys`` are columns of the rows that are asked for besides.
    """
    nodes = [node for _, node in wanted.used()]
    if not is_plain(reader, nodes):
        meeting, shares = reader.meet(box, {*keys, *read_nodes(nodes)})
        return _by_pairs(reader, meeting, shares, wanted)
    meeting = reader.gather(box, {*keys, *read_nodes(nodes)})
    if not meeting.rows.length:
        return _by_pairs(reader, meeting, iter(()), wanted)
    partners = reader.partners(meeting)
    if partners.itself is not None:
        return _by_pairs(reader, meeting, partners.pairs(), wanted)
    columns = ordered_columns(meeting, partners, wanted.used())
    if wanted.ordered:
        columns[PLACES] = Column(partners.order)
    results = [_spread(result, partners.numbers) for result in _evaluated(columns, partners.neighbours, wanted)]
    if reader.selection.kind == "left":
        return meeting.rows, results
    kept = np.flatnonzero(partners.neighbours.counts[partners.numbers])
    return meeting.rows.take(kept), [_spread(result, kept) for result in results]


def _evaluated(columns: Mapping[str, Column], neighbours: Neighbours, wanted: Wanted) -> list[Result]:
    if isinstance(neighbours, BandNeighbours):
        return evaluate_bands(columns, neighbours, wanted.aggregates, wanted.method, wanted.min_count)
    evaluation = CellEvaluation(columns, neighbours, wanted.method, wanted.min_count)
    return [evaluation.result(aggregate) for aggregate in wanted.aggregates]


def ordered_columns(meeting: Meeting, partners: Partners, arguments: NamedNodes) -> dict[str, Column]:
    """Expressions over right cells, in the order in which neighbourhoods name the cells."""
    found = {}
    for name, node in arguments:
        column = meeting.cells.rows.values(node)
        present = None if column.present is None else column.present[partners.order]
        found[name] = Column(column.values[partners.order], present)
    return found


def is_plain(reader: JoinReader, nodes: Sequence[Any]) -> bool:
    """Whether aggregates need nothing of pairs but the right cell, and all pairs that the shape finds are there."""
    selection = reader.selection
    read = {column.qualifier for node in nodes for column in node.columns()}
    whole = selection.nearest is None and not selection.nodes()
    return whole and reader.is_by_shape and selection.kind != "anti" and read <= {reader.side}


def _by_pairs(
    reader: JoinReader, meeting: Meeting, shares: Iterator[Share], wanted: Wanted
) -> tuple[Rows, list[Result]]:
    """Every pair looked at; some left rows at a time, so that there are never more pairs than memory should hold."""
    numbers: list[Int64Array] = []
    pieces: list[list[Result]] = []
    for _, left, right in shares:
        rows, found = aggregate_pairs(meeting, left, right, wanted)
        numbers.append(rows)
        pieces.append(found)
    if not pieces:
        nothing = np.zeros(0, np.int64)
        return meeting.rows.take(nothing), aggregate_pairs(meeting, nothing, nothing, wanted)[1]
    rows = np.concatenate(numbers)
    order = np.argsort(rows, kind="stable")
    results = [_spread(_concatenated([piece[k] for piece in pieces]), order) for k in range(len(wanted.aggregates))]
    return meeting.rows.take(rows[order]), results


def aggregate_pairs(
    meeting: Meeting, left: Int64Array, right: Int64Array, wanted: Wanted
) -> tuple[Int64Array, list[Result]]:
    """The left rows of some pairs, ascending, and aggregates over the pairs of each."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    rows, sizes = np.unique(left, return_counts=True)
    paired = right >= 0
    # A left row without a partner is listed once, and its aggregates are over nothing.
    sizes = sizes - (~paired)[np.cumsum(sizes) - sizes] if len(rows) else sizes
    left, right = left[paired], right[paired]
    nodes = [node for _, node in wanted.used()]
    pairs = meeting.pairs(left, right, nodes)
    columns = {name: pairs.values(node) for name, node in wanted.used()}
    if wanted.ordered:
        columns[PLACES] = Column(np.arange(len(left)))
    ends = np.cumsum(sizes)
    windows = [VariableSweep(ends - sizes, ends - 1)]
    evaluation = Evaluation(columns, (len(left),), windows, wanted.method, wanted.min_count)
    return rows, [evaluation.result(aggregate) for aggregate in wanted.aggregates]


def _spread(result: Result, numbers: Int64Array) -> Result:
    return Result(result.values[numbers], None if result.missing is None else result.missing[numbers])


def _concatenated(pieces: Sequence[Result]) -> Result:
    values = np.concatenate([piece.values for piece in pieces])
    if all(piece.missing is None for piece in pieces):
        return Result(values, None)
    missing = [np.zeros(len(p.values), bool) if p.missing is None else p.missing for p in pieces]
    return Result(values, np.concatenate(missing))
