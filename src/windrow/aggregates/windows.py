"""Aggregates over the windows of one block: primitives are computed once and shared by those that need them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column, Result
from windrow.aggregates.definition import Compose, Definition, Float64Array, Int64Array
from windrow.errors import DataError
from windrow.kernels.choose import AUTO
from windrow.kernels.contract.geometry import clipped_counts, most_cells, outer_product
from windrow.kernels.contract.listing import listed_windows
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep
from windrow.kernels.scans.divide import share_out
from windrow.model.types import DataType, data_type_of

if TYPE_CHECKING:
    pass

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

METHODS = ("auto", "incremental", "naive")
COUNT, USER = "count", "user"


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
        from windrow.kernels.papers.incremental import incremental_windows

        return incremental_windows
    if method == "auto":
        from windrow.kernels.windows import compute_windows

        return compute_windows
    raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))


def refuse_strategy(strategy: str, aggregate: Aggregate) -> None:
    """Users' own aggregates run by what their functions allow, composed ones by the best way for each part."""
    if strategy == AUTO:
        return
    if aggregate.user is not None:
        raise DataError(f"{aggregate.name} is user-defined and has no strategies", got=repr(strategy))
    made_of = ", ".join(dict.fromkeys(aggregate.definition.made_of))
    raise DataError(f"{aggregate.name} is made of {made_of}, each by its own strategy", got=repr(strategy))


class Asked(NamedTuple):
    """What is asked of a primitive: where to write results, and which strategy under method auto."""

    out: Array | None = None
    strategy: str = AUTO


