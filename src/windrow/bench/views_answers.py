"""Paper 004, Figure 6: counts and sums of neighbours, from the array and from a view with another shape.

The paper measures the difference of two shapes by its number of offsets. Here both ways are timed, and the choice that
windrow makes by runs and pairs is shown beside them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate, count, sum
from windrow.api.array import Array
from windrow.api.database import connect
from windrow.bench.report import Measurement
from windrow.bench.timing import Action, duration
from windrow.errors import DataError
from windrow.model.shape import L1, Linf, Shape, offsets
from windrow.samples import PLACES_SCHEMA, SURVEY_SCHEMA, places, survey_nights

STEPS = 200 * 112
"""200 days, in steps of the survey."""
CLEAR = 1.3
"""By how much two ways must differ for one of them to be the right choice."""
TARGETS = {("PTF", "Linf(1) from L1(1)", "sums"): 4.0, ("PTF", "Linf(1) from L1(1)", "counts"): 1.8}
COUNTS: Mapping[str, Aggregate] = {"n": count()}


@dataclass(frozen=True)
class AnswerLine:
    """Seconds of processor time of both ways, and which one windrow takes."""

    data: str
    shapes: str
    what: str
    direct: float
    from_view: float | None
    """None where the view cannot serve."""
    chosen: bool
    """Whether windrow takes the view."""

    @property
    def gain(self) -> float:
        return float("nan") if self.from_view is None else self.direct / self.from_view

    @property
    def right(self) -> bool:
        """Whether the faster way was taken, or both are about as fast."""
        if self.from_view is None or 1 / CLEAR <= self.gain <= CLEAR:
            return True
        return self.chosen == (self.gain > 1)

    def __str__(self) -> str:
        other = "cannot serve" if self.from_view is None else f"{duration(self.from_view)}, {self.gain:.2f}x"
        taken = "the view" if self.chosen else "the array"
        return f"{self.data} {self.shapes}, {self.what}: {duration(self.direct)}, from the view {other}; takes {taken}"


def measure_answers(folder: Path, detections: int, geo_places: int, rounds: int = 5) -> Iterator[AnswerLine]:
    """Eight pairs of shapes on made-up nights and places, counts and sums of each."""
    with connect(folder / "answers", engine="local", progress=False) as database:
        survey = database.create("PTF", SURVEY_SCHEMA, sparse=True)
        survey.insert(pa.concat_tables(survey_nights(detections)))
        yield from _measured("PTF", survey, "mag", {"time": (-STEPS, STEPS)}, ("ra", "dec"), rounds)
        geo = database.create("GEO", PLACES_SCHEMA, sparse=True)
        geo.insert(places(geo_places))
        yield from _measured("GEO", geo, "latitude", {}, ("long", "lat"), rounds)


def _measured(
    data: str, array: Array, value: str, ranges: Mapping[str, tuple[int, int]], on: tuple[str, str], rounds: int
) -> Iterator[AnswerLine]:
    pairs = [
        (Linf(1, on=on), L1(1, on=on)),
        (Linf(1, on=on), Linf(2, on=on)),
        (L1(2, on=on), L1(1, on=on)),
        (Linf(2, on=on), L1(2, on=on)),
    ]
    for asked, kept in pairs:
        name = f"{_name(asked)} from {_name(kept)}"
        for what, measures in (("counts", COUNTS), ("sums", {"n": count(), "c": count(value), "s": sum(value)})):
            yield _raced(data, name, what, array, (_within(asked, ranges), _within(kept, ranges)), measures, rounds)


def _name(shape: Shape) -> str:
    return str(shape).split(" on ")[0]


def _within(shape: Shape, ranges: Mapping[str, tuple[int, int]]) -> Shape:
    return shape & offsets(**ranges) if ranges else shape


def _raced(
    data: str,
    name: str,
    what: str,
    array: Array,
    shapes: tuple[Shape, Shape],
    measures: Mapping[str, Aggregate],
    rounds: int,
) -> AnswerLine:
    asked, kept = shapes
    database = array._database
    query = array.neighbours(asked).agg(method="auto", **measures)
    database.create_view("kept", array.neighbours(kept).agg(method="auto", **measures))
    try:
        direct, always, auto = (query.using_views(use) for use in ("off", "always", "auto"))
        chosen = any(note.taken for note in auto.explain().considered)
        ways: dict[str, Action] = {"direct": direct.compute}
        if any(note.taken for note in always.explain().considered):
            _check(direct.compute(), always.compute())
            ways["view"] = always.compute
        timed = {way: min(_processor_time(action) for _ in range(rounds)) for way, action in ways.items()}
        return AnswerLine(data, name, what, timed["direct"], timed.get("view"), chosen)
    finally:
        database.drop_view("kept")


def _processor_time(action: Action) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def _check(one: pa.Table, other: pa.Table) -> None:
    for name in one.column_names:
        left, right = (table.column(name).to_numpy() for table in (one, other))
        if not np.allclose(left, right, rtol=1e-9, equal_nan=True):
            raise DataError("the two ways differ", got=name)


def as_measurements(lines: list[AnswerLine]) -> Iterator[Measurement]:
    """The lines of a report: what the view gains, against its target where there is one."""
    for line in lines:
        target = TARGETS.get((line.data, line.shapes, line.what))
        taken = "the view is taken" if line.chosen else "the array is taken"
        yield Measurement("answers", f"{line.data}, {line.shapes}, {line.what}", line.gain, "x", target, detail=taken)
    wrong = [line for line in lines if not line.right]
    yield Measurement(
        "answers",
        f"choices that were wrong where the ways differ by {CLEAR}",
        float(len(wrong)),
        "",
        0.0,
        "at most",
        detail="; ".join(map(str, wrong)),
    )
