"""The fastest way known to each operation: block scans, order statistics in lanes and networks, coded counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.counters import counted_windows
from windrow.kernels.incremental import incremental_windows
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import NO_VALUES, Outcome, centre
from windrow.kernels.scans import (
    Extremes,
    extents,
    window_average,
    window_count,
    window_max,
    window_min,
    window_sum,
    window_sum_squares,
    window_total,
)
from windrow.kernels.select import window_select
from windrow.kernels.sweep import AnySweep, Sweep

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def fast_windows(
    operation: str,
    values: Array,
    present: Mask | None,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
    out: Array | None = None,
) -> Outcome:
    """As ``naive_windows``, by whatever is fastest; it can average, too.

    Sums, averages and extremes of ``out``'s type are written there.
    """
    regular = [sweep for sweep in sweeps if isinstance(sweep, Sweep)]
    if len(regular) < len(sweeps):
        # Windows of varying width, as label units give where labels lie at unequal steps, slide by the papers' way.
        return incremental_windows(operation, values, present, sweeps, ranks)
    if operation in ("distinct", "mode"):
        return counted_windows(operation, values, present, sweeps)
    if operation == "count":
        return Outcome(NO_VALUES, NO_VALUES, _counted(values, present, regular))
    if operation in ("sum", "avg"):
        found = _totals(operation, values, present, regular, out)
        return Outcome(found.values, found.values, None, found.empty)
    if operation == "squares":
        return _squares(values, present, regular)
    if operation in ("min", "max"):
        into = out if out is not None and out.dtype == values.dtype else None
        found = (window_min if operation == "min" else window_max)(values, regular, into, present)
        return Outcome(NO_VALUES, found.values, None, found.empty)
    assert ranks is not None
    selection = window_select(values, regular, ranks, valid=present)
    return Outcome(selection.values, selection.values, None, selection.missing)


def _counted(values: Array, present: Mask | None, sweeps: Sequence[Sweep]) -> npt.NDArray[np.int64]:
    if present is None:
        return window_count(values, sweeps) if values.dtype.kind in "fM" else extents(values.shape, sweeps)
    if values.dtype.kind in "fM":
        present = present & ~(np.isnan(values) if values.dtype.kind == "f" else np.isnat(values))
    return window_count(present, sweeps)


def _totals(
    operation: str, values: Array, present: Mask | None, sweeps: Sequence[Sweep], out: Array | None
) -> Extremes:
    real = operation == "avg" or values.dtype.kind == "f"
    into = out if out is not None and out.dtype == (np.float64 if real else np.int64) else None
    return (window_total if operation == "sum" else window_average)(values, sweeps, into, present)


def _squares(values: Array, present: Mask | None, sweeps: Sequence[Sweep]) -> Outcome:
    floats = values.astype(np.float64)
    there = ~np.isnan(floats) if present is None else present & ~np.isnan(floats)
    floats -= centre(floats, there)
    sums = window_sum(floats, sweeps, present=present)
    squares = window_sum_squares(floats, sweeps, present=present)
    covered = extents(values.shape, sweeps) if sums.counts is None else sums.counts
    counts = covered.astype(np.int64)
    with np.errstate(invalid="ignore"):
        deviations = squares.values - sums.values**2 / np.maximum(counts, 1)
    return Outcome(np.where(deviations < 0, 0.0, deviations), NO_VALUES, counts)
