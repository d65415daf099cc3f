"""A counted hash table of values: how often each occurs in the window (003 §4).

A value whose count falls to 0 keeps its place, so that finding others goes on working; when such places become too
many, the table is laid out anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel, rare
from windrow.kernels.papers.slide import Results, Unit, slide, structure

Array = npt.NDArray[Any]

SPREAD, HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
DISTINCT, TAKEN, MOST, KNOWN, PRESENT = 0, 1, 2, 3, 4


class CountedTable(NamedTuple):
    """Open addressing; ``state`` is [distinct, places taken, count of the mode, mode is known, present values]."""

    value: Array
    times: npt.NDArray[np.int64]
    taken: npt.NDArray[np.bool_]
    spare_value: Array
    spare_times: npt.NDArray[np.int64]
    mode: Array
    probe: Array  # one value, and its bits in the same memory
    bits: npt.NDArray[np.uint64]
    state: npt.NDArray[np.int64]
    wants_mode: bool


def empty_table(most_values: int, dtype: Any, wants_mode: bool) -> CountedTable:
    """A table for at most so many values at a time."""
    places = 1 << max(4, int(2 * most_values).bit_length())
    probe = np.zeros(1, dtype)
    return CountedTable(
        np.zeros(places, dtype), np.zeros(places, np.int64), np.zeros(places, bool),
        np.zeros(most_values + 1, dtype), np.zeros(most_values + 1, np.int64), np.zeros(1, dtype), probe,
        probe.view(np.uint64), np.zeros(5, np.int64), wants_mode,
    )  # fmt: skip


def _forget(table: CountedTable, _oldest: Unit, _stride: int, _units: int) -> None:
    table.taken[:] = False
    table.state[:] = 0


def _enter(table: CountedTable, unit: Unit) -> None:
    for offset in unit.offsets:
        at = unit.start + offset
        if unit.there[at]:
            _add(table, unit.flat[at])
            table.state[PRESENT] += 1


def _leave(table: CountedTable, unit: Unit) -> None:
    for offset in unit.offsets:
        at = unit.start + offset
        if unit.there[at]:
            _remove(table, unit.flat[at])
            table.state[PRESENT] -= 1


def _answer(table: CountedTable, results: Results, at: int) -> None:
    results.counts[at] = table.state[PRESENT]
    if table.state[PRESENT] > 0:
        if table.wants_mode:
            results.exact[at] = _mode(table)
        else:
            results.reals[at] = table.state[DISTINCT]


structure(CountedTable, enter=_enter, leave=_leave, answer=_answer, forget=_forget)
slide_table = bare_kernel(slide, __name__)


@bare
def _place(table: CountedTable, value: Any) -> Any:
    """Where a value is, or the free place where it would be."""
    mask = len(table.value) - 1
    # Equal values have equal bits, since there is one zero only; the upper half of a product depends on all of them.
    table.probe[0] = value
    place = np.int64(table.bits[0] * SPREAD >> HALF) & mask
    while table.taken[place] and table.value[place] != value:
        place = (place + 1) & mask
    return place


@bare
def _add(table: CountedTable, value: Any) -> None:
    place = _place(table, value)
    if not table.taken[place]:
        if 4 * (table.state[TAKEN] + 1) > 3 * len(table.value):
            _lay_out_anew(table)
            place = _place(table, value)
        table.taken[place] = True
        table.value[place] = value
        table.times[place] = 0
        table.state[TAKEN] += 1
    table.times[place] += 1
    times = table.times[place]
    if times == 1:
        table.state[DISTINCT] += 1
    better = times > table.state[MOST] or (times == table.state[MOST] and value < table.mode[0])
    if table.state[DISTINCT] == 1 or (table.state[KNOWN] == 1 and better):
        table.mode[0] = value
        table.state[MOST] = times
        table.state[KNOWN] = 1


@bare
def _remove(table: CountedTable, value: Any) -> None:
    place = _place(table, value)
    table.times[place] -= 1
    if table.times[place] == 0:
        table.state[DISTINCT] -= 1
    if value == table.mode[0]:
        table.state[KNOWN] = 0  # another value may now be as frequent; it is looked for when the mode is asked for


@rare
def _mode(table: CountedTable) -> Any:
    """The most frequent value, the smallest of several."""
    if table.state[KNOWN] == 0:
        table.state[MOST] = 0
        for place in range(len(table.value)):
            times = table.times[place] if table.taken[place] else 0
            as_often = times == table.state[MOST] and times > 0
            if times > table.state[MOST] or (as_often and table.value[place] < table.mode[0]):
                table.mode[0] = table.value[place]
                table.state[MOST] = times
        table.state[KNOWN] = 1
    return table.mode[0]


@rare
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
    table.state[TAKEN] = kept
