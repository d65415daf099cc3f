"""Sums of floats brought up to date by few rows: folded and joined in one pass, of values as they are.

What ``sums`` asks to be done to every value beforehand takes longer than looking at those that come, and a sum of what
comes that is first written down and then joined is moved through memory twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.states.sums import LONG, Sum, add_sums, fold_many, join_number, keep_sum

Array = npt.NDArray[Any]

State = tuple[Array, Array, Array, Array, Array, Array, Array, Array]
"""What is kept of groups: counts, highs, lows, errors, sizes, drifts, and how many infinities above and below."""
NOTHING: Sum = (0.0, 0.0, 0.0, 0.0, 0.0)


@kernel
def enter_sums(
    values: Array,
    present: Array,
    starts: Array,
    stops: Array,
    begin: int,
    at: Array,
    old: State,
    counts: Array,
    sums: Array,
    infinities: Array,
) -> None:  # fmt: skip
    """The states of the groups from ``begin`` on after their rows came.

    Group g had the state at place ``at[g]``, or no rows where that is -1. The new rows of group ``begin + n`` are those
    from ``starts[k, n]`` to before ``stops[k, n]``, for each k. NaN is no value; neither is what is not ``present``,
    which is empty if everything is.
    """
    before, highs, lows, errors, sizes, drifts, above, below = old
    for own in range(starts.shape[1]):
        group, whole = begin + own, NOTHING
        place = at[group]
        count = plus = minus = np.int64(0)
        if place >= 0:
            whole = highs[place], lows[place], errors[place], sizes[place], drifts[place]
            count, plus, minus = before[place], above[place], below[place]
        rows = np.int64(0)
        for run in range(len(starts)):
            rows += np.int64(stops[run, own]) - np.int64(starts[run, own])
        more = NOTHING
        if rows >= LONG and len(present) == 0:
            more = fold_many(values, starts, stops, own, rows)
        if rows >= LONG and len(present) == 0 and more[2] < np.inf:
            whole = add_sums(whole, more, 1.0)
            count += rows
        elif rows > 0:
            # There are so few rows that each may as well be looked at, or some of them are not finite.
            for run in range(len(starts)):
                for row in range(np.uint64(starts[run, own]), np.uint64(stops[run, own])):
                    value = values[row]
                    if np.isfinite(value):
                        if len(present) == 0 or present[row]:
                            whole = join_number(whole, value, 0.0, 0.0, abs(value))
                            count += 1
                    elif value == value and (len(present) == 0 or present[row]):
                        plus += np.int64(value > 0)
                        minus += np.int64(value < 0)
                        count += 1
        counts[group], infinities[0, group], infinities[1, group] = count, plus, minus
        keep_sum(group, whole, sums)
