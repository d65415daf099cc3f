"""Shapes around mapped cells: along which right dimensions they are measured, and whether they reach any cell."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windrow.errors import SchemaError
from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.coordinates import Coordinate, LabelCoordinate, same_coordinates
from windrow.model.shape import Shape
from windrow.model.shape_terms import LabelRange, Norm, OffsetList, OffsetRange, Sky, Term
from windrow.plan.bound import Bound, BoundFilter, BoundSelection, side_name
from windrow.plan.join_terms import AxisLabels, AxisMap


@dataclass(frozen=True)
class JoinedSides:
    """The sides of a join with the query's names for them, and where the cells of the left ones are mapped to."""

    sides: tuple[Bound, ...]
    names: tuple[str, ...]
    mapping: tuple[AxisMap | None, ...]

    @property
    def right(self) -> Bound:
        return self.sides[-1]

    @property
    def partnered(self) -> tuple[str, ...]:
        """The right dimensions that something is mapped to."""
        pairs = zip(self.right.schema.dimension_names, self.mapping, strict=True)
        return tuple(name for name, place in pairs if place is not None)

    @property
    def measured(self) -> tuple[str, ...]:
        """Those of them that say where a cell is: a numbering dimension does not."""
        return tuple(name for name in self.partnered if not self.right.schema.dimension(name).numbering)

    def of(self, place: AxisMap) -> Bound:
        """The side that is mapped."""
        return next(s for number, s in enumerate(self.sides, 1) if side_name(number) == place.cell.qualifier)


def placed_shape(shape: Shape, joined: JoinedSides) -> tuple[BoundShape, tuple[AxisLabels, ...]]:
    """The shape on the right array's dimensions, and the labels by which ranges in label units are measured.

    Along right dimensions that nothing is mapped to, any offset will do.
    """
    names, partnered = joined.right.schema.dimension_names, joined.partnered
    celestial = tuple(name for term in shape.terms if isinstance(term, Sky) for name in term.on)
    alone = [name for name in names if name not in partnered]
    if shape.excludes_self and alone:
        hint = f"Map it too, as in on {joined.names[-1]}.{alone[0]} = …"
        what = f"excluding self needs the one cell at offset 0, and no cell of {alone[0]} is mapped to"
        raise SchemaError(what, got=str(shape), hint=hint)
    if alone:
        terms = [_measured(term, joined, celestial) for term in shape.terms]
        free = [OffsetRange(name, None, None) for name in alone if name not in celestial]
        shape = replace(shape, terms=(*terms, *free))
    labels = _labels(shape, joined)
    bounds = _bounds(shape, joined.right)
    bound = shape.bind(
        joined.right.schema,
        bounds,
        centres=_centres(joined, bounds),
        coordinates={**joined.right.coordinates, **labels},
    )
    kept = {one.axis for one in bound.labelled}
    axes = ((joined.right.schema.axis(name), found) for name, found in labels.items())
    return bound, tuple(AxisLabels(axis, one.origin, one.labels) for axis, one in axes if axis in kept)


def _measured(term: Term, joined: JoinedSides, celestial: tuple[str, ...]) -> Term:
    """A term that names no dimensions is about those that have a partner, on the sky or by their cells."""
    names = joined.right.schema.dimension_names
    partnered = tuple(name for name in names if name in joined.partnered or name in celestial)
    measured = tuple(name for name in names if name in joined.measured or name in celestial)
    if isinstance(term, (OffsetRange, LabelRange)):
        named: tuple[str, ...] = () if term.start is None else (term.name,)
    elif isinstance(term, Sky):
        return term
    elif term.on is None:
        wide = isinstance(term, OffsetList) and bool(term.offsets) and len(term.offsets[0]) == len(partnered)
        return replace(term, on=partnered if wide else measured)
    else:
        named = term.on
    alone = [name for name in named if name in names and name not in partnered]
    if alone:
        hint = f"Map it, as in on {joined.names[-1]}.{alone[0]} = …, or leave it out: any cell is a partner then"
        what = f"no offset along {alone[0]} can be measured, for nothing is mapped to it"
        raise SchemaError(what, got=str(term), hint=hint)
    return term


def _base(bound: Bound) -> Bound:
    """The array below selections and filters: how far a shape may reach does not depend on where these are stated."""
    while isinstance(bound, (BoundSelection, BoundFilter)):
        bound = bound.source
    return bound


