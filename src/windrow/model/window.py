"""Windows: per dimension a range of offsets around a cell, evaluated at every or every ``step``-th position."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, SupportsIndex, overload

from windrow.errors import SchemaError, UnknownNameError, nearest
from windrow.model.box import Box
from windrow.model.halo import UNLIMITED, check_wrap, whole_number
from windrow.model.schema import Schema

BOUNDARIES = ("clip", "drop")
_LABEL_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ°]*)\s*\Z")


@dataclass(frozen=True, slots=True)
class Extent:
    """The cells at offsets from ``start`` to ``stop``, both inclusive."""

    start: int
    stop: int
    wraps: bool = False

    def __post_init__(self) -> None:
        if self.stop < self.start:
            raise SchemaError("a window's range of offsets ends before it starts", got=f"{self.start} to {self.stop}")
        if max(abs(self.start), abs(self.stop)) > UNLIMITED:
            raise SchemaError("a window reaches beyond 2^62 cells", got=f"{self.start} to {self.stop}")

    @property
    def width(self) -> int:
        return self.stop - self.start + 1

    @property
    def is_any(self) -> bool:
        """Whether it holds all cells of a dimension, wherever it stands; it cannot leave the array then."""
        return self.start <= -UNLIMITED and self.stop >= UNLIMITED

    def wrap(self) -> Extent:
        """The same on a periodic dimension."""
        return replace(self, wraps=True)

    def __str__(self) -> str:
        width, suffix = self.width, " wrap" if self.wraps else ""
        if self.start == 0:
            return f"{width}{suffix}"
        if self.stop == 0:
            return f"trailing {width}{suffix}"
        if (self.start, self.stop) == (-(width // 2), (width - 1) // 2):
            return f"centred {width}{suffix}"
        return f"between {self.start} and {self.stop}{suffix}"


@dataclass(frozen=True, slots=True)
class LabelExtent:
    """The cells whose labels lie within a distance, as in '30 days'; how many they are differs from cell to cell.

    ``corner`` looks forward from the cell's label, ``trailing`` backward, ``within`` that far both ways, and
    ``centred`` half as far both ways.
    """

    anchor: str
    amount: float
    unit: str
    wraps: bool = False

    def wrap(self) -> LabelExtent:
        """The same on a periodic dimension."""
        return replace(self, wraps=True)

    def __str__(self) -> str:
        amount = int(self.amount) if self.amount == int(self.amount) else format(Decimal(repr(self.amount)), "f")
        anchor = "" if self.anchor == "corner" else f"{self.anchor} "
        return f"{anchor}'{amount} {self.unit}".rstrip() + ("' wrap" if self.wraps else "'")


AnyExtent = Extent | LabelExtent

ANY = Extent(-UNLIMITED, UNLIMITED)
"""All cells of a dimension, wherever the window stands."""


@overload
def corner(width: str) -> LabelExtent: ...
@overload
def corner(width: SupportsIndex) -> Extent: ...
def corner(width: SupportsIndex | str) -> AnyExtent:
    """The cell and those after it: what a bare number means (paper 002)."""
    if isinstance(width, str):
        return _label_extent("corner", width)
    return Extent(0, _width(width) - 1)


@overload
def centred(width: str) -> LabelExtent: ...
@overload
def centred(width: SupportsIndex) -> Extent: ...
def centred(width: SupportsIndex | str) -> AnyExtent:
    """The cell in the middle, as in SciPy, pandas and OpenCV; an even width has one cell more before it."""
    if isinstance(width, str):
        return _label_extent("centred", width)
    cells = _width(width)
    return Extent(-(cells // 2), (cells - 1) // 2)


@overload
def trailing(width: str) -> LabelExtent: ...
@overload
def trailing(width: SupportsIndex) -> Extent: ...
def trailing(width: SupportsIndex | str) -> AnyExtent:
    """The cell and those before it."""
    if isinstance(width, str):
        return _label_extent("trailing", width)
    return Extent(1 - _width(width), 0)


def within(distance: str) -> LabelExtent:
    """The cells whose labels are at most so far away, before or after."""
    return _label_extent("within", distance)


def between(start: SupportsIndex, stop: SupportsIndex) -> Extent:
    """The cells at offsets from ``start`` to ``stop``; 0, the cell itself, need not be among them."""
    return Extent(whole_number(start, "an offset"), whole_number(stop, "an offset"))


def check_boundary(boundary: str) -> None:
    """Refuse what windows cannot do at the borders of an array."""
    if boundary == "wrap":
        hint = "As in lon=wr.centred(3).wrap(), in text lon centred 3 wrap, in sliding wrap=True"
        raise SchemaError("going round is a matter of single dimensions", got="boundary='wrap'", hint=hint)
    if boundary not in BOUNDARIES:
        raise SchemaError("unknown boundary of a window", got=repr(boundary), hint=nearest(str(boundary), BOUNDARIES))


@dataclass(frozen=True)
class Window:
    """An extent and a step for each dimension of an array, and what happens where little is present.

    A *position* is the input cell a window stands at. *Results* number the evaluated positions one by one from the
    array's first cell; with steps of 1 they are the same.
    """

    dimensions: tuple[str, ...]
    extents: tuple[AnyExtent, ...]
    step: tuple[int, ...]
    boundary: str = "clip"
    min_count: int = 0

    def __post_init__(self) -> None:
        if not len(self.dimensions) == len(self.extents) == len(self.step):
            raise SchemaError("a window needs an extent and a step for each dimension", got=", ".join(self.dimensions))
        check_boundary(self.boundary)
        for name, step in zip(self.dimensions, self.step, strict=True):
            if whole_number(step, "a step") < 1:
                raise SchemaError(f"the step along {name} must be at least 1", got=step)
        if whole_number(self.min_count, "min_count") < 0:
            raise SchemaError("min_count must not be negative", got=self.min_count)

    @classmethod
    def of(
        cls,
        schema: Schema,
        extents: Mapping[str, SupportsIndex | str | tuple[int, int] | AnyExtent],
        *,
        step: SupportsIndex | Sequence[SupportsIndex] | Mapping[str, SupportsIndex] = 1,
        boundary: str = "clip",
        min_count: int = 0,
    ) -> Window:
        """The window on an array; bare numbers are corner windows, pairs offsets, dimensions not named have width 1.

        A numbering dimension that is not named is taken whole: two detections in one cell are neighbours. A single
        ``step`` counts for every dimension that ``extents`` names, a sequence for them in that order.
        """
        names = schema.dimension_names
        for name in extents:
            schema.axis(name)
        given = {name: _extent(name, extent) for name, extent in extents.items()}
        steps = _steps(schema, list(extents), step)
        chosen = tuple(given.get(d.name, ANY if d.numbering else Extent(0, 0)) for d in schema.dimensions)
        check_wrap(names, [d.growing for d in schema.dimensions], [extent.wraps for extent in chosen])
        return cls(names, chosen, tuple(steps.get(name, 1) for name in names), boundary, min_count)

    @property
    def in_cells(self) -> bool:
        """Whether every extent is a number of cells; those in label units need the labels first."""
        return all(isinstance(extent, Extent) for extent in self.extents)

    def output_bounds(self, bounds: Box) -> Box:
        """All results on an array of ``bounds``."""
        return Box.at(bounds.lo, [-(-extent // step) for extent, step in zip(bounds.shape, self.step, strict=True)])

    def input_cell(self, result: Sequence[int], bounds: Box) -> tuple[int, ...]:
        """The position of a result."""
        return tuple(lo + (r - lo) * step for r, lo, step in zip(result, bounds.lo, self.step, strict=True))

    def input_box(self, results: Box, bounds: Box) -> Box:
        """The smallest box that holds the positions of ``results``."""
        inside = results & self.output_bounds(bounds)
        return Box(self.input_cell(inside.lo, bounds), self.input_cell(inside.hi, bounds))

    def __str__(self) -> str:
        extents = [
            f"{name} {'any' if isinstance(extent, Extent) and extent.is_any else extent}"
            for name, extent in zip(self.dimensions, self.extents, strict=True)
        ]
        text = f"window ({', '.join(extents)})"
        if any(step != 1 for step in self.step):
            text += f" step ({', '.join(map(str, self.step))})"
        if self.boundary != "clip":
            text += f" boundary {self.boundary}"
        return text if self.min_count == 0 else f"{text} min count {self.min_count}"


def regrid(schema: Schema, sizes: Mapping[str, SupportsIndex], *, boundary: str = "clip", min_count: int = 0) -> Window:
    """Blocks side by side: a corner window with a step equal to its size.

    A numbering dimension that is not named is one block, however long it becomes.
    """
    whole = {schema.dimensions[axis].name: UNLIMITED for axis in schema.numbering}
    blocks = {**sizes, **{name: size for name, size in whole.items() if name not in sizes}}
    return Window.of(schema, blocks, step=blocks, boundary=boundary, min_count=min_count)


def _extent(name: str, extent: Any) -> AnyExtent:
    if isinstance(extent, Extent | LabelExtent):
        return extent
    try:
        return between(*extent) if isinstance(extent, tuple) and len(extent) == 2 else corner(extent)
    except SchemaError as error:
        raise SchemaError(f"{error.what} along {name}", got=error.got, hint=error.hint) from None


def _steps(
    schema: Schema, named: list[str], step: SupportsIndex | Sequence[SupportsIndex] | Mapping[str, SupportsIndex]
) -> dict[str, int]:
    if isinstance(step, Mapping):
        for name in step:
            if name not in schema.dimension_names:
                hint = nearest(name, schema.dimension_names)
                raise UnknownNameError("no such dimension", got=repr(name), hint=hint)
        return {name: whole_number(s, "a step") for name, s in step.items()}
    if isinstance(step, Sequence):
        if len(step) != len(named):
            raise SchemaError(f"expected {len(named)} steps, one for each of {', '.join(named)}", got=len(step))
        return {name: whole_number(s, "a step") for name, s in zip(named, step, strict=True)}
    return dict.fromkeys(named, whole_number(step, "a step"))


def _width(width: SupportsIndex) -> int:
    cells = whole_number(width, "the width of a window")
    if cells < 1:
        raise SchemaError("a window needs at least one cell", got=cells)
    return cells


def _label_extent(anchor: str, text: str) -> LabelExtent:
    match = _LABEL_SPAN.match(text)
    if match is None or not 0 < float(match[1]) < float("inf"):
        hint = "As in '30 days' or '2.5 degrees'"
        raise SchemaError("expected a positive number and a unit of labels", got=repr(text), hint=hint)
    return LabelExtent(anchor, float(match[1]), match[2])
