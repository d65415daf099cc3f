"""``windrow bench joins``: neighbours and similarity joins against trees, databases, image filters and Spark itself."""

from __future__ import annotations

from collections.abc import Callable

from windrow.bench.joins.chunks import measure_chunk_pairs
from windrow.bench.joins.dense import measure_dense
from windrow.bench.joins.memory import measure_geo, measure_ptf5, measure_ptf25
from windrow.bench.joins.scale import FULL, PEERS, QUICK, JoinsBench
from windrow.bench.joins.sky import measure_sky
from windrow.bench.joins.store import measure_spark, measure_store
from windrow.bench.sections import Found, Suite

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

SUITE = Suite(
    "windrow bench joins",
    SECTIONS,
    FULL,
    QUICK,
    lambda scale, folder: JoinsBench(scale, PEERS, folder),
    on_spark=("spark",),
)
run, run_at = SUITE.run, SUITE.run_at
