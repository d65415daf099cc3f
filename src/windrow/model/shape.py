"""Shapes: sets of offsets around a cell, stated by norms, ranges and lists, and combined with ``&``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, SchemaError
from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.coordinates import Coordinate
from windrow.model.halo import UNLIMITED, whole_number
from windrow.model.schema import Schema, check_name
from windrow.model.shape_binding import bind_terms, place_of
from windrow.model.shape_terms import (
    LabelEnd,
    LabelRange,
    Names,
    Norm,
    OffsetList,
    OffsetRange,
    Sky,
    StoredOffsets,
    Term,
    term_key,
)
from windrow.model.units import parse_quantity, split_quantity

__all__ = [
    "L1",
    "L2",
    "Hamming",
    "LabelRange",
    "Linf",
    "Lp",
    "Norm",
    "OffsetList",
    "OffsetRange",
    "Shape",
    "Sky",
    "StoredOffsets",
    "Term",
    "any_offset",
    "offset_list",
    "offsets",
    "shape",
    "sky",
    "stored_shape",
]

LARGEST_RADIUS = 2**28
"""Squares of larger distances, added up, would leave int64."""

LARGEST_POWER = 1024.0

any_offset: tuple[None, None] = (None, None)
"""No limit along a dimension, as in ``offsets(time=any_offset)``."""

Ends = tuple[SupportsIndex | str, SupportsIndex | str] | tuple[None, None]
"""From one offset to another: in cells, or in label units ('-200 days') with 0 for the cell's own label."""


