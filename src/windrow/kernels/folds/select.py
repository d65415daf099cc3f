"""Order statistics of rows of values, found in place: a row is parted around the ranks asked for, not sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.kernels.contract.ranks import RanksAt, RankTable

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

ROWS = 8
"""Rows that are parted in one go, so that they are still in the cache when their ranks are looked up."""

SHORT_GROUP = 32
"""Values of a group that are sorted one by one, which is sooner done than parting them."""


def count_rows(rows: Array) -> Int64Array:
    """How many values of each row are numbers."""
    if rows.dtype.kind != "f":
        return np.full(len(rows), rows.shape[1], np.int64)
    from windrow.kernels.folds.lanes import fold_counts

    counts = np.zeros(len(rows), np.int64)
    width = rows.shape[1]
    numbers = np.arange(len(rows))
    ends = np.array([0, width])
    fold_counts(rows.reshape(-1), np.zeros(0, np.uint8), numbers * width, numbers, ends, np.zeros(1, np.int64), counts)
    return counts


def select_rows(rows: Array, tables: Sequence[RankTable]) -> list[Outcome]:
    """The order statistics of each row, for each table of ranks; the rows are left in another order."""
    counts = count_rows(rows)
    full = counts == rows.shape[1]
    picked = [np.zeros((2, len(rows)), rows.dtype) for _ in tables]
    if full.all():
        _select_full(rows, tables, picked)
    else:
        # NaN comes last in an order, so that the ranks of the others are right.
        for row in np.flatnonzero(counts):
            rows[row].sort()
            for table, found in zip(tables, picked, strict=True):
                ranks = (table.lower[counts[row]], table.upper[counts[row]])
                found[:, row] = rows[row, ranks]
    return [_outcome(found, table, counts) for found, table in zip(picked, tables, strict=True)]


def _select_full(rows: Array, tables: Sequence[RankTable], picked: Sequence[Array]) -> None:
    width = rows.shape[1]
    ranks = [(int(table.lower[width]), int(table.upper[width])) for table in tables]
    wanted = sorted({upper for _, upper in ranks} | {lower for lower, upper in ranks if lower < upper - 1})
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        some.partition(wanted if len(wanted) > 1 else wanted[0], axis=1)
        for (lower, upper), found in zip(ranks, picked, strict=True):
            found[1, start : start + ROWS] = some[:, upper]
            # The rank below is the largest value of the part on the left, which is sooner found than parted.
            beside = lower == upper - 1 and lower not in wanted
            found[0, start : start + ROWS] = some[:, :upper].max(axis=1) if beside else some[:, lower]


def select_groups(values: Array, starts: Int64Array, asked: Sequence[tuple[RanksAt, bool]]) -> list[Outcome]:
    """Order statistics of groups whose values lie side by side, none of them NaN; they are left in another order.

    ``asked`` has the ranks in each group, -1 where it has no value, and whether there is to be something between two.
    """
    from windrow.kernels.folds.cells import sort_short_groups

    counts = np.diff(starts)
    sort_short_groups(values, starts, SHORT_GROUP)
    for group in np.flatnonzero(counts > SHORT_GROUP).tolist():
        wanted = {int(rank[group]) for ranks, _ in asked for rank in (ranks.lower, ranks.upper)}
        values[starts[group] : starts[group + 1]].partition(sorted(wanted))
    outcomes, first = [], starts[:-1]
    for ranks, interpolates in asked:
        found = np.zeros((2, len(counts)), values.dtype)
        there = np.flatnonzero(counts)
        for side, rank in enumerate((ranks.lower, ranks.upper)):
            found[side, there] = values[first[there] + rank[there]]
        outcomes.append(_between(found, interpolates, ranks.weight, counts))
    return outcomes


def _outcome(found: Array, table: RankTable, counts: Int64Array) -> Outcome:
    return _between(found, table.interpolates, table.weight[counts], counts)


def _between(found: Array, interpolates: bool, weight: Array, counts: Int64Array) -> Outcome:
    """The lower of two values that were found, or what lies between them."""
    if found.dtype.kind == "f":
        found = found + found.dtype.type(0)  # which of two equal zeros is found would be chance
    if not interpolates:
        return Outcome(NO_VALUES, found[0], counts)
    low, high = found[0].astype(np.float64), found[1].astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = high - low
        reals = np.where(np.isfinite(distance), low + weight * distance, low * (1.0 - weight) + high * weight)
    return Outcome(np.where((weight == 0.0) | (low == high), low, reals), NO_VALUES, counts)
