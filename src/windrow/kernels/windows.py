"""Windows by whatever is fastest: the one entry, and the strategies that it chooses from.

Modules with compiled code are imported by the strategies that need them, when they are asked: what is tiny never loads
a compiler.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from windrow.kernels import tiny
from windrow.kernels import window_costs as costs
from windrow.kernels.choose import AUTO, LOADING, Choice, Cost, Strategy, choose
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.problems import WindowProblem, window_problem
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep, Sweep

if TYPE_CHECKING:
    from windrow.kernels.order.strategies import Way

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
WindowStrategy = Strategy[WindowProblem]
WindowChoice = Choice[WindowProblem]

PLANNING = 2e5
"""Nanoseconds. To plan a network or blocks takes longer, but calls alike share it."""
REMEMBERED, LARGEST_TABLE = 256, 1024
"""Choices that are kept for the next call alike, and entries of the largest table of ranks among them."""

VARYING = "windows are of varying width"


def _always(problem: WindowProblem) -> str | None:
    return None


def _if_regular(problem: WindowProblem) -> str | None:
    return VARYING if problem.regular is None else None


def _if_tiny(problem: WindowProblem) -> str | None:
    if problem.outputs * problem.cells <= tiny.MOST_CELLS:
        return None
    return f"all windows together have more than {tiny.MOST_CELLS:,} cells"


def _run_tiny(problem: WindowProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    return tiny.tiny_windows(problem.operation, values, present, problem.sweeps, problem.ranks)


def _run_scan(problem: WindowProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.scans.operations import scan_windows

    return scan_windows(problem.operation, values, present, problem.regular or (), out)


def _run_counters(problem: WindowProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.counting.counters import count_windows

    return count_windows(problem.operation, values, present, problem.sweeps)


def _run_incremental(problem: WindowProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.papers.incremental import incremental_windows

    return incremental_windows(problem.operation, values, present, problem.sweeps, problem.ranks, problem.forced)


def _run_naive(problem: WindowProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    from windrow.kernels.naive import naive_windows

    return naive_windows(problem.operation, values, present, problem.sweeps, problem.ranks)


def _order_statistic(name: str, summary: str, start: float = LOADING + PLANNING) -> WindowStrategy:
    """One of the ways of ``order.strategies``, which is imported when it is first asked."""

    def way() -> Way:
        from windrow.kernels.order.strategies import WAYS

        return WAYS[name]

    def can(problem: WindowProblem) -> str | None:
        from windrow.kernels.order.problems import order_problem

        if problem.regular is None:
            return VARYING
        simplest = order_problem(problem)
        return None if simplest is None else way().can(simplest)

    def cost(problem: WindowProblem) -> Cost:
        from windrow.kernels.order.problems import order_problem

        simplest = order_problem(problem)
        if simplest is None:
            return Cost(float(problem.outputs), "no window holds a cell")
        slides = name in ("series", "bitset")
        return replace(way().cost(simplest), sweep=problem.swept if slides else None)

    def run(problem: WindowProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
        from windrow.kernels.order.select import select_windows

        return select_windows(way().run, problem, values, present, out)

    return Strategy(name, summary, can, cost, run, start)


_TINY = Strategy("tiny", "all windows as one NumPy table, no compiler", _if_tiny, costs.tiny_cost, _run_tiny, start=0)
_SCAN = Strategy("scan", "block scans, one axis after the other", _if_regular, costs.scan_cost, _run_scan)
_COUNTERS = Strategy(
    "counters", "values numbered, a counter for each that moves with the window", _always, costs.counters_cost,
    _run_counters,
)  # fmt: skip
_INCREMENTAL = Strategy(
    "incremental", "window units enter and leave", _always, costs.incremental_cost, _run_incremental
)
_NAIVE = Strategy("naive", "every cell of every window", _always, costs.naive_cost, _run_naive)

_SCANS = (_TINY, _SCAN, _INCREMENTAL, _NAIVE)
_COUNTS = (_TINY, _COUNTERS, _INCREMENTAL, _NAIVE)
_ORDER = (
    _TINY,
    _order_statistic("direct", "each window partitioned on its own", LOADING),
    _order_statistic("series", "sorting networks, windows along one axis side by side"),
    _order_statistic("rows", "sorting networks, rows of windows side by side"),
    _order_statistic("bitset", "ranks of a block as a set of bits that moves with the window"),
    _INCREMENTAL,
    _NAIVE,
)
CHAINS: dict[str, tuple[WindowStrategy, ...]] = {
    **dict.fromkeys(("count", "sum", "avg", "squares", "min", "max"), _SCANS),
    **dict.fromkeys(("distinct", "mode"), _COUNTS),
    "select": _ORDER,
}
"""For each operation, what there is to choose from."""

NAMES = tuple(dict.fromkeys(strategy.name for chain in CHAINS.values() for strategy in chain))

_KNOWN: dict[Hashable, WindowChoice] = {}


def compute_windows(
    operation: str,
    values: Array,
    present: Mask | None,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
    out: Array | None = None,
    strategy: str = AUTO,
) -> Outcome:
    """As ``naive_windows``, by the cheapest strategy or the one asked for; results may be written into ``out``."""
    choice = choose_windows(operation, values.shape, values.dtype, sweeps, ranks, strategy)
    outcome: Outcome = choice.run(values, present, out)
    return outcome


def average_windows(
    values: Array, present: Mask | None, sweeps: Sequence[AnySweep], out: Array | None = None, strategy: str = AUTO
) -> Outcome | None:
    """Averages in one go, as ``reals``; None where they are made from sums."""
    choice = choose_windows("avg", values.shape, values.dtype, sweeps, None, strategy)
    if choice.name != _SCAN.name or (values.dtype.kind != "f" and present is not None):
        return None
    from windrow.kernels.scans.windows import averages_directly

    if not averages_directly(values.dtype, choice.problem.cells):
        return None
    outcome: Outcome = choice.run(values, present, out)
    return outcome


def choose_windows(
    operation: str,
    shape: Sequence[int],
    dtype: Any,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
    strategy: str = AUTO,
    forced: int | None = None,
) -> WindowChoice:
    """What ``compute_windows`` would do, which the next call alike need not find out again; ``forced`` is an axis."""
    key = _key(operation, shape, dtype, sweeps, ranks, strategy) if forced is None else None
    known = None if key is None else _KNOWN.get(key)
    if known is not None:
        return known
    choice = choose(CHAINS[operation], window_problem(operation, shape, dtype, sweeps, ranks, forced), strategy)
    if key is not None and not choice.cost.compiling:  # once it is compiled, it is worth another look
        if len(_KNOWN) >= REMEMBERED:
            _KNOWN.clear()
        _KNOWN[key] = choice
    return choice


def _key(
    operation: str, shape: Sequence[int], dtype: Any, sweeps: Sequence[AnySweep], ranks: RankTable | None, strategy: str
) -> Hashable | None:
    """What makes two calls alike; None if that would take longer to compare than to find out."""
    if not all(isinstance(sweep, Sweep) for sweep in sweeps):
        return None
    table: Hashable = None
    if ranks is not None:
        if ranks.most > LARGEST_TABLE:
            return None
        table = (ranks.lower.tobytes(), ranks.upper.tobytes(), ranks.weight.tobytes(), ranks.slope, ranks.interpolates)
    return operation, tuple(shape), dtype, tuple(sweeps), table, strategy
