"""``windrow bench windows``: windows against the papers' methods, against other packages, and through Spark."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from windrow.bench.report import Show
from windrow.bench.sections import Found, choose, run_sections, temporary_folder
from windrow.bench.windows_choices import measure_choices
from windrow.bench.windows_papers import measure_paper
from windrow.bench.windows_peers import PEERS
from windrow.bench.windows_report import WindowsReport
from windrow.bench.windows_scale import FULL, QUICK, Bench, Scale
from windrow.bench.windows_spark import measure_decades, measure_store_to_store, measure_workers
from windrow.bench.windows_sweeps import measure_sweeps
from windrow.bench.windows_targets import measure_missing, measure_percentiles, measure_scans
from windrow.errors import StoreError


def measure_paper_002(bench: Bench) -> Found:
    """Its tables, and the example of its section 4.3."""
    yield from measure_paper(bench, "002")
    yield from measure_sweeps(bench)


SECTIONS: dict[str, Callable[[Bench], Found]] = {
    "scans": measure_scans,
    "percentiles": measure_percentiles,
    "missing": measure_missing,
    "choices": measure_choices,
    "paper-002": measure_paper_002,
    "paper-000": functools.partial(measure_paper, paper="000"),
    "paper-001": functools.partial(measure_paper, paper="001"),
    "workers": measure_workers,
    "store-to-store": measure_store_to_store,
    "decades": measure_decades,
}
ON_SPARK = ("workers", "store-to-store", "decades")


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> WindowsReport:
    """Measure, showing each table as it is found; ``out`` is a folder for the report and its plots.

    ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
    system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: Scale, out: Path | None, only: Sequence[str], show: Show) -> WindowsReport:
    chosen = choose(SECTIONS, only, ON_SPARK, "windrow bench windows")
    with temporary_folder(out) as folder:
        _check_disk(folder, scale, chosen)
        sections = (SECTIONS[name] for name in chosen)
        return run_sections("windrow bench windows", sections, Bench(scale, PEERS, folder), out, show)


def _check_disk(folder: Path, scale: Scale, sections: Sequence[str]) -> None:
    free = shutil.disk_usage(folder).free
    if free < scale.disk_bytes and any(section in ON_SPARK for section in sections):
        raise StoreError(
            f"the benchmark needs {scale.disk_bytes / 1e9:.0f} GB of disk for a while",
            got=f"{free / 1e9:.1f} GB free in {folder.parent}",
            hint="Choose another folder with --out or TMPDIR, or run with --quick",
        )
