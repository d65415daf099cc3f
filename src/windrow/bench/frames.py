"""``windrow bench frames``: frames against DuckDB, Polars and plain Spark, and by the methods of paper 003."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from windrow.bench.frames_domains import measure_domains
from windrow.bench.frames_kernels import measure_kernels
from windrow.bench.frames_one_partition import measure_one_partition, measure_scalability
from windrow.bench.frames_paper import measure_paper
from windrow.bench.frames_peers import PEERS
from windrow.bench.frames_scale import FULL, QUICK, FramesBench, FramesScale
from windrow.bench.frames_spark import measure_spark
from windrow.bench.report import Show
from windrow.bench.sections import Found, choose, run_sections, temporary_folder
from windrow.bench.windows_report import WindowsReport

SECTIONS: dict[str, Callable[[FramesBench], Found]] = {
    "kernels": measure_kernels,
    "domains": measure_domains,
    "spark": measure_spark,
    "one-partition": measure_one_partition,
    "scalability": measure_scalability,
    "paper": measure_paper,
}
ON_SPARK = ("spark", "one-partition", "scalability")


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> WindowsReport:
    """Measure, showing each table as it is found; ``out`` is a folder for the report and its plots.

    ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
    system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: FramesScale, out: Path | None, only: Sequence[str], show: Show) -> WindowsReport:
    chosen = choose(SECTIONS, only, ON_SPARK, "windrow bench frames")
    with temporary_folder(out) as folder:
        sections = (SECTIONS[name] for name in chosen)
        return run_sections("windrow bench frames", sections, FramesBench(scale, PEERS, folder), out, show)
