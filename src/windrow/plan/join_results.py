"""What is computed of the pairs of a join: columns of each, or aggregates of many; neighbours are such aggregates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import SchemaError, UnknownNameError, nearest
from windrow.expressions.nodes import Call, Column, Node
from windrow.expressions.types import NULL, check
from windrow.model.box import Box
from windrow.model.grid import MOST_SPARSE_CHUNK_CELLS
from windrow.model.gridding import Axis, Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES, DataType
from windrow.plan.attributes import paired_attribute
from windrow.plan.bound import (
    Bound,
    BoundJoin,
    BoundJoined,
    BoundPairs,
    LabelItems,
    NamedAggregates,
    NamedNodes,
    side_name,
)
from windrow.plan.joins import filtered_join, settled
from windrow.plan.nodes import Apply, Filter, GroupBy, Plan, Project
from windrow.plan.pairs import PairScope, paired_value, scope_of, sided_cell, sided_types
from windrow.plan.scopes import Along
from windrow.plan.specs import Measure, Output
from windrow.plan.steps import one_cell

MOST_PAIR_CHUNKS = 2**32
"""Chunks that an array of pairs may have in the chunks of both sides."""

Valued = Callable[[Node], tuple[Node, DataType]]
"""Binds an expression of the query over pairs, and says of which type it is."""


def bind_joined(plan: Plan, join: BoundJoin) -> Bound:
    """What may stand on top of a join: conditions on pairs, columns of them, and aggregates by left dimensions."""
    if isinstance(plan, Filter):
        return filtered_join(join, plan.condition)
    if isinstance(plan, Project):
        return _pairs(join, _outputs(plan.columns, join))
    if isinstance(plan, Apply):
        return _pairs(join, _every_column(join) + _outputs(plan.columns, join))
    if not isinstance(plan, GroupBy):
        hint = "As in group by A1.i, A1.j; to look at the pairs as an array, put the join in parentheses"
        raise SchemaError("the pairs of a join have to be aggregated", hint=hint)
    return _totals(plan, join)


# Pairs


def every_pair(join: BoundJoin) -> BoundPairs:
    """The pairs with the attributes of all sides."""
    return _pairs(join, _every_column(join))


def _outputs(outputs: Sequence[Output], join: BoundJoin) -> NamedNodes:
    """Named expressions; a dimension under its own name is there already."""
    names, scope = _cell_names(join), scope_of(join)
    chosen = []
    for output in outputs:
        node, kind = paired_value(output.expression, join)
        found = scope.look_up(output.expression) if isinstance(output.expression, Column) else None
        if isinstance(found, Along) and names[sided_cell(found.column, join.names)] == output.name:
            continue
        if kind == NULL:
            hint = "As in cast(null as int64)"
            raise SchemaError(f"the type of {output.name} is not known", got=str(output.expression), hint=hint)
        chosen.append((output.name, node))
    return tuple(chosen)


def _every_column(join: BoundJoin) -> NamedNodes:
    listed = [
        (number, name, attribute.name)
        for number, (name, side) in enumerate(zip(join.names, join.sides, strict=True), 1)
        for attribute in side.schema.attributes
    ]
    taken = [*(attribute for _, _, attribute in listed), *_cell_names(join).values()]
    return tuple(
        (attribute if taken.count(attribute) == 1 else f"{name}_{attribute}", Column(attribute, side_name(number)))
        for number, name, attribute in listed
    )


def _cell_names(join: BoundJoin) -> dict[Column, str]:
    """What the dimensions of all sides are called in a result: with the side's name where two sides have the same."""
    cells = [
        (Column(dimension, side_name(number)), name)
        for number, (name, side) in enumerate(zip(join.names, join.sides, strict=True), 1)
        for dimension in side.dimension_names
    ]
    plain = [cell.name for cell, _ in cells]
    return {cell: cell.name if plain.count(cell.name) == 1 else f"{name}_{cell.name}" for cell, name in cells}


def _pairs(join: BoundJoin, outputs: NamedNodes) -> BoundPairs:
    """A pair's dimensions are those of its sides; where a side may be missing, its coordinates are attributes."""
    optional = {side_name(number) for number in join.optional_sides}
    names = _cell_names(join)
    outputs = tuple((name, cell) for cell, name in names.items() if cell.qualifier in optional) + outputs
    places = _places(join, {cell: name for cell, name in names.items() if cell.qualifier not in optional})
    types = sided_types(join)
    check_new([name for name, _ in outputs], places.dimensions)
    attributes = []
    for name, node in outputs:
        kind = check(node, types)
        attributes.append(Attribute(name, kind, nullable=not kind.is_float))
    return BoundPairs(
        schema=Schema(_ended(places), tuple(attributes), sparse=True).with_chunks(),
        box=places.box,
        labels=places.labels,
        gridding=places.gridding,
        source=settled(join, [node for _, node in outputs]),
        outputs=outputs,
    )


@dataclass(frozen=True)
class _Places:
    """Dimensions of sides as those of a result."""

    dimensions: tuple[Dimension, ...]
    box: Box
    labels: LabelItems
    gridding: Gridding | None


