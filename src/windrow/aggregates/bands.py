"""Neighbourhoods that are bands of keys: cells as sorted numbers, and for each neighbourhood some ranges of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column, Result
from windrow.aggregates.definition import Int64Array, Mask
from windrow.aggregates.sparse_windows import REDUCED, CellEvaluation
from windrow.kernels.contract.listing import AT_ONCE, in_shares
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.sweeps import VariableSweep
from windrow.kernels.sparse.bands import (
    Reduction,
    count_bands,
    count_block,
    list_bands,
    present_before,
    reduce_bands,
    reduce_several,
)
from windrow.kernels.sparse.places import Bands, Block, walk


@dataclass(frozen=True, eq=False)
class BandNeighbours:
    """Cells with the ascending keys ``cells``, and the bands of keys in which aggregates are wanted."""

    cells: Int64Array
    bands: Bands

    @cached_property
    def counts(self) -> Int64Array:
        return count_bands(self.cells, self.bands)

    def walk(self) -> Iterator[Block]:
        """The places of all bands, block by block; whoever walks through all of them also counts their cells."""
        counts = None if "counts" in self.__dict__ else np.zeros(self.bands.cells, np.int64)
        for block in walk(self.cells, self.bands):
            if counts is not None:
                count_block(block, None, counts)
            yield block
        if counts is not None:
            self.__dict__["counts"] = counts

    def take(self, chosen: Int64Array) -> BandNeighbours:
        """Some of the neighbourhoods, by their numbers in order."""
        found = BandNeighbours(self.cells, self.bands.take(chosen))
        if "counts" in self.__dict__:
            found.__dict__["counts"] = self.counts[chosen]
        return found

    def slides(self, method: str) -> bool:
        """A neighbourhood of several bands shares too little with the next one for a state to be kept."""
        return False

    def count_present(self, there: Mask | None) -> Int64Array:
        if there is None:
            return self.counts
        return count_bands(self.cells, self.bands, present_before(there))

    def reduce(self, operation: str, column: Column) -> Outcome:
        return reduce_bands(operation, column.values, column.present, self.cells, self.bands)

    def lists(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        for begin, end in in_shares(self.counts, AT_ONCE):
            counts = self.counts[begin:end]
            ends = np.cumsum(counts)
            yield list_bands(self.cells, self.bands.part(begin, end), counts), VariableSweep(ends - counts, ends - 1)

    def reduce_several(self, wanted: Sequence[tuple[str, Column]]) -> list[Outcome]:
        """Several of them in one walk over the cells, which also counts the cells of each neighbourhood."""
        every = Reduction("count", np.zeros(len(self.cells), bool))
        asked = [Reduction(operation, column.values, column.present) for operation, column in wanted]
        counted, *found = reduce_several([every, *asked], self.cells, self.bands)
        self.__dict__["counts"] = counted.counts
        return found

    def strips(self) -> Iterator[tuple[Int64Array, VariableSweep]]:
        return self.lists()


def evaluate_bands(
    columns: Mapping[str, Column],
    neighbours: BandNeighbours,
    aggregates: Sequence[Aggregate],
    method: str,
    min_count: int,
) -> list[Result]:
    """Aggregates in bands of cells; those that need no list of the cells are computed in one walk."""
    wanted = {}
    if method == "auto":
        for aggregate in aggregates:
            operation = aggregate.definition.operation
            if aggregate.definition.compose is None and operation in REDUCED:
                column = columns[str(aggregate.attribute)]
                if column.values.dtype.kind in "fiub" and not aggregate.definition.deviates:
                    wanted[((aggregate.attribute,), operation, None, None)] = (operation, column)
    outcomes = neighbours.reduce_several(list(wanted.values())) if wanted else []
    evaluation = CellEvaluation(columns, neighbours, method, min_count)
    evaluation.keep(dict(zip(wanted, outcomes, strict=True)))
    return [evaluation.result(aggregate) for aggregate in aggregates]
