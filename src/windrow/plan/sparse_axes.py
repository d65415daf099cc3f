"""How a window meets a dimension of a sparse array: which cells to read for a range of results, and where each looks.

A periodic dimension is *unwrapped*: cells that a window reaches beyond a border are read from the other side and given
the coordinate they would have if the dimension went on, so that what follows knows no borders.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.sweeps import AnySweep, Sweep, VariableSweep
from windrow.model.box import Box
from windrow.model.window import Extent, LabelExtent
from windrow.plan.axes import plan_axis, plan_label_axis
from windrow.plan.windows import WindowPlan

Int64Array = npt.NDArray[np.int64]
Span = tuple[int, int]

WIDER = 4
"""How many times wider than along the last dimension a window must be to be worth sorting the cells anew for."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The cells from ``lo`` to ``hi``, to be taken as if they lay ``shift`` further."""

    lo: int
    hi: int
    shift: int = 0


@dataclass(frozen=True, eq=False)
class CellAxis:
    """Results at the cells ``first + k * step`` up to ``last``; what to read for them, and where their windows are.

    The window of position p is from ``p + start`` to ``p + stop``; where the positions do not matter, it is ``whole``;
    where labels decide, ``listed`` has both ends for every k.
    """

    first: int
    last: int
    step: int
    pieces: tuple[Piece, ...]
    start: int = 0
    stop: int = 0
    whole: bool = False
    listed: tuple[Int64Array, Int64Array] | None = None
    outside: Span | npt.NDArray[np.bool_] | None = None
    """Windows leave the array at positions before the one and after the other; where labels decide, at those k."""

    @property
    def lo(self) -> int:
        """The first unwrapped coordinate."""
        return self.pieces[0].lo + self.pieces[0].shift

    @property
    def hi(self) -> int:
        return self.pieces[-1].hi + self.pieces[-1].shift

    @property
    def holds_positions(self) -> bool:
        """Whether what is read for the windows holds their own cells too, where they are."""
        return len(self.pieces) == 1 and self.lo <= self.first and self.last <= self.hi and not self.pieces[0].shift

    @property
    def width(self) -> int:
        """The most coordinates that a window can cover."""
        extent = self.hi - self.lo + 1
        if self.listed is not None:
            return int((self.listed[1] - self.listed[0] + 1).max(initial=0))
        return extent if self.whole else min(extent, self.stop - self.start + 1)

    def ranges(self, positions: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The first and last coordinate of the window at each position."""
        if self.whole:
            return np.full(len(positions), self.lo), np.full(len(positions), self.hi)
        if self.listed is not None:
            place = (positions - self.first) // self.step
            return self.listed[0][place], self.listed[1][place]
        # No further than one beyond what is read: sums of far offsets and far coordinates would leave int64.
        near, far = np.clip(positions + self.start, self.lo, self.hi + 1), positions + self.stop
        return near, np.clip(far, self.lo - 1, self.hi)

    def leaves(self, positions: Int64Array) -> npt.NDArray[np.bool_]:
        """At which positions the window leaves the array."""
        if self.outside is None:
            return np.zeros(len(positions), bool)
        if isinstance(self.outside, np.ndarray):
            return self.outside[(positions - self.first) // self.step]
        return np.asarray((positions < self.outside[0]) | (positions > self.outside[1]))

    def sweep(self) -> AnySweep:
        """The same for kernels on a grid that begins at ``lo``."""
        count = (self.last - self.first) // self.step + 1
        if self.whole:
            length = self.hi - self.lo + 1
            return VariableSweep(np.zeros(count, np.int64), np.full(count, length - 1))
        if self.listed is not None:
            return VariableSweep(self.listed[0] - self.lo, self.listed[1] - self.lo)
        return Sweep(self.first - self.lo, count, self.start, self.stop, self.step)


def cell_axes(plan: WindowPlan, results: Box) -> list[CellAxis]:
    """What to read, and where windows look, for a box of results, per dimension."""
    labels = dict(plan.labels)
    axes = []
    for axis, (name, extent) in enumerate(zip(plan.window.dimensions, plan.resolved.extents, strict=True)):
        span, bounds = (results.lo[axis], results.hi[axis]), (plan.bounds.lo[axis], plan.bounds.hi[axis])
        step = plan.window.step[axis]
        first, last = (bounds[0] + (result - bounds[0]) * step for result in span)
        if isinstance(extent, LabelExtent):
            found = plan_label_axis(extent, step, span, bounds, labels[name])
            lows, highs = found.sweep.clipped(found.cells)
            piece = Piece(found.lo, found.hi)
            listed, outside = (lows + found.lo, highs + found.lo), plan.outside(axis, *span)
            axes.append(CellAxis(first, last, step, (piece,), listed=listed, outside=outside))
        elif extent.is_any:
            axes.append(CellAxis(first, last, step, (Piece(*bounds),), whole=True))
        elif extent.wraps:
            axes.append(_periodic(extent, step, (first, last), bounds))
        else:
            read = plan_axis(extent, step, span, bounds)
            ends = (bounds[0] - extent.start, bounds[1] - extent.stop)
            piece = Piece(read.lo, read.hi)
            axes.append(CellAxis(first, last, step, (piece,), extent.start, extent.stop, outside=ends))
    return axes


def swept_dimension(axes: Sequence[CellAxis], forced: int | None) -> int:
    """Along which windows slide: the last, unless another is much wider (paper 002 §4.3) or forced."""
    if forced is not None:
        return forced
    last = len(axes) - 1
    widest = max(range(len(axes)), key=lambda number: (axes[number].width, number))
    return widest if axes[widest].width > WIDER * axes[last].width else last


def _periodic(extent: Extent, step: int, positions: Span, bounds: Span) -> CellAxis:
    lo, hi = bounds
    length = hi - lo + 1
    if extent.width >= length:  # each cell counts once, so every window is the whole dimension
        return CellAxis(*positions, step, (Piece(lo, hi),), whole=True)
    walked = (positions[0] + extent.start, positions[1] + extent.stop)
    pieces = []
    for turn in range((walked[0] - lo) // length, (walked[1] - lo) // length + 1):
        shift = turn * length
        pieces.append(Piece(max(lo, walked[0] - shift), min(hi, walked[1] - shift), shift))
    return CellAxis(*positions, step, tuple(pieces), extent.start, extent.stop)


def read_boxes(axes: Sequence[CellAxis]) -> list[tuple[Box, tuple[int, ...]]]:
    """The boxes of cells to read, and how far each is to be shifted."""
    boxes = []
    for pieces in itertools.product(*(axis.pieces for axis in axes)):
        box = Box(tuple(piece.lo for piece in pieces), tuple(piece.hi for piece in pieces))
        boxes.append((box, tuple(piece.shift for piece in pieces)))
    return boxes
