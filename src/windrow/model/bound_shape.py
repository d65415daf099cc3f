"""A shape on an array's dimensions: membership, enumeration and reach of its offsets.

Enumeration goes dimension by dimension. Given the offset in some dimensions, every norm allows one interval in the
next, so the offsets come as runs in the last dimension without testing the whole box around them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError
from windrow.model import key_runs
from windrow.model.box import Box
from windrow.model.distances import BoolArray, Distance, Int64Array, Listed
from windrow.model.halo import UNLIMITED, Reach, canonical_turn
from windrow.model.labelled_range import LabelledRange
from windrow.model.offset_runs import KeyRuns, Runs, as_runs, check_size, expanded, without_self


@dataclass(frozen=True, slots=True)
class SkyTerm:
    """Great-circle distances of at most ``radius`` degrees; ``axes`` are the longitude's and the latitude's."""

    radius: float
    axes: tuple[int, int]


@dataclass(frozen=True)
class BoundShape:
    """Offsets between ``start`` and ``stop`` that satisfy all distances and lists.

    In a dimension that is ``free`` any offset is right, whatever the array's extent and the other components; start
    and stop are as far as the array reaches there. In a periodic dimension offsets count modulo its extent, and each
    neighbour is listed once. What ``labelled`` and ``sky`` ask besides is not a matter of offsets: everything here
    that speaks of offsets takes their dimensions as if they let everything through.
    """

    dimensions: tuple[str, ...]
    start: tuple[int, ...]
    stop: tuple[int, ...]
    distances: tuple[Distance, ...]
    lists: tuple[Listed, ...]
    extents: tuple[int | None, ...]
    wraps: tuple[bool, ...]
    excludes_self: bool
    free: tuple[bool, ...]
    labelled: tuple[LabelledRange, ...] = ()
    sky: SkyTerm | None = None

    @property
    def ndim(self) -> int:
        return len(self.dimensions)

    @property
    def size(self) -> int:
        """Number of offsets."""
        runs = self.rows()
        return sum(int(last) - int(first) + 1 for first, last in zip(runs.first, runs.last, strict=True))

    @property
    def moduli(self) -> tuple[int | None, ...]:
        """The extents of the periodic dimensions."""
        return tuple(max(1, n or 0) if wraps else None for n, wraps in zip(self.extents, self.wraps, strict=True))

    def contains(self, offset: Sequence[int]) -> bool:
        """Whether the cell at an offset is a neighbour."""
        return bool(self.mask([np.asarray(component, np.int64) for component in offset]))

    def mask(self, components: Sequence[npt.ArrayLike]) -> BoolArray:
        """The same for many offsets at once, given as one array of components for each dimension."""
        if len(components) != self.ndim:
            raise SchemaError(f"an offset needs {self.ndim} components", got=len(components))
        given = [np.asarray(component, np.int64) for component in components]
        moduli = self.moduli
        residues = [x if n is None else x % n for x, n in zip(given, moduli, strict=True)]
        result = np.zeros(np.broadcast_shapes(*(x.shape for x in given)), bool)
        if self.is_empty:
            return result
        for turns in itertools.product(*(self._turns(axis, n) for axis, n in enumerate(moduli))):
            result |= self._mask([x + turn * (n or 0) for x, turn, n in zip(residues, turns, moduli, strict=True)])
        return result & ~_all_zero(residues) if self.excludes_self else result

    def bounds(self) -> tuple[tuple[int, int], ...]:
        """Per dimension the range of offsets; it may be wider than needed for lists and without the cell itself."""
        if self.is_empty:
            return ((0, -1),) * self.ndim
        result = []
        for axis in range(self.ndim):
            lo, hi = self.start[axis], self.stop[axis]
            for distance in self.distances:
                if axis in distance.axes:
                    others = sum(self._least(distance, a) for a in distance.axes if a != axis)
                    width = int(distance.width(np.asarray(distance.limit - others)))
                    lo, hi = max(lo, -width), min(hi, width)
            result.append((lo, hi))
        return tuple(result)

    def offsets(self) -> Int64Array:
        """All offsets, one per row, in row-major order."""
        return self._unique(expanded(self.runs_along(range(self.ndim))))

    def rows(self) -> Runs:
        """The offsets as runs in the last dimension, in row-major order."""
        listed = {axis for entry in self.lists for axis in entry.axes}
        for axis, n in enumerate(self.moduli):
            if n is not None and (axis in listed or self.start[axis] <= -n or self.stop[axis] >= n):
                return as_runs(self.offsets())
        runs = self.runs_along(range(self.ndim))
        return without_self(runs) if self.excludes_self else runs

    def key_runs(self) -> KeyRuns:
        """The offsets as runs along the dimension of the widest range, without the free dimensions.

        A dimension in label units is the last of the axes if no other term speaks of it: its runs are from 0 to 0,
        to be added to the ends that ``LabelledRange.ranges`` gives. Further ranges in label units are in ``checked``.
        """
        return key_runs.key_runs(self)

    def difference(self, other: BoundShape) -> KeyRuns:
        """The offsets that are not in ``other``, as runs; what either says of the cell itself is left aside."""
        return key_runs.difference(self, other)

    @property
    def searched(self) -> LabelledRange | None:
        """The range in label units along which key runs are searched, if there is one."""
        return next((one for one in self.labelled if one.alone), None)

    @property
    def checked(self) -> tuple[LabelledRange, ...]:
        """The ranges in label units that key runs leave to be checked pair by pair."""
        searched = self.searched
        return tuple(one for one in self.labelled if one is not searched)

    def reflect(self) -> BoundShape:
        """The offsets from a neighbour back to the cell."""
        lists = sorted((entry.reflect() for entry in self.lists), key=lambda entry: (entry.axes, entry.rows))
        ends = [(-hi, -lo) for lo, hi in zip(self.start, self.stop, strict=True)]
        tied = {axis for entry in self.lists for axis in entry.axes}
        tied.update(axis for distance in self.distances for axis in distance.axes)
        for axis, n in enumerate(self.moduli):
            if n is not None and axis not in tied:
                ends[axis] = canonical_turn(*ends[axis], n)
        return replace(
            self,
            start=tuple(lo for lo, _ in ends),
            stop=tuple(hi for _, hi in ends),
            lists=tuple(lists),
            labelled=tuple(one.reflect() for one in self.labelled),
        )

    @property
    def reach(self) -> Reach:
        """How far the offsets go in each dimension; through all of it where it is free."""
        ends = [(-UNLIMITED, UNLIMITED) if free else pair for free, pair in zip(self.free, self.bounds(), strict=True)]
        return Reach(tuple(lo for lo, _ in ends), tuple(hi for _, hi in ends), self.wraps)

    def halo(self, box: Box, bounds: Box) -> Box:
        """A box that holds the neighbours of ``box``; whole in a periodic dimension that is crossed."""
        empty = Box.at(bounds.lo, [0] * self.ndim)
        return empty if self.is_empty else self.reach.halo(box, bounds)

    def partner_boxes(self, centres: Box, bounds: Box) -> list[Box]:
        """Disjoint boxes that hold the neighbours of centres; a join may shift these out of the array."""
        return [] if self.is_empty else self.reach.partner_boxes(centres, bounds)

    @property
    def is_empty(self) -> bool:
        """Whether no offset satisfies the ranges, or one of the norms within them."""
        if any(lo > hi for lo, hi in zip(self.start, self.stop, strict=True)):
            return True
        return any(sum(self._least(d, axis) for axis in d.axes) > d.limit for d in self.distances)

    def points_along(self, axes: Sequence[int]) -> Int64Array:
        """The offsets on some of the axes, a column each, to which those on the others may be found; in order."""
        points = np.zeros((0 if self.is_empty else 1, 0), np.int64)
        for place in range(len(axes)):
            points = self._extend(points, axes[: place + 1])
        return points

    def runs_along(self, axes: Sequence[int]) -> Runs:
        """The offsets on some of the axes as runs along the last of them, in order."""
        if any(axes[-1] in entry.axes for entry in self.lists):
            return as_runs(self.points_along(axes))
        points = self.points_along(axes[:-1])
        lo, hi = self._limits_at(points, axes)
        kept = lo <= hi
        return Runs(points[kept], lo[kept], hi[kept])

    def _turns(self, axis: int, modulus: int | None) -> list[int]:
        """How many times round a residue must go to reach the range of offsets."""
        if modulus is None or self.free[axis]:
            return [0]
        listed = [entry.column(axis) // modulus for entry in self.lists if axis in entry.axes]
        if listed:
            return [int(turn) for turn in np.unique(listed[0])]
        return list(range(-((modulus - 1 - self.start[axis]) // modulus), self.stop[axis] // modulus + 1))

    def _least(self, distance: Distance, axis: int) -> int:
        lo, hi = self.start[axis], self.stop[axis]
        nearest_zero = 0 if lo <= 0 <= hi else min(lo, hi, key=abs)
        return int(distance.cost(np.asarray(nearest_zero)))

    def _mask(self, components: list[Int64Array]) -> BoolArray:
        ranges = list(zip(components, self.start, self.stop, strict=True))
        result: BoolArray = np.ones(np.broadcast_shapes(*(x.shape for x in components)), bool)
        for (x, lo, hi), free in zip(ranges, self.free, strict=True):
            if not free:
                result &= (lo <= x) & (x <= hi)
        near = [np.clip(x, lo, hi) for x, lo, hi in ranges]  # so that squares of what is outside cannot overflow
        for distance in self.distances:
            result &= sum((distance.cost(near[axis]) for axis in distance.axes), np.int64(0)) <= distance.limit
        for entry in self.lists:
            result &= entry.mask(entry.axes, [components[axis] for axis in entry.axes])
        return result

    def _limits_at(self, points: Int64Array, axes: Sequence[int]) -> tuple[Int64Array, Int64Array]:
        """The interval on the last of ``axes`` for each offset on those before it."""
        axis = axes[-1]
        lo = np.full(len(points), self.start[axis], np.int64)
        hi = np.full(len(points), self.stop[axis], np.int64)
        for distance in self.distances:
            if axis in distance.axes:
                budget = np.full(len(points), distance.limit, np.int64)
                for other in distance.axes:
                    if other in axes[:-1]:
                        budget -= distance.cost(points[:, axes.index(other)])
                    elif other != axis:
                        budget -= self._least(distance, other)
                width = distance.width(budget)
                lo, hi = np.maximum(lo, -width), np.minimum(hi, width)
                hi = np.where(width < 0, lo - 1, hi)
        return lo, hi

    def _extend(self, points: Int64Array, axes: Sequence[int]) -> Int64Array:
        """Offsets on all but the last of ``axes``, with what is allowed on that one."""
        axis = axes[-1]
        lo, hi = self._limits_at(points, axes)
        lists = [entry for entry in self.lists if axis in entry.axes]
        if not lists:
            return expanded(Runs(points, lo, hi))
        values = np.unique(lists[0].column(axis))
        check_size(len(points) * len(values))
        row, column = np.nonzero((lo[:, None] <= values) & (values <= hi[:, None]))
        result = np.column_stack([points[row], values[column]])
        for entry in lists:
            known = [a for a in entry.axes if a in axes]
            result = result[entry.mask(known, [result[:, axes.index(a)] for a in known])]
        return result

    def _unique(self, listed: Int64Array) -> Int64Array:
        moduli = self.moduli
        residues = listed.copy()
        for axis, modulus in enumerate(moduli):
            if modulus is not None:
                residues[:, axis] %= modulus
        kept = np.arange(len(listed))
        if any(modulus is not None for modulus in moduli) and len(listed):
            kept = np.sort(np.unique(residues, axis=0, return_index=True)[1])
        if self.excludes_self:
            kept = kept[~_all_zero(list(residues[kept].T))]
        return listed[kept]


def _all_zero(components: Sequence[npt.NDArray[Any]]) -> BoolArray:
    result: BoolArray = np.ones(np.broadcast_shapes(*(x.shape for x in components)), bool)
    for x in components:
        result &= x == 0
    return result
