"""``windrow bench views``: batches with views against rebuilding them, against batches without, and against DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from windrow.bench.sections import Found, Suite
from windrow.bench.views.answers import measure_answers
from windrow.bench.views.batches import measure_batches
from windrow.bench.views.daily import measure_days, measure_nights
from windrow.bench.views.dense import measure_dense
from windrow.bench.views.kernels import measure_kernels, measure_medians
from windrow.bench.views.patches import measure_ptf5, measure_ptf25
from windrow.bench.views.reads import measure_reads
from windrow.bench.views.scale import FULL, PEERS, QUICK, ViewsBench

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

SUITE = Suite(
    "windrow bench views",
    SECTIONS,
    FULL,
    QUICK,
    lambda scale, folder: ViewsBench(scale, PEERS, folder),
)
run, run_at = SUITE.run, SUITE.run_at