@dataclass(frozen=True, eq=False)
class Shape:
    """The offsets that satisfy every term and are 0 in the dimensions no term names.

    The numbering dimension of detections in one cell is the exception: it is any unless a term names it. Shapes are
    equal if the terms are, whatever their order; ``bind`` gives them the array's dimensions and the arithmetic.
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

    @property
    def stored(self) -> tuple[str, ...]:
        """The stored arrays whose cells are offsets of the shape, which ``with_offsets`` has to give."""
        return tuple(dict.fromkeys(term.array for term in self.terms if isinstance(term, StoredOffsets)))

    def with_offsets(self, found: Mapping[str, npt.ArrayLike]) -> Shape:
        """The shape with the cells of stored arrays as lists of offsets: a row for each cell."""
        terms = dict.fromkeys(
            _listed(np.asarray(found[term.array]), term)
            if isinstance(term, StoredOffsets) and term.array in found
            else term
            for term in self.terms
        )
        return replace(self, terms=tuple(terms))

    def bind(
        self,
        dimensions: Schema | Sequence[str],
        bounds: Box | None = None,
        *,
        centres: Box | None = None,
        coordinates: Mapping[str, Coordinate] | None = None,
    ) -> BoundShape:
        """The shape on an array of these dimensions; ``bounds``, the array's cells, limit what is unlimited.

        ``centres`` holds the cells around which the shape is asked for, where they are not the array's own.
        ``coordinates`` say what the cells are called: ranges in label units become cells where labels lie at equal
        steps, and are refused where there are no labels. Without coordinates they stay as they are.
        """
        place = place_of(dimensions, self.wraps, bounds, centres, coordinates)
        return bind_terms(self.terms, place, self.excludes_self)

    def _key(self) -> tuple[frozenset[object], frozenset[str], bool]:
        return frozenset(map(term_key, self.terms)), self.wraps, self.excludes_self

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


def Lp(p: float, radius: float, on: Iterable[str] | str | None = None) -> Shape:  # noqa: N802 - the papers' name
    """Offsets whose components, in absolute value and to the power ``p``, add up to at most ``radius ** p``.

    Where ``p`` and the powers are whole numbers that fit 62 bits this is exact, and a radius like ``9 ** (1 / 3)`` is
    taken for the root that it stands for. Elsewhere sums up to ``radius ** p * (1 + 1e-12)`` count as equal to it. The
    powers 1, 2 and infinity are ``L1``, ``L2`` and ``Linf``.
    """
    power = _as_number(p)
    if power in (1, 2, math.inf):
        return {1: L1, 2: L2, math.inf: Linf}[power](radius, on)
    if not 1 <= power <= LARGEST_POWER:
        hint = "Larger powers are as good as Linf" if power > 1 else "As in Lp(3, 2.5)"
        raise SchemaError("the power of Lp must be a number from 1 to 1024, or infinity", got=repr(p), hint=hint)
    return _norm("Lp", radius, on, power)


def Hamming(count: SupportsIndex, on: Iterable[str] | str | None = None) -> Shape:  # noqa: N802 - the papers' name
    """Offsets, however long, that differ from 0 in at most ``count`` dimensions."""
    number = whole_number(count, "the number of differing dimensions")
    if number < 0:
        raise SchemaError("the number of differing dimensions must not be negative", got=number)
    return Shape((Norm("Hamming", number, _names(on)),))


def offsets(**ranges: Ends) -> Shape:
    """Offsets in a range along each named dimension, as in ``offsets(time=(-200, 0), run=any_offset)``.

    Ends may be in label units, ``offsets(time=("-200 days", 0))``: cells whose labels lie within, ends included.
    """
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


def stored_shape(source: object, on: Iterable[str] | str | None = None) -> Shape:
    """The cells of a stored array as offsets, as in ``wr.shape(db.array("S"))`` or ``wr.shape("S")``.

    ``on`` names the dimensions that its dimensions stand for, in their order, where they are called otherwise.
    """
    name = source if isinstance(source, str) else getattr(source, "name", None)
    if not isinstance(name, str):
        raise SchemaError("a stored shape is an array or the name of one", got=repr(source), hint='As in shape("S")')
    plain, _, version = name.partition("@")
    check_name(plain, "an array")
    if "@" in name and not version.isdecimal():
        raise SchemaError("a version is a number", got=repr(name), hint="As in S@3")
    if getattr(source, "_pinned", None) is not None:
        name = f"{plain}@{getattr(source, 'version', '')}"
    return Shape((StoredOffsets(name, _names(on)),))


shape = stored_shape
"""The public name: ``wr.shape(S)``."""


def sky(radius: float | str, on: Sequence[str] = ("ra", "dec")) -> Shape:
    """Cells whose exact coordinates are at most ``radius`` away on the sky, as in ``sky("10 arcsec")``.

    ``on`` names the longitude, then the latitude. A number without a unit is in degrees.
    """
    names = _names(on)
    if names is None or len(names) != 2:
        raise SchemaError("Sky needs the longitude and the latitude", got=on, hint='As in on=("ra", "dec")')
    try:
        degrees = parse_quantity(radius).degrees
    except DataError as error:
        raise SchemaError("the radius of Sky is an angle", got=repr(radius), hint="As in '10 arcsec'") from error
    if not 0 < degrees < 180:
        raise SchemaError("the radius of Sky must be above 0 and below 180 degrees", got=repr(radius))
    text = " ".join(radius.split()) if isinstance(radius, str) else f"{float(degrees)!r} degrees"
    return Shape((Sky(degrees, text, (names[0], names[1])),))


def _norm(kind: str, radius: float, on: Iterable[str] | str | None, power: float | None = None) -> Shape:
    length = _as_number(radius)
    if not 0 <= length <= LARGEST_RADIUS:
        hint = "Limits along single dimensions may be larger: offsets(time=(-10**12, 0))"
        raise SchemaError(f"the radius of {kind} must be a number from 0 to 2^28", got=repr(radius), hint=hint)
    return Shape((Norm(kind, length, _names(on), power),))


def _as_number(value: object) -> float:
    try:
        return math.nan if isinstance(value, bool | str) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _offset_range(name: str, pair: object) -> OffsetRange | LabelRange:
    check_name(name, "a dimension")
    if isinstance(pair, tuple) and pair == any_offset:
        return OffsetRange(name, None, None)
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        hint = f"As in offsets({name}=(-2, 2)) or offsets({name}=any_offset)"
        raise SchemaError(f"the offsets along {name} must be a pair", got=repr(pair), hint=hint)
    if any(isinstance(end, str) for end in pair):
        return _label_range(name, pair)
    start, stop = (whole_number(value, f"an offset along {name}") for value in pair)
    if stop < start:
        raise SchemaError(f"the offsets along {name} end before they start", got=f"{start} to {stop}")
    if max(abs(start), abs(stop)) >= UNLIMITED:
        raise SchemaError(f"the offsets along {name} reach beyond 2^62 cells", got=f"{start} to {stop}")
    return OffsetRange(name, start, stop)


def _label_range(name: str, pair: Sequence[object]) -> LabelRange:
    start, stop = (_label_end(name, end) for end in pair)
    parts = [split_quantity(end) for end in (start, stop)]
    same = parts[0][1] == parts[1][1] or 0 in (start, stop)
    if same and parts[0][0] > parts[1][0]:
        raise SchemaError(f"the offsets along {name} end before they start", got=f"{start} to {stop}")
    return LabelRange(name, start, stop)


def _label_end(name: str, end: object) -> LabelEnd:
    if not isinstance(end, str):
        if isinstance(end, bool) or end != 0:
            hint = "Give both in cells, or both with a unit; 0 is the cell's own label"
            raise SchemaError(f"one end along {name} is in label units, the other in cells", got=repr(end), hint=hint)
        return 0
    try:
        number, unit = split_quantity(end)
    except DataError as error:
        hint = f'As in offsets({name}=("-200 days", 0))'
        raise SchemaError(f"the offsets along {name} need numbers and a unit", got=repr(end), hint=hint) from error
    if not number:
        return 0
    return " ".join(f"{end.strip()[: -len(unit)] if unit else end} {unit}".split())


def _listed(cells: npt.NDArray[np.generic], term: StoredOffsets) -> OffsetList:
    if cells.ndim != 2 or (cells.size and cells.dtype.kind not in "iu"):
        raise SchemaError(
            f"the cells of {term.array} are a table of whole numbers", got=f"{cells.ndim}-d {cells.dtype}"
        )
    made = offset_list(cells.tolist(), term.on).terms[0]
    assert isinstance(made, OffsetList)
    return made.reflect() if term.reflected else made


def _names(on: Iterable[str] | str | None) -> Names:
    if on is None:
        return None
    names = (on,) if isinstance(on, str) else tuple(on)
    if not names or len(set(names)) < len(names):
        raise SchemaError("a shape needs each of its dimensions once", got=", ".join(map(str, names)) or "none")
    return tuple(check_name(name, "a dimension") for name in names)
