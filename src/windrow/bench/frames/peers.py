"""Other packages that compute frames, each optional, each held to one thread.

The same table is raced by the benchmark and compared with windrow by the tests.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.bench.engines import duckdb_connection, load_table
from windrow.bench.frames.race import FrameProblem, sample_rows
from windrow.bench.peers import Package
from windrow.bench.race import Array, Contender, Pace
from windrow.bench.timing import Action

CALLS = {"count_distinct": "count(distinct a)", "median": "median(a)", "mode": "mode(a)", "sum": "sum(a)"}
"""Aggregates in DuckDB's SQL."""

Fetch = Callable[[], Array]


@dataclass(frozen=True)
class Prepared:
    """A problem in a peer's own form: an action that computes all results, and one that hands them out as well."""

    action: Action
    fetch: Fetch


@dataclass(frozen=True)
class FramePeer(Package):
    """``make`` prepares a problem, or returns None if the package has no such frames."""

    make: Callable[[FrameProblem], Prepared | None]


def frame_peers(problem: FrameProblem, pace: Pace, peers: Sequence[FramePeer]) -> Iterator[Contender]:
    """Every installed peer that can do a problem; slow ones get the first rows of the table."""
    for peer in peers:
        if peer.version is None:
            continue
        if peer.make(problem.cut(1)) is None:
            continue
        least = max(2 * problem.width, problem.rows // 256)
        rows, compiling = sample_rows(functools.partial(_action, peer, problem), problem.rows, least, pace)
        yield Contender(peer.name, _action(peer, problem, rows), problem.rows / rows, compiling)


def _action(peer: FramePeer, problem: FrameProblem, rows: int) -> Action:
    prepared = peer.make(problem if rows == problem.rows else problem.cut(rows))
    assert prepared is not None
    return prepared.action


def _duckdb(problem: FrameProblem) -> Prepared | None:
    connection = duckdb_connection(1)
    load_table(connection, {"a": problem.values, "b": problem.order})
    framed = f"select b, {CALLS[problem.aggregate]} over ({problem.over}) as x from t"

    def fetch() -> Array:
        found: Array = connection.execute(f"select x from ({framed}) order by b").fetchnumpy()["x"]
        return found

    # A sum reads all results and is cheaper than handing them out.
    return Prepared(lambda: connection.execute(f"select sum(x) from ({framed})").fetchall(), fetch)


def _polars(problem: FrameProblem) -> Prepared | None:
    polars = importlib.import_module("polars")
    if problem.spread is not None or polars.thread_pool_size() > 1:
        return None
    width, column = problem.width, polars.col("a")
    series = polars.Series("a", problem.values)
    if problem.aggregate in ("median", "sum"):
        move = getattr(series, f"rolling_{problem.aggregate}")
        return Prepared(lambda: move(width, min_samples=1), lambda: move(width, min_samples=1).to_numpy())
    table = polars.DataFrame({"a": series, "b": problem.order})
    wanted = column.n_unique() if problem.aggregate == "count_distinct" else column.mode().min()

    def run() -> Any:
        return table.rolling("b", period=f"{width}i").agg(wanted.alias("x"))

    return Prepared(run, lambda: run()["x"].to_numpy())


PEERS = (FramePeer("DuckDB", "duckdb", "duckdb", _duckdb), FramePeer("polars", "polars", "polars", _polars))
