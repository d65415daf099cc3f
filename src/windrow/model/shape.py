"""Shapes: sets of offsets around a cell, stated by norms, ranges and lists, and combined with ``&``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import SupportsIndex

from windrow.errors import SchemaError, UnknownNameError, nearest
from windrow.model.bound_shape import BoundShape, Distance, Listed
from windrow.model.box import Box
from windrow.model.halo import UNLIMITED, check_wrap, whole_number
from windrow.model.schema import Schema, check_name

LARGEST_RADIUS = 2**28
"""Squares of larger distances, added up, would leave int64."""

any_offset: tuple[None, None] = (None, None)
"""No limit along a dimension, as in ``offsets(time=any_offset)``."""

Names = tuple[str, ...] | None
"""The dimensions a term speaks of; None for all of the array's."""


@dataclass(frozen=True, slots=True)
class Norm:
    """Offsets no longer than ``radius`` in one of the norms ``L1``, ``L2``, ``Linf``."""

    kind: str
    radius: float
    on: Names

    def reflect(self) -> Norm:
        return self

    def __str__(self) -> str:
        radius = int(self.radius) if self.radius == int(self.radius) else self.radius
        return f"{self.kind}({radius}){_on(self.on)}"


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets along one dimension from ``start`` to ``stop``, both inclusive; None is no limit."""

    name: str
    start: int | None
    stop: int | None

    def reflect(self) -> OffsetRange:
        return OffsetRange(
            self.name, None if self.stop is None else -self.stop, None if self.start is None else -self.start
        )

    def __str__(self) -> str:
        return f"{self.name} any" if self.start is None else f"{self.name} between {self.start} and {self.stop}"


@dataclass(frozen=True, slots=True)
class OffsetList:
    """Exactly these offsets, sorted."""

    offsets: tuple[tuple[int, ...], ...]
    on: Names

    def reflect(self) -> OffsetList:
        return OffsetList(tuple(sorted(tuple(-o for o in offset) for offset in self.offsets)), self.on)

    def __str__(self) -> str:
        shown = ", ".join("(" + ", ".join(map(str, offset)) + ")" for offset in self.offsets)
        return f"offsets ({shown}){_on(self.on)}"


Term = Norm | OffsetRange | OffsetList


@dataclass(frozen=True, eq=False)
class Shape:
    """The offsets that satisfy every term and are 0 in the dimensions no term names.

    Equal if the terms are, whatever their order; ``bind`` gives it the array's dimensions and the arithmetic.
    """

    terms: tuple[Term, ...]
    wraps: frozenset[str] = frozenset()
    excludes_self: bool = False

    def __and__(self, other: Shape) -> Shape:
        if not isinstance(other, Shape):
            return NotImplemented
        terms = tuple(dict.fromkeys(self.terms + other.terms))
        return Shape(terms, self.wraps | other.wraps, self.excludes_self or other.excludes_self)

    def wrap(self, *names: str) -> Shape:
        """The same with these dimensions periodic."""
        return replace(self, wraps=self.wraps | {check_name(name, "a dimension") for name in names})

    def excluding_self(self) -> Shape:
        """The same without the cell itself."""
        return replace(self, excludes_self=True)

    def reflect(self) -> Shape:
        """The offsets from a neighbour back to the cell."""
        return replace(self, terms=tuple(term.reflect() for term in self.terms))

    def bind(self, dimensions: Schema | Sequence[str], bounds: Box | None = None) -> BoundShape:
        """The shape on an array of these dimensions; ``bounds``, the array's cells, limit what is unlimited."""
        names = _dimension_names(dimensions)
        if bounds is not None and bounds.ndim != len(names):
            raise SchemaError(f"the bounds of an array in {len(names)} dimensions are needed", got=bounds)
        wraps = {_axis(name, names) for name in self.wraps}
        wrapped = tuple(axis in wraps for axis in range(len(names)))
        extents: tuple[int | None, ...] = (None,) * len(names) if bounds is None else bounds.shape
        if isinstance(dimensions, Schema):
            check_wrap(names, [dimension.growing for dimension in dimensions.dimensions], wrapped)
            extents = tuple(d.extent for d in dimensions.dimensions) if bounds is None else extents
        if any(extents[axis] is None for axis in wraps):
            raise SchemaError(
                "a periodic shape needs the array's bounds", got=str(self), hint="Pass bounds=Box(lo, hi)"
            )
        return _bound(self, names, extents, wrapped)

    def _key(self) -> tuple[frozenset[object], frozenset[str], bool]:
        return frozenset(map(_term_key, self.terms)), self.wraps, self.excludes_self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms]
        if self.wraps:
            parts.append(f"wrap ({', '.join(sorted(self.wraps))})")
        return ", ".join(parts + (["excluding self"] if self.excludes_self else []))


