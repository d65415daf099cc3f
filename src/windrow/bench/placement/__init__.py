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
from windrow.bench.report import Show
from windrow.bench.sections import Found, choose, run_sections
from windrow.bench.windows_report import WindowsReport
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


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> WindowsReport:
    """Simulate, showing each table as it is found; ``out`` is a folder for the report and its plots.

    ``only`` names the sections to run.
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: PlacementScale, out: Path | None, only: Sequence[str], show: Show) -> WindowsReport:
    chosen = choose(SECTIONS, only, ON_SPARK, "windrow bench placement")
    _compile()
    return run_sections(
        "windrow bench placement", (SECTIONS[name] for name in chosen), PlacementBench(scale), out, show
    )


def _compile() -> None:
    """Plan something small by every strategy, so that no figure holds the time of compiling."""
    for nodes in (2, FEW_NODES + 1):
        for strategy in STRATEGIES:
            plan_batch(draw_instance(600, nodes, 0), strategy)