def _places(join: BoundJoin, names: dict[Column, str]) -> _Places:
    sides = {side_name(number): side for number, side in enumerate(join.sides, 1)}
    dimensions, lo, hi = [], [], []
    labels: list[tuple[str, Labels]] = []
    axes: list[Axis] = []
    for cell, name in names.items():
        side = sides[str(cell.qualifier)]
        axis = side.schema.axis(cell.name)
        dimensions.append(replace(side.schema.dimensions[axis], name=name))
        lo.append(side.box.lo[axis])
        hi.append(side.box.hi[axis])
        labels += [(name, found) for known, found in side.labels if known == cell.name]
        if side.gridding is not None and cell.name in side.gridding.names:
            axes.append(replace(side.gridding.axis(cell.name), name=name))
    gridding = Gridding(tuple(axes)) if axes else None
    return _Places(tuple(dimensions), Box(tuple(lo), tuple(hi)), tuple(labels), gridding)


def _ended(places: _Places) -> tuple[Dimension, ...]:
    """Dimensions that end where cells do; in chunks of their own if those of all sides together would be too many."""
    ends = zip(places.dimensions, places.box.hi, strict=True)
    dimensions = tuple(replace(dimension, hi=max(dimension.lo, hi)) for dimension, hi in ends)
    known = [(dimension.extent or 1, dimension.chunk or 1) for dimension in dimensions]
    if math.prod(-(-extent // chunk) for extent, chunk in known) <= MOST_PAIR_CHUNKS and (
        math.prod(chunk for _, chunk in known) <= MOST_SPARSE_CHUNK_CELLS
    ):
        return dimensions
    return tuple(replace(dimension, chunk=None) for dimension in dimensions)


def check_new(names: Sequence[str], dimensions: Sequence[Dimension]) -> None:
    """Refuses results that are called like a dimension of the result."""
    taken = {dimension.name: dimension for dimension in dimensions}
    for name in names:
        if name in taken:
            numbers = ", which numbers the cells at one place" if taken[name].numbering else ""
            raise SchemaError(f"{name} is a dimension of the result{numbers}", got=name, hint="Choose another name")


# Aggregates


def _totals(plan: GroupBy, join: BoundJoin) -> BoundJoined:
    scope = scope_of(join)
    groups = tuple(_group(key, scope, join) for key in plan.dimensions)
    aggregates, arguments, attributes = measured(plan.aggregates, lambda node: paired_value(node, join), plan.min_count)
    gridding = None
    if groups:
        plain = [cell.name for cell in groups]
        sides = {side_name(number): name for number, name in enumerate(join.names, 1)}
        names = {c: c.name if plain.count(c.name) == 1 else f"{sides[str(c.qualifier)]}_{c.name}" for c in groups}
        places = _places(join, names)
        check_new([name for name, _ in aggregates], places.dimensions)
        schema = Schema(places.dimensions, attributes, sparse=True).with_chunks()
        box, labels, gridding = places.box, places.labels, places.gridding
    else:
        schema, box, labels = one_cell(attributes, sparse=True)
    return BoundJoined(
        schema=schema,
        box=box,
        labels=labels,
        gridding=gridding,
        scalar=not groups,
        source=settled(join, [node for _, node in arguments]),
        groups=groups,
        arguments=arguments,
        aggregates=aggregates,
        min_count=plan.min_count,
    )


def _group(column: Column | Call, scope: PairScope, join: BoundJoin) -> Column:
    """A dimension of the left side that pairs are grouped by."""
    if isinstance(column, Call):
        hint = "Put the join in parentheses after from, and group its rows"
        raise SchemaError("pairs are grouped by dimensions, not by parts of labels", got=column, hint=hint)
    found = scope.look_up(column)
    left = dict(list(scope.sides.items())[:-1])
    known = [f"{name}.{dimension}" for name, side in left.items() for dimension in side.dimension_names]
    if isinstance(found, Column):
        what = "pairs are grouped by dimensions, and this is none"
        raise UnknownNameError(what, got=repr(column.key), hint=nearest(column.key, known))
    if found.column.qualifier not in left:
        what = "pairs are grouped by dimensions of the left side"
        raise SchemaError(what, got=repr(found.column.key), hint=nearest(found.column.key, known))
    cell = sided_cell(found.column, join.names)
    if cell.qualifier in {side_name(number) for number in join.optional_sides}:
        what = "pairs are grouped by dimensions that each of them has"
        hint = f"{found.column.qualifier} is joined by left similarity join: some rows have no cell of it"
        raise SchemaError(what, got=repr(found.column.key), hint=hint)
    return cell


def measured(
    measures: Sequence[Measure], valued: Valued, min_count: int = 0
) -> tuple[NamedAggregates, NamedNodes, tuple[Attribute, ...]]:
    """Aggregates of arguments that have names, the arguments, and the attributes that come out."""
    computed: dict[Node, str] = {}
    aggregates: list[tuple[str, Aggregate]] = []
    attributes = []
    for measure in measures:
        bound = [valued(argument) for argument in measure.arguments]
        names = [computed.setdefault(node, f"argument_{len(computed) + 1}") for node, _ in bound]
        aggregate, kinds = measure.aggregate(*names), [kind for _, kind in bound]
        if kinds:
            aggregate.check(*kinds)
        aggregates.append((measure.name, aggregate))
        kind = kinds[0] if kinds else TYPES["int64"]
        attributes.append(paired_attribute(measure.name, aggregate, kind, min_count))
    return tuple(aggregates), tuple((name, node) for node, name in computed.items()), tuple(attributes)
