"""Shapes meet the dimensions of an array: names become axes, and what is unlimited becomes as long as the array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from windrow.errors import SchemaError, UnknownNameError, nearest
from windrow.model.bound_shape import BoundShape, SkyTerm
from windrow.model.box import Box
from windrow.model.coordinates import Coordinate, GridCoordinate
from windrow.model.distances import Distance, Listed, distance_of, longest_component
from windrow.model.halo import UNLIMITED, Span, canonical_turn, check_wrap, one_turn
from windrow.model.labelled_range import LabelledRange
from windrow.model.schema import Schema
from windrow.model.shape_terms import LabelRange, Names, Norm, OffsetList, OffsetRange, Sky, StoredOffsets, Term

WHOLE: Span = (-UNLIMITED, UNLIMITED)


@dataclass(frozen=True)
class Place:
    """The array that a shape is bound to: its dimensions, and how long those are that wrap or are unlimited."""

    names: tuple[str, ...]
    numbering: tuple[int, ...]
    extents: tuple[int | None, ...]
    furthest: tuple[Span, ...]
    wraps: tuple[bool, ...]
    coordinates: Mapping[str, Coordinate] | None

    def axis(self, name: str) -> int:
        if name not in self.names:
            raise UnknownNameError("no such dimension", got=repr(name), hint=nearest(name, self.names))
        return self.names.index(name)

    def coordinate(self, name: str) -> Coordinate | None:
        """What the cells of a dimension are called, as far as that is known."""
        return None if self.coordinates is None else self.coordinates.get(name)

    def axes(self, on: Names) -> tuple[int, ...]:
        """The axes named; without names, all but the numbering dimension."""
        if on is not None:
            return tuple(self.axis(name) for name in on)
        return tuple(axis for axis in range(len(self.names)) if axis not in self.numbering)


@dataclass
class _Found:
    """What the terms ask of each axis. An axis has limits, perhaps none, if a term names it."""

    limits: dict[int, list[Span]] = field(default_factory=dict)
    distances: list[Distance] = field(default_factory=list)
    lists: list[Listed] = field(default_factory=list)
    labelled: list[LabelledRange] = field(default_factory=list)
    sky: SkyTerm | None = None

    def limit(self, axis: int, *spans: Span) -> None:
        self.limits.setdefault(axis, []).extend(spans)


def place_of(
    dimensions: Schema | Sequence[str],
    wrapped: frozenset[str],
    bounds: Box | None,
    centres: Box | None,
    coordinates: Mapping[str, Coordinate] | None,
) -> Place:
    """The array with these dimensions; see Shape.bind."""
    names = dimensions.dimension_names if isinstance(dimensions, Schema) else tuple(dimensions)
    for box in (bounds, centres):
        if box is not None and box.ndim != len(names):
            raise SchemaError(f"the bounds of an array in {len(names)} dimensions are needed", got=box)
    extents: tuple[int | None, ...] = (None,) * len(names) if bounds is None else bounds.shape
    if bounds is None and isinstance(dimensions, Schema):
        extents = tuple(dimension.extent for dimension in dimensions.dimensions)
    numbering = dimensions.numbering if isinstance(dimensions, Schema) else ()
    furthest = tuple(WHOLE if n is None else (-max(0, n - 1), max(0, n - 1)) for n in extents)
    if bounds is not None and centres is not None:
        furthest = tuple(
            (min(0, lo - last), max(0, hi - first))
            for lo, hi, first, last in zip(bounds.lo, bounds.hi, centres.lo, centres.hi, strict=True)
        )
    place = Place(names, numbering, extents, furthest, (), coordinates)
    axes = {place.axis(name) for name in wrapped}
    wraps = tuple(axis in axes for axis in range(len(names)))
    if isinstance(dimensions, Schema):
        check_wrap(names, [dimension.growing for dimension in dimensions.dimensions], wraps)
    if any(extents[axis] is None for axis in axes):
        shown = ", ".join(sorted(wrapped))
        raise SchemaError("a periodic shape needs the array's bounds", got=shown, hint="Pass bounds=Box(lo, hi)")
    return replace(place, wraps=wraps)


def bind_terms(terms: Sequence[Term], place: Place, excludes_self: bool) -> BoundShape:
    """The shape of these terms on an array."""
    found = _Found()
    for term in terms:
        _add(term, place, found)
    if found.sky is not None:
        _check_sky_alone(terms, place, found.sky)
    for axis in place.numbering:  # named by no term, it is any; named, it has limits already
        found.limit(axis)
    listed = {axis for entry in found.lists for axis in entry.axes}
    spans = [_common(found.limits.get(axis, [(0, 0)])) for axis in range(len(place.names))]
    turns = [max(1, n or 0) if wraps else None for n, wraps in zip(place.extents, place.wraps, strict=True)]
    for axis, turn in enumerate(turns):
        if turn is not None and axis not in listed:
            spans[axis] = one_turn(*spans[axis], turn)
    distances = [distance for distance in found.distances if not _is_idle(distance, spans)]
    tied = listed.union(*(distance.axes for distance in distances)) if distances else listed
    for axis, turn in enumerate(turns):
        if turn is not None and axis not in tied and spans[axis][0] <= spans[axis][1]:
            spans[axis] = canonical_turn(*spans[axis], turn)
    measured = {one.axis for one in found.labelled}
    free = [
        axis not in tied
        and axis not in measured
        and (spans[axis] == WHOLE or (turn is not None and spans[axis][1] - spans[axis][0] + 1 >= turn))
        for axis, turn in enumerate(turns)
    ]
    labelled = [replace(one, alone=one.axis not in tied and spans[one.axis] == WHOLE) for one in found.labelled]
    _check_turns(labelled, place)
    spans = [_limit(span, axis, labelled, place) for axis, span in enumerate(spans)]
    return BoundShape(
        place.names,
        tuple(lo for lo, _ in spans),
        tuple(hi for _, hi in spans),
        tuple(sorted(distances, key=lambda d: (d.axes, d.kind, d.power, d.radius, d.limit))),
        tuple(sorted(found.lists, key=lambda entry: (entry.axes, entry.rows))),
        place.extents,
        place.wraps,
        excludes_self,
        tuple(free),
        tuple(sorted(labelled, key=lambda one: (one.axis, str(one.start), str(one.stop)))),
        found.sky,
    )


def _add(term: Term, place: Place, found: _Found) -> None:
    if isinstance(term, OffsetRange):
        spans = [] if term.start is None or term.stop is None else [(term.start, term.stop)]
        found.limit(place.axis(term.name), *spans)
    elif isinstance(term, LabelRange):
        _add_labels(term, place, found)
    elif isinstance(term, OffsetList):
        entry = _listed(term, place)
        found.lists.append(entry)
        for k, axis in enumerate(entry.axes):
            column = [row[k] for row in entry.rows]
            found.limit(axis, (min(column, default=1), max(column, default=-1)))
    elif isinstance(term, Sky):
        _add_sky(term, place, found)
    elif isinstance(term, StoredOffsets):
        hint = "Give its cells by with_offsets first"
        raise SchemaError("the shape names a stored array that was not read", got=term.array, hint=hint)
    else:
        _add_norm(term, place, found)


def _add_norm(term: Norm, place: Place, found: _Found) -> None:
    axes = place.axes(term.on)
    longest = longest_component(term)
    for axis in axes:
        found.limit(axis, *([] if term.kind == "Hamming" else [(-longest, longest)]))
    if term.kind != "Linf":
        found.distances.append(distance_of(term, tuple(sorted(axes))))


def _add_labels(term: LabelRange, place: Place, found: _Found) -> None:
    axis = place.axis(term.name)
    one = LabelledRange(axis, term.start, term.stop)
    coordinate = place.coordinate(term.name)
    if coordinate is None:
        if place.coordinates is not None:
            hint = "Give a number of cells"
            raise SchemaError(f"dimension {term.name} has no labels", got=str(term), hint=hint)
        found.limit(axis)
        found.labelled.append(one)
        return
    one.check(term.name, coordinate)
    cells = one.in_cells(coordinate)
    if cells is not None:
        found.limit(axis, cells)
    else:
        found.limit(axis)
        found.labelled.append(one)


def _add_sky(term: Sky, place: Place, found: _Found) -> None:
    longitude, latitude = (place.axis(name) for name in term.on)
    sky = SkyTerm(float(term.radius), (longitude, latitude))
    if found.sky not in (None, sky):
        raise SchemaError("a shape has one circle on the sky", got=str(term), hint="Keep the smaller one")
    found.sky = sky
    found.limit(longitude)
    found.limit(latitude)


def _check_sky_alone(terms: Sequence[Term], place: Place, sky: SkyTerm) -> None:
    """Refuse offsets in cells along the sky's own dimensions, where exact coordinates count and cells do not."""
    for term in terms:
        axes = _limited_axes(term, place)
        both = [place.names[axis] for axis in sky.axes if axis in axes]
        if both:
            others = [name for axis, name in enumerate(place.names) if axis not in sky.axes]
            hint = f"Name the other dimensions alone, as in on ({', '.join(others)})" if others else "Keep one of them"
            what = f"a circle on the sky and offsets in cells are not measured together along {' and '.join(both)}"
            raise SchemaError(what, got=str(term), hint=hint)


