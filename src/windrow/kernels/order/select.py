"""Order statistics over windows: values of any type become floats in the same order, and results are turned back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.keys import Keys, keys_of
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.problems import WindowProblem
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep, Sweep
from windrow.kernels.order.problems import Problem, order_problem, problem_of

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Way = Callable[[Problem, Array, Array], None]
"""Finds the order statistic of floats in every window of a problem, and writes it into an array."""


def select_windows(
    way: Way, asked: WindowProblem, values: Array, present: Mask | None, out: Array | None = None
) -> Outcome:
    """The order statistic of the present values in every window, by one way of several.

    Results have the type of ``values``, or are float64 if ``ranks`` interpolates. NaN, NaT and cells that are not
    ``present`` are missing. ``empty`` is None for float results, which are NaN where there is none.
    """
    ranks, problem = asked.ranks, order_problem(asked)
    assert ranks is not None
    keys = keys_of(values, present)
    if problem is not None and ranks.interpolates and keys.coded:
        return _between_coded(way, keys, asked.regular or (), ranks)
    picked = _room(asked.sweeps, np.dtype(np.float64) if ranks.interpolates else keys.floats.dtype, out)
    if problem is None:
        picked.fill(np.nan)  # no window holds a cell
    else:
        way(problem, keys.floats, picked)
    if ranks.interpolates:
        return Outcome(picked, picked, None)
    result, missing = keys.values(picked)
    return Outcome(result, result, None, missing)


def _room(sweeps: Sequence[AnySweep], kind: np.dtype[Any], out: Array | None) -> Array:
    if out is not None and out.dtype == kind and out.flags.c_contiguous:
        return out
    return np.empty(tuple(sweep.count for sweep in sweeps), kind)


def _between_coded(way: Way, keys: Keys, sweeps: Sequence[Sweep], ranks: RankTable) -> Outcome:
    """Interpolate where keys are not the values themselves: find both neighbours first, then go between them."""
    sides = []
    for wanted in (ranks.lower, ranks.upper):
        picked = _room(sweeps, keys.floats.dtype, None)
        problem = problem_of(keys.floats.shape, keys.floats.dtype, sweeps, ranks.picking(wanted))
        assert problem is not None
        way(problem, keys.floats, picked)
        found, _ = keys.values(picked)
        sides.append((found.view(np.int64) if found.dtype.kind in "mM" else found).astype(np.float64))
    counts = _counts(~np.isnan(keys.floats), sweeps)
    low, high = sides
    result = low + ranks.weight[counts] * (high - low)
    result[counts == 0] = np.nan
    return Outcome(result, result, None)


def _counts(present: Mask, sweeps: Sequence[Sweep]) -> npt.NDArray[np.int64]:
    """How many cells are present in each window, by running sums along one axis after the other."""
    counts = present.astype(np.int64)
    for axis, sweep in enumerate(sweeps):
        extent = counts.shape[axis]
        sums = np.insert(np.cumsum(counts, axis), 0, 0, axis)
        position = sweep.first + np.arange(sweep.count) * sweep.step
        low = np.clip(position + sweep.start, 0, extent)
        high = np.maximum(np.clip(position + sweep.stop + 1, 0, extent), low)
        counts = sums.take(high, axis) - sums.take(low, axis)
    return counts
