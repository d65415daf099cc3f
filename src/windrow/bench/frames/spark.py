"""Frames from a Parquet file to a full scan of the result, through Spark, against DuckDB on as many threads.

Every action returns the sums of all columns of its result, so that all of it is read and answers can be compared.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.aggregates.aggregate import parse_aggregate
from windrow.bench.engines import duckdb_connection
from windrow.bench.frames.peers import CALLS
from windrow.bench.frames.scale import FramesBench
from windrow.bench.race import SUM_TOLERANCE, Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration, in_turns, time_call
from windrow.dataframes.frames import frames
from windrow.errors import DataError
from windrow.execution.engine import default_memory
from windrow.execution.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORKERS = 2
GROUP_ROWS = 500_000
DISTINCT_GAIN = 1.5
MEDIAN_SHARES = {"in order": 1.3, "shuffled": 1.0}
PERCENTILE_GAIN = 50.0
FEW_VALUES_SCALE = 10
"""So many times as many rows if values are few: Spark counts equal ones together, and needs as long only for these."""
SUMS = ("sum(a)", "sum(b)", "sum(x)")

Sums = tuple[float, ...]
Scan = Callable[[], Sums]


def write_rank100(path: Path, rows: int, shuffled: bool = False, unique: bool = False) -> None:
    """rank100 in one Parquet file: a is one of 100 values (or ``unique``), b the number of the row."""
    random = np.random.default_rng(23)
    a = random.permutation(rows) if unique else random.integers(0, 100, rows)
    b = np.arange(rows, dtype=np.int64)
    kept = random.permutation(rows) if shuffled else slice(None)
    pq.write_table(pa.table({"a": a[kept], "b": b[kept]}), path, row_group_size=GROUP_ROWS)


def trailing(width: int) -> str:
    return f"order by b rows between {width - 1} preceding and current row"


@dataclass(frozen=True)
class Runs:
    """The ways to frame one file: each is called for the sums of its result."""

    session: SparkSession
    path: Path

    @property
    def table(self) -> DataFrame:
        return self.session.read.parquet(str(self.path))

    def windrow(self, aggregate: str, before: int, after: int = 0) -> Sums:
        return sum_columns(
            frames(self.table).order_by("b").rows(-before, after).agg(x=parse_aggregate(aggregate).of("a"))
        )

    def floor(self) -> Sums:
        """The least that frames could take: all rows go through Python and come back with a third column."""
        return sum_columns(self.table.mapInArrow(pass_through, "a bigint, b bigint, x bigint"))

    def spark(self, call: str, over: str) -> Sums:
        return sum_columns(self.table.selectExpr("a", "b", f"{call} over ({over}) as x"))

    def duckdb(self, aggregate: str, width: int) -> Sums:
        query = f"select a, b, {CALLS[aggregate]} over ({trailing(width)}) as x from read_parquet('{self.path}')"
        with duckdb_connection(WORKERS) as connection:
            return tuple(map(float, connection.execute(f"select {', '.join(SUMS)} from ({query})").fetchone()))


def sum_columns(frame: DataFrame) -> Sums:
    (row,) = frame.selectExpr(*SUMS).collect()
    return tuple(map(float, row))


def pass_through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([*batch.columns, batch.column(0)], ["a", "b", "x"])


class Measured:
    """An action with the processor seconds of its quickest call: of this process, the JVM and its Python workers."""

    def __init__(self, scan: Scan) -> None:
        self.scan, self.processor = scan, math.inf
        self.sums: Sums = ()

    def __call__(self) -> None:
        start = all_processors()
        self.sums = self.scan()
        spent = sum(max(0.0, seconds - start.get(who, 0.0)) for who, seconds in all_processors().items())
        self.processor = min(self.processor, spent)


def all_processors() -> dict[int, float]:
    """Processor seconds so far of this process and of each that it started; one that ends takes its own with it."""
    found = {0: time.process_time()}
    for child in psutil.Process().children(recursive=True):
        try:
            spent = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found[child.pid] = float(spent.user + spent.system)
    return found


def measure_spark(bench: FramesBench) -> Iterator[Table | Measurement]:
    """In order and shuffled, against DuckDB, the floor, and Spark's own percentile."""
    began = time.perf_counter()
    session = start_session(WORKERS, default_memory())
    started = time.perf_counter() - began
    try:
        rows = bench.scale.spark_rows
        write_rank100(bench.folder / "ordered.parquet", rows)
        ordered = Runs(session, bench.folder / "ordered.parquet")
        first = time_call(ordered.floor)
        detail = f"and {duration(first)} for the first query, which starts the Python workers"
        yield Measurement("spark", "start-up of the session", started, "s", detail=detail)
        yield from against_duckdb(bench, ordered, "in order")
        write_rank100(bench.folder / "shuffled.parquet", rows, shuffled=True)
        yield from against_duckdb(bench, Runs(session, bench.folder / "shuffled.parquet"), "shuffled")
        yield from against_percentile(bench, session)
    finally:
        session.stop()


