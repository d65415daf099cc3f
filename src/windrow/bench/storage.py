"""``windrow bench storage``: what windrow's stores cost against the formats and engines beneath them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from windrow.api.database import connect
from windrow.bench.report import Measurement, Report, Show
from windrow.bench.storage_batches import Batches, measure_batches
from windrow.bench.storage_dense import measure_dense
from windrow.bench.storage_patches import measure_patches
from windrow.bench.storage_small import measure_commits, measure_start
from windrow.bench.storage_sparse import measure_box_read, measure_insert
from windrow.bench.timing import environment
from windrow.errors import MachineError, StoreError
from windrow.execution.engine import default_memory
from windrow.execution.session import active_session, start_session

WORKERS = 2


@dataclass(frozen=True)
class Scale:
    """How much a run measures."""

    steps: int
    inserted_cells: int
    stored_cells: int
    nights: int
    versions: int
    rounds: int
    disk_bytes: int
    batches: Batches


FULL = Scale(6_000, 10_000_000, 100_000_000, 10, 1_000, 5, 16 * 10**9, Batches(10_000_000, 1_000))
QUICK = Scale(600, 1_000_000, 5_000_000, 5, 200, 3, 3 * 10**9, Batches(1_000_000, 30))


def run(quick: bool = False, out: Path | None = None, show: Show = print) -> Report:
    """Measure, showing each line as it is found; ``out`` is a folder for report.json, report.md and report.png.

    Temporary data, removed at the end, goes into ``out`` or else where the system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, show)


def run_at(scale: Scale, out: Path | None, show: Show) -> Report:
    if active_session() is not None:
        raise MachineError(
            "a Spark session runs in this process, and the benchmark needs its own with two workers",
            hint="Run it in a fresh process: windrow bench storage",
        )
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-", dir=out))
    try:
        _check_disk(folder, scale)
        rows: list[Measurement] = []
        for row in _measure(scale, folder):
            show(str(row))
            rows.append(row)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report = Report("windrow bench storage", tuple(rows))
    show(report.summary)
    if out is not None:
        show("written: " + ", ".join(str(path) for path in report.write(out)))
    return report


def _check_disk(folder: Path, scale: Scale) -> None:
    free = shutil.disk_usage(folder).free
    if free < scale.disk_bytes:
        raise StoreError(
            f"the benchmark needs {scale.disk_bytes / 1e9:.0f} GB of disk for a while",
            got=f"{free / 1e9:.1f} GB free in {folder.parent}",
            hint="Choose another folder with --out or TMPDIR, or run with --quick",
        )


def _measure(scale: Scale, folder: Path) -> Iterator[Measurement]:
    yield from measure_start(folder, scale.rounds)
    yield from measure_commits(folder, scale.versions)
    yield from measure_batches(folder, scale.batches)
    yield from measure_patches(folder, scale.versions)
    yield from _measure_on_spark(scale, folder)


def _measure_on_spark(scale: Scale, folder: Path) -> Iterator[Measurement]:
    with environment({"SPARK_LOCAL_DIRS": str(folder / "spark")}):
        session = start_session(WORKERS, default_memory())
    try:
        with connect(folder / "warehouse", spark=session, engine="spark", progress=False) as database:
            yield from measure_dense(database, folder, scale.steps, scale.rounds)
            yield from measure_insert(database, folder, scale.inserted_cells, scale.rounds)
            yield from measure_box_read(database, scale.stored_cells, scale.nights, scale.rounds)
    finally:
        session.stop()
