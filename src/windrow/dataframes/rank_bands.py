"""Quantiles over unbounded frames: a task gets those values of other tasks that can become an answer.

Where N rows lie elsewhere and a task sees n, each of its frames asks for one rank among N to N + n values. At most n of
those smaller than the answer are the task's own, so that the ranks elsewhere that matter are n + 2 in a row, however
large N is. Values are cut into slices and counted; then it is known in which slices those ranks lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.dataframes.keys import join_chunks, numbers, ordinals, sorted_order
from windrow.dataframes.sessions import collect_table, column_named, functions
from windrow.dataframes.slices import Division
from windrow.dataframes.spec import PLACE, TARGET, TIMES, TableAggregate
from windrow.dataframes.unbounded_states import Part
from windrow.dataframes.unseen_pieces import SIDE, VALUE, Elsewhere, Sent, groups_of, select_values
from windrow.model.frame import SortKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Int64Array = npt.NDArray[np.int64]

SLICES_PER_TASK = 4
MOST_SLICES = 1000
SAMPLED = 64
"""Values of a sample for each slice."""
SLICE = "__windrow_slice"


@dataclass(frozen=True, eq=False)
class ValueSlices:
    """Where the values of each partition are cut; equal values are in one slice."""

    groups: Mapping[int, int]  # the partition of each piece
    edges: Mapping[int, pa.Array]  # by partition, in order: the first value of each slice but the first

    @cached_property
    def most(self) -> int:
        return 1 + max((len(cuts) for cuts in self.edges.values()), default=0)

    @cached_property
    def _group_of_piece(self) -> Int64Array:
        return np.array([self.groups.get(piece, -1) for piece in range(max(self.groups) + 1)])

    def cells(self, batch: pa.RecordBatch) -> Int64Array:
        """For each row its piece times ``most`` plus the slice of its value; -1 for rows that do not count."""
        pieces, values = batch.column(PLACE).to_numpy(), batch.column(VALUE)
        known = self._group_of_piece
        groups = np.where(pieces < len(known), known[np.minimum(pieces, len(known) - 1)], -1)
        groups[values.is_null().to_numpy(zero_copy_only=False)] = -1
        cells = np.full(len(pieces), -1, np.int64)
        for group in np.unique(groups[groups >= 0]):
            rows = np.flatnonzero(groups == group)
            chosen = values if len(rows) == len(values) else values.take(pa.array(rows))
            cells[rows] = pieces[rows] * np.int64(self.most) + _number_slices(chosen, self.edges.get(int(group)))
        return cells


def _number_slices(values: pa.Array, edges: pa.Array | None) -> Int64Array:
    if edges is None:
        return np.zeros(len(values), np.int64)
    found, cuts = numbers(values), numbers(edges)
    if found is None or cuts is None:
        codes = ordinals(pa.concat_arrays([edges, values]), SortKey("x"))
        cuts, found = codes[: len(edges)], codes[len(edges) :]
    return np.searchsorted(cuts, found, "right")


@dataclass(frozen=True, eq=False)
class Band:
    """The slices of values that a task needs, and what is known of the values elsewhere."""

    place: Elsewhere
    slices: range
    part: Part


def find_bands(rows: DataFrame, item: TableAggregate, division: Division, places: Sequence[Elsewhere]) -> Sent:
    """For each task the values around the ranks that it may need."""
    values = select_values(rows, item)
    wanted = min(SLICES_PER_TASK * len({place.share for place in places}), MOST_SLICES)
    cuts = _cut_values(values, division, wanted)
    counts = _count_by_piece(values, cuts)
    found = [band_of(place, item, counts) for place in places]
    parts = {(band.place.share, band.place.after): band.part for band in found}
    return Sent(parts, _send_values(values, cuts, found))


def _cut_values(values: DataFrame, division: Division, slices: int) -> ValueSlices:
    total = sum(piece.rows for piece in division.pieces)
    sampled = values.where(column_named(VALUE).isNotNull()).sample(fraction=min(1.0, SAMPLED * slices / total), seed=1)
    sample = collect_table(sampled, "looking at the values of frames").combine_chunks()
    groups = groups_of(division)
    group = np.array([groups.get(piece, -1) for piece in sample.column(PLACE).to_pylist()], np.int64)
    spread = set(division.spread())
    edges = {}
    for number in spread.intersection(group.tolist()):
        part = sample.filter(pa.array(group == number))
        share = max(2, slices * part.num_rows // sample.num_rows)
        ordered = join_chunks(part.take(pa.array(sorted_order(part, [SortKey(VALUE)]))).column(VALUE))
        # A cut at a value that is there twice makes a slice with nothing in it, which does no harm.
        edges[number] = ordered.take(pa.array(np.arange(1, share) * len(ordered) // share))
    return ValueSlices({piece: one for piece, one in groups.items() if one in spread}, edges)


def count_slices(cuts: ValueSlices, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many values of each slice each piece has."""
    counts = np.zeros((max(cuts.groups) + 1) * cuts.most, np.int64)
    for batch in batches:
        cells = cuts.cells(batch)
        found = np.bincount(cells[cells >= 0])
        counts[: len(found)] += found
    cells = np.flatnonzero(counts)
    pieces, slices = np.divmod(cells, cuts.most)
    columns = [pa.array(pieces.astype(np.int32)), pa.array(slices.astype(np.int32)), pa.array(counts[cells])]
    yield pa.RecordBatch.from_arrays(columns, names=[PLACE, SLICE, TIMES])


