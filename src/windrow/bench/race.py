"""Racing ways to compute the same windows: one thread each, in turns, best of several, by processor time.

What would take minutes is measured on a sample: some rows of the result in the middle of the array, where windows are
whole, scaled by how many cells the windows of the whole array cover.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import parse_aggregate
from windrow.aggregates.columns import Column
from windrow.aggregates.windows import Evaluation
from windrow.api.sliding import ANCHORS, sliding
from windrow.bench.timing import Action
from windrow.errors import DataError
from windrow.kernels.contract.geometry import sweep_axis
from windrow.kernels.contract.sweeps import Sweep

Array = npt.NDArray[Any]
METHODS = ("naive", "incremental", "auto")
SUM_TOLERANCE = 1e-12
LEAST_ROUNDS = 3
_COLD_BYTES = 256 * 2**20


@dataclass(frozen=True, eq=False)
class Problem:
    """One aggregate over one window at every cell of an array."""

    values: Array
    aggregate: str
    window: tuple[int, ...]
    percent: float | None = None
    anchor: str = "corner"
    out: Array | None = None
    """Where contenders that can do so put their results: all into the same memory, so that none is better off."""

    @property
    def call(self) -> str:
        return self.aggregate if self.percent is None else f"{self.aggregate}({self.percent:g})"

    @property
    def along_last(self) -> bool:
        """Whether the window is one-dimensional, along the last axis."""
        return all(width == 1 for width in self.window[:-1])

    def answer(self, method: str = "auto") -> Array:
        out = self.out if method == "auto" else None
        return sliding(self.values, self.call, self.window, self.anchor, method=method, out=out)

    def cut(self, cells: int) -> Problem:
        """The same on the first cells of the first axis."""
        out = None if self.out is None else self.out[:cells]
        return replace(self, values=np.ascontiguousarray(self.values[:cells]), out=out)


@dataclass(frozen=True, eq=False)
class Slab:
    """The rows of a problem's result that one method computes for all: ``rows`` of them along ``axis``."""

    problem: Problem
    method: str
    axis: int
    rows: int

    @property
    def first(self) -> int:
        """The first of the input cells that the rows need; they lie in the middle."""
        needed = self.rows + self.problem.window[self.axis] - 1
        return (int(self.problem.values.shape[self.axis]) - needed) // 2

    @property
    def factor(self) -> float:
        """How many times more cells the windows of the whole array cover, clipped ones included."""
        length, width = self.problem.values.shape[self.axis], self.problem.window[self.axis]
        lo, hi = self._sweep(self.axis, length).clipped(length)
        return float((hi - lo + 1).sum()) / (self.rows * width)

    @property
    def results(self) -> slice:
        """Which rows of the whole result these are."""
        start = self.first - ANCHORS[self.problem.anchor](self.problem.window[self.axis]).start
        return slice(start, start + self.rows)

    def evaluate(self) -> Callable[[], Array]:
        """A function that computes the rows, its input cut out already."""
        width = self.problem.window[self.axis]
        cells = slice(self.first, self.first + self.rows + width - 1)
        block = np.ascontiguousarray(self.problem.values[(slice(None),) * self.axis + (cells,)])
        sweeps = [self._sweep(axis, length) for axis, length in enumerate(block.shape)]
        sweeps[self.axis] = Sweep(0, self.rows, 0, width - 1)
        aggregate = parse_aggregate(self.problem.call).of("x")

        def run() -> Array:
            return Evaluation({"x": Column(block)}, block.shape, sweeps, self.method).result(aggregate).filled()

        return run

    def _sweep(self, axis: int, length: int) -> Sweep:
        extent = ANCHORS[self.problem.anchor](self.problem.window[axis])
        return Sweep(0, length, extent.start, extent.stop)


@dataclass(frozen=True)
class Contender:
    """A way to compute a problem, or a sample of it that is ``factor`` times smaller; called once or more before."""

    name: str
    action: Action
    factor: float = 1.0
    compiling: float = 0.0
    """How much longer its first call took than its second."""


@dataclass(frozen=True)
class Pace:
    """How patiently contenders are measured."""

    rounds: int
    patience: float
    """Seconds after which a contender is not repeated, once it had its least rounds."""
    sample: float
    """Seconds that one call of a sample takes; what takes more than twice as long is sampled."""


@dataclass(frozen=True)
class Result:
    """Best seconds for the whole problem of each contender."""

    seconds: Mapping[str, float]
    compiling: Mapping[str, float] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)


