"""``windrow bench queries``: plain questions about stored arrays, against xarray with Dask and against DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from windrow.bench.queries.dense import measure_dense, measure_memory
from windrow.bench.queries.inserts import measure_inserts
from windrow.bench.queries.scale import FULL, PEERS, QUICK, QueriesBench, QueriesScale
from windrow.bench.queries.small import measure_small
from windrow.bench.queries.sparse import measure_dead, measure_sparse
from windrow.bench.report import Show
from windrow.bench.sections import Found, choose, run_sections, temporary_folder
from windrow.bench.windows_report import WindowsReport

SECTIONS: dict[str, Callable[[QueriesBench], Found]] = {
    "dense": measure_dense,
    "memory": measure_memory,
    "sparse": measure_sparse,
    "dead": measure_dead,
    "inserts": measure_inserts,
    "small": measure_small,
}


def run(quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print) -> WindowsReport:
    """Measure, showing each table as it is found; ``out`` is a folder for the report and its plots.

    ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
    system keeps temporary files (TMPDIR).
    """
    return run_at(QUICK if quick else FULL, out, only, show)


def run_at(scale: QueriesScale, out: Path | None, only: Sequence[str], show: Show) -> WindowsReport:
    chosen = choose(SECTIONS, only, (), "windrow bench queries")
    with temporary_folder(out) as folder:
        sections = (SECTIONS[name] for name in chosen)
        return run_sections("windrow bench queries", sections, QueriesBench(scale, PEERS, folder), out, show)