def _count_by_piece(values: DataFrame, cuts: ValueSlices) -> dict[int, Int64Array]:
    kinds = f"{PLACE} int, {SLICE} int, {TIMES} bigint"
    counted = values.mapInArrow(partial(count_slices, cuts), kinds).groupBy(PLACE, SLICE)
    found = collect_table(counted.agg(functions().sum(TIMES).alias(TIMES)), "counting the values of frames")
    counts: dict[int, Int64Array] = {}
    columns = (found.column(name).to_pylist() for name in (PLACE, SLICE, TIMES))
    for piece, slice_, times in zip(*columns, strict=True):
        counts.setdefault(piece, np.zeros(cuts.most, np.int64))[slice_] = times
    return counts


def band_of(place: Elsewhere, item: TableAggregate, counts: Mapping[int, Int64Array]) -> Band:
    """The slices in which the ranks lie that a task may need; ``counts`` are those of each piece."""
    slices = len(next(iter(counts.values()), np.zeros(1)))
    outside: Any = sum((counts[piece] for piece in place.outside if piece in counts), np.zeros(slices, np.int64))
    rows = int(outside.sum())
    seen = sum(int(counts[piece].sum()) for piece in place.seen if piece in counts)
    if not rows:
        return Band(place, range(0), Part(has_seen=place.whole))
    rule = item.aggregate.definition.ranks
    assert rule is not None
    lower, upper, _ = rule.at(item.aggregate.fraction, np.array([rows + seen]))
    # With each row more the lower rank goes up by 1 at most, and the upper one never goes down.
    least, most = max(int(lower[0]) - seen, 0), min(int(upper[0]), rows - 1)
    ends = np.cumsum(outside)
    first, last = (int(np.searchsorted(ends, rank, "right")) for rank in (least, most))
    below = int(ends[first] - outside[first])
    return Band(place, range(first, last + 1), Part(rows, below=below, has_seen=place.whole))


def send_bands(cuts: ValueSlices, found: Sequence[Band], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each value for the tasks that need it: target, side and value."""
    # Bands in the order of the cells that they take values from, and where each cell's begin.
    taken = [
        np.add.outer(np.array(band.place.outside, np.int64) * cuts.most, np.arange(band.slices.start, band.slices.stop))
        for band in found
    ]
    cells = np.concatenate([cell.ravel() for cell in taken])
    owner = np.repeat(np.arange(len(found)), [cell.size for cell in taken])[np.argsort(cells, kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=(max(cuts.groups) + 1) * cuts.most))])
    targets = np.array([band.place.share for band in found], np.int32)
    sides = np.array([band.place.after for band in found], np.int32)
    for batch in batches:
        mine = cuts.cells(batch)
        begin, end = (np.where(mine >= 0, starts[mine + side], 0) for side in (0, 1))
        times = end - begin
        rows = np.repeat(np.arange(len(mine)), times)
        bands = owner[np.arange(len(rows)) - np.repeat(np.cumsum(times) - times - begin, times)]
        columns = [pa.array(targets[bands]), pa.array(sides[bands]), batch.column(VALUE).take(pa.array(rows))]
        yield pa.RecordBatch.from_arrays(columns, names=[TARGET, SIDE, VALUE])


def _send_values(values: DataFrame, cuts: ValueSlices, found: Sequence[Band]) -> DataFrame:
    from pyspark.sql.types import IntegerType, StructField, StructType

    numbers = [StructField(name, IntegerType()) for name in (TARGET, SIDE)]
    kinds = StructType([*numbers, values.schema[VALUE]])
    copied = values.mapInArrow(partial(send_bands, cuts, list(found)), kinds)
    return copied.groupBy(TARGET, SIDE, VALUE).agg(functions().count("*").alias(TIMES))
