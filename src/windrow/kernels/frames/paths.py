"""In which order to go through frames so that each shares most of its rows with the one before.

Frames that slide need no other order. Frames of about one length slide once they are ordered by their start. Arbitrary
ones are gathered into strips by their start and ordered by their end within a strip, up and down in turns (the best
order is NP-hard to find: 003, Appendix A).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.frames.spans import Spans

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

SLIDING = 32
"""Rows that may come and go for each frame, and for each row, for an order to be called sliding."""
SAMPLE = 1024
"""Frames that are looked at to guess how they would move in another order."""
AS_THEY_COME: Int64Array = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Path:
    """An order of frames (empty: as they come), and how many rows come and go on the way."""

    order: Int64Array
    moves: int
    shifted: int  # the same if no frame could begin anew

    def slides(self, spans: Spans) -> bool:
        """Whether few rows come and go."""
        return self.moves <= SLIDING * (spans.rows + spans.count)


def sliding_path(spans: Spans) -> Path:
    """The given order if frames slide, else by their start."""
    given = Path(AS_THEY_COME, spans.survey.moves, spans.survey.shifted)
    if given.slides(spans) or _moves_by_start(spans) > 2 * SLIDING * (spans.rows + spans.count):
        return given
    order = order_by(spans.begin[0], spans.rows)
    by_start = Path(order, *count_moves(spans.begin, spans.end, order))
    return by_start if by_start.moves < given.moves else given


@dataclass(frozen=True)
class ExpectedPath:
    """About what ``sliding_path`` would give, from a sample of frames."""

    moves: float
    shifted: float
    orders: bool  # whether frames are put into another order

    def slides(self, spans: Spans) -> bool:
        return self.moves <= SLIDING * (spans.rows + spans.count)


def expected_path(spans: Spans) -> ExpectedPath:
    """How far frames would move, found without ordering them."""
    survey = spans.survey
    given = ExpectedPath(survey.moves, survey.shifted, orders=False)
    if given.slides(spans):
        return given
    if _moves_by_start(spans) > 2 * SLIDING * (spans.rows + spans.count):
        return given
    some = _sample(spans)
    begin, end = spans.begin[0, some], spans.end[-1 if spans.whole else 1, some]
    # Starts rise; ends do, too, but for the difference between a frame's length and its neighbour's.
    lengths = (end - begin)[np.argsort(begin, kind="stable")]
    ends = max(float(np.ptp(end)), float(np.abs(np.diff(lengths)).mean()) * spans.count)
    moves = min(float(np.ptp(begin)) + ends, float(given.moves))
    return ExpectedPath(moves, moves, orders=True)


def _sample(spans: Spans) -> Int64Array:
    return np.random.default_rng(0).integers(0, spans.count, SAMPLE)


def _moves_by_start(spans: Spans) -> float:
    """About how many rows would come and go if frames were ordered by their start, from a sample of them."""
    some = _sample(spans)
    begin, end = spans.begin[0, some], spans.end[-1 if spans.whole else 1, some]
    end = end[np.argsort(begin, kind="stable")]
    drift = int(end.max() - end.min())
    # Neighbours in a sample are apart for two reasons: all frames drift, and each differs from its neighbour.
    return drift + max(0, int(np.abs(np.diff(end)).sum()) - drift) / SAMPLE * spans.count


def best_path(spans: Spans) -> Path:
    """As ``sliding_path``, or in strips where that saves moves."""
    path = sliding_path(spans)
    if path.slides(spans):
        return path
    # A frame moves by about a third of a strip's width at its start; a strip is as long as its longest frame.
    width = max(1, int(sqrt(3.0 * spans.rows * max(1, spans.most) / max(1, spans.count))))
    order = _strips(spans.begin[0], spans.end.max(0), width, spans.rows)
    strips = Path(order, *count_moves(spans.begin, spans.end, order))
    return strips if strips.moves < path.moves else path


@kernel
def count_moves(begin: Array, end: Array, order: Array) -> Any:
    """How many rows enter or leave from frame to frame in this order: if a frame may begin anew, and if not."""
    moves = shifted = np.int64(0)
    for j in range(1, len(order)):
        k, before = order[j], order[j - 1]
        for r in range(len(begin)):
            moved = abs(begin[r, k] - begin[r, before]) + abs(end[r, k] - end[r, before])
            anew = end[r, k] - begin[r, k] + end[r, before] - begin[r, before]
            moves += min(moved, anew)
            shifted += moved
    return moves, shifted


@kernel
def rises(key: Array) -> bool:
    """Whether numbers never fall."""
    falls = 0
    for k in range(1, len(key)):
        falls += key[k] < key[k - 1]
    return falls == 0


@kernel
def order_by(key: Array, most: int) -> Array:
    """Frames by a key from 0 to ``most``, equal ones in the order in which they come."""
    start = np.zeros(most + 2, np.int64)
    for k in range(len(key)):
        start[np.uint64(key[k] + 1)] += 1
    for place in range(most + 1):
        start[place + 1] += start[place]
    order = np.empty(len(key), np.int64)
    for k in range(len(key)):
        place = start[np.uint64(key[k])]
        start[np.uint64(key[k])] = place + 1
        order[np.uint64(place)] = k
    return order


@inner
def _by_digit(keys: Array, order: Array, spare: Array, shift: int) -> None:
    """One pass of a radix sort of ``order`` by 11 bits of its keys."""
    start = np.zeros(2049, np.int64)
    for k in range(len(order)):
        start[(keys[order[k]] >> shift & 2047) + 1] += 1
    for place in range(2048):
        start[place + 1] += start[place]
    for k in range(len(order)):
        digit = keys[order[k]] >> shift & 2047
        spare[start[digit]] = order[k]
        start[digit] += 1
    order[:] = spare


@kernel
def _strips(begin: Array, end: Array, width: int, rows: int) -> Array:
    """Frames by strips of starts; by their end, rising in every other strip and falling in the next."""
    order = order_by(end, rows)
    strip = np.empty(len(begin), np.int64)
    for k in range(len(begin)):
        strip[k] = begin[k] // width
    spare = np.empty(len(begin), np.int64)
    shift = 0
    while (rows // width) >> shift > 0:
        _by_digit(strip, order, spare, shift)
        shift += 11
    first = 0
    for k in range(1, len(order) + 1):
        if k == len(order) or strip[order[k]] != strip[order[first]]:
            if strip[order[first]] & 1:
                order[first:k] = order[first:k][::-1].copy()
            first = k
    return order
