"""Results over parts joined to results over the whole, for every aggregate that says how.

Totals join the blocks of an array by it, and frames on tables what lies in other tasks with what a task sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column, Result
from windrow.aggregates.definition import Array, Float64Array, Int64Array, Mask
from windrow.aggregates.windows import Evaluation
from windrow.kernels.contract.sweeps import VariableSweep

COUNTS = ("count", "pairs")
"""The parts that say how many values there are."""


def can_join(aggregate: Aggregate) -> bool:
    """Whether results over parts are enough."""
    return aggregate.definition.join is not None


def evaluate_groups(columns: Mapping[str, Column], starts: Int64Array) -> Evaluation:
    """Aggregates of cells that lie group by group; ``starts`` has where each group begins, and the end of the last."""
    return Evaluation(columns, (int(starts[-1]),), [VariableSweep(starts[:-1], starts[1:] - 1)])


def join_parts(aggregate: Aggregate, columns: Mapping[str, Column], starts: Int64Array) -> Result:
    """One aggregate of groups of parts; ``columns`` has the parts' own aggregates by name."""
    definition = aggregate.definition
    assert definition.join is not None
    parts = GroupedParts(columns, starts)
    values, missing = definition.join(parts)
    if definition.least:
        counts = parts.total(parts.counted)
        lacking = counts < definition.least
        missing = lacking if missing is None else missing | lacking
    return Result(values, missing if missing is not None and missing.any() else None)


@dataclass(frozen=True, eq=False)
class GroupedParts:
    """Parts whose groups lie side by side; a part without values counts for nothing."""

    columns: Mapping[str, Column]
    starts: Int64Array

    @property
    def counted(self) -> str:
        """The part that says how many values there are; extremes are there if any part has one."""
        return next((name for name in COUNTS if name in self.columns), "")

    @cached_property
    def _evaluation(self) -> Evaluation:
        return evaluate_groups(self.columns, self.starts)

    def total(self, name: str) -> Array:
        if not name:  # how many parts have anything
            first = next(iter(self.columns))
            return self._evaluation.result(Aggregate("count", first)).values
        if self.columns[name].values.dtype.kind == "f":
            return self.sum(self.values(name))
        return self._evaluation.result(Aggregate("sum", name)).values

    def values(self, name: str) -> Array:
        column = self.columns[name]
        there = self._there(column)
        return np.where(there, column.values, column.values.dtype.type(0)) if there is not None else column.values

    def sum(self, values: Float64Array) -> Float64Array:
        """Sums by group; what is not a number here is the difference of infinities, and stays so."""
        lost = np.isnan(values)
        column = Column(np.where(lost, 0.0, values))
        sums = evaluate_groups({"part": column}, self.starts).result(Aggregate("sum", "part")).values
        if not lost.any():
            return sums
        return np.where(np.add.reduceat(lost.astype(np.int64), self.starts[:-1]) > 0, np.nan, sums)

    def spread(self, results: Array) -> Array:
        return np.repeat(results, np.diff(self.starts))

    def extreme(self, name: str, operation: str) -> Array:
        return self._evaluation.result(Aggregate(operation, name)).values

    def pick(self, name: str, by: str, operation: str) -> Array:
        places = self.extreme(by, operation)
        column = self.columns[by]
        chosen = column.values == self.spread(places)
        if column.present is not None:
            chosen &= column.present
        # The first part of a group that has it; a group without values takes any.
        numbers = np.where(chosen, np.arange(len(chosen)), len(chosen))
        first = np.minimum.reduceat(numbers, self.starts[:-1])
        taken: Array = self.columns[name].values[np.where(first < len(chosen), first, self.starts[:-1])]
        return taken

    def _there(self, column: Column) -> Mask | None:
        """Which parts have any values; NaN does not say so, since it may be a result."""
        counted = self.columns.get(self.counted) if self.counted else None
        if counted is not None:
            return np.asarray(counted.values > 0)
        return column.present
