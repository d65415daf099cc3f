"""What array a view is: the one that can hold its query's results now and later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windrow.errors import SchemaError
from windrow.model.schema import Schema
from windrow.plan.bound import Bound, BoundRound, BoundScan, BoundSelection, BoundSpread, table_hint, table_words
from windrow.plan.grouping.label_parts import BoundParted
from windrow.plan.grouping.values import values_refused


def view_schema(bound: Bound, chunks: Mapping[str, int] | None) -> Schema:
    """The schema of an array that can hold a query's results now and later."""
    if bound.is_table:
        what = f"{table_words(bound)} is a table, which no view can hold"
        raise SchemaError(what, hint=table_hint(bound))
    if any(isinstance(step, BoundSpread) for step in bound.walk()):
        what = "a view cannot give the aggregates of groups back to their cells: one changed cell would change them all"
        raise SchemaError(what, hint="Keep the result with into")
    for step in bound.walk():
        if isinstance(step, BoundParted) and step.key_attributes:
            raise values_refused(step.key_attributes[0])
    if any(isinstance(step, BoundParted) for step in bound.walk()):
        what = "a view cannot be grouped by parts of labels"
        raise SchemaError(what, hint="Keep the result with into, or make a view by dimensions and group that")
    grows, schema = growing_dimensions(bound), bound.schema
    dimensions = tuple(replace(d, hi=None, wrap=False) if d.name in grows else d for d in schema.dimensions)
    schema = replace(schema, dimensions=dimensions)
    return schema if chunks is None else schema.with_chunks(chunks)


def growing_dimensions(bound: Bound) -> set[str]:
    """The dimensions of a result that grow when an array below does: those that it has in full."""
    found: set[str] = set()
    for step in bound.walk():
        if isinstance(step, BoundScan):
            found |= {dimension.name for dimension in step.schema.dimensions if dimension.growing}
    for step in bound.walk():
        if isinstance(step, (BoundSelection, BoundRound)):
            below = step.source
            names = step.schema.dimension_names
            for axis, name in enumerate(names):
                if (step.box.lo[axis], step.box.hi[axis]) != (below.box.lo[axis], below.box.hi[axis]):
                    found.discard(name)
    return found & set(bound.schema.dimension_names)
