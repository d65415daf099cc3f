"""Racing ways to answer a question: in turns, by the clock, after their answers were compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.api.query import Query
from windrow.bench.race import Result
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Ratio
from windrow.bench.timing import duration, in_turns
from windrow.errors import DataError

OURS = "windrow"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Contender:
    """Somebody's way to answer: ``run`` answers, ``values`` makes plain numbers of an answer, in one order."""

    run: Callable[[], Any]
    values: Callable[[Any], Array]


@dataclass(frozen=True)
class Question:
    """What is asked, how near answers must be, and by which factor each peer is to be slower."""

    name: str
    contenders: Mapping[str, Contender]
    targets: Mapping[str, float]
    path: str
    nearness: float = 0.0
    """What answers may differ by, of the largest of them: 0 for the same numbers."""


def check_answers(question: Question) -> None:
    """Refuse to time those who answer something else."""
    found = {name: contender.values(contender.run()) for name, contender in question.contenders.items()}
    expected = found[OURS]
    for name, values in found.items():
        same = values.shape == expected.shape and _are_near(expected, values, question.nearness)
        if not same:
            raise DataError(f"{question.name}: {name} and windrow disagree", got=f"{values} and {expected}")


def _are_near(one: Array, other: Array, nearness: float) -> bool:
    if not nearness:
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if not np.array_equal(np.isnan(one), np.isnan(other)):
        return False
    size = float(np.nanmax(np.abs(one), initial=0.0))
    return bool(np.nanmax(np.abs(one - other), initial=0.0) <= nearness * size)


def race(question: Question, rounds: int, width: int) -> Line:
    """The median seconds of each contender."""
    check_answers(question)
    found = in_turns({name: contender.run for name, contender in question.contenders.items()}, rounds)
    return Line(question.name, width, Result({name: times.median for name, times in found.items()}))


def gains(subject: str, question: Question, line: Line) -> list[Measurement]:
    """How many times as long each peer takes as windrow, and on which path windrow was; NaN without the peer."""
    rows = []
    for peer, target in question.targets.items():
        theirs, ours = line.result.seconds.get(peer), line.result.seconds[OURS]
        what = f"{question.name} against {peer}"
        if theirs is None:
            rows.append(Measurement(subject, what, math.nan, "×", target, detail=f"{peer} is not there"))
            continue
        detail = f"windrow {duration(ours)}, {peer} {duration(theirs)}; path: {question.path}"
        rows.append(Measurement(subject, what, theirs / ours, "×", target, detail=detail))
    return rows


def ratios(*peers: str) -> tuple[Ratio, ...]:
    return tuple(Ratio(f"{peer} / windrow", peer, OURS) for peer in peers)


def path_of(query: Query) -> str:
    """The way that a query's values take, in a word."""
    return query.explain().path
