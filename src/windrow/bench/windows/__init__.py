"""``windrow bench windows``: windows against the papers' methods, against other packages, and through Spark."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from windrow.bench.sections import Found, Suite, check_disk
from windrow.bench.windows.choices import measure_choices
from windrow.bench.windows.papers import measure_paper
from windrow.bench.windows.peers import PEERS
from windrow.bench.windows.scale import FULL, QUICK, Bench, Scale
from windrow.bench.windows.spark import measure_decades, measure_store_to_store, measure_workers
from windrow.bench.windows.sweeps import measure_sweeps
from windrow.bench.windows.targets import measure_missing, measure_percentiles, measure_scans


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


def _check_disk(scale: Scale, folder: Path, sections: Sequence[str]) -> None:
    if any(section in ON_SPARK for section in sections):
        check_disk(folder, scale.disk_bytes)


SUITE = Suite(
    "windrow bench windows",
    SECTIONS,
    FULL,
    QUICK,
    lambda scale, folder: Bench(scale, PEERS, folder),
    on_spark=ON_SPARK,
    prepare=_check_disk,
)
run, run_at = SUITE.run, SUITE.run_at
