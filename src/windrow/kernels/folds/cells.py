"""Loops over cells that lie anywhere: each has the number of its group, and what is kept of groups is added to there.

Neighbours are often in the same group, so that what is kept stays in registers as long as the group does. Where it
changes with nearly every cell, waiting to see whether it does takes longer than adding; then it is not looked at. Both
ways add in the same order, and round alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel

Array = npt.NDArray[Any]
SHORT_RUN = 4
"""Cells in a row of the same group, below which runs are not looked for."""


@kernel
def add_places(column: Array, lowest: int, highest: int, stride: int, groups: Array) -> None:
    """Add to the numbers of groups what cells are away from the lowest along a dimension, times a stride."""
    for cell in range(len(groups)):
        place = min(max(column[cell], lowest), highest)
        groups[cell] += (place - lowest) * stride


@kernel
def add_known_places(column: Array, lowest: int, table: Array, groups: Array) -> None:
    """Add to the numbers of groups what a table says of each place along a dimension."""
    last = len(table) - 1
    for cell in range(len(groups)):
        groups[cell] += table[min(max(column[cell] - lowest, 0), last)]


@inner
def _runs_are_long(groups: Array) -> bool:
    changes = 0
    for cell in range(len(groups) - 1):
        changes += groups[cell + 1] != groups[cell]
    return changes * SHORT_RUN < len(groups)


@kernel
def count_cells(present: Array, groups: Array, counts: Array) -> None:
    """How many cells each group has, of those that are present; all are if ``present`` is empty."""
    if not _runs_are_long(groups):
        for cell in range(len(groups)):
            counts[groups[cell]] += present[cell] != 0 if len(present) else 1
        return
    group, count = groups[0], 0
    for cell in range(len(groups)):
        if groups[cell] != group:
            counts[group] += count
            group, count = groups[cell], 0
        count += present[cell] != 0 if len(present) else 1
    counts[group] += count


@kernel
def sum_cells(values: Array, present: Array, groups: Array, counts: Array, high: Array, low: Array) -> None:
    """Counts and sums of floats, in double-double; NaN is missing."""
    if not _runs_are_long(groups):
        for cell in range(len(groups)):
            group, value = groups[cell], np.float64(values[cell])
            there = value == value
            if len(present):
                there = there & (present[cell] != 0)
            value = value if there else 0.0
            counts[group] += there
            high[group], low[group] = _add(high[group], low[group], value)
        return
    group = groups[0]
    count, above, below = counts[group], high[group], low[group]
    for cell in range(len(groups)):
        if groups[cell] != group:
            counts[group], high[group], low[group] = count, above, below
            group = groups[cell]
            count, above, below = counts[group], high[group], low[group]
        value = np.float64(values[cell])
        there = value == value
        if len(present):
            there = there & (present[cell] != 0)
        value = value if there else 0.0
        count += there
        above, below = _add(above, below, value)
    counts[group], high[group], low[group] = count, above, below


@inner
def _add(above: float, below: float, value: float) -> tuple[float, float]:
    total = above + value
    part = total - above
    return total, below + ((above - (total - part)) + (value - part))


@kernel
def sum_whole_cells(values: Array, present: Array, groups: Array, counts: Array, high: Array, low: Array) -> None:
    """Counts and exact sums of whole numbers: ``high`` in units of 2**32, ``low`` the rest."""
    for cell in range(len(groups)):
        if len(present) and present[cell] == 0:
            continue
        group = groups[cell]
        counts[group] += 1
        if values.itemsize == 8:
            high[group] += np.int64(values[cell] >> 32)
            low[group] += np.int64(values[cell] & 0xFFFFFFFF)
        else:
            low[group] += np.int64(values[cell])


@kernel
def lay_values(values: Array, present: Array, groups: Array, places: Array, laid: Array) -> None:
    """Put the values that are there where their groups go on; ``places`` has the next place of each group."""
    for cell in range(len(groups)):
        if len(present) and present[cell] == 0:
            continue
        group = groups[cell]
        laid[places[group]] = values[cell]
        places[group] += 1


@kernel
def lay_groups(values: Array, counts: Array, places: Array, laid: Array) -> None:
    """Put the values of each group, which lie together, where that group goes on."""
    start = 0
    for group in range(len(counts)):
        place, count = places[group], counts[group]
        for number in range(count):
            laid[place + number] = values[start + number]
        places[group] = place + count
        start += count


@kernel
def sort_short_groups(values: Array, starts: Array, longest: int) -> None:
    """Sort the values of groups that have no more than ``longest``."""
    for group in range(len(starts) - 1):
        start, stop = starts[group], starts[group + 1]
        if stop - start > longest:
            continue
        for place in range(start + 1, stop):
            value, at = values[place], place
            while at > start and values[at - 1] > value:
                values[at] = values[at - 1]
                at -= 1
            values[at] = value
