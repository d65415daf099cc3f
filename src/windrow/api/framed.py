"""Frames on NumPy arrays, with no database: ``wr.framed(values, "median", lo=lo, hi=hi)``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate, aggregate_of, parse_aggregate
from windrow.aggregates.columns import Column, Result
from windrow.aggregates.frames import TAU, Frames, evaluate_frames
from windrow.errors import DataError

Array = npt.NDArray[Any]


def framed(
    values: Any,
    agg: str | Aggregate,
    lo: Any,
    hi: Any,
    *,
    method: str = "auto",
    strategy: str = "auto",
    exclude: str = "no others",
    peers: tuple[Any, Any] | None = None,
    where: Any = None,
    tau: float = TAU,
    second: Any = None,
    fraction: Any = None,
) -> Array:
    """An aggregate over frames of a vector: frame i holds the values k with ``lo[i] <= k < hi[i]``.

    Bounds beyond the vector are cut off, and a frame that ends before it starts is empty. ``exclude`` leaves out, as in
    SQL, the ``current row`` i, its ``group`` (the rows from ``peers[0][i]`` to before ``peers[1][i]``) or its ``ties``
    (the group but for row i). Values where ``where`` is False, and missing ones (NaN, None, masked), are passed over.
    Missing results are NaN (None for strings and decimals), and whole numbers stay whole where nothing is missing.

    ``method`` is auto, naive, incremental, segment_tree (sums, minima, maxima), reuse or replace (quantiles); ``tau``
    is the flushing threshold of incremental distinct counts and modes. Under auto the cheapest of several strategies is
    taken, or the one named by ``strategy``. ``second`` is the other argument of aggregates of two, such as the weights
    of "wavg". ``fraction`` has the q of each frame's quantile, or the P of each frame's percentile.

    >>> framed(np.array([4, 7, 3, 1, 8]), "count_distinct", lo=[0, 0, 0, 1, 2], hi=[1, 2, 3, 4, 5])
    array([1, 2, 3, 3, 3])
    """
    column = _column(values)
    aggregate = _aggregate(agg, fraction)
    frames = Frames(_bounds(lo, "lo"), _bounds(hi, "hi"), exclude, _peers(peers))
    keep = None if where is None else np.asarray(where)
    if keep is not None and keep.dtype.kind == "O":
        raise DataError("where must be booleans", got=keep.dtype)
    if (second is None) != (aggregate.second is None):
        needs = f"{aggregate.name} takes {'one vector' if aggregate.second is None else 'two vectors'}"
        raise DataError(needs, hint='As in framed(t, "wavg", lo=lo, hi=hi, second=weights)')
    columns = {"x": column} if second is None else {"x": column, "y": _column(second)}
    if aggregate.varies:
        aggregate = replace(aggregate, parameter=_fractions(aggregate, len(frames.lo)))
    found = evaluate_frames(
        columns, frames, aggregate.of("x", "y"), method=method, keep=keep, tau=tau, strategy=strategy
    )
    missing = None if found.present is None else ~found.present
    if missing is not None and found.values.dtype.kind == "O":
        found.values[missing] = None
        return found.values
    return Result(found.values, missing).filled()


def _aggregate(agg: str | Aggregate, fraction: Any) -> Aggregate:
    if fraction is None:
        return aggregate_of(agg)
    if not isinstance(agg, str):
        raise DataError("fraction belongs to an aggregate that is named", hint='As in framed(t, "quantile", …)')
    if "(" in agg:
        named = parse_aggregate(agg)  # which says what is wrong with the call itself
        hint = f'As in framed(t, "{named.name}", lo=lo, hi=hi, fraction=fractions)'
        raise DataError("two fractions were given", got=f"{agg!r} and fraction=…", hint=hint)
    return Aggregate(agg, "x", np.asanyarray(fraction))  # with its mask


def _fractions(aggregate: Aggregate, frames: int) -> Array:
    """A fraction for each frame; one that is missing is refused with the others that cannot be."""
    given = aggregate.parameter
    given = np.ma.filled(given.astype(float), np.nan) if isinstance(given, np.ma.MaskedArray) else np.asarray(given)
    if given.dtype.kind == "O":
        given = np.array([np.nan if value is None else value for value in given], object)
    try:
        found: Array = np.ascontiguousarray(given, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"the fractions of {aggregate.name} must be numbers", got=given.dtype) from None
    if found.shape != (frames,) or given.dtype.kind not in "iufO":
        what = f"{aggregate.name} needs a fraction for each of {frames:,} frames"
        one = f'One for all frames stands in the call, as in "{aggregate.name}(x, {given})"'
        hint = None if given.ndim else one
        raise DataError(what, got=f"{given.dtype} of shape {given.shape}", hint=hint)
    return found


def _column(values: Any) -> Column:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim != 1:
        raise DataError("framed takes a vector of values", got=f"{array.ndim} dimensions")
    if isinstance(array, np.ma.MaskedArray):
        return Column(np.ma.getdata(array), ~np.ma.getmaskarray(array))
    if array.dtype.kind == "S":
        raise DataError("values must be numbers, strings, booleans, decimals or points in time", got=array.dtype)
    return Column(array)


def _bounds(bounds: Any, name: str) -> npt.NDArray[np.int64]:
    array = np.asarray(bounds)
    if array.ndim != 1:
        raise DataError(f"{name} must be a vector of row numbers", got=f"{array.ndim} dimensions")
    if array.dtype.kind not in "iu" and array.size:
        raise DataError(f"{name} must hold whole numbers", got=array.dtype)
    return array.astype(np.int64, copy=False)


def _peers(peers: tuple[Any, Any] | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    return None if peers is None else (_bounds(peers[0], "peers[0]"), _bounds(peers[1], "peers[1]"))
