"""Questions about sparse cells, against DuckDB on its own table and on the same cells in one Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.api.database import Database, connect
from windrow.bench.engines import duckdb_connection
from windrow.bench.queries.race import OURS, Contender, Question, gains, path_of, race, ratios
from windrow.bench.queries.scale import THREADS, QueriesBench
from windrow.bench.report import Measurement
from windrow.bench.tables import Table
from windrow.bench.timing import duration

OWN, PARQUET = "DuckDB", "DuckDB on Parquet"
SCHEMA = "<mag: float32, flux: float64, kind: int32> [time=1:1000:50, ra=1:3600:360, dec=1:1800:180]"
SHAPE = (1000, 3600, 1800)
STRIDE = 2_454_267_031
"""Coprime to the number of places, so that its multiples visit distinct ones in no order."""
SUMS, EXACTLY = 1e-9, 0.0
DEAD_SHARE = 0.8

QUESTIONS: tuple[tuple[str, str, str, dict[str, float], float], ...] = (
    (
        "count where",
        "select count(*) as r from S where mag > 21",
        "select count(*) as r from {0} where mag > 21",
        {OWN: 0.6, PARQUET: 0.9},
        EXACTLY,
    ),
    ("avg", "select avg(flux) as r from S", "select avg(flux) as r from {0}", {OWN: 0.5, PARQUET: 0.6}, SUMS),
    ("accurate avg", "select avg(flux) as r from S", "select favg(flux) as r from {0}", {OWN: 1.2}, SUMS),
    (
        "avg by time",
        "select avg(flux) as r from S group by time",
        "select avg(flux) as r, time from {0} group by time order by time",
        {OWN: 0.9, PARQUET: 1.0},
        SUMS,
    ),
    (
        "median by time",
        "select median(flux) as r from S group by time",
        "select median(flux) as r, time from {0} group by time order by time",
        {OWN: 1.4},
        SUMS,
    ),
    (
        "rows where",
        "select flux as r from S where mag > 23.3",
        "select time, ra, dec, flux as r from {0} where mag > 23.3",
        {OWN: 0.45, PARQUET: 0.6},
        EXACTLY,
    ),
    (
        "expression of all rows",
        "select flux * 2.5 + mag as r from S",
        "select time, ra, dec, flux * 2.5 + mag as r from {0}",
        {OWN: 0.8},
        SUMS,
    ),
    (
        "regrid avg",
        "select avg(flux) as r from S regrid (time 10, ra 72, dec 45)",
        "select (time - 1) // 10 as t, (ra - 1) // 72 as a, (dec - 1) // 45 as d, avg(flux) as r from {0} "
        "group by t, a, d",
        {OWN: 1.6, PARQUET: 1.8},
        SUMS,
    ),
)


def make_cells(count: int) -> pa.Table:
    """Distinct cells in no useful order."""
    position = np.arange(count, dtype=np.int64) * STRIDE % (SHAPE[0] * SHAPE[1] * SHAPE[2])
    random = np.random.default_rng(3)
    return pa.table(
        {
            "time": position // (SHAPE[1] * SHAPE[2]) + 1,
            "ra": position // SHAPE[2] % SHAPE[1] + 1,
            "dec": position % SHAPE[2] + 1,
            "mag": np.round(random.normal(20, 2, count), 3).astype(np.float32),
            "flux": random.random(count),
            "kind": random.integers(0, 50, count, np.int32),
        }
    )


@contextmanager
def stored_cells(bench: QueriesBench, name: str, table: pa.Table) -> Iterator[Database]:
    with connect(bench.folder / name, engine="local", progress=False, workers=THREADS) as database:
        database.create("S", SCHEMA, sparse=True).insert(table)
        yield database


def measure_sparse(bench: QueriesBench) -> Iterator[Table | Measurement]:
    for count in bench.scale.cells:
        table = make_cells(count)
        with stored_cells(bench, f"sparse-{count}", table) as database:
            peers = _peers(bench, table, count)
            del table
            lines, found = [], []
            for question in _questions(database, peers, count):
                line = race(question, bench.scale.rounds, count)
                lines.append(line)
                found += gains("sparse", question, line)
            about = f"Medians by the clock, {THREADS} threads each, warm files. DuckDB's table is sorted by coordinate."
            yield Table("sparse", f"{count:,} cells", about, tuple(lines), ratios(OWN, PARQUET), across="cells")
            yield from found


def _peers(bench: QueriesBench, table: pa.Table, count: int) -> dict[str, tuple[Any, str]]:
    """Connections, and what the cells are called there."""
    if not bench.has("DuckDB"):
        return {}
    path = Path(bench.folder, f"cells-{count}.parquet")
    own = duckdb_connection(THREADS)
    own.register("given", table)
    own.execute("create table cells as select * from given order by time, ra, dec")
    own.unregister("given")
    own.execute(f"copy cells to '{path}' (format parquet)")
    return {OWN: (own, "cells"), PARQUET: (duckdb_connection(THREADS), f"'{path}'")}


def _questions(database: Database, peers: dict[str, tuple[Any, str]], count: int) -> Iterator[Question]:
    for name, text, sql, targets, nearness in QUESTIONS:
        query = database.query(text)
        contenders = {OURS: Contender(query.compute, _values)}
        for peer, (connection, cells) in peers.items():
            if peer in targets:
                contenders[peer] = Contender(_asks(connection, sql.format(cells)), _values)
        titled = f"{name}, {count / 1e6:g} M"
        yield Question(titled, contenders, targets, path_of(query), nearness)


def _asks(connection: Any, sql: str) -> Any:
    def run() -> pa.Table:
        table: pa.Table = connection.sql(sql).to_arrow_table()
        return table

    return run


def _values(found: Any) -> npt.NDArray[Any]:
    """The results in the order of what they are, for rows come in any order."""
    if not hasattr(found, "column_names"):
        return np.sort(np.asarray(found["r"].values, np.float64).reshape(-1))
    return np.sort(found.column("r").to_numpy(zero_copy_only=False).astype(np.float64))


def measure_dead(bench: QueriesBench) -> Iterator[Measurement]:
    """The same questions over cells of which a fifth was deleted, against an array that never had those."""
    count = bench.scale.cells[0]
    table = make_cells(count)
    gone = pc.less(table.column("kind"), 10)
    with (
        stored_cells(bench, "dead", table) as with_dead,
        stored_cells(bench, "alive", table.filter(pc.invert(gone))) as alive,
    ):
        with_dead.array("S").delete("kind < 10")
        for name, text, _, _, nearness in QUESTIONS:
            queries = {"dead": with_dead.query(text), "none": alive.query(text)}
            contenders = {OURS: Contender(queries["dead"].compute, _values)}
            contenders["without"] = Contender(queries["none"].compute, _values)
            question = Question(name, contenders, {}, "", nearness or SUMS)
            seconds = race(question, bench.scale.rounds, count).result.seconds
            detail = f"{duration(seconds[OURS])} with a fifth dead, {duration(seconds['without'])} without"
            yield Measurement("dead", name, seconds["without"] / seconds[OURS], "×", DEAD_SHARE, detail=detail)
