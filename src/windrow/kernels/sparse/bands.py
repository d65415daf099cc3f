"""Joins by bands of keys: how many right cells lie in the intervals of each left one, which, and their aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.contract.listing import in_shares
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome, prepared
from windrow.kernels.sparse.band_extremes import Extremes
from windrow.kernels.sparse.band_few import FewValues
from windrow.kernels.sparse.band_totals import Totals, totals_of
from windrow.kernels.sparse.places import NO_SKIPS, Bands, Block, Int64Array, expected_pairs, walk

__all__ = [
    "Bands",
    "Reduction",
    "count_bands",
    "count_block",
    "list_bands",
    "list_shares",
    "met_bands",
    "present_before",
    "reduce_bands",
    "reduce_several",
]

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_FLOATS = (np.float64, np.float32)  # of which compiled code reads values as they are

_FEW_STEPS = 1.0
"""Runs and pairs per right cell up to which values are better looked at as they are than prepared."""


class Reduction(NamedTuple):
    """One aggregate: ``count`` of the values that are present, ``sum``, ``min`` or ``max``."""

    operation: str
    values: Array
    present: Mask | None = None


def present_before(there: Mask) -> Int64Array:
    """How many cells are present before each place, and in all."""
    before = np.zeros(len(there) + 1, np.int64)
    np.cumsum(there, out=before[1:])
    return before


def count_bands(right: Int64Array, bands: Bands, before: Int64Array | None = None) -> Int64Array:
    """How many right cells each left cell meets, or how many that are present (``before``, of ``present_before``)."""
    counts = np.zeros(bands.cells, np.int64)
    for block in walk(right, bands):
        count_block(block, before, counts)
    return counts


def list_bands(right: Int64Array, bands: Bands, counts: Int64Array) -> Int64Array:
    """The places of the right cells that each left cell meets, in order, one left cell after the other.

    ``counts`` says how many each meets.
    """
    ends = np.cumsum(counts)
    places = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
    for block in walk(right, bands):
        own = slice(block.begin, block.end)
        _list(block.starts, block.stops, block.skip, ends[own] - counts[own], places)
    return places


def met_bands(right: Int64Array, bands: Bands) -> Int64Array:
    """The places of the right cells that any left cell meets, each once, in order."""
    marked = np.zeros(len(right), np.bool_)
    found = 0
    for block in walk(right, bands):
        found += _mark(block.starts, block.stops, block.skip, marked)
    places = np.empty(found, np.int64)
    if found:
        _marked_places(marked, places)
    return places


class Met(NamedTuple):
    """What the left cells from ``begin`` to before ``end`` meet: how many each, and the places of all in order."""

    begin: int
    end: int
    counts: Int64Array
    places: Int64Array


def list_shares(right: Int64Array, bands: Bands) -> Iterator[Met]:
    """As ``list_bands``, in one walk and as much at a time as memory should hold."""
    for block in walk(right, bands):
        sizes = np.subtract(block.stops, block.starts, dtype=np.int64).sum(0)
        for begin, end in in_shares(sizes):
            counts = sizes[begin:end]
            places = np.empty(int(counts.sum()), np.int64)
            runs = block.starts[:, begin:end], block.stops[:, begin:end]
            _list(*runs, NO_SKIPS, np.cumsum(counts) - counts, places)
            yield Met(block.begin + begin, block.begin + end, counts, places)


def reduce_bands(operation: str, values: Array, present: Mask | None, right: Int64Array, bands: Bands) -> Outcome:
    """Sum, minimum or maximum of what each left cell meets; as ``naive_windows`` otherwise."""
    return reduce_several([Reduction(operation, values, present)], right, bands)[0]


def reduce_several(reductions: Sequence[Reduction], right: Int64Array, bands: Bands) -> list[Outcome]:
    """Several aggregates in one walk over the cells; those of one column share what is done to it first."""
    work = expected_pairs(right, bands) + float(bands.cells) * len(bands.first)
    columns: dict[tuple[int, int], _Column | FewValues] = {}
    for operation, values, present in reductions:
        own = id(values), id(present)
        if own not in columns:
            few = present is None and values.dtype in _FLOATS and work < _FEW_STEPS * len(right)
            columns[own] = FewValues(values, bands.cells) if few else _Column(values, present, bands.cells, work)
        column = columns[own]
        if isinstance(column, _Column):
            column.ask(operation)
    every = np.zeros(bands.cells, np.int64)
    counted = any(isinstance(column, _Column) and column.before is None for column in columns.values())
    for block in walk(right, bands):
        if counted:
            count_block(block, None, every)
        for column in columns.values():
            column.take(block)
    outcomes = []
    for operation, values, present in reductions:
        column = columns[id(values), id(present)]
        outcomes.append(column.outcome(operation, every))
    return outcomes


class _Column:
    """What is being computed of one column."""

    def __init__(self, values: Array, present: Mask | None, cells: int, work: float) -> None:
        self._flat, self._there = prepared(values, present)
        self._cells, self._work = cells, work
        self.before = None if self._there.all() else present_before(self._there)
        self._counts = np.zeros(0 if self.before is None else cells, np.int64)
        self._sums: Totals | None = None
        self._extremes: dict[str, Extremes] = {}

    def ask(self, operation: str) -> None:
        if operation == "sum" and self._sums is None:
            self._sums = totals_of(self._flat, self._there, self._cells, self._work)
        elif operation in ("min", "max") and operation not in self._extremes:
            self._extremes[operation] = Extremes(operation, self._flat, self._there, self._cells)

    def take(self, block: Block) -> None:
        if self.before is not None:
            count_block(block, self.before, self._counts)
        if self._sums is not None:
            self._sums.take(block)
        for extreme in self._extremes.values():
            extreme.take(block)

    def outcome(self, operation: str, every: Int64Array) -> Outcome:
        counts = every if self.before is None else self._counts
        if operation == "sum" and self._sums is not None:
            return Outcome(*self._sums.result(), counts)
        exact = self._extremes[operation].result() if operation in self._extremes else NO_VALUES
        return Outcome(NO_VALUES, exact, counts)


def count_block(block: Block, before: Int64Array | None, counts: Int64Array) -> None:
    """Add to the counts of all left cells what those of a block meet, or how much of it is present."""
    own = counts[block.begin : block.end]
    if before is None:
        _count(block.starts, block.stops, block.skip, own)
    else:
        _count_present(before, block.starts, block.stops, block.skip, own)


@kernel
def _count(starts: Array, stops: Array, skip: Array, counts: Array) -> None:
    for run in range(len(starts)):
        for cell in range(len(counts)):
            counts[cell] += np.int64(stops[run, cell] - starts[run, cell])
    for run in range(len(starts)):
        for cell in range(len(skip)):
            counts[cell] -= np.int64(starts[run, cell]) <= skip[cell] < np.int64(stops[run, cell])


@kernel
def _count_present(before: Array, starts: Array, stops: Array, skip: Array, counts: Array) -> None:
    for cell in range(len(counts)):
        total = np.int64(0)
        for run in range(len(starts)):
            total += before[np.uint64(stops[run, cell])] - before[np.uint64(starts[run, cell])]
        counts[cell] = total
    for run in range(len(starts)):
        for cell in range(len(skip)):
            if np.int64(starts[run, cell]) <= skip[cell] < np.int64(stops[run, cell]):
                counts[cell] -= before[skip[cell] + 1] - before[skip[cell]]


@kernel
def _list(starts: Array, stops: Array, skip: Array, filled: Array, places: Array) -> None:
    for cell in range(len(filled)):
        left_out = skip[cell] if len(skip) > 0 else np.int64(-1)
        at = np.uint64(filled[cell])
        for run in range(len(starts)):
            for place in range(np.int64(starts[run, cell]), np.int64(stops[run, cell])):
                if place != left_out:
                    places[at] = place
                    at += np.uint64(1)


@kernel
def _mark(starts: Array, stops: Array, skip: Array, marked: Array) -> Any:
    """Mark what is met; says how much of it was not marked before."""
    found = np.int64(0)
    for run in range(len(starts)):
        for cell in range(starts.shape[1]):
            left_out = skip[cell] if len(skip) > 0 else np.int64(-1)
            for place in range(np.uint64(starts[run, cell]), np.uint64(stops[run, cell])):
                if np.int64(place) != left_out:
                    found += np.int64(not marked[place])
                    marked[place] = True
    return found


@kernel
def _marked_places(marked: Array, places: Array) -> None:
    at = np.uint64(0)
    for place in range(np.uint64(len(marked))):
        if at < np.uint64(len(places)):
            places[at] = place
        at += np.uint64(marked[place])
