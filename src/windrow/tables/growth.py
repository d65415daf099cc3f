"""Unbounded frames of counted values: they begin with values of other tasks' rows, and from then on only grow.

Of the values elsewhere those are enough that can matter: to quantiles the ones of the ranks that can be asked for, to
modes and distinct counts the ones that also come up here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.kernels.growing import growing_counts, growing_ranks
from windrow.tables.carry import Part
from windrow.tables.keys import numbers, ordinals
from windrow.tables.spec import SortKey

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Growth:
    """Frames that all begin (``backwards``: end) with the rows elsewhere: ``stop`` is how many rows seen they hold."""

    column: pa.Array
    keep: Array | None
    stop: npt.NDArray[np.int64]
    outside: Sequence[Part]

    def result(self, aggregate: Aggregate, kind: pa.DataType) -> pa.Array:
        """A distinct count, a mode or a quantile in each frame."""
        here, counts, ordered = self._counted()
        order = np.argsort(self.stop, kind="stable")
        out = np.zeros((2, len(self.stop)), np.int64)
        if aggregate.name in ("mode", "count_distinct"):
            growing_counts(here, counts, order, self.stop, out)
            if aggregate.name == "mode":
                return _picked(ordered, out[0], kind)
            given = [(part.distinct, part.values) for part in self.outside if part.distinct is not None]
            return pa.array(out[1] + sum(distinct - (0 if held is None else len(held)) for distinct, held in given))
        elsewhere = sum(part.rows for part in self.outside)
        present = np.concatenate([[0], np.cumsum(here >= 0)])[self.stop] + elsewhere
        lower, upper, weight = ranks_of(aggregate, present)
        below = sum(part.below for part in self.outside)
        ranks = np.stack([lower, upper])
        growing_ranks(here, counts, order, self.stop, np.where(ranks < 0, ranks, ranks - below), out)
        if aggregate.name not in ("median", "quantile_cont"):
            return _picked(ordered, np.where(present > 0, out[0], -1), kind)
        return _interpolated(ordered, out, weight, present)

    def _counted(self) -> tuple[Array, Array, pa.Array]:
        """The number of each row's value (-1 for none), how often each value is elsewhere, and the values in order."""
        kind = self.column.type
        parts = [(part.values.cast(kind), part.times) for part in self.outside if part.values is not None]
        best = [(part.best.cast(kind), part.best_times) for part in self.outside if part.best is not None]
        values = pa.concat_arrays([self.column, *(held for held, _ in parts), *(held for held, _ in best)])
        codes, ordered = _numbered(values)
        rows, last = len(self.column), len(codes) - len(best)
        counts = np.zeros(len(ordered), np.int64)
        if parts:
            np.add.at(counts, codes[rows:last], np.concatenate([times for _, times in parts]))
        # The most frequent value may be one of those given already, and is there as often then.
        np.maximum.at(counts, codes[last:], np.array([times for _, times in best], np.int64))
        here = codes[:rows].copy()
        if self.keep is not None:
            here[~self.keep] = -1
        return here, counts, ordered


def _numbered(values: pa.Array) -> tuple[Array, pa.Array]:
    """For each value its number in their order (-1 for none), and the different values in order."""
    found = numbers(values)
    there = values.is_valid().to_numpy(zero_copy_only=False)
    if found is None:
        codes = ordinals(values, SortKey("x"))
        _, first = np.unique(codes[there], return_index=True)
        return codes, values.take(pa.array(np.flatnonzero(there)[first]))
    present = found if there.all() else found[there]
    if present.dtype.kind == "f":
        present = present + present.dtype.type(0)  # makes -0.0 a 0.0
    ordered, numbered = np.unique(present, return_inverse=True)
    codes = numbered.astype(np.int64, copy=False)
    if len(present) < len(values):
        codes = np.full(len(values), -1, np.int64)
        codes[there] = numbered
    whole = pa.array(ordered)
    return codes, whole if whole.type == values.type else whole.cast(values.type)


def _picked(ordered: pa.Array, codes: Array, kind: pa.DataType) -> pa.Array:
    picked = ordered.take(pa.array(np.maximum(codes, 0), mask=codes < 0))
    return picked if picked.type == kind else picked.cast(kind)


def _interpolated(ordered: pa.Array, out: Array, weight: Array, present: Array) -> pa.Array:
    if not len(ordered):
        return pa.nulls(len(weight), pa.float64())
    found = numbers(ordered)
    values = np.array(ordered.to_pylist() if found is None else found).astype(np.float64)
    low, high = values[out[0]], values[out[1]]
    with np.errstate(invalid="ignore", over="ignore"):
        distance = high - low
        moved = np.where(np.isfinite(distance), low + weight * distance, low * (1 - weight) + high * weight)
    return pa.array(np.where((weight == 0) | (low == high), low, moved), mask=present == 0)


def ranks_of(aggregate: Aggregate, present: Array) -> tuple[Array, Array, Array]:
    """Which ranks answer an order statistic of so many values, and how far between them; -1 for no values.

    The same as ``aggregate.ranks``, which is a table for all numbers of values up to the largest.
    """
    share = Fraction(repr(float(0.5 if aggregate.parameter is None else aggregate.parameter)))
    if aggregate.name == "percentile":
        share /= 100
    wide = max(share.numerator * int(present.max(initial=0)), share.denominator) >= 2**53
    count: Any = present.astype(object) if wide else present
    weight = np.zeros(len(present))
    if aggregate.name == "percentile":
        lower = np.minimum(count * share.numerator // share.denominator, count - 1)
    elif aggregate.name == "quantile_disc":
        lower = np.maximum(-(-count * share.numerator // share.denominator) - 1, 0)
    else:
        place = np.maximum(count - 1, 0) * share.numerator
        lower, rest = place // share.denominator, place % share.denominator
        if aggregate.name != "quantile_index":
            weight = (rest / share.denominator).astype(np.float64)
    upper = lower + (weight > 0)
    none = present == 0
    return np.where(none, -1, lower).astype(np.int64), np.where(none, -1, upper).astype(np.int64), weight
