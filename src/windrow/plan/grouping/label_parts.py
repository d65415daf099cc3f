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
from windrow.model.schema import Dimension, Schema
from windrow.model.types import TYPES
from windrow.plan.bound import Bound, LabelItems, NamedAggregates
from windrow.plan.scopes import Along, Scope
from windrow.plan.steps import ended

Int64Array = npt.NDArray[np.int64]
GroupKey = Column | Call
"""What cells are grouped by: a dimension, or a part of its labels."""

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


@dataclass(frozen=True)
class Grouping:
    """Cells in groups: along which axes, by which parts of their labels, and what the dimensions of the groups are."""

    axes: tuple[int, ...]
    parts: tuple[LabelPart | None, ...]
    dimensions: tuple[Dimension, ...]
    box: Box
    labels: LabelItems
    complete: bool
    """Whether each cell of the box is a group that occurs."""

    @property
    def has_parts(self) -> bool:
        return any(part is not None for part in self.parts)


def bind_grouping(keys: Sequence[GroupKey], scope: Scope, schema: Schema, box: Box, labels: LabelItems) -> Grouping:
    """The groups of the cells in ``box`` that agree in all keys."""
    base = schema if schema.sparse else ended(schema, box)
    axes, parts, dimensions, lo, hi = [], [], [], [], []
    known = dict(labels)
    for key in keys:
        along = _along(key, scope)
        axis = base.axis(along.column.name)
        part = None
        if isinstance(key, Call):
            part = _part(key, along, axis, schema.sparse)
            known[part.name] = part.labels
            dimensions.append(Dimension(part.name, part.first, max(part.first, part.first + len(part.labels) - 1)))
            lo.append(part.first)
            hi.append(part.first + len(part.labels) - 1)
        else:
            dimensions.append(base.dimensions[axis])
            lo.append(box.lo[axis])
            hi.append(box.hi[axis])
        axes.append(axis)
        parts.append(part)
    _check_names([dimension.name for dimension in dimensions])
    whole = Box(tuple(lo), tuple(first - 1 for first in lo) if box.is_empty else tuple(hi))  # no cells, no groups
    names = {dimension.name for dimension in dimensions}
    kept = tuple((name, found) for name, found in known.items() if name in names)
    return Grouping(tuple(axes), tuple(parts), tuple(dimensions), whole, kept, _is_complete(axes, parts, box))


def _along(key: GroupKey, scope: Scope) -> Along:
    column = key if isinstance(key, Column) else key.arguments[0]
    assert isinstance(column, Column)
    found = scope.look_up(column)
    if isinstance(found, Along):
        return found
    dimensions = [name for name in scope.types if isinstance(scope.look_up(Column(name)), Along)]
    what = "cells are grouped by dimensions, and this is none"
    raise UnknownNameError(what, got=repr(column.name), hint=nearest(column.name, dimensions))


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


def _is_complete(axes: Sequence[int], parts: Sequence[LabelPart | None], box: Box) -> bool:
    """Whether all combinations of parts occur; those of one dimension may not, as the months of the first year."""
    if box.is_empty:
        return True
    for axis in set(axes):
        own = [part for at, part in zip(axes, parts, strict=True) if at == axis]
        cells = np.arange(box.lo[axis], box.hi[axis] + 1)
        if len(own) > 1:
            rows = np.stack([cells if part is None else part.numbers(cells) for part in own])
            sides = [len(cells) if part is None else len(part.labels) for part in own]
            if np.unique(rows, axis=1).shape[1] < int(np.prod(sides)):
                return False
    return True


@dataclass(frozen=True, kw_only=True)
class BoundParted(Bound):
    """Aggregates over the cells that agree in dimensions, in parts of their labels, or in both."""

    source: Bound
    axes: tuple[int, ...]
    parts: tuple[LabelPart | None, ...]
    """For each axis the part of its labels, None where its cells themselves are meant."""
    aggregates: NamedAggregates

    @property
    def group_words(self) -> str:
        """What is grouped by, as it is told."""
        names = self.source.schema.dimension_names
        pairs = zip(self.axes, self.parts, strict=True)
        return ", ".join(names[axis] if part is None else str(part.node) for axis, part in pairs)
