"""``windrow bench joins``: neighbours and similarity joins against trees, databases, image filters and Spark itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from windrow.bench.joins.chunks import measure_chunk_pairs
from windrow.bench.joins.dense import measure_dense
from windrow.bench.joins.memory import measure_geo, measure_ptf5, measure_ptf25
from windrow.bench.joins.scale import FULL, PEERS, QUICK, JoinsBench, JoinsScale
from windrow.bench.joins.sky import measure_sky
from windrow.bench.joins.store import measure_spark, measure_store
from windrow.bench.report import Show
from windrow.bench.sections import Found, choose, run_sections, temporary_folder
from windrow.bench.windows_report import WindowsReport

SECTIONS: dict[str, Callable[[JoinsBench], Found]] = {
    "ptf5": measure_ptf5,
    "ptf25": measure_ptf25,
    "geo": measure_geo,
    "store": measure_store,
    "spark": measure_spark,
    "sky": measure_sky,
    "dense": measure_dense,
    "chunk-pairs": measure_chunk_pairs,
}


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> WindowsReport:
    """Measure, showing each table as it is found; ``out`` is a folder for the report and its plots.

    ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
    system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: JoinsScale, out: Path | None, only: Sequence[str], show: Show) -> WindowsReport:
    chosen = choose(SECTIONS, only, ("spark",), "windrow bench joins")
    with temporary_folder(out) as folder:
        sections = (SECTIONS[name] for name in chosen)
        return run_sections("windrow bench joins", sections, JoinsBench(scale, PEERS, folder), out, show)
