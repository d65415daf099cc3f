"""Aggregates over the windows of one block: primitives are computed once and shared by those that need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import DataError
from windrow.kernels.geometry import clipped_counts, most_cells, outer_product
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import NO_VALUES, Outcome
from windrow.kernels.scan_divide import share_out
from windrow.kernels.sweep import AnySweep
from windrow.model.types import data_type_of

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

METHODS = ("auto", "incremental", "naive")


class WindowKernel(Protocol):
    """One primitive operation over every window; ``naive``, ``incremental`` and ``auto`` are three of them."""

    def __call__(
        self, operation: str, values: Array, present: Mask | None, sweeps: Sequence[AnySweep], ranks: RankTable | None
    ) -> Outcome: ...


def kernel(method: str) -> WindowKernel:
    """The kernel of a method, loaded when it is first asked for."""
    if method == "naive":
        from windrow.kernels.naive import naive_windows

        return naive_windows
    if method == "incremental":
        from windrow.kernels.incremental import incremental_windows

        return incremental_windows
    if method == "auto":
        from windrow.kernels.automatic import automatic_windows

        return automatic_windows
    raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))


@dataclass(frozen=True)
class Column:
    """An attribute's values in a block; NaN in floats, and False in ``present``, is missing."""

    values: Array
    present: Mask | None = None


@dataclass(frozen=True)
class Result:
    """An aggregate's values, and where they are missing, whatever stands there; NaN is missing without being named."""

    values: Array
    missing: Mask | None

    def filled(self, out: Array | None = None) -> Array:
        """The values with NaN for missing ones; whole numbers stay whole if nothing is missing.

        Floats that are in ``out`` stay there.
        """
        if self.missing is None:
            return self.values
        if self.values.dtype.kind == "M":
            return np.where(self.missing, np.datetime64("NaT", "us"), self.values)
        if self.values.dtype.kind == "T":
            objects: Array = self.values.astype(object)
            objects[self.missing] = None
            return objects
        kind = self.values.dtype if self.values.dtype.kind == "f" else np.dtype(np.float64)
        filled = self.values if self.values is out and kind == out.dtype else self.values.astype(kind)
        filled[self.missing] = np.nan
        return filled


