"""Sums, counts, minima and maxima over windows, by separable block scans: time hardly depends on the window's size.

NaN is missing, and so is NaT; other types have missing values only where ``present`` says so. Windows are clipped at
the input's border; what to do with windows in which nothing is present is the caller's business.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import DataError
from windrow.kernels.contract.geometry import clipped_counts, outer_product
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.scans.axes import Axis, average_all, average_plan, clip_axis, scan_all, workspace
from windrow.kernels.scans.divide import divide, share_out
from windrow.kernels.scans.plane import BARE, MISSING
from windrow.kernels.scans.text import LINE

LARGEST = 2**63 - 1
SAMPLED = 16  # rows that are looked at for missing cells before anything else


@dataclass(frozen=True, slots=True)
class Sums:
    """A sum per window, and how many values are in it: ``None`` if none is missing anywhere, see ``extents``."""

    values: NDArray[Any]
    counts: NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Extremes:
    """A minimum, maximum, sum or average per window, and where nothing is present and it means nothing.

    ``None`` for nowhere.
    """

    values: NDArray[Any]
    empty: NDArray[np.bool_] | None


def extents(shape: Sequence[int], sweeps: Sequence[Sweep]) -> NDArray[np.int64]:
    """The number of input cells in each window."""
    return outer_product(clipped_counts(shape, sweeps))


def window_sum(
    values: NDArray[Any],
    sweeps: Sequence[Sweep],
    out: NDArray[Any] | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Sums:
    """Sums as float64 of floats, as int64 of integers and booleans; missing values are skipped."""
    values = _native(values)
    if values.dtype.kind == "f":
        return _float_sum("sum", _with_nan(values, present), sweeps, out)
    if present is not None:
        values = np.where(present, values, values.dtype.type(0))
    counts = None if present is None or present.all() else _count(present, sweeps)
    return Sums(_integer_sum(values, sweeps, out), counts)


def window_total(
    values: NDArray[Any],
    sweeps: Sequence[Sweep],
    out: NDArray[Any] | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Extremes:
    """As ``window_sum``, but values are not counted; only where there are none."""
    values = _native(values)
    if values.dtype.kind == "f":
        cells = _with_nan(values, present)
        result = _result(sweeps, np.float64, out)
        found = _run("sum", cells, _axes(values, sweeps), result, 0.0)
        return Extremes(result, _empty(found, result, 0.0, cells, sweeps))
    sums = window_sum(values, sweeps, out, present)
    found = 0 if present is None else MISSING | BARE
    return Extremes(sums.values, _empty(found, sums.values, 0, values if present is None else present, sweeps))


def window_average(
    values: NDArray[Any],
    sweeps: Sequence[Sweep],
    out: NDArray[Any] | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Extremes:
    """Averages of floats, and of whole numbers if ``averages_directly`` says so and all are present."""
    values = _with_nan(_native(values), present)
    result = _result(sweeps, np.float64, out)
    axes = _axes(values, sweeps)
    plan = average_plan(axes) if result.size and values.size else None
    if plan is not None:
        if not _shows_missing(values) and average_all(values, axes, plan, result):
            return Extremes(result, _empty(0, result, 0.0, values, sweeps))
        counts = _count(values, sweeps, passing=True)
        average_all(values, axes, plan, result, counts)
        return Extremes(result, None if counts.min() else counts == 0)
    if not _run("sum", values, axes, result, 0.0):
        share_out(result, clipped_counts(values.shape, sweeps), result)
        return Extremes(result, _empty(0, result, 0.0, values, sweeps))
    counts = _count(values, sweeps)
    empty = divide(result, counts)
    return Extremes(result, counts == 0 if empty else None)


def _shows_missing(values: NDArray[Any]) -> bool:
    """Whether one of a few rows lacks a cell; if so, averages count cells from the start."""
    return values.dtype.kind == "f" and bool(np.isnan(values[:: len(values) // SAMPLED + 1]).any())


def averages_directly(dtype: np.dtype[Any], cells: int) -> bool:
    """Whether averages of up to so many cells are made in one go: of floats, and where float64 adds up exactly."""
    if dtype.kind == "f":
        return True
    return dtype.kind in "iu" and dtype.itemsize <= 4 and cells << 8 * dtype.itemsize <= 2**53


def window_sum_squares(
    values: NDArray[Any],
    sweeps: Sequence[Sweep],
    out: NDArray[Any] | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Sums:
    """Sums of squares, always as float64."""
    values = _native(values)
    floats = values if values.dtype.kind == "f" else values.astype(np.float64)
    return _float_sum("squares", _with_nan(floats, present), sweeps, out)


def window_count(values: NDArray[Any], sweeps: Sequence[Sweep]) -> NDArray[np.int64]:
    """How many values are present: floats that are not NaN, times that are not NaT, booleans that are true."""
    values = _native(values)
    if values.dtype.kind not in "fbmM":
        return extents(values.shape, sweeps)
    return _count(values, sweeps).astype(np.int64)


def window_min(
    values: NDArray[Any],
    sweeps: Sequence[Sweep],
    out: NDArray[Any] | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Extremes:
    return _extreme("min", values, sweeps, out, present)


def window_max(
    values: NDArray[Any],
    sweeps: Sequence[Sweep],
    out: NDArray[Any] | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Extremes:
    return _extreme("max", values, sweeps, out, present)


def _native(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _with_nan(values: NDArray[Any], present: NDArray[np.bool_] | None) -> NDArray[Any]:
    return values if present is None else np.where(present, values, values.dtype.type(np.nan))


def _axes(values: NDArray[Any], sweeps: Sequence[Sweep]) -> tuple[Axis, ...]:
    return _clipped_axes(values.shape, tuple(sweeps))


@lru_cache(maxsize=256)
def _clipped_axes(shape: tuple[int, ...], sweeps: tuple[Sweep, ...]) -> tuple[Axis, ...]:
    return tuple(clip_axis(cells, sweep) for cells, sweep in zip(shape, sweeps, strict=True))


def _window_cells(axes: Sequence[Axis]) -> int:
    """No window holds more cells than this."""
    return math.prod(max(min(axis.width, axis.cells), 0) for axis in axes)


def _result(sweeps: Sequence[Sweep], dtype: Any, out: NDArray[Any] | None) -> NDArray[Any]:
    shape = tuple(sweep.count for sweep in sweeps)
    if out is None:
        return np.empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
        raise ValueError(f"out must be a contiguous {np.dtype(dtype)} array of shape {shape}")
    return out


def _run(rule: str, values: NDArray[Any], axes: tuple[Axis, ...], out: NDArray[Any], identity: Any) -> int:
    """Scan; what was found, see ``scan_plane``."""
    if not values.size or min(axis.width for axis in axes) <= 0:
        out.fill(identity)
        return 0
    return scan_all(rule, values, axes, out) if out.size else 0


def _float_sum(rule: str, values: NDArray[Any], sweeps: Sequence[Sweep], out: NDArray[Any] | None) -> Sums:
    result = _result(sweeps, np.float64, out)
    missing = _run(rule, values, _axes(values, sweeps), result, 0.0)
    return Sums(result, _count(values, sweeps) if missing else None)


def _count(values: NDArray[Any], sweeps: Sequence[Sweep], passing: bool = False) -> NDArray[Any]:
    """Counts of present values, in as few bytes as hold them, so that many are added at once.

    What is only ``passing`` stands in memory that the next such counts overwrite.
    """
    axes = _axes(values, sweeps)
    dtype = np.min_scalar_type(_window_cells(axes))
    shape = [sweep.count for sweep in sweeps]
    # Loops that divide by counts read whole lines, from before the first one.
    size = math.prod(shape) * dtype.itemsize + 2 * LINE
    memory = workspace("counts", size) if passing else np.empty(size, np.uint8)
    result = memory[LINE:-LINE].view(dtype).reshape(shape)
    present = values
    if values.dtype.kind != "b":
        present = workspace("presence", values.size).view(np.bool_).reshape(values.shape)
        # What is missing, be it NaN or NaT, is not equal to itself.
        np.equal(values, values, out=present)
    _run("sum", present.view(np.uint8), axes, result, 0)
    return result


def _integer_sum(values: NDArray[Any], sweeps: Sequence[Sweep], out: NDArray[Any] | None) -> NDArray[Any]:
    result = _result(sweeps, np.int64, out)
    if values.dtype.kind == "b":
        result[...] = _count(values, sweeps)
        return result
    axes = _axes(values, sweeps)
    if values.itemsize <= 2 and _window_cells(axes) << 8 * values.itemsize < 2**31:
        small = np.empty(result.shape, np.int32)
        _run("sum", values, axes, small, 0)
        result[...] = small
        return result
    # The same bits whether signed or not: one kernel less to compile.
    _run("sum", values.view(np.int64) if values.itemsize == 8 else values, axes, result, 0)
    if _may_overflow(values, _window_cells(axes)):
        _check_overflow(values, axes, result)
    return result


def _may_overflow(values: NDArray[Any], cells: int) -> bool:
    limits = np.iinfo(values.dtype)
    if max(int(limits.max), -int(limits.min)) * cells <= LARGEST or not values.size:
        return False
    return max(int(values.max()), -int(values.min())) * cells > LARGEST


def _check_overflow(values: NDArray[Any], axes: tuple[Axis, ...], result: NDArray[Any]) -> None:
    """Sum the upper and lower halves of the integers apart: neither can overflow, and together they are exact."""
    half = values.dtype.type(32)
    low = np.empty_like(result)
    high = np.empty_like(result)
    _run("sum", (values & values.dtype.type(2**32 - 1)).view(np.int64), axes, low, 0)
    _run("sum", (values >> half).view(np.int64), axes, high, 0)
    upper = high + (low >> 32)
    if upper.size and (upper.max() >= 2**31 or upper.min() < -(2**31)):
        raise DataError("integer sum overflows int64", hint="Sum as float64 instead.")


def _extreme(
    rule: str,
    values: NDArray[Any],
    sweeps: Sequence[Sweep],
    out: NDArray[Any] | None,
    present: NDArray[np.bool_] | None,
) -> Extremes:
    values = _native(values)
    if values.dtype.kind == "f":
        values, present = _with_nan(values, present), None
    result = _result(sweeps, values.dtype, out)
    cells, identity = _comparable(rule, values)
    there = _present(values, present)
    if there is not None:
        cells = np.where(there, cells, identity)
    axes = _axes(values, sweeps)
    plain = result.view(cells.dtype)
    found = _run(rule, cells, axes, plain, identity)
    if there is not None:
        found = MISSING | BARE
    return Extremes(result, _empty(found, plain, identity, values if there is None else there, sweeps))


def _empty(
    found: int, result: NDArray[Any], identity: Any, cells: NDArray[Any], sweeps: Sequence[Sweep]
) -> NDArray[np.bool_] | None:
    """Which windows hold nothing; ``found`` is what the scan reported, ``cells`` says which cells are present."""
    outside = _may_be_bare(cells.shape, tuple(sweeps))
    if not found & MISSING:
        return extents(cells.shape, sweeps) == 0 if outside else None
    # Only a window that shows the identity may hold nothing.
    if not (outside or found & BARE) or not (result == identity).any():
        return None
    empty: NDArray[np.bool_] = _count(cells, sweeps) == 0
    return empty if empty.any() else None


@lru_cache(maxsize=256)
def _may_be_bare(shape: tuple[int, ...], sweeps: tuple[Sweep, ...]) -> bool:
    """Whether a window lies outside the input."""
    return any(_reaches_out(cells, sweep) for cells, sweep in zip(shape, sweeps, strict=True))


def _reaches_out(cells: int, sweep: Sweep) -> bool:
    last = sweep.first + (sweep.count - 1) * sweep.step
    return not cells or sweep.width < 1 or sweep.first + sweep.stop < 0 or last + sweep.start >= cells


def _comparable(rule: str, values: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """The values as numbers of their own size, and the number that never changes a minimum or maximum."""
    if values.dtype.kind == "f":
        return values, values.dtype.type(np.inf if rule == "min" else -np.inf)
    cells = values.view(
        np.uint8 if values.dtype.kind == "b" else np.int64 if values.dtype.kind in "mM" else values.dtype
    )
    limits = np.iinfo(cells.dtype)
    return cells, cells.dtype.type(limits.max if rule == "min" else limits.min)


def _present(values: NDArray[Any], present: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    if values.dtype.kind not in "mM":
        return present
    dated = ~np.isnat(values)
    if present is not None:
        return dated & present
    return None if dated.all() else dated
