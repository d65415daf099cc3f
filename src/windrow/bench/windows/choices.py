"""How good the choice of strategies is: forty problems, every strategy that can do them, and how far the one that is
taken by itself is from the best.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import parse_aggregate
from windrow.aggregates.columns import Column
from windrow.aggregates.windows import Evaluation
from windrow.bench.race import Contender, Pace, Result, processor_seconds, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio, Table
from windrow.bench.timing import duration
from windrow.bench.windows.scale import Bench
from windrow.kernels.choose import AUTO, Choice
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep, Sweep, VariableSweep
from windrow.kernels.frames.methods import choose_frames, frame_outcome
from windrow.kernels.frames.spans import Spans, spans_of
from windrow.kernels.windows import choose_windows

Array = npt.NDArray[Any]

NEAR, LEAST = 1.5, 36
"""A choice is good if it takes no longer than this many times the best strategy; so many of forty should be."""
HOPELESS, LOADING = 4.0, 15.0
"""A strategy that takes this many times as long as what is chosen is not measured again; seconds that loading or
compiling a kernel takes at most."""
BRIEF = 8
"""By how much fewer cells and rows a brief run has."""
CHOSEN, BEST = "chosen", "best"


def draw_values(kind: str, shape: tuple[int, ...]) -> Array:
    """Values of a kind: a type of noise, or so many different whole numbers."""
    random = np.random.default_rng(11)
    if kind.endswith(" values"):
        return random.integers(0, int(kind.split()[0]), shape)
    if kind.startswith("float"):
        return random.standard_normal(shape).astype(kind)
    limits = np.iinfo(kind)
    return random.integers(max(limits.min, -(2**40)), min(limits.max, 2**40), shape).astype(kind)


def wanted_operation(aggregate: str, most: int) -> tuple[str, RankTable | None]:
    """The operation that an aggregate needs, and the ranks that answer it."""
    parsed = parse_aggregate(aggregate)
    return "avg" if parsed.name == "avg" else parsed.definition.operation or "count", parsed.ranks(most)


@dataclass(frozen=True)
class Windows:
    """An aggregate over windows of an array; ``missing`` is the share of cells that are, ``step`` that of a regrid."""

    aggregate: str
    shape: tuple[int, ...]
    window: tuple[int, ...]
    kind: str = "float64"
    missing: float = 0.0
    step: int = 1
    varying: bool = False
    """Whether widths vary along the first axis, as those of label units do; with a step they lie side by side."""

    def __str__(self) -> str:
        size = "×".join(map(str, self.window))
        more = f", {self.missing:.0%} missing" if self.missing else ""
        more += f", step {self.step}" if self.step > 1 else ""
        more += ", varying" if self.varying else ""
        return f"{self.aggregate} {size} of {'×'.join(map(str, self.shape))} {self.kind}{more}"

    def smaller(self, factor: float) -> Windows:
        each = factor ** (1 / len(self.shape))
        shape = tuple(max(2, round(length / each)) for length in self.shape)
        return Windows(self.aggregate, shape, self.window, self.kind, self.missing, self.step, self.varying)

    @functools.cached_property
    def _work(self) -> tuple[Column, list[AnySweep]]:
        values = draw_values(self.kind, self.shape)
        gone = np.random.default_rng(5).random(self.shape) < self.missing
        present = None
        if self.missing and values.dtype.kind == "f":
            values[gone] = np.nan
        elif self.missing:
            present = ~gone
        sweeps: list[AnySweep] = [
            Sweep(0, -(-length // self.step), 0, width - 1, self.step)
            for length, width in zip(self.shape, self.window, strict=True)
        ]
        if self.varying:
            sweeps[0] = _varying(self.shape[0], self.window[0], self.step)
        return Column(values, present), sweeps

    def choice(self) -> Choice[Any]:
        column, sweeps = self._work
        operation, ranks = wanted_operation(self.aggregate, math.prod(self.window))
        return choose_windows(operation, self.shape, column.values.dtype, sweeps, ranks)

    def run(self, strategy: str) -> object:
        column, sweeps = self._work
        aggregate = parse_aggregate(self.aggregate).of("x")
        return Evaluation({"x": column}, self.shape, sweeps, strategy=strategy).result(aggregate)


def _varying(length: int, width: int, step: int) -> VariableSweep:
    """Windows of up to ``width`` cells, whose bounds never fall."""
    first = np.arange(0, length, step)
    last = np.maximum.accumulate(first + np.random.default_rng(3).integers(0, width, len(first)))
    return VariableSweep(first, np.minimum(last, length - 1) if step == 1 else np.minimum(last, first + step - 1))


@dataclass(frozen=True)
class FramesOf:
    """An aggregate over frames of a vector, one for each row: the last rows, or rows that start anywhere."""

    aggregate: str
    rows: int
    width: int
    kind: str
    frames: str = "last"

    def __str__(self) -> str:
        return f"{self.aggregate} of {self.rows:,} {self.kind}, frames {self.frames} {self.width:,}"

    def smaller(self, factor: float) -> FramesOf:
        return FramesOf(self.aggregate, max(2, round(self.rows / factor)), self.width, self.kind, self.frames)

    @functools.cached_property
    def _work(self) -> tuple[Array, Spans]:
        values = draw_values(self.kind, (self.rows,))
        spans = _FRAMES[self.frames](self.rows, self.width)
        return values, spans

    def choice(self) -> Choice[Any]:
        values, spans = self._work
        operation, ranks = wanted_operation(self.aggregate, spans.most)
        return choose_frames(operation, values, spans, ranks)

    def run(self, strategy: str) -> object:
        values, spans = self._work
        operation, ranks = wanted_operation(self.aggregate, spans.most)
        return frame_outcome(operation, values, spans, ranks, strategy=strategy)


def _last(rows: int, width: int) -> Spans:
    place = np.arange(rows)
    return spans_of(place - width + 1, place + 1, rows)


def _anywhere(rows: int, width: int) -> Spans:
    lo = np.random.default_rng(2).integers(0, rows, rows)
    return spans_of(lo, lo + width, rows)


def _any_length(rows: int, width: int) -> Spans:
    random = np.random.default_rng(2)
    lo = random.integers(0, rows, rows)
    return spans_of(lo, lo + random.integers(1, width + 1, rows), rows)


def _up_to(rows: int, width: int) -> Spans:
    """Both bounds rise, lengths vary."""
    random = np.random.default_rng(2)
    lo = np.sort(random.integers(0, rows, rows))
    return spans_of(lo, np.maximum.accumulate(lo + random.integers(1, width + 1, rows)), rows)


def _without_row(rows: int, width: int) -> Spans:
    place = np.arange(rows)
    return spans_of(place - width // 2, place + width // 2 + 1, rows, (place, place + 1))


_FRAMES: dict[str, Callable[[int, int], Spans]] = {
    "last": _last,
    "anywhere, of": _anywhere,
    "anywhere, up to": _any_length,
    "rising, up to": _up_to,
    "without the row, of": _without_row,
}

Case = Windows | FramesOf
CASES: tuple[Case, ...] = (
    Windows("sum", (700, 700), (5, 5)),
    Windows("sum", (700, 700), (40, 40), "float32"),
    Windows("sum", (400_000,), (100,), "int64"),
    Windows("sum", (60, 60, 60), (3, 3, 3), missing=0.1),
    Windows("avg", (500, 500), (1, 31)),
    Windows("var", (400, 400), (7, 7)),
    Windows("count", (500, 500), (9, 9), missing=0.3),
    Windows("max", (700, 700), (15, 15), "uint8"),
    Windows("min", (300_000,), (1000,), missing=0.1),
    Windows("max", (600, 600), (8, 8), step=8),
    Windows("sum", (200_000,), (60,), varying=True),
    Windows("max", (200_000,), (30,), step=30, varying=True),
    Windows("median", (60, 60), (3, 3)),
    Windows("percentile(70)", (300, 300), (5, 5), "float32"),
    Windows("median", (300, 300), (9, 9), missing=0.1),
    Windows("percentile(90)", (250, 250), (31, 31)),
    Windows("percentile(70)", (60, 20, 120), (1, 1, 30), "float32"),
    Windows("median", (150_000,), (1001,), "int64"),
    Windows("median", (400, 400), (6, 6), step=6),
    Windows("median", (60_000,), (40,), varying=True),
    Windows("mode", (200, 200), (5, 5), "10 values"),
    Windows("count_distinct", (200, 200), (9, 9), "float32"),
    Windows("count_distinct", (100_000,), (300,), "1000 values"),
    FramesOf("sum", 400_000, 100, "float64"),
    FramesOf("min", 300_000, 500, "1000 values", "anywhere, up to"),
    FramesOf("sum", 300_000, 3, "float64", "anywhere, up to"),
    FramesOf("count_distinct", 400_000, 200, "100 values"),
    FramesOf("count_distinct", 300_000, 1000, "float64"),
    FramesOf("count_distinct", 200_000, 400, "int64", "anywhere, up to"),
    FramesOf("count_distinct", 200_000, 60, "100 values", "without the row, of"),
    FramesOf("mode", 300_000, 20, "50 values"),
    FramesOf("mode", 300_000, 300, "100 values"),
    FramesOf("mode", 150_000, 200, "int64", "rising, up to"),
    FramesOf("mode", 150_000, 150, "100 values", "anywhere, up to"),
    FramesOf("median", 300_000, 100, "100 values"),
    FramesOf("median", 200_000, 30, "float64"),
    FramesOf("median", 200_000, 3000, "2000 values", "rising, up to"),
    FramesOf("percentile(70)", 150_000, 500, "int64", "anywhere, of"),
    FramesOf("median", 100_000, 12, "float64", "anywhere, up to"),
    FramesOf("percentile(70)", 100_000, 2000, "float64", "anywhere, up to"),
)


@dataclass(frozen=True)
class Judged:
    """A problem with the seconds of every strategy that can do it, and of leaving the choice to windrow."""

    case: Case
    taken: str
    alone: float
    seconds: dict[str, float]

    @property
    def best(self) -> str:
        return min(self.seconds, key=self.seconds.__getitem__)

    @property
    def distance(self) -> float:
        return self.alone / self.seconds[self.best]

    @property
    def line(self) -> Line:
        strategies = self.taken if self.taken == self.best else f"{self.taken}, best {self.best}"
        seconds = {CHOSEN: self.alone, BEST: self.seconds[self.best]}
        return Line(f"{self.case}: {strategies}", 1, Result(seconds))


def judge(case: Case, pace: Pace) -> Judged:
    """Measure a problem by every strategy that can do it."""
    choice = case.choice()
    able = [one.strategy.name for one in choice.candidates if one.strategy.can(choice.problem) is None]
    actions = {name: functools.partial(case.run, name) for name in (AUTO, *able)}
    actions[AUTO]()  # the first call compiles, after which another strategy may be cheapest
    seconds = {name: processor_seconds(action) for name, action in actions.items()}
    limit = HOPELESS * seconds[AUTO]
    for name, action in actions.items():
        # The first call may have had to load or compile, but not for that long.
        if limit < seconds[name] < limit + LOADING:
            seconds[name] = processor_seconds(action)
    kept = [Contender(name, action) for name, action in actions.items() if seconds[name] <= limit]
    seconds |= race(kept, pace).seconds
    alone = seconds.pop(AUTO)
    return Judged(case, case.choice().name, alone, seconds)


def measure_choices(bench: Bench) -> Iterator[Table | Measurement]:
    """How far the choice is from the best strategy, problem by problem."""
    factor = bench.scale.shrink**2 * (BRIEF if bench.scale.brief else 1)
    found = [judge(case.smaller(factor), bench.pace) for case in CASES]
    ratio = Ratio("chosen / best", CHOSEN, BEST)
    for title, kind in (("windows", Windows), ("frames", FramesOf)):
        lines = tuple(one.line for one in found if isinstance(one.case, kind))
        about = "What windrow chooses, the choosing included, and the best of all strategies that can."
        yield Table("choices", f"strategies for {title}", about, lines, (ratio,))
    yield verdict(found)


def verdict(found: Sequence[Judged]) -> Measurement:
    good = sum(one.distance <= NEAR for one in found)
    worst = sorted(found, key=lambda one: -one.distance)[:3]
    detail = "farthest: " + "; ".join(
        f"{one.case} {one.distance:.2f}× ({one.taken} {duration(one.alone)}, "
        f"{one.best} {duration(one.seconds[one.best])})"
        for one in worst
    )
    what = f"problems of {len(found)} where the choice takes at most {NEAR:g} times the best strategy"
    return Measurement("choices", what, good, "", LEAST, "at least", detail)
