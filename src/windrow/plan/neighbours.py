"""Neighbours with their names looked up: an array joined with itself, each cell with those in a shape around it."""

from __future__ import annotations

from dataclasses import replace

from windrow.errors import SchemaError
from windrow.expressions.nodes import Column
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.shape import Shape
from windrow.plan.bound import Bound, BoundJoined, LabelItems, side_name
from windrow.plan.join_results import check_new, measured
from windrow.plan.join_shapes import JoinedSides
from windrow.plan.join_terms import AxisMap
from windrow.plan.joins import settled, shaped_join
from windrow.plan.nodes import Neighbours
from windrow.plan.pairs import neighbour_value
from windrow.plan.scopes import CellScope
from windrow.plan.specs import bind_step
from windrow.plan.steps import ended


def bind_neighbours(plan: Neighbours, source: Bound, scope: CellScope, shape: Shape) -> BoundJoined:
    """Each cell joined with those of the same array in a shape around it; a cell without any keeps its place."""
    if source.scalar:
        raise SchemaError("one result over all cells has no neighbours", hint="Group by some dimensions")
    cells = tuple(Column(name, side_name(1)) for name in source.schema.dimension_names)
    joined = JoinedSides((source, source), ("left", "right"), tuple(map(AxisMap, cells)))
    join = replace(shaped_join(joined, source, shape, "left"), shape=plan.shape)
    found = measured(plan.aggregates, lambda node: neighbour_value(node, join, scope), plan.min_count)
    aggregates, arguments, attributes = found
    check_new([name for name, _ in aggregates], source.schema.dimensions)
    step = bind_step(plan.step, source.schema)
    base = source.schema if source.schema.sparse else ended(source.schema, source.box)
    schema, box, labels = _stepped(replace(base, attributes=attributes), source.box, source.labels, step)
    moved = {name for name, size in zip(schema.dimension_names, step, strict=True) if size != 1}
    gridded = source.gridding is not None and not moved & set(source.gridding.names)
    return BoundJoined(
        schema=schema.with_chunks(),
        box=box,
        labels=labels,
        gridding=source.gridding if gridded else None,
        source=settled(join, [node for _, node in arguments]),
        groups=cells,
        arguments=arguments,
        aggregates=aggregates,
        min_count=plan.min_count,
        method=plan.method,
        step=step if moved else (),
    )


def _stepped(schema: Schema, box: Box, labels: LabelItems, step: tuple[int, ...]) -> tuple[Schema, Box, LabelItems]:
    """Where results lie: positions are numbered one by one from the same cell on, under the labels of their cells."""
    dimensions = []
    for dimension, size in zip(schema.dimensions, step, strict=True):
        last = None if dimension.hi is None else dimension.lo + (dimension.hi - dimension.lo) // size
        chunk = None if dimension.chunk is None else max(1, -(-dimension.chunk // size))
        dimensions.append(replace(dimension, hi=last, chunk=chunk) if size != 1 else dimension)
    ends = zip(schema.dimensions, box.lo, box.hi, step, strict=True)
    lo, hi = zip(*((d.lo + -(-(lo - d.lo) // n), d.lo + (hi - d.lo) // n) for d, lo, hi, n in ends), strict=True)
    sizes = dict(zip(schema.dimension_names, step, strict=True))
    found = tuple(
        (name, Labels(one.values[:: sizes[name]].copy(), one.attributes) if sizes[name] != 1 else one)
        for name, one in labels
    )
    return replace(schema, dimensions=tuple(dimensions)), Box(lo, hi), found
