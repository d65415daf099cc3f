"""How long planning takes: Fig. 5 at the paper's sizes, and a million pairs on a thousand nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from windrow.bench.placement.models import PAPERS
from windrow.bench.placement.scale import PlacementBench
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Table
from windrow.placement.improvement import Effort, improve
from windrow.placement.plan import Plan, evaluate
from windrow.placement.planner import Options, plan_batch
from windrow.placement.problem import Int32Array, Problem
from windrow.placement.simulator.instances import draw_instance
from windrow.placement.stages import plan_joins, plan_views, unpaired_homes

GREEDY_SECONDS, SWEEP_SECONDS, FOUR_SWEEPS_SECONDS = 1.5, 5.0, 0.5
ABOVE_FULL_LOOP, SWEEP_GAIN, SHARE_OF_MAINTENANCE = 1.03, 0.95, 0.05
PAPER_PAIRS, PAPER_NODES = 13_000, 8

Value = TypeVar("Value")


def measure_planning(bench: PlacementBench) -> Iterator[Table | Measurement]:
    yield _average_times(bench)
    yield from _four_sweeps(bench)
    yield from _many_nodes(bench)


def _average_times(bench: PlacementBench) -> Table:
    """Fig. 5: the average over all batches."""
    lines = []
    for view, pattern in bench.scale.cases:
        runs = {name: bench.results(view, pattern, 0, bench.setting(name)) for name in (*PAPERS, "auto")}
        seconds = {name: float(np.mean([result.planning for result in run])) for name, run in runs.items()}
        pairs = int(np.mean([result.pairs for result in runs["baseline"]]))
        lines.append(Line(f"{view} {pattern}, {pairs:,} pairs", pairs, Result(seconds)))
    about = (
        "Processor time of one plan, without finding the pairs. Every plan is evaluated, and so is the baseline's; "
        "auto makes four sweeps."
    )
    return Table("planning", "Planning time, average of all batches (Fig. 5)", about, tuple(lines), (), "pairs")


def _time(action: Callable[[], Value]) -> tuple[Value, float]:
    start = time.process_time()
    value = action()
    return value, time.process_time() - start


def _four_sweeps(bench: PlacementBench) -> Iterator[Measurement]:
    problem = draw_instance(PAPER_PAIRS, PAPER_NODES, 0)
    plan_batch(problem, "auto", Options(sweeps=1))  # compiles
    decision, took = _time(lambda: plan_batch(problem, "auto", bench.options))
    what = f"auto, four sweeps, {len(problem.pairs):,} pairs on {PAPER_NODES} nodes"
    yield Measurement("planning", what, took, "s", FOUR_SWEEPS_SECONDS, "at most", str(decision))
    results = [
        result
        for view, pattern in bench.scale.cases
        if view != "GEO"
        for result in bench.results(view, pattern, 0, bench.setting("auto"))
    ]
    share = max(result.planning / result.objective for result in results)
    what = "auto's planning / maintenance of PTF views, worst batch"
    yield Measurement("planning", what, share, "", SHARE_OF_MAINTENANCE, "at most")


def _many_nodes(bench: PlacementBench) -> Iterator[Measurement]:
    problem = draw_instance(bench.scale.pairs, bench.scale.nodes, 0)
    size = f"{len(problem.pairs):,} pairs on {problem.nodes:,} nodes"
    fixed = unpaired_homes(problem)
    order = np.random.default_rng(0).permutation(len(problem.pairs))
    (joins, loads), greedy = _time(lambda: plan_joins(problem, order, fixed))
    yield Measurement("planning", f"greedy joins, {size}", greedy, "s", GREEDY_SECONDS, "at most", "candidates only")
    (_, full_loads), full = _time(lambda: plan_joins(problem, order, fixed, few=problem.nodes))
    ratio = float(loads.max() / full_loads.max())
    detail = f"{full:.1f} s over all nodes"
    yield Measurement(
        "planning", f"candidates / all nodes, objective, {size}", ratio, "×", ABOVE_FULL_LOOP, "at most", detail
    )
    views = plan_views(problem, joins, loads, np.random.default_rng(1).permutation(len(problem.views)))
    found, sweep = _time(
        lambda: improve(problem, (joins, views), fixed, np.random.default_rng(2), Effort(1, float("inf")))
    )
    yield Measurement("planning", f"greedy and one sweep, {size}", greedy + sweep, "s", SWEEP_SECONDS, "at most")
    gain = _objective(problem, found.joins, found.view_homes) / _objective(problem, joins, views)
    yield Measurement("planning", f"one sweep / none, objective, {size}", gain, "×", SWEEP_GAIN, "at most")


def _objective(problem: Problem, joins: Int32Array, views: Int32Array) -> float:
    """With chunks at home wherever they are joined first, which costs nothing here."""
    homes = problem.settled.copy()
    homes[problem.pairs.left] = joins
    homes[problem.chunks.homes >= 0] = problem.chunks.homes[problem.chunks.homes >= 0]
    return evaluate(problem, Plan(joins, homes, views)).objective
