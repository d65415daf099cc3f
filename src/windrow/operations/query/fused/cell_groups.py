"""Groups of sparse cells, numbered straight from their coordinates, as far as these numbers are few."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.operations.query.fused.geometry import CellLanes, Lanes
from windrow.operations.query.fused.lending import lend
from windrow.plan.grouping.label_parts import LabelPart, Part
from windrow.plan.grouping.values import ValuePart

Int64Array = npt.NDArray[np.int64]

LONGEST_TABLE = 2**16
"""Places along a dimension whose groups are looked up in a table, which stays in the processor's cache."""


@dataclass(frozen=True)
class CellGrouping:
    """One of the keys that cells are grouped by: a dimension in steps of some cells, a part of its labels, or an
    attribute, of which cells have the place of their value among all values."""

    dimension: str
    lo: int
    extent: int
    part: Part | None = None
    step: int = 1

    @property
    def is_by_cell(self) -> bool:
        """Whether each place along the dimension is a key of its own."""
        return self.step == 1 and not isinstance(self.part, LabelPart)

    def codes(self, cells: Int64Array) -> Int64Array:
        if isinstance(self.part, LabelPart):
            return self.part.numbers(cells) - self.lo
        return cells - self.lo if self.step == 1 else (cells - self.lo) // self.step

    def places(self, codes: Int64Array) -> Int64Array:
        """The coordinates of groups in the result."""
        return self.part.places(codes) if isinstance(self.part, ValuePart) else codes + self.lo


@dataclass(frozen=True)
class CellGroups:
    """All groups that cells of a box can be in; they are numbered in the order of their coordinates."""

    groupings: tuple[CellGrouping, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(grouping.extent for grouping in self.groupings)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(grouping.dimension for grouping in self.groupings))

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(math.prod(self.shape[number + 1 :]) for number in range(len(self.shape)))

    def places(self, groups: Int64Array) -> list[Int64Array]:
        """The coordinates of groups in the result."""
        found = np.unravel_index(groups, self.shape)
        return [grouping.places(place) for place, grouping in zip(found, self.groupings, strict=True)]

    def values_along(self, name: str) -> ValuePart | None:
        """The values of an attribute that is grouped by; None for a dimension."""
        found = (grouping.part for grouping in self.groupings if grouping.dimension == name)
        return next((part for part in found if isinstance(part, ValuePart)), None)

    def within(self, names: Sequence[str], box: Box) -> BoxGroups:
        """The groups of the cells in a box, which has the dimensions ``names``."""
        sides = {one.dimension: (one.lo, one.lo + one.extent - 1) for one in self.groupings}
        sides |= {name: (lo, hi) for name, lo, hi in zip(names, box.lo, box.hi, strict=True)}
        first, count = 0, self.count
        if self.groupings and self.groupings[0].part is None:
            # Parts of an array follow one another along the first dimension, so that each has few of its groups.
            outer, stride = self.groupings[0], self.strides[0]
            ends = outer.codes(np.array(sides[outer.dimension]))
            first, count = int(ends[0]) * stride, int(ends[1] - ends[0] + 1) * stride
        numberings = tuple(self._numbering(name, *sides[name]) for name in self.dimensions)
        return BoxGroups(first, count, numberings)

    def _numbering(self, dimension: str, lo: int, hi: int) -> Numbering:
        keys = [
            (grouping, stride)
            for grouping, stride in zip(self.groupings, self.strides, strict=True)
            if grouping.dimension == dimension
        ]
        if len(keys) == 1 and keys[0][0].is_by_cell:
            grouping, stride = keys[0]
            return Numbering(dimension, lo, hi, stride, (lo - grouping.lo) * stride, tuple(keys))
        return Numbering(dimension, lo, hi, 0, 0, tuple(keys))


@dataclass(frozen=True)
class Numbering:
    """What the places of a box along one dimension add to the numbers of groups."""

    dimension: str
    lo: int
    hi: int
    stride: int
    """What each step adds, if every place is a key of its own; else 0."""
    base: int
    """What the lowest place adds in that case."""
    keys: tuple[tuple[CellGrouping, int], ...]

    def amounts(self, places: Int64Array) -> Int64Array:
        """What places of the box add."""
        found = np.zeros(len(places), np.int64)
        for grouping, stride in self.keys:
            found += grouping.codes(places) * stride
        return found

    @cached_property
    def table(self) -> Int64Array | None:
        """What each place of the box adds, if they are not too many."""
        return self.amounts(np.arange(self.lo, self.hi + 1)) if self.hi - self.lo < LONGEST_TABLE else None

    def add(self, column: Int64Array, groups: Int64Array) -> None:
        """Add to the numbers of groups what each cell's place adds; cells beyond the box are taken to its border."""
        from windrow.kernels.folds.cells import add_known_places, add_places

        if self.stride:
            add_places(column, self.lo, self.hi, self.stride, groups)
        elif self.table is not None:
            add_known_places(column, self.lo, self.table, groups)
        else:
            groups += self.amounts(np.clip(column, self.lo, self.hi))


@dataclass(frozen=True)
class BoxGroups:
    """Those of all groups that cells of a box can be in: ``count`` of them from the number ``first`` on."""

    first: int
    count: int
    numberings: tuple[Numbering, ...]

    @property
    def range(self) -> slice:
        return slice(self.first, self.first + self.count)

    def lanes(self, coordinates: Mapping[str, Int64Array], cells: int, room: Int64Array) -> Lanes | CellLanes:
        """Where each cell is added, among the groups of the box; numbers are written into ``room``."""
        if not self.numberings or not cells:
            one = np.zeros(1, np.int64)
            return Lanes(one, one, np.array([0, cells]), one)
        return CellLanes(self.number(coordinates, room[:cells]))

    def number(self, coordinates: Mapping[str, Int64Array], groups: Int64Array) -> Int64Array:
        """The group of each cell, from 0 on, written into ``groups``."""
        groups.fill(sum(numbering.base for numbering in self.numberings) - self.first)
        for numbering in self.numberings:
            numbering.add(lend(coordinates[numbering.dimension]), groups)
        return groups


def cell_groups(
    names: Sequence[str], box: Box, axes: Sequence[int], parts: Sequence[Part | None], columns: Mapping[str, str]
) -> CellGroups:
    """The groups of the cells in a box that agree along some axes, in parts of their labels, or in attributes.

    ``columns`` says under which name an attribute is stored.
    """
    found = []
    for number, axis in enumerate(axes):
        part = parts[number] if parts else None
        if part is None:
            found.append(CellGrouping(names[axis], box.lo[axis], box.shape[axis]))
        elif isinstance(part, ValuePart):
            found.append(CellGrouping(columns[part.name], 0, max(1, len(part.found)), part))
        else:
            found.append(CellGrouping(names[axis], part.first, max(1, len(part.labels)), part))
    return CellGroups(tuple(found))


def block_groups(names: Sequence[str], box: Box, steps: Sequence[int]) -> CellGroups:
    """The blocks of so many cells along each axis, from the corner of a box on."""
    sides = zip(names, box.lo, box.shape, steps, strict=True)
    return CellGroups(tuple(CellGrouping(name, lo, -(-extent // step), step=step) for name, lo, extent, step in sides))
