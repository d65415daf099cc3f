"""Unbounded frames of counted values: each begins with the values of other tasks' rows and grows row by row.

Not all values of other tasks are needed: quantiles need those of the ranks that can be asked for,
modes and distinct counts those that occur in this task too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.dataframes.keys import numbers, ordinals
from windrow.dataframes.unbounded_states import Part
from windrow.kernels.counting.growing import growing_counts, growing_ranks
from windrow.model.frame import SortKey

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
        here, counts, ordered = self._count_values()
        order = np.argsort(self.stop, kind="stable")
        out = np.zeros((2, len(self.stop)), np.int64)
        definition = aggregate.definition
        if definition.ranks is None:
            growing_counts(here, counts, order, self.stop, out)
            if definition.picks:
                return _pick_values(ordered, out[0], kind)
            given = [(part.distinct, part.values) for part in self.outside if part.distinct is not None]
            return pa.array(out[1] + sum(distinct - (0 if held is None else len(held)) for distinct, held in given))
        elsewhere = sum(part.rows for part in self.outside)
        present = np.concatenate([[0], np.cumsum(here >= 0)])[self.stop] + elsewhere
        lower, upper, weight = definition.ranks.at(aggregate.fraction, present)
        below = sum(part.below for part in self.outside)
        ranks = np.stack([lower, upper])
        growing_ranks(here, counts, order, self.stop, np.where(ranks < 0, ranks, ranks - below), out)
        if definition.picks:
            return _pick_values(ordered, np.where(present > 0, out[0], -1), kind)
        return _interpolate(ordered, out, weight, present)

    def _count_values(self) -> tuple[Array, Array, pa.Array]:
        """The number of each row's value (-1 for none), how often each value is elsewhere, and the values in order."""
        kind = self.column.type
        parts = [(part.values.cast(kind), part.times) for part in self.outside if part.values is not None]
        best = [(part.best.cast(kind), part.best_times) for part in self.outside if part.best is not None]
        values = pa.concat_arrays([self.column, *(held for held, _ in parts), *(held for held, _ in best)])
        codes, ordered = _number_values(values)
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


def _number_values(values: pa.Array) -> tuple[Array, pa.Array]:
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


def _pick_values(ordered: pa.Array, codes: Array, kind: pa.DataType) -> pa.Array:
    picked = ordered.take(pa.array(np.maximum(codes, 0), mask=codes < 0))
    return picked if picked.type == kind else picked.cast(kind)


def _interpolate(ordered: pa.Array, out: Array, weight: Array, present: Array) -> pa.Array:
    if not len(ordered):
        return pa.nulls(len(weight), pa.float64())
    found = numbers(ordered)
    values = np.array(ordered.to_pylist() if found is None else found).astype(np.float64)
    low, high = values[out[0]], values[out[1]]
    with np.errstate(invalid="ignore", over="ignore"):
        distance = high - low
        moved = np.where(np.isfinite(distance), low + weight * distance, low * (1 - weight) + high * weight)
    return pa.array(np.where((weight == 0) | (low == high), low, moved), mask=present == 0)