def _limited_axes(term: Term, place: Place) -> tuple[int, ...]:
    """The axes along which a term leaves cells out by their offsets."""
    if isinstance(term, OffsetRange):
        return () if term.start is None else (place.axis(term.name),)
    if isinstance(term, LabelRange):
        return (place.axis(term.name),)
    if isinstance(term, OffsetList):
        return _listed(term, place).axes
    return place.axes(term.on) if isinstance(term, Norm) else ()


def _listed(term: OffsetList, place: Place) -> Listed:
    axes = place.axes(term.on)
    width = len(term.offsets[0]) if term.offsets else len(axes)
    if term.on is None and width == len(place.names):
        axes = tuple(range(width))  # the numbering dimension is listed too
    if width != len(axes):
        raise SchemaError(f"the listed offsets need {len(axes)} components", got=term.offsets[0])
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    rows = tuple(sorted(tuple(row[k] for k in order) for row in term.offsets))
    return Listed(rows, tuple(axes[k] for k in order))


def _common(limits: list[Span]) -> Span:
    """What all limits allow."""
    return max((lo for lo, _ in limits), default=WHOLE[0]), min((hi for _, hi in limits), default=WHOLE[1])


def _is_idle(distance: Distance, spans: Sequence[Span]) -> bool:
    """Whether whatever the ranges allow costs no more than the distance does: it then ties no axes together."""
    if any(spans[axis][0] > spans[axis][1] for axis in distance.axes):
        return False
    longest = np.array([max(map(abs, spans[axis])) for axis in distance.axes], np.int64)
    return int(distance.cost(longest).sum()) <= distance.limit


def _check_turns(labelled: Sequence[LabelledRange], place: Place) -> None:
    for one in labelled:
        if place.wraps[one.axis]:
            name = place.names[one.axis]
            raise SchemaError("a range in label units cannot wrap where labels do not lie at equal steps", got=name)


def _limit(span: Span, axis: int, labelled: Sequence[LabelledRange], place: Place) -> Span:
    """The array's extent limits only what is unlimited: finite shapes are alike everywhere."""
    if span != WHOLE:
        return span
    lo, hi = place.furthest[axis]
    coordinate = place.coordinate(place.names[axis])
    for one in labelled:
        if one.axis == axis and coordinate is not None and not isinstance(coordinate, GridCoordinate):
            first, last = one.widest(coordinate.labels)
            lo, hi = max(lo, first), min(hi, last)
    return lo, hi
