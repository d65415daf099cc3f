"""Distinct values and modes by plain counters: values are numbered once, then windows slide over the numbers.

The mode is the leftmost leaf of a tournament whose count is the largest, so ties go to the smallest value; a change
climbs only as far as it changes who is leading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel
from windrow.kernels.contract.outcomes import Outcome, prepared
from windrow.kernels.contract.sweeps import AnySweep
from windrow.kernels.papers.slide import Results, Unit, path_of, slide, structure

Array = npt.NDArray[Any]


def count_windows(
    operation: str, values: Array, present: npt.NDArray[np.bool_] | None, sweeps: Sequence[AnySweep]
) -> Outcome:
    """``distinct`` or ``mode`` in every window."""
    ordered, numbered, there = number_values(values, present)
    shape = tuple(sweep.count for sweep in sweeps)
    reals, counts = np.zeros(shape), np.zeros(shape, np.int64)
    winners = np.zeros(shape, np.int32)
    results = Results(reals.reshape(-1), winners.reshape(-1), counts.reshape(-1))
    tournament = empty_tournament(len(ordered), operation == "mode")
    _slide_tournament(tournament, numbered, there, path_of(values.shape, sweeps), results)
    exact = ordered[winners] if len(ordered) else np.zeros(shape, ordered.dtype)
    return Outcome(reals, exact, counts)


def number_values(
    values: Array, present: npt.NDArray[np.bool_] | None
) -> tuple[Array, npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """All values in order, the number of each cell's among them, and where there is one."""
    flat, there = prepared(values, present)
    ordered, codes = np.unique(flat[there], return_inverse=True)
    numbered = np.full(len(flat), -1, np.int32)
    numbered[there] = codes
    return ordered, numbered, there


class Tournament(NamedTuple):
    """How often each value occurs, in leaves, and the leading count of every two of them, up to the whole.

    ``state`` is [present values, distinct values].
    """

    count: npt.NDArray[np.int32]
    state: npt.NDArray[np.int64]
    wants_mode: bool


def empty_tournament(values: int, wants_mode: bool) -> Tournament:
    leaves = 1 << max(0, values - 1).bit_length()
    return Tournament(np.zeros(2 * leaves, np.int32), np.zeros(2, np.int64), wants_mode)


def _enter(tournament: Tournament, unit: Unit) -> None:
    for offset in unit.offsets:
        if unit.there[unit.start + offset]:
            before = _change(tournament, unit.flat[unit.start + offset], np.int32(1))
            tournament.state[0] += 1
            tournament.state[1] += before == 0


def _leave(tournament: Tournament, unit: Unit) -> None:
    for offset in unit.offsets:
        if unit.there[unit.start + offset]:
            before = _change(tournament, unit.flat[unit.start + offset], np.int32(-1))
            tournament.state[0] -= 1
            tournament.state[1] -= before == 1


def _answer(tournament: Tournament, results: Results, at: int) -> None:
    results.counts[at], results.reals[at] = tournament.state[0], tournament.state[1]
    if tournament.wants_mode and tournament.state[0] > 0:
        results.exact[at] = _leader(tournament.count)


structure(Tournament, enter=_enter, leave=_leave, answer=_answer)
_slide_tournament = bare_kernel(slide, __name__)


@bare
def _change(tournament: Tournament, value: int, by: int) -> int:
    """Count a value in or out; the change climbs while it changes the leading count. Returns the count before."""
    count = tournament.count
    leaf = len(count) // 2 + value
    before = count[leaf]
    count[leaf] += by
    node = leaf >> 1 if tournament.wants_mode else 0
    while node >= 1:
        lead = max(count[2 * node], count[2 * node + 1])
        if count[node] == lead:
            break
        count[node] = lead
        node >>= 1
    return before


@bare
def _leader(count: Array) -> int:
    """The smallest value among the most frequent ones."""
    leaves = len(count) // 2
    node = 1
    while node < leaves:
        node = 2 * node if count[2 * node] == count[node] else 2 * node + 1
    return node - leaves
