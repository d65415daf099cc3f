"""Windows on NumPy arrays, with no database: ``wr.sliding(values, agg="max", window=(2, 3))``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate, parse_aggregate
from windrow.aggregates.evaluate import METHODS, Column, Evaluation
from windrow.errors import DataError, SchemaError
from windrow.kernels.sweep import AnySweep, Sweep
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
    out: Array | None = None,
) -> Array:
    """An aggregate over the window at every cell of an array.

    ``window`` has a width, or an extent such as ``wr.between(-1, 2)``, for each axis; ``anchor`` says where in its
    window a cell stands. Missing values (NaN, masked) are skipped; missing results are NaN, and whole numbers stay
    whole where nothing is missing. They are written into ``out`` if it is given, which must have their shape and type
    (for whole numbers, float64 will do); asking again and again for large results, this saves the time that it takes
    to get memory for each.

    >>> sliding(np.array([4, 7, 3, 1, 8]), "max", 3)
    array([7, 7, 8, 8, 8])
    """
    column = _column(values)
    ndim = column.values.ndim
    aggregate = parse_aggregate(agg) if isinstance(agg, str) else agg.of("x")
    extents = _extents(window, anchor, _each(wrap, ndim, "wrap"), ndim)
    steps = [_positive(s, "a step") for s in _each(step, ndim, "step")]
    if boundary not in BOUNDARIES:
        raise SchemaError("boundary must be one of " + ", ".join(BOUNDARIES), got=repr(boundary))
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
    shape = column.values.shape
    counts = tuple(-(-n // s) for n, s in zip(shape, steps, strict=True))
    if out is not None:
        _check_out(out, counts, aggregate, column)
    if 0 in shape:
        return _delivered(_empty(aggregate, column, counts), out)
    plans = _plans(tuple(extents), tuple(steps), shape)
    for axis, (take, _) in enumerate(plans):
        if take is not None:
            column = Column(np.take(column.values, take, axis), _take(column.present, take, axis))
    outside = None
    if boundary == "drop":
        outside = [_outside(e, n, s, cells) for e, n, s, cells in zip(extents, counts, steps, shape, strict=True)]
    sweeps = [sweep for _, sweep in plans]
    direct = out if out is not None and _fits(out, column) else None
    evaluation = Evaluation(
        {"x": column}, column.values.shape, sweeps, method, min_count, boundary == "drop", outside, direct
    )
    return _delivered(evaluation.result(aggregate).filled(direct), out)


def _column(values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim == 0:
        raise DataError("there is no axis to slide along", got="a single value")
    kind = data_type_of(array.dtype)
    plain, present = conform(array, Attribute("x", kind, nullable=True))
    if present is not None and present.all():
        present = None
    return Column(np.ascontiguousarray(plain), present)


def _check_out(out: Any, shape: tuple[int, ...], aggregate: Aggregate, column: Column) -> None:
    found = data_type_of(column.values.dtype)
    aggregate.definition.check_type(found)
    wanted = aggregate.definition.result(found).dtype
    if not isinstance(out, np.ndarray) or out.shape != shape:
        got = f"shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise DataError(f"out must be an array of shape {shape}", got=got)
    if out.dtype != wanted and not (wanted.kind in "iu" and out.dtype == np.float64):
        raise DataError(f"out must have the results' type, {wanted}", got=str(out.dtype))
    if not out.flags.writeable:
        raise DataError("out must be an array that can be written to", got="one that is read-only")


def _fits(out: Array, column: Column) -> bool:
    """Whether kernels may write there: in one piece, and not where they read."""
    inputs = (column.values,) if column.present is None else (column.values, column.present)
    whole = out.flags.c_contiguous and out.flags.aligned and out.dtype.isnative
    return whole and not any(np.may_share_memory(out, array) for array in inputs)


def _delivered(results: Array, out: Array | None) -> Array:
    if out is None or results is out:
        return results
    if results.dtype != out.dtype and not (out.dtype == np.float64 and results.dtype.kind in "iu"):
        raise DataError("missing results are NaN, which out cannot hold", got=str(out.dtype), hint="Use float64")
    out[...] = results
    return out


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
    each = zip(_each(window, ndim, "window"), _each(anchor, ndim, "anchor"), wraps, strict=True)
    return [_extent(width, name, wraps_here) for width, name, wraps_here in each]


@functools.lru_cache(maxsize=256, typed=True)
def _extent(width: Any, anchor: str, wraps: bool) -> Extent:
    if isinstance(width, Extent):
        extent = width
    elif anchor not in ANCHORS:
        raise SchemaError("anchor must be one of " + ", ".join(ANCHORS), got=repr(anchor))
    else:
        extent = ANCHORS[anchor](_positive(width, "a window's width"))
    return extent.wrap() if wraps and not extent.wraps else extent


@functools.lru_cache(maxsize=64)
def _plans(
    extents: tuple[Extent, ...], steps: tuple[int, ...], shape: tuple[int, ...]
) -> list[tuple[Array | None, AnySweep]]:
    """For each axis, which cells to take if it is periodic, and how to sweep them.

    What an axis plan would leave unread at a border is simply swept past here: nothing is cut off.
    """
    plans = [
        plan_axis(extent, step, (0, -(-cells // step) - 1), (0, cells - 1))
        for extent, step, cells in zip(extents, steps, shape, strict=True)
    ]
    return [
        (
            plan.take,
            plan.sweep
            if plan.take is not None or extent.wraps
            else Sweep(0, plan.sweep.count, extent.start, extent.stop, step),
        )
        for plan, extent, step in zip(plans, extents, steps, strict=True)
    ]


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
