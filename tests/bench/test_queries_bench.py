"""The queries' benchmark: whole sections at a tiny scale, and that no wrong answer is timed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from windrow.bench import queries
from windrow.bench.queries.race import OURS, Contender, Question, check_answers
from windrow.bench.queries.scale import QUICK
from windrow.console.commands.benchmarks import SECTIONS
from windrow.errors import DataError

TINY = replace(
    QUICK, field=(48, 25, 120), chunk=(24, 13, 50), cells=(3_000,), inserted=2_000, rounds=1, frame_rows=20_000
)


def test_the_command_names_every_section() -> None:
    assert tuple(queries.SECTIONS) == SECTIONS["queries"]


@pytest.mark.slow
def test_all_sections_run_and_are_written(tmp_path: Path) -> None:
    said: list[str] = []
    report = queries.run_at(TINY, tmp_path, [], said.append)
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {table["section"] for table in held["tables"]} == {"dense", "sparse", "frames"}
    assert {row.subject for row in report.targets.rows} == set(SECTIONS["queries"])
    assert all(row.value > 0 or row.unit == "" for row in report.targets.rows if not math.isnan(row.value))


def test_wrong_answers_are_not_timed() -> None:
    def saying(*numbers: float) -> Contender:
        return Contender(lambda: np.array(numbers), lambda found: found)

    check_answers(Question("q", {OURS: saying(1.0, 2.0), "they": saying(1.0, 2.0)}, {}, ""))
    check_answers(Question("q", {OURS: saying(1.0, np.nan), "they": saying(1.0 + 1e-7, np.nan)}, {}, "", 1e-6))
    for wrong in (saying(1.0), saying(1.0, 2.1), saying(1.0, np.nan)):
        for nearness in (0.0, 1e-6):
            with pytest.raises(DataError, match="they and windrow disagree"):
                check_answers(Question("q", {OURS: saying(1.0, 2.0), "they": wrong}, {}, "", nearness))
