"""The strategies for frames: which can do what, by which kernel. What they cost is in ``costs``.

Modules with compiled code are imported by the strategies that need them, when they are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels import tiny
from windrow.kernels.choose import Choice, Cost, Strategy, choose
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.frames import costs
from windrow.kernels.frames.problems import FrameProblem
from windrow.kernels.frames.sums import squares, sum_frames
from windrow.kernels.frames.tiny import tiny_frames
from windrow.kernels.windows import WindowChoice, choose_windows

Array = npt.NDArray[Any]
FrameStrategy = Strategy[FrameProblem]
FrameChoice = Choice[FrameProblem]
Obstacle = str | None

MOST_SHORT_VALUES = 1 << 10
MOST_LANE_ROWS = 1 << 12
"""Rows of windows that are counted side by side; with more, to begin takes too long."""


def _always(problem: FrameProblem) -> Obstacle:
    return None


def _if_tiny(problem: FrameProblem) -> Obstacle:
    if problem.spans.count * max(1, problem.spans.most) <= tiny.MOST_CELLS:
        return None
    return f"all frames together have more than {tiny.MOST_CELLS:,} rows"


def _run_tiny(problem: FrameProblem) -> Outcome:
    return tiny_frames(problem.operation, problem.values, problem.spans, problem.ranks)


def _if_whole(problem: FrameProblem) -> Obstacle:
    return None if problem.spans.whole else "rows are excluded from frames"


def _if_windows(problem: FrameProblem) -> Obstacle:
    return "frames are not at the same distance from every row" if problem.spans.offsets is None else None


def _if_close(problem: FrameProblem) -> Obstacle:
    return "values are not whole numbers that lie close together" if problem.close is None else None


# Sums and extremes


def _run_by_fold(fold: Callable[[str, Array, FrameProblem], Array]) -> Callable[[FrameProblem], Outcome]:
    """A strategy's run from a function that folds any numbers over the frames of a problem."""

    def run(problem: FrameProblem) -> Outcome:
        if problem.operation == "sum":
            return sum_frames(problem.values, problem.spans, lambda numbers: fold("sum", numbers, problem))
        if problem.operation == "squares":
            return squares(problem.values, problem.spans, lambda numbers: fold("sum", numbers, problem))
        return Outcome(NO_VALUES, fold(problem.operation, problem.values, problem), problem.spans.sizes)

    return run


def _fold_windows(operation: str, numbers: Array, problem: FrameProblem) -> Array:
    outcome: Outcome = _as_windows(problem, operation).run(numbers, None, None)
    return outcome.exact if outcome.exact is not NO_VALUES else outcome.reals


def _fold_ranges(operation: str, numbers: Array, problem: FrameProblem) -> Array:
    from windrow.kernels.frames.ranges import fold_ranges

    return fold_ranges(operation, numbers, problem.spans)


def fold_by_paper(method: str) -> Callable[[FrameProblem], Outcome]:
    def fold_numbers(operation: str, numbers: Array, problem: FrameProblem) -> Array:
        from windrow.kernels.papers.frame_fold import fold

        return fold(operation, np.ascontiguousarray(numbers), problem.spans, method)

    return _run_by_fold(fold_numbers)


def _as_windows(problem: FrameProblem, operation: str) -> WindowChoice:
    """What windows would be computed by, where frames are such."""
    assert problem.spans.offsets is not None
    sweep = Sweep(0, problem.spans.count, *problem.spans.offsets)
    dtype = np.float64 if problem.operation == "squares" else problem.values.dtype
    return choose_windows(operation, (len(problem.values),), dtype, [sweep], problem.ranks)


def _if_folding_windows(problem: FrameProblem) -> Obstacle:
    # Windows refuse sums that overflow, where frames have to know which of them are wanted at all.
    return "a sum could leave 64 bits" if problem.may_overflow else _if_windows(problem)


def _cost_folding_windows(problem: FrameProblem) -> Cost:
    if problem.operation == "squares":
        found = _as_windows(problem, "sum")
        return Cost(2 * found.cost.nanoseconds, f"by {found.name}")
    return _cost_windows(problem)


def _cost_windows(problem: FrameProblem) -> Cost:
    found = _as_windows(problem, problem.operation)
    detail = f"by {found.name}, {found.cost.detail}" if found.cost.detail else f"by {found.name}"
    return Cost(found.cost.nanoseconds, detail, found.cost.compiling)


# Distinct values and modes


def _as_outcome(found: Array) -> Outcome:
    return Outcome(found, found, None)


def _close(problem: FrameProblem) -> tuple[int, int]:
    assert problem.close is not None
    return problem.close


