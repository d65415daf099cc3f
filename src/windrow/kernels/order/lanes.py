"""What both ways of running networks on lanes share: windows with missing cells, and results from ranks.

A network finds fixed ranks of full windows. Cells that are missing, or outside the input, are replaced by -inf or +inf
in the proportion in which the wanted rank divides a window, so that the wanted rank moves by little; the network for
such tiles gives several neighbouring ranks, and counting tells which one is right. A window that needs a rank outside
them is left to be answered on its own. Infinities among the values do no harm: they are equal to what replaces a
missing cell.

Compiled functions that are called for every tile take plain arrays: Numba counts references to what it takes out of a
tuple, which costs more than the work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inlined, inner
from windrow.kernels.compiler.slots import LOW_BIT, add_slots, between_slots, pick_slot, settle_slot, subtract_slots
from windrow.kernels.order.direct import between

Array = npt.NDArray[Any]


class Tables(NamedTuple):
    """A rank table for compiled code."""

    lower: npt.NDArray[np.int32]
    upper: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    slope: float
    interpolates: bool


class Grid(NamedTuple):
    """The input, flat, and where to evaluate: a row [first, count, start, stop, step] per axis."""

    flat: Array
    extent: npt.NDArray[np.int64]
    sweeps: npt.NDArray[np.int64]


class Code(NamedTuple):
    """Two networks for one tile, and the ranks that they give for each output."""

    whole: int  # address of the network for tiles without missing cells
    whole_ranks: int  # it gives this many ranks, from the lower one on
    slack: int  # address of the network for tiles with missing cells
    slack_ranks: int
    slack_first: int  # the first rank it gives
    share: float  # of missing cells that become -inf
    cells: int  # in a full window
    lanes: int
    linear: bool  # whether the lower rank of N values is floor(N * slope + intercept) in float32
    slope: np.float32
    intercept: np.float32
    straight: bool  # whether the network for tiles without missing cells gives results, not ranks
    holes: int  # address of the network for tiles with a few missing cells, 0 if there is none; see holes


class Runs(NamedTuple):
    """Which rows of a tile belong to the window of each output: runs of equal length, by their first row."""

    first: npt.NDArray[np.int64]  # [output, run]
    length: int


@inner
def whole_results(
    found: Array, outputs: int, ranks: int, lanes: int, weight: float, results: Array, place: int
) -> None:
    """Results of a tile without missing cells, from ranks in ``found`` to ``results[place:]``."""
    for output in range(outputs):
        at, target = output * ranks * lanes, place + output * lanes
        if ranks == 1:
            settle_slot(found, at, results, target)
            continue
        other = at + (ranks - 1) * lanes
        if between_slots(found, at, other, results.dtype.type(weight), results, target):
            for lane in range(lanes):
                results[target + lane] = between(np.float64(found[at + lane]), np.float64(found[other + lane]), weight)


@inner
def slack_results(
    found: Array, totals: Array, row: int, first: Array, length: int, code: Code, lower: Array, upper: Array,
    weight: Array, interpolates: bool, results: Array, place: int, sums: Array,
) -> int:  # fmt: skip
    """Results of a tile with missing cells; how many slots have windows that must be answered on their own.

    ``totals[r]`` (a slot per row, the tile's first is ``row``) are the counts of all rows before r.
    """
    lanes, ranks, fast = code.lanes, code.slack_ranks, code.linear and not interpolates
    failures = 0
    for output in range(len(first)):
        window_totals(found, totals, row, first, length, output, lanes, sums)
        start, target = output * ranks * lanes, place + output * lanes
        if fast:
            failures += pick_slot(
                found, start, ranks, sums, code.cells, code.slope, code.intercept, code.slack_first, results, target
            )
        else:
            failures += _pick_singly(found, start, sums, code, lower, upper, weight, interpolates, results, target)
    return failures


@inner
def _pick_singly(
    found: Array, start: int, sums: Array, code: Code, lower: Array, upper: Array, weight: Array, interpolates: bool,
    results: Array, target: int,
) -> bool:  # fmt: skip
    """One output's results lane by lane, from the tables; whether a window needs another rank."""
    lanes = code.lanes
    failed = False
    for lane in range(lanes):
        present = code.cells - (sums[lane] & ((1 << LOW_BIT) - 1))
        rank = lower[present] + (sums[lane] >> LOW_BIT) - code.slack_first
        more = upper[present] - lower[present]
        if present == 0:
            results[target + lane] = np.nan
        elif rank < 0 or rank + more >= code.slack_ranks:
            failed = True
        else:
            value = np.float64(found[start + rank * lanes + lane])
            other = np.float64(found[start + (rank + more) * lanes + lane])
            results[target + lane] = between(value, other, weight[present]) if interpolates else value + 0.0
    return failed


@inlined
def window_totals(
    like: Array, totals: Array, row: int, first: Array, length: int, output: int, lanes: int, sums: Array
) -> None:
    """How many cells are missing from the windows of one output, per lane; ``sums`` has room for a second slot."""
    before = (row + first[output, 0]) * lanes
    subtract_slots(like, sums, 0, totals, before + length * lanes, before)
    for run in range(1, first.shape[1]):
        before = (row + first[output, run]) * lanes
        subtract_slots(like, sums, lanes, totals, before + length * lanes, before)
        add_slots(like, sums, 0, sums, 0, sums, lanes)


@inner
def unanswered(total: int, code: Code, lower: Array, upper: Array) -> bool:
    """Whether a window with these totals needs a rank that the network did not give."""
    present = code.cells - (total & ((1 << LOW_BIT) - 1))
    rank = lower[present] + (total >> LOW_BIT) - code.slack_first
    return present > 0 and (rank < 0 or rank + upper[present] - lower[present] >= code.slack_ranks)
