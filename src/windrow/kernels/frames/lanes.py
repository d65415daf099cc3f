"""Modes and order statistics of windows of few values: every value is counted in many windows side by side.

A run of neighbouring windows goes to each lane of a vector of small numbers. One value after the other, all lanes slide
along their runs: how many rows of the window have the value (or a larger one) changes by the row that comes and the row
that leaves, and the results so far are compared with it. There is no branch that depends on data, and no memory but
what stays in the cache; the time grows with the number of values, and hardly with the size of windows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.counting_lanes import (
    BLOCK,
    GROUP,
    LANES,
    count_equal,
    count_larger,
    count_larger_each,
    turn,
)
from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.spans import Spans

Array = npt.NDArray[Any]

STEPS = 1024
"""Windows of a lane before others are loaded."""
MOST_VALUES = 120
"""Values of a byte with a sign, in whole groups."""
FEW_ROWS = 255
"""Rows of a window that a byte counts, from -128 on; more take two bytes, and twice the time."""
NONE = -1
"""Stands for no row: no value is equal to it, and none is smaller."""
WORTH = 32 * LANES
"""Windows for which it pays to fill lanes."""


class Room(NamedTuple):
    """Working memory of a tile: its codes, the lanes, a result of all rows, and the counts of each value.

    All arrays have one type; its ``least`` number stands for a count of 0.
    """

    codes: Array
    came: Array
    left: Array
    one: Array
    other: Array
    rows: Array
    counts: Array
    least: int


def fit_lanes(spans: Spans, values: int, rows: int) -> bool:
    """Whether frames are windows of at most so many rows, many enough, of few enough values."""
    if spans.most > rows or values > MOST_VALUES or spans.count - spans.most < WORTH or spans.offsets is None:
        return False
    start, stop = spans.offsets
    return stop - start + 1 == spans.most  # else not one of them is whole


def exact_lanes(low: int) -> bool:
    """Whether the smallest value may be added as a float."""
    return abs(low) < 2**52


def lane_modes(values: Array, low: int, span: int, width: int, modes: Array) -> None:
    """The mode of the windows that begin with value 0, 1, …; there are ``width - 1`` more values than windows."""
    _modes(values, low, span, width, _room(width), modes)


def lane_select(values: Array, low: int, span: int, width: int, ranks: RankTable, out: Array) -> None:
    """The order statistic of the same windows: values, or floats if ``ranks`` interpolates."""
    if ranks.each:
        _select_each(
            values, low, span, width, ranks.lower, ranks.upper, ranks.weight, ranks.interpolates, _room(width), out
        )
        return
    lower, upper = int(ranks.lower[width]), int(ranks.upper[width])
    weight = float(ranks.weight[width])
    _select(values, low, span, width, lower, upper, weight, ranks.interpolates, _room(width), out)


def _room(width: int) -> Room:
    kind, tile = np.int8 if width <= FEW_ROWS else np.int16, LANES * STEPS
    came, left, one, other, rows = np.empty((5, tile), kind)
    counts = np.empty((MOST_VALUES + 1) * LANES, kind)
    return Room(np.empty(tile + width + 1, kind), came, left, one, other, rows, counts, np.iinfo(kind).min)


@kernel
def _modes(values: Array, low: int, span: int, width: int, room: Room, modes: Array) -> None:
    came, left, most, mode, counts = room.came, room.left, room.one, room.other, room.counts
    for start in range(0, len(modes), LANES * STEPS):
        steps = _steps(len(modes) - start)
        _load(values[start:], low, width, steps, room.codes, came, left, counts, room.least)
        most[: steps * LANES] = room.least
        for value in range(0, span, GROUP):
            for place in range(0, steps * LANES, LANES):
                count_equal(came, left, most, mode, place, counts, value)
        _unload(mode, steps, room.rows)
        for k in range(min(steps * LANES, len(modes) - start)):
            modes[start + k] = low + np.int64(room.rows[k])


@kernel
def _select(
    values: Array, low: int, span: int, width: int, lower: int, upper: int, weight: float, interpolates: bool,
    room: Room, out: Array,
) -> None:  # fmt: skip
    came, left, one, other, counts = room.came, room.left, room.one, room.other, room.counts
    for start in range(0, len(out), LANES * STEPS):
        steps = _steps(len(out) - start)
        _load(values[start:], low, width, steps, room.codes, came, left, counts, room.least)
        _count_larger_first(counts, room.least)
        one[: steps * LANES] = 0
        other[: steps * LANES] = 0
        # A value is smaller than that of a rank if more than so many rows are larger than it.
        below, further = room.least + width - 1 - lower, room.least + width - 1 - upper
        for value in range(0, span, GROUP):
            for place in range(0, steps * LANES, LANES):
                count_larger(came, left, one, other, place, counts, value, below, further)
        _unload(one, steps, room.rows)
        _unload(other, steps, came)
        _put(room.rows, came, low, weight, interpolates, out[start : start + steps * LANES])


@kernel
def _select_each(
    values: Array, low: int, span: int, width: int, lower: Array, upper: Array, weight: Array, interpolates: bool,
    room: Room, out: Array,
) -> None:  # fmt: skip
    """As ``_select``, with the ranks of each window."""
    came, left, one, other, counts = room.came, room.left, room.one, room.other, room.counts
    below, further = np.empty_like(one), np.zeros_like(one)
    for start in range(0, len(out), LANES * STEPS):
        steps = _steps(len(out) - start)
        _load(values[start:], low, width, steps, room.codes, came, left, counts, room.least)
        _count_larger_first(counts, room.least)
        one[: steps * LANES] = 0
        other[: steps * LANES] = 0
        _load_ranks(lower[start:], room.least + width - 1, steps, room.rows, below)
        if interpolates:
            _load_ranks(upper[start:], room.least + width - 1, steps, room.rows, further)
        for value in range(0, span, GROUP):
            for place in range(0, steps * LANES, LANES):
                count_larger_each(came, left, one, other, place, counts, value, below, further)
        _unload(one, steps, room.rows)
        if interpolates:
            _unload(other, steps, came)
        for k in range(min(steps * LANES, len(out) - start)):
            value = low + np.int64(room.rows[k])
            if interpolates:
                found = np.float64(value)
                out[start + k] = found + weight[start + k] * (np.float64(low + np.int64(came[k])) - found)
            else:
                out[start + k] = value


@inner
def _load_ranks(ranks: Array, most: int, steps: int, rows: Array, lanes: Array) -> None:
    """How many rows may be larger than the value of each window's rank, in lanes."""
    there = min(steps * LANES, len(ranks))
    for k in range(there):
        rows[k] = most - np.int64(ranks[k])
    rows[there : steps * LANES] = most
    for lane in range(0, LANES, BLOCK):
        for k in range(0, steps, BLOCK):
            turn(rows, lane * steps + k, steps, lanes, k * LANES + lane, LANES)


