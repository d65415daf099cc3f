"""Loops over a decoded block, in the type that is stored, into groups that lie on a grid.

A block is a flat buffer with rows in it: row r begins at ``offsets[r]``, and its values belong to groups from
``bases[r]`` on. Along a row, run k reaches from ``runs[k]`` to ``runs[k + 1]`` and belongs to the group ``codes[k]``
further. A value is missing if it is NaN, or where ``present`` is 0; an empty ``present`` says that all are there.

Sums are double-double: what an addition rounds off is added up beside it. Inside a run the order of additions is the
machine's, in pieces that are short enough for that not to matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel, reordering

Array = npt.NDArray[Any]
PIECE = 1024
"""Values that are added before what they sum to is joined with compensation."""
SHORT_RUN = 32
"""Values of a run, on average, below which they are added one by one: more at a time would not pay for beginning."""


@reordering
def _sum_all(values: Array) -> float:
    total = 0.0
    for place in range(len(values)):  # from 0 on, or indices would be asked whether they count from the end
        total += np.float64(values[place])
    return total


@reordering
def _sum_there(values: Array) -> tuple[int, float]:
    total, count = 0.0, 0
    for place in range(len(values)):
        value = values[place]
        there = value == value
        total += np.float64(value) if there else 0.0
        count += there
    return count, total


@reordering
def _sum_present(values: Array, present: Array) -> tuple[int, float]:
    total, count = 0.0, 0
    for place in range(len(values)):
        value = values[place]
        there = (value == value) & (present[place] != 0)
        total += np.float64(value) if there else 0.0
        count += there
    return count, total


@inner
def _piece(values: Array, present: Array, start: int, stop: int) -> tuple[int, float]:
    """How many values there are in a piece, and their sum."""
    if len(present):
        return _sum_present(values[start:stop], present[start:stop])
    total = _sum_all(values[start:stop])
    if total == total:  # nothing is missing, then
        return stop - start, total
    return _sum_there(values[start:stop])


@inner
def _add(high: Array, low: Array, group: int, value: float) -> None:
    before = high[group]
    total = before + value
    part = total - before
    low[group] += (before - (total - part)) + (value - part)
    high[group] = total


@kernel
def fold_sums(
    values: Array, present: Array, offsets: Array, bases: Array, runs: Array, codes: Array, beside: bool,
    counts: Array, high: Array, low: Array,
) -> None:  # fmt: skip
    """Counts and sums of floats; ``beside`` says that neighbours along a row are in groups that are neighbours."""
    short = _are_short(runs, len(codes))
    for row in range(len(offsets)):
        offset, base = offsets[row], bases[row]
        if beside:
            _add_row(values, present, offset + runs[0], base + codes[0], len(codes), counts, high, low)
            continue
        if short:
            _add_short_runs(values, present, offset, base, runs, codes, counts, high, low)
            continue
        for run in range(len(codes)):
            group = base + codes[run]
            start, stop = offset + runs[run], offset + runs[run + 1]
            while start < stop:
                end = min(start + PIECE, stop)
                count, total = _piece(values, present, start, end)
                counts[group] += count
                _add(high, low, group, total)
                start = end


@inner
def _are_short(runs: Array, count: int) -> bool:
    """Whether runs are short on average, and none is longer than may be added without compensation."""
    longest = 0
    for run in range(count):
        longest = max(longest, runs[run + 1] - runs[run])
    return longest <= PIECE and runs[count] - runs[0] < SHORT_RUN * count


@inner
def _add_short_runs(
    values: Array, present: Array, offset: int, base: int, runs: Array, codes: Array,
    counts: Array, high: Array, low: Array,
) -> None:  # fmt: skip
    """The runs of one row, their values one by one."""
    for run in range(len(codes)):
        start, stop = np.uint64(offset + runs[run]), np.uint64(offset + runs[run + 1])
        total, count = 0.0, 0
        for place in range(start, stop):
            value = values[place]
            there = value == value
            if len(present):
                there = there & (present[place] != 0)
            total += np.float64(value) if there else 0.0
            count += there
        group = base + codes[run]
        counts[group] += count
        _add(high, low, group, total)


@inner
def _add_row(
    values: Array, present: Array, start: int, group: int, length: int, counts: Array, high: Array, low: Array
) -> None:
    """Neighbouring values into neighbouring groups."""
    row, stop = values[start : start + length], group + length
    if len(present):
        _add_present(row, present[start : start + length], counts[group:stop], high[group:stop], low[group:stop])
    else:
        _add_all(row, counts[group:stop], high[group:stop], low[group:stop])


@inner
def _add_all(row: Array, counts: Array, high: Array, low: Array) -> None:
    for place in range(len(row)):
        value = np.float64(row[place])
        there = value == value
        value = value if there else 0.0
        counts[place] += there
        before = high[place]
        total = before + value
        part = total - before
        low[place] += (before - (total - part)) + (value - part)
        high[place] = total


@inner
def _add_present(row: Array, present: Array, counts: Array, high: Array, low: Array) -> None:
    for place in range(len(row)):
        value = np.float64(row[place])
        there = (value == value) & (present[place] != 0)
        value = value if there else 0.0
        counts[place] += there
        before = high[place]
        total = before + value
        part = total - before
        low[place] += (before - (total - part)) + (value - part)
        high[place] = total


@kernel
def fold_counts(
    values: Array, present: Array, offsets: Array, bases: Array, runs: Array, codes: Array, counts: Array
) -> None:
    """How many values there are."""
    for row in range(len(offsets)):
        for run in range(len(codes)):
            start, stop = offsets[row] + runs[run], offsets[row] + runs[run + 1]
            group = bases[row] + codes[run]
            if len(present):
                counts[group] += _count_present(values[start:stop], present[start:stop])
            else:
                counts[group] += _count_there(values[start:stop])


@inner
def _count_there(values: Array) -> int:
    count = 0
    for place in range(len(values)):
        count += values[place] == values[place]
    return count


@inner
def _count_present(values: Array, present: Array) -> int:
    count = 0
    for place in range(len(values)):
        count += (values[place] == values[place]) & (present[place] != 0)
    return count


@kernel
def fold_whole_sums(
    values: Array, present: Array, offsets: Array, bases: Array, runs: Array, codes: Array,
    counts: Array, high: Array, low: Array,
) -> None:  # fmt: skip
    """Counts and exact sums of whole numbers: ``high`` in units of 2**32, ``low`` the rest."""
    for row in range(len(offsets)):
        for run in range(len(codes)):
            start, stop = offsets[row] + runs[run], offsets[row] + runs[run + 1]
            group = bases[row] + codes[run]
            if len(present):
                count, above, below = _whole_present(values[start:stop], present[start:stop])
            else:
                count, above, below = _whole_sum(values[start:stop])
            counts[group] += count
            high[group] += above
            low[group] += below


@inner
def _whole_sum(values: Array) -> tuple[int, int, int]:
    above, below = 0, 0
    for place in range(len(values)):
        if values.itemsize == 8:
            above += np.int64(values[place] >> 32)
            below += np.int64(values[place] & 0xFFFFFFFF)
        else:
            below += np.int64(values[place])
    return len(values), above, below


@inner
def _whole_present(values: Array, present: Array) -> tuple[int, int, int]:
    count, above, below = 0, 0, 0
    for place in range(len(values)):
        if present[place] != 0:
            count += 1
            if values.itemsize == 8:
                above += np.int64(values[place] >> 32)
                below += np.int64(values[place] & 0xFFFFFFFF)
            else:
                below += np.int64(values[place])
    return count, above, below


@reordering
def _distances(values: Array, mean: float) -> tuple[float, float]:
    """Sums of distances from something near the mean, and of their squares."""
    total, squares = 0.0, 0.0
    for place in range(len(values)):
        value = np.float64(values[place])
        away = value - mean if value == value else 0.0
        total += away
        squares += away * away
    return total, squares


@reordering
def _present_distances(values: Array, present: Array, mean: float) -> tuple[float, float]:
    total, squares = 0.0, 0.0
    for place in range(len(values)):
        value = np.float64(values[place])
        away = value - mean if (value == value) & (present[place] != 0) else 0.0
        total += away
        squares += away * away
    return total, squares


@kernel
def fold_moments(
    values: Array, present: Array, offsets: Array, bases: Array, runs: Array, codes: Array,
    counts: Array, high: Array, low: Array, means: Array, squares: Array,
) -> None:  # fmt: skip
    """Counts, sums, means, and sums of squared distances from the mean."""
    for row in range(len(offsets)):
        for run in range(len(codes)):
            group = bases[row] + codes[run]
            start, stop = offsets[row] + runs[run], offsets[row] + runs[run + 1]
            while start < stop:
                end = min(start + PIECE, stop)
                count, total = _piece(values, present, start, end)
                if count:
                    mean = total / count
                    if len(present):
                        off, own = _present_distances(values[start:end], present[start:end], mean)
                    else:
                        off, own = _distances(values[start:end], mean)
                    # What the mean is off by shows in the sum of distances, which should be 0.
                    own = max(own - off * off / count, 0.0) if count > 1 else 0.0 * mean
                    _join_moments(counts, means, squares, group, count, mean + off / count, own)
                    _add(high, low, group, total)
                start = end


@inner
def _join_moments(counts: Array, means: Array, squares: Array, group: int, count: int, mean: float, own: float) -> None:
    before = counts[group]
    counts[group] = before + count
    if before == 0:
        means[group], squares[group] = mean, own
        return
    away = mean - means[group]
    share = count / (before + count)
    means[group] += away * share
    squares[group] += own + away * away * before * share
