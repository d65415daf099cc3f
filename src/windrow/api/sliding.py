"""Windows and shapes on NumPy arrays, with no database: ``wr.sliding(values, agg="max", window=(2, 3))``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate, aggregate_of
from windrow.aggregates.columns import PLACES, Column
from windrow.aggregates.shape_blocks import ShapeRequest
from windrow.aggregates.windows import METHODS, Evaluation
from windrow.api.shaped import shape_request, shaped
from windrow.errors import DataError, SchemaError
from windrow.kernels.choose import check_strategy, check_sweep
from windrow.kernels.contract.sweeps import AnySweep, Sweep
from windrow.kernels.windows import NAMES
from windrow.model.conform import conform
from windrow.model.schema import Attribute
from windrow.model.shape import Shape
from windrow.model.types import data_type_of
from windrow.model.window import Extent, centred, corner, trailing
from windrow.plan.axes import plan_axis
from windrow.plan.specs import check_edges

Array = npt.NDArray[Any]
ANCHORS = {"corner": corner, "centred": centred, "centered": centred, "trailing": trailing}


def sliding(
    values: Any,
    agg: str | Aggregate,
    window: int | Extent | Sequence[int | Extent] | None = None,
    anchor: str | Sequence[str] = "corner",
    *,
    axis: int | Sequence[int] | None = None,
    shape: Shape | None = None,
    boundary: str = "clip",
    wrap: bool | Sequence[bool] = False,
    min_count: int = 0,
    step: int | Sequence[int] = 1,
    method: str = "auto",
    strategy: str = "auto",
    sweep: int | None = None,
    second: Any = None,
    out: Array | None = None,
) -> Array:
    """An aggregate over the window, or the cells in a shape, around every cell of an array.

    ``window`` has a width, or an extent such as ``wr.between(-1, 2)``, for each axis, or for those that ``axis``
    names; ``anchor`` says where in its window a cell stands. Instead of a window, ``shape`` may be such as
    ``wr.L2(3)``; it calls the axes axis0, axis1 and so on, as in ``wr.L1(2, on=("axis0", "axis1"))``. Missing
    values (NaN, masked) are skipped; missing results are NaN, and whole numbers stay whole where nothing is
    missing. They are written into ``out`` if it is given, which must have their shape and type; for whole numbers
    and booleans, of which some may be missing, float64 will do, and for strings objects. Asking again and again for
    large results, this saves the time that it takes to get memory for each. Under method auto the cheapest of
    several strategies is taken, or the one named by ``strategy``. ``sweep`` is the axis along which windows are to
    slide, by method incremental, if it is not to be the one along which they are widest. ``second`` is the other
    argument of aggregates of two, such as the weights of "wavg".

    >>> sliding(np.array([4, 7, 3, 1, 8]), "max", 3)
    array([7, 7, 8, 8, 8])
    >>> from windrow.model.shape import L1
    >>> sliding(np.array([[4, 7, 3], [1, 8, 2]]), "max", shape=L1(1))
    array([[7, 8, 7],
           [8, 8, 8]])
    """
    if (window is None) == (shape is None):
        raise SchemaError("either a window or a shape is needed", hint="As in window=(3, 3) or shape=wr.L2(3)")
    column = _column(values)
    cells, ndim = column.values.shape, column.values.ndim
    aggregate = aggregate_of(agg).of("x", "y")
    columns = {"x": column, **_second(second, column, aggregate)}
    wraps = _each(wrap, ndim, "wrap")
    steps = [_positive(s, "a step") for s in _each(step, ndim, "step")]
    _check_words(boundary, min_count, method)
    counts = tuple(-(-n // s) for n, s in zip(cells, steps, strict=True))
    if out is not None:
        _check_out(out, counts, aggregate, column)
    if shape is not None:
        _refuse_with_shape(sweep, boundary, axis)
        request = shape_request(shape, cells, wraps, steps, min_count, method, strategy)
        return _over_shape(request, columns, aggregate, counts, out)
    check_strategy(method, strategy, NAMES)
    check_sweep(method, strategy, sweep)
    swept = None if sweep is None else _axis(sweep, ndim)
    extents = tuple(_extents(_spread(window, axis, ndim), anchor, wraps, ndim))
    asked = _Windows(extents, tuple(steps), counts, boundary == "drop", min_count, method, strategy, swept)
    return asked.over(columns, aggregate, out)


@dataclass(frozen=True)
class _Windows:
    """Windows as they were asked for, on an array that gives ``counts`` results along each axis."""

    extents: tuple[Extent, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    drops: bool
    min_count: int
    method: str
    strategy: str
    swept: int | None

    def over(self, columns: dict[str, Column], aggregate: Aggregate, out: Array | None) -> Array:
        """The aggregate over each window."""
        cells = columns["x"].values.shape
        if 0 in cells:
            return _delivered(_empty(aggregate, columns["x"], self.counts), out)
        columns, sweeps = _laid_out(columns, aggregate, _plans(self.extents, self.steps, cells))
        outside = None
        if self.drops:
            outside = [_outside(*axis) for axis in zip(self.extents, self.counts, self.steps, cells, strict=True)]
        column = columns["x"]
        direct = out if out is not None and _fits(out, column) else None
        evaluation = Evaluation(
            columns, column.values.shape, sweeps, self.method if self.swept is None else "incremental",
            self.min_count, self.drops, outside, direct, self.strategy, self.swept,
        )  # fmt: skip
        return _delivered(evaluation.result(aggregate).filled(direct), out)


def _check_words(boundary: str, min_count: int, method: str) -> None:
    check_edges(boundary, min_count)
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))


def _refuse_with_shape(sweep: Any, boundary: str, axis: Any) -> None:
    if sweep is not None:
        raise SchemaError("shapes are not swept along one axis", got=f"sweep={sweep!r}")
    if boundary != "clip":
        raise SchemaError("shapes are clipped at the border", got=f"boundary={boundary!r}")
    if axis is not None:
        raise SchemaError("a shape names its own axes", got=f"axis={axis!r}", hint='As in wr.L1(2, on=("axis0",))')


def _over_shape(
    request: ShapeRequest, columns: dict[str, Column], aggregate: Aggregate, counts: tuple[int, ...], out: Array | None
) -> Array:
    column = columns["x"]
    if 0 in column.values.shape:
        return _delivered(_empty(aggregate, column, counts), out)
    direct = out if out is not None and _fits(out, column) else None
    return _delivered(shaped(request, columns, aggregate, direct), out)


def _laid_out(
    columns: dict[str, Column], aggregate: Aggregate, plans: list[tuple[Array | None, AnySweep]]
) -> tuple[dict[str, Column], list[AnySweep]]:
    """The cells as windows meet them, those of periodic axes again beyond their ends, and how to sweep each axis."""
    values = columns["x"].values
    if aggregate.definition.ordered and any(take is not None for take, _ in plans):
        columns = {**columns, PLACES: Column(np.arange(values.size).reshape(values.shape))}
    for axis, (take, _) in enumerate(plans):
        if take is not None:
            columns = {
                name: Column(np.take(one.values, take, axis), _take(one.present, take, axis))
                for name, one in columns.items()
            }
    return columns, [sweep for _, sweep in plans]


def _column(values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim == 0:
        raise DataError("there is no axis to slide along", got="a single value")
    kind = data_type_of(array.dtype)
    plain, present = conform(array, Attribute("x", kind, nullable=True))
    if present is not None and present.all():
        present = None
    return Column(np.ascontiguousarray(plain), present)


def _second(values: Any, column: Column, aggregate: Aggregate) -> dict[str, Column]:
    """The second argument, for aggregates that have one, as large as the first."""
    if (values is None) != (aggregate.second is None):
        needs = f"{aggregate.name} takes {'one array' if aggregate.second is None else 'two arrays'}"
        raise DataError(needs, hint='As in sliding(t, "wavg", 3, second=weights)')
    if values is None:
        return {}
    other, shape = np.asanyarray(values), column.values.shape
    try:
        spread = np.broadcast_to(np.ma.getdata(other), shape)
    except ValueError:
        raise DataError(
            "the second array must be as large as the first", got=f"shape {other.shape} beside {shape}"
        ) from None
    if isinstance(other, np.ma.MaskedArray):  # broadcasting forgets masks
        spread = np.ma.MaskedArray(spread, np.broadcast_to(np.ma.getmaskarray(other), shape))
    return {"y": _column(spread)}


def _check_out(out: Any, shape: tuple[int, ...], aggregate: Aggregate, column: Column) -> None:
    found = data_type_of(column.values.dtype)
    aggregate.definition.check_type(found)
    wanted = aggregate.definition.result(found).dtype
    if not isinstance(out, np.ndarray) or out.shape != shape:
        got = f"shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise DataError(f"out must be an array of shape {shape}", got=got)
    if out.dtype not in (wanted, _type_with_missing(wanted)):
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
    if out.dtype not in (results.dtype, _type_with_missing(results.dtype)):
        missing = "None" if results.dtype == object else "NaN"
        raise DataError(
            f"missing results are {missing}, which out cannot hold", got=out.dtype, hint=f"Use {results.dtype}"
        )
    out[...] = results
    return out


def _type_with_missing(kind: np.dtype[Any]) -> np.dtype[Any]:
    """The type of results some of which are missing."""
    return np.dtype(np.float64) if kind.kind in "iub" else np.dtype(object) if kind.kind == "T" else kind


def _each(value: Any, ndim: int, what: str) -> list[Any]:
    if isinstance(value, (str, bool, int, np.integer, Extent)):
        return [value] * ndim
    if not isinstance(value, (Sequence, np.ndarray)):
        raise SchemaError(f"{what} needs one entry for each of {ndim} axes", got=repr(value))
    listed = list(value)
    if len(listed) != ndim:
        raise SchemaError(f"{what} needs one entry for each of {ndim} axes", got=len(listed))
    return listed


def _axis(value: Any, ndim: int, what: str = "sweep") -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -ndim <= value < ndim:
        raise SchemaError(f"{what} is an axis, from 0 to {ndim - 1}", got=repr(value))
    return int(value) % ndim


def _spread(window: Any, axis: Any, ndim: int) -> Any:
    """The window with an entry for every axis: along those that ``axis`` does not name it is the cell alone."""
    if axis is None:
        return window
    axes = [_axis(one, ndim, "axis") for one in (axis if isinstance(axis, Sequence) else (axis,))]
    if len(set(axes)) < len(axes):
        raise SchemaError("an axis is named twice", got=repr(axis))
    alone: list[Any] = [1] * ndim
    for one, width in zip(axes, _each(window, len(axes), "window"), strict=True):
        alone[one] = width
    return alone


def _positive(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise SchemaError(f"{what} must be an integer of at least 1", got=repr(value))
    return int(value)


def _extents(window: Any, anchor: Any, wraps: list[bool], ndim: int) -> list[Extent]:
    if isinstance(window, (int, np.integer, Extent)) and ndim > 1:
        hint = f"As in {(3,) * ndim}, or along one of them: window=3, axis=0"
        raise SchemaError(f"the window needs a width for each of {ndim} axes", got=window, hint=hint)
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