def against_duckdb(bench: FramesBench, runs: Runs, how: str, subject: str = "spark") -> Iterator[Table | Measurement]:
    """Count distinct and median of one file, in order or shuffled."""
    width, rows = bench.scale.spark_width, bench.scale.spark_rows
    there = any(peer.name == "DuckDB" and peer.version for peer in bench.peers)
    lines, found = [], []
    for aggregate in ("count_distinct", "median"):
        actions = {"windrow": Measured(functools.partial(runs.windrow, aggregate, width - 1))}
        if there:
            actions["DuckDB"] = Measured(functools.partial(runs.duckdb, aggregate, width))
        actions["floor"] = Measured(runs.floor)
        times = in_turns(actions, bench.scale.spark_rounds)
        if there:
            check_sums(aggregate, actions["windrow"].sums, actions["DuckDB"].sums)
        line = Line(aggregate, width, Result({name: took.best for name, took in times.items()}))
        spent = ", ".join(f"{name} {times[name]}, {duration(each.processor)} CPU" for name, each in actions.items())
        lines.append(line)
        found.append(duckdb_target(aggregate, rows, how, line, spent, subject))
    title = f"rank100 {how}, {rows:,} rows in one Parquet file, no PARTITION BY, W = {width:,}, {WORKERS} workers"
    about = "By the clock, from the file to the sums of all columns of the result; floor: the same with nothing done."
    ratios = (Ratio("DuckDB / windrow", "DuckDB", "windrow"), Ratio("windrow / floor", "windrow", "floor"))
    yield Table(subject, title, about, tuple(lines), ratios)
    yield from found


def duckdb_target(aggregate: str, rows: int, how: str, line: Line, detail: str, subject: str = "spark") -> Measurement:
    """How many times faster count distinct is than DuckDB, and what share of DuckDB's time median takes."""
    faster = aggregate == "count_distinct"
    ratio = Ratio("", "DuckDB", "windrow") if faster else Ratio("", "windrow", "DuckDB")
    reached = line.ratio(ratio)
    said = "speed against DuckDB's" if faster else "time against DuckDB's"
    what = f"{aggregate} {how}, {rows:,} rows: {said}, {WORKERS} threads"
    if reached is None:
        detail = f"DuckDB is not installed; {detail}"
    target = DISTINCT_GAIN if faster else MEDIAN_SHARES[how]
    value = math.nan if reached is None else reached
    return Measurement(subject, what, value, "×", target, "at least" if faster else "at most", detail)


def against_percentile(bench: FramesBench, session: SparkSession) -> Iterator[Table | Measurement]:
    """Spark's own percentile over a frame, on tables that it can finish."""
    half = bench.scale.percentile_width // 2
    width, least = 2 * half + 1, bench.scale.percentile_rows
    over = f"order by b rows between {half} preceding and {half} following"
    lines, found = [], []
    cases = (
        ("values 0..99", False, least, None),
        ("values 0..99", False, FEW_VALUES_SCALE * least, PERCENTILE_GAIN),
        ("unique values", True, least, PERCENTILE_GAIN),
    )
    for kind, unique, rows, target in cases:
        path = bench.folder / f"small-{rows}-{unique}.parquet"
        write_rank100(path, rows, unique=unique)
        runs = Runs(session, path)
        ours = Measured(functools.partial(runs.windrow, "median", half, half))
        times = in_turns({"windrow": ours}, bench.scale.spark_rounds)["windrow"]
        theirs = Measured(functools.partial(runs.spark, "percentile(a, 0.5)", over))
        took = time_call(theirs)
        check_sums("median", ours.sums, theirs.sums)
        result = Result({"windrow": times.best, "Spark": took})
        lines.append(Line(f"median of {rows:,} rows, {kind}", width, result))
        what = f"median of {rows:,} rows, {kind}, over {width:,} against Spark's percentile"
        detail = f"windrow {times}, {duration(ours.processor)} CPU; Spark {duration(took)}"
        found.append(Measurement("spark", what, took / times.best, "×", target, "at least", detail))
    title = f"Rows in order, frames of {width:,}: Spark's own percentile, called once"
    yield Table("spark", title, "By the clock.", tuple(lines), (Ratio("Spark / windrow", "Spark", "windrow"),))
    yield from found


def check_sums(aggregate: str, ours: Sums, theirs: Sums) -> None:
    """Refuse to time a wrong answer."""
    if not np.allclose(ours, theirs, rtol=SUM_TOLERANCE, atol=0):
        raise DataError(f"{aggregate}: windrow's result and its peer's disagree", got=f"{ours} and {theirs}")
