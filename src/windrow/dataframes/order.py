"""Whether a DataFrame's rows are in order already, and what tasks then need of their neighbours.

One look at the needed columns of each Spark partition says how many rows it has, whether they are in order, with which
keys it begins and ends, which of its rows neighbours may need, and a sample of its keys to cut at if it must be sorted.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.dataframes.blocks import gather_batches
from windrow.dataframes.keys import steps
from windrow.dataframes.rows import SortedRows
from windrow.dataframes.spec import PLACE, FrameTask
from windrow.errors import DataError

LOOK_ROWS = 1 << 16
HALO_ROWS = 200_000
"""Rows that a neighbour may need at most, for these to travel by way of the driver."""
SAMPLE = 512


@dataclass
class PartitionLook:
    """What was seen of one Spark partition."""

    place: int
    rows: int = 0
    in_order: bool = True
    too_long: bool = False
    first: pa.Table | None = None
    last: pa.Table | None = None
    head: pa.Table | None = None  # the rows that earlier partitions may need
    tail: pa.Table | None = None  # the rows that later ones may need
    tail_is_whole: bool = True
    head_is_whole: bool = True
    sample: list[pa.Table] = field(default_factory=list)
    stride: int = 1

    def add(self, table: pa.Table, task: FrameTask, wants_sample: bool) -> None:
        if wants_sample:
            self._sample(table.select([key.column for key in task.keys]))
        if self.in_order and not self.too_long:
            self._follow(table, task)
        self.rows += table.num_rows

    def _follow(self, table: pa.Table, task: FrameTask) -> None:
        needed = table.select(task.needed).combine_chunks()
        if self.first is None:
            self.first, self.head = _copy_rows(needed.slice(0, 1)), needed.slice(0, 0)
        whole = needed if self.tail is None else pa.concat_tables([self.tail, needed]).combine_chunks()
        rows = SortedRows(whole, task.partition, task.order)
        if not rows.in_order:
            self.in_order, self.head, self.tail = False, None, None
            return
        start, _ = rows.reach(task.envelopes, rows.count - 1)
        self.tail_is_whole = self.tail_is_whole and start == 0
        self.tail, self.last = _copy_rows(whole.slice(start)), _copy_rows(whole.slice(rows.count - 1))
        if self.head_is_whole:
            self._lead(needed, task)
        if max(self.tail.num_rows, 0 if self.head is None else self.head.num_rows) > HALO_ROWS:
            self.too_long, self.head, self.tail = True, None, None

    def _lead(self, needed: pa.Table, task: FrameTask) -> None:
        head = pa.concat_tables([self.head, needed]).combine_chunks()
        _, stop = SortedRows(head, task.partition, task.order).reach(task.envelopes, 0)
        self.head_is_whole = stop == head.num_rows
        self.head = _copy_rows(head.slice(0, stop))

    def _sample(self, keys: pa.Table) -> None:
        offset = -self.rows % self.stride
        self.sample.append(keys.take(np.arange(offset, keys.num_rows, self.stride)))
        while sum(part.num_rows for part in self.sample) > 2 * SAMPLE:
            joined = pa.concat_tables(self.sample).combine_chunks()
            self.sample = [joined.take(np.arange(0, joined.num_rows, 2))]
            self.stride *= 2


def _copy_rows(table: pa.Table) -> pa.Table:
    """A copy of a few rows, so that the memory of the table they came from can be given back."""
    return table.take(np.arange(table.num_rows))


def look(task: FrameTask, wants_order: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that workers run: one row about all rows of a Spark partition."""
    seen: dict[int, PartitionLook] = {}
    for table in gather_batches(batches, LOOK_ROWS):
        place = table.column(PLACE)[0].as_py()
        if place not in seen:
            seen[place] = PartitionLook(place, in_order=wants_order)
        seen[place].add(table, task, wants_sample=bool(task.keys))
    rows = [pickle.dumps(found, protocol=5) for found in seen.values()]
    yield pa.record_batch([pa.array(rows, pa.binary())], names=["seen"])


def open_looks(rows: Sequence[Any]) -> list[PartitionLook]:
    """What workers saw, in the order of the partitions."""
    found: list[PartitionLook] = [pickle.loads(bytes(row[0])) for row in rows]
    return sorted(found, key=lambda one: one.place)


def are_in_order(task: FrameTask, looks: Sequence[PartitionLook]) -> bool:
    """Whether all rows are in order, from partition to partition."""
    if not all(one.in_order for one in looks):
        return False
    return all(
        one.last is None
        or other.first is None
        or int(steps(pa.concat_tables([one.last, other.first]), task.keys)[0]) >= 0
        for one, other in pairwise(looks)
    )


@dataclass(frozen=True, eq=False)
class Halo:
    """What a task needs of its neighbours, and how many rows of its own it must find."""

    rows: int
    before: pa.Table | None
    after: pa.Table | None

    @property
    def size(self) -> int:
        return sum(0 if side is None else side.nbytes for side in (self.before, self.after))

    @property
    def neighbours(self) -> int:
        return sum(0 if side is None else side.num_rows for side in (self.before, self.after))


def changed_input(expected: int, found: int) -> DataError:
    """Rows were counted, and others came when they were read again."""
    return DataError(
        "the input changed since its order was looked at",
        got=f"{found} rows in a partition that had {expected}",
        hint="Make the result anew, or cache the input first",
    )


def halos(task: FrameTask, looks: Sequence[PartitionLook]) -> dict[int, Halo]:
    """For each partition the rows of others that its frames reach; all of them must be in order."""
    return {
        one.place: Halo(one.rows, _rows_before(task, looks, number), _rows_after(task, looks, number))
        for number, one in enumerate(looks)
    }


def _rows_before(task: FrameTask, looks: Sequence[PartitionLook], number: int) -> pa.Table | None:
    first = looks[number].first
    held = first
    for other in reversed(looks[:number]):
        if int(steps(pa.concat_tables([other.last, first]), task.partition)[0]) != 0:
            break
        held = pa.concat_tables([other.tail, held]).combine_chunks()
        start, _ = SortedRows(held, task.partition, task.order).reach(task.envelopes, held.num_rows - 1)
        held = held.slice(start)
        if start > 0 or not other.tail_is_whole:
            break
    assert held is not None
    return _copy_rows(held.slice(0, held.num_rows - 1)) if held.num_rows > 1 else None


def _rows_after(task: FrameTask, looks: Sequence[PartitionLook], number: int) -> pa.Table | None:
    last = looks[number].last
    held = last
    for other in looks[number + 1 :]:
        if int(steps(pa.concat_tables([last, other.first]), task.partition)[0]) != 0:
            break
        held = pa.concat_tables([held, other.head]).combine_chunks()
        _, stop = SortedRows(held, task.partition, task.order).reach(task.envelopes, 0)
        whole = stop == held.num_rows
        held = held.slice(0, stop)
        if not whole or not other.head_is_whole:
            break
    assert held is not None
    return _copy_rows(held.slice(1)) if held.num_rows > 1 else None
