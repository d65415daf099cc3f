"""Parts of labels that cells are grouped by in the place of a dimension: the month of a time, its year, its season.

A part becomes a dimension of the result, called after it, with the parts as labels. A dense result has a cell for each
part that occurs. A sparse one numbers its cells by the parts themselves, and has those that occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, ExpressionError, SchemaError, UnknownNameError, nearest
from windrow.expressions.functions import SEASONS
from windrow.expressions.nodes import Call, Column, Label, Node
from windrow.model.box import Box
from windrow.model.coordinates import Coordinate, GridCoordinate
from windrow.model.labels import Labels
from windrow.model.schema import Dimension
from windrow.model.types import TYPES
from windrow.plan.bound import Bound, LabelItems, NamedAggregates
from windrow.plan.grouping.values import NOWHERE, ValuePart, Values, value_part
from windrow.plan.scopes import Along, Scope
from windrow.plan.steps import ended

Int64Array = npt.NDArray[np.int64]
GroupKey = Column | Call
"""What cells are grouped by: a dimension, a part of its labels, or an attribute."""

YEAR = "year"
PARTS: dict[str, tuple[int, int] | None] = {
    YEAR: None,
    "quarter": (1, 4),
    "month": (1, 12),
    "season": (1, 4),
    "week": (1, 53),
    "day": (1, 31),
    "dayofyear": (1, 366),
    "weekday": (0, 6),
    "dayofweek": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
"""The functions of times that cells may be grouped by, and which numbers they give: for years, those of the labels."""

FEW = 2**16
"""Cells of which the parts are looked up all at once, however few of them are there."""


def label_part(function: str, dimension: Column) -> Call:
    """A part of a dimension's labels, if it is one that cells can be grouped by."""
    name = function.lower()
    if name not in PARTS:
        what = "cells are grouped by dimensions, and by parts of times"
        raise ExpressionError(what, got=f"{function}({dimension})", hint=nearest(name, PARTS))
    return Call(name, (dimension,))


@dataclass(frozen=True)
class LabelPart:
    """What the cells along an axis are grouped by; ``labels`` has the parts, that of the result's cell ``first`` on."""

    name: str
    axis: int
    node: Node
    """The part of a cell's label, computed from the number of the cell."""
    column: str
    first: int
    labels: Labels

    def numbers(self, cells: Int64Array) -> Int64Array:
        """The cell of the result that each cell belongs to."""
        if not len(cells):
            return cells
        low, high = int(cells.min()), int(cells.max())
        if high - low < max(FEW, 4 * len(cells)):
            found = self._looked_up(np.arange(low, high + 1))[cells - low]
        else:
            found = self._looked_up(cells)
        if found.min() < self.first:
            lost = int(cells[np.argmin(found)])
            raise DataError(f"the cell {lost} along {self.column} has no label", hint="Give it one, or leave it out")
        return found

    def _looked_up(self, cells: Int64Array) -> Int64Array:
        """The same; less than ``first`` for cells that have no label."""
        import pyarrow.compute as pc

        from windrow.model.arrow import block_to_arrow

        places = pc.index_in(_values(self.node, self.column, cells), value_set=block_to_arrow(self.labels.values))
        found: Int64Array = self.first + pc.fill_null(places, -1).to_numpy().astype(np.int64)
        return found


def _values(node: Node, column: str, cells: Int64Array) -> Any:
    import pyarrow as pa

    from windrow.expressions.evaluate import evaluate

    return evaluate(node, {column: pa.array(cells)}, len(cells))


Part = LabelPart | ValuePart


@dataclass(frozen=True)
class Grouping:
    """Cells in groups: along which axes, by which parts of their labels, and what the dimensions of the groups are."""

    axes: tuple[int, ...]
    parts: tuple[Part | None, ...]
    dimensions: tuple[Dimension, ...]
    box: Box
    labels: LabelItems
    complete: bool
    """Whether each cell of the box is a group that occurs."""

    @property
    def has_parts(self) -> bool:
        return any(part is not None for part in self.parts)


@dataclass(frozen=True)
class _Key:
    """What one of the keys comes to: where the cells of the groups lie along it, and what they are called."""

    axis: int
    part: Part | None
    dimension: Dimension
    ends: tuple[int, int]


def bind_grouping(keys: Sequence[GroupKey], scope: Scope, source: Bound, values: Values) -> Grouping:
    """The groups of the cells of ``source`` that agree in all keys."""
    box = source.box
    along = {key: _along(key, scope) for key in keys}
    found = {key: _bind_key(key, one, source) for key, one in along.items() if one is not None}
    for key in keys:
        if key not in found:
            assert isinstance(key, Column)
            extents = [last - first + 1 for first, last in (one.ends for one in found.values())]
            part = value_part(source.schema.attribute(key.name), source, values, extents)
            found[key] = _Key(NOWHERE, part, part.dimension, part.ends)
    bound = [found[key] for key in keys]
    names = [key.dimension.name for key in bound]
    _check_names(names)
    lo, hi = zip(*(key.ends for key in bound), strict=True)
    whole = Box(lo, tuple(first - 1 for first in lo) if box.is_empty else hi)  # no cells, no groups
    known = dict(source.labels)
    for one in bound:
        if one.part is not None and one.part.labels is not None:
            known[one.part.name] = one.part.labels
    kept = tuple((name, labels) for name, labels in known.items() if name in names)
    axes, parts = tuple(key.axis for key in bound), tuple(key.part for key in bound)
    return Grouping(axes, parts, tuple(key.dimension for key in bound), whole, kept, _is_complete(axes, parts, box))


