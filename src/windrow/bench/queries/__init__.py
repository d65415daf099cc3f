"""``windrow bench queries``: plain questions about stored arrays, against xarray with Dask and against DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from windrow.bench.queries.dense import measure_dense, measure_memory
from windrow.bench.queries.frames import measure_frames
from windrow.bench.queries.inserts import measure_inserts
from windrow.bench.queries.scale import FULL, PEERS, QUICK, QueriesBench
from windrow.bench.queries.small import measure_small
from windrow.bench.queries.sparse import measure_dead, measure_sparse
from windrow.bench.sections import Found, Suite

SECTIONS: dict[str, Callable[[QueriesBench], Found]] = {
    "dense": measure_dense,
    "memory": measure_memory,
    "sparse": measure_sparse,
    "dead": measure_dead,
    "inserts": measure_inserts,
    "small": measure_small,
    "frames": measure_frames,
}
ON_SPARK = ("frames",)

SUITE = Suite(
    "windrow bench queries",
    SECTIONS,
    FULL,
    QUICK,
    lambda scale, folder: QueriesBench(scale, PEERS, folder),
    on_spark=ON_SPARK,
)
run, run_at = SUITE.run, SUITE.run_at
