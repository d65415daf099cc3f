"""Counts, sums, averages, variances and extremes of windows by block scans, as outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.outcomes import NO_VALUES, Outcome, centre
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.scans.windows import (
    extents,
    window_average,
    window_count,
    window_max,
    window_min,
    window_sum,
    window_sum_squares,
    window_total,
)

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def scan_windows(
    operation: str, values: Array, present: Mask | None, sweeps: Sequence[Sweep], out: Array | None = None
) -> Outcome:
    """As ``naive_windows``, by block scans; ``avg`` gives averages where ``naive_windows`` has no such operation.

    Results of ``out``'s type are written there.
    """
    if operation == "count":
        return Outcome(NO_VALUES, NO_VALUES, _counts(values, present, sweeps))
    if operation == "squares":
        return _squares(values, present, sweeps)
    if operation in ("sum", "avg"):
        real = operation == "avg" or values.dtype.kind == "f"
        into = out if out is not None and out.dtype == (np.float64 if real else np.int64) else None
        found = (window_total if operation == "sum" else window_average)(values, sweeps, into, present)
        return Outcome(found.values, found.values, None, found.empty)
    into = out if out is not None and out.dtype == values.dtype else None
    found = (window_min if operation == "min" else window_max)(values, sweeps, into, present)
    return Outcome(NO_VALUES, found.values, None, found.empty)


def _counts(values: Array, present: Mask | None, sweeps: Sequence[Sweep]) -> npt.NDArray[np.int64]:
    if present is None:
        return window_count(values, sweeps) if values.dtype.kind in "fM" else extents(values.shape, sweeps)
    if values.dtype.kind in "fM":
        present = present & ~(np.isnan(values) if values.dtype.kind == "f" else np.isnat(values))
    return window_count(present, sweeps)


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
