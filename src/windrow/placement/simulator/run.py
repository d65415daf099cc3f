"""Runs of a strategy over batches, on a modelled cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Literal

from windrow.errors import UnknownNameError, nearest
from windrow.placement.homes import Correlations
from windrow.placement.plan import Plan, chunk_needs, merging_bound
from windrow.placement.planner import Decision, Options, plan_batch
from windrow.placement.problem import Problem, Rates, charge_receivers, charge_senders
from windrow.placement.simulator.chunks import ChunkSet
from windrow.placement.simulator.stock import EVER, ViewShape, assign_stock, hold, pose, settle, to_paper_model
from windrow.placement.simulator.workloads import (
    PLACE_LENGTHS,
    SURVEY_LENGTHS,
    Workload,
    place_workload,
    survey_workload,
)
from windrow.samples.survey import STEPS_A_DAY

Model = Literal["windrow", "paper"]
Base = Literal["growing", "held"]

SHAPES = {
    "PTF-5": ViewShape("PTF-5", (200 * STEPS_A_DAY, 1, 1), (0, 1, 1), SURVEY_LENGTHS, (1, 2)),
    "PTF-25": ViewShape("PTF-25", (EVER, 2, 2), (EVER, 2, 2), SURVEY_LENGTHS, (1, 2)),
    "GEO": ViewShape("GEO", (1, 1), (1, 1), PLACE_LENGTHS, (0, 1)),
}
"""Paper 004's three views."""


@dataclass(frozen=True)
class Cluster:
    """Nodes, the speed of their links in bytes a second, and how long a byte takes to join, over to receive."""

    nodes: int = 8
    link: float = 125e6
    ratio: float = 0.1

    @property
    def receivers(self) -> Rates:
        return charge_receivers(1 / self.link, self.ratio / self.link, self.ratio / self.link)

    @property
    def senders(self) -> Rates:
        return charge_senders(1 / self.link, self.ratio / self.link, self.ratio / self.link)

    def __str__(self) -> str:
        return (
            f"{self.nodes} nodes, links of {self.link / 1e6:g} MB/s (T_ntwk {1e9 / self.link:.3g} ns a byte), "
            f"T_cpu = T_merge = {self.ratio:g} T_ntwk"
        )


@dataclass(frozen=True)
class Setting:
    """What is the same for all batches of a run."""

    strategy: str = "auto"
    assignment: str = "round_robin"
    cluster: Cluster = field(default_factory=Cluster)
    model: Model = "windrow"
    base: Base = "growing"
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class BatchResult:
    """One batch of a run: sizes, seconds of the busiest node, of the bound and of planning."""

    new_chunks: int
    pairs: int
    taken: str
    objective: float
    baseline: float
    """What the baseline's plan would cost from the same homes."""
    bound: float
    merging_bound: float
    """The same, with what has to be merged."""
    planning: float
    new_bytes: float
    bytes_received: float
    old_bytes_moved: float
    """Of what all nodes received: chunks that were stored before the batch."""


def workload_of(view: str, pattern: str, batches: int, seed: int) -> Workload:
    """The batches that a view gets by a pattern of updates."""
    if view not in SHAPES:
        raise UnknownNameError("no such view in the simulator", got=view, hint=nearest(view, SHAPES))
    return (place_workload if view == "GEO" else survey_workload)(pattern, batches, seed)


def simulate(view: str, workload: Workload, setting: Setting) -> list[BatchResult]:
    """Plan one batch after the other; homes are those that the plan before left."""
    shape, cluster = SHAPES[view], setting.cluster
    stock = assign_stock(workload.base, shape, setting.assignment, cluster.nodes)
    results: list[BatchResult] = []
    past: list[Correlations] = []
    for number, new in enumerate(workload.batches):
        step = pose(stock, new, shape, setting.assignment, cluster.nodes, cluster.receivers)
        problem = step.problem if setting.model == "windrow" else to_paper_model(step.problem, cluster.senders)
        options = replace(setting.options, seed=setting.options.seed + number)
        begin = time.process_time()
        decision = plan_batch(problem, setting.strategy, options, past)
        took = time.process_time() - begin
        results.append(_summarise(new, problem, decision, len(step.old), took))
        past.insert(0, decision.remembered)
        stock = (settle if setting.base == "growing" else hold)(stock, new, step, decision.plan)
    return results


def _summarise(new: ChunkSet, problem: Problem, decision: Decision, old: int, took: float) -> BatchResult:
    return BatchResult(
        new_chunks=len(new),
        pairs=len(problem.pairs),
        taken=decision.taken,
        objective=decision.cost.objective,
        baseline=decision.baseline.objective,
        bound=decision.bound,
        merging_bound=merging_bound(problem),
        planning=took,
        new_bytes=float(new.bytes.sum()),
        bytes_received=float(decision.cost.bytes_received.sum()),
        old_bytes_moved=_old_bytes_moved(problem, decision.plan, old),
    )


def _old_bytes_moved(problem: Problem, plan: Plan, old: int) -> float:
    """Bytes of chunks that were stored before the batch and had to come to a node that is not their home."""
    chunk, node = chunk_needs(problem, plan)
    away = (chunk < old) & (problem.chunks.homes[chunk] != node)
    return float(problem.chunks.bytes[chunk[away]].sum())
