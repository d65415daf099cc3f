"""Reads of an array with views, against the same reads of one without."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.bench.report import Measurement
from windrow.bench.timing import in_turns
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import survey
from windrow.bench.windows_race import Result
from windrow.bench.windows_report import Line, Ratio, Table
from windrow.errors import DataError
from windrow.samples import survey_nights

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
