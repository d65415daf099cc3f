"""The hash table of values and their counts that paper 003 keeps between frames (§3, §4).

A value whose count falls to 0 keeps its place until the table is flushed. Flushing takes no time: places are stamped
with the number of the flush after which they were taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, rare

Array = npt.NDArray[Any]

SPREAD, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
SMALL = 1024
"""Values of a table that is not flushed: it fits half of the nearest cache, and is as fast as a new one (003 §3.3)."""
# Places in ``state``.
STAMP, TAKEN, NONZERO, MODE_COUNT, MODE_VALID = 0, 1, 2, 3, 4


class FrameTable(NamedTuple):
    """Open addressing; ``entries`` lists the places taken since the last flush."""

    value: Array
    times: npt.NDArray[np.int64]
    stamp: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]
    mode: Array
    state: npt.NDArray[np.int64]


def frame_table(rows: int, most: int, tau: float, dtype: np.dtype[Any]) -> FrameTable:
    """A table for frames of at most ``most`` of ``rows`` values, which is flushed at ``tau``."""
    kept = min(rows, max(SMALL, int(most / tau)) + most if tau > 0 else rows) + 1
    places = 1 << max(4, int(2 * kept).bit_length())
    return FrameTable(
        np.zeros(places, dtype), np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(places, np.int64),
        np.zeros(1, dtype), np.array([1, 0, 0, 0, 0], np.int64),
    )  # fmt: skip


@bare
def is_worn(table: FrameTable, tau: float) -> bool:
    """Whether so many of a table's values are gone that it is flushed; with a tau of 1, before each frame."""
    taken = table.state[TAKEN]
    return tau >= 1.0 or (taken > SMALL and table.state[NONZERO] <= tau * taken)


@bare
def flush(table: FrameTable) -> None:
    table.state[STAMP] += 1
    table.state[TAKEN] = 0
    table.state[NONZERO] = 0
    table.state[MODE_COUNT] = 0
    table.state[MODE_VALID] = 0


@bare
def _place(table: FrameTable, value: Any, bits: Any) -> Any:
    """Where a value is, or the free place where it would be; equal values have equal bits."""
    mask = np.uint64(len(table.value) - 1)
    stamp = table.state[STAMP]
    place = (bits * SPREAD >> HALF) & mask  # the upper half of a product depends on all bits
    while (table.stamp[place] == stamp) & (table.value[place] != value):
        place = (place + np.uint64(1)) & mask
    return place


@bare
def add(table: FrameTable, value: Any, bits: Any, wants_mode: bool) -> None:
    """INCREMENT and, for modes, MODEADD; an equally frequent value is the mode if it is smaller.

    Whether a value is new, and whether it leads, cannot be predicted in short frames: what may have to be written is
    written always.
    """
    place = _place(table, value, bits)
    state = table.state
    fresh = np.int64(table.stamp[place] != state[STAMP])
    times = table.times[place] * (1 - fresh) + 1
    table.stamp[place] = state[STAMP]
    table.value[place] = value
    table.times[place] = times
    table.entries[np.uint64(state[TAKEN])] = np.int64(place)
    state[TAKEN] += fresh
    state[NONZERO] += times == 1
    if wants_mode:
        smaller = (times == state[MODE_COUNT]) & (state[MODE_VALID] == 1) & (value < table.mode[0])
        leads = (times > state[MODE_COUNT]) | smaller
        table.mode[0] = value if leads else table.mode[0]
        state[MODE_COUNT] = times if leads else state[MODE_COUNT]
        state[MODE_VALID] |= leads


@bare
def remove(table: FrameTable, value: Any, bits: Any) -> None:
    """DECREMENT and MODERM."""
    place = _place(table, value, bits)
    times = table.times[place] - 1
    table.times[place] = times
    table.state[NONZERO] -= times == 0
    table.state[MODE_VALID] &= (
        value != table.mode[0]
    )  # another value may now be as frequent; it is looked for when the mode is asked for


@bare
def mode(table: FrameTable) -> Any:
    """The most frequent value, the smallest of several."""
    if table.state[MODE_VALID] == 0:
        _look(table)
    return table.mode[0]


@rare
def _look(table: FrameTable) -> None:
    """Scan the whole table for the mode."""
    most = np.int64(0)
    for entry in range(table.state[TAKEN]):
        place = np.uint64(table.entries[entry])
        times = table.times[place]
        if times > most or (times == most and times > 0 and table.value[place] < table.mode[0]):
            table.mode[0] = table.value[place]
            most = times
    table.state[MODE_COUNT] = most
    table.state[MODE_VALID] = 1
