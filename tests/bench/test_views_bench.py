"""The views' benchmark: its arithmetic, and whole sections at a tiny scale."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from console.runs import done
from windrow.bench import views
from windrow.bench.views.daily import EARLY, FIRST, LATE, Course
from windrow.bench.views.scale import FULL, PEERS, QUICK, ViewsScale
from windrow.bench.views.survey import ANYWHERE, LATEST, Batches
from windrow.console.commands.benchmarks import SECTIONS
from windrow.errors import DataError, UnknownNameError

TINY = ViewsScale(
    few=300,
    many=600,
    most=900,
    batch=20,
    rounds=1,
    changes=30,
    field=(6, 5, 40),
    days=14,
    span=2,
    night=15,
)


def test_sections_are_those_of_the_command() -> None:
    assert tuple(views.SECTIONS) == SECTIONS["views"]
    with pytest.raises(UnknownNameError, match="no such section"):
        views.run(only=["nonsense"])
    assert "nights" in done("bench", "views", "--help")
    assert QUICK.most < FULL.many < FULL.most == 10**7


@pytest.mark.parametrize("where", [LATEST, ANYWHERE])
def test_batches_are_all_of_a_survey(where: str) -> None:
    found = Batches.of(where, 500, 40, 3)
    tables = [found.stored, *found.batches]
    assert [table.num_rows for table in tables] == [380, 40, 40, 40]
    cells = {tuple(row.values()) for table in tables for row in table.select(["time", "ra", "dec"]).to_pylist()}
    assert len(cells) == 500
    latest = max(found.stored["time"].to_pylist()) <= min(found.batches[0]["time"].to_pylist())
    assert latest == (where == LATEST)
    with pytest.raises(DataError, match="leave nothing"):
        Batches.of(where, 100, 50, 2)


def test_courses_compare_the_last_batches_with_early_ones(tmp_path: Path) -> None:
    course = Course(tmp_path)
    course.seconds = [9.0] * FIRST + [1.0, 1.0] + [5.0] * 3 + [2.0, 2.0]
    assert course.compared(2) == {EARLY: 1.0, LATE: 2.0}
    assert course.growth(list(np.cumsum([3] * FIRST + [2, 2] + [7] * 3 + [4, 4])), 2) == 2.0
    with pytest.raises(DataError, match="too few batches"):
        course.compared(5)


def test_a_run(tmp_path: Path) -> None:
    chosen = ["kernels", "ptf5", "medians", "batches", "dense", "days", "answers", "reads"]
    report = views.run_at(TINY, tmp_path, chosen, lambda _: None)
    assert {table.section for table in report.tables} == set(chosen)
    for table in report.tables:
        assert all(took >= 0 for line in table.lines for took in line.result.seconds.values())
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert len(held["rows"]) == 5 + 5 + 1 + 3 + 8 + 3 + 19 + 2
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("windrow-bench-")]


@pytest.mark.slow
def test_a_run_without_peers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "PEERS", tuple(replace(peer, package="windrow_has_no_such_peer") for peer in PEERS))
    report = views.run_at(TINY, None, ["batches", "ptf25", "nights"], lambda _: None)
    assert report.missing_peers == ["DuckDB"]
    lacking = [row for row in report.targets.rows if math.isnan(row.value)]
    assert [row.verdict for row in lacking] == ["not measured"]
