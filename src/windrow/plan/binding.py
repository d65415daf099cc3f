"""Names looked up: a plan and the arrays it reads become bound steps, or an error that knows the nearest name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import SchemaError, UnknownNameError, nearest
from windrow.expressions.bounds import box_of
from windrow.expressions.nodes import Column, Node
from windrow.expressions.types import NULL, check, check_condition
from windrow.model.box import Box
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.selection import resolve
from windrow.plan.attributes import aggregated_attribute, computed_attribute
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundFilter,
    BoundNeighbours,
    BoundScan,
    BoundTotals,
    BoundWindow,
    LabelItems,
    NamedAggregates,
    NamedNodes,
    ended,
    selected,
)
from windrow.plan.conditions import in_cell_numbers, joined, split
from windrow.plan.joins import bind_join, bind_joined, is_join
from windrow.plan.nodes import (
    Alias,
    Apply,
    Filter,
    GroupBy,
    Neighbours,
    Plan,
    Project,
    Regrid,
    Scan,
    Selection,
    SimilarityJoin,
    Windowed,
    joined_names,
)
from windrow.plan.specs import Measure, Output, Range
from windrow.plan.windows import WindowPlan

Lookup = Callable[[Scan], BoundScan]


@dataclass(frozen=True)
class Scope:
    """A bound step, and the names by which its columns may be qualified."""

    bound: Bound
    names: tuple[str, ...] = ()

    def plain(self, node: Node) -> Node:
        """An expression without qualifiers, and with labels as cell numbers."""
        return in_cell_numbers(self._unqualified(node), self.bound)

    def _unqualified(self, node: Node) -> Node:
        if isinstance(node, Column):
            if node.qualifier is None:
                return node
            if node.qualifier not in self.names:
                hint = nearest(node.qualifier, self.names) if self.names else "Leave the qualifier out"
                raise UnknownNameError("no array of that name is read here", got=repr(node.qualifier), hint=hint)
            return Column(node.name)

        def change(part: Any) -> Any:
            if isinstance(part, Node):
                return self._unqualified(part)
            return tuple(map(change, part)) if isinstance(part, tuple) else part

        return replace(node, **{part.name: change(getattr(node, part.name)) for part in fields(node) if part.init})


def bind(plan: Plan, lookup: Lookup) -> Bound:
    """The plan with every name looked up; ``lookup`` finds the arrays."""
    return _scope(plan, lookup).bound


def _scope(plan: Plan, lookup: Lookup) -> Scope:
    if isinstance(plan, Scan):
        return Scope(lookup(plan), (plan.array,))
    if isinstance(plan, Alias):
        return Scope(_scope(plan.source, lookup).bound, (plan.name,))
    if isinstance(plan, SimilarityJoin):
        sides = [_scope(side, lookup).bound for side in (plan.left, plan.right)]
        return Scope(bind_join(plan, *sides), tuple(joined_names(plan)))
    source = _scope(plan.inputs()[0], lookup)
    if is_join(source.bound):
        return Scope(bind_joined(plan, source.bound))
    return Scope(_RULES[type(plan)](plan, source), source.names if isinstance(plan, (Filter, Selection)) else ())


def _selection(plan: Selection, source: Scope) -> Bound:
    bound = source.bound
    if bound.scalar:
        raise SchemaError("one result over all cells has no dimensions to select by", hint="Group by some of them")
    named = [one for one in plan.ranges if one.name is not None]
    if not named and len(plan.ranges) != bound.schema.ndim:
        known = ", ".join(bound.schema.dimension_names)
        raise SchemaError(
            f"expected {bound.schema.ndim} ranges, one for each dimension",
            got=len(plan.ranges),
            hint=f"They are {known}",
        )
    names = [str(one.name) for one in named] or bound.schema.dimension_names
    box = bound.box
    for name, one in zip(names, plan.ranges, strict=True):
        box = box & _range_box(name, one, bound)
    return selected(bound, box)


def _range_box(name: str, one: Range, bound: Bound) -> Box:
    """Indices are cut off at the array's ends; labels are looked up."""
    axis = bound.schema.axis(name)
    lo, hi = list(bound.box.lo), list(bound.box.hi)
    if all(end is None or type(end) is int for end in (one.low, one.high)):
        if type(one.low) is int:
            lo[axis] = max(lo[axis], one.low)
        if type(one.high) is int:
            hi[axis] = min(hi[axis], one.high)
        return Box(tuple(lo), tuple(hi))
    return resolve(bound.schema, bound.box, dict(bound.labels), {name: (one.low, one.high)}, bound.gridding)


def _filter(plan: Filter, source: Scope) -> Bound:
    condition = source.plain(plan.condition)
    check_condition(condition, source.bound.types)
    box, parts = split(condition, source.bound)
    bound = selected(source.bound, box)
    return bound if not parts else filtered(bound, joined(parts))


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


def _project(plan: Project, source: Scope) -> Bound:
    return columns(source.bound, _outputs(plan.columns, source))


def _apply(plan: Apply, source: Scope) -> Bound:
    kept = tuple((name, Column(name)) for name in source.bound.schema.attribute_names)
    return columns(source.bound, kept + _outputs(plan.columns, source))


