"""What the ways to compute frames cost, as estimates in nanoseconds from what is known of values and frames.

Measured on one core of a 2.4 GHz Zen 3 server; only their ratios matter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from windrow.kernels.choose import Cost
from windrow.kernels.frames.problems import FrameProblem


class Rate(NamedTuple):
    """Nanoseconds a call, a frame and a row that is looked at."""

    call: float
    frame: float
    row: float

    def of(self, frames: float, rows: float) -> Cost:
        return Cost(self.call + frames * self.frame + rows * self.row)


TINY = {"select": Rate(2e5, 60.0, 50.0), "distinct": Rate(2.2e5, 80.0, 70.0), "mode": Rate(2.2e5, 80.0, 70.0)}
TINY_OTHERS = Rate(1.8e5, 40.0, 40.0)
NAIVE = {
    "select": Rate(1e4, 40.0, 15.0),
    "distinct": Rate(1e4, 30.0, 6.0),
    "mode": Rate(1e4, 30.0, 8.0),
    "min": Rate(1e4, 8.0, 0.8),
    "max": Rate(1e4, 8.0, 0.8),
}
NAIVE_OTHERS = Rate(1e4, 8.0, 3.0)
MOVED = {"distinct": Rate(1e4, 15.0, 6.0), "mode": Rate(1e4, 20.0, 10.0)}
MOVED_OTHERS = Rate(1e4, 60.0, 1.5)
REPLACED, LISTED = Rate(1e4, 80.0, 2.7), Rate(1e4, 240.0, 15.0)
RANGES = Rate(1e4, 40.0, 12.0)

CACHES = ((1 << 15, 1.0), (1 << 18, 1.6), (1 << 21, 3.0), (1 << 62, 6.0))
"""Numbers of four bytes that fit, and how much longer it takes to reach one than in the nearest cache."""
ORDERED_FRAME, STRIPS_FRAME = 50.0, 100.0
"""To put a frame into another order: by its start or end, or in strips."""


def reach(numbers: int) -> float:
    """By what factor memory slows down: reading at random among so many numbers of four bytes."""
    return next(factor for most, factor in CACHES if numbers <= most)


def jumps(problem: FrameProblem) -> float:
    """By what factor memory slows down where each frame lies far from the one before."""
    spans = problem.spans
    near = spans.survey.shifted <= FAR * spans.count
    return 1.0 if near else reach(6 * spans.rows)


FAR = 1 << 10
"""Rows from frame to frame that are far."""


def best_moves(problem: FrameProblem) -> tuple[float, float]:
    """About how many rows come and go in the best order of frames, and the nanoseconds that ordering them takes.

    Strips are not made to find out: a frame moves by about a third of a strip's width at its start, and the frames of a
    strip share one way along the rows that it reaches.
    """
    spans, path = problem.spans, problem.expected
    if path.slides(spans):
        return path.moves, ordering(problem)
    width = math.sqrt(3.0 * spans.rows * max(1, spans.most) / max(1, spans.count))
    strips = spans.count * width / 3 + spans.rows / max(1.0, width) * (width + spans.most)
    return min(path.moves, strips * spans.ranges), STRIPS_FRAME * spans.count


def ordering(problem: FrameProblem) -> float:
    """What it takes to put frames into the order in which they slide."""
    return ORDERED_FRAME * problem.spans.count if problem.expected.orders else 0.0


def tiny_cost(problem: FrameProblem) -> Cost:
    rows = problem.spans.count * max(1, problem.spans.most)
    return TINY.get(problem.operation, TINY_OTHERS).of(problem.spans.count, rows)


def naive_cost(problem: FrameProblem) -> Cost:
    rate = NAIVE.get(problem.operation, NAIVE_OTHERS)
    return rate.of(problem.spans.count * jumps(problem), problem.total)


def incremental_cost(problem: FrameProblem) -> Cost:
    spans = problem.spans
    if problem.operation == "select" and problem.wander:
        return naive_cost(problem)
    if problem.operation == "select":
        # Rows are replaced one by one only where frames are of one length; else all of them are listed anew.
        return (LISTED if spans.offsets is None else REPLACED).of(spans.count, problem.total)
    rate = MOVED.get(problem.operation, MOVED_OTHERS)
    return rate.of(spans.count * jumps(problem), spans.survey.moves)


def ranges_cost(problem: FrameProblem) -> Cost:
    passes = 2 if problem.operation == "squares" else 1
    found = RANGES.of(problem.spans.count * jumps(problem), problem.spans.rows)
    return Cost(passes * found.nanoseconds)


# Distinct values

COUNTED, COUNTED_ANYHOW, LINKED = Rate(1e4, 2.0, 1.2), Rate(1e4, 20.0, 10.0), Rate(1e4, 2.0, 1.2)
ENDED, ENDED_FAR = Rate(1e4, 18.0, 4.0), 30.0
NUMBERED_CLOSE, NUMBERED = 15.0, 60.0
LINKED_CLOSE, LINKED_NEAR, LINKED_FAR = 3.0, 10.0, 20.0


def counters_cost(problem: FrameProblem) -> Cost:
    spans, span = problem.spans, _span(problem)
    simple = spans.whole and not problem.expected.orders
    work = (COUNTED if simple else COUNTED_ANYHOW).of(spans.count, problem.expected.moves * reach(span))
    return Cost(work.nanoseconds + ordering(problem) + span * 0.2, f"{span:,} counters")


def numbers_cost(problem: FrameProblem) -> Cost:
    rows, (moves, ordered) = problem.spans.rows, best_moves(problem)
    numbered = rows * (NUMBERED if problem.close is None else NUMBERED_CLOSE)
    values = rows if problem.close is None else min(rows, _span(problem))
    return Cost(COUNTED_ANYHOW.of(problem.spans.count, moves * reach(values)).nanoseconds + numbered + ordered)


def links_cost(problem: FrameProblem) -> Cost:
    work = LINKED.of(problem.spans.count, problem.expected.moves)
    return Cost(work.nanoseconds + _linking(problem) + ordering(problem))


def ends_cost(problem: FrameProblem) -> Cost:
    far = 0.0 if jumps(problem) == 1.0 else ORDERED_FRAME + ENDED_FAR * reach(problem.spans.rows)
    work = ENDED.of(problem.spans.count, problem.spans.rows)
    return Cost(work.nanoseconds + problem.spans.count * far + _linking(problem))


def _linking(problem: FrameProblem) -> float:
    """What it takes to find, for each row, the row before it with the same value."""
    from windrow.kernels.frames.distinct import NEAR

    rows, most = problem.spans.rows, problem.spans.most
    if most <= NEAR and most * 8 <= rows:
        return rows * LINKED_NEAR * reach(4 * most)
    if problem.close is not None:
        return rows * LINKED_CLOSE * reach(problem.close[1])
    return rows * LINKED_FAR * reach(2 * rows)


def _span(problem: FrameProblem) -> int:
    assert problem.close is not None
    return problem.close[1]


# Modes

SHORT_FRAME, SHORT_ROW = 2.0, 0.13
LANE_FRAME, LANE_VALUE, LANE_ROW = 2.0, 0.025, 1.0
MODE_COUNTED, MODE_COUNTED_ANYHOW, MODE_SCANNED = Rate(1e4, 6.0, 4.0), Rate(1e4, 20.0, 8.0), 0.02
MODE_BLOCKS, MODE_RANKED_ROW, RANKED_ROW = Rate(1e4, 15.0, 10.0), 30.0, 14.0


def short_cost(problem: FrameProblem) -> Cost:
    return Cost(1e4 + problem.spans.count * (SHORT_FRAME + SHORT_ROW * problem.spans.most))


def lanes_cost(problem: FrameProblem) -> Cost:
    """All values are counted in all windows, in bytes or in twice as many."""
    from windrow.kernels.frames.lanes import FEW_ROWS, STEPS

    width = problem.spans.most
    each = LANE_FRAME + _span(problem) * LANE_VALUE * (1 if width <= FEW_ROWS else 2)
    begun = LANE_ROW * width / min(STEPS, max(1, problem.spans.count // 32))
    return Cost(2e4 + problem.spans.count * (each + begun), f"{_span(problem):,} values")


def mode_counters_cost(problem: FrameProblem) -> Cost:
    spans, span, (moves, ordered) = problem.spans, _span(problem), best_moves(problem)
    rate = MODE_COUNTED if spans.whole and not ordered else MODE_COUNTED_ANYHOW
    work = rate.of(spans.count, moves * reach(span))
    return Cost(work.nanoseconds + ordered + spans.count * span * MODE_SCANNED, f"{span:,} counters")


def mode_blocks_cost(problem: FrameProblem) -> Cost:
    moves, ordered = best_moves(problem)
    work = MODE_BLOCKS.of(problem.spans.count, moves)
    shifted = problem.expected.shifted if problem.expected.slides(problem.spans) else moves
    return Cost(work.nanoseconds + ordered + ranked_rows(problem, shifted) * MODE_RANKED_ROW)


def ranked_rows(problem: FrameProblem, shifted: float) -> float:
    """How many rows are ranked in all blocks together, while frames shift by so many rows."""
    from windrow.kernels.frames.blocks import SMALLEST

    rows, most = problem.spans.rows, problem.spans.most
    limit = max(SMALLEST, 2 * most)
    if rows <= limit:
        return float(rows)
    # Frames that jump about make blocks of a few frames each.
    return min(max(rows, shifted / 2) * limit / (limit - most), max(rows, problem.spans.count * max(most, limit / 6)))


# Order statistics

SELECT_COUNTED, SELECT_COUNTED_ANYHOW, SELECT_WALKED = Rate(1e4, 9.0, 2.5), Rate(1e4, 20.0, 8.0), 1.0
BITSET = Rate(1e4, 25.0, 3.0)
WANDERED, WANDERED_FRAME = 0.7, 10.0
"""A counter, or 64 bits, that a walk passes because the wanted rank is another one; and to begin such a walk."""
ORDERED, ORDERED_MOVE, ORDERED_ROW = Rate(1e4, 6.0, 0.0), 2.0, 0.25
WAVELET_BUILT, WAVELET_FRAME, WAVELET_LEVEL = 6.0, 60.0, 10.0


def select_counters_cost(problem: FrameProblem) -> Cost:
    span, spans = _span(problem), problem.spans
    rate = SELECT_COUNTED if spans.whole and not problem.expected.orders else SELECT_COUNTED_ANYHOW
    work = rate.of(spans.count, problem.expected.moves * reach(span))
    walked = spans.count * span * (SELECT_WALKED / max(1, spans.most) + WANDERED * problem.wander)
    return Cost(work.nanoseconds + ordering(problem) + walked, f"{span:,} counters")


def bitset_cost(problem: FrameProblem) -> Cost:
    path = problem.expected
    work = BITSET.of(problem.spans.count, path.moves)
    words = _block_rows(problem) / 64
    walked = 0.0
    if problem.ranks is not None and problem.ranks.each:
        walked = problem.spans.count * (WANDERED_FRAME + WANDERED * math.sqrt(words))
    return Cost(work.nanoseconds + walked + ordering(problem) + ranked_rows(problem, path.shifted) * RANKED_ROW)


def ordered_cost(problem: FrameProblem) -> Cost:
    """Each row that comes or goes is compared with all others of its frame, and moves some of them."""
    moved = ORDERED_MOVE + ORDERED_ROW * problem.spans.most
    return Cost(ORDERED.of(problem.spans.count, 0).nanoseconds + problem.spans.survey.moves * moved)


def _block_rows(problem: FrameProblem) -> int:
    """The rows of a block that are ranked together."""
    from windrow.kernels.frames.blocks import SMALLEST

    return min(problem.spans.rows, max(SMALLEST, 2 * problem.spans.most))


def wavelet_cost(problem: FrameProblem) -> Cost:
    spans = problem.spans
    levels = math.log2(max(2, _block_rows(problem)))
    built = ranked_rows(problem, 0) * (RANKED_ROW + levels * WAVELET_BUILT)
    return Cost(1e4 + built + spans.count * (WAVELET_FRAME + levels * WAVELET_LEVEL))


FAMILY_FRAME = 3.0


def family_cost(problem: FrameProblem, windows: Cost, name: str) -> Cost:
    """The windows' own cost, and for each frame to look up its result."""
    looked_up = problem.spans.count * FAMILY_FRAME * reach(problem.spans.rows)
    return Cost(windows.nanoseconds + looked_up, f"by {name}", windows.compiling)
