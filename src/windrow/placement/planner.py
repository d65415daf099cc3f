"""Strategies by name: what is planned for a batch, what it costs, and which plan was taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from windrow.errors import DataError, UnknownNameError, nearest
from windrow.placement.homes import Correlations, keep_near_views, keep_where_joined, remember, weigh
from windrow.placement.improvement import Effort, improve
from windrow.placement.plan import Cost, Plan, evaluate, lower_bound
from windrow.placement.problem import Int32Array, Problem
from windrow.placement.stages import Ties, plan_baseline, plan_joins, plan_views, unpaired_homes

FEW_PAIRS = 100
"""With fewer pairs than this there is time for many starts."""
STARTS = 30


@dataclass(frozen=True)
class Options:
    """How to plan: past batches that count and how fast they fade, a seed, and what the improvement pass may take.

    ``sweeps`` 0 leaves the improvement pass out; ``seconds`` are of processor time.
    """

    window: int = 0
    decay: float = 0.5
    seed: int = 0
    sweeps: int = 4
    seconds: float = 0.5
    ties: Ties = "fewest_bytes"

    def __post_init__(self) -> None:
        if self.window < 0:
            raise DataError("the window of past batches must be 0 or more", got=self.window)
        if not 0.0 <= self.decay <= 1.0:
            raise DataError("decay must be between 0 and 1", got=self.decay)
        if self.sweeps < 0 or not self.seconds >= 0.0:
            raise DataError("the effort must be 0 or more", got=f"{self.sweeps} sweeps, {self.seconds} s")
        if self.ties not in ("fewest_bytes", "first"):
            raise UnknownNameError("no such rule for ties", got=self.ties, hint="There are fewest_bytes and first")

    @property
    def effort(self) -> Effort:
        return Effort(self.sweeps, self.seconds)


@dataclass(frozen=True, eq=False)
class Decision:
    """A plan with all that is said about it."""

    strategy: str
    taken: str
    """The strategy whose plan it is: ``baseline`` if that was cheaper than what was asked for."""
    plan: Plan
    cost: Cost
    baseline: Cost
    bound: float
    remembered: Correlations = field(repr=False)
    """What later batches may take into account."""

    def __str__(self) -> str:
        found = self.cost.objective
        gain = self.baseline.objective / found if found else 1.0
        taken = "" if self.taken == self.strategy else f" (the plan of {self.taken}, which is cheaper)"
        return (
            f"{self.strategy}{taken}: {found:.3g} s on the busiest of {len(self.cost.computing)} nodes, at least "
            f"{self.bound:.3g} s, baseline {self.baseline.objective:.3g} s ({gain:.2f}×)"
        )


def plan_batch(
    problem: Problem, strategy: str = "auto", options: Options | None = None, past: Sequence[Correlations] = ()
) -> Decision:
    """Plan a batch by a strategy of this name; ``past`` are the batches before it, the latest first."""
    if strategy not in STRATEGIES:
        raise UnknownNameError("no such strategy", got=strategy, hint=nearest(strategy, STRATEGIES))
    chosen = options or Options()
    remembered = remember(problem)
    history = (remembered, *past[: chosen.window])
    base = plan_baseline(problem)
    baseline = evaluate(problem, base)
    plan = STRATEGIES[strategy](problem, chosen, history)
    cost, taken = evaluate(problem, plan), strategy
    if strategy == "auto" and baseline.rank < cost.rank:
        plan, cost, taken = base, baseline, "baseline"
    return Decision(strategy, taken, plan, cost, baseline, lower_bound(problem), remembered)


def _baseline(problem: Problem, options: Options, history: Sequence[Correlations]) -> Plan:
    return plan_baseline(problem)


def _differential(problem: Problem, options: Options, history: Sequence[Correlations]) -> Plan:
    """Algorithm 1, with the homes of everything as the baseline has them."""
    random = np.random.default_rng(options.seed)
    joins, _ = plan_joins(problem, random.permutation(len(problem.pairs)), problem.settled, options.ties)
    return Plan(joins, problem.settled, problem.settled_views)


def _reassign(problem: Problem, options: Options, history: Sequence[Correlations]) -> Plan:
    """Algorithms 1, 2 and 3."""
    random = np.random.default_rng(options.seed)
    joins, views = _first_stages(problem, options, random)
    return Plan(joins, keep_near_views(problem, joins, views, weigh(history, options.decay)), views)


def _first_stages(problem: Problem, options: Options, random: np.random.Generator) -> tuple[Int32Array, Int32Array]:
    """Algorithms 1 and 2, in the order that chance gives."""
    order = random.permutation(len(problem.pairs))
    joins, loads = plan_joins(problem, order, unpaired_homes(problem), options.ties)
    return joins, plan_views(problem, joins, loads, random.permutation(len(problem.views)))


def _auto(problem: Problem, options: Options, history: Sequence[Correlations]) -> Plan:
    """Algorithms 1 and 2, the improvement pass, and homes where chunks were joined most; the best of several starts."""
    random = np.random.default_rng(options.seed)
    starts = STARTS if len(problem.pairs) < FEW_PAIRS and options.sweeps else 1
    plans = [_improve_once(problem, options, random) for _ in range(starts)]
    return min(plans, key=lambda plan: evaluate(problem, plan).rank)


def _improve_once(problem: Problem, options: Options, random: np.random.Generator) -> Plan:
    start = _first_stages(problem, options, random)
    found = improve(problem, start, unpaired_homes(problem), random, options.effort)
    return Plan(found.joins, keep_where_joined(problem, found.joins), found.view_homes)


STRATEGIES: dict[str, Callable[[Problem, Options, Sequence[Correlations]], Plan]] = {
    "baseline": _baseline,
    "differential": _differential,
    "reassign": _reassign,
    "auto": _auto,
}