def _outputs(outputs: Sequence[Output], source: Scope) -> NamedNodes:
    """Named expressions; a dimension under its own name is there already."""
    found = tuple((output.name, source.plain(output.expression)) for output in outputs)
    dimensions = source.bound.dimension_names
    chosen = tuple((name, node) for name, node in found if not (node == Column(name) and name in dimensions))
    if not chosen:
        name = found[0][0]
        hint = f"A copy needs a name of its own, as in {name} as {name}_number"
        raise SchemaError("dimensions are there already, and no attribute is asked for", got=name, hint=hint)
    return chosen


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


def _window(plan: Windowed | Regrid, source: Scope) -> Bound:
    bound, aggregates = _measured(source, plan.aggregates)
    spec = plan.window if isinstance(plan, Windowed) else plan.blocks
    # Windows need somewhere to be, even if there are no cells.
    bounds = Box(bound.box.lo, tuple(map(max, bound.box.lo, bound.box.hi)))
    window = WindowPlan(bound.schema, bounds, spec.bind(bound.schema), aggregates, bound.labels, plan.method)
    labels = tuple(window.result_labels.items())
    box = window.results
    if bound.box.is_empty and not bound.schema.sparse:
        ends = zip(bound.box.shape, box.lo, box.hi, strict=True)
        box = Box(box.lo, tuple(hi if cells else lo - 1 for cells, lo, hi in ends))
    return BoundWindow(schema=window.result_schema, box=box, labels=labels, source=bound, plan=window)


def _measured(source: Scope, measures: Sequence[Measure]) -> tuple[Bound, NamedAggregates]:
    """The aggregates, and the step below with a column for each argument that has to be computed."""
    bound = source.bound
    computed: dict[Node, str] = {}
    aggregates: list[tuple[str, Aggregate]] = []
    for measure in measures:
        node = None if measure.argument is None else source.plain(measure.argument)
        if node is None:
            found = measure.aggregate()
        elif isinstance(node, Column) and node.name in bound.schema.attribute_names:
            found = measure.aggregate(node.name)
        else:
            check(node, bound.types)  # an unknown name fails here, with a hint
            found = measure.aggregate(computed.setdefault(node, _free_name(f"argument_{len(computed) + 1}", bound)))
        aggregates.append((measure.name, found))
    if computed:
        plain = [a.attribute for _, a in aggregates if a.attribute in bound.schema.attribute_names]
        kept = tuple((name, Column(name)) for name in dict.fromkeys(plain) if name is not None)
        bound = columns(bound, kept + tuple((name, node) for node, name in computed.items()))
    for _, aggregate in aggregates:
        if aggregate.attribute is not None:
            aggregate.check(bound.schema.attribute(aggregate.attribute).type)
    return bound, tuple(aggregates)


def _free_name(name: str, bound: Bound) -> str:
    while name in bound.types:
        name += "_"
    return name


def _totals(plan: GroupBy, source: Scope) -> Bound:
    bound, aggregates = _measured(source, plan.aggregates)
    names = [_dimension(source.plain(column), bound) for column in plan.dimensions]
    axes = tuple(bound.schema.axis(name) for name in names)
    attributes = tuple(aggregated_attribute(name, found, bound, bool(axes)) for name, found in aggregates)
    if not axes:
        schema, box, labels = _one_cell(attributes, bound.schema.sparse)
    else:
        base = bound.schema if bound.schema.sparse else ended(bound.schema, bound.box)
        dimensions = tuple(base.dimensions[axis] for axis in axes)
        schema = Schema(dimensions, attributes, base.sparse).with_chunks()
        lo = tuple(bound.box.lo[axis] for axis in axes)
        hi = tuple(bound.box.hi[axis] for axis in axes)
        box = Box(lo, tuple(first - 1 for first in lo) if bound.box.is_empty else hi)  # no cells, no groups
        labels = tuple((name, found) for name, found in bound.labels if name in names)
    return BoundTotals(
        schema=schema, box=box, labels=labels, scalar=not axes, source=bound, axes=axes, aggregates=aggregates
    )


def _one_cell(attributes: Sequence[Attribute], sparse: bool) -> tuple[Schema, Box, LabelItems]:
    name = "i"
    while name in {attribute.name for attribute in attributes}:
        name += "_"
    return Schema((Dimension(name, 0, 0, 1),), tuple(attributes), sparse), Box((0,), (0,)), ()


def _dimension(column: Node, bound: Bound) -> str:
    assert isinstance(column, Column)
    if column.name not in bound.dimension_names:
        what = "cells are grouped by dimensions, and this is none"
        raise UnknownNameError(what, got=repr(column.name), hint=nearest(column.name, bound.dimension_names))
    return column.name


def _neighbours(plan: Neighbours, source: Scope) -> Bound:
    bound, aggregates = _measured(source, plan.aggregates)
    plan.shape.bind(bound.schema, bound.box)
    attributes = tuple(aggregated_attribute(name, found, bound, False) for name, found in aggregates)
    base = bound.schema if bound.schema.sparse else ended(bound.schema, bound.box)
    schema = replace(base, attributes=attributes).with_chunks()
    return BoundNeighbours(
        schema=schema, box=bound.box, labels=bound.labels, source=bound, shape=plan.shape, aggregates=aggregates
    )


_RULES: dict[type[Plan], Callable[[Any, Scope], Bound]] = {
    Selection: _selection,
    Filter: _filter,
    Project: _project,
    Apply: _apply,
    Windowed: _window,
    Regrid: _window,
    GroupBy: _totals,
    Neighbours: _neighbours,
}
