"""Rows that enter results and leave them: of a total the cells of an array, of a join its pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.aggregates.windows import Column
from windrow.kernels.sparse.order import coordinate_order, run_starts

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Entering:
    """Rows by the number of the result that each belongs to, with the values that aggregates take."""

    numbers: Int64Array
    columns: Mapping[str, Column]

    def sorted_into(self, results: int) -> tuple[dict[str, Column], Int64Array]:
        """The values in the order of results, and where those of each begin."""
        # Numbers of two bytes are sorted by counting, in a fifth of the time; most batches touch so few results.
        keys = self.numbers.astype(np.uint16) if results <= 2**16 else self.numbers
        order = np.argsort(keys, kind="stable")
        counts = np.bincount(self.numbers, minlength=results)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return {name: take(column, order) for name, column in self.columns.items()}, starts

    def of(self, chosen: Int64Array) -> Entering:
        """The rows of some results, which are numbered anew; ``chosen`` has the new number of each, or -1."""
        numbers = chosen[self.numbers]
        kept = np.flatnonzero(numbers >= 0)
        return Entering(numbers[kept], {name: take(column, kept) for name, column in self.columns.items()})


def take(column: Column, order: npt.NDArray[np.intp]) -> Column:
    return Column(column.values[order], None if column.present is None else column.present[order])


def join_rows(pieces: Sequence[Entering], like: Entering) -> Entering:
    """Rows of several kinds together."""
    if len(pieces) == 1:
        return pieces[0]
    columns = {}
    for name in like.columns:
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
