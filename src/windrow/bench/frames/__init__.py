"""``windrow bench frames``: frames against DuckDB, Polars and plain Spark, and by the methods of paper 003."""

from __future__ import annotations

from collections.abc import Callable

from windrow.bench.frames.domains import measure_domains
from windrow.bench.frames.kernels import measure_kernels
from windrow.bench.frames.one_partition import measure_one_partition, measure_scalability
from windrow.bench.frames.paper import measure_paper
from windrow.bench.frames.peers import PEERS
from windrow.bench.frames.scale import FULL, QUICK, FramesBench
from windrow.bench.frames.spark import measure_spark
from windrow.bench.sections import Found, Suite

SECTIONS: dict[str, Callable[[FramesBench], Found]] = {
    "kernels": measure_kernels,
    "domains": measure_domains,
    "spark": measure_spark,
    "one-partition": measure_one_partition,
    "scalability": measure_scalability,
    "paper": measure_paper,
}
ON_SPARK = ("spark", "one-partition", "scalability")

SUITE = Suite(
    "windrow bench frames",
    SECTIONS,
    FULL,
    QUICK,
    lambda scale, folder: FramesBench(scale, PEERS, folder),
    on_spark=ON_SPARK,
)
run, run_at = SUITE.run, SUITE.run_at