def _bind_key(key: GroupKey, along: Along, source: Bound) -> _Key:
    box = source.box
    base = source.schema if source.schema.sparse else ended(source.schema, box)
    axis = base.axis(along.column.name)
    if not isinstance(key, Call):
        return _Key(axis, None, base.dimensions[axis], (box.lo[axis], box.hi[axis]))
    part = _part(key, along, axis, base.sparse)
    first, last = part.first, part.first + len(part.labels) - 1
    return _Key(axis, part, Dimension(part.name, first, max(first, last)), (first, last))


def _along(key: GroupKey, scope: Scope) -> Along | None:
    """The dimension that cells are grouped along; None for an attribute."""
    column = key if isinstance(key, Column) else key.arguments[0]
    assert isinstance(column, Column)
    found = scope.look_up(column)
    if isinstance(found, Along):
        return found
    if isinstance(key, Column) and found.name in scope.types:
        return None
    if found.name in scope.types:
        what = "parts are taken of a dimension's labels, and this is an attribute"
        hint = f"Compute it first: select {key} as k, … in parentheses after from, and group by k"
        raise SchemaError(what, got=repr(found.name), hint=hint)
    what = "cells are grouped by dimensions and attributes, and this is neither"
    known = [name for name, kind in scope.types.items() if not kind.is_float]
    raise UnknownNameError(what, got=repr(column.name), hint=nearest(column.name, known))


def _part(key: Call, along: Along, axis: int, sparse: bool) -> LabelPart:
    name, cell = along.column.name, along.label
    if not isinstance(cell, Label) or cell.coordinate.type != TYPES["datetime"]:
        kind = "no labels" if along.coordinate is None else f"labels of type {along.coordinate.type}"
        what = f"dimension {name} has no times to take the {key.function} of"
        raise SchemaError(what, got=f"{kind} in {key}", hint="A part is one of a time, as in group by month(time)")
    node = Call(key.function, (cell,))
    made = LabelPart(key.function, axis, node, name, 0, Labels.of(np.zeros(0, np.int64)))
    first, labels = _numbered(made, cell.coordinate, along.span, sparse)
    return replace(made, first=first, labels=labels)


def _numbered(part: LabelPart, coordinate: Coordinate, span: tuple[int, int], sparse: bool) -> tuple[int, Labels]:
    """The first cell of the result, and the parts that it and those after it stand for."""
    bounds = PARTS[part.name]
    if sparse and bounds is not None:
        numbers = np.arange(bounds[0], bounds[1] + 1)
        return bounds[0], Labels.of(list(SEASONS)) if part.name == "season" else Labels.of(numbers)
    ends = isinstance(coordinate, GridCoordinate) and sparse  # whose times only grow
    cells = np.array(sorted(set(span))) if ends else np.arange(span[0], span[1] + 1)
    found = _values(part.node, part.column, cells).drop_null().unique().to_pylist()
    if part.name == "season":
        return 1, Labels.of([season for season in SEASONS if season in found], kind="string")
    if not found:
        return 0, Labels.of(np.zeros(0, np.int64))
    numbers = np.arange(min(found), max(found) + 1) if sparse else np.array(sorted(found))
    return int(numbers[0]), Labels.of(numbers.astype(np.int64))


def _check_names(names: Sequence[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        hint = "Group by one of them in a query of its own, in parentheses after from"
        raise SchemaError("two groups have one name", got=repr(twice[0]), hint=hint)


def _is_complete(axes: Sequence[int], parts: Sequence[Part | None], box: Box) -> bool:
    """Whether all combinations of parts occur; those of one dimension may not, as the months of the first year."""
    if box.is_empty:
        return True
    if NOWHERE in axes:
        return len(axes) == 1
    for axis in set(axes):
        own = [part for at, part in zip(axes, parts, strict=True) if at == axis and not isinstance(part, ValuePart)]
        cells = np.arange(box.lo[axis], box.hi[axis] + 1)
        if len(own) > 1:
            rows = np.stack([cells if part is None else part.numbers(cells) for part in own])
            sides = [len(cells) if part is None else len(part.labels) for part in own]
            if np.unique(rows, axis=1).shape[1] < int(np.prod(sides)):
                return False
    return True


@dataclass(frozen=True, kw_only=True)
class BoundParted(Bound):
    """Aggregates over the cells that agree in dimensions, in parts of their labels, in attributes, or in several."""

    source: Bound
    axes: tuple[int, ...]
    parts: tuple[Part | None, ...]
    """For each axis the part of its labels, None where its cells themselves are meant."""
    aggregates: NamedAggregates

    @property
    def key_attributes(self) -> tuple[str, ...]:
        """The attributes that are grouped by."""
        return key_attributes(self.parts)

    @property
    def group_words(self) -> str:
        """What is grouped by, as it is told."""
        names = self.source.schema.dimension_names
        pairs = zip(self.axes, self.parts, strict=True)
        words = ", ".join(_part_words(part) if part is not None else names[axis] for axis, part in pairs)
        left_out = [part.name for part in self.parts if isinstance(part, ValuePart) and part.can_be_missing]
        return f"{words}, cells without {' or '.join(left_out)} left out" if left_out else words


def _part_words(part: Part) -> str:
    return part.name if isinstance(part, ValuePart) else str(part.node)


def key_attributes(parts: Sequence[Part | None]) -> tuple[str, ...]:
    """The attributes among what cells are grouped by."""
    return tuple(part.name for part in parts if isinstance(part, ValuePart))


def along_axes(parts: Sequence[Part | None]) -> tuple[LabelPart | None, ...]:
    """The parts, all of which are of labels: groups on a grid, of which attributes know nothing."""
    found = []
    for part in parts:
        assert not isinstance(part, ValuePart)
        found.append(part)
    return tuple(found)
