"""Frames to race on, and windrow's methods for them: processor time in turns, the clock beside it.

What would take long is measured on a sample: some frames in the middle of the table, scaled by how many rows the frames
of the whole table hold.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.frames import TAU
from windrow.api.framed import framed
from windrow.bench.race import (
    SUM_TOLERANCE,
    Contender,
    Pace,
    Result,
    compiling_seconds,
    processor_seconds,
    race,
)
from windrow.bench.timing import Action, time_call
from windrow.errors import DataError

Array = npt.NDArray[Any]
LEAST_ROWS = 256
STEADY = 2
"""How many times its width a sample is long at least, where frames reuse the one before."""
MOST_GROWTH = 16


@dataclass(frozen=True)
class Spread:
    """Frames of one length whose start is pseudo-random: ``mod(b * factor, modulus)`` rows before row b."""

    factor: int
    modulus: int


@dataclass(frozen=True, eq=False)
class FrameProblem:
    """One aggregate over a frame for each row: the last ``width`` rows, or ``width + 1`` rows that start anywhere."""

    values: Array
    aggregate: str
    width: int
    spread: Spread | None = None

    @property
    def rows(self) -> int:
        return len(self.values)

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """Column b of the table: the number of each row."""
        return np.arange(self.rows, dtype=np.int64)

    @cached_property
    def bounds(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The first row of each frame and the one after its last."""
        b = self.order
        if self.spread is None:
            return b - (self.width - 1), b + 1
        before = b * self.spread.factor % self.spread.modulus
        return b - before, b + (self.width - before + 1)

    @property
    def over(self) -> str:
        """The frames in SQL, of a table whose row numbers are in column b."""
        if self.spread is None:
            return f"order by b rows between {self.width - 1} preceding and current row"
        before = f"mod(b * {self.spread.factor}, {self.spread.modulus})"
        return f"order by b rows between {before} preceding and {self.width} - {before} following"

    def answer(self, method: str = "auto", tau: float = TAU) -> Array:
        return framed(self.values, self.aggregate, *self.bounds, method=method, tau=tau)

    def cut(self, rows: int) -> FrameProblem:
        """The same on the first rows."""
        return replace(self, values=self.values[:rows].copy())


@dataclass(frozen=True, eq=False)
class FrameSample:
    """So many frames in the middle of a table, with the values that they reach."""

    problem: FrameProblem
    rows: int

    @property
    def frames(self) -> slice:
        start = (self.problem.rows - self.rows) // 2
        return slice(start, start + self.rows)

    @property
    def factor(self) -> float:
        """How many times more rows all frames hold than these, cut off at the ends of the table as they are."""
        lo, hi = (np.clip(bound, 0, self.problem.rows) for bound in self.problem.bounds)
        held = np.maximum(hi - lo, 0)
        return float(held.sum() / held[self.frames].sum())

    def evaluate(self, method: str, tau: float = TAU) -> Callable[[], Array]:
        """A function that computes them, its input cut out already."""
        lo, hi = (bound[self.frames] for bound in self.problem.bounds)
        first, last = max(0, int(lo.min())), min(self.problem.rows, int(hi.max()))
        values = self.problem.values[first:last].copy()
        run = functools.partial(framed, values, self.problem.aggregate, lo - first, hi - first)
        return functools.partial(run, method=method, tau=tau)


@dataclass(frozen=True)
class Way:
    """A method of windrow's, and the name under which it runs."""

    name: str
    method: str
    tau: float = TAU


AUTO = Way("auto", "auto")


def frame_methods(problem: FrameProblem, pace: Pace, ways: Sequence[Way]) -> list[Contender]:
    """windrow's methods as contenders; their answers are compared first, for a wrong one must not win."""
    compiling, _ = compiling_seconds(problem.answer)
    expected = problem.answer()
    found = []
    for way in ways:
        if way.method == "auto":
            found.append(Contender(way.name, problem.answer, 1.0, compiling))
            continue
        sample, took = _sample_frames(problem, way, pace)
        run = sample.evaluate(way.method, way.tau)
        check_frames(problem, way.name, expected[sample.frames], run())
        found.append(Contender(way.name, run, sample.factor, took))
    return found


def _sample_frames(problem: FrameProblem, way: Way, pace: Pace) -> tuple[FrameSample, float]:
    """The frames to measure a method on, all of them if that is quick enough; and the seconds it took to compile."""
    least = LEAST_ROWS if way.method == "naive" or problem.spread else max(LEAST_ROWS, STEADY * problem.width)

    def prepare(rows: int) -> Action:
        return FrameSample(problem, rows).evaluate(way.method, way.tau)

    rows, compiling = sample_rows(prepare, problem.rows, least, pace)
    return FrameSample(problem, rows), compiling


def sample_rows(prepare: Callable[[int], Action], rows: int, least: int, pace: Pace) -> tuple[int, float]:
    """How many of so many rows take about as long as a sample should; and the seconds it took to compile.

    Samples grow until they take half as long as they should, so that what a call costs at any size is not scaled up.
    """
    tried = min(rows, least)
    compiling, took = compiling_seconds(prepare(tried))
    while tried < rows and took < pace.sample / 2:
        growth = min(MOST_GROWTH, pace.sample / max(took, 1e-9))
        tried = min(rows, math.ceil(tried * growth))
        if tried * 2 > rows:
            return rows, compiling
        took = processor_seconds(prepare(tried))
    return tried, compiling


def check_frames(problem: FrameProblem, name: str, expected: Array, found: Array) -> None:
    """Refuse to time a method whose answer differs from auto's; only sums and averages may be off, and by rounding."""
    same = np.array_equal(expected, found, equal_nan=expected.dtype.kind == "f")
    rounded = problem.aggregate in ("sum", "avg")
    if not same and not (rounded and np.allclose(expected, found, rtol=SUM_TOLERANCE, atol=0, equal_nan=True)):
        message = f"{problem.aggregate} over frames of {problem.width}: auto and {name} disagree"
        raise DataError(message, hint="This is a bug")


class Clocked:
    """An action that remembers how long its quickest call took by the clock."""

    def __init__(self, action: Action) -> None:
        self.action, self.best = action, math.inf

    def __call__(self) -> None:
        self.best = min(self.best, time_call(self.action))


def race_by_clock(contenders: Iterable[Contender], pace: Pace) -> tuple[Result, dict[str, float]]:
    """Best processor seconds of each contender, and beside them its best seconds by the clock."""
    entered = list(contenders)
    clocks = {contender.name: Clocked(contender.action) for contender in entered}
    result = race([replace(contender, action=clocks[contender.name]) for contender in entered], pace)
    return result, {contender.name: clocks[contender.name].best * contender.factor for contender in entered}
