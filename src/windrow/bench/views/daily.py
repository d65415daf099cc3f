"""A year of batches, one a day: whether the last ones take as long as the first, and what is left on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from windrow.aggregates.aggregate import avg, percentile
from windrow.api.database import connect
from windrow.bench.race import Result, processor_seconds
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.views.dense import WIDTH, growing_field
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import query_of
from windrow.errors import DataError
from windrow.model.window import trailing
from windrow.samples import SURVEY_SCHEMA, survey_nights

FIRST = 10
"""Batches before those that are compared."""
FLAT = 1.3
EARLY, LATE = "early batches", "last batches"


@dataclass
class Course:
    """Seconds of each batch, and after each how many files there are and how much memory is in use."""

    folder: Path
    seconds: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def batch(self, action: Callable[[], object]) -> None:
        self.seconds.append(processor_seconds(action))
        self.files.append(sum(1 for path in self.folder.rglob("*") if path.is_file()))
        self.memory.append(psutil.Process().memory_info().rss)

    def compared(self, span: int) -> dict[str, float]:
        """Mean seconds of the batches after the first ten, and of the last."""
        if len(self.seconds) < FIRST + 2 * span:
            raise DataError("there are too few batches to compare", got=len(self.seconds))
        return {
            EARLY: float(np.mean(self.seconds[FIRST : FIRST + span])),
            LATE: float(np.mean(self.seconds[-span:])),
        }

    def growth(self, counts: list[int], span: int) -> float:
        """How many times as much is added by the last batches as by the early ones."""
        early = counts[FIRST + span - 1] - counts[FIRST - 1]
        return (counts[-1] - counts[-1 - span]) / max(1, early)


def measure_days(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """Daily slices into a field with a moving percentile and a monthly mean."""
    scale = bench.scale
    lon, lat, _ = scale.field
    with connect(bench.folder / "days", engine="local", progress=False) as database:
        array, values = growing_field(database, (lon, lat, scale.days + 60), 60)
        database.create_view("P90", array.window(time=trailing(WIDTH)).agg(p=percentile("t", 90)))
        database.create_view("MONTHS", array.regrid(time=WIDTH).agg(mean=avg("t")))
        course = Course(bench.folder / "days")
        for day in range(60, 60 + scale.days):
            course.batch(lambda day=day: array.append({"t": values[:, :, day : day + 1]}))  # type: ignore[misc]
        yield from _report(bench, "days", f"{scale.days} daily slices into {lon}×{lat}, two views", course)


def measure_nights(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """Nights of equally many detections with a PTF-5 view."""
    scale = bench.scale
    table = survey_nights(scale.night * (scale.days + 1)).table()
    nights = [table.slice(scale.night * number, scale.night) for number in range(scale.days + 1)]
    with connect(bench.folder / "nights", engine="local", progress=False) as database:
        array = database.create("PTF", SURVEY_SCHEMA, sparse=True)
        array.insert(pa.table(nights[0]))
        database.create_view("PTF5", query_of("PTF5", array), maintain="incremental")
        course = Course(bench.folder / "nights")
        for night in nights[1:]:
            course.batch(lambda night=night: array.insert(night))  # type: ignore[misc]
        yield from _report(bench, "nights", f"{scale.days} nights of {scale.night:,} detections, PTF-5", course)
        yield _measure_pairs(table, database.view("PTF5").read(), scale.night, scale.span)


def _measure_pairs(table: pa.Table, results: pa.Table, night: int, span: int) -> Measurement:
    """How many pairs the last batches met over the early ones: time cannot be asked to grow less.

    A cell's partners are of its own night and before, so that its count says what its batch met.
    """
    order, found = (
        np.lexsort([cells.column(name).to_numpy() for name in ("dec", "ra", "time")]) for cells in (table, results)
    )
    counts = results.column("n").to_numpy()[found]
    pairs = np.bincount(order // night, counts, table.num_rows // night)[1:]  # the first night was there before
    early, late = float(np.mean(pairs[FIRST : FIRST + span])), float(np.mean(pairs[-span:]))
    detail = f"{early:,.0f} and {late:,.0f} pairs a batch"
    return Measurement(
        "nights", "pairs of last batches over those of early ones", late / early, "×", None, detail=detail
    )


def _report(bench: ViewsBench, subject: str, title: str, course: Course) -> Iterator[Table | Measurement]:
    span = bench.scale.span
    compared = course.compared(span)
    about = f"Mean processor time of batches {FIRST + 1} to {FIRST + span}, and of the last {span}."
    line = Line("a batch", span, Result(compared))
    yield Table(subject, title, about, (line,), (Ratio("last / early", LATE, EARLY),))
    yield Measurement(subject, "last batches over early ones", compared[LATE] / compared[EARLY], "×", FLAT, "at most")
    added = course.growth(course.files, span)
    yield Measurement(
        subject, "files added by the last over the early", added, "×", FLAT, "at most", f"{course.files[-1]:,} files"
    )
    memory = course.memory[-1] / course.memory[FIRST + span - 1]
    detail = f"{course.memory[-1] / 2**20:,.0f} MB at the end"
    yield Measurement(subject, "memory at the end over early", memory, "×", FLAT, "at most", detail)
