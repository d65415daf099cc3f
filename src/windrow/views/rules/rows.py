"""Rows that enter results and leave them: of a total the cells of an array, of a join its pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.aggregates.columns import Column
from windrow.aggregates.states.layout import PAIRS, Layout
from windrow.aggregates.states.rule import State
from windrow.aggregates.states.runs import Runs
from windrow.kernels.sparse.order import coordinate_order, run_starts

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Entering:
    """Rows by the number of the result that each belongs to, with the values that aggregates take."""

    numbers: Int64Array
    columns: Mapping[str, Column]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    @property
    def results(self) -> Int64Array:
        """The results that any row belongs to."""
        return np.unique(self.numbers)

    def sorted_into(self, results: int) -> tuple[dict[str, Column], Int64Array]:
        """The values in the order of results, and where those of each begin."""
        # Numbers of two bytes are sorted by counting, in a fifth of the time; most batches touch so few results.
        keys = self.numbers.astype(np.uint16) if results <= 2**16 else self.numbers
        order = np.argsort(keys, kind="stable")
        counts = np.bincount(self.numbers, minlength=results)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return {name: take(column, order) for name, column in self.columns.items()}, starts

    def come_to(self, layout: Layout, state: State, results: int, at: Int64Array | None = None) -> State:
        """States after these rows came; ``at`` says where those of the results are, if they are not those given."""
        return layout.enter(state, *self.sorted_into(results), at=at)

    def leave_from(self, layout: Layout, state: State, results: int) -> State:
        """States after these rows left."""
        return layout.leave(state, *self.sorted_into(results))

    def of(self, chosen: Int64Array) -> Entering:
        """The rows of some results, which are numbered anew; ``chosen`` has the new number of each, or -1."""
        numbers = chosen[self.numbers]
        kept = np.flatnonzero(numbers >= 0)
        return Entering(numbers[kept], {name: take(column, kept) for name, column in self.columns.items()})


@dataclass(frozen=True, eq=False)
class EnteringRuns:
    """The same as neighbourhoods of cells: each result's rows are runs of the cells that the columns are of."""

    runs: Runs
    columns: Mapping[str, Column]

    @property
    def count(self) -> int:
        return int(self.runs.sizes.sum())

    @property
    def results(self) -> Int64Array:
        return np.flatnonzero(self.runs.sizes)

    def sorted_into(self, results: int) -> tuple[Mapping[str, Column], Runs]:
        return self.columns, self.runs

    def come_to(self, layout: Layout, state: State, results: int, at: Int64Array | None = None) -> State:
        return layout.enter(state, self.columns, self.runs, at=at)

    def leave_from(self, layout: Layout, state: State, results: int) -> State:
        return layout.leave(state, self.columns, self.runs)

    def of(self, chosen: Int64Array) -> EnteringRuns:
        members = np.flatnonzero(chosen >= 0)
        numbered = np.empty(len(members), np.int64)
        numbered[chosen[members]] = members
        return EnteringRuns(self.runs.take(numbered), self.columns)


@dataclass(frozen=True, eq=False)
class EnteringStates:
    """The same as states, one for each result: rows that were put together where they were found."""

    states: State

    @property
    def count(self) -> int:
        return int(self.states[PAIRS].sum())

    def come_to(self, layout: Layout, state: State, results: int, at: Int64Array | None = None) -> State:
        return layout.merge(state if at is None else layout.take(state, at), self.states)

    def leave_from(self, layout: Layout, state: State, results: int) -> State:
        return layout.remove(state, self.states)

    def of(self, chosen: Int64Array) -> EnteringStates:
        members = np.flatnonzero(chosen >= 0)
        numbered = np.empty(len(members), np.int64)
        numbered[chosen[members]] = members
        return EnteringStates({name: part[numbered] for name, part in self.states.items()})


FoundRows = Entering | EnteringRuns
AnyEntering = FoundRows | EnteringStates


def take(column: Column, order: npt.NDArray[np.intp]) -> Column:
    return Column(column.values[order], None if column.present is None else column.present[order])


def join_rows(pieces: Sequence[Entering]) -> Entering:
    """Rows that were found piece by piece, at least one of them, together."""
    if len(pieces) == 1:
        return pieces[0]
    columns = {}
    for name in pieces[0].columns:
        parts = [piece.columns[name] for piece in pieces]
        values = np.concatenate([part.values for part in parts])
        masks = [np.ones(len(part.values), bool) if part.present is None else part.present for part in parts]
        whole = all(part.present is None for part in parts)
        columns[name] = Column(values, None if whole else np.concatenate(masks))
    return Entering(np.concatenate([piece.numbers for piece in pieces]), columns)


def number_places(at: Sequence[Int64Array]) -> tuple[list[Int64Array], Int64Array]:
    """The different places, in order, and for each row the number of its place."""
    rows = len(at[0])
    order = coordinate_order(list(at))
    ordered = [column[order] for column in at]
    starts = run_starts(ordered, rows)
    numbers = np.empty(rows, np.int64)
    numbers[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return [column[starts[:-1]] for column in ordered], numbers