def _bounds(shape: Shape, right: Bound) -> Box:
    """The right array's cells; what is selected of a periodic dimension is its turn."""
    whole, asked = _base(right).box, right.box
    wraps = [name in shape.wraps for name in right.schema.dimension_names]
    lo = [mine if wrap else all_ for mine, all_, wrap in zip(asked.lo, whole.lo, wraps, strict=True)]
    hi = [mine if wrap else all_ for mine, all_, wrap in zip(asked.hi, whole.hi, wraps, strict=True)]
    return Box(tuple(lo), tuple(hi))


def _centres(joined: JoinedSides, bounds: Box) -> Box:
    """Where the shape can be centred."""
    lo, hi = list(bounds.lo), list(bounds.hi)
    for axis, place in enumerate(joined.mapping):
        if place is not None:
            side = _base(joined.of(place))
            at = side.schema.axis(place.cell.name)
            lo[axis], hi[axis] = place.at(side.box.lo[at]), place.at(side.box.hi[at])
    return Box(tuple(lo), tuple(hi))


# Label units


def _labels(shape: Shape, joined: JoinedSides) -> dict[str, LabelCoordinate]:
    """The labels of the dimensions that the shape measures in label units, of the cells of both sides."""
    found = {}
    right = _base(joined.right)
    for term in shape.terms:
        if not isinstance(term, LabelRange) or term.name not in right.schema.dimension_names:
            continue
        theirs = right.coordinates.get(term.name)
        place = joined.mapping[right.schema.axis(term.name)]
        if not isinstance(theirs, LabelCoordinate) or place is None:
            continue
        mine = _base(joined.of(place)).coordinates.get(place.cell.name)
        found[term.name] = _merged(theirs, mine)
    return found


def _merged(theirs: LabelCoordinate, mine: Coordinate | None) -> LabelCoordinate:
    """Labels of the cells of both sides, if they agree where both have the cell; else those of the right side."""
    if not isinstance(mine, LabelCoordinate) or not same_coordinates(mine, theirs):
        return theirs
    first, last = sorted((mine, theirs), key=lambda one: one.origin)
    apart = last.origin - first.origin - len(first.labels)
    if apart > 0:
        what = f"the labels of both sides leave a gap along {theirs.name}, so that distances in it are not known"
        raise SchemaError(what, got=f"{apart:,} cells without a label", hint="Give the offsets in cells")
    rest = last.labels.slice(min(len(last.labels), -apart), len(last.labels))
    return replace(theirs, origin=first.origin, labels=first.labels.concat(rest) if len(rest) else first.labels)


# Distances and reach


def distance_axes(shape: Shape, joined: JoinedSides) -> tuple[int, ...]:
    """The right dimensions along which the distance of a pair is measured: those that the shape's norms name."""
    norms = [term for term in shape.terms if isinstance(term, Norm)]
    every = not norms or any(norm.on is None for norm in norms)
    names = joined.measured if every else {name for norm in norms for name in norm.on or ()}
    return tuple(sorted(map(joined.right.schema.axis, names)))


def check_reach(offsets: BoundShape, joined: JoinedSides) -> None:
    """Refuses a mapping under which no left cell, now or later, comes near the right array."""
    bounds = zip(joined.right.schema.dimensions, joined.mapping, offsets.start, offsets.stop, strict=True)
    for axis, (dimension, place, start, stop) in enumerate(bounds):
        if place is None or offsets.wraps[axis] or offsets.free[axis]:
            continue
        left = joined.of(place).schema.dimension(place.cell.name)
        first, last = place.at(left.lo), None if left.hi is None else place.at(left.hi)
        short = last is not None and last + stop < dimension.lo
        if short or (dimension.hi is not None and first + start > dimension.hi):
            name = joined.names[-1]
            raise SchemaError(
                f"no cell of {joined.names[0]} comes near {name} along {dimension.name}",
                got=f"cells mapped to {_span(first, last)}, with offsets from {start} to {stop}",
                hint=f"{name} has {dimension.name} from {_span(dimension.lo, dimension.hi)}. Check the mapping",
            )


def _span(first: int, last: int | None) -> str:
    return f"{first} to {'*' if last is None else last}"
