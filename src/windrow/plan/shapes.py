"""What array comes out of aggregates over a shape around each cell of a dense array."""

from __future__ import annotations

from collections.abc import Iterable

from windrow.aggregates.aggregate import Aggregate
from windrow.model.box import Box
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES


def neighbourhood_schema(
    schema: Schema, results: Box, step: tuple[int, ...], aggregates: Iterable[tuple[str, Aggregate]], min_count: int
) -> Schema:
    """Dense results in a box, with the input's dimensions as far as steps leave them."""
    dimensions = []
    for axis, dimension in enumerate(schema.dimensions):
        chunk = None if dimension.chunk is None else max(1, -(-dimension.chunk // step[axis]))
        dimensions.append(Dimension(dimension.name, dimension.lo, results.hi[axis], chunk))
    attributes = tuple(_attribute(schema, name, aggregate, min_count) for name, aggregate in aggregates)
    return Schema(tuple(dimensions), attributes).with_chunks()


def _attribute(schema: Schema, name: str, aggregate: Aggregate, min_count: int) -> Attribute:
    definition = aggregate.definition
    source = TYPES["int64"] if aggregate.attribute is None else schema.attribute(aggregate.attribute).type
    kind = definition.result(source)
    certain = definition.least == 0 and min_count == 0
    return Attribute(name, kind, nullable=not certain and not kind.is_float)
