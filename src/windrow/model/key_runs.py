"""Shapes as few runs, and their differences, without ever listing a range along the dimension of the widest one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windrow.errors import SchemaError
from windrow.model.distances import Int64Array
from windrow.model.halo import UNLIMITED, canonical_turn
from windrow.model.offset_runs import KeyRuns, Runs, subtract, wrapped_into

if TYPE_CHECKING:
    from windrow.model.bound_shape import BoundShape


def key_runs(shape: BoundShape) -> KeyRuns:
    """See BoundShape.key_runs."""
    axes = _order_axes([shape], [axis for axis in _bound_axes(shape) if not shape.free[axis]])
    runs = _runs(shape, axes)
    doubled = [axis for entry in shape.lists for axis in entry.axes if shape.wraps[axis] and axis in axes]
    if doubled:  # several listed offsets may be one neighbour
        runs = subtract(_nearest_turn(runs, shape, axes, doubled))
    return KeyRuns(axes, *runs)


def difference(one: BoundShape, other: BoundShape) -> KeyRuns:
    """See BoundShape.difference."""
    _check_comparable(one, other)
    if other.is_empty:
        return key_runs(one)
    open_axes = [axis for axis in _bound_axes(one) if not (one.free[axis] and other.free[axis])]
    axes = _order_axes([one, other], open_axes)
    mine, theirs = _unlimited(one, axes), _within(_unlimited(other, axes), one, axes)
    periodic = [axis for axis in axes if one.wraps[axis]]
    runs, taken = (_nearest_turn(_runs(shape, axes), shape, axes, periodic) for shape in (mine, theirs))
    return KeyRuns(axes, *subtract(runs, taken))


def _bound_axes(shape: BoundShape) -> list[int]:
    """The axes that offsets or the labels that are searched decide on."""
    searched = shape.searched
    checked = {one.axis for one in shape.checked if one.alone and searched is not None and one.axis != searched.axis}
    return [axis for axis in range(shape.ndim) if axis not in checked]


def _order_axes(shapes: Sequence[BoundShape], axes: list[int]) -> tuple[int, ...]:
    """The axes in their order, but the widest at the end; that in label units, if there is one."""
    if not axes:
        return ()
    searched = shapes[0].searched
    if searched is not None:
        widest = searched.axis
    else:
        widest = max(axes, key=lambda axis: (max(_width(shape, axis) for shape in shapes), axis))
    return (*(axis for axis in axes if axis != widest), widest)


def _width(shape: BoundShape, axis: int) -> int:
    """How many rows the axis would make if it were to lead."""
    if shape.free[axis]:
        return 2 * UNLIMITED
    listed = [len(np.unique(entry.column(axis))) for entry in shape.lists if axis in entry.axes]
    lo, hi = shape.bounds()[axis]
    return min([hi - lo + 1, *listed])


def _runs(shape: BoundShape, axes: tuple[int, ...]) -> Runs:
    """The runs along the last of the axes; of no length where labels decide there."""
    searched = shape.searched
    if axes and (searched is None or searched.axis != axes[-1]):
        return shape.runs_along(axes)
    points = shape.points_along(axes[:-1])
    nothing = np.zeros(len(points), np.int64)
    return Runs(points, nothing, nothing)


def _unlimited(shape: BoundShape, axes: tuple[int, ...]) -> BoundShape:
    """The shape without the array's limits where it is free along the last of the axes."""
    start, stop = list(shape.start), list(shape.stop)
    for axis in axes[-1:]:
        if shape.free[axis] and not shape.wraps[axis]:
            start[axis], stop[axis] = -UNLIMITED, UNLIMITED
    return replace(shape, start=tuple(start), stop=tuple(stop))


def _within(shape: BoundShape, other: BoundShape, axes: tuple[int, ...]) -> BoundShape:
    """The part of a shape that can meet another: what is far from that need not be listed."""
    start, stop = list(shape.start), list(shape.stop)
    for axis, (lo, hi) in enumerate(other.bounds()):
        if axis in axes[:-1] and not shape.wraps[axis]:
            free = shape.free[axis]
            start[axis], stop[axis] = (lo, hi) if free else (max(start[axis], lo), min(stop[axis], hi))
    return replace(shape, start=tuple(start), stop=tuple(stop))


def _nearest_turn(runs: Runs, shape: BoundShape, axes: tuple[int, ...], chosen: Sequence[int]) -> Runs:
    """The runs with the offsets on the chosen periodic axes replaced by those nearest to 0 that mean the same."""
    leading = runs.leading.copy()
    for place, axis in enumerate(axes[:-1]):
        modulus = shape.moduli[axis]
        if axis in chosen and modulus is not None:
            leading[:, place] = _nearest_residue(leading[:, place], modulus)
    found = Runs(leading, runs.first, runs.last)
    modulus = shape.moduli[axes[-1]] if axes else None
    if modulus is None or axes[-1] not in chosen:
        return found
    return wrapped_into(found, canonical_turn(0, modulus - 1, modulus)[0], modulus)


def _nearest_residue(offsets: Int64Array, modulus: int) -> Int64Array:
    start = canonical_turn(0, modulus - 1, modulus)[0]
    return start + (offsets - start) % modulus


def _check_comparable(one: BoundShape, other: BoundShape) -> None:
    if one.dimensions != other.dimensions:
        raise SchemaError("shapes on different dimensions cannot be compared", got=", ".join(other.dimensions))
    if one.moduli != other.moduli:
        raise SchemaError("shapes that differ in what is periodic cannot be compared", got=other.moduli)
    if one.labelled != other.labelled or one.sky != other.sky:
        hint = "Shapes that differ in cells alone can be compared"
        raise SchemaError("shapes that differ in label units or on the sky cannot be compared", hint=hint)
