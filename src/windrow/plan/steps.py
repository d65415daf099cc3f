"""Steps of a bound query put on one another: cells selected and filtered, columns computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from windrow.errors import SchemaError
from windrow.expressions.bounds import box_of
from windrow.expressions.nodes import Around, Node
from windrow.expressions.types import NULL, check
from windrow.model.box import Box
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.plan.attributes import computed_attribute
from windrow.plan.bound import Bound, BoundColumns, BoundFilter, BoundRound, BoundSelection, LabelItems, NamedNodes
from windrow.plan.conditions import joined, split


def ended(schema: Schema, box: Box) -> Schema:
    """A dense result's schema: its dimensions are those of its cells, and do not grow."""
    sides = zip(schema.dimensions, box.lo, box.hi, strict=True)
    return replace(schema, dimensions=tuple(replace(d, lo=lo, hi=max(lo, hi)) for d, lo, hi in sides))


def selected(source: Bound, box: Box) -> Bound:
    """The cells of ``source`` in ``box``; along dimensions that it cuts, the result ends where the box does."""
    inside = source.box & box
    if inside == source.box:
        return source
    inside = Box(inside.lo, tuple(max(lo - 1, hi) for lo, hi in zip(inside.lo, inside.hi, strict=True)))
    dimensions, labels = list(source.schema.dimensions), dict(source.labels)
    for axis, dimension in enumerate(source.schema.dimensions):
        lo, hi = inside.lo[axis], inside.hi[axis]
        if (lo, hi) == (source.box.lo[axis], source.box.hi[axis]):
            continue
        dimensions[axis] = replace(dimension, lo=lo, hi=max(lo, hi), wrap=False)
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


def narrowed(source: Bound, conditions: Sequence[Node]) -> Bound:
    """The cells where all conditions are true: ranges of dimensions select a box, what else they say is a filter."""
    box, parts = split(joined(conditions), source)
    bound = selected(source, box)
    ways = [part for part in parts if isinstance(part, Around)]
    if bound.schema.sparse or len(ways) < len(parts) or not _can_go_round(bound, source, ways):
        return bound if not parts else filtered(bound, joined(parts))
    for way in ways:
        bound = going_round(bound, way)
    return bound


def _can_go_round(bound: Bound, source: Bound, ways: Sequence[Around]) -> bool:
    """Whether each range goes round a dimension of its own, of which nothing else was cut off."""
    axes = [source.schema.axis(way.cell.name) for way in ways]
    return len(set(axes)) == len(axes) and all(bound.box.shape[axis] == source.box.shape[axis] for axis in axes)


def going_round(source: Bound, way: Around) -> BoundRound:
    """The cells of a dense step from some cell on round to another; numbers go on after the last one."""
    axis = source.schema.axis(way.cell.name)
    dimension = source.schema.dimensions[axis]
    (start, end), (lo, last) = way.runs
    first, stop = list(source.box.lo), list(source.box.hi)
    first[axis], stop[axis] = start, start + (end - start + 1) + (last - lo)
    dimensions, labels = list(source.schema.dimensions), dict(source.labels)
    dimensions[axis] = replace(dimension, lo=first[axis], hi=stop[axis], wrap=False)
    if dimension.name in labels:
        met = [*range(start, end + 1), *range(lo, last + 1)]
        labels[dimension.name] = labels[dimension.name].take(np.array(met) - dimension.lo)
    return BoundRound(
        schema=replace(source.schema, dimensions=tuple(dimensions)),
        box=Box(tuple(first), tuple(stop)),
        labels=tuple(labels.items()),
        source=source,
        axis=axis,
        seam=end,
        skip=end + 1 - lo,
    )


def filtered(source: Bound, condition: Node) -> Bound:
    """A filter leaves the cells of a dense array only here and there: what comes out is sparse."""
    schema = source.schema
    if not schema.sparse:
        schema = replace(ended(schema, source.box), sparse=True).with_chunks()
    box = box_of(condition, schema.dimension_names, source.box)
    return BoundFilter(
        schema=schema,
        box=box,
        labels=source.labels,
        gridding=source.gridding,
        scalar=source.scalar,
        source=source,
        condition=condition,
    )


def columns(source: Bound, outputs: NamedNodes) -> BoundColumns:
    """Attributes computed from those of ``source``."""
    attributes = []
    for name, node in outputs:
        kind = check(node, source.types)
        if kind == NULL:
            raise SchemaError(f"the type of {name} is not known", got=str(node), hint="As in cast(null as int64)")
        attributes.append(computed_attribute(name, kind, node, source.schema))
    base = source.schema if source.schema.sparse else ended(source.schema, source.box)
    schema = Schema(base.dimensions, tuple(attributes), base.sparse).with_chunks()
    return BoundColumns(
        schema=schema,
        box=source.box,
        labels=source.labels,
        gridding=source.gridding,
        scalar=source.scalar,
        source=source,
        outputs=outputs,
    )


def one_cell(attributes: Sequence[Attribute], sparse: bool) -> tuple[Schema, Box, LabelItems]:
    """Where one result over all cells is kept."""
    name = "i"
    while name in {attribute.name for attribute in attributes}:
        name += "_"
    return Schema((Dimension(name, 0, 0, 1),), tuple(attributes), sparse), Box((0,), (0,)), ()
