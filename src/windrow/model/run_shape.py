"""Shapes that are known by their runs, such as what two shapes differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from windrow.model.bound_shape import BoundShape
from windrow.model.distances import BoolArray, Int64Array
from windrow.model.offset_runs import KeyRuns, Runs, expanded

Span = tuple[int, int]


@dataclass(frozen=True)
class RunShape(BoundShape):
    """Offsets as runs along the last of ``axes``: a row of the leading offsets, the first and the last one each.

    Dimensions that are not among the axes are free. Offsets along periodic dimensions are the nearest to 0.
    """

    axes: tuple[int, ...] = ()
    rows_of_runs: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def _runs(self) -> KeyRuns:
        rows = np.array(self.rows_of_runs, np.int64).reshape(len(self.rows_of_runs), max(0, len(self.axes) - 1) + 2)
        return KeyRuns(self.axes, rows[:, :-2].copy(), rows[:, -2].copy(), rows[:, -1].copy())

    def key_runs(self) -> KeyRuns:
        return self._runs

    @property
    def is_empty(self) -> bool:
        return not self.rows_of_runs

    def bounds(self) -> tuple[Span, ...]:
        """The range of offsets that runs have along each dimension."""
        if self.is_empty:
            return ((0, -1),) * self.ndim
        return tuple(zip(self.start, self.stop, strict=True))

    def reflect(self) -> RunShape:
        """The offsets from a neighbour back to the cell."""
        rows = sorted((*(-offset for offset in row[:-2]), -row[-1], -row[-2]) for row in self.rows_of_runs)
        return replace(
            self,
            start=tuple(-stop for stop in self.stop),
            stop=tuple(-start for start in self.start),
            labelled=tuple(one.reflect() for one in self.labelled),
            rows_of_runs=tuple(rows),
        )

    def offsets(self) -> Int64Array:
        runs = self._runs
        return expanded(Runs(runs.leading, runs.first, runs.last))

    def _mask(self, components: list[Int64Array]) -> BoolArray:
        runs = self._runs
        result: BoolArray = np.zeros(np.broadcast_shapes(*(x.shape for x in components)), bool)
        for leading, first, last in zip(runs.leading, runs.first, runs.last, strict=True):
            found: BoolArray = np.ones(result.shape, bool)
            for axis, offset in zip(self.axes[:-1], leading, strict=True):
                found &= components[axis] == offset
            if self.axes:
                found &= (components[self.axes[-1]] >= first) & (components[self.axes[-1]] <= last)
            result |= found
        return result


def shape_difference(one: BoundShape, other: BoundShape, within: Sequence[Span]) -> RunShape:
    """The offsets of one shape that are not in another; both take the cell itself, or neither does.

    ``within`` has for each dimension the offsets between cells that there are, beyond which nothing is listed.
    """
    runs = one.difference(other)
    first, last = runs.first, runs.last
    searched = one.searched
    if runs.axes and not one.wraps[runs.axes[-1]] and (searched is None or searched.axis != runs.axes[-1]):
        lo, hi = within[runs.axes[-1]]
        first, last = np.maximum(first, lo), np.minimum(last, hi)
    kept = first <= last
    rows = np.column_stack([runs.leading, first, last])[kept]
    start, stop = list(one.start), list(one.stop)
    free = [axis not in runs.axes and is_free for axis, is_free in enumerate(one.free)]
    for place, axis in enumerate(runs.axes):
        if searched is not None and axis == searched.axis:
            continue  # the runs say nothing there: labels do
        columns = (rows[:, place], rows[:, place]) if place < len(runs.axes) - 1 else (rows[:, -2], rows[:, -1])
        start[axis] = int(columns[0].min(initial=0)) if len(rows) else 0
        stop[axis] = int(columns[1].max(initial=0)) if len(rows) else -1
    return RunShape(
        **{name: getattr(one, name) for name in BoundShape.__dataclass_fields__}
        | {"start": tuple(start), "stop": tuple(stop), "distances": (), "lists": (), "free": tuple(free)},
        axes=runs.axes,
        rows_of_runs=tuple(map(tuple, rows.tolist())),
    )
