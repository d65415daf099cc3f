"""Distinct values and modes by plain counters: values are numbered once, then windows slide over the numbers.

The mode is the leftmost leaf of a tournament whose count is the largest, so ties go to the smallest value; a change
climbs only as far as it changes who is leading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.geometry import Geometry, geometry, sweep_axis
from windrow.kernels.incremental import first_cell, next_cell, offset_of, round_base, round_count
from windrow.kernels.jit import inner, kernel
from windrow.kernels.results import OPERATIONS, Outcome, prepared
from windrow.kernels.sweep import AnySweep

Array = npt.NDArray[Any]


def counted_windows(
    operation: str, values: Array, present: npt.NDArray[np.bool_] | None, sweeps: Sequence[AnySweep]
) -> Outcome:
    """``distinct`` or ``mode`` in every window."""
    flat, there = prepared(values, present)
    ordered, codes = np.unique(flat[there], return_inverse=True)
    numbered = np.full(len(flat), -1, np.int32)
    numbered[there] = codes
    shape = tuple(sweep.count for sweep in sweeps)
    reals, counts = np.zeros(shape), np.zeros(shape, np.int64)
    winners = np.zeros(shape, np.int32)
    leaves = 1 << max(0, len(ordered) - 1).bit_length()
    tournament = np.zeros(2 * leaves, np.int32)
    place = geometry(values.shape, sweeps)
    axis = sweep_axis(values.shape, sweeps)
    _count(
        OPERATIONS[operation] == 6, numbered, place, axis, tournament, reals.reshape(-1), winners.reshape(-1),
        counts.reshape(-1),
    )  # fmt: skip
    exact = ordered[winners] if len(ordered) else np.zeros(shape, flat.dtype)
    return Outcome(reals, exact, counts)


@inner
def _change(tournament: Array, leaf: int, by: int) -> None:
    """Count a value in or out, and let the change climb while it changes the leading count."""
    tournament[leaf] += by
    node = leaf >> 1
    while node >= 1:
        lead = max(tournament[2 * node], tournament[2 * node + 1])
        if tournament[node] == lead:
            return
        tournament[node] = lead
        node >>= 1


@inner
def _leader(tournament: Array) -> int:
    """The smallest value among the most frequent ones."""
    leaves = len(tournament) // 2
    node = 1
    while node < leaves:
        node = 2 * node if tournament[2 * node] == tournament[node] else 2 * node + 1
    return node - leaves


@inner
def _unit(
    wants_mode: bool, codes: Array, place: Geometry, axis: int, unit: int, lo: Array, hi: Array, cell: Array,
    tournament: Array, by: int,
) -> tuple[int, int]:  # fmt: skip
    """Count one window unit in or out; returns the change in present and in distinct values."""
    leaves = len(tournament) // 2
    present = distinct = 0
    more = first_cell(axis, unit, lo, hi, cell)
    while more:
        code = codes[offset_of(place, cell)]
        if code >= 0:
            present += by
            before = tournament[leaves + code]
            if wants_mode:
                _change(tournament, leaves + code, by)
            else:
                tournament[leaves + code] += by
            if by > 0 and before == 0:
                distinct += 1
            elif by < 0 and before == 1:
                distinct -= 1
        more = next_cell(axis, lo, hi, cell)
    return present, distinct


@kernel
def _count(
    wants_mode: bool, codes: Array, place: Geometry, axis: int, tournament: Array, reals: Array, winners: Array,
    counts: Array,
) -> None:  # fmt: skip
    ndim = len(place.extent)
    lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
    rounds, apart = round_count(place, axis)
    for round_ in range(rounds):
        output = round_base(place, axis, round_, lo, hi)
        present = distinct = 0
        entered, left = np.int64(0), np.int64(0)
        for k in range(place.outputs[axis]):
            first, last = place.lo[axis, k], place.hi[axis, k]
            # Units that would enter and leave at once are passed over.
            if first > entered:
                while left < entered:
                    p, d = _unit(wants_mode, codes, place, axis, left, lo, hi, cell, tournament, np.int64(-1))
                    present, distinct, left = present + p, distinct + d, left + 1
                entered = left = first
            while left < first:
                p, d = _unit(wants_mode, codes, place, axis, left, lo, hi, cell, tournament, np.int64(-1))
                present, distinct, left = present + p, distinct + d, left + 1
            while entered <= last:
                p, d = _unit(wants_mode, codes, place, axis, entered, lo, hi, cell, tournament, np.int64(1))
                present, distinct, entered = present + p, distinct + d, entered + 1
            at = output + k * apart
            counts[at] = present
            reals[at] = distinct
            if wants_mode and present > 0:
                winners[at] = _leader(tournament)
        while left < entered:  # leave nothing behind for the next round
            _unit(wants_mode, codes, place, axis, left, lo, hi, cell, tournament, np.int64(-1))
            left += 1
