"""Which results do not depend on some dimensions of their cells, and the query that has each of them once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from windrow.errors import SchemaError
from windrow.expressions.nodes import Column, Node
from windrow.operations.join.build import is_by_cell
from windrow.plan.bound import (
    DISTANCE,
    Bound,
    BoundColumns,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundScan,
    BoundSelection,
    makes_pairs,
    side_name,
)
from windrow.plan.grouping.positions import Axes, BoundPositions, at_positions, positions_of
from windrow.views.definition import Settings

CELLWISE = (BoundColumns, BoundFilter, BoundSelection)
LEFT = side_name(1)


def free_dimensions(bound: Bound) -> tuple[str, ...]:
    """The dimensions of which a view's results do not depend, so that cells which differ in these alone share them.

    That of the numbers of detections does not count by itself: few cells share a position then.
    """
    core = _core_of(bound)
    if not isinstance(core, BoundJoined) or not _can_share(core):
        return ()
    schema, join = core.source.left.schema, core.source
    found = [name for name in schema.dimension_names if _is_free(join, name)]
    named = _named_on_the_left(core) | set(_named_above(bound))
    if not named <= set(schema.dimension_names):  # an attribute of the left side
        return ()
    kept = [name for name in found if name not in named and _is_whole(bound, core, schema.axis(name))]
    numbered = [schema.dimension_names[axis] for axis in schema.numbering]
    return tuple(kept) if any(name not in numbered for name in kept) else ()


def reduced_by(bound: Bound, settings: Settings) -> tuple[str, ...]:
    """The dimensions without which a new view is stored."""
    return free_dimensions(bound) if settings.store == "auto" else ()


def _core_of(bound: Bound) -> Bound:
    while isinstance(bound, CELLWISE):
        bound = bound.source
    return bound


def _can_share(core: BoundJoined) -> bool:
    """Whether partners are found by place alone, at cells of one stored array."""
    join = core.source
    if makes_pairs(join.left) or join.kind not in ("inner", "left") or not is_by_cell(core):
        return False
    if join.nearest is not None or join.sky is not None or join.offsets.excludes_self:
        return False
    left = _core_of(join.left)
    return core.schema.sparse and not core.step and isinstance(left, BoundScan) and left.schema.sparse


def _is_free(join: BoundJoin, name: str) -> bool:
    """Whether partners are the same wherever a left cell lies along a dimension."""
    labelled = {entry.axis for entry in join.axis_labels}
    axes = [axis for axis, place in enumerate(join.mapping) if place is not None and place.cell == Column(name, LEFT)]
    return all(join.offsets.free[axis] and axis not in labelled for axis in axes)


def _named_on_the_left(core: BoundJoined) -> set[str]:
    """What expressions over pairs say of their left cells; a distance says where they are."""
    join = core.source
    nodes = [
        *(node for _, node in core.arguments),
        *(node for node in (join.condition, join.where) if node is not None),
    ]
    columns = {column for node in nodes for column in node.columns()}
    found = {column.name for column in columns if column.qualifier == LEFT}
    if DISTANCE in columns:
        places = [join.mapping[axis] for axis in join.distance_axes]
        found |= {place.cell.name for place in places if place is not None and place.cell.qualifier == LEFT}
    return found


def _named_above(bound: Bound) -> Iterable[str]:
    """The dimensions that steps above the join look at."""
    while isinstance(bound, CELLWISE):
        nodes: Sequence[Node] = ()
        if isinstance(bound, BoundColumns):
            nodes = [node for _, node in bound.outputs]
        elif isinstance(bound, BoundFilter):
            nodes = [bound.condition]
        yield from (c.key for node in nodes for c in node.columns() if c.key in bound.schema.dimension_names)
        bound = bound.source


def _is_whole(bound: Bound, core: Bound, axis: int) -> bool:
    """Whether steps above the join leave out no cells along a dimension."""
    while bound is not core:
        if (bound.box.lo[axis], bound.box.hi[axis]) != (core.box.lo[axis], core.box.hi[axis]):
            return False
        (bound,) = bound.inputs()
    return True


def stored_form(bound: Bound, dimensions: Sequence[str]) -> Bound:
    """The query of which a view stores the results: with one cell for each position, if it is stored so."""
    if not dimensions:
        return bound
    if not set(dimensions) <= set(free_dimensions(bound)):
        what = f"the results depend on {', '.join(dimensions)} now, and are stored by the other dimensions"
        raise SchemaError(what, hint="Make the view anew")
    return _reduced(bound, tuple(bound.schema.axis(name) for name in dimensions))


def _reduced(bound: Bound, axes: Axes) -> Bound:
    box = at_positions(bound.box, bound.schema, axes)
    if isinstance(bound, CELLWISE):
        return replace(bound, box=box, source=_reduced(bound.source, axes))
    assert isinstance(bound, BoundJoined)
    join = replace(bound.source, left=positions_of(bound.source.left, axes))
    return replace(bound, box=box, source=join)


def positions_in(bound: Bound) -> BoundPositions | None:
    """The left side of a query that has one cell for each position."""
    core = _core_of(bound)
    if not isinstance(core, BoundJoined):
        return None
    left = core.source.left
    return left if isinstance(left, BoundPositions) else None


def has_every_position(bound: Bound) -> bool:
    """Whether each position has a result, so that those stored say where left cells are.

    So it is where cells without partners are kept, and where each cell is a partner of itself.
    """
    core = _core_of(bound)
    assert isinstance(core, BoundJoined)
    step = bound
    while step is not core:
        if isinstance(step, (BoundFilter, BoundSelection)):
            return False
        (step,) = step.inputs()
    join, left = core.source, positions_in(bound)
    if join.where is not None or left is None:
        return False
    if join.kind == "left":
        return True
    names = left.schema.dimension_names
    own = all(
        place is not None and place.is_identity and place.cell == Column(name, LEFT)
        for name, place in zip(names, join.mapping, strict=False)
    )
    same = left.source == join.right and len(join.mapping) == len(names)
    return own and same and join.condition is None and join.offsets.contains((0,) * len(names))
