"""Neighbours from the store: in process against a tree over points in memory, and on Spark against its own join."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.aggregates.aggregate import count, sum
from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.bench.engines import spark_database
from windrow.bench.joins import peers as peers
from windrow.bench.joins.memory import GEO, PAIRS, PTF_5, STEPS, ratios
from windrow.bench.joins.race import OURS, Answer, Prepared, always, gain, raced
from windrow.bench.joins.scale import JoinsBench
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import Action, duration, in_turns
from windrow.errors import DataError
from windrow.samples import PLACES_SCHEMA, SURVEY_SCHEMA, places, survey_nights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STORE_GAIN = 3.0
SPARK_GAIN, SPARK_SCALING = 5.0, 1.3
WORKERS = 2
SPARK = "Spark's join"
_BLOCK_ROWS = 2_000_000


# In process


def measure_store(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """Places in a stored array, read from there, with the result as a table in memory."""
    table = places(bench.scale.places)
    names = ("long", "lat")
    cells = {name: table.column(name).to_numpy() for name in names}
    with connect(bench.folder / "store", engine="local", progress=False) as database:
        array = database.create("GEO", PLACES_SCHEMA, sparse=True)
        array.insert(table)
        asked = array.neighbours(GEO).agg(n=count())
        contenders = {OURS: Prepared(asked.compute, functools.partial(_in_order, asked, names))}
        if bench.has("SciPy"):
            contenders[PAIRS] = always(peers.tree_of_pairs(cells, names, 1).fetch)
        line = raced(bench, "count", contenders, table.num_rows)
    about = "Linf(1). windrow reads the cells from its store; the tree has them in memory. Processor time."
    yield Table("store", f"{table.num_rows:,} stored places", about, (line,), ratios(PAIRS))
    yield gain("store", "stored places against cKDTree's pairs from memory", line, PAIRS, STORE_GAIN)


def _in_order(asked: Any, names: tuple[str, str]) -> Answer:
    """The counts of cells in the order of their coordinates, which is that of the sample."""
    found = asked.compute().sort_by([(name, "ascending") for name in names])
    return Answer(found.column("n").to_numpy())


# On Spark


def measure_spark(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """PTF-5 from store to store on one worker and on two, against Spark's own hash join from Parquet to Parquet."""
    size = bench.scale.spark_detections
    parquet = bench.folder / "detections.parquet"
    write_detections(parquet, size)
    seconds: dict[str, float] = {}
    for workers in (1, WORKERS):
        place = bench.folder / f"workers-{workers}"
        with spark_database(place, workers) as database:
            array = _fill(database, size)
            actions: dict[str, Action] = {f"{workers} worker{'s' * (workers > 1)}": functools.partial(_store, array)}
            if workers == WORKERS:
                actions[SPARK] = functools.partial(_spark_join, database, parquet, bench.folder / "joined.parquet")
            rounds = bench.scale.spark_rounds
            # The first round starts Python workers and compiles; Spark's own join has its round as well.
            times = in_turns(actions, rounds, between=functools.partial(_drop_result, database))
            seconds |= {name: took.best for name, took in times.items()}
            if workers == WORKERS:
                _store_again(database, array)
                _check_joined(database, bench.folder / "joined.parquet")
    two = f"{WORKERS} workers"
    line = Line("count and sum", size, Result(seconds))
    about = (
        "By the clock, best of the same number of rounds: windrow from store to store, Spark from Parquet to Parquet."
    )
    against = (Ratio(f"{SPARK} / {two}", SPARK, two), Ratio(f"1 worker / {two}", "1 worker", two))
    yield Table("spark", f"PTF-5, {size:,} detections with a crowded field", about, (line,), against)
    detail = ", ".join(f"{name} {duration(took)}" for name, took in seconds.items())
    what = f"PTF-5 store to store against Spark's own hash join, {WORKERS} workers"
    yield Measurement("spark", what, seconds[SPARK] / seconds[two], "×", SPARK_GAIN, "at least", detail)
    what = "time of two workers over half the time of one"
    share = WORKERS * seconds[two] / seconds["1 worker"]
    yield Measurement("spark", what, share, "×", SPARK_SCALING, "at most", detail)


def _blocks(size: int) -> Iterator[pa.Table]:
    """The survey's nights, some together."""
    waiting: list[pa.Table] = []
    for night in survey_nights(size):
        waiting.append(night)
        if math.fsum(table.num_rows for table in waiting) >= _BLOCK_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def write_detections(path: Path, size: int) -> None:
    path.mkdir(parents=True)
    for number, table in enumerate(_blocks(size)):
        pq.write_table(table, path / f"{number:04}.parquet")


def _fill(database: Database, size: int) -> Array:
    array = database.create("PTF", SURVEY_SCHEMA, sparse=True)
    for table in _blocks(size):
        array.insert(table)
    return array


def _store(array: Array) -> None:
    array.neighbours(PTF_5).agg(n=count(), s=sum("mag")).store("R")


def _store_again(database: Database, array: Array) -> None:
    _drop_result(database)
    _store(array)


def _drop_result(database: Database) -> None:
    if "R" in database:
        database.array("R").drop()


def _spark_join(database: Database, source: Path, target: Path) -> None:
    """The same as a join on each of five offsets of place, and a filter on time."""
    session = database.engine.spark().session
    table: DataFrame = session.read.parquet(str(source))
    five, _ = peers.crosses(STEPS)
    listed = ", ".join(f"named_struct('across', {across}, 'along', {along})" for across, along in five)
    left = table.selectExpr("time", "ra", "dec", f"explode(array({listed})) as o").selectExpr(
        "time as to", "ra as at_ra", "dec as at_dec", "ra + o.across as ra", "dec + o.along as dec"
    )
    near = left.join(table, ["ra", "dec"]).where(f"to - time between 0 and {STEPS}")
    grouped = near.groupBy("to", "at_ra", "at_dec").agg({"*": "count", "mag": "sum"})
    grouped.write.mode("overwrite").parquet(str(target))


def _check_joined(database: Database, path: Path) -> None:
    """A wrong answer has no speed: cells, all counts and all sums are compared."""
    cells, pairs, total = 0, 0, 0.0
    for table in database.array("R").batches():
        cells += table.num_rows
        pairs += int(np.sum(table.column("n").to_numpy()))
        total += float(np.sum(table.column("s").to_numpy()))
    theirs = pq.read_table(path)
    counts, sums = (theirs.column(name).to_numpy() for name in ("count(1)", "sum(mag)"))
    same = (cells, pairs) == (theirs.num_rows, int(counts.sum()))
    if not same or not math.isclose(total, float(sums.sum()), rel_tol=1e-9):
        raise DataError("windrow's join and Spark's disagree", got=f"{cells} cells with {pairs} pairs")
