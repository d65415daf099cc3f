"""Similarity joins with their names looked up: checked and explained, though not run."""

from __future__ import annotations

from dataclasses import replace

from windrow.errors import SchemaError
from windrow.expressions.nodes import Node
from windrow.expressions.types import check, check_condition
from windrow.model.box import Box
from windrow.model.schema import Attribute, Schema
from windrow.model.types import TYPES, DataType
from windrow.plan.bound import Bound, BoundJoin, BoundJoined, BoundPairs
from windrow.plan.nodes import Filter, GroupBy, Plan, Project, SimilarityJoin, joined_names
from windrow.plan.specs import Measure


def is_join(bound: Bound) -> bool:
    return isinstance(bound, BoundJoin)


def bind_join(plan: SimilarityJoin, left: Bound, right: Bound) -> BoundJoin:
    """Pairs of cells: columns are named by side, or plainly where only one side has the name."""
    types: dict[str, DataType] = {}
    if isinstance(left, BoundJoin):
        types |= {key: kind for key, kind in left.types.items() if "." in key}
    else:
        types |= _qualified(joined_names(plan.left)[0], left)
    types |= _qualified(joined_names(plan.right)[0], right)
    plain: dict[str, list[DataType]] = {}
    for key, kind in types.items():
        plain.setdefault(key.partition(".")[2], []).append(kind)
    types |= {name: kinds[0] for name, kinds in plain.items() if len(kinds) == 1}
    if plan.on is not None:
        check_condition(plan.on, types)
    plan.shape.bind(right.schema, right.box)
    attributes = [
        Attribute(key.replace(".", "_"), kind, nullable=not kind.is_float) for key, kind in types.items() if "." in key
    ]
    schema = Schema(left.schema.dimensions, tuple(attributes), sparse=True)
    return BoundJoin(
        schema=schema,
        box=left.box,
        labels=left.labels,
        left=left,
        right=right,
        names=tuple(joined_names(plan)),
        shape=plan.shape,
        kind=plan.kind,
        pair_types=tuple(types.items()),
    )


def _qualified(name: str, side: Bound) -> dict[str, DataType]:
    return {f"{name}.{column}": kind for column, kind in side.types.items()}


def bind_joined(plan: Plan, source: Bound) -> Bound:
    """What may stand on top of a join: conditions on pairs, columns of them, and aggregates by left dimensions."""
    assert isinstance(source, BoundJoin)
    if isinstance(plan, Filter):
        check_condition(plan.condition, source.types)
        return source
    if isinstance(plan, Project):
        return _pairs(plan, source)
    if not isinstance(plan, GroupBy):
        raise SchemaError("the pairs of a join have to be aggregated", hint="As in group by A1.i, A1.j")
    attributes = tuple(_measured(measure, source) for measure in plan.aggregates)
    names = []
    for column in plan.dimensions:
        check(column, source.types)
        names.append(source.schema.dimension(column.name).name)
    chosen = [d for d in source.schema.dimensions if not names or d.name in names]
    schema = Schema(tuple(chosen), attributes, sparse=True)
    axes = [source.schema.axis(dimension.name) for dimension in chosen]
    box = Box(tuple(source.box.lo[a] for a in axes), tuple(source.box.hi[a] for a in axes))
    return BoundJoined(schema=schema, box=box, source=source)


def _pairs(plan: Project, source: BoundJoin) -> Bound:
    """A pair's dimensions are those of its sides, named by side where two sides have the same."""
    sides = list(zip(source.names, _sides(source), strict=True))
    plain = [dimension.name for _, side in sides for dimension in side.schema.dimensions]
    dimensions = []
    for name, side in sides:
        for found in side.schema.dimensions:
            known = found.name if plain.count(found.name) == 1 else f"{name}_{found.name}"
            dimensions.append(replace(found, name=known))
    types = [(column.name, check(column.expression, source.types)) for column in plan.columns]
    attributes = tuple(Attribute(name, kind, nullable=not kind.is_float) for name, kind in types)
    lo = tuple(cell for _, side in sides for cell in side.box.lo)
    hi = tuple(cell for _, side in sides for cell in side.box.hi)
    return BoundPairs(schema=Schema(tuple(dimensions), attributes, sparse=True), box=Box(lo, hi), source=source)


def _sides(join: BoundJoin) -> list[Bound]:
    return [*(_sides(join.left) if isinstance(join.left, BoundJoin) else [join.left]), join.right]


def _measured(measure: Measure, source: Bound) -> Attribute:
    kind = TYPES["int64"] if measure.argument is None else _type(measure.argument, source)
    aggregate = measure.aggregate(None if measure.argument is None else "value")
    if measure.argument is not None:
        aggregate.check(kind)
    result = aggregate.definition.result(kind)
    return Attribute(measure.name, result, nullable=not result.is_float and aggregate.definition.least > 0)


def _type(node: Node, source: Bound) -> DataType:
    return check(node, source.types)
