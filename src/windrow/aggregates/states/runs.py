"""Rows of states that are neighbourhoods of cells: runs of cells in order, which share most of their cells.

They are never listed where that can be helped: a state is folded straight from the cells, and left cells that have one
neighbourhood share what was folded of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.aggregates.bands import BandNeighbours
from windrow.aggregates.states.rows import Array, Int64Array, Mask, Ranges, Rows, State, values_there
from windrow.kernels.sparse.bands import list_bands, present_before
from windrow.kernels.sparse.places import Block

FEW = 8
"""As many times more cells than groups there are, for all cells to be more than the groups should look at."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Groups that are neighbourhoods of cells; ``numbers`` has the neighbourhood of each group."""

    neighbours: BandNeighbours
    numbers: Int64Array

    @property
    def sizes(self) -> Int64Array:
        """How many rows each group has."""
        return self.neighbours.counts if self.one_each else self.neighbours.counts[self.numbers]

    @cached_property
    def one_each(self) -> bool:
        """Whether the groups are the neighbourhoods, in their order."""
        return len(self.numbers) == self.neighbours.bands.cells and bool(
            (self.numbers == np.arange(len(self.numbers))).all()
        )

    def rows(self, arguments: tuple[Array, ...], present: Mask | None) -> RunRows:
        """The groups with the values of their cells."""
        return RunRows(arguments, present, self)

    def take(self, chosen: Int64Array) -> Runs:
        """Some of the groups; neighbourhoods that none of them has are left out."""
        numbers = self.numbers[chosen]
        own = np.flatnonzero(np.bincount(numbers, minlength=self.neighbours.bands.cells))
        renumbered = np.zeros(self.neighbours.bands.cells, np.int64)
        renumbered[own] = np.arange(len(own))
        return Runs(self.neighbours.take(own), renumbered[numbers])

    def list_cells(self) -> tuple[Int64Array, Int64Array]:
        """The cells of all groups, one group after the other, and where each begins."""
        counts = self.neighbours.counts
        cells = list_bands(self.neighbours.cells, self.neighbours.bands, counts)
        sizes, begins = self.sizes, np.cumsum(counts) - counts
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        within = np.arange(int(starts[-1])) - np.repeat(starts[:-1], sizes)
        return cells[np.repeat(begins[self.numbers], sizes) + within], starts


@dataclass(frozen=True, eq=False)
class RunRows:
    """The values of cells, and the neighbourhoods that are made of them."""

    arguments: tuple[Array, ...]
    present: Mask | None
    runs: Runs

    @property
    def groups(self) -> int:
        """How many neighbourhoods there are."""
        return self.runs.neighbours.bands.cells

    def there(self) -> Mask:
        return values_there(self.arguments, self.present)

    @property
    def few(self) -> bool:
        return self.groups * FEW <= len(self.runs.neighbours.cells)

    def ranges(self) -> Iterator[Ranges]:
        for found in self.narrow_ranges():
            yield found.widened()

    @property
    def one_each(self) -> bool:
        return self.runs.one_each

    def narrow_ranges(self) -> Iterator[Ranges]:
        if not len(self.runs.neighbours.bands.first):
            nowhere = np.zeros((0, self.groups), np.int64)
            yield Ranges(0, self.groups, nowhere, nowhere)
        for block in self.runs.neighbours.walk():
            yield Ranges(block.begin, block.end, *_without_skips(block))

    def count_there(self, there: Mask) -> Int64Array:
        neighbours = self.runs.neighbours
        return neighbours.counts if there.all() else _count_present(neighbours, there)

    def spread(self, state: State) -> State:
        """What is known of neighbourhoods, for each group."""
        if self.runs.one_each:
            return state
        return {name: part[self.runs.numbers] for name, part in state.items()}

    def listed(self) -> Rows:
        """The same as rows one after the other, for what has to look at each of them."""
        cells, starts = self.runs.list_cells()
        present = None if self.present is None else self.present.reshape(-1)[cells]
        return Rows(tuple(np.asarray(values).reshape(-1)[cells] for values in self.arguments), present, starts)


def _count_present(neighbours: BandNeighbours, there: Mask) -> Int64Array:
    before = present_before(there)
    counts = np.zeros(neighbours.bands.cells, np.int64)
    for block in neighbours.walk():
        starts, stops = _without_skips(block)
        counts[block.begin : block.end] = (before[stops] - before[starts]).sum(axis=0)
    return counts


def _without_skips(block: Block) -> tuple[Array, Array]:
    """The runs of a block; one with a cell that is left out becomes two, one before it and one behind it."""
    if not len(block.skip):
        return block.starts, block.stops
    starts, stops = block.starts.astype(np.int64), block.stops.astype(np.int64)
    holds = (starts <= block.skip) & (block.skip < stops)
    nothing = np.zeros_like(block.skip)
    behind = np.where(holds, stops, 0).max(axis=0, initial=0)
    begins = np.where(holds.any(axis=0), block.skip + 1, nothing)
    return np.vstack([starts, begins]), np.vstack([np.where(holds, block.skip, stops), behind])