def L1(radius: float, on: Iterable[str] | str | None = None) -> Shape:  # noqa: N802 - the papers' name
    """Offsets whose components add up, in absolute value, to at most ``radius``."""
    return _norm("L1", radius, on)


def L2(radius: float, on: Iterable[str] | str | None = None) -> Shape:  # noqa: N802 - the papers' name
    """Offsets of Euclidean length at most ``radius``."""
    return _norm("L2", radius, on)


def Linf(radius: float, on: Iterable[str] | str | None = None) -> Shape:  # noqa: N802 - the papers' name
    """Offsets with no component longer than ``radius``."""
    return _norm("Linf", radius, on)


def Hamming(count: SupportsIndex, on: Iterable[str] | str | None = None) -> Shape:  # noqa: N802 - the papers' name
    """Offsets, however long, that differ from 0 in at most ``count`` dimensions."""
    number = whole_number(count, "the number of differing dimensions")
    if number < 0:
        raise SchemaError("the number of differing dimensions must not be negative", got=number)
    return Shape((Norm("Hamming", number, _names(on)),))


def offsets(**ranges: tuple[SupportsIndex, SupportsIndex] | tuple[None, None]) -> Shape:
    """Offsets in a range along each named dimension, as in ``offsets(time=(-200, 0), run=any_offset)``."""
    if not ranges:
        raise SchemaError("offsets needs at least one dimension", hint="As in offsets(time=(-200, 0))")
    return Shape(tuple(_offset_range(name, pair) for name, pair in ranges.items()))


def offset_list(listed: Iterable[Sequence[SupportsIndex]], on: Iterable[str] | str | None = None) -> Shape:
    """Exactly these offsets, with one component for each dimension in ``on``, or for each of the array's."""
    names = _names(on)
    rows = sorted({tuple(whole_number(component, "an offset") for component in row) for row in listed})
    lengths = {len(row) for row in rows} | ({len(names)} if names is not None else set())
    if len(lengths) > 1:
        raise SchemaError("every offset needs one component for each dimension", got=f"lengths {sorted(lengths)}")
    if any(abs(component) >= UNLIMITED for row in rows for component in row):
        raise SchemaError("an offset reaches beyond 2^62 cells", got=max(rows, key=lambda row: max(map(abs, row))))
    return Shape((OffsetList(tuple(rows), names),))


def _norm(kind: str, radius: float, on: Iterable[str] | str | None) -> Shape:
    try:
        length = math.nan if isinstance(radius, bool | str) else float(radius)
    except (TypeError, ValueError, OverflowError):
        length = math.nan
    if not 0 <= length <= LARGEST_RADIUS:
        hint = "Limits along single dimensions may be larger: offsets(time=(-10**12, 0))"
        raise SchemaError(f"the radius of {kind} must be a number from 0 to 2^28", got=repr(radius), hint=hint)
    return Shape((Norm(kind, length, _names(on)),))


def _offset_range(name: str, pair: object) -> OffsetRange:
    check_name(name, "a dimension")
    if pair == any_offset:
        return OffsetRange(name, None, None)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        hint = f"As in offsets({name}=(-2, 2)) or offsets({name}=any_offset)"
        raise SchemaError(f"the offsets along {name} must be a pair", got=repr(pair), hint=hint)
    start, stop = (whole_number(value, f"an offset along {name}") for value in pair)
    if stop < start:
        raise SchemaError(f"the offsets along {name} end before they start", got=f"{start} to {stop}")
    if max(abs(start), abs(stop)) >= UNLIMITED:
        raise SchemaError(f"the offsets along {name} reach beyond 2^62 cells", got=f"{start} to {stop}")
    return OffsetRange(name, start, stop)