NOTHING_ASKED = Asked()


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
    strategy: str = AUTO  # forces one under method auto
    swept: int | None = None  # forces the axis of the sweep under method incremental
    _outcomes: dict[tuple[object, ...], Outcome] = field(default_factory=dict)
    _coded: dict[str, tuple[Column, Array]] = field(default_factory=dict)
    _sums: dict[tuple[object, ...], Float64Array] = field(default_factory=dict)

    def result(self, aggregate: Aggregate) -> Result:
        """One aggregate's result in every window."""
        definition = aggregate.definition
        if aggregate.attribute is None:
            counts = self._extents()
            return self._masked(counts.copy(), Outcome(NO_VALUES, NO_VALUES, counts), 0, aggregate)
        for number, name in enumerate(aggregate.attributes):
            definition.check_type(data_type_of(self.columns[name].values.dtype), number)
        if definition.compose is not None:
            return self._composed(aggregate, definition.compose)
        column = self.columns[aggregate.attribute]
        found = data_type_of(column.values.dtype)
        if found.name == "string":
            return self._of_strings(aggregate, column)
        if definition.averages:
            return self._average(aggregate, column)
        outcome = self._outcome(aggregate, self._roomy(column) if definition.deviates else column)
        if definition.divides:
            outcome = outcome._replace(counts=self._counts(aggregate, outcome))
        return self._masked(self._finished(definition, outcome, found), outcome, definition.least, aggregate)

    def keep(self, outcomes: Mapping[tuple[object, ...], Outcome]) -> None:
        """Primitives that somebody computed already: by attributes, operation, and None twice for plain values."""
        self._outcomes.update(outcomes)

    def _finished(self, definition: Definition, outcome: Outcome, found: DataType) -> Array:
        assert definition.finish is not None
        return definition.finish(outcome, found)

    def _composed(self, aggregate: Aggregate, compose: Compose) -> Result:
        """An aggregate made of several primitives, over the cells at which all its arguments are present."""
        refuse_strategy(self.strategy, aggregate)
        primitives = WindowPrimitives(self, [self.columns[name] for name in aggregate.attributes], aggregate.attributes)
        values, missing = compose(primitives)
        outcome = Outcome(NO_VALUES, NO_VALUES, primitives.counts())
        found = self._masked(values, outcome, aggregate.definition.least, aggregate)
        return found if missing is None else Result(found.values, _either(found.missing, missing))

    def _average(self, aggregate: Aggregate, column: Column) -> Result:
        """Averages in one go, unless there are sums already, or other methods are asked for."""
        definition = aggregate.definition
        column = self._roomy(column)
        if self.method == "auto" and ((aggregate.attribute,), "sum", None, None) not in self._outcomes:
            from windrow.kernels.windows import average_windows

            direct = average_windows(column.values, column.present, self.sweeps, self.out, self.strategy)
            if direct is not None:
                return self._masked(direct.reals, direct, definition.least, aggregate)
        outcome = self._outcome(aggregate, column)
        if outcome.counts is None and column.present is None and column.values.dtype.kind != "f":
            averages = np.empty(outcome.reals.shape)
            share_out(outcome.reals, clipped_counts(self.shape, self.sweeps), averages)
            return self._masked(averages, outcome, definition.least, aggregate)
        outcome = outcome._replace(counts=self._counts(aggregate, outcome))
        found = data_type_of(column.values.dtype)
        return self._masked(self._finished(definition, outcome, found), outcome, definition.least, aggregate)

    def _roomy(self, column: Column) -> Column:
        """Whole numbers as floats where their sums might leave 64 bits, for results that are floats anyway."""
        values = column.values
        if values.dtype.kind not in "iu" or values.dtype.itemsize < 4 or not values.size:
            return column
        if max(abs(int(values.min())), abs(int(values.max()))) * self._most_cells() < 2**63:
            return column
        return Column(values.astype(np.float64), column.present)

    def _most_cells(self) -> int:
        """The largest number of cells that any window can hold."""
        return most_cells(self.shape, self.sweeps)

    def _extents(self) -> npt.NDArray[np.int64]:
        return outer_product(clipped_counts(self.shape, self.sweeps))

    def _counts(self, aggregate: Aggregate, outcome: Outcome) -> npt.NDArray[np.int64]:
        """How many present values each window has, counted only now if the kernel did not."""
        if outcome.counts is not None:
            return outcome.counts
        assert aggregate.attribute is not None
        # Counting beside is nobody's wish, and need not go the way that was asked for.
        counted = self._primitive((aggregate.attribute,), COUNT, self.columns[aggregate.attribute])
        assert counted.counts is not None
        return counted.counts

    def _outcome(self, aggregate: Aggregate, column: Column) -> Outcome:
        operation = aggregate.definition.operation
        assert operation is not None
        if operation == USER:
            return self._user_outcome(aggregate, column)
        ranked = (aggregate.name, aggregate.parameter) if aggregate.definition.ranks is not None else None
        ranks = aggregate.ranks(self._most_cells()) if ranked else None
        key = column.values.dtype if column is not self.columns[str(aggregate.attribute)] else None
        return self._primitive(
            (aggregate.attribute,), operation, column, ranks, (ranked, key), Asked(self.out, self.strategy)
        )

    def _primitive(
        self,
        name: tuple[object, ...],
        operation: str,
        column: Column,
        ranks: RankTable | None = None,
        detail: tuple[object, ...] = (None, None),
        asked: Asked = NOTHING_ASKED,
    ) -> Outcome:
        """A primitive of a column in every window, computed once for all aggregates that need it."""
        key = (name, operation, *detail)
        if key not in self._outcomes:
            self._outcomes[key] = self._run(operation, column, ranks, asked)
        return self._outcomes[key]

    def _run(self, operation: str, column: Column, ranks: RankTable | None, asked: Asked) -> Outcome:
        work = (operation, column.values, column.present, self.sweeps, ranks)
        if self.swept is not None:
            from windrow.kernels.papers.incremental import incremental_windows

            return incremental_windows(*work, self.swept)
        if self.method == "auto":
            from windrow.kernels.windows import compute_windows

            return compute_windows(*work, asked.out, asked.strategy)
        return kernel(self.method)(*work)

    def _user_outcome(self, aggregate: Aggregate, column: Column) -> Outcome:
        from windrow.kernels.user.windows import user_windows

        refuse_strategy(self.strategy, aggregate)
        user = aggregate.user
        work = (user.functions, column.values, column.present, self.sweeps, user.result.dtype)
        found = user_windows(*work, self.method, self.swept)
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
        if definition.divides:
            outcome = outcome._replace(counts=self._counts(aggregate, outcome))
        values = self._finished(definition, outcome, data_type_of(coded.values.dtype))
        if definition.picks:
            values = ordered[np.clip(values, 0, len(ordered) - 1)]
        return self._masked(values, outcome, definition.least, aggregate)

    def lists(self, wanted: Mask) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        """Some windows cell by cell: their numbers, all their cells, and where the cells of each begin."""
        yield from listed_windows(self.shape, self.sweeps, wanted)

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


