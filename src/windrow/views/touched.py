"""Which results a change can reach: boxes of changed cells, followed upwards through the steps of a query.

Everything outside these boxes is as it was. Both the query as it stood before and as it stands now are asked, for a
neighbourhood that was left behind is as much changed as one that was entered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from windrow.model.box import Box
from windrow.model.window import LabelExtent
from windrow.plan.axes import label_ranges
from windrow.plan.bound import (
    Bound,
    BoundColumns,
    BoundCount,
    BoundFilter,
    BoundJoin,
    BoundJoined,
    BoundNamed,
    BoundPairs,
    BoundRound,
    BoundScan,
    BoundSelection,
    BoundTotals,
    BoundWindow,
)
from windrow.plan.grouping.positions import BoundPositions, BoundRepeated, at_positions
from windrow.plan.operators import BoundOperated
from windrow.plan.windows import WindowPlan
from windrow.views.regions import merge_boxes, project, stretch
from windrow.views.touched_joins import touched_left

Changed = Mapping[str, Sequence[Box]]
"""For each array that changed, where."""


class AnotherQueryError(Exception):
    """The query has other steps now: what it was says nothing of what it is."""


def find_touched(before: Bound, after: Bound, changed: Changed) -> list[Box]:
    """Boxes of results that may not be as they were."""
    if type(before) is not type(after):
        raise AnotherQueryError(f"{type(before).__name__} became {type(after).__name__}")
    found = _RULES[type(after)](before, after, changed)
    # Where cells are only passed on, boxes are as they were put together below.
    return found if isinstance(after, _PASSED_ON) else merge_boxes(found)


def _scan(before: BoundNamed, after: BoundNamed, changed: Changed) -> list[Box]:
    return list(changed.get(after.name, ()))


def _positions(before: BoundPositions, after: BoundPositions, changed: Changed) -> list[Box]:
    return [at_positions(box, after.schema, after.axes) for box in find_touched(before.source, after.source, changed)]


def _cellwise(before: Bound, after: Bound, changed: Changed) -> list[Box]:
    """Steps that leave cells where they are."""
    (old,), (new,) = before.inputs(), after.inputs()
    return find_touched(old, new, changed)


def _selection(before: BoundSelection, after: BoundSelection, changed: Changed) -> list[Box]:
    reach = before.box | after.box
    return [box & reach for box in find_touched(before.source, after.source, changed)]


def _round(before: BoundRound, after: BoundRound, changed: Changed) -> list[Box]:
    if (before.axis, before.seam, before.skip) != (after.axis, after.seam, after.skip):
        raise AnotherQueryError("a range that goes round begins elsewhere")
    found = find_touched(before.source, after.source, changed)
    return [stretch(box, after.axis, after.box) & after.box for box in found]


def _whole(before: Bound, after: Bound, changed: Changed) -> list[Box]:
    return (
        [after.box]
        if any(find_touched(o, n, changed) for o, n in zip(before.inputs(), after.inputs(), strict=True))
        else []
    )


def _totals(before: BoundTotals, after: BoundTotals, changed: Changed) -> list[Box]:
    found = find_touched(before.source, after.source, changed)
    if not after.axes:
        return [after.box] if found else []
    return project(found, after.axes)


def _window(before: BoundWindow, after: BoundWindow, changed: Changed) -> list[Box]:
    found = find_touched(before.source, after.source, changed)
    reached = [_reached_by(box, bound) for box in found for bound in (before, after)]
    if after.schema.sparse or before.box != after.box:
        # A result is there where a cell is, and its window need not hold that cell.
        reached += [_positions_in(box, bound.plan) for box in found for bound in (before, after)]
    return [*reached, *_other_borders(before, after)]


def _positions_in(box: Box, plan: WindowPlan) -> Box:
    """The results of the positions in a box that are evaluated."""
    inside = box & plan.bounds
    return inside if inside.is_empty else _stepped(inside, plan.bounds.lo, plan.window.step)


def _reached_by(box: Box, bound: BoundWindow) -> Box:
    """The results whose windows hold a cell of a box."""
    plan, lo, hi = bound.plan, [], []
    for axis, (name, extent) in enumerate(zip(plan.window.dimensions, plan.resolved.extents, strict=True)):
        first, last, step = plan.bounds.lo[axis], plan.bounds.hi[axis], plan.window.step[axis]
        if isinstance(extent, LabelExtent):
            lows, highs = label_ranges(extent, dict(plan.labels)[name])
            holding = np.flatnonzero((first + lows <= box.hi[axis]) & (first + highs >= box.lo[axis]))
            low, high = (first + int(holding[0]), first + int(holding[-1])) if len(holding) else (first, first - 1)
        else:
            low, high = box.lo[axis] - extent.stop, box.hi[axis] - extent.start
            if extent.wraps and (low < first or high > last):
                low, high = first, last
        low, high = max(first, low), min(last, high)
        lo.append(first + -(-(low - first) // step))
        hi.append(first + (high - first) // step)
    return Box(tuple(lo), tuple(hi))


def _other_borders(before: BoundWindow, after: BoundWindow) -> list[Box]:
    """Results that lay at a border, where windows that are not whole give none, and do not any more."""
    if after.plan.window.boundary != "drop" or before.box.is_empty or after.box.is_empty:
        return []
    found = []
    for axis in range(after.schema.ndim):
        lo = max(before.box.lo[axis], after.box.lo[axis])
        hi = min(before.box.hi[axis], after.box.hi[axis])
        if hi < lo:
            continue
        flags = [bound.plan.outside(axis, lo, hi) for bound in (before, after)]
        places = np.flatnonzero(flags[0] != flags[1])
        if len(places):
            low, high = list(after.box.lo), list(after.box.hi)
            low[axis], high[axis] = lo + int(places[0]), lo + int(places[-1])
            found.append(Box(tuple(low), tuple(high)))
    return found


def _operated(before: BoundOperated, after: BoundOperated, changed: Changed) -> list[Box]:
    """The blocks of a user's operator that hold a changed cell in their halo; at a border that moved, too."""
    found = find_touched(before.source, after.source, changed)
    if before.halo != after.halo:
        raise AnotherQueryError("an operator has another halo")
    return [box.dilate(after.halo, after.halo) & after.box for box in found]