def processor_seconds(action: Action) -> float:
    """The processor time of one call, of all threads together, so that more threads do not look faster."""
    start = time.process_time()
    action()
    return time.process_time() - start


def compiling_seconds(action: Action) -> tuple[float, float]:
    """How much longer the first call takes than the second, and how long the second takes."""
    first, second = processor_seconds(action), processor_seconds(action)
    return max(0.0, first - second), second


def race(contenders: Sequence[Contender], pace: Pace, cold: bool = False) -> Result:
    """Best of several rounds of each contender, the order turned round every time.

    With ``cold``, caches are filled with something else before every call.
    """
    best = {contender.name: math.inf for contender in contenders}
    spent = dict.fromkeys(best, 0.0)
    other = np.zeros(_COLD_BYTES // 8 if cold else 0)
    for number in range(pace.rounds):
        for contender in contenders[:: 1 if number % 2 == 0 else -1]:
            if number >= LEAST_ROUNDS and spent[contender.name] > pace.patience:
                continue
            other += 1.0
            took = processor_seconds(contender.action)
            spent[contender.name] += took
            best[contender.name] = min(best[contender.name], took)
    return Result(
        {contender.name: best[contender.name] * contender.factor for contender in contenders},
        {contender.name: contender.compiling for contender in contenders},
        {contender.name: contender.factor for contender in contenders if contender.factor > 1},
    )


def methods(problem: Problem, pace: Pace, names: Sequence[str] = METHODS) -> list[Contender]:
    """windrow's methods as contenders; their answers are compared first, for a wrong one must not win."""
    compiling, _ = compiling_seconds(problem.answer)
    expected = problem.answer().copy()
    found = []
    for name in names:
        if name == "auto":
            found.append(Contender(name, problem.answer, 1.0, compiling))
            continue
        slab, took = sample_slab(problem, name, pace)
        run: Callable[[], Array]
        if slab is None:
            run, rows, factor = functools.partial(problem.answer, name), expected, 1.0
        else:
            run, rows, factor = slab.evaluate(), expected[(slice(None),) * slab.axis + (slab.results,)], slab.factor
        check_agreement(problem, name, rows, run())
        found.append(Contender(name, run, factor, took))
    return found


def check_agreement(problem: Problem, method: str, expected: Array, found: Array) -> None:
    """Refuse to time a method whose answer differs from auto's by more than sums may."""
    exact = problem.aggregate not in ("sum", "avg")
    same = np.array_equal(expected, found, equal_nan=True)
    scale = np.abs(problem.values[np.isfinite(problem.values)]).max(initial=0) * (
        math.prod(problem.window) if problem.aggregate == "sum" else 1
    )
    if not same and (exact or not np.allclose(expected, found, rtol=SUM_TOLERANCE, atol=SUM_TOLERANCE * scale)):
        window = "×".join(map(str, problem.window))
        raise DataError(f"{problem.call} over {window}: methods auto and {method} disagree", hint="This is a bug")


def sample_slab(problem: Problem, method: str, pace: Pace) -> tuple[Slab | None, float]:
    """The rows to measure a method on, or None if all of them are quick enough; and the seconds it took to compile.

    The papers' method reuses windows along the axis it sweeps, so its sample keeps that axis whole.
    """
    shape, window = problem.values.shape, problem.window
    sweeps = [Sweep(0, length, 0, width - 1) for length, width in zip(shape, window, strict=True)]
    swept = sweep_axis(shape, sweeps)
    axes = [axis for axis in range(len(shape)) if axis != swept] + ([swept] if method == "naive" else [])
    fitting = [axis for axis in axes if shape[axis] >= window[axis]]
    if not fitting:
        compiling, _ = compiling_seconds(functools.partial(problem.answer, method))
        return None, compiling
    axis = fitting[0]
    whole = shape[axis] - window[axis] + 1
    probe = Slab(problem, method, axis, min(whole, max(1, shape[axis] // 64)))
    compiling, took = compiling_seconds(probe.evaluate())
    if took * probe.factor <= 2 * pace.sample:
        return None, compiling
    rows = min(whole, max(1, round(probe.rows * pace.sample / max(took, 1e-9))))
    return Slab(problem, method, axis, rows), compiling


def mean_width(length: int, width: int) -> float:
    """How wide windows are on average, clipped at the border as they are."""
    clipped = min(width, length)
    return clipped * (length - (clipped - 1) / 2) / length
