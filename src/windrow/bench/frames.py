"""``windrow bench frames``: frames against DuckDB, Polars and plain Spark, and by the methods of paper 003."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from windrow.bench.frames_kernels import measure_kernels
from windrow.bench.frames_paper import measure_paper
from windrow.bench.frames_peers import PEERS
from windrow.bench.frames_scale import FULL, QUICK, FramesBench, FramesScale
from windrow.bench.frames_spark import measure_spark
from windrow.bench.report import Measurement, Report, Show
from windrow.bench.timing import environment
from windrow.bench.windows_peers import ONE_THREAD
from windrow.bench.windows_report import Table, WindowsReport
from windrow.errors import MachineError, UnknownNameError
from windrow.execution.session import active_session

SECTIONS: dict[str, Callable[[FramesBench], Iterator[Table | Measurement]]] = {
    "kernels": measure_kernels,
    "spark": measure_spark,
    "paper": measure_paper,
}


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> WindowsReport:
    """Measure, showing each table as it is found; ``out`` is a folder for the report and its plots.

    ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
    system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: FramesScale, out: Path | None, only: Sequence[str], show: Show) -> WindowsReport:
    sections = _sections(only)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-", dir=out))
    try:
        with environment(ONE_THREAD):
            report = _measure(FramesBench(scale, PEERS, folder), sections, show)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show("\n".join(["", *report.target_table(), report.targets.summary]))
    if out is not None:
        show("written: " + ", ".join(str(path) for path in report.write(out)))
    return report


def _measure(bench: FramesBench, sections: Sequence[str], show: Show) -> WindowsReport:
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
    report = WindowsReport(Report("windrow bench frames", tuple(rows)), tuple(tables), versions)
    if report.missing_peers:
        show(f"not installed, and so not measured: {', '.join(report.missing_peers)}. pip install 'windrow[peers]'")
    return report


def _sections(only: Sequence[str]) -> list[str]:
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        raise UnknownNameError("no such section", got=unknown[0], hint="There are " + ", ".join(SECTIONS))
    sections = [name for name in SECTIONS if not only or name in only]
    if active_session() is not None and "spark" in sections:
        raise MachineError(
            "a Spark session runs in this process, and the benchmark needs its own",
            hint="Run it in a fresh process: windrow bench frames",
        )
    return sections
