"""What array a view is: the one that can hold its query's results now and later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from windrow.errors import SchemaError
from windrow.model.schema import Schema
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundNamed,
    BoundPairs,
    BoundRound,
    BoundSelection,
    BoundSpread,
    BoundTotals,
    BoundWindow,
    side_name,
    table_hint,
    table_words,
)
from windrow.plan.grouping.label_parts import BoundParted
from windrow.plan.grouping.positions import BoundPositions
from windrow.plan.grouping.values import values_refused
from windrow.plan.operators import BoundOperated


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
    # Only a dimension that can grow has no cells, as that of a dense result of which none was chosen.
    lacks = [not bound.schema.sparse and hi < lo for lo, hi in zip(bound.box.lo, bound.box.hi, strict=True)]
    schema = _let_grow(bound.schema, [*map(max, growing_axes(bound), lacks)])
    return schema if chunks is None else schema.with_chunks(chunks)


def fits(schema: Schema, hi: Sequence[int], bound: Bound) -> bool:
    """Whether a view of some schema and extent has room for results as they lie now.

    Where cells are chosen by labels, other labels move what was chosen.
    """
    for dimension, end, now, last in zip(schema.dimensions, hi, bound.schema.dimensions, bound.box.hi, strict=True):
        ends = last >= end if dimension.growing else dimension.hi == (now.hi if schema.sparse else last)
        if now.lo != dimension.lo or not ends:
            return False
    return True


def _let_grow(schema: Schema, grows: Sequence[bool]) -> Schema:
    ends = zip(schema.dimensions, grows, strict=True)
    return replace(schema, dimensions=tuple(replace(d, hi=None, wrap=False) if grown else d for d, grown in ends))


def growing_axes(bound: Bound) -> list[bool]:
    """Which dimensions of a result grow when an array below does: those that reach its end.

    They are followed by place and not by name, for a pair's are named after its sides.
    """
    if isinstance(bound, BoundNamed):
        return [dimension.growing for dimension in bound.schema.dimensions]
    if isinstance(bound, (BoundSelection, BoundRound)):  # what reaches as far as there are cells may go on with them
        ends = zip(growing_axes(bound.source), bound.box.hi, bound.source.box.hi, strict=True)
        return [grown and own >= whole for grown, own, whole in ends]
    if isinstance(bound, (BoundFilter, BoundColumns, BoundWindow, BoundOperated, BoundPositions)):
        return growing_axes(bound.source)
    if isinstance(bound, BoundJoin):  # an anti join: left cells as they are
        return growing_axes(bound.left)
    if isinstance(bound, BoundPairs):
        return [grown for side in bound.source.sides for grown in growing_axes(side)]
    if isinstance(bound, BoundTotals) and bound.axes:
        below_grows = growing_axes(bound.source)
        return [below_grows[axis] for axis in bound.axes]
    if isinstance(bound, BoundJoined) and bound.groups:
        sides = {side_name(number): side for number, side in enumerate(bound.source.sides, 1)}
        chosen = [(sides[str(group.qualifier)], group.name) for group in bound.groups]
        return [growing_axes(side)[side.schema.axis(name)] for side, name in chosen]
    return [False] * bound.schema.ndim  # one result over all cells
