"""Pairs on the sky: where the exact coordinates of both sides are kept, and whether they are angles."""

from __future__ import annotations

from windrow.errors import SchemaError
from windrow.expressions.nodes import Cell, Column, Label, Node
from windrow.model.bound_shape import SkyTerm
from windrow.model.coordinates import Coordinate, GridCoordinate, LabelCoordinate, same_coordinates
from windrow.model.gridding import EXACT_SUFFIX
from windrow.plan.bound import Bound, side_name
from windrow.plan.join_shapes import JoinedSides
from windrow.plan.join_terms import AxisMap, BoundSky

_TURN, _QUARTER = 360, 90
_HINT = "Grid it in angles, as in grid={'ra': (0, 360, '1 arcsec'), 'dec': (-90, 90, '1 arcsec')}, or label it so"


def bind_sky(term: SkyTerm, joined: JoinedSides) -> BoundSky:
    """The expressions over the pairs that give the coordinates whose distance counts."""
    places = [_place(axis, joined) for axis in term.axes]
    names = [joined.right.schema.dimension_names[axis] for axis in term.axes]
    last = side_name(len(joined.sides))
    left_ra, left_dec = (
        _exact(joined.of(place), place.cell, latitude) for place, latitude in zip(places, (False, True), strict=True)
    )
    right_ra, right_dec = (
        _exact(joined.right, Column(name, last), latitude) for name, latitude in zip(names, (False, True), strict=True)
    )
    return BoundSky(term.radius, term.axes, left_ra, left_dec, right_ra, right_dec)


def aligned(term: SkyTerm, joined: JoinedSides) -> tuple[AxisMap | None, ...]:
    """The mapping without those dimensions of the sky whose cells are others on both sides: coordinates count there."""
    mapping = list(joined.mapping)
    for axis in term.axes:
        place = _place(axis, joined)
        mine = joined.of(place).coordinates.get(place.cell.name)
        theirs = joined.right.coordinates.get(joined.right.schema.dimension_names[axis])
        if not same_coordinates(mine, theirs):
            mapping[axis] = None
    return tuple(mapping)


def _place(axis: int, joined: JoinedSides) -> AxisMap:
    place, name = joined.mapping[axis], joined.right.schema.dimension_names[axis]
    if place is None:
        hint = f"Say which, as in on {joined.names[-1]}.{name} = {joined.names[0]}.…"
        raise SchemaError(f"Sky needs a left dimension that goes with {name}", got=joined.names[0], hint=hint)
    if not place.is_identity:
        what = f"Sky pairs by exact coordinates, and {name} is mapped to other cells"
        raise SchemaError(what, got=str(place.cell.name), hint="Leave the arithmetic out")
    return place


def _exact(side: Bound, cell: Column, latitude: bool) -> Node:
    coordinate = side.coordinates.get(cell.name)
    low, high = _range(coordinate)
    limits = "from -90 to 90" if latitude else "in one turn of 360"
    if low is None or high is None:
        what = f"Sky needs angles along {cell.name}, and the array has none there"
        raise SchemaError(what, got=f"{cell.name} by number of cell", hint=_HINT)
    if (low < -_QUARTER or high > _QUARTER) if latitude else high - low > _TURN:
        what = f"Sky needs angles {limits} degrees along {cell.name}"
        raise SchemaError(what, got=f"{float(low):g} to {float(high):g}", hint=_HINT)
    if isinstance(coordinate, LabelCoordinate):
        return Label(Cell(cell.name, cell.qualifier), coordinate)
    exact = cell.name + EXACT_SUFFIX
    if exact not in side.schema.attribute_names:
        what = f"the exact coordinates along {cell.name} are not there"
        raise SchemaError(what, got=", ".join(side.schema.attribute_names), hint=f"Select {exact} too")
    return Column(exact, cell.qualifier)


def _range(coordinate: Coordinate | None) -> tuple[float | None, float | None]:
    """The least and the largest coordinate in degrees; None if they are no numbers, or have no end."""
    if isinstance(coordinate, GridCoordinate) and coordinate.axis.kind == "number":
        high = coordinate.axis.high
        return float(coordinate.axis.low), None if high is None else float(high)
    if isinstance(coordinate, LabelCoordinate) and coordinate.labels.kind == "number":
        values = coordinate.labels.values
        return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    return None, None
