"""How far plans are from the best there is, on problems that HiGHS solves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from windrow.bench.placement.scale import PlacementBench
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.placement.exact import solve_exactly
from windrow.placement.homes import keep_where_joined
from windrow.placement.improvement import Effort, improve
from windrow.placement.plan import Plan, evaluate
from windrow.placement.planner import STARTS, plan_batch
from windrow.placement.problem import Problem
from windrow.placement.simulator.instances import draw_instance
from windrow.placement.stages import plan_joins, plan_views, unpaired_homes

ONE_START, MANY_STARTS, WORST = 0.15, 0.03, 0.10
SEEDS = 3


@dataclass(frozen=True)
class Gap:
    """Objectives on one problem."""

    greedy: float
    improved: float
    thirty: float
    exact: float

    @property
    def ratios(self) -> tuple[float, float, float]:
        return self.greedy / self.exact - 1, self.improved / self.exact - 1, self.thirty / self.exact - 1


def measure_gaps(bench: PlacementBench) -> Iterator[Table | Measurement]:
    for name, sizes, merging in (
        ("joins alone", bench.scale.exact_joins, False),
        ("joins and view homes", bench.scale.exact_views, True),
    ):
        if bench.peers[0].version is None:
            yield Measurement("exact", f"{name}, one improved start, mean gap", math.nan, "", ONE_START, "at most")
            continue
        gaps, lines, unsolved = [], [], 0
        for pairs, nodes in sizes:
            for seed in range(SEEDS):
                problem = draw_instance(pairs, nodes, seed, merging=merging)
                gap = _measure(bench, problem)
                if gap is None:
                    unsolved += 1
                    continue
                gaps.append(gap)
                seconds = {
                    "greedy": gap.greedy,
                    "one start": gap.improved,
                    f"{STARTS} starts": gap.thirty,
                    "exact": gap.exact,
                }
                lines.append(Line(f"{len(problem.pairs)} pairs, {nodes} nodes, seed {seed}", pairs, Result(seconds)))
        yield _table(bench, name, lines, unsolved)
        if gaps:
            yield from _judge(name, gaps)


def _measure(bench: PlacementBench, problem: Problem) -> Gap | None:
    best = solve_exactly(problem, bench.scale.exact_seconds)
    if not best.proven:
        return None
    random = np.random.default_rng(0)
    fixed = unpaired_homes(problem)
    joins, loads = plan_joins(problem, random.permutation(len(problem.pairs)), fixed)
    views = plan_views(problem, joins, loads, random.permutation(len(problem.views)))
    found = improve(problem, (joins, views), fixed, random, Effort(4, math.inf))
    plans = [
        Plan(kept, keep_where_joined(problem, kept), homes)
        for kept, homes in ((joins, views), (found.joins, found.view_homes))
    ]
    greedy, improved = (evaluate(problem, plan).objective for plan in plans)
    return Gap(greedy, improved, plan_batch(problem, "auto", bench.options).cost.objective, best.objective)


def _table(bench: PlacementBench, name: str, lines: Sequence[Line], unsolved: int) -> Table:
    about = (
        f"Modelled seconds of each plan. Not solved in {bench.scale.exact_seconds:g} s, and left out: {unsolved}. "
        f"{bench.cluster.ratio:g} T_ntwk a byte to join."
    )
    ratios = tuple(Ratio(f"{one} / exact", one, "exact") for one in ("greedy", "one start", f"{STARTS} starts"))
    return Table("exact", f"Gap to the optimum: {name}", about, tuple(lines), ratios, "pairs")


def _judge(name: str, gaps: Sequence[Gap]) -> Iterator[Measurement]:
    greedy, one, thirty = (np.array(column) for column in zip(*(gap.ratios for gap in gaps), strict=True))
    detail = f"{len(gaps)} problems; greedy {greedy.mean():.1%} on average, {greedy.max():.1%} at worst"
    yield Measurement(
        "exact", f"{name}, one improved start, mean gap", float(one.mean()), "", ONE_START, "at most", detail
    )
    yield Measurement("exact", f"{name}, {STARTS} starts, mean gap", float(thirty.mean()), "", MANY_STARTS, "at most")
    yield Measurement("exact", f"{name}, {STARTS} starts, worst gap", float(thirty.max()), "", WORST, "at most")
