"""``windrow bench storage``: what windrow's stores cost against the formats and engines beneath them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from windrow.api.database import connect
from windrow.bench.report import Measurement, Report, Show
from windrow.bench.sections import check_disk, choose, temporary_folder
from windrow.bench.storage.batches import Batches, measure_batches
from windrow.bench.storage.dense import measure_dense
from windrow.bench.storage.metadata import measure_metadata
from windrow.bench.storage.patches import measure_patches
from windrow.bench.storage.small import measure_commits, measure_start
from windrow.bench.storage.sparse import measure_box_read, measure_insert
from windrow.bench.timing import environment
from windrow.execution.engine import default_memory
from windrow.execution.session import start_session

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
    chunks: int
    batches: Batches


FULL = Scale(
    steps=6_000,
    inserted_cells=10_000_000,
    stored_cells=100_000_000,
    nights=10,
    versions=1_000,
    rounds=5,
    disk_bytes=16 * 10**9,
    chunks=1_000_000,
    batches=Batches(5_000_000, 10_000_000, 1_000, 20, (100, 1_000)),
)
QUICK = Scale(
    steps=600,
    inserted_cells=1_000_000,
    stored_cells=5_000_000,
    nights=5,
    versions=200,
    rounds=3,
    disk_bytes=3 * 10**9,
    chunks=100_000,
    batches=Batches(1_000_000, 1_500_000, 30, 5, (30,)),
)


ON_SPARK = ("dense", "sparse")
SECTIONS: dict[str, Callable[[Scale, Path], Iterator[Measurement]]] = {
    "start": lambda scale, folder: measure_start(folder, scale.rounds),
    "commit": lambda scale, folder: measure_commits(folder, scale.versions),
    "batches": lambda scale, folder: measure_batches(folder, scale.batches),
    "metadata": lambda scale, folder: measure_metadata(folder, scale.chunks),
    "patches": lambda scale, folder: measure_patches(folder, scale.versions),
}
"""Those that need no Spark; the others share one session."""


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> Report:
    """Measure, showing each line as it is found; ``out`` is a folder for report.json, report.md and report.png.

    ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
    system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: Scale, out: Path | None, only: Sequence[str], show: Show) -> Report:
    chosen = choose(dict.fromkeys([*SECTIONS, *ON_SPARK]), only, ON_SPARK, "windrow bench storage")
    rows: list[Measurement] = []
    with temporary_folder(out) as folder:
        check_disk(folder, scale.disk_bytes)
        for row in _measure(scale, folder, chosen):
            show(str(row))
            rows.append(row)
    report = Report("windrow bench storage", tuple(rows))
    show(report.summary)
    if out is not None:
        show("written: " + ", ".join(str(path) for path in report.write(out)))
    return report


def _measure(scale: Scale, folder: Path, chosen: Sequence[str]) -> Iterator[Measurement]:
    for name in chosen:
        if name in SECTIONS:
            yield from SECTIONS[name](scale, folder)
    if any(name in ON_SPARK for name in chosen):
        yield from _measure_on_spark(scale, folder, chosen)


def _measure_on_spark(scale: Scale, folder: Path, chosen: Sequence[str]) -> Iterator[Measurement]:
    with environment({"SPARK_LOCAL_DIRS": str(folder / "spark")}):
        session = start_session(WORKERS, default_memory())
    try:
        with connect(folder / "warehouse", spark=session, engine="spark", progress=False) as database:
            if "dense" in chosen:
                yield from measure_dense(database, folder, scale.steps, scale.rounds)
            if "sparse" in chosen:
                yield from measure_insert(database, folder, scale.inserted_cells, scale.rounds)
                yield from measure_box_read(database, scale.stored_cells, scale.nights, scale.rounds)
    finally:
        session.stop()
