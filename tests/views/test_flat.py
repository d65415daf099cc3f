"""A thousand batches on one array with three views: what a batch leaves behind does not grow."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.storage import view_rows

BATCHES = int(os.environ.get("WINDROW_FLAT_BATCHES", "1000"))
"""A view's history may grow to 365 lines: fewer batches than a thousand do not show that the catalog stays flat."""
LENGTH, WIDTH, CELLS = 40, 12, 60
"""Slices that are held at a time, their width, and cells of a batch."""
VIEWS = {
    "NEAR": "select count(*) as n, sum(v) as s, avg(v) as a from A neighbours Linf(1)",
    "BY_PLACE": "select count(*) as n, max(v) as m, median(v) as d from A group by j",
    "ALL": "select sum(n) as s from NEAR",
}


@dataclass(frozen=True)
class Left:
    """What there is after so many batches, once old versions are collected."""

    files: int
    catalog: int
    """Pages in use."""
    parts: int
    """Of the newest versions of all arrays, views and states."""
    seconds: float
    """Of a batch, processor time, since the last look."""


def warehouse(path: Path) -> Any:
    return wr.connect(path, engine="local", progress=False)


def batch(database: Any, number: int) -> float:
    """A slice comes, some cells are replaced, and the oldest slice goes; returns its processor time."""
    random = np.random.default_rng(number)
    at = random.permutation(WIDTH * 8)[:CELLS]
    cells = {"t": number + at // WIDTH, "j": at % WIDTH, "v": random.normal(size=CELLS)}
    began = time.process_time()
    with database.batch() as change:
        change.insert("A", cells)
        change.delete("A", f"t < {number - LENGTH}")
    return time.process_time() - began


def look(database: Any, path: Path, seconds: list[float]) -> Left:
    database.collect_garbage(keep_versions=2)
    files = sum(1 for file in (path / "arrays").rglob("*") if file.is_file())
    with sqlite3.connect(path / "catalog.sqlite") as connection:
        pages = connection.execute("pragma page_count").fetchone()[0]
        unused = connection.execute("pragma freelist_count").fetchone()[0]
    known = database.catalog
    parts = sum(len(known.parts(known.current(record.name)[1])) for record in known.array_records())
    return Left(files, pages - unused, parts, float(np.median(seconds)))


def run(path: Path, batches: int) -> list[Left]:
    """What is there after each tenth of the batches."""
    found, seconds = [], list[float]()
    with warehouse(path) as database:
        database.create("A", f"<v: float64> [t=0:{10**6}:4, j=0:{WIDTH - 1}:4]", sparse=True)
        for name, text in VIEWS.items():
            database.create_view(name, text, maintain="incremental")
        for number in range(batches):
            seconds.append(batch(database, number))
            if (number + 1) % (batches // 10) == 0:
                found.append(look(database, path, seconds))
                seconds.clear()
        for name in VIEWS:
            checked = database.view(name).check()
            assert checked.ok, checked
    return found


def test_a_few_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_rows, "HISTORY_KEPT", 5)
    assert len(run(tmp_path / "w", 20)) == 10
    with warehouse(tmp_path / "w") as database:
        for name in VIEWS:
            view = database.view(name)
            rows = view.history().to_pylist()
            assert len(rows) == 5
            assert rows[-1]["version"] == view.version
            held = database.catalog.view_versions(database.catalog.array(name))
            assert set(held) <= {version.number for version in database.catalog.versions(database.catalog.array(name))}


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
def test_a_thousand_batches_stay_flat(tmp_path: Path) -> None:
    found = run(tmp_path / "w", BATCHES)
    for left in found:
        print(left)
    early, late = found[2:5], found[-3:]
    for what in ("files", "parts", *(("catalog",) if BATCHES >= 1000 else ())):
        most = max(getattr(left, what) for left in early)
        assert max(getattr(left, what) for left in late) <= 1.3 * most, what
