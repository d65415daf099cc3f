"""A shape on an array's dimensions: membership, enumeration and reach of its offsets.

Enumeration goes dimension by dimension. Given the offset in the leading dimensions, every norm allows one interval in
the next, so the offsets come as runs in the last dimension without testing the whole box around them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError
from windrow.model.box import Box
from windrow.model.halo import UNLIMITED, Reach
from windrow.model.offset_runs import Int64Array, Runs, as_runs, check_size, expanded, without_self

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Distance:
    """The components on ``axes`` cost at most ``limit`` together: |x| in L1, x² in L2, 1 if not 0 in Hamming."""

    kind: str
    limit: int
    axes: tuple[int, ...]

    def cost(self, component: Int64Array) -> Int64Array:
        if self.kind == "Hamming":
            return np.asarray(component != 0, np.int64)
        cost: Int64Array = component * component if self.kind == "L2" else np.abs(component)
        return cost

    def width(self, budget: Int64Array) -> Int64Array:
        """The longest component that costs at most ``budget``, or -1 if none does."""
        if self.kind == "L1":
            return np.maximum(budget, -1)
        if self.kind == "Hamming":
            return np.where(budget >= 1, UNLIMITED, np.where(budget == 0, 0, -1))
        root = np.sqrt(np.maximum(budget, 0)).astype(np.int64)
        root -= root * root > budget
        root += (root + 1) * (root + 1) <= budget
        return np.where(budget < 0, -1, root)


@dataclass(frozen=True, slots=True)
class Listed:
    """The components on ``axes``, ascending, are one of the sorted ``rows``."""

    rows: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]

    def column(self, axis: int) -> Int64Array:
        return np.array([row[self.axes.index(axis)] for row in self.rows], np.int64)

    def mask(self, components: Sequence[Int64Array]) -> BoolArray:
        """Where the components, for the first of the axes or all of them, are the start of a row."""
        shape = np.broadcast_shapes(*(c.shape for c in components))
        found = np.full(shape, bool(self.rows))
        codes, listed = np.zeros(shape, np.int64), np.zeros(len(self.rows), np.int64)
        for axis, component in zip(self.axes, components, strict=False):
            if not self.rows:
                break
            # Numbering the listed values, then the pairs met so far, keeps codes small however far offsets reach.
            values, ranks = np.unique(self.column(axis), return_inverse=True)
            place = np.minimum(np.searchsorted(values, component), len(values) - 1)
            found &= values[place] == component
            pairs, listed = np.unique(listed * len(values) + ranks, return_inverse=True)
            wanted = codes * len(values) + place
            codes = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            found &= pairs[codes] == wanted
        return found


@dataclass(frozen=True)
class BoundShape:
    """Offsets between ``start`` and ``stop`` that satisfy all distances and lists.

    In a periodic dimension offsets count modulo its extent, and each neighbour is listed once.
    """

    dimensions: tuple[str, ...]
    start: tuple[int, ...]
    stop: tuple[int, ...]
    distances: tuple[Distance, ...]
    lists: tuple[Listed, ...]
    extents: tuple[int | None, ...]
    wraps: tuple[bool, ...]
    excludes_self: bool

    @property
    def ndim(self) -> int:
        return len(self.dimensions)

    @property
    def size(self) -> int:
        """Number of offsets."""
        runs = self.rows()
        return sum(int(last) - int(first) + 1 for first, last in zip(runs.first, runs.last, strict=True))

    def contains(self, offset: Sequence[int]) -> bool:
        """Whether the cell at an offset is a neighbour."""
        return bool(self.mask([np.asarray(component, np.int64) for component in offset]))

    def mask(self, components: Sequence[npt.ArrayLike]) -> BoolArray:
        """Where offsets, given as one array per dimension, lead to neighbours."""
        if len(components) != self.ndim:
            raise SchemaError(f"an offset needs {self.ndim} components", got=len(components))
        given = [np.asarray(component, np.int64) for component in components]
        moduli = self._moduli()
        residues = [x if n is None else x % n for x, n in zip(given, moduli, strict=True)]
        result = np.zeros(np.broadcast_shapes(*(x.shape for x in given)), bool)
        if self._infeasible():
            return result
        for turns in itertools.product(*(self._turns(axis, n) for axis, n in enumerate(moduli))):
            result |= self._mask([x + turn * (n or 0) for x, turn, n in zip(residues, turns, moduli, strict=True)])
        return result & ~_all_zero(residues) if self.excludes_self else result

    def bounds(self) -> tuple[tuple[int, int], ...]:
        """Per dimension the range of offsets; it may be wider than needed for lists and without the cell itself."""
        if self._infeasible():
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
        return self._unique(expanded(self._runs()))

    def rows(self) -> Runs:
        """The offsets as runs in the last dimension, in row-major order."""
        moduli = self._moduli()
        ranges = zip(self.start, self.stop, moduli, strict=True)
        if any(n is not None and (hi - lo >= n or lo <= -n or hi >= n) for lo, hi, n in ranges):
            return as_runs(self.offsets())
        runs = self._runs()
        return without_self(runs) if self.excludes_self else runs

    def reflect(self) -> BoundShape:
        """The offsets from a neighbour back to the cell."""
        lists = [
            Listed(tuple(sorted(tuple(-o for o in row) for row in entry.rows)), entry.axes) for entry in self.lists
        ]
        lists.sort(key=lambda entry: (entry.axes, entry.rows))
        start, stop = tuple(-s for s in self.stop), tuple(-s for s in self.start)
        return replace(self, start=start, stop=stop, lists=tuple(lists))

    def difference(self, other: BoundShape) -> Int64Array:
        """The offsets that are not in ``other``, in row-major order."""
        if self.dimensions != other.dimensions:
            raise SchemaError("shapes on different dimensions cannot be compared", got=", ".join(other.dimensions))
        listed = self.offsets()
        return listed[~other.mask(list(listed.T))]

    def symmetric_difference(self, other: BoundShape) -> tuple[Int64Array, Int64Array]:
        """The offsets in this shape alone, and those in ``other`` alone."""
        return self.difference(other), other.difference(self)

    @property
    def reach(self) -> Reach:
        bounds = self.bounds()
        return Reach(tuple(lo for lo, _ in bounds), tuple(hi for _, hi in bounds), self.wraps)

    def halo(self, box: Box, bounds: Box) -> Box:
        """A box that holds the neighbours of ``box``; whole in a periodic dimension that is crossed."""
        empty = Box.at(bounds.lo, [0] * self.ndim)
        return empty if self._infeasible() else self.reach.halo(box, bounds)

    def halo_boxes(self, box: Box, bounds: Box) -> list[Box]:
        """Disjoint boxes that hold the neighbours of ``box``, in the order of walking through the halo."""
        return [] if self._infeasible() else self.reach.halo_boxes(box, bounds)

    def affected(self, box: Box, bounds: Box) -> Box:
        """A box that holds the cells that have a neighbour in ``box``."""
        return self.reflect().halo(box, bounds)

    def affected_boxes(self, box: Box, bounds: Box) -> list[Box]:
        """Disjoint boxes that hold the cells that have a neighbour in ``box``."""
        return self.reflect().halo_boxes(box, bounds)

    def _moduli(self) -> tuple[int | None, ...]:
        return tuple(max(1, n or 0) if wraps else None for n, wraps in zip(self.extents, self.wraps, strict=True))

    def _turns(self, axis: int, modulus: int | None) -> list[int]:
        """How many times round a residue must go to reach the range of offsets."""
        if modulus is None:
            return [0]
        listed = [entry.column(axis) // modulus for entry in self.lists if axis in entry.axes]
        if listed:
            return [int(turn) for turn in np.unique(listed[0])]
        return list(range(-((modulus - 1 - self.start[axis]) // modulus), self.stop[axis] // modulus + 1))

    def _least(self, distance: Distance, axis: int) -> int:
        lo, hi = self.start[axis], self.stop[axis]
        nearest_zero = 0 if lo <= 0 <= hi else min(lo, hi, key=abs)
        return int(distance.cost(np.asarray(nearest_zero)))

    def _infeasible(self) -> bool:
        if any(lo > hi for lo, hi in zip(self.start, self.stop, strict=True)):
            return True
        return any(sum(self._least(d, axis) for axis in d.axes) > d.limit for d in self.distances)

    def _mask(self, components: list[Int64Array]) -> BoolArray:
        ranges = list(zip(components, self.start, self.stop, strict=True))
        result: BoolArray = np.ones(np.broadcast_shapes(*(x.shape for x in components)), bool)
        for x, lo, hi in ranges:
            result &= (lo <= x) & (x <= hi)
        near = [np.clip(x, lo, hi) for x, lo, hi in ranges]  # so that squares of what is outside cannot overflow
        for distance in self.distances:
            result &= sum((distance.cost(near[axis]) for axis in distance.axes), np.int64(0)) <= distance.limit
        for entry in self.lists:
            result &= entry.mask([components[axis] for axis in entry.axes])
        return result

    def _runs(self) -> Runs:
        points = np.zeros((0 if self._infeasible() else 1, 0), np.int64)
        for axis in range(self.ndim - 1):
            points = self._extended(points, axis)
        last = self.ndim - 1
        if any(last in entry.axes for entry in self.lists):
            return as_runs(self._extended(points, last))
        lo, hi = self._allowed(points, last)
        kept = lo <= hi
        return Runs(points[kept], lo[kept], hi[kept])

    def _allowed(self, points: Int64Array, axis: int) -> tuple[Int64Array, Int64Array]:
        """The interval on ``axis`` for each offset in the dimensions before it."""
        lo = np.full(len(points), self.start[axis], np.int64)
        hi = np.full(len(points), self.stop[axis], np.int64)
        for distance in self.distances:
            if axis in distance.axes:
                budget = np.full(len(points), distance.limit, np.int64)
                for other in distance.axes:
                    if other < axis:
                        budget -= distance.cost(points[:, other])
                    elif other > axis:
                        budget -= self._least(distance, other)
                width = distance.width(budget)
                lo, hi = np.maximum(lo, -width), np.minimum(hi, width)
                hi = np.where(width < 0, lo - 1, hi)
        return lo, hi

    def _extended(self, points: Int64Array, axis: int) -> Int64Array:
        lo, hi = self._allowed(points, axis)
        lists = [entry for entry in self.lists if axis in entry.axes]
        if not lists:
            return expanded(Runs(points, lo, hi))
        values = np.unique(lists[0].column(axis))
        check_size(len(points) * len(values))
        row, column = np.nonzero((lo[:, None] <= values) & (values <= hi[:, None]))
        result = np.column_stack([points[row], values[column]])
        for entry in lists:
            result = result[entry.mask([result[:, a] for a in entry.axes if a <= axis])]
        return result

    def _unique(self, listed: Int64Array) -> Int64Array:
        moduli = self._moduli()
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
