"""A counted hash table of values: how often each occurs in the window (003 §4).

A value whose count falls to 0 keeps its place, so that finding others goes on working; when such places become too
many, the table is laid out anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.jit import inner

Array = npt.NDArray[Any]


class CountedTable(NamedTuple):
    """Open addressing; ``state`` is [distinct values, places taken, count of the mode, mode is known]."""

    value: Array
    times: npt.NDArray[np.int64]
    taken: npt.NDArray[np.bool_]
    spare_value: Array
    spare_times: npt.NDArray[np.int64]
    mode: Array
    state: npt.NDArray[np.int64]


def empty_table(most_values: int, dtype: Any) -> CountedTable:
    """A table for at most so many values at a time."""
    places = 1 << max(4, int(2 * most_values).bit_length())
    return CountedTable(
        np.zeros(places, dtype), np.zeros(places, np.int64), np.zeros(places, bool),
        np.zeros(most_values + 1, dtype), np.zeros(most_values + 1, np.int64), np.zeros(1, dtype),
        np.zeros(4, np.int64),
    )  # fmt: skip


@inner
def clear(table: CountedTable) -> None:
    table.taken[:] = False
    table.state[:] = 0


@inner
def _place(table: CountedTable, value: Any) -> int:
    """Where a value is, or the free place where it would be."""
    mask = len(table.value) - 1
    place = hash(value) * 0x9E3779B1 >> 7 & mask
    while table.taken[place] and table.value[place] != value:
        place = (place + 1) & mask
    return place


@inner
def add(table: CountedTable, value: Any) -> None:
    place = _place(table, value)
    if not table.taken[place]:
        if 4 * (table.state[1] + 1) > 3 * len(table.value):
            _lay_out_anew(table)
            place = _place(table, value)
        table.taken[place] = True
        table.value[place] = value
        table.times[place] = 0
        table.state[1] += 1
    table.times[place] += 1
    times = table.times[place]
    if times == 1:
        table.state[0] += 1
    better = times > table.state[2] or (times == table.state[2] and value < table.mode[0])
    if table.state[0] == 1 or (table.state[3] == 1 and better):
        table.mode[0] = value
        table.state[2] = times
        table.state[3] = 1


@inner
def remove(table: CountedTable, value: Any) -> None:
    place = _place(table, value)
    table.times[place] -= 1
    if table.times[place] == 0:
        table.state[0] -= 1
    if value == table.mode[0]:
        table.state[3] = 0  # another value may now be as frequent: look when asked


@inner
def mode(table: CountedTable) -> Any:
    """The most frequent value, the smallest of several."""
    if table.state[3] == 0:
        table.state[2] = 0
        for place in range(len(table.value)):
            times = table.times[place] if table.taken[place] else 0
            if times > table.state[2] or (times == table.state[2] and times > 0 and table.value[place] < table.mode[0]):
                table.mode[0] = table.value[place]
                table.state[2] = times
        table.state[3] = 1
    return table.mode[0]


@inner
def _lay_out_anew(table: CountedTable) -> None:
    """Give up the places of values that no longer occur."""
    kept = 0
    for place in range(len(table.value)):
        if table.taken[place] and table.times[place] > 0:
            table.spare_value[kept] = table.value[place]
            table.spare_times[kept] = table.times[place]
            kept += 1
    table.taken[:] = False
    for k in range(kept):
        place = _place(table, table.spare_value[k])
        table.taken[place] = True
        table.value[place] = table.spare_value[k]
        table.times[place] = table.spare_times[k]
    table.state[1] = kept
