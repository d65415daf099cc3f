"""One large partition through Spark: plain aggregates and rank, against Spark's own plan and DuckDB; paper 003 Fig. 2.

Spark moves all rows to one task where there is no PARTITION BY, and adds every frame up anew.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.aggregates.aggregate import parse_aggregate
from windrow.aggregates.positions import rank
from windrow.bench.engines import duckdb_connection
from windrow.bench.frames.scale import FramesBench
from windrow.bench.frames.spark import (
    GROUP_ROWS,
    SUMS,
    WORKERS,
    Measured,
    Runs,
    Sums,
    check_sums,
    sum_columns,
    write_rank100,
)
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import in_turns, time_call
from windrow.dataframes.frames import frames
from windrow.execution.engine import default_memory
from windrow.execution.session import start_session
from windrow.samples import rank_table

FRAMED = ("sum", "avg", "min", "max", "count")
TARGETS = {**dict.fromkeys(("sum", "avg", "min", "max"), (3.0, 0.6)), "count": (1.5, None), "rank": (1.5, None)}
"""How many times Spark's own speed, and what share of DuckDB's, where one is held against it."""

TABLES = {"rank10M": "partition", "rank100": "order", "rank1": "hash"}
"""The paper's tables, and by what each is sorted to begin with."""
RANKED = "rank() over (partition by a order by b desc)"
SCALED = 1.2
"""How many times the speed of one worker two must have, with the sort and the exchange that both have to do."""
SPARK_OVER, DUCKDB_OVER = Ratio("Spark / windrow", "Spark", "windrow"), Ratio("DuckDB / windrow", "DuckDB", "windrow")


@dataclass(frozen=True)
class PlainRuns(Runs):
    """Plain aggregates over the last rows, and the rank of each row, of one file."""

    def over(self, name: str, width: int) -> str:
        if name == "rank":
            return "rank() over (order by b)"
        return f"{name}(a) over (order by b rows between {width - 1} preceding and current row)"

    def ours(self, name: str, width: int) -> Sums:
        asked = frames(self.table).order_by("b")
        if name == "rank":
            return sum_columns(asked.agg(x=rank()))
        return sum_columns(asked.rows(-(width - 1), 0).agg(x=parse_aggregate(name).of("a")))

    def sparks(self, name: str, width: int) -> Sums:
        return sum_columns(self.table.selectExpr("a", "b", f"{self.over(name, width)} as x"))

    def duckdbs(self, name: str, width: int) -> Sums:
        query = f"select a, b, {self.over(name, width)} as x from read_parquet('{self.path}')"
        with duckdb_connection(WORKERS) as connection:
            return tuple(map(float, connection.execute(f"select {', '.join(SUMS)} from ({query})").fetchone()))


def measure_one_partition(bench: FramesBench) -> Iterator[Table | Measurement]:
    """sum, avg, min, max, count and rank without PARTITION BY, rows in order and shuffled."""
    session = start_session(WORKERS, default_memory())
    try:
        for how in ("in order", "shuffled"):
            path = bench.folder / f"plain-{how.replace(' ', '-')}.parquet"
            write_rank100(path, bench.scale.spark_rows, shuffled=how == "shuffled")
            runs = PlainRuns(session, path)
            runs.floor()  # the Python workers start
            yield from _race_plain(bench, runs, how)
    finally:
        session.stop()


