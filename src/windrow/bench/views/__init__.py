"""``windrow bench views``: batches with views against rebuilding them, against batches without, and against DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from windrow.bench.report import Show
from windrow.bench.sections import Found, choose, run_sections, temporary_folder
from windrow.bench.views.answers import measure_answers
from windrow.bench.views.batches import measure_batches
from windrow.bench.views.daily import measure_days, measure_nights
from windrow.bench.views.dense import measure_dense
from windrow.bench.views.kernels import measure_kernels, measure_medians
from windrow.bench.views.patches import measure_ptf5, measure_ptf25
from windrow.bench.views.reads import measure_reads
from windrow.bench.views.scale import FULL, PEERS, QUICK, ViewsBench, ViewsScale
from windrow.bench.windows_report import WindowsReport

SECTIONS: dict[str, Callable[[ViewsBench], Found]] = {
    "kernels": measure_kernels,
    "ptf5": measure_ptf5,
    "ptf25": measure_ptf25,
    "medians": measure_medians,
    "batches": measure_batches,
    "dense": measure_dense,
    "days": measure_days,
    "nights": measure_nights,
    "answers": measure_answers,
    "reads": measure_reads,
}


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> WindowsReport:
    """Measure, showing each table as it is found; ``out`` is a folder for the report and its plots.

    ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
    system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: ViewsScale, out: Path | None, only: Sequence[str], show: Show) -> WindowsReport:
    chosen = choose(SECTIONS, only, (), "windrow bench views")
    with temporary_folder(out) as folder:
        sections = (SECTIONS[name] for name in chosen)
        return run_sections("windrow bench views", sections, ViewsBench(scale, PEERS, folder), out, show)
