"""Order statistics over windows: one entry for all types, ranks and windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.keys import Keys, key_type, keys_of
from windrow.kernels.problems import problem_of
from windrow.kernels.ranks import RankTable
from windrow.kernels.strategies import choose
from windrow.kernels.sweep import Sweep

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

# Compiled code is kept on disk; a call that compiles is taken to be the first of this many.
ALIKE = 20
NOTHING = "nothing to do: no window holds a cell"


@dataclass(frozen=True, eq=False)
class Selection:
    """Results, where there are none, and how they were found.

    ``missing`` is None if there is a result everywhere, and for float results, which are NaN where there is none.
    """

    values: Array
    missing: Mask | None
    explain: str


def window_select(
    values: Array,
    sweeps: Sequence[Sweep],
    ranks: RankTable,
    out: Array | None = None,
    *,
    valid: Mask | None = None,
    strategy: str = "auto",
    alike: int = ALIKE,
) -> Selection:
    """The order statistic ``ranks`` of the present values in every window.

    Results have the type of ``values``, or are float64 if ``ranks`` interpolates. NaN, NaT and cells that are not
    ``valid`` are missing. ``strategy`` forces one of direct, series, rows and bitset. ``alike`` is the number of calls
    of this kind that are to come (the blocks of a large array), which share what has to be compiled.

    >>> from windrow.kernels.ranks import percentile_ranks
    >>> window_select(np.array([5, 1, 4, 2, 3]), [Sweep(0, 5, -1, 1)], percentile_ranks(50, 3)).values.tolist()
    [5, 4, 2, 3, 3]
    """
    keys = keys_of(values, valid)
    if ranks.interpolates and keys.coded:
        return _between_coded(keys, sweeps, ranks, out, strategy)
    picked = _room(sweeps, np.dtype(np.float64) if ranks.interpolates else keys.floats.dtype, out)
    explain = _run(keys.floats, sweeps, ranks, picked, strategy, alike)
    if ranks.interpolates:
        return Selection(_delivered(picked, out), None, explain)
    result, missing = keys.values(picked)
    return Selection(_delivered(result, out), missing, explain)


def explain_select(
    shape: Sequence[int],
    dtype: Any,
    sweeps: Sequence[Sweep],
    ranks: RankTable,
    strategy: str = "auto",
    alike: int = ALIKE,
) -> str:
    """What ``window_select`` would do, with the estimated cost of each way."""
    return plan_select(shape, dtype, sweeps, ranks, strategy, alike)[1]


def plan_select(
    shape: Sequence[int],
    dtype: Any,
    sweeps: Sequence[Sweep],
    ranks: RankTable,
    strategy: str = "auto",
    alike: int = ALIKE,
) -> tuple[float, str]:
    """The estimated nanoseconds of ``window_select``, and what it would do."""
    problem = problem_of(shape, key_type(np.dtype(dtype)), sweeps, ranks)
    if problem is None:
        return 0.0, NOTHING
    choice, text = choose(problem, strategy, alike)
    return choice.nanoseconds, text


def select_memory(shape: Sequence[int], dtype: Any, sweeps: Sequence[Sweep]) -> int:
    """About how many bytes ``window_select`` takes beside its input and output, at most."""
    kind, cells, outputs = np.dtype(dtype), prod(shape), prod(sweep.count for sweep in sweeps)
    keys = key_type(kind)
    each = 0 if kind == keys else keys.itemsize * (5 if kind.itemsize == 8 else 1)
    # Where series begin and end, windows to answer on their own, blocks being ranked.
    return each * cells + (0 if kind == keys else keys.itemsize) * outputs + 17 * outputs // 8 + 2**23


def _room(sweeps: Sequence[Sweep], kind: np.dtype[Any], out: Array | None) -> Array:
    if out is not None and out.dtype == kind and out.flags.c_contiguous:
        return out
    return np.empty(tuple(sweep.count for sweep in sweeps), kind)


def _delivered(result: Array, out: Array | None) -> Array:
    if out is None or out is result:
        return result
    out[...] = result
    return out


def _run(floats: Array, sweeps: Sequence[Sweep], ranks: RankTable, picked: Array, strategy: str, alike: int) -> str:
    problem = problem_of(floats.shape, floats.dtype, sweeps, ranks)
    if problem is None:
        picked.fill(np.nan)
        return NOTHING
    choice, explain = choose(problem, strategy, alike)
    choice.run(floats, picked)
    return explain


def _between_coded(
    keys: Keys, sweeps: Sequence[Sweep], ranks: RankTable, out: Array | None, strategy: str
) -> Selection:
    """Between values whose keys are not those numbers: find both neighbours, then go between them."""
    sides = []
    for wanted in (ranks.lower, ranks.upper):
        picked = _room(sweeps, keys.floats.dtype, None)
        explain = _run(keys.floats, sweeps, ranks.picking(wanted), picked, strategy, ALIKE)
        found, _ = keys.values(picked)
        sides.append((found.view(np.int64) if found.dtype.kind in "mM" else found).astype(np.float64))
    counts = _counts(~np.isnan(keys.floats), sweeps)
    low, high = sides
    result = low + ranks.weight[counts] * (high - low)
    result[counts == 0] = np.nan
    return Selection(_delivered(result, out), None, explain)


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
