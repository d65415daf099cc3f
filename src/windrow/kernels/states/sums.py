"""Sums over groups of rows: of floats as pairs of doubles with a bound on their error, of whole numbers exactly.

Step by step as ``windrow.aggregates.bounded`` does it for whole arrays, which is where the reasons are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel

Array = npt.NDArray[Any]

Sum = tuple[float, float, float, float, float]
"""What is kept of a sum: high, low, error, size, drift."""

LONG = 16
"""Rows from which on the error of a group's sum is bounded at the end, instead of at each addition."""
SPLIT = 2.0**27 + 1
HALF_UNIT = 2.0**-103
TINY = 2.0**-1060
UNIT = 2.0**-52
LOST = 2.0**-105
"""What a sum and its correction lose together, of the sum of sizes, times the square of how many values there are: a
double is off by 2**-53 at each addition, and so is the correction, which is no more than that of the sum itself."""


@kernel
def count_groups(there: Array, starts: Array, stops: Array, counts: Array) -> None:
    """How many rows of each group are there."""
    for run in range(len(starts)):
        for group in range(len(counts)):
            found = np.int64(0)
            for row in range(starts[run, group], stops[run, group]):
                found += np.int64(there[row])
            counts[group] += found


@kernel
def fold_values(values: Array, there: Array, starts: Array, stops: Array, sums: Array, infinities: Array) -> None:
    """Sums of plain values, of which those that are not there are 0.

    The rows of group g are those from ``starts[k, g]`` to before ``stops[k, g]``, for each k; so they are below.
    """
    for group in range(starts.shape[1]):
        rows = np.int64(0)
        for run in range(len(starts)):
            rows += stops[run, group] - starts[run, group]
        plus = minus = np.int64(0)
        whole = (0.0, 0.0, np.inf, 0.0, 0.0)
        if rows >= LONG:
            whole = fold_many(values, starts, stops, group, rows)
        if not whole[2] < np.inf:  # there are infinities, or so few rows that each may as well be looked at
            whole, plus, minus = _fold_each(values, there, starts, stops, group)
        keep_sum(group, whole, sums)
        infinities[0, group], infinities[1, group] = plus, minus


@inner
def fold_many(values: Array, starts: Array, stops: Array, group: int, rows: int) -> Sum:
    """The sum of many finite values; its error is infinite if some are not, or the sum is not."""
    high = low = size = 0.0
    for run in range(len(starts)):
        for row in range(np.uint64(starts[run, group]), np.uint64(stops[run, group])):
            value = values[row]
            high, lost = _two_sum(high, value)
            low += lost
            size += abs(value)
    high, low = _two_sum(high, low)
    if not (np.isfinite(high) and np.isfinite(low) and np.isfinite(size)):
        return 0.0, 0.0, np.inf, 0.0, 0.0
    return high, low, LOST * rows * rows * size, size, UNIT * rows * size


@inner
def _fold_each(values: Array, there: Array, starts: Array, stops: Array, group: int) -> tuple[Sum, Any, Any]:
    """The sum of finite values one by one, and how many are infinite on each side."""
    plus = minus = np.int64(0)
    whole = (0.0, 0.0, 0.0, 0.0, 0.0)
    for run in range(len(starts)):
        for row in range(starts[run, group], stops[run, group]):
            if not there[row]:
                continue
            value = values[row]
            if np.isfinite(value):
                whole = join_number(whole, value, 0.0, 0.0, abs(value))
            else:
                plus += np.int64(value > 0)
                minus += np.int64(value < 0)
    return whole, plus, minus


@kernel
def fold_products(
    x: Array, y: Array, times: Array, there: Array, starts: Array, stops: Array, sums: Array, infinities: Array
) -> None:
    """Sums of products, in each of which ``x`` and ``y`` are factors so many times."""
    for group in range(starts.shape[1]):
        whole = (0.0, 0.0, 0.0, 0.0, 0.0)
        plus = minus = np.int64(0)
        for run in range(len(starts)):
            for row in range(starts[run, group], stops[run, group]):
                if not there[row]:
                    continue
                one = x[row] if times[0] > 0 else 1.0
                other = y[row] if times[1] > 0 else 1.0
                if np.isfinite(one) and np.isfinite(other):
                    more, rest, off = _multiply(one, times[0], other, times[1])
                    length = abs(more)
                    if not np.isfinite(more + rest):
                        more, rest, off, length = 0.0, 0.0, np.inf, np.inf
                    whole = join_number(whole, more, rest, off, length)
                else:
                    plain = _plain(one, times[0], other, times[1])
                    plus += np.int64(not plain < 0)
                    minus += np.int64(not plain > 0)
        keep_sum(group, whole, sums)
        infinities[0, group], infinities[1, group] = plus, minus


@kernel
def fold_whole(values: Array, there: Array, starts: Array, stops: Array, upper: Array, lower: Array) -> None:
    """Sums of whole numbers of 64 bits, as an upper half with its sign and a lower one of 32 bits."""
    for group in range(starts.shape[1]):
        high = low = np.int64(0)
        for run in range(len(starts)):
            for row in range(starts[run, group], stops[run, group]):
                if there[row]:
                    high += np.int64(values[row] >> 32)
                    low += np.int64(values[row] & 0xFFFFFFFF)
        upper[group] = high + (low >> 32)
        lower[group] = low & 0xFFFFFFFF