def _bound(
    shape: Shape, names: tuple[str, ...], extents: tuple[int | None, ...], wrapped: tuple[bool, ...]
) -> BoundShape:
    ranges: dict[int, list[tuple[int, int]]] = {}
    distances: list[Distance] = []
    lists: list[Listed] = []
    for term in shape.terms:
        if isinstance(term, OffsetRange):
            limits = [] if term.start is None or term.stop is None else [(term.start, term.stop)]
            ranges.setdefault(_axis(term.name, names), []).extend(limits)
            continue
        axes = tuple(range(len(names))) if term.on is None else tuple(_axis(name, names) for name in term.on)
        if isinstance(term, OffsetList):
            entry = _listed(term, axes)
            lists.append(entry)
            for k, axis in enumerate(entry.axes):
                column = [row[k] for row in entry.rows]
                ranges.setdefault(axis, []).append((min(column, default=1), max(column, default=-1)))
            continue
        for axis in axes:
            longest = math.floor(term.radius)
            ranges.setdefault(axis, []).extend([] if term.kind == "Hamming" else [(-longest, longest)])
        if term.kind != "Linf":
            distances.append(Distance(term.kind, _limit(term), tuple(sorted(axes))))
    limits_of = [_range(ranges.get(axis, [(0, 0)]), extent) for axis, extent in enumerate(extents)]
    for axis, (wraps, extent) in enumerate(zip(wrapped, extents, strict=True)):
        if wraps and extent is not None and not any(axis in entry.axes for entry in lists):
            limits_of[axis] = _one_turn(*limits_of[axis], max(1, extent))
    distances.sort(key=lambda d: (d.axes, d.kind, d.limit))
    lists.sort(key=lambda entry: (entry.axes, entry.rows))
    start, stop = tuple(lo for lo, _ in limits_of), tuple(hi for _, hi in limits_of)
    return BoundShape(names, start, stop, tuple(distances), tuple(lists), extents, wrapped, shape.excludes_self)


def _range(limits: list[tuple[int, int]], extent: int | None) -> tuple[int, int]:
    """What all limits allow. The array's extent limits only what is unlimited: finite shapes are alike everywhere."""
    if not limits:
        furthest = UNLIMITED if extent is None else max(0, extent - 1)
        return -furthest, furthest
    return max(lo for lo, _ in limits), min(hi for _, hi in limits)


def _one_turn(lo: int, hi: int, extent: int) -> tuple[int, int]:
    """The part of a range that already holds, for every cell of a periodic dimension, the nearest way to it."""
    if lo <= 0 <= hi:
        return max(lo, 1 - extent), min(hi, extent - 1)
    return (lo, min(hi, lo + extent - 1)) if lo > 0 else (max(lo, hi - extent + 1), hi)


def _limit(term: Norm) -> int:
    """The largest cost that a term allows: a sum of components, of their squares in L2."""
    if term.kind != "L2" or term.radius == int(term.radius):
        return int(term.radius) ** (2 if term.kind == "L2" else 1)
    numerator, denominator = term.radius.as_integer_ratio()
    squares = numerator * numerator // (denominator * denominator)
    # math.sqrt(3) lies a little below the root of 3 and still means it.
    return squares + 1 if math.sqrt(squares + 1) == term.radius else squares


def _listed(term: OffsetList, axes: tuple[int, ...]) -> Listed:
    if term.offsets and len(term.offsets[0]) != len(axes):
        raise SchemaError(f"the listed offsets need {len(axes)} components", got=term.offsets[0])
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    rows = tuple(sorted(tuple(row[k] for k in order) for row in term.offsets))
    return Listed(rows, tuple(axes[k] for k in order))


def _term_key(term: Term) -> object:
    if isinstance(term, Norm):
        return term.kind, term.radius, None if term.on is None else frozenset(term.on)
    if isinstance(term, OffsetList) and term.on is not None:
        order = sorted(range(len(term.on)), key=lambda k: (term.on or ())[k])
        columns = tuple(term.on[k] for k in order)
        return columns, frozenset(tuple(row[k] for k in order) for row in term.offsets)
    return term


def _dimension_names(dimensions: Schema | Sequence[str]) -> tuple[str, ...]:
    return dimensions.dimension_names if isinstance(dimensions, Schema) else tuple(dimensions)


def _axis(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise UnknownNameError("no such dimension", got=repr(name), hint=nearest(name, names))
    return names.index(name)


def _names(on: Iterable[str] | str | None) -> Names:
    if on is None:
        return None
    names = (on,) if isinstance(on, str) else tuple(on)
    if not names or len(set(names)) < len(names):
        raise SchemaError("a shape needs each of its dimensions once", got=", ".join(map(str, names)) or "none")
    return tuple(check_name(name, "a dimension") for name in names)


def _on(names: Names) -> str:
    return "" if names is None else f" on ({', '.join(names)})"
