"""``windrow bench windows``: windows against the papers' methods, against other packages, and through Spark."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from windrow.bench.report import Measurement, Report, Show
from windrow.bench.timing import environment
from windrow.bench.windows_papers import measure_paper
from windrow.bench.windows_peers import ONE_THREAD, PEERS
from windrow.bench.windows_report import Table, WindowsReport
from windrow.bench.windows_scale import FULL, QUICK, Bench, Scale
from windrow.bench.windows_spark import measure_decades, measure_store_to_store, measure_workers
from windrow.bench.windows_targets import measure_missing, measure_percentiles, measure_scans
from windrow.errors import MachineError, StoreError, UnknownNameError
from windrow.execution.session import active_session

Section = Callable[[Bench], Iterator[Table | Measurement]]

SECTIONS: dict[str, Section] = {
    "scans": measure_scans,
    "percentiles": measure_percentiles,
    "missing": measure_missing,
    "paper-002": functools.partial(measure_paper, paper="002"),
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
    sections = _sections(only)
    _check_machine(sections)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-", dir=out))
    try:
        _check_disk(folder, scale, sections)
        with environment(ONE_THREAD):
            report = _measure(Bench(scale, PEERS, folder), sections, show)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show("\n".join(["", *report.target_table(), report.targets.summary]))
    if out is not None:
        show("written: " + ", ".join(str(path) for path in report.write(out)))
    return report


def _measure(bench: Bench, sections: Sequence[str], show: Show) -> WindowsReport:
    tables: list[Table] = []
    rows: list[Measurement] = []
    for section in sections:
        for found in SECTIONS[section](bench):
            if isinstance(found, Table):
                tables.append(found)
                show(found.to_markdown() + "\n")
            else:
                rows.append(found)
                show(f"{found}\n")
    versions = {peer.name: peer.version for peer in bench.peers}
    report = WindowsReport(Report("windrow bench windows", tuple(rows)), tuple(tables), versions)
    if report.missing_peers:
        show(f"not installed, and so not measured: {', '.join(report.missing_peers)}. pip install 'windrow[peers]'")
    return report


def _sections(only: Sequence[str]) -> list[str]:
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        raise UnknownNameError("no such section", got=unknown[0], hint="There are " + ", ".join(SECTIONS))
    return [name for name in SECTIONS if not only or name in only]


def _check_machine(sections: Sequence[str]) -> None:
    if active_session() is not None and any(section in ON_SPARK for section in sections):
        raise MachineError(
            "a Spark session runs in this process, and the benchmark needs its own with one and with two workers",
            hint="Run it in a fresh process: windrow bench windows",
        )


def _check_disk(folder: Path, scale: Scale, sections: Sequence[str]) -> None:
    free = shutil.disk_usage(folder).free
    if free < scale.disk_bytes and any(section in ON_SPARK for section in sections):
        raise StoreError(
            f"the benchmark needs {scale.disk_bytes / 1e9:.0f} GB of disk for a while",
            got=f"{free / 1e9:.1f} GB free in {folder.parent}",
            hint="Choose another folder with --out or TMPDIR, or run with --quick",
        )
