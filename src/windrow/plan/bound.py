"""Queries whose names were looked up: every step knows the schema, the cells and the labels of its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from windrow.aggregates.aggregate import Aggregate
from windrow.expressions.nodes import Column, Node
from windrow.model.box import Box
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.shape import Shape
from windrow.model.types import TYPES, DataType
from windrow.plan.windows import WindowPlan

LabelItems = tuple[tuple[str, Labels], ...]
NamedAggregates = tuple[tuple[str, Aggregate], ...]
NamedNodes = tuple[tuple[str, Node], ...]
Metadata = Mapping[str, Mapping[str, str]]
"""What is known of attributes besides their types: units, long names."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A step of a query. ``box`` holds the cells of its result, which a schema cannot say of an empty one."""

    schema: Schema
    box: Box
    labels: LabelItems = ()
    gridding: Gridding | None = None
    scalar: bool = False
    """Whether it is one result over all cells; its one dimension only serves to store it."""

    def inputs(self) -> tuple[Bound, ...]:
        found = (getattr(self, part.name) for part in fields(self))
        return tuple(part for part in found if isinstance(part, Bound))

    def walk(self) -> Iterator[Bound]:
        """This step and all below."""
        yield self
        for step in self.inputs():
            yield from step.walk()

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """The dimensions that may be named."""
        return () if self.scalar else self.schema.dimension_names

    @property
    def types(self) -> dict[str, DataType]:
        """What an expression over the cells may name."""
        dimensions = dict.fromkeys(self.dimension_names, TYPES["int64"])
        return dimensions | {attribute.name: attribute.type for attribute in self.schema.attributes}


@dataclass(frozen=True, kw_only=True)
class BoundScan(Bound):
    """A version of an array. ``snapshot`` reads it, ``cells`` says how many it has where that is known."""

    name: str
    snapshot: Any
    cells: int | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class BoundSelection(Bound):
    """The cells in ``box``."""

    source: Bound


@dataclass(frozen=True, kw_only=True)
class BoundFilter(Bound):
    """The cells where a condition is true; ``box`` is as small as the condition's dimensions allow."""

    source: Bound
    condition: Node


@dataclass(frozen=True, kw_only=True)
class BoundColumns(Bound):
    """Attributes computed cell by cell."""

    source: Bound
    outputs: NamedNodes


@dataclass(frozen=True, kw_only=True)
class BoundWindow(Bound):
    """Aggregates over a window or over blocks."""

    source: Bound
    plan: WindowPlan


@dataclass(frozen=True, kw_only=True)
class BoundTotals(Bound):
    """Aggregates over the cells that agree in the dimensions ``axes``; over all of them if there are none."""

    source: Bound
    axes: tuple[int, ...]
    aggregates: NamedAggregates


@dataclass(frozen=True, kw_only=True)
class BoundCount(Bound):
    """Counts of all cells, known without reading any."""

    source: Bound
    count: int


@dataclass(frozen=True, kw_only=True)
class BoundNeighbours(Bound):
    """Aggregates over a shape around each cell."""

    source: Bound
    shape: Shape
    aggregates: NamedAggregates


@dataclass(frozen=True, kw_only=True)
class BoundJoin(Bound):
    """Pairs of cells; ``pair_types`` says what expressions over them may name, ``names`` are those of the sides."""

    left: Bound
    right: Bound
    names: tuple[str, ...]
    shape: Shape
    kind: str
    pair_types: tuple[tuple[str, DataType], ...]

    @property
    def types(self) -> dict[str, DataType]:
        return dict(self.pair_types)


@dataclass(frozen=True, kw_only=True)
class BoundPairs(Bound):
    """Attributes computed pair by pair; a pair lies at the coordinates of all its cells."""

    source: Bound


@dataclass(frozen=True, kw_only=True)
class BoundJoined(Bound):
    """Aggregates over the pairs of a join."""

    source: Bound


def ended(schema: Schema, box: Box) -> Schema:
    """A dense result's schema: its dimensions are those of its cells, and do not grow."""
    sides = zip(schema.dimensions, box.lo, box.hi, strict=True)
    return replace(schema, dimensions=tuple(replace(d, lo=lo, hi=max(lo, hi)) for d, lo, hi in sides))


def selected(source: Bound, box: Box) -> Bound:
    """The cells of ``source`` in ``box``; along dimensions that it cuts, the result ends where the box does."""
    inside = source.box & box
    if inside == source.box:
        return source
    dimensions, labels = list(source.schema.dimensions), dict(source.labels)
    for axis, dimension in enumerate(source.schema.dimensions):
        lo, hi = inside.lo[axis], inside.hi[axis]
        if (lo, hi) == (source.box.lo[axis], source.box.hi[axis]):
            continue
        dimensions[axis] = replace(dimension, lo=lo, hi=max(lo, hi))
        if dimension.name in labels:
            start = lo - dimension.lo
            labels[dimension.name] = labels[dimension.name].slice(start, max(start, hi + 1 - dimension.lo))
    schema = replace(source.schema, dimensions=tuple(dimensions))
    return BoundSelection(
        schema=schema,
        box=inside,
        labels=tuple(labels.items()),
        gridding=source.gridding,
        scalar=source.scalar,
        source=source,
    )


def carried_metadata(bound: Bound) -> dict[str, Mapping[str, str]]:
    """What is known of the attributes that come from an array as they are; computed ones have units of their own."""
    if isinstance(bound, BoundScan):
        return {name: bound.metadata[name] for name in bound.schema.attribute_names if name in bound.metadata}
    if isinstance(bound, (BoundSelection, BoundFilter)):
        return carried_metadata(bound.source)
    if isinstance(bound, BoundColumns):
        below = carried_metadata(bound.source)
        return {name: below[node.key] for name, node in bound.outputs if isinstance(node, Column) and node.key in below}
    return {}
