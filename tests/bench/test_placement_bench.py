"""The placement benchmark: whole sections at a tiny scale, and what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from windrow.bench import placement
from windrow.bench.placement import scale, sensitivity
from windrow.bench.placement.scale import QUICK, PlacementBench, Solver
from windrow.console.commands.benchmarks import SECTIONS
from windrow.errors import UnknownNameError
from windrow.placement.simulator import workloads

TINY = replace(
    QUICK,
    batches=2,
    cases=(("PTF-5", "correlated"),),
    pairs=2_000,
    nodes=50,
    batch_sizes=(20, 40),
    batch_counts=(1, 2),
    spreads=(10,),
    spread_chunks=40,
    exact_joins=((12, 3),),
    exact_views=((6, 2),),
    exact_seconds=60.0,
)


def test_the_command_names_every_section() -> None:
    assert tuple(placement.SECTIONS) == SECTIONS["placement"]


@pytest.fixture
def few_nights(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Surveys of some hundred chunks; what was simulated of others is forgotten, before and after."""
    for name, number in {"NIGHTS_BEFORE": 8, "NIGHTS_A_BATCH": 3, "FIELDS": 4}.items():
        monkeypatch.setattr(workloads, name, number)
    monkeypatch.setattr(sensitivity, "NIGHTS", 12)
    for cache in (scale._workload, scale._results):
        cache.cache_clear()
    yield
    for cache in (scale._workload, scale._results):
        cache.cache_clear()


@pytest.mark.usefixtures("few_nights")
def test_all_sections_run_and_are_written(tmp_path: Path) -> None:
    said: list[str] = []
    modelled = [name for name in SECTIONS["placement"] if name != "cluster"]  # which starts a Spark of its own
    report = placement.run_at(TINY, tmp_path, modelled, said.append)
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {table["section"] for table in held["tables"]} == set(modelled)
    assert (tmp_path / "report.md").exists()
    for row in report.targets.rows:
        assert math.isfinite(row.value), row
    never = [row for row in report.targets.rows if "baseline's plan" in row.what]
    assert never
    assert all(row.met for row in never)
    figures = " ".join(table["title"] for table in held["tables"])
    assert all(f"Fig. {number}" in figures for number in ("3", "5", "9", "10a", "10b", "10c"))
    assert "T_ntwk 8 ns a byte" in held["tables"][0]["about"]


def test_without_the_solver_gaps_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Solver, "version", None)
    rows = list(placement.SECTIONS["exact"](PlacementBench(TINY)))
    assert [row.verdict for row in rows] == ["not measured", "not measured"]


def test_unknown_sections() -> None:
    with pytest.raises(UnknownNameError, match="no such section"):
        placement.run(only=["paper"], show=lambda _: None)
