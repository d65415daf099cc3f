"""Aggregates at the cells of a sparse array, over whatever neighbourhoods they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.evaluate import Column, Evaluation, Mask, kernel
from windrow.kernels.cell_rows import Int64Array, Neighbourhoods, Rows
from windrow.kernels.cell_windows import neighbour_counts, neighbour_lists, reduce_ranges, strip_sizes, strips
from windrow.kernels.results import NO_VALUES, Outcome, prepared
from windrow.kernels.sweep import VariableSweep

LISTED_AT_ONCE = 2**21
"""Neighbours listed before they are reduced, which bounds the memory that wide neighbourhoods take."""

MUCH_SHARED = 10
"""How often a cell must serve again, while windows slide along a row, for a state to be worth its upkeep."""

Reduce = Callable[[Column, VariableSweep], Outcome]


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

    def lists(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        """All neighbours of some cells at a time, one neighbourhood after the other."""
        for begin, end in _shares(self.counts):
            counts = self.counts[begin:end]
            ends = np.cumsum(counts)
            cells = neighbour_lists(self.rows, self.hoods.part(begin, end), counts)
            yield cells, VariableSweep(ends - counts, ends - 1)

    def strips(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        """The cells of some groups of windows at a time, in the order in which the windows slide over them."""
        sizes, start = self.strip_sizes, self.hoods.start
        for first, last in _shares(sizes):
            part = self.hoods.part(int(start[first]), int(start[last]))
            cells, lo, hi = strips(self.rows, part, sizes[first:last])
            yield cells, VariableSweep(lo, hi)


def _shares(sizes: Int64Array) -> Iterator[tuple[int, int]]:
    """Ranges of about as much work as memory should hold; never less than one."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + LISTED_AT_ONCE, "right")))
        yield begin, end
        begin = end


class CellEvaluation(Evaluation):
    """As Evaluation, at cells: results are vectors, with one value for each neighbourhood."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        neighbours: CellNeighbours,
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

    def _outcome(self, aggregate: Aggregate, column: Column) -> Outcome:
        operation = aggregate.definition.operation or "count"
        named = operation in ("select", "user")
        key = (aggregate.attribute, operation, aggregate.name if named else None, aggregate.parameter)
        if key not in self._outcomes:
            self._outcomes[key] = self._computed(operation, aggregate, column)
        return self._outcomes[key]

    def _computed(self, operation: str, aggregate: Aggregate, column: Column) -> Outcome:
        rows, hoods = self.neighbours.rows, self.neighbours.hoods
        if operation == "count":
            return Outcome(NO_VALUES, NO_VALUES, neighbour_counts(rows, hoods, _there(column)))
        slides = self._slides()
        if self.method == "auto" and operation in ("sum", "min", "max") and not slides:
            return reduce_ranges(operation, column.values, column.present, rows, hoods)
        most = int(self.neighbours.counts.max(initial=0))
        reduce = _reduction(operation, aggregate, "incremental" if slides else "naive", most)
        pieces = self.neighbours.strips() if slides else self.neighbours.lists()
        return _joined([reduce(_taken(column, cells), windows) for cells, windows in pieces], reduce, column)

    def _slides(self) -> bool:
        """Whether a state is kept while windows slide; shapes hold another range in every row, and cannot."""
        if self.method == "naive" or self.neighbours.hoods.listed:
            return False
        shared = MUCH_SHARED * int(self.neighbours.strip_sizes.sum())
        return self.method == "incremental" or int(self.neighbours.counts.sum()) > shared


def _reduction(operation: str, aggregate: Aggregate, method: str, most: int) -> Reduce:
    """The kernel of a method as a function of values and windows alone."""
    if operation != "user":
        run, ranks = kernel(method), aggregate.ranks(most)
        return lambda column, windows: run(operation, column.values, column.present, [windows], ranks)

    def reduce(column: Column, windows: VariableSweep) -> Outcome:
        from windrow.kernels.user import user_windows

        user = aggregate.user
        found = user_windows(user.functions, column.values, column.present, [windows], user.result.dtype, method)
        return Outcome(NO_VALUES, *found)

    return reduce


def _joined(outcomes: list[Outcome], reduce: Reduce, column: Column) -> Outcome:
    if not outcomes:  # no neighbourhoods: a kernel still says of which types nothing is
        nothing = np.zeros(0, np.int64)
        return reduce(_taken(column, nothing), VariableSweep(nothing, nothing))
    if len(outcomes) == 1:
        return outcomes[0]
    reals, exact, counts = (np.concatenate([outcome[k] for outcome in outcomes]) for k in range(3))
    return Outcome(reals, exact, counts)


def _taken(column: Column, cells: Int64Array) -> Column:
    return Column(column.values[cells], None if column.present is None else column.present[cells])


def _there(column: Column) -> npt.NDArray[np.bool_] | None:
    if column.values.dtype.kind != "f":
        return column.present
    return prepared(column.values, column.present)[1]
