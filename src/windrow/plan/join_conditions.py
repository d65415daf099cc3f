"""What a query says of the pairs of a join, put where it is carried out: on a side, on the pairs, or after all else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.expressions.nodes import Literal, Node
from windrow.plan.bound import DISTANCE, Bound, BoundFilter, BoundJoin, makes_pairs, side_name
from windrow.plan.conditions import joined, parts_of
from windrow.plan.pairs import requalified
from windrow.plan.steps import ended, narrowed


def conditioned(join: BoundJoin, conditions: Sequence[Node], *, paired: bool) -> BoundJoin:
    """The join with more conditions: on the pairs, or on what is left of them after cells lost all partners."""
    for condition in conditions:
        for part in parts_of(condition):
            if part != Literal(True):
                join = _placed(join, part, paired)
    return join


def _placed(join: BoundJoin, part: Node, paired: bool) -> BoundJoin:
    """The join with one more condition, as far down as it leaves the same pairs there."""
    read = {column.qualifier for column in part.columns()}
    last = side_name(len(join.sides))
    if read == {last} and _filters_right(join, paired):
        return replace(join, right=filtered_side(join.right, part))
    if read and not read & {last, DISTANCE.qualifier} and _filters_left(join, paired):
        if makes_pairs(join.left):
            return with_left(join, conditioned(join.left, [part], paired=False))
        return with_left(join, filtered_side(join.left, part))
    if paired or (join.kind == "inner" and join.nearest is None):
        return replace(join, condition=_both(join.condition, part))
    return replace(join, where=_both(join.where, part))


def _filters_right(join: BoundJoin, paired: bool) -> bool:
    """Whether a condition on right cells may be applied before they are looked for.

    What comes after the pairs were chosen must not change the choice, nor bring back cells that lost a partner by it.
    """
    return paired or (join.kind == "inner" and join.nearest is None)


def _filters_left(join: BoundJoin, paired: bool) -> bool:
    """The same of left cells: a condition on pairs leaves a kept left cell in its place, one after them does not."""
    if paired:
        return join.kind == "inner"
    return join.nearest is None or not join.nearest.mutual  # a left cell that goes makes room for another


def filtered_side(side: Bound, part: Node) -> Bound:
    """A side with a condition on its cells; an anti join keeps its cells whichever of them are asked for."""
    plain = requalified(part, {column.qualifier: None for column in part.columns()})
    if isinstance(side, BoundFilter):
        return narrowed(side.source, parts_of(_both(side.condition, plain)))
    if isinstance(side, BoundJoin) and _filters_left(side, paired=False):
        return with_left(side, filtered_side(side.left, plain))
    return narrowed(side, [plain])


def with_left(join: BoundJoin, left: Bound) -> BoundJoin:
    """The join with another left side, whose cells are where its own results lie."""
    schema = left.schema
    if join.kind == "anti" and not schema.sparse:
        schema = replace(ended(schema, left.box), sparse=True).with_chunks()
    return replace(join, left=left, schema=schema, box=left.box, labels=left.labels, gridding=left.gridding)


def _both(known: Node | None, part: Node) -> Node:
    """Both conditions; the order in which a query states them does not matter."""
    parts = {*([] if known is None else parts_of(known)), part}
    return joined(sorted(parts, key=str))
