"""The ranks of frames that have a fraction each, in one pass: what ``RankRule.each`` does for a few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.contract.ranks import DECIMAL, FINE, MARGIN, RankRule, RanksAt, RankTable

Array = npt.NDArray[Any]
CLOSE = 1e-3
"""Far more than what rounding moves a whole number by."""
PROBE = 1 << 10
"""The first frames, which tell what fractions look like."""


def rank_fractions(rule: RankRule, parameters: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> RankTable:
    """The ranks of frames that have a parameter each, and so many values."""
    rows = len(parameters)
    slope = float(parameters.mean()) / rule.limit if rows else 0.0
    if not rule.interpolates:
        lower = _rank_without_weights(rule, parameters, counts)
        return RankTable(lower, lower, np.zeros(rows), slope, each=True)
    lower, upper, weight = np.empty(rows, np.int32), np.empty(rows, np.int32), np.empty(rows)
    _rank_exactly(rule, parameters, counts, RanksAt(lower, upper, weight))
    return RankTable(lower, upper, weight, slope, rule.interpolates, each=True)


def _rank_without_weights(
    rule: RankRule, parameters: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """Lower ranks: all by floats, side by side, and then anew those that floats may have missed."""
    lower, unsure = np.empty(len(parameters), np.int32), np.empty(len(parameters), np.bool_)
    numbers = (rule.limit, rule.fewer, rule.less)
    _rank_floats(parameters[:PROBE], counts[:PROBE], *numbers, lower, unsure)
    if 8 * np.count_nonzero(unsure[:PROBE]) > min(PROBE, len(parameters)):
        # Fractions as people write them have few digits, and all would have to be found anew.
        _rank_exactly(rule, parameters, counts, RanksAt(lower, lower, np.zeros(len(parameters))))
        return lower
    if not _rank_floats(parameters, counts, *numbers, lower, unsure):
        rule.check_each(parameters)
    rows = np.flatnonzero(unsure)
    if len(rows):
        some = np.empty(len(rows), np.int32)
        _rank_exactly(rule, parameters[rows], counts[rows], RanksAt(some, some, np.zeros(len(rows))))
        lower[rows] = some
    return lower


def _rank_exactly(
    rule: RankRule, parameters: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], found: RanksAt
) -> None:
    """Ranks one after the other, and without rounding where a float could be another rank."""
    unsure = np.empty(len(parameters), np.bool_)
    doubts = _rank(parameters, counts, rule.limit, rule.fewer, rule.less, rule.interpolates, *found, unsure)
    if doubts < 0:
        rule.check_each(parameters)
    if doubts:
        rule.make_exact(found, parameters, counts, np.flatnonzero(unsure))


@kernel
def _rank_floats(
    parameters: Array, counts: Array, limit: int, fewer: int, less: int, lower: Array, unsure: Array
) -> bool:
    """Lower ranks without a branch, and which of them are in doubt; whether all parameters are in their limits."""
    outside = np.int64(0)
    share = FINE / limit
    for k in range(len(parameters)):
        parameter, count = parameters[k], np.float64(counts[k])
        outside |= np.int64(not ((parameter >= 0) & (parameter <= limit)))
        decimal = parameter * DECIMAL
        near = max(0.0, count - fewer) * (parameter * share) - less
        floor = np.floor(near * (1.0 / FINE))  # a power of two, so that nothing is rounded
        rest = near - floor * FINE
        last = (count - 1.0) * FINE
        beyond = near >= last + MARGIN
        close = (rest < MARGIN) | (rest > FINE - MARGIN)
        unsure[k] = (abs(decimal - np.rint(decimal)) < CLOSE) | (close & (not beyond))
        lower[k] = np.int32(max(0.0, count - 1.0 if beyond else floor))
    return outside == 0


@kernel
def _rank(
    parameters: Array, counts: Array, limit: int, fewer: int, less: int, interpolates: bool, lower: Array,
    upper: Array, weight: Array, unsure: Array,
) -> Any:  # fmt: skip
    """Fractions of few digits in whole numbers, others in floats; how many are left in doubt, -1 if one is wrong."""
    doubts = np.int64(0)
    whole_share = np.int64(DECIMAL * limit)
    for k in range(len(parameters)):
        parameter, count = parameters[k], counts[k]
        if not (parameter >= 0 and parameter <= limit):
            return np.int64(-1)
        decimal = parameter * DECIMAL
        digits = np.rint(decimal)
        unsure[k] = False
        # Most fractions of many digits are far from the next short one, and need no division to tell.
        if abs(decimal - digits) < CLOSE and digits / DECIMAL == parameter:
            place = max(np.int64(0), count - fewer) * np.int64(digits) - less
            place = max(np.int64(0), min(place, (count - 1) * whole_share))
            low = place // whole_share
            rest = np.float64(place - low * whole_share)
            share = np.float64(whole_share)
        else:
            near = np.float64(max(np.int64(0), count - fewer)) * (parameter * (FINE / limit)) - less
            share = FINE
            if near >= np.float64(count - 1) * FINE + MARGIN:  # surely beyond the last rank
                low, rest = max(np.int64(0), count - 1), 0.0
            else:
                floor = np.floor(near * (1.0 / FINE))  # a power of two, so that nothing is rounded
                rest = near - floor * FINE
                if rest < MARGIN or rest > FINE - MARGIN:
                    unsure[k] = True
                    doubts += 1
                low = max(np.int64(0), np.int64(floor))
        lower[k] = low
        if interpolates:
            upper[k] = low + (rest > 0)
            weight[k] = rest / share
    return doubts