@inner
def _put(one: Array, other: Array, low: int, weight: float, interpolates: bool, out: Array) -> None:
    """Write the values that codes stand for, or values interpolated between two of them."""
    if not interpolates:
        for k in range(len(out)):
            out[k] = low + np.int64(one[k])
        return
    # Vectors turn whole numbers of 32 bits into floats, but not those of 64.
    base = np.float64(low)
    for k in range(len(out)):
        value = base + np.float64(np.int32(one[k]))
        out[k] = value + weight * (base + np.float64(np.int32(other[k])) - value)


@inner
def _steps(windows: int) -> int:
    """How many windows each lane gets, in whole blocks."""
    return min(STEPS, (windows + LANES * BLOCK - 1) // (LANES * BLOCK) * BLOCK)


@inner
def _load(
    values: Array,
    low: int,
    width: int,
    steps: int,
    codes: Array,
    came: Array,
    left: Array,
    counts: Array,
    least: int,
) -> None:
    """Fill lanes: lane j has the windows from ``j * steps`` on. Counts are those of the first without its last row."""
    tile = LANES * steps + width
    there = min(tile, len(values))
    for k in range(there):
        codes[k + 1] = values[k] - low
    codes[there + 1 : tile + 1] = 0
    for lane in range(0, LANES, BLOCK):
        for k in range(0, steps, BLOCK):
            at = k * LANES + lane
            turn(codes, lane * steps + k + width, steps, came, at, LANES)
            turn(codes, lane * steps + k, steps, left, at, LANES)
    left[:LANES] = NONE
    counts[:] = least
    for lane in range(LANES):
        for k in range(lane * steps + 1, lane * steps + width):
            counts[np.uint64(np.int64(codes[np.uint64(k)]) * LANES + lane)] += 1


@inner
def _unload(lanes: Array, steps: int, rows: Array) -> None:
    """Lanes one after the other."""
    for lane in range(0, LANES, BLOCK):
        for k in range(0, steps, BLOCK):
            turn(lanes, k * LANES + lane, LANES, rows, lane * steps + k, steps)


@inner
def _count_larger_first(counts: Array, least: int) -> None:
    """From how often each value occurs to how often larger ones do."""
    total = np.zeros(LANES, counts.dtype)
    for value in range(MOST_VALUES, -1, -1):
        for lane in range(LANES):
            place = np.uint64(value * LANES + lane)
            times = counts[place] - least
            counts[place] = np.int64(total[lane]) + least
            total[lane] += times
