"""Aggregates at the cells of a sparse array, over whatever neighbourhoods they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column
from windrow.aggregates.windows import COUNT, Asked, Evaluation, Mask, kernel
from windrow.kernels.contract.listing import AT_ONCE, in_shares
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome, prepared
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import VariableSweep
from windrow.kernels.sparse.rows import Int64Array, Neighbourhoods, Rows
from windrow.kernels.sparse.windows import neighbour_counts, neighbour_lists, reduce_ranges, strip_sizes, strips

LISTED_AT_ONCE = AT_ONCE
"""Neighbours listed before they are reduced, which bounds the memory that wide neighbourhoods take."""

REDUCED = ("sum", "min", "max")
"""Operations that are reduced while neighbours are being found, without a list of them."""

MUCH_SHARED = 10
"""How often a cell must serve again, while windows slide along a row, for a state to be worth its upkeep."""

Reduce = Callable[[Column, VariableSweep], Outcome]


class Neighbours(Protocol):
    """Which cells are in which neighbourhood, however they are found."""

    @property
    def counts(self) -> Int64Array:
        """How many cells each neighbourhood holds."""

    def slides(self, method: str) -> bool:
        """Whether a state is kept while neighbourhoods slide along a row."""

    def count_present(self, there: Mask | None) -> Int64Array:
        """How many cells each neighbourhood holds of those that are there."""

    def reduce(self, operation: str, column: Column) -> Outcome:
        """Sum, minimum or maximum over each neighbourhood, without a list of its cells."""

    def lists(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        """All neighbours of some cells at a time, one neighbourhood after the other."""

    def strips(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        """The cells of some neighbourhoods at a time, in the order in which those that slide pass over them."""


@dataclass(frozen=True)
class CellNeighbours:
    """Cells in coordinate order, and the neighbourhoods in which aggregates are wanted."""

    rows: Rows
    hoods: Neighbourhoods

    @cached_property
    def counts(self) -> Int64Array:
        """How many cells each neighbourhood holds."""
        return neighbour_counts(self.rows, self.hoods)

    @cached_property
    def strip_sizes(self) -> Int64Array:
        """How many cells the windows of each group hold together."""
        return strip_sizes(self.rows, self.hoods)

    def slides(self, method: str) -> bool:
        """Shapes hold another range in every row, and cannot slide."""
        if method == "naive" or self.hoods.listed:
            return False
        shared = MUCH_SHARED * int(self.strip_sizes.sum())
        return method == "incremental" or int(self.counts.sum()) > shared

    def count_present(self, there: Mask | None) -> Int64Array:
        return neighbour_counts(self.rows, self.hoods, there)

    def reduce(self, operation: str, column: Column) -> Outcome:
        return reduce_ranges(operation, column.values, column.present, self.rows, self.hoods)

    def lists(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        """All neighbours of some cells at a time, one neighbourhood after the other."""
        for begin, end in in_shares(self.counts, LISTED_AT_ONCE):
            counts = self.counts[begin:end]
            ends = np.cumsum(counts)
            cells = neighbour_lists(self.rows, self.hoods.part(begin, end), counts)
            yield cells, VariableSweep(ends - counts, ends - 1)

    def strips(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        """The cells of some groups of windows at a time, in the order in which the windows slide over them."""
        sizes, start = self.strip_sizes, self.hoods.start
        for first, last in in_shares(sizes, LISTED_AT_ONCE):
            part = self.hoods.part(int(start[first]), int(start[last]))
            cells, lo, hi = strips(self.rows, part, sizes[first:last])
            yield cells, VariableSweep(lo, hi)


class CellEvaluation(Evaluation):
    """As Evaluation, at cells: results are vectors, with one value for each neighbourhood."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        neighbours: Neighbours,
        method: str = "auto",
        min_count: int = 0,
        outside: Mask | None = None,
    ) -> None:
        self.neighbours = neighbours
        ends = np.cumsum(neighbours.counts)
        windows = VariableSweep(ends - neighbours.counts, ends - 1)
        listed = int(ends[-1]) if len(ends) else 0
        borders = None if outside is None else [outside]
        super().__init__(columns, (listed,), [windows], method, min_count, outside is not None, borders)

    def lists(self, wanted: Mask) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        """Some neighbourhoods cell by cell."""
        begin = 0
        for cells, windows in self.neighbours.lists():
            numbers = np.arange(begin, begin + windows.count)
            begin += windows.count
            kept = wanted[numbers]
            sizes = windows.hi - windows.lo + 1
            starts = np.concatenate([[0], np.cumsum(sizes[kept])])
            yield numbers[kept], cells[np.repeat(kept, sizes)], starts

    def _run(self, operation: str, column: Column, ranks: RankTable | None, asked: Asked) -> Outcome:
        if operation == COUNT:
            return Outcome(NO_VALUES, NO_VALUES, self.neighbours.count_present(_there(column)))
        slides = self._slides()
        if self.method == "auto" and operation in REDUCED and not slides:
            return self.neighbours.reduce(operation, column)
        run = kernel("incremental" if slides else "naive")
        return self._reduce(
            column, slides, lambda taken, windows: run(operation, taken.values, taken.present, [windows], ranks)
        )

    def _user_outcome(self, aggregate: Aggregate, column: Column) -> Outcome:
        from windrow.kernels.user.windows import user_windows

        user, slides = aggregate.user, self._slides()
        method = "incremental" if slides else "naive"

        def reduce(taken: Column, windows: VariableSweep) -> Outcome:
            kind = user.result.dtype
            return Outcome(
                NO_VALUES, *user_windows(user.functions, taken.values, taken.present, [windows], kind, method)
            )

        return self._reduce(column, slides, reduce)

    def _reduce(self, column: Column, slides: bool, reduce: Reduce) -> Outcome:
        """A kernel over the neighbours of some cells at a time."""
        pieces = self.neighbours.strips() if slides else self.neighbours.lists()
        return _join([reduce(_take(column, cells), windows) for cells, windows in pieces], reduce, column)

    def _slides(self) -> bool:
        return self.neighbours.slides(self.method)


def _join(outcomes: list[Outcome], reduce: Reduce, column: Column) -> Outcome:
    if not outcomes:  # no neighbourhoods: a kernel still says of which types nothing is
        nothing = np.zeros(0, np.int64)
        return reduce(_take(column, nothing), VariableSweep(nothing, nothing))
    if len(outcomes) == 1:
        return outcomes[0]
    reals, exact, counts = (np.concatenate([outcome[k] for outcome in outcomes]) for k in range(3))
    return Outcome(reals, exact, counts)


def _take(column: Column, cells: Int64Array) -> Column:
    return Column(column.values[cells], None if column.present is None else column.present[cells])


def _there(column: Column) -> npt.NDArray[np.bool_] | None:
    if column.values.dtype.kind != "f":
        return column.present
    return prepared(column.values, column.present)[1]
