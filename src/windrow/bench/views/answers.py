"""Paper 004, Figure 6: counts and sums of neighbours, from the array and from a view with another shape.

The paper measures the difference of two shapes by its number of offsets. Here both ways are timed, and the choice that
windrow makes by runs and pairs is shown beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate, count, sum
from windrow.api.array import Array
from windrow.api.database import connect
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import Action
from windrow.bench.views.in_memory import hold_query
from windrow.bench.views.scale import ViewsBench
from windrow.bench.views.survey import best
from windrow.errors import DataError
from windrow.model.shape import L1, Linf, Shape, offsets
from windrow.samples import PLACES_SCHEMA, SURVEY_SCHEMA, places, survey_nights

STEPS = 200 * 112
"""200 days, in steps of the survey."""
CLEAR = 1.3
"""By how much two ways must differ for one of them to be the right choice."""
TARGETS = {("PTF", "Linf(1) from L1(1)", "sums"): 4.0, ("PTF", "Linf(1) from L1(1)", "counts"): 1.8}
ARRAY, VIEW = "array", "view"
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
    alone: float = float("nan")
    """What the view gains where the cells of both are in memory, and nothing is read from a store."""

    @property
    def case(self) -> str:
        return f"{self.data}, {self.shapes}, {self.what}: takes the {VIEW if self.chosen else ARRAY}"

    @property
    def seconds(self) -> dict[str, float]:
        return {ARRAY: self.direct} | ({} if self.from_view is None else {VIEW: self.from_view})

    @property
    def gain(self) -> float:
        return float("nan") if self.from_view is None else self.direct / self.from_view

    @property
    def right(self) -> bool:
        """Whether the faster way was taken, or both are about as fast."""
        if self.from_view is None or 1 / CLEAR <= self.gain <= CLEAR:
            return True
        return self.chosen == (self.gain > 1)


def measure_answers(bench: ViewsBench) -> Iterator[Table | Measurement]:
    """Eight pairs of shapes on made-up nights and places, counts and sums of each."""
    size, rounds = bench.scale.few, bench.scale.rounds
    with connect(bench.folder / "answers", engine="local", progress=False) as database:
        survey = database.create("PTF", SURVEY_SCHEMA, sparse=True)
        survey.insert(survey_nights(size).table())
        found = [*_measure("PTF", survey, "mag", {"time": (-STEPS, STEPS)}, ("ra", "dec"), rounds)]
        geo = database.create("GEO", PLACES_SCHEMA, sparse=True)
        geo.insert(places(size))
        found += _measure("GEO", geo, "latitude", {}, ("long", "lat"), rounds)
    about = f"Processor time of queries on {size:,} cells. The view is taken where windrow expects it to be faster."
    lines = tuple(Line(line.case, size, Result(line.seconds)) for line in found)
    ratios = (Ratio("array / view", ARRAY, VIEW),)
    yield Table("answers", "Queries answered from views with another shape", about, lines, ratios)
    yield from as_measurements(found)


def _measure(
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
            yield _race(data, name, what, array, (_within(asked, ranges), _within(kept, ranges)), measures, rounds)


def _name(shape: Shape) -> str:
    return str(shape).split(" on ")[0]


def _within(shape: Shape, ranges: Mapping[str, tuple[int, int]]) -> Shape:
    return shape & offsets(**ranges) if ranges else shape


def _race(
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
        timed = {way: best([action] * rounds) for way, action in ways.items()}
        alone = float("nan")
        if "view" in ways:
            held = [best([hold_query(way)] * rounds) for way in (direct, always)]
            alone = held[0] / held[1]
        return AnswerLine(data, name, what, timed["direct"], timed.get("view"), chosen, alone)
    finally:
        database.drop_view("kept")


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
        case = f"{line.data}, {line.shapes}, {line.what}"
        yield Measurement("answers", case, line.gain, "×", target, detail=taken)
        if target is not None:
            yield Measurement("answers", f"{case}, kernels alone", line.alone, "×", target, detail="in memory")
    wrong = [line for line in lines if not line.right]
    yield Measurement(
        "answers",
        f"choices that were wrong where the ways differ by {CLEAR}",
        float(len(wrong)),
        "",
        0.0,
        "at most",
        detail="; ".join(line.case for line in wrong),
    )
