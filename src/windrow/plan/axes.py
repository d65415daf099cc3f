"""How a window meets the cells of one dimension: what to read for a range of results, and how to sweep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError
from windrow.kernels.contract.sweeps import AnySweep, Sweep, VariableSweep
from windrow.model.labels import Labels
from windrow.model.window import Extent, LabelExtent, Window

Span = tuple[int, int]
Int64Array = npt.NDArray[np.int64]

FAR = 2**40
"""An offset that reaches past both ends of any dimension that fits into memory."""


@dataclass(frozen=True, eq=False)
class AxisPlan:
    """Read the cells from ``lo`` to ``hi``; take some of them again where the dimension is periodic; sweep."""

    lo: int
    hi: int
    sweep: AnySweep
    take: Int64Array | None = None  # positions in what was read, in the order in which the window walks them

    @property
    def cells(self) -> int:
        return self.hi - self.lo + 1


def plan_axis(extent: Extent, step: int, results: Span, bounds: Span) -> AxisPlan:
    """A window given in cells, for the results from ``results[0]`` to ``results[1]``."""
    first = bounds[0] + (results[0] - bounds[0]) * step
    count = results[1] - results[0] + 1
    last = first + (count - 1) * step
    if extent.wraps:
        return _plan_periodic(extent, step, first, last, count, bounds)
    lo, hi = max(bounds[0], first + extent.start), min(bounds[1], last + extent.stop)
    if hi < lo:  # every window lies outside the array: one cell is read, none is used
        lo = hi = min(max(first, bounds[0]), bounds[1])
    return AxisPlan(lo, hi, Sweep(first - lo, count, extent.start, extent.stop, step))


def _plan_periodic(extent: Extent, step: int, first: int, last: int, count: int, bounds: Span) -> AxisPlan:
    length = bounds[1] - bounds[0] + 1
    if extent.stop - extent.start + 1 >= length:
        # Each cell counts once, so every window is the whole dimension.
        return AxisPlan(*bounds, Sweep(0, count, -FAR, FAR, 1))
    walked = np.arange(first + extent.start, last + extent.stop + 1, dtype=np.int64)
    sweep = Sweep(-extent.start, count, extent.start, extent.stop, step)
    if bounds[0] <= walked[0] and walked[-1] <= bounds[1]:
        return AxisPlan(int(walked[0]), int(walked[-1]), sweep)
    return AxisPlan(*bounds, sweep, (walked - bounds[0]) % length)


def plan_label_axis(extent: LabelExtent, step: int, results: Span, bounds: Span, labels: Labels) -> AxisPlan:
    """A window given in label units, where labels do not lie at equal steps."""
    if extent.wraps:
        raise SchemaError("a window in label units cannot wrap where labels do not lie at equal steps", got=str(extent))
    lows, highs = label_ranges(extent, labels)
    positions = (np.arange(results[0], results[1] + 1, dtype=np.int64) - bounds[0]) * step
    lo, hi = lows[positions], highs[positions]
    start = min(int(lo.min()), int(positions[0]))
    stop = max(int(hi.max()), start)
    return AxisPlan(bounds[0] + start, bounds[0] + stop, VariableSweep(lo - start, hi - start))


def label_ranges(extent: LabelExtent, labels: Labels) -> tuple[Int64Array, Int64Array]:
    """For each cell, the first and last position of its window.

    As with numbers of cells, a window of 30 days over daily labels holds 30 of them: what is exactly 30 days away is
    outside. ``within`` reaches just as far both ways, and takes in what lies on its border.
    """
    before, after = _label_reach(extent, labels)
    open_before, open_after = extent.anchor == "trailing", extent.anchor in ("corner", "centred")
    return labels.neighbour_ranges(before, after, open_before=open_before, open_after=open_after)


def label_outside(extent: LabelExtent, labels: Labels) -> npt.NDArray[np.bool_]:
    """For each cell, whether its window reaches past the first or the last label."""
    return labels.reaching_outside(*_label_reach(extent, labels))


def _label_reach(extent: LabelExtent, labels: Labels) -> tuple[int | float, int | float]:
    amount = labels.parse_extent(f"{extent.amount} {extent.unit}".strip())
    if extent.anchor == "within":
        return amount, amount
    if extent.anchor == "centred":
        return amount / 2, amount / 2
    return (amount, 0) if extent.anchor == "trailing" else (0, amount)


def in_cells(window: Window, labels: Mapping[str, Labels]) -> Window:
    """The window with label units turned into cells wherever labels lie at equal steps."""
    extents = []
    for name, extent in zip(window.dimensions, window.extents, strict=True):
        if isinstance(extent, LabelExtent):
            if name not in labels:
                raise SchemaError(f"dimension {name} has no labels", got=str(extent), hint="Give a number of cells")
            extents.append(_regular(extent, labels[name]))
        else:
            extents.append(extent)
    return replace(window, extents=tuple(extents))


def _regular(extent: LabelExtent, labels: Labels) -> Extent | LabelExtent:
    if len(labels) < 2 or not labels.is_regular:
        return extent
    lows, highs = label_ranges(extent, labels)
    positions = np.arange(len(labels), dtype=np.int64)
    # Windows at the ends are clipped; the widest ones, in between, show how far the window reaches.
    found = Extent(int((lows - positions).min()), int((highs - positions).max()))
    return found.wrap() if extent.wraps else found
