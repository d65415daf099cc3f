"""What views cost those who do not use them: reads of an array with views, batches on one beside it."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration, in_turns
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import LATEST, Batches, best, survey
from windrow.errors import DataError
from windrow.samples import SURVEY_SCHEMA, survey_nights

WITH, WITHOUT = "with views", "without"
MOST = 1.05
ROUNDS = 7


def measure_reads(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """All cells, of two arrays that hold the same."""
    table = survey_nights(bench.scale.few).table()
    with (
        survey(bench, "read-views", table, ["PTF5", "PTF25"]) as (_, viewed),
        survey(bench, "read-alone", table, []) as (_, alone),
    ):
        if not viewed.read().equals(alone.read()):
            raise DataError("two arrays of the same cells are read differently")
        found = in_turns({WITH: viewed.read, WITHOUT: alone.read}, ROUNDS * bench.scale.rounds)
    seconds = {name: timings.best for name, timings in found.items()}
    line = Line("all cells", table.num_rows, Result(seconds))
    title = f"Reads of {table.num_rows:,} cells"
    yield Table("reads", title, "Best of many reads, by the clock.", (line,), (Ratio("with / without", WITH, WITHOUT),))
    yield Measurement(
        "reads", "reads with views over those without", seconds[WITH] / seconds[WITHOUT], "×", MOST, "at most"
    )
    beside, apart = (_batch(bench, views) for views in (["PTF5", "PTF25"], []))
    detail = f"{duration(beside)} and {duration(apart)}"
    what = "a batch on an array beside one with views over one alone"
    yield Measurement("reads", what, beside / apart, "×", MOST, "at most", detail)


def _batch(bench: ViewsBench, views: list[str]) -> float:
    """The least processor time of a batch on an array without views, beside another that may have some."""
    batches = Batches.of(LATEST, bench.scale.few, bench.scale.batch, bench.scale.rounds + 1)
    with survey(bench, f"beside-{len(views)}", batches.stored, views) as (database, _):
        array = database.create("BESIDE", SURVEY_SCHEMA, sparse=True)
        array.insert(batches.stored)
        array.insert(batches.batches[0])
        return best([lambda table=table: array.insert(table) for table in batches.batches[1:]])  # type: ignore[misc]
