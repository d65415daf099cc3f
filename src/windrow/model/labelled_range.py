"""Ranges of offsets in label units: how many cells they hold differs from cell to cell."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError
from windrow.model.coordinates import Coordinate, GridCoordinate
from windrow.model.labels import Labels
from windrow.model.shape_terms import LabelEnd, negative
from windrow.model.units import parse_quantity

Int64Array = npt.NDArray[np.int64]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LabelledRange:
    """Along ``axis``, cells whose label lies from ``start`` to ``stop``, both inclusive, after that of the centre.

    ``alone`` says that no other term speaks of the axis.
    """

    axis: int
    start: LabelEnd
    stop: LabelEnd
    alone: bool = True

    def reflect(self) -> LabelledRange:
        return replace(self, start=negative(self.stop), stop=negative(self.start))

    def ranges(self, centres: npt.ArrayLike, labels: Labels, bounds: Span) -> tuple[Int64Array, Int64Array]:
        """The first and last cell for each centre, first > last where there is none; both ascend as centres do.

        ``labels`` are those of the cells from ``bounds[0]`` on; a centre that has no label has no neighbours.
        """
        lows, highs = self._label_ranges(labels)
        positions = np.asarray(centres, np.int64) - bounds[0]
        count = len(labels)
        inside = (positions >= 0) & (positions < count)
        place = np.clip(positions, 0, max(0, count - 1))
        before, after = np.where(positions < 0, 0, count), np.where(positions < 0, -1, count - 1)
        if not count:
            return before + bounds[0], after + bounds[0]
        lo, hi = np.where(inside, lows[place], before), np.where(inside, highs[place], after)
        return lo + bounds[0], hi + bounds[0]

    def widest(self, labels: Labels) -> Span:
        """The least and the largest offset, in cells, from any cell to a neighbour; (0, -1) if no cell has one."""
        lows, highs = self._label_ranges(labels)
        held = np.flatnonzero(lows <= highs)
        if not len(held):
            return 0, -1
        return int((lows[held] - held).min()), int((highs[held] - held).max())

    def in_cells(self, coordinate: Coordinate) -> Span | None:
        """The range in cells, where all cells lie at one distance from the next; else None."""
        if isinstance(coordinate, GridCoordinate):
            axis = coordinate.axis
            if axis.kind == "datetime":
                ends = [Fraction(parse_quantity(end).microseconds) if end else Fraction() for end in self._ends]
            else:
                ends = [parse_quantity(end).degrees if end else Fraction() for end in self._ends]
            return _multiples(ends[0], ends[1], axis.step)
        step = _exact_step(coordinate.labels)
        if step is None:
            return None
        start, stop = (Fraction(coordinate.labels.parse_extent(end)) if end else Fraction() for end in self._ends)
        return _multiples(start, stop, Fraction(step))

    def check(self, name: str, coordinate: Coordinate) -> None:
        """Refuse labels without distances, units that are not theirs, and a range that ends before it starts."""
        if isinstance(coordinate, GridCoordinate):
            found = self.in_cells(coordinate)
            start, stop = (parse_quantity(end).value if end else Fraction() for end in self._ends)
            wrong = found is not None and start > stop
        else:
            self._label_ranges(coordinate.labels)
            before, after = self._reach(coordinate.labels)
            wrong = -before > after
        if wrong:
            raise SchemaError(f"the offsets along {name} end before they start", got=f"{self.start} to {self.stop}")

    @property
    def _ends(self) -> tuple[LabelEnd, LabelEnd]:
        return self.start, self.stop

    def _reach(self, labels: Labels) -> tuple[int | float, int | float]:
        start, stop = (labels.parse_extent(end) if end else 0 for end in self._ends)
        return -start, stop

    def _label_ranges(self, labels: Labels) -> tuple[Int64Array, Int64Array]:
        return labels.neighbour_ranges(*self._reach(labels))


def _exact_step(labels: Labels) -> int | None:
    """The one distance between neighbouring labels, where that is exact."""
    step = labels.step
    if isinstance(step, np.timedelta64):
        return int(step.astype(np.int64))
    return int(step) if isinstance(step, int | np.integer) else None


def _multiples(low: Fraction, high: Fraction, step: Fraction) -> Span:
    """The multiples of ``step``, by number, from ``low`` to ``high``."""
    if step < 0:
        low, high, step = -high, -low, -step
    return math.ceil(low / step), math.floor(high / step)
