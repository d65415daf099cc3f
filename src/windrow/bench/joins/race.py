"""What contenders of the join benchmark give, how they are held against one another, and how they are timed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.bench.joins.scale import JoinsBench
from windrow.bench.race import Contender, race
from windrow.bench.report import Bound, Measurement
from windrow.bench.tables import Line
from windrow.bench.timing import Action, duration
from windrow.errors import DataError

Array = npt.NDArray[Any]
OURS = "windrow"
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Answer:
    """Of each cell, in the order they are given: how many neighbours it has, and the sum of their values."""

    counts: Array
    sums: Array | None = None

    def scattered(self, order: Array) -> Answer:
        """Results of cells in another order, each at the place that it was given at."""
        return Answer(_scatter(self.counts, order), None if self.sums is None else _scatter(self.sums, order))

    def check(self, other: Answer, who: str) -> None:
        """Refuse to time a contender that gives something else: a wrong answer has no speed."""
        if not np.array_equal(self.counts, other.counts):
            differ = int(np.count_nonzero(self.counts != other.counts)) if len(self.counts) == len(other.counts) else -1
            raise DataError(
                f"windrow's counts and those of {who} disagree", got=f"{differ} of {len(self.counts)} cells"
            )
        if self.sums is not None and other.sums is not None:
            scale = float(np.abs(self.sums).max(initial=1.0))
            if not np.allclose(self.sums, other.sums, rtol=SUM_TOLERANCE, atol=SUM_TOLERANCE * scale):
                raise DataError(f"windrow's sums and those of {who} disagree")


def _scatter(values: Array, order: Array) -> Array:
    found = np.empty(len(values), values.dtype)
    found[order] = values
    return found


@dataclass(frozen=True)
class Prepared:
    """A contender with its data in its own form: what is timed, and what hands all results out."""

    action: Action
    fetch: Callable[[], Answer]


def always(run: Callable[[], Answer]) -> Prepared:
    """One that hands its results out in any case."""
    return Prepared(run, run)


def raced(bench: JoinsBench, case: str, contenders: Mapping[str, Prepared], size: int) -> Line:
    """Every contender's answer is compared with windrow's, then all are timed equally often; data may be kept."""
    expected = contenders[OURS].fetch()
    for name, contender in contenders.items():
        if name != OURS:
            expected.check(contender.fetch(), name)
    entered = [Contender(name, contender.action) for name, contender in contenders.items()]
    return Line(case, size, race(entered, bench.scale.pace))


def gain(
    subject: str,
    what: str,
    line: Line | None,
    peer: str,
    target: float | None,
    bound: Bound = "at least",
    lacking: str | None = None,
) -> Measurement:
    """How many times as long a peer takes as windrow; NaN if the peer is not there."""
    theirs = None if line is None else line.result.seconds.get(peer)
    if line is None or theirs is None:
        return Measurement(subject, what, math.nan, "×", target, bound, lacking or f"{peer} is not installed")
    ours = line.result.seconds[OURS]
    detail = f"windrow {duration(ours)}, {peer} {duration(theirs)}"
    return Measurement(subject, what, theirs / ours, "×", target, bound, detail)