@inner
def join_number(whole: Sum, more: float, rest: float, off: float, length: float) -> Sum:
    """A sum with one more number, ``more + rest`` with its error and size."""
    high, low, error, size, drift = whole
    total, lost = _two_sum(high, more)
    error += off
    if not (high == 0.0 and low == 0.0) and not (more == 0.0 and rest == 0.0):
        error += HALF_UNIT * (abs(high) + abs(more))
    if size != 0.0 and length != 0.0:
        drift += UNIT * (size + length)
    high, low = _two_sum(total, lost + (low + rest))
    size += length
    if np.isfinite(high) and np.isfinite(size):
        return high, low, error, size, drift
    return 0.0, 0.0, np.inf, 0.0, np.inf


Parts = tuple[Array, Array, Array, Array, Array]
"""What is kept of the sums of groups: highs, lows, errors, sizes, drifts."""
Both = tuple[Array, Array]
"""How many values of each group are infinite, above and below."""


@kernel
def join_groups(
    one: Parts, other: Parts, own: Both, theirs: Both, sign: float, emptied: Array, sums: Array, infinities: Array
) -> None:
    """States of groups with those of others added, or taken out where ``sign`` is -1.

    A group without values is as new: nothing that came and went leaves a trace.
    """
    for group in range(len(emptied)):
        if emptied[group]:
            keep_sum(group, (0.0, 0.0, 0.0, 0.0, 0.0), sums)
            infinities[0, group] = infinities[1, group] = 0
            continue
        mine = one[0][group], one[1][group], one[2][group], one[3][group], one[4][group]
        more = other[0][group], other[1][group], other[2][group], other[3][group], other[4][group]
        keep_sum(group, add_sums(mine, more, sign), sums)
        infinities[0, group] = own[0][group] + np.int64(sign) * theirs[0][group]
        infinities[1, group] = own[1][group] + np.int64(sign) * theirs[1][group]


@kernel
def finish_sums(
    parts: Parts,
    boundless: Both,
    counts: Array,
    average: bool,
    limit: float,
    values: Array,
    missing: Array,
    doubtful: Array,
) -> None:
    """Sums or averages of groups; where they are none, and where their error is more than ``limit`` of the size."""
    for group in range(len(counts)):
        value = parts[0][group] + parts[1][group]
        plus, minus = boundless[0][group] != 0, boundless[1][group] != 0
        if plus or minus:
            value = np.nan if plus and minus else np.inf if plus else -np.inf
        if average:
            value /= np.float64(max(counts[group], 1))
        size = max(parts[3][group] - parts[4][group], 0.0)
        size = size if size == size else 0.0  # of what is not known, whose size and drift are infinite, it is none
        values[group], missing[group] = value, value != value
        doubtful[group] = not (plus or minus) and not parts[2][group] <= limit * size


@inner
def add_sums(one: Sum, other: Sum, sign: float) -> Sum:
    """Two sums together, or the first without the other where ``sign`` is -1."""
    high, low, error, size, drift = one
    more, rest, length = sign * other[0], sign * other[1], other[3]
    error += other[2]
    drift += other[4]
    total, lost = _two_sum(high, more)
    if not (high == 0.0 and low == 0.0) and not (more == 0.0 and rest == 0.0):
        error += HALF_UNIT * (abs(high) + abs(more))
    if size != 0.0 and length != 0.0:
        drift += UNIT * (size + length)
    high, low = _two_sum(total, lost + (low + rest))
    size += sign * length
    if np.isfinite(high) and np.isfinite(size):
        return high, low, error, size, drift
    # What went beyond doubles once is not known any more, even after it has left.
    return 0.0, 0.0, np.inf, 0.0, np.inf


@inner
def keep_sum(group: int, whole: Sum, sums: Array) -> None:
    for part in range(5):
        sums[part, group] = whole[part]


@inner
def _two_sum(a: float, b: float) -> tuple[float, float]:
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@inner
def _two_product(a: float, b: float) -> tuple[float, float]:
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@inner
def _halves(a: float) -> tuple[float, float]:
    wide = SPLIT * a
    high = wide - (wide - a)
    return high, a - high


@inner
def _factor(place: int, x: float, often: int, y: float) -> float:
    return x if place < often else y


@inner
def _multiply(x: float, x_times: int, y: float, y_times: int) -> tuple[float, float, float]:
    """A product of at least two factors, exact up to rounding that the third number bounds."""
    one, other = _factor(0, x, x_times, y), _factor(1, x, x_times, y)
    high, low = _two_product(one, other)
    error = 0.0 if one == 0.0 or other == 0.0 else TINY
    for place in range(2, x_times + y_times):
        factor = _factor(place, x, x_times, y)
        product, rest = _two_product(high, factor)
        error = abs(factor) * error + 2 * HALF_UNIT * abs(product) + TINY
        high, low = _two_sum(product, rest + low * factor)
    return high, low, error


@inner
def _plain(x: float, x_times: int, y: float, y_times: int) -> float:
    product = _factor(0, x, x_times, y)
    for place in range(1, x_times + y_times):
        product *= _factor(place, x, x_times, y)
    return product
