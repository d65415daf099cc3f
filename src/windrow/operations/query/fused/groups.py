"""Groups on a grid: along each axis of an array, which group a cell belongs to, as a number from 0 on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.plan.grouping.label_parts import LabelPart

Int64Array = npt.NDArray[np.int64]
Parts = tuple[LabelPart | None, ...]


@dataclass(frozen=True, eq=False)
class AxisCodes:
    """The groups along one axis: ``codes`` has that of each cell of the box, ``extent`` how many there are.

    ``keys`` says for each group the number that a grouping by this axis gives it, by the grouping's own number.
    """

    codes: Int64Array
    extent: int
    keys: dict[int, Int64Array]
    by_cell: bool
    """Whether each cell is a group of its own."""


@dataclass(frozen=True, eq=False)
class GridGroups:
    """The groups of the cells of a box. They are numbered in the order of the axes, the last one fastest."""

    box: Box
    axes: tuple[AxisCodes, ...]
    groupings: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.extent for axis in self.axes)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    def coordinates(self, groups: Int64Array | None = None) -> list[Int64Array]:
        """The coordinates of groups in the result: of all, or of those with these numbers."""
        numbers = np.arange(self.count) if groups is None else groups
        places = np.unravel_index(numbers, self.shape)
        found: list[Int64Array] = [np.zeros(0, np.int64)] * self.groupings
        for axis, place in zip(self.axes, places, strict=True):
            for grouping, keys in axis.keys.items():
                found[grouping] = keys[place]
        return found

    @property
    def is_in_order(self) -> bool:
        """Whether groups are numbered in the order of their coordinates."""
        groupings = [grouping for axis in self.axes for grouping in axis.keys]
        return groupings == list(range(self.groupings))


def grid_groups(box: Box, axes: Sequence[int], parts: Parts) -> GridGroups:
    """The groups of the cells in a box that agree along some axes, or in parts of their labels."""
    found = []
    for axis, (lo, extent) in enumerate(zip(box.lo, box.shape, strict=True)):
        own = [number for number, grouped in enumerate(axes) if grouped == axis]
        found.append(_axis_codes(lo, extent, own, [parts[number] if parts else None for number in own]))
    return GridGroups(box, tuple(found), len(axes))


def _axis_codes(lo: int, extent: int, own: list[int], parts: list[LabelPart | None]) -> AxisCodes:
    if not own:
        return AxisCodes(np.zeros(extent, np.int64), 1, {}, False)
    cells = np.arange(lo, lo + extent)
    rows = [cells if part is None else part.numbers(cells) for part in parts]
    if any(part is None for part in parts):
        return AxisCodes(np.arange(extent), extent, dict(zip(own, rows, strict=True)), True)
    # By columns, so that groups are in the order of the first grouping, then of the second.
    keys, codes = np.unique(np.stack(rows, axis=1), axis=0, return_inverse=True)
    named = {number: np.ascontiguousarray(keys[:, place]) for place, number in enumerate(own)}
    return AxisCodes(codes.reshape(-1).astype(np.int64), len(keys), named, False)
