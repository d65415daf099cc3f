"""What the cells of one dimension are called in expressions: by their labels, or by where a gridding puts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, UnknownNameError
from windrow.model.gridding import Axis, Gridding
from windrow.model.labels import Labels
from windrow.model.periods import cells_around, is_outside, period_of_labels, ranges_around
from windrow.model.schema import Schema
from windrow.model.types import TYPES, DataType, data_type_of

if TYPE_CHECKING:
    import pyarrow as pa

Int64Array = npt.NDArray[np.int64]
Span = tuple[int, int]
"""The first and the last of some cells along a dimension."""


@dataclass(frozen=True)
class LabelCoordinate:
    """The labels of a dimension, the first of which is that of the cell ``origin``."""

    name: str
    origin: int
    labels: Labels
    period: int | float | None = None
    """After how much the labels begin anew, if they do."""

    @property
    def type(self) -> DataType:
        return data_type_of(self.labels.values.dtype)

    def values(self, cells: Int64Array) -> pa.Array:
        """The label of each cell; null for cells that have none yet."""
        import pyarrow as pa

        place = cells - self.origin
        outside = (place < 0) | (place >= len(self.labels))
        return self._arrow.take(pa.array(place, mask=outside))

    @cached_property
    def _arrow(self) -> pa.Array:
        from windrow.model.arrow import block_to_arrow

        return block_to_arrow(self.labels.values)

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelCoordinate, (self.name, self.origin, self.labels, self.period)

    def where(self, operator: str, wanted: object, span: Span) -> list[Span]:
        """The runs of cells whose label compares so with a constant; a date stands for all of its period."""
        _check_constant(self.name, self.labels.kind, wanted)
        inside = self.labels.compared(operator, wanted)
        if self.period is not None and operator in ("=", "<>") and inside.all() == (operator == "<>"):
            inside[self._around(wanted, wanted)] = operator == "="
        if (operator == "=" and not inside.any()) or (operator == "<>" and inside.all()):
            self.labels.find(wanted)  # says which label is nearest
        return _clip(_runs(np.flatnonzero(inside), self.origin), span)

    def between(self, low: object, high: object, span: Span) -> list[Span]:
        """The runs of cells whose label lies in a range, both ends of which are inside.

        Where labels decrease, users also write a range as it lies: ``lat between 60 and 30``.
        """
        for end in (low, high):
            _check_constant(self.name, self.labels.kind, end)
        reverse = self.labels.parse(low) > self.labels.parse(high)
        if self.period is not None and not (reverse and self.labels.is_decreasing):
            ends = (float(self.labels.parse(end)) for end in (low, high))
            if is_outside(self.labels, *ends):
                return _clip(_runs(self._around(low, high), self.origin), span)
        if reverse:
            if not self.labels.is_decreasing:
                raise DataError(f"the range of {self.name} ends before it starts", got=f"{low} to {high}")
            low, high = high, low
        inside = self.labels.compared(">=", low) & self.labels.compared("<=", high)
        return _clip(_runs(np.flatnonzero(inside), self.origin), span)

    def _around(self, low: object, high: object) -> Int64Array:
        """The positions of the labels from a value round to another, in the order in which they are met."""
        assert self.period is not None
        lower, upper = (float(self.labels.parse(end)) for end in (low, high))
        while upper < lower:
            upper += self.period
        return cells_around(self.labels, self.period, lower, upper)

    def nearest(self, wanted: object) -> Any:
        """The label that is nearest to a value, on a periodic dimension also across its ends."""
        _check_constant(self.name, self.labels.kind, wanted)
        return self.labels.values[self.labels.nearest(wanted, self.period)]


@dataclass(frozen=True)
class GridCoordinate:
    """The coordinates of a gridded dimension: a cell is the middle of what it holds, and is met by all it holds."""

    axis: Axis

    @property
    def name(self) -> str:
        return self.axis.name

    @property
    def type(self) -> DataType:
        return TYPES["datetime" if self.axis.kind == "datetime" else "float64"]

    def values(self, cells: Int64Array) -> pa.Array:
        from windrow.model.arrow import block_to_arrow

        return block_to_arrow(self.axis.centre(cells))

    def where(self, operator: str, wanted: object, span: Span) -> list[Span]:
        """The runs of cells that can hold coordinates which compare so with a constant, or that hold no others."""
        _check_constant(self.name, self.axis.kind, wanted)
        if operator in ("=", "<>"):
            found = self._range(wanted, wanted, span)
            if not found:
                shown = "There are no cells yet" if span[1] < span[0] else f"The cells go from {span[0]} to {span[1]}"
                raise UnknownNameError(f"no cell of {self.name} has this coordinate", got=repr(wanted), hint=shown)
            return found if operator == "=" else other_runs(found, span)
        above, below = self._range(wanted, None, span), self._range(None, wanted, span)
        if operator in (">=", "<="):
            return above if operator == ">=" else below
        return other_runs(below if operator == ">" else above, span)

    def between(self, low: object, high: object, span: Span) -> list[Span]:
        for end in (low, high):
            _check_constant(self.name, self.axis.kind, end)
        return self._range(low, high, span)

    def _range(self, low: object, high: object, span: Span) -> list[Span]:
        ranges = [(low, high)] if low is None or high is None else ranges_around(self.axis, low, high)
        found = [self.axis.label_range(*ends) for ends in ranges]
        return _clip([(first, span[1] if last is None else last) for first, last in found], span)


Coordinate = LabelCoordinate | GridCoordinate


def coordinates_of(
    schema: Schema, labels: Mapping[str, Labels], gridding: Gridding | None = None
) -> dict[str, Coordinate]:
    """What the cells of each dimension are called, for those that have names besides their numbers."""
    found: dict[str, Coordinate] = {}
    for dimension in schema.dimensions:
        if dimension.name in labels:
            named = labels[dimension.name]
            period = period_of_labels(dimension, named)
            found[dimension.name] = LabelCoordinate(dimension.name, dimension.lo, named, period)
        elif gridding is not None and dimension.name in gridding.names:
            found[dimension.name] = GridCoordinate(gridding.axis(dimension.name))
    return found


def _check_constant(name: str, kind: str, wanted: object) -> None:
    """A number where a label is a moment or a text was most likely meant as the number of a cell."""
    if kind != "number" and isinstance(wanted, (int, float)):
        what = "a moment" if kind == "datetime" else "a text"
        hint = f"The number of a cell is cell({name}), as in cell({name}) = {wanted}"
        raise DataError(f"the label of {name} is {what}", got=str(wanted).lower(), hint=hint)


def _runs(positions: Int64Array, origin: int) -> list[Span]:
    """Positions as runs of cells that lie side by side, in the order in which they come."""
    if not len(positions):
        return []
    breaks = np.flatnonzero(np.diff(positions) != 1)
    first, last = positions[np.append(0, breaks + 1)], positions[np.append(breaks, len(positions) - 1)]
    return list(zip((first + origin).tolist(), (last + origin).tolist(), strict=True))


def _clip(runs: Sequence[Span], span: Span) -> list[Span]:
    inside = [(max(first, span[0]), min(last, span[1])) for first, last in runs]
    return [(first, last) for first, last in inside if first <= last]


def other_runs(runs: Sequence[Span], span: Span) -> list[Span]:
    """The cells of a span that lie in none of the runs, which are in order."""
    starts = [span[0], *(last + 1 for _, last in runs)]
    ends = [*(first - 1 for first, _ in runs), span[1]]
    return [(first, last) for first, last in zip(starts, ends, strict=True) if first <= last]


def _is_elsewhere(one: LabelCoordinate, other: LabelCoordinate, first: int, stop: int) -> bool:
    """Whether a label that ``one`` has outside the cells from ``first`` to ``stop`` is one of the ``other``'s."""
    values = one.labels.values
    outside = np.concatenate([values[: first - one.origin], values[stop - one.origin :]])
    return not set(outside.tolist()).isdisjoint(other.labels.values.tolist()) if len(outside) else False


def same_coordinates(one: Coordinate | None, other: Coordinate | None) -> bool:
    """Whether cells of one number have one name along two dimensions, and cells of one name one number.

    That is asked as far as both have the cell. Where a range goes round, names come again under other numbers.
    """
    if isinstance(one, LabelCoordinate) and isinstance(other, LabelCoordinate):
        first = max(one.origin, other.origin)
        stop = min(one.origin + len(one.labels), other.origin + len(other.labels))
        if stop <= first:
            return one.labels.kind == other.labels.kind
        mine, theirs = (side.labels.slice(first - side.origin, stop - side.origin) for side in (one, other))
        return mine.same_values(theirs) and not (
            _is_elsewhere(one, other, first, stop) or _is_elsewhere(other, one, first, stop)
        )
    if isinstance(one, GridCoordinate) and isinstance(other, GridCoordinate):
        return replace(one.axis, name=other.axis.name) == other.axis
    return one is None and other is None