def _joined(before: BoundJoined, after: BoundJoined, changed: Changed) -> list[Box]:
    cells = touched_left(before.source, after.source, changed, find_touched)
    if not after.groups:
        return [after.box] if cells else []
    names = after.source.sides[0].schema.dimension_names
    axes = [names.index(g.name) if g.qualifier == "side1" else None for g in after.groups]
    boxes = []
    for box in cells:
        lo = [after.box.lo[k] if axis is None else box.lo[axis] for k, axis in enumerate(axes)]
        hi = [after.box.hi[k] if axis is None else box.hi[axis] for k, axis in enumerate(axes)]
        boxes.append(Box(tuple(lo), tuple(hi)))
    if not after.step:
        return boxes
    return [_stepped(box, after.source.sides[0].schema.lo, after.step) for box in boxes]


def _stepped(box: Box, first: Sequence[int], step: Sequence[int]) -> Box:
    """The numbers of the positions in a box that are evaluated."""
    lo = tuple(f - (-(at - f) // s) for at, f, s in zip(box.lo, first, step, strict=True))
    return Box(lo, tuple(f + (at - f) // s for at, f, s in zip(box.hi, first, step, strict=True)))


def _pairs(before: BoundPairs, after: BoundPairs, changed: Changed) -> list[Box]:
    cells = touched_left(before.source, after.source, changed, find_touched)
    rest = slice(cells[0].ndim if cells else 0, None)
    return [Box(box.lo + after.box.lo[rest], box.hi + after.box.hi[rest]) for box in cells]


def _anti(before: BoundJoin, after: BoundJoin, changed: Changed) -> list[Box]:
    return touched_left(before, after, changed, find_touched)


_PASSED_ON = (BoundScan, BoundRepeated, BoundFilter, BoundColumns, BoundJoin)

_RULES: Mapping[type[Bound], Callable[[Any, Any, Changed], list[Box]]] = {
    BoundScan: _scan,
    BoundRepeated: _scan,
    BoundPositions: _positions,
    BoundSelection: _selection,
    BoundFilter: _cellwise,
    BoundColumns: _cellwise,
    BoundRound: _round,
    BoundCount: _whole,
    BoundTotals: _totals,
    BoundWindow: _window,
    BoundOperated: _operated,
    BoundJoined: _joined,
    BoundPairs: _pairs,
    BoundJoin: _anti,
}
