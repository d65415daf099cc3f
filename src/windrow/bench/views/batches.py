"""Whole batches with three views: against the same batch without views, rebuilding the views, and DuckDB."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.api.views import View
from windrow.bench.joins import peers as join_peers
from windrow.bench.joins.memory import STEPS
from windrow.bench.joins.race import Answer, Prepared
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import LATEST, PATCH, REBUILD, Batches, best, patch_and_rebuild, survey

VIEWS = ("PTF5", "PTF25", "FAINTEST")
ALONE, DUCKDB = "batch alone", "DuckDB anew"
OVER_ALONE, OVER_REBUILD, OVER_DUCKDB = 3.0, 10.0, 10.0
RATIOS = (
    Ratio("with views / alone", PATCH, ALONE),
    Ratio("rebuild / batch", REBUILD, PATCH),
    Ratio("DuckDB / batch", DUCKDB, PATCH),
)


def measure_batches(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """The latest nights into the largest survey, with and without views; and into a smaller one, against DuckDB."""
    size, small, batch = bench.scale.most, bench.scale.many, bench.scale.batch
    batches = Batches.of(LATEST, size, batch, bench.scale.rounds + 1)
    seconds: dict[str, float] = {}
    with survey(bench, "alone", batches.stored, []) as (_, array):
        array.insert(batches.batches[0])
        seconds[ALONE] = best([lambda table=table: array.insert(table) for table in batches.batches[1:]])  # type: ignore[misc]
    with survey(bench, "views", batches.stored, VIEWS) as (database, array):
        seconds |= patch_and_rebuild(bench, array, [database.view(name) for name in VIEWS], batches)
    one = _one_view(bench, Batches.of(LATEST, small, batch, bench.scale.rounds + 1))
    lines = (
        Line(f"three views, {size:,} cells", size, Result(seconds)),
        Line(f"PTF-5 alone, {small:,} cells", small, Result(one)),
    )
    about = "Processor time. Views: PTF-5 and PTF-25 with counts and sums, and the faintest of PTF-5."
    yield Table("batches", f"Whole batches of {batch:,} cells, with storage", about, lines, RATIOS)
    what = f"batch of {batch:,} into {size:,} with three views over one without"
    yield Measurement("batches", what, seconds[PATCH] / seconds[ALONE], "×", OVER_ALONE, "at most")
    what = "rebuilding three views over a batch with them"
    yield Measurement("batches", what, seconds[REBUILD] / seconds[PATCH], "×", OVER_REBUILD)
    gain = one[DUCKDB] / one[PATCH] if DUCKDB in one else math.nan
    detail = f"DuckDB {duration(one[DUCKDB])}" if DUCKDB in one else "DuckDB is not installed"
    what = f"DuckDB counting {small:,} cells anew over a batch with PTF-5"
    yield Measurement("batches", what, gain, "×", OVER_DUCKDB, detail=detail)


def _one_view(bench: ViewsBench, batches: Batches) -> dict[str, float]:
    """A batch with PTF-5 alone, and DuckDB counting all pairs anew from its own table."""
    with survey(bench, "one", batches.stored, ["PTF5"]) as (database, array):
        found = patch_and_rebuild(bench, array, [database.view("PTF5")], batches)
        if bench.has("DuckDB"):
            contender = _duckdb(pa.concat_tables([batches.stored, *batches.batches]))
            _answer(database.view("PTF5")).check(contender.fetch(), "DuckDB")
            found[DUCKDB] = best([contender.action] * bench.scale.rounds)
    return found


def _duckdb(table: pa.Table) -> Prepared:
    columns = {name: table.column(name).to_numpy() for name in ("time", "ra", "dec")}
    columns["mag"] = table.column("mag").to_numpy().astype(np.float64)
    order = np.lexsort([columns[name] for name in ("dec", "ra", "time")])
    offsets, when = join_peers.crosses(STEPS)
    cells = {name: np.ascontiguousarray(column[order]) for name, column in columns.items()}
    return join_peers.duckdb_offsets(cells, ("ra", "dec"), offsets, when)


def _answer(view: View) -> Answer:
    """The counts and sums of a view, in the order of coordinates."""
    table = view.read()
    order = np.lexsort([table.column(name).to_numpy() for name in ("dec", "ra", "time")])
    return Answer(*(table.column(name).to_numpy()[order] for name in ("n", "s")))
