"""Which attributes of its arrays a query reads: a change of any other is none to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from windrow.expressions.nodes import Node
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundNamed,
    BoundPairs,
    BoundRound,
    BoundSelection,
    BoundTotals,
    BoundWindow,
    makes_pairs,
    side_name,
)
from windrow.plan.grouping.positions import BoundPositions
from windrow.plan.windows import needed_attributes
from windrow.views.changes import Change

Wanted = Iterable[str]


def without_unused(changes: Mapping[str, Change], bound: Bound) -> dict[str, Change]:
    """The changes as far as a query can notice them; of an array that is a shape, all that changed."""
    used = used_attributes(bound)
    return {name: change.of(used[name]) if name in used else change for name, change in changes.items()}


def used_attributes(bound: Bound) -> dict[str, set[str]]:
    """For each array that a query reads, the attributes that its result depends on."""
    found: dict[str, set[str]] = {}
    for name, attributes in _read(bound, bound.schema.attribute_names):
        found.setdefault(name, set()).update(attributes)
    return found


def _read(bound: Bound, wanted: Wanted) -> Iterator[tuple[str, set[str]]]:
    """The arrays below a step of whose result some attributes are wanted, and what is read of them."""
    if isinstance(bound, BoundNamed):
        yield bound.name, set(wanted) & set(bound.schema.attribute_names)
    elif isinstance(bound, (BoundSelection, BoundRound, BoundPositions)):
        yield from _read(bound.source, wanted)
    elif isinstance(bound, BoundFilter):
        yield from _read(bound.source, {*wanted, *_names([bound.condition])})
    elif isinstance(bound, BoundColumns):
        chosen = set(wanted)
        yield from _read(bound.source, _names(node for name, node in bound.outputs if name in chosen))
    elif isinstance(bound, BoundWindow):
        yield from _read(bound.source, needed_attributes(bound.plan.aggregates))
    elif isinstance(bound, BoundTotals):
        yield from _read(bound.source, needed_attributes(bound.aggregates))
    elif isinstance(bound, BoundCount):
        yield from _read(bound.source, ())
    elif isinstance(bound, (BoundJoined, BoundPairs)):
        nodes = bound.arguments if isinstance(bound, BoundJoined) else bound.outputs
        yield from _read_sides(bound.source, [node for _, node in nodes], ())
    elif isinstance(bound, BoundJoin) and not makes_pairs(bound.left):  # an anti join: left cells as they are
        yield from _read_sides(bound, [], wanted)
    else:  # what a user's operator looks at is not known
        for source in bound.inputs():
            yield from _read(source, source.schema.attribute_names)


def _read_sides(join: BoundJoin, nodes: list[Node], first: Wanted) -> Iterator[tuple[str, set[str]]]:
    """What is read of the sides of a join by expressions over its pairs, and by what chooses the pairs."""
    step: Bound = join
    while isinstance(step, BoundJoin):
        nodes = [*nodes, *_choosing(step)]
        step = step.left
    for number, side in enumerate(join.sides, 1):
        own = {c.name for node in nodes for c in node.columns() if c.qualifier == side_name(number)}
        yield from _read(side, own | set(first if number == 1 else ()))


def _choosing(join: BoundJoin) -> Iterator[Node]:
    """The expressions that say which pairs there are."""
    yield from (node for node in (join.condition, join.where) if node is not None)
    if join.nearest is not None and join.nearest.by is not None:
        yield join.nearest.by
    if join.sky is not None:
        yield from (join.sky.left_ra, join.sky.left_dec, join.sky.right_ra, join.sky.right_dec)


def _names(nodes: Iterable[Node]) -> set[str]:
    return {column.name for node in nodes for column in node.columns()}