def _run_counters(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.distinct import distinct_by_counters

    return _as_outcome(distinct_by_counters(problem.values, _close(problem), problem.spans, problem.path.order))


def _run_numbers(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.distinct import distinct_by_numbers

    return _as_outcome(distinct_by_numbers(problem.values, problem.spans, problem.best_path.order))


def _run_links(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.distinct import distinct_by_links

    return _as_outcome(distinct_by_links(problem.values, problem.close, problem.spans, problem.path.order))


def _run_ends(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.distinct import distinct_by_ends

    return _as_outcome(distinct_by_ends(problem.values, problem.close, problem.spans))


def _if_short(problem: FrameProblem) -> Obstacle:
    from windrow.kernels.frames.short import LONGEST

    if problem.spans.most > LONGEST:
        return f"frames have more than {LONGEST} rows"
    obstacle = _if_windows(problem) or _if_close(problem)
    if obstacle is None and _close(problem)[1] > MOST_SHORT_VALUES:
        return f"there are more than {MOST_SHORT_VALUES:,} values"
    return obstacle


def _run_short(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.mode import mode_side_by_side
    from windrow.kernels.frames.short import short_modes

    return _as_outcome(mode_side_by_side(short_modes, problem.values, _close(problem), problem.spans))


def _if_lanes(problem: FrameProblem) -> Obstacle:
    from windrow.kernels.frames.lanes import fit_lanes

    obstacle = _if_close(problem) or _if_windows(problem)
    if obstacle is not None:
        return obstacle
    fits = fit_lanes(problem.spans, _close(problem)[1], MOST_LANE_ROWS)
    return None if fits else "there are too many values, too long windows, or too few of them"


def _run_mode_lanes(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.lanes import lane_modes
    from windrow.kernels.frames.mode import mode_side_by_side

    return _as_outcome(mode_side_by_side(lane_modes, problem.values, _close(problem), problem.spans))


def _run_mode_counters(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.mode import mode_by_counters

    return _as_outcome(mode_by_counters(problem.values, _close(problem), problem.spans, problem.best_path.order))


def _run_mode_blocks(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.mode import mode_by_blocks

    return _as_outcome(mode_by_blocks(problem.values, problem.spans, problem.best_path.order))


def count_by_paper(method: str) -> Callable[[FrameProblem], Outcome]:
    def run(problem: FrameProblem) -> Outcome:
        from windrow.kernels.papers.frame_counts import count_frames

        reuses = method == "incremental"
        return count_frames(problem.operation, problem.values, problem.spans, problem.tau, reuses=reuses)

    return run


# Order statistics


def _ranks(problem: FrameProblem) -> RankTable:
    assert problem.ranks is not None
    return problem.ranks


def _if_one_fraction(problem: FrameProblem) -> Obstacle:
    return "each frame has a fraction of its own" if _ranks(problem).each else None


def _if_select_windows(problem: FrameProblem) -> Obstacle:
    return _if_one_fraction(problem) or _if_windows(problem)


def _if_select_lanes(problem: FrameProblem) -> Obstacle:
    from windrow.kernels.frames.lanes import exact_lanes

    obstacle = _if_lanes(problem)
    if obstacle is None and not exact_lanes(_close(problem)[0]):
        return "values are too large to be added as floats"
    return obstacle


def _run_select_lanes(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.quantiles import select_side_by_side

    return _as_outcome(select_side_by_side(problem.values, _close(problem), problem.spans, _ranks(problem)))


def _run_select_windows(problem: FrameProblem) -> Outcome:
    outcome: Outcome = _as_windows(problem, "select").run(problem.values, None, None)
    return outcome._replace(counts=None)


def _run_select_counters(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.quantiles import select_by_counters

    close, order = _close(problem), problem.path.order
    return _as_outcome(select_by_counters(problem.values, close, problem.spans, order, _ranks(problem)))


def _run_bitset(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.bitset import bitset_select
    from windrow.kernels.frames.quantiles import select_by_keys

    def way(keys: Array, ranks: RankTable) -> Array:
        return bitset_select(keys, problem.spans, problem.path.order, ranks)

    return _as_outcome(select_by_keys(way, problem.values, problem.spans, _ranks(problem)))


def _if_ordered(problem: FrameProblem) -> Obstacle:
    from windrow.kernels.frames.ordered import LONGEST

    if problem.spans.most > LONGEST:
        return f"frames have more than {LONGEST} rows"
    return _if_whole(problem)


def _run_ordered(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.ordered import ordered_select
    from windrow.kernels.frames.quantiles import select_by_keys

    def way(keys: Array, ranks: RankTable) -> Array:
        return ordered_select(keys, problem.spans, ranks)

    return _as_outcome(select_by_keys(way, problem.values, problem.spans, _ranks(problem)))


def _run_wavelet(problem: FrameProblem) -> Outcome:
    from windrow.kernels.frames.quantiles import select_by_keys
    from windrow.kernels.frames.wavelet import wavelet_select

    def way(keys: Array, ranks: RankTable) -> Array:
        return wavelet_select(keys, problem.spans, ranks)

    return _as_outcome(select_by_keys(way, problem.values, problem.spans, _ranks(problem)))


def select_by_paper(method: str) -> Callable[[FrameProblem], Outcome]:
    def run(problem: FrameProblem) -> Outcome:
        from windrow.kernels.papers.frame_quantile import quantile_frames

        return quantile_frames(problem.values, problem.spans, _ranks(problem), method)

    return run


# Frames of one length


def _if_family(problem: FrameProblem) -> Obstacle:
    if problem.ranks is not None and problem.ranks.each:
        return _if_one_fraction(problem)
    return "frames slide as they come, or are of several lengths" if problem.family is None else None


def _members(problem: FrameProblem) -> FrameChoice:
    return choose(CHAINS[problem.operation], problem.family_windows)


def _cost_family(problem: FrameProblem) -> Cost:
    found = _members(problem)
    return costs.family_cost(problem, found.cost, found.name)


def _run_family(problem: FrameProblem) -> Outcome:
    outcome: Outcome = _members(problem).run()
    assert problem.family is not None
    reals = problem.family.results(outcome.reals)
    exact = reals if outcome.exact is outcome.reals else problem.family.results(outcome.exact)
    return Outcome(reals, exact, None)


_TINY = Strategy("tiny", "all frames as one NumPy table, no compiler", _if_tiny, costs.tiny_cost, _run_tiny, start=0)
_FAMILY = Strategy(
    "family", "windows of that length slide, each frame takes its own", _if_family, _cost_family, _run_family
)


def _naive(run: Callable[[FrameProblem], Outcome]) -> FrameStrategy:
    return Strategy("naive", "every row of every frame", _always, costs.naive_cost, run)


def _incremental(run: Callable[[FrameProblem], Outcome]) -> FrameStrategy:
    return Strategy("incremental", "rows come and go, frames as they come", _always, costs.incremental_cost, run)


_FOLDS: tuple[FrameStrategy, ...] = (
    _TINY,
    Strategy("windows", "block scans", _if_folding_windows, _cost_folding_windows, _run_by_fold(_fold_windows)),
    Strategy(
        "ranges", "totals of blocks, and a table over them", _always, costs.ranges_cost, _run_by_fold(_fold_ranges)
    ),
    _incremental(fold_by_paper("incremental")),
    _naive(fold_by_paper("naive")),
)
_DISTINCT: tuple[FrameStrategy, ...] = (
    _TINY,
    _FAMILY,
    Strategy("counters", "a counter for each value", _if_close, costs.counters_cost, _run_counters),
    Strategy("links", "links to the rows with the same value", _if_whole, costs.links_cost, _run_links),
    Strategy("ends", "by their ends, a bit for each row with a later twin", _if_whole, costs.ends_cost, _run_ends),
    Strategy("numbers", "values numbered, then counted", _always, costs.numbers_cost, _run_numbers),
    _incremental(count_by_paper("incremental")),
    _naive(count_by_paper("naive")),
)
_MODES: tuple[FrameStrategy, ...] = (
    _TINY,
    _FAMILY,
    Strategy("short", "rows compared with later ones, side by side", _if_short, costs.short_cost, _run_short),
    Strategy("lanes", "value after value counted, side by side", _if_lanes, costs.lanes_cost, _run_mode_lanes),
    Strategy(
        "counters", "counters, and how many have each count", _if_close, costs.mode_counters_cost, _run_mode_counters
    ),
    Strategy("blocks", "ranks of a block, a tournament of counts", _always, costs.mode_blocks_cost, _run_mode_blocks),
    _incremental(count_by_paper("incremental")),
    _naive(count_by_paper("naive")),
)
_SELECT: tuple[FrameStrategy, ...] = (
    _TINY,
    _FAMILY,
    Strategy("lanes", "value after value counted, side by side", _if_select_lanes, costs.lanes_cost, _run_select_lanes),
    Strategy("windows", "as windows of an array", _if_select_windows, _cost_windows, _run_select_windows),
    Strategy(
        "counters", "counters, and a walk from the last answer", _if_close, costs.select_counters_cost,
        _run_select_counters,
    ),
    Strategy("ordered", "the values of a frame in order", _if_ordered, costs.ordered_cost, _run_ordered),
    Strategy("bitset", "ranks of a block as a set of bits that moves along", _always, costs.bitset_cost, _run_bitset),
    Strategy("wavelet", "wavelet matrix over the ranks of a block", _always, costs.wavelet_cost, _run_wavelet),
    _incremental(select_by_paper("replace")),
    _naive(select_by_paper("naive")),
)  # fmt: skip
CHAINS: dict[str, tuple[FrameStrategy, ...]] = {
    **dict.fromkeys(("sum", "squares", "min", "max"), _FOLDS),
    "distinct": _DISTINCT,
    "mode": _MODES,
    "select": _SELECT,
}
"""For each operation, what there is to choose from. How many rows a frame has follows from its bounds alone."""

NAMES = tuple(dict.fromkeys(strategy.name for chain in CHAINS.values() for strategy in chain))
