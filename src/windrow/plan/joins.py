"""Similarity joins with their names looked up: all that a query says of them is kept, nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.errors import SchemaError
from windrow.expressions.nodes import Binary, Node
from windrow.model.bound_shape import SkyTerm
from windrow.model.shape import Shape
from windrow.model.shape_terms import Sky
from windrow.plan.bound import DISTANCE, Bound, BoundJoin, makes_pairs, table_words
from windrow.plan.conditions import parts_of
from windrow.plan.join_conditions import conditioned, with_left
from windrow.plan.join_shapes import JoinedSides, check_reach, distance_axes, placed_shape
from windrow.plan.join_terms import BoundNearest
from windrow.plan.mapping import bind_mapping
from windrow.plan.nodes import Nearest, SimilarityJoin, joined_names
from windrow.plan.pairs import PairScope, paired_condition, paired_value, sided_cell
from windrow.plan.sky import aligned, bind_sky


def bind_join(plan: SimilarityJoin, left: Bound, right: Bound, shape: Shape) -> BoundJoin:
    """Pairs of cells; what ``on`` says is split into the mapping and conditions on the pairs.

    ``shape`` is that of the plan, with the offsets that stored arrays hold.
    """
    names = (*joined_names(plan.left), *joined_names(plan.right))
    for side, name in ((left, names[0]), (right, names[-1])):
        if side.is_table and not isinstance(side, BoundJoin):
            hint = "Join it in one query, or group it by dimensions"
            raise SchemaError(f"{table_words(side)} is a table, which cannot be joined", got=name, hint=hint)
        if side.scalar:
            raise SchemaError("one result over all cells cannot be joined", got=name, hint="Group by dimensions")
    if makes_pairs(left):
        left = settled(left, ())
    sides = (*left.sides, right) if makes_pairs(left) else (left, right)
    parts = [] if plan.on is None else parts_of(plan.on)
    celestial = [name for term in shape.terms if isinstance(term, Sky) for name in term.on]
    scope = PairScope(dict(zip(names, sides, strict=True)))
    mapping, conditions = bind_mapping(parts, scope, right, names, celestial)
    places = tuple(None if one is None else replace(one, cell=sided_cell(one.cell, names)) for one in mapping)
    joined = JoinedSides(sides, names, places)
    join = shaped_join(joined, left, shape, plan.kind)
    check_reach(join.offsets, replace(joined, mapping=join.mapping))
    join = replace(join, shape=plan.shape, nearest=_nearest(plan, join))
    return conditioned(join, [paired_condition(part, join) for part in conditions], paired=True)


def shaped_join(joined: JoinedSides, left: Bound, shape: Shape, kind: str) -> BoundJoin:
    """The join of sides that are mapped to one another, by a shape alone."""
    sky = None
    circle = next((term for term in shape.terms if isinstance(term, Sky)), None)
    if circle is not None:
        ra, dec = (joined.right.schema.axis(name) for name in circle.on)
        term = SkyTerm(float(circle.radius), (ra, dec))
        sky = bind_sky(term, joined)
        joined = replace(joined, mapping=aligned(term, joined))
    offsets, labels = placed_shape(shape, joined)
    join = BoundJoin(
        schema=left.schema,
        box=left.box,
        left=left,
        right=joined.right,
        names=joined.names,
        shape=shape,
        offsets=offsets,
        kind=kind,
        mapping=joined.mapping,
        sky=sky,
        distance_axes=() if sky is not None else distance_axes(shape, joined),
        axis_labels=labels,
    )
    return with_left(join, left)


def _nearest(plan: SimilarityJoin, join: BoundJoin) -> BoundNearest | None:
    """Which partners are kept; how many does not matter to cells that have none."""
    asked: Nearest | None = plan.nearest
    if asked is None:
        return None
    by = None
    if asked.by is not None:
        by, kind = paired_value(asked.by, join)
        if not (kind.is_number or kind.name in ("bool", "datetime", "string")):
            raise SchemaError("partners are put in order by values", got=str(asked.by), hint="As in nearest 3 by …")
    found = BoundNearest(asked.count, None if _is_distance(by) else by, asked.mutual)
    return found if plan.kind != "anti" or asked.mutual else None


def _is_distance(by: Node | None) -> bool:
    """Whether an order is that of the distances, in whatever unit."""
    return by == DISTANCE or (isinstance(by, Binary) and by.operator == "*" and by.left == DISTANCE)


def settled(join: BoundJoin, nodes: Sequence[Node]) -> BoundJoin:
    """The join below a step that computes ``nodes``; how to measure distances is dropped where nobody asks for any."""
    if join.nearest is not None and join.nearest.by is None:
        return join
    order = None if join.nearest is None else join.nearest.by
    said = [node for node in (join.condition, join.where, order, *nodes) if node is not None]
    asked = any(DISTANCE in node.columns() for node in said)
    return join if asked else replace(join, distance_axes=())


def filtered_join(join: BoundJoin, condition: Node) -> BoundJoin:
    """What ``where`` leaves of the pairs."""
    return conditioned(join, [paired_condition(condition, join)], paired=False)
