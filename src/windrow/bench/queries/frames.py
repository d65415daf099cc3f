"""Frames of shuffled rows on Spark against DuckDB: the race of ``windrow bench frames``, at this benchmark's sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.bench.frames.peers import PEERS
from windrow.bench.frames.scale import FULL, FramesBench
from windrow.bench.frames.spark import Runs, against_duckdb, write_rank100
from windrow.bench.queries.scale import THREADS, QueriesBench
from windrow.bench.report import Measurement
from windrow.bench.tables import Table
from windrow.execution.engine import default_memory
from windrow.execution.session import start_session


def measure_frames(bench: QueriesBench) -> Iterator[Table | Measurement]:
    """Count distinct and median of the last 1,000 rows, of a table whose rows are in no order."""
    scale = replace(FULL, spark_rows=bench.scale.frame_rows, spark_rounds=bench.scale.rounds)
    path = bench.folder / "shuffled.parquet"
    write_rank100(path, scale.spark_rows, shuffled=True)
    session = start_session(THREADS, default_memory())
    try:
        runs = Runs(session, path)
        runs.floor()  # starts the Python workers
        yield from against_duckdb(FramesBench(scale, PEERS, bench.folder), runs, "shuffled", "frames")
    finally:
        session.stop()
