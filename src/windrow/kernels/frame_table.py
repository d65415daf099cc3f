"""The hash table of values and their counts that paper 003 keeps between frames (§3, §4).

A value whose count falls to 0 keeps its place until the table is flushed. Flushing takes no time: places are stamped
with the number of the flush after which they were taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.jit import inner

Array = npt.NDArray[Any]

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
    kept = min(rows, int(most / tau) + most if tau > 0 else rows) + 1
    places = 1 << max(4, int(2 * kept).bit_length())
    return FrameTable(
        np.zeros(places, dtype), np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(places, np.int64),
        np.zeros(1, dtype), np.array([1, 0, 0, 0, 0], np.int64),
    )  # fmt: skip


@inner
def flush(table: FrameTable) -> None:
    table.state[STAMP] += 1
    table.state[TAKEN] = 0
    table.state[NONZERO] = 0
    table.state[MODE_COUNT] = 0
    table.state[MODE_VALID] = 0


@inner
def _place(table: FrameTable, value: Any) -> Any:
    """Where a value is, or the free place where it would be."""
    mask = len(table.value) - 1
    place = np.int64((np.uint64(hash(value)) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(29)) & mask
    while table.stamp[place] == table.state[STAMP] and table.value[place] != value:
        place = (place + 1) & mask
    return place


@inner
def add(table: FrameTable, value: Any) -> None:
    """INCREMENT and MODEADD; an equally frequent value is the mode if it is smaller."""
    place = _place(table, value)
    if table.stamp[place] != table.state[STAMP]:
        table.stamp[place] = table.state[STAMP]
        table.value[place] = value
        table.times[place] = 0
        table.entries[table.state[TAKEN]] = place
        table.state[TAKEN] += 1
    table.times[place] += 1
    times = table.times[place]
    if times == 1:
        table.state[NONZERO] += 1
    better = times > table.state[MODE_COUNT]
    if better or (times == table.state[MODE_COUNT] and table.state[MODE_VALID] == 1 and value < table.mode[0]):
        table.mode[0] = value
        table.state[MODE_COUNT] = times
        table.state[MODE_VALID] = 1


@inner
def remove(table: FrameTable, value: Any) -> None:
    """DECREMENT and MODERM."""
    place = _place(table, value)
    table.times[place] -= 1
    if table.times[place] == 0:
        table.state[NONZERO] -= 1
    if value == table.mode[0]:
        table.state[MODE_VALID] = 0  # another value may now be as frequent: look when asked


@inner
def mode(table: FrameTable) -> Any:
    """The most frequent value, the smallest of several; the whole table is scanned if the last one has left."""
    if table.state[MODE_VALID] == 0:
        most = np.int64(0)
        for entry in range(table.state[TAKEN]):
            place = table.entries[entry]
            times = table.times[place]
            if times > most or (times == most and times > 0 and table.value[place] < table.mode[0]):
                table.mode[0] = table.value[place]
                most = times
        table.state[MODE_COUNT] = most
        table.state[MODE_VALID] = 1
    return table.mode[0]