def _either(one: Mask | None, other: Mask | None) -> Mask | None:
    return other if one is None else one if other is None else one | other


class WindowPrimitives:
    """Primitives over the windows of one block, of the cells at which all arguments are present."""

    def __init__(self, evaluation: Evaluation, columns: Sequence[Column], names: tuple[str, ...]) -> None:
        self.method = evaluation.method
        self._evaluation, self._columns, self._names = evaluation, columns, names
        self._present = _all_present(columns)
        self._sums = evaluation._sums

    def type_of(self, argument: int) -> DataType:
        return data_type_of(self._columns[argument].values.dtype)

    def reals(self, argument: int) -> Float64Array:
        """Values as floats, NaN where an argument is missing."""
        values = self._columns[argument].values.astype(np.float64)
        if self._present is not None:
            values[~self._present] = np.nan
        return values

    def counts(self) -> Int64Array:
        return self._run(COUNT, self._flags()).counts  # type: ignore[return-value]

    def sums(self, name: str, values: Callable[[], Float64Array]) -> Float64Array:
        key = (*self._names, name)
        if key not in self._sums:
            self._sums[key] = self._sum_up(key, values())
        return self._sums[key]

    def _sum_up(self, key: tuple[object, ...], values: Float64Array) -> Float64Array:
        """Sums; what is worked out to NaN at a cell that is present makes its sums NaN, and is not passed over."""
        lost = np.isnan(values) if self._present is None else np.isnan(values) & self._present
        if not lost.any():
            return self._evaluation._primitive(key, "sum", Column(values, self._present)).reals
        sums = self._evaluation._primitive(key, "sum", Column(np.where(lost, 0.0, values), self._present)).reals
        spoilt = self._evaluation._primitive((*key, "lost"), COUNT, Column(lost, lost)).counts
        return np.where(np.asarray(spoilt) > 0, np.nan, sums)

    def extremes(self, argument: int, operation: str) -> Array:
        values = self._columns[argument].values
        found = self._evaluation._primitive((*self._names, argument), operation, Column(values, self._present)).exact
        return found.astype(values.dtype, copy=False)

    def places(self, operation: str) -> Int64Array:
        """The place of the first or last cell of each window."""
        return self._run(operation, Column(self._order(), self._present)).exact

    def outermost(self, argument: int, operation: str) -> Array:
        values, found = self._columns[argument].values.reshape(-1), self.places(operation)
        if not values.size:
            return np.zeros(found.shape, values.dtype)
        order = self._order().reshape(-1)
        there = np.arange(len(order)) if self._present is None else np.flatnonzero(self._present)
        there = there[np.argsort(order[there], kind="stable")]
        at = np.searchsorted(order[there], found)
        return values[there[np.minimum(at, len(there) - 1)]] if len(there) else np.zeros(found.shape, values.dtype)

    def _order(self) -> Int64Array:
        """The cells' places in the order of coordinates, which is that of the block unless something else is said."""
        shape = self._columns[0].values.shape
        given = self._evaluation.columns.get(PLACES)
        return np.arange(math.prod(shape)).reshape(shape) if given is None else given.values

    def lists(self, wanted: Mask) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        present = None if self._present is None else self._present.reshape(-1)
        for numbers, cells, starts in self._evaluation.lists(wanted):
            yield numbers, *_only_present(cells, starts, present)

    def _flags(self) -> Column:
        return Column(np.zeros(self._columns[0].values.shape, np.int8), self._present)

    def _run(self, operation: str, column: Column) -> Outcome:
        key = (*self._names, "places" if operation != COUNT else "cells")
        return self._evaluation._primitive(key, operation, column)


def _all_present(columns: Sequence[Column]) -> Mask | None:
    """Where all columns have a value; None for everywhere."""
    present: Mask | None = None
    for column in columns:
        kind = column.values.dtype.kind
        lacking = np.isnan(column.values) if kind == "f" else np.isnat(column.values) if kind == "M" else None
        for there in (column.present, None if lacking is None or not lacking.any() else ~lacking):
            if there is not None:
                present = there if present is None else present & there
    return present


def _only_present(cells: Int64Array, starts: Int64Array, present: Mask | None) -> tuple[Int64Array, Int64Array]:
    if present is None:
        return cells, starts
    kept = present[cells]
    return cells[kept], np.concatenate([[0], np.cumsum(kept)])[starts]
