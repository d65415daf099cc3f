"""How much a run of the placement benchmark simulates."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from dataclasses import dataclass, field, replace
from typing import Any

from windrow.placement.planner import Options
from windrow.placement.simulator.run import BatchResult, Cluster, Setting, simulate, workload_of
from windrow.placement.simulator.workloads import Workload


@dataclass(frozen=True)
class Solver:
    """The package that the exact optimum needs."""

    name: str = "HiGHS"

    @property
    def version(self) -> str | None:
        """None if it is not installed."""
        return None if importlib.util.find_spec("highspy") is None else importlib.metadata.version("highspy")


@dataclass(frozen=True)
class PlacementScale:
    """Seeds and batches of every run, views and their patterns, and the sizes of single problems."""

    seeds: int
    batches: int
    cases: tuple[tuple[str, str], ...]
    pairs: int
    nodes: int
    batch_sizes: tuple[int, ...]
    batch_counts: tuple[int, ...]
    spreads: tuple[int, ...]
    spread_chunks: int
    exact_joins: tuple[tuple[int, int], ...]
    exact_views: tuple[tuple[int, int], ...]
    exact_seconds: float
    assignments: tuple[str, ...] = ("round_robin", "hash", "curve", "tiles")
    executors: int = 3
    """Of the cluster on this machine."""
    cluster_fields: int = 6
    """Fields of a survey that each batch there adds to."""


PTF = ("real", "correlated", "periodic")
FULL = PlacementScale(
    seeds=3,
    batches=10,
    cases=(*(("PTF-5", p) for p in PTF), *(("PTF-25", p) for p in PTF), *(("GEO", p) for p in ("random", *PTF[1:]))),
    pairs=1_000_000,
    nodes=1_000,
    batch_sizes=(50, 100, 200, 400, 800, 1_600),
    batch_counts=(1, 2, 5, 10, 20, 40),
    spreads=(10, 20, 40, 80),
    spread_chunks=500,
    exact_joins=((12, 3), (24, 3), (36, 4), (48, 4), (60, 4)),
    exact_views=((12, 3), (18, 3), (24, 4), (30, 4)),
    exact_seconds=20.0,
)
QUICK = PlacementScale(
    seeds=1,
    batches=2,
    cases=(("PTF-5", "real"), ("PTF-5", "correlated"), ("GEO", "random")),
    pairs=50_000,
    nodes=1_000,
    batch_sizes=(50, 200, 800),
    batch_counts=(1, 4),
    spreads=(10, 40),
    spread_chunks=200,
    exact_joins=((12, 3), (24, 3)),
    exact_views=((12, 3),),
    exact_seconds=2.0,
    assignments=("round_robin", "tiles"),
    cluster_fields=3,
)


@dataclass(frozen=True)
class PlacementBench:
    """One run; what was simulated is kept, because several sections show it."""

    scale: PlacementScale
    peers: tuple[Solver, ...] = (Solver(),)
    cluster: Cluster = field(default_factory=Cluster)

    @property
    def options(self) -> Options:
        """Sweeps alone end the improvement pass here, so that figures are the same on every machine."""
        return Options(seconds=float("inf"))

    def setting(self, strategy: str, **other: Any) -> Setting:
        """A setting of this run's cluster; ``other`` are its further fields."""
        return replace(Setting(strategy, cluster=self.cluster, options=self.options), **other)

    def results(self, view: str, pattern: str, seed: int, setting: Setting) -> list[BatchResult]:
        return _results(view, pattern, self.scale.batches, seed, setting)


@functools.lru_cache(maxsize=64)
def _workload(view: str, pattern: str, batches: int, seed: int) -> Workload:
    return workload_of(view, pattern, batches, seed)


@functools.lru_cache(maxsize=512)
def _results(view: str, pattern: str, batches: int, seed: int, setting: Setting) -> list[BatchResult]:
    return simulate(view, _workload(view, pattern, batches, seed), setting)
