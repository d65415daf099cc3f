"""Order statistics of groups of sparse cells without a sort: values are counted, laid group by group, and parted.

A task lays the values of a part group by group, for it knows how many each has. What parts give is laid side by side in
the same way, and tasks then part some groups each around the ranks that are asked for.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.columns import Result
from windrow.aggregates.folds import finish_rank
from windrow.execution.executor import Executor, Job
from windrow.model.schema import Schema
from windrow.operations.query.fused.pipeline import output_type
from windrow.operations.query.fused.sparse_fold import PartTask, SparseFold
from windrow.storage.cells import cell_fields
from windrow.storage.parts import MASKED_CELLS

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

COPIES = 3
"""How often values are held: as parts give them, side by side, and in what is read."""
RANGE_CELLS = 2**19
"""Values of the groups that one task parts."""


@dataclass(frozen=True, eq=False)
class PartValues:
    """The values of a part, group by group: how many cells and values each group has, and where groups begin."""

    groups: slice
    cells: Int64Array
    counts: Int64Array
    values: Array


def lay_part(task: PartTask) -> PartValues:
    """The values that a part has, those that are missing left out."""
    from windrow.kernels.folds.cells import count_cells, lay_values
    from windrow.operations.query.fused.lending import lend

    work, part = task.work, task.part
    names, (argument,) = work.stored.schema.dimension_names, work.arguments
    groups = work.groups.within(names, part.box if work.box is None else part.box & work.box)
    cells, counts = np.zeros(groups.count, np.int64), np.zeros(groups.count, np.int64)
    pieces: list[tuple[Array, Array, Int64Array]] = []
    for batch in work.batches(part):
        rows, tile = batch.rows, batch.tile
        numbers = groups.number(batch.keys, np.empty(rows, np.int64))
        chosen = work.fold.choose_cells(tile, (rows,), batch.alive)
        values, present = work.fold.values_of(argument, tile, (rows,), chosen)
        count_cells(lend(chosen), numbers, cells)
        count_cells(lend(present), numbers, counts)
        pieces.append((lend(values), lend(present), numbers))
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    laid = np.empty(int(places[-1]), output_type(work.fold.pipeline, argument).dtype)
    for values, present, numbers in pieces:
        lay_values(values, present, numbers, places, laid)
    return PartValues(groups.range, cells, counts, laid)


@dataclass(frozen=True, eq=False)
class RangeTask:
    """A task: the order statistics of some groups, whose values lie side by side."""

    work: SparseFold
    values: Array
    starts: Int64Array


def rank_range(task: RangeTask) -> list[Result]:
    from windrow.kernels.folds.select import select_groups

    counts = np.diff(task.starts)
    (argument,) = task.work.arguments
    ranks = []
    for _, aggregate in task.work.aggregates:
        rule = aggregate.definition.ranks
        assert rule is not None
        ranks.append((rule.at(aggregate.fraction, counts), rule.interpolates))
    outcomes = select_groups(task.values, task.starts, ranks)
    found = output_type(task.work.fold.pipeline, argument)
    named = zip(task.work.aggregates, outcomes, strict=True)
    return [finish_rank(aggregate, outcome, found) for (_, aggregate), outcome in named]


def held_bytes(work: SparseFold, cells: int) -> int:
    """What is held of so many cells."""
    (argument,) = work.arguments
    return COPIES * cells * output_type(work.fold.pipeline, argument).itemsize + 32 * work.groups.count


def rank_sparse(executor: Executor, work: SparseFold, schema: Schema) -> pa.Table:
    """A row for each group that has cells, in the order of their coordinates."""
    parts = work.stored.snapshot.touching(work.box)
    tasks = [PartTask(work, part) for part in parts]
    width = 8 * (1 + work.stored.schema.ndim) + work.stored.schema.bytes_of(work.attributes)
    largest = max((part.cells for part in parts), default=0) * (width + 16) + 4 * MASKED_CELLS * width
    laid = executor.run(Job("computing totals", lay_part, tasks, largest))
    cells, values, starts = _join(work, laid)
    del laid
    cuts = [0, *np.searchsorted(starts, np.arange(RANGE_CELLS, int(starts[-1]), RANGE_CELLS)).tolist(), len(starts) - 1]
    ranges = [(lo, hi) for lo, hi in itertools.pairwise(cuts) if lo < hi]
    some = [RangeTask(work, values[starts[lo] : starts[hi]], starts[lo : hi + 1] - starts[lo]) for lo, hi in ranges]
    results = executor.run(Job("computing totals", rank_range, some))
    occurring = np.flatnonzero(cells) if work.groups.groupings else np.zeros(1, np.int64)
    places = work.groups.places(occurring) if work.groups.groupings else [np.zeros(1, np.int64)]
    columns = []
    for number, attribute in enumerate(schema.attributes):
        pieces = [one[number] for one in results]
        found = np.concatenate([piece.values for piece in pieces])
        missing = np.concatenate([_lacking(piece) for piece in pieces])
        columns.append(Result(found[occurring], missing[occurring]).to_arrow(attribute.type))
    return pa.table([*map(pa.array, places), *columns], schema=cell_fields(schema))


def _lacking(result: Result) -> Array:
    return np.zeros(len(result.values), bool) if result.missing is None else result.missing


def _join(work: SparseFold, laid: list[PartValues]) -> tuple[Int64Array, Array, Int64Array]:
    """The cells of each group, all values group by group, and where groups begin."""
    from windrow.kernels.folds.cells import lay_groups

    cells, counts = np.zeros(work.groups.count, np.int64), np.zeros(work.groups.count, np.int64)
    for part in laid:
        cells[part.groups] += part.cells
        counts[part.groups] += part.counts
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    values = np.empty(int(starts[-1]), output_type(work.fold.pipeline, work.arguments[0]).dtype)
    places = starts[:-1].copy()
    for part in laid:
        lay_groups(part.values, part.counts, places[part.groups], values)
    return cells, values, starts
