"""``windrow bench placement``: strategies on a modelled cluster, the exact optimum, the time of planning, executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from windrow.bench.placement.cluster import measure_cluster
from windrow.bench.placement.gaps import measure_gaps
from windrow.bench.placement.models import measure_assignments, measure_own_model, measure_paper_model
from windrow.bench.placement.planning import measure_planning
from windrow.bench.placement.scale import FULL, QUICK, PlacementBench, PlacementScale
from windrow.bench.placement.sensitivity import measure_history, measure_sensitivity
from windrow.bench.sections import Found, Suite
from windrow.kernels.placement.batch import FEW_NODES
from windrow.placement.planner import STRATEGIES, plan_batch
from windrow.placement.simulator.instances import draw_instance

SECTIONS: dict[str, Callable[[PlacementBench], Found]] = {
    "paper-model": measure_paper_model,
    "own-model": measure_own_model,
    "assignments": measure_assignments,
    "history": measure_history,
    "sensitivity": measure_sensitivity,
    "exact": measure_gaps,
    "planning": measure_planning,
    "cluster": measure_cluster,
}
ON_SPARK = ("cluster",)
"""Sections that start a Spark session of their own."""


def _compile(_scale: PlacementScale, _folder: Path, _sections: Sequence[str]) -> None:
    """Plan something small by every strategy, so that no figure holds the time of compiling."""
    for nodes in (2, FEW_NODES + 1):
        for strategy in STRATEGIES:
            plan_batch(draw_instance(600, nodes, 0), strategy)


SUITE = Suite(
    "windrow bench placement",
    SECTIONS,
    FULL,
    QUICK,
    lambda scale, folder: PlacementBench(scale),
    on_spark=ON_SPARK,
    prepare=_compile,
)
run, run_at = SUITE.run, SUITE.run_at