def _race_plain(bench: FramesBench, runs: PlainRuns, how: str) -> Iterator[Table | Measurement]:
    width, rows = bench.scale.spark_width, bench.scale.spark_rows
    there = any(peer.name == "DuckDB" and peer.version for peer in bench.peers)
    lines: list[Line] = []
    found: list[Measurement] = []
    for name in (*FRAMED, "rank"):
        actions = {"windrow": Measured(functools.partial(runs.ours, name, width))}
        if there:
            actions["DuckDB"] = Measured(functools.partial(runs.duckdbs, name, width))
        times = {who: took.best for who, took in in_turns(actions, bench.scale.spark_rounds).items()}
        actions["Spark"] = Measured(functools.partial(runs.sparks, name, width))
        times["Spark"] = time_call(actions["Spark"])
        for who in actions:
            check_sums(name, actions["windrow"].sums, actions[who].sums)
        lines.append(Line(name, width, Result(times)))
        found += _judge(name, how, rows, lines[-1])
    title = f"One partition {how}: {rows:,} rows, frames of {width:,}, {WORKERS} workers"
    about = "By the clock, from the file to the sums of all columns of the result; Spark's own plan is run once."
    yield Table("one-partition", title, about, tuple(lines), (SPARK_OVER, DUCKDB_OVER))
    yield from found


def _judge(name: str, how: str, rows: int, line: Line) -> Iterator[Measurement]:
    """The targets of rows in order; those of shuffled rows are for information."""
    for ratio, peer, target in zip(
        (SPARK_OVER, DUCKDB_OVER), ("Spark's own plan", "DuckDB"), TARGETS[name], strict=True
    ):
        reached = line.ratio(ratio)
        what = f"{name} {how}, {rows:,} rows in one partition: speed against {peer}"
        value = math.nan if reached is None else reached
        yield Measurement("spark", what, value, "×", target if how == "in order" else None)


def measure_scalability(bench: FramesBench) -> Iterator[Table | Measurement]:
    """Fig. 2: rank() over (partition by a order by b desc) on one worker and on two."""
    rows = bench.scale.spark_rows
    best: dict[str, dict[str, float]] = {name: {} for name in TABLES}
    for workers in (1, WORKERS):
        session = start_session(workers, default_memory())
        try:
            for name, times in best.items():
                path = _write_ranks(bench.folder / f"{name}.parquet", name, rows)
                ranked = _race_ranks(RankRuns(session, path), bench.scale.spark_rounds)
                times |= {f"{who}, {_count(workers)}": took for who, took in ranked.items()}
        finally:
            session.stop()
    lines = tuple(Line(f"{name}, stored by {TABLES[name]}", rows, Result(times)) for name, times in best.items())
    speeds = "; ".join(
        f"{line.case} " + ", ".join(f"{who} {rows / took / 1e6:.3g}" for who, took in line.result.seconds.items())
        for line in lines
    )
    title = f"Paper 003 Fig. 2: {RANKED}, {rows:,} rows, from Parquet through Spark"
    ours, sparks = (
        Ratio(f"{who}: 1 worker / {WORKERS}", f"{who}, {_count(1)}", f"{who}, {_count(WORKERS)}")
        for who in ("windrow", "Spark")
    )
    yield Table("scalability", title, f"Million rows a second: {speeds}.", lines, (ours, sparks))
    for line in lines:
        what = f"rank, {line.case}: speed of {WORKERS} workers over that of one"
        yield Measurement("003 Fig. 2", what, line.ratio(ours) or math.nan, "×", SCALED)


def _count(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"


class RankRuns(Runs):
    """The rank of each row in its partition."""

    def ours(self) -> Sums:
        return sum_columns(frames(self.table).partition_by("a").order_by("b desc").agg(x=rank()))

    def sparks(self) -> Sums:
        return sum_columns(self.table.selectExpr("a", "b", f"{RANKED} as x"))


def _race_ranks(runs: RankRuns, rounds: int) -> dict[str, float]:
    actions = {"windrow": Measured(runs.ours), "Spark": Measured(runs.sparks)}
    times = in_turns(actions, rounds)
    check_sums("rank", actions["windrow"].sums, actions["Spark"].sums)
    return {who: took.best for who, took in times.items()}


def _write_ranks(path: Path, name: str, rows: int) -> Path:
    if not path.exists():
        a, b = rank_table(name, rows)
        pq.write_table(pa.table({"a": a, "b": b}), path, row_group_size=GROUP_ROWS)
    return path
