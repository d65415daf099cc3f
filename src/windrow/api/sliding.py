"""Windows on NumPy arrays, with no database: ``wr.sliding(values, agg="max", window=(2, 3))``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate, parse_aggregate
from windrow.aggregates.evaluate import METHODS, Column, Evaluation
from windrow.errors import DataError, SchemaError
from windrow.kernels.sweep import Sweep
from windrow.model.conform import conform
from windrow.model.schema import Attribute
from windrow.model.types import data_type_of
from windrow.model.window import BOUNDARIES, Extent, centred, corner, trailing
from windrow.plan.axes import plan_axis

Array = npt.NDArray[Any]
ANCHORS = {"corner": corner, "centred": centred, "centered": centred, "trailing": trailing}


def sliding(
    values: Any,
    agg: str | Aggregate,
    window: int | Sequence[int | Extent],
    anchor: str | Sequence[str] = "corner",
    *,
    boundary: str = "clip",
    wrap: bool | Sequence[bool] = False,
    min_count: int = 0,
    step: int | Sequence[int] = 1,
    method: str = "auto",
) -> Array:
    """An aggregate over the window at every cell of an array.

    ``window`` has a width, or an extent such as ``wr.between(-1, 2)``, for each axis; ``anchor`` says where in its
    window a cell stands. Missing values (NaN, masked) are skipped; missing results are NaN, and whole numbers stay
    whole where nothing is missing.

    >>> sliding(np.array([4, 7, 3, 1, 8]), "max", 3)
    array([7, 7, 8, 8, 8])
    """
    column = _column(values)
    ndim = column.values.ndim
    aggregate = parse_aggregate(agg) if isinstance(agg, str) else agg
    extents = _extents(window, anchor, _each(wrap, ndim, "wrap"), ndim)
    steps = [_positive(s, "a step") for s in _each(step, ndim, "step")]
    if boundary not in BOUNDARIES:
        raise SchemaError("boundary must be one of " + ", ".join(BOUNDARIES), got=repr(boundary))
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
    shape = column.values.shape
    if 0 in shape:
        return _empty(aggregate, column, [-(-n // s) for n, s in zip(shape, steps, strict=True)])
    plans = [
        plan_axis(extent, s, (0, -(-n // s) - 1), (0, n - 1))
        for extent, s, n in zip(extents, steps, shape, strict=True)
    ]
    for axis, plan in enumerate(plans):
        if plan.take is not None:
            column = Column(np.take(column.values, plan.take, axis), _take(column.present, plan.take, axis))
    outside = [_outside(e, p.sweep.count, s, n) for e, p, s, n in zip(extents, plans, steps, shape, strict=True)]
    # What an axis plan would leave unread at a border is simply swept past here: nothing is cut off.
    sweeps = [
        p.sweep if p.take is not None or e.wraps else Sweep(0, p.sweep.count, e.start, e.stop, s)
        for p, e, s in zip(plans, extents, steps, strict=True)
    ]
    evaluation = Evaluation({"x": column}, column.values.shape, sweeps, method, min_count, boundary == "drop", outside)
    return evaluation.result(aggregate.of("x")).filled()


def _column(values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim == 0:
        raise DataError("there is no axis to slide along", got="a single value")
    kind = data_type_of(array.dtype)
    plain, present = conform(array, Attribute("x", kind, nullable=True))
    if present is not None and present.all():
        present = None
    return Column(np.ascontiguousarray(plain), present)


def _each(value: Any, ndim: int, what: str) -> list[Any]:
    if isinstance(value, (str, bool, int, np.integer)):
        return [value] * ndim
    listed = list(value)
    if len(listed) != ndim:
        raise SchemaError(f"{what} needs one entry for each of {ndim} axes", got=len(listed))
    return listed


def _positive(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise SchemaError(f"{what} must be an integer of at least 1", got=repr(value))
    return int(value)


def _extents(window: Any, anchor: Any, wraps: list[bool], ndim: int) -> list[Extent]:
    if isinstance(window, (int, np.integer)) and ndim > 1:
        raise SchemaError(f"the window needs a width for each of {ndim} axes", got=window, hint=f"As in {(3,) * ndim}")
    widths = _each(window, ndim, "window")
    extents = []
    for width, name, wraps_here in zip(widths, _each(anchor, ndim, "anchor"), wraps, strict=True):
        if isinstance(width, Extent):
            extent = width
        elif name not in ANCHORS:
            raise SchemaError("anchor must be one of " + ", ".join(ANCHORS), got=repr(name))
        else:
            extent = ANCHORS[name](_positive(width, "a window's width"))
        extents.append(extent.wrap() if wraps_here and not extent.wraps else extent)
    return extents


def _take(present: Any, index: Any, axis: int) -> Any:
    return None if present is None else np.take(present, index, axis)


def _outside(extent: Extent, count: int, step: int, length: int) -> Any:
    position = np.arange(count) * step
    if extent.wraps:
        return np.zeros(count, bool)
    return (position + extent.start < 0) | (position + extent.stop > length - 1)


def _empty(aggregate: Aggregate, column: Column, shape: Sequence[int]) -> Array:
    found = data_type_of(column.values.dtype)
    aggregate.definition.check_type(found)
    return np.empty(shape, aggregate.definition.result(found).dtype)
