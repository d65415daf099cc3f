"""An insert of unsorted cells against DuckDB's own sorted table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from windrow.api.database import connect
from windrow.bench.engines import duckdb_connection
from windrow.bench.queries.scale import THREADS, QueriesBench
from windrow.bench.queries.sparse import SCHEMA, make_cells
from windrow.bench.report import Measurement
from windrow.bench.timing import duration, in_turns

INSERT_GAIN = 1.2


def measure_inserts(bench: QueriesBench) -> Iterator[Measurement]:
    """Both sort the cells, encode them and write them where they stay."""
    count = bench.scale.inserted
    table = make_cells(count)
    numbers = itertools.count()
    what = f"insert of {count:,} unsorted cells against DuckDB"
    if not bench.has("DuckDB"):
        yield Measurement("inserts", what, math.nan, "×", INSERT_GAIN, detail="DuckDB is not installed")
        return
    with connect(bench.folder / "inserts", engine="local", progress=False, workers=THREADS) as database:
        connection = duckdb_connection(THREADS)
        connection.execute(f"attach '{bench.folder / 'inserts.duckdb'}' as kept")
        connection.register("given", table)

        def ours() -> None:
            database.create(f"S{next(numbers)}", SCHEMA, sparse=True).insert(table)

        def theirs() -> None:
            name = f"kept.cells{next(numbers)}"
            connection.execute(f"create table {name} as select * from given order by time, ra, dec")
            connection.execute("checkpoint kept")

        found = in_turns({"windrow": ours, "DuckDB": theirs}, bench.scale.rounds)
    mine, other = found["windrow"].median, found["DuckDB"].median
    detail = f"windrow {duration(mine)}, DuckDB {duration(other)}"
    yield Measurement("inserts", what, other / mine, "×", INSERT_GAIN, detail=detail)