@dataclass
class Evaluation:
    """The windows of one block, and the outcomes computed for them so far."""

    columns: Mapping[str, Column]
    shape: tuple[int, ...]
    sweeps: Sequence[AnySweep]
    method: str = "auto"
    min_count: int = 0
    whole_only: bool = False
    outside: Sequence[Mask] | None = (
        None  # per axis, which windows leave the array; by default those that leave the block
    )
    out: Array | None = None  # where results may be written, if there is but one aggregate
    _outcomes: dict[tuple[object, ...], Outcome] = field(default_factory=dict)
    _coded: dict[str, tuple[Column, Array]] = field(default_factory=dict)

    def result(self, aggregate: Aggregate) -> Result:
        """One aggregate's result in every window."""
        definition = aggregate.definition
        if aggregate.attribute is None:
            counts = self._extents()
            return self._masked(counts.copy(), Outcome(NO_VALUES, NO_VALUES, counts), 0, aggregate)
        column = self.columns[aggregate.attribute]
        found = data_type_of(column.values.dtype)
        definition.check_type(found)
        if found.name == "string":
            return self._of_strings(aggregate, column)
        if aggregate.name == "avg":
            return self._average(aggregate, column)
        outcome = self._outcome(aggregate, column)
        if definition.divides:
            outcome = outcome._replace(counts=self._counts(aggregate, outcome))
        return self._masked(definition.finish(outcome, found), outcome, definition.least, aggregate)

    def _average(self, aggregate: Aggregate, column: Column) -> Result:
        """Averages in one go, unless there are sums already, or other methods are asked for."""
        definition = aggregate.definition
        if self.method == "auto" and (aggregate.attribute, "sum", None, None) not in self._outcomes:
            from windrow.kernels.automatic import average_windows

            direct = average_windows(column.values, column.present, self.sweeps, self.out)
            if direct is not None:
                return self._masked(direct.reals, direct, definition.least, aggregate)
        outcome = self._outcome(aggregate, column)
        if outcome.counts is None and column.present is None and column.values.dtype.kind != "f":
            averages = np.empty(outcome.reals.shape)
            share_out(outcome.reals, clipped_counts(self.shape, self.sweeps), averages)
            return self._masked(averages, outcome, definition.least, aggregate)
        outcome = outcome._replace(counts=self._counts(aggregate, outcome))
        found = data_type_of(column.values.dtype)
        return self._masked(definition.finish(outcome, found), outcome, definition.least, aggregate)

    def _extents(self) -> npt.NDArray[np.int64]:
        return outer_product(clipped_counts(self.shape, self.sweeps))

    def _counts(self, aggregate: Aggregate, outcome: Outcome) -> npt.NDArray[np.int64]:
        """How many present values each window has, counted only now if the kernel did not."""
        if outcome.counts is not None:
            return outcome.counts
        assert aggregate.attribute is not None
        counted = self._outcome(Aggregate("count", aggregate.attribute), self.columns[aggregate.attribute])
        assert counted.counts is not None
        return counted.counts

    def _outcome(self, aggregate: Aggregate, column: Column) -> Outcome:
        operation = aggregate.definition.operation or "count"
        key = (aggregate.attribute, operation, aggregate.name if operation == "select" else None, aggregate.parameter)
        if operation == "user":
            return self._user_outcome(aggregate, column)
        if key not in self._outcomes:
            ranks = aggregate.ranks(most_cells(self.shape, self.sweeps)) if operation == "select" else None
            work = (operation, column.values, column.present, self.sweeps, ranks)
            if self.method == "auto" and self.out is not None:
                from windrow.kernels.automatic import automatic_windows

                self._outcomes[key] = automatic_windows(*work, self.out)
            else:
                self._outcomes[key] = kernel(self.method)(*work)
        return self._outcomes[key]

    def _user_outcome(self, aggregate: Aggregate, column: Column) -> Outcome:
        from windrow.kernels.user import user_windows

        user = aggregate.user
        found = user_windows(user.functions, column.values, column.present, self.sweeps, user.result.dtype, self.method)
        return Outcome(np.zeros(0), *found)

    def _of_strings(self, aggregate: Aggregate, column: Column) -> Result:
        """Strings are numbered in their order, and the numbers aggregated."""
        name = str(aggregate.attribute)
        if name not in self._coded:
            ordered, codes = np.unique(column.values, return_inverse=True)
            if not len(ordered):  # without cells every result is missing, but something must stand there
                ordered = np.array([""], column.values.dtype)
            numbers = codes.reshape(column.values.shape).astype(np.int64)
            self._coded[name] = (Column(numbers, column.present), ordered)
        coded, ordered = self._coded[name]
        definition = aggregate.definition
        outcome = self._outcome(aggregate, coded)
        values = definition.finish(outcome, data_type_of(coded.values.dtype))
        if definition.operation in ("min", "max", "mode"):
            values = ordered[np.clip(values, 0, len(ordered) - 1)]
        return self._masked(values, outcome, definition.least, aggregate)

    def _masked(self, values: Array, outcome: Outcome, least: int, aggregate: Aggregate) -> Result:
        needed = max(least, self.min_count)
        missing: Mask | None = None
        if needed == 1 and outcome.counts is None:
            missing = outcome.empty
        elif needed > 0:
            missing = self._counts(aggregate, outcome) < needed
        if self.whole_only:
            partial = ~self._whole()
            missing = partial if missing is None else missing | partial
        return Result(values, missing if missing is not None and missing.any() else None)

    def _whole(self) -> Mask:
        """Where windows lie entirely within the array."""
        if self.outside is not None:
            inside = [(~axis).astype(np.int64) for axis in self.outside]
        else:
            counts = clipped_counts(self.shape, self.sweeps)
            inside = [(c == s.width).astype(np.int64) for c, s in zip(counts, self.sweeps, strict=True)]
        return outer_product(inside).astype(bool)
