"""Bound joins as sources: neighbours, aggregates of pairs, and the pairs themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from windrow.expressions.nodes import Column
from windrow.model.source import ComputedCells
from windrow.operations.join.aggregates import Wanted
from windrow.operations.join.groups import join_totals
from windrow.operations.join.pairs import Selection
from windrow.operations.join.reader import FirstSide, JoinReader, LeftSide
from windrow.operations.join.sky import SkyReach
from windrow.operations.join.sources import CellsOnGrid, JoinedCells, PairCells
from windrow.operations.query.cellwise import CellColumns, GridCells
from windrow.operations.query.scans import StoredCells
from windrow.operations.query.shapes import ShapeSource
from windrow.plan.bound import Bound, BoundJoin, BoundJoined, BoundPairs, BoundScan, makes_pairs, side_name
from windrow.plan.join_terms import AxisMap
from windrow.plan.pairs import requalified
from windrow.plan.steps import columns

MANY_CELLS = 500_000
"""Cells from which on it pays to ask where they lie before work is shared out."""

MOST_CHUNKS = 1_500
"""Chunks, or groups of them, that are told apart when work is shared out: estimates look at all of them often."""

SourceOf = Callable[[Bound], Any]
"""What computes a step below the join when it is read."""


def join_reader(join: BoundJoin, source_of: SourceOf) -> JoinReader:
    """What reads the pairs of a join."""
    left = _left(join.left, source_of)
    alike = join.left == join.right
    return JoinReader(
        left=left,
        # Where the cells of a large array lie is asked for once.
        right=left.source if alike and isinstance(left, FirstSide) else _cells(join.right, source_of),
        side=side_name(len(join.sides)),
        shape=join.offsets,
        mapping=join.mapping,
        selection=Selection(join.kind, join.condition, join.where, join.nearest),
        distance_axes=join.distance_axes,
        axis_labels=join.axis_labels,
        names=join.names,
        itself=alike and join.mapping == _identity(join),
        sky=None
        if join.sky is None
        else SkyReach.of(join.sky, None if makes_pairs(join.left) else join.left, join.right),
    )


def _left(bound: Bound, source_of: SourceOf) -> LeftSide:
    return join_reader(bound, source_of) if makes_pairs(bound) else FirstSide(_cells(bound, source_of))


def _cells(bound: Bound, source_of: SourceOf) -> ComputedCells:
    """A side's cells; every cell of a dense array is there."""
    source = source_of(bound)
    if bound.schema.sparse:
        found: ComputedCells = _with_chunks(source, bound)
        return found
    return GridCells(source, replace(source.schema, sparse=True), bound.box, bound.labels, None)


def _with_chunks(source: Any, bound: Bound) -> Any:
    """A large stored array with what is known of its chunks, so that crowded regions are shared out evenly."""
    if isinstance(source, StoredCells):
        scans = [step for step in bound.walk() if isinstance(step, BoundScan)]
        if len(scans) == 1 and scans[0].chunks is not None and (scans[0].cells or 0) >= MANY_CELLS:
            return replace(source, chunks=scans[0].chunks().coarsened(MOST_CHUNKS))
    if isinstance(source, CellColumns):
        return replace(source, source=_with_chunks(source.source, bound))
    return source


def _identity(join: BoundJoin) -> tuple[AxisMap, ...]:
    return tuple(AxisMap(Column(name, side_name(1))) for name in join.right.schema.dimension_names)


def pairs_source(bound: BoundPairs, source_of: SourceOf) -> PairCells:
    """The pairs of a join."""
    optional = bound.source.optional_sides
    places = tuple(cell for number, cell in _cells_of(bound.source.sides) if number not in optional)
    reader = join_reader(bound.source, source_of)
    return PairCells(reader, bound.schema, bound.box, bound.labels, places, bound.outputs)


def anti_source(join: BoundJoin, source_of: SourceOf) -> PairCells:
    """The left cells that have no partner."""
    places = tuple(cell for _, cell in _cells_of(join.sides[:-1]))
    outputs = tuple((name, Column(name, side_name(1))) for name in join.schema.attribute_names)
    return PairCells(join_reader(join, source_of), join.schema, join.box, join.labels, places, outputs)


def _cells_of(sides: Sequence[Bound]) -> Iterator[tuple[int, Column]]:
    """The dimensions of all sides, with the number of the side."""
    for number, side in enumerate(sides, 1):
        for name in side.dimension_names:
            yield number, Column(name, side_name(number))


def is_by_cell(bound: BoundJoined) -> bool:
    """Whether each cell of the first array is a group by itself."""
    first = bound.source.left
    own = () if makes_pairs(first) else tuple(Column(name, side_name(1)) for name in first.dimension_names)
    return bool(own) and bound.groups == own


def joined_source(bound: BoundJoined, source_of: SourceOf) -> JoinedCells | CellsOnGrid:
    """Aggregates over the partners of each cell; of each cell of a dense array, on a grid."""
    wanted = Wanted(bound.arguments, tuple(a for _, a in bound.aggregates), bound.min_count, bound.method)
    reader = join_reader(bound.source, source_of)
    cells = JoinedCells(reader, bound.schema, bound.box, bound.labels, wanted, bound.step)
    return cells if bound.schema.sparse else CellsOnGrid(cells)


def is_on_grid(bound: BoundJoined) -> bool:
    """Whether the neighbourhoods of a dense array's cells are all that is asked about."""
    return bound.is_neighbourhood and not bound.schema.sparse and not bound.reads_distance and bound.source.sky is None


def shape_source(bound: BoundJoined, source_of: SourceOf) -> ShapeSource:
    """Aggregates over the shape around each cell of a dense array."""
    below = bound.source.right
    outputs = tuple((name, requalified(node, {side_name(2): None})) for name, node in bound.arguments)
    source = source_of(columns(below, outputs) if outputs else below)
    return ShapeSource.of(
        source,
        bound.source.offsets,
        below.box,
        dict(below.labels),
        bound.aggregates,
        bound.schema,
        min_count=bound.min_count,
        method=bound.method,
        step=bound.step,
    )


__all__ = [
    "anti_source",
    "is_by_cell",
    "is_on_grid",
    "join_reader",
    "join_totals",
    "joined_source",
    "pairs_source",
    "shape_source",
]
