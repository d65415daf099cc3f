"""Where each row's frame begins and ends, for sorted rows of many partitions at once.

``row_bounds`` in the tests is its plain twin, for one partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.dataframes.keys import distances, join_chunks, numbers, steps, unscale
from windrow.dataframes.spec import BoundFrame, FrameBound
from windrow.errors import DataError
from windrow.kernels.frames.segments import search_segments
from windrow.model.frame import Interval, SortKey

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]
Bounds = tuple[Int64Array, Int64Array]
Edge = Int64Array | int


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows in order; ``table`` has their key columns and whatever columns hold bounds."""

    table: pa.Table
    partition: Sequence[SortKey]
    order: Sequence[SortKey]

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def _partition_steps(self) -> npt.NDArray[np.int8]:
        return steps(self.table, self.partition)

    @cached_property
    def _order_steps(self) -> npt.NDArray[np.int8]:
        return steps(self.table, self.order)

    @cached_property
    def in_order(self) -> bool:
        if not self.partition:
            return not (self._order_steps < 0).any()
        fall = self._partition_steps < 0
        if self.order:
            fall = fall | ((self._partition_steps == 0) & (self._order_steps < 0))
        return not fall.any()

    @cached_property
    def group_starts(self) -> Int64Array:
        """The first row of each partition, and after the last."""
        if not self.partition:
            return np.array([0, self.count] if self.count else [0], np.int64)
        return _starts(self._partition_steps != 0, self.count)

    @cached_property
    def peer_starts(self) -> Int64Array:
        """The first row of each group of peers, and after the last."""
        changes = self._partition_steps != 0
        return _starts(changes | (self._order_steps != 0) if self.order else changes, self.count)

    @cached_property
    def _first_peers(self) -> Int64Array:
        """Which group of peers is the first of each partition."""
        return np.searchsorted(self.peer_starts, self.group_starts)

    @cached_property
    def _plain_starts(self) -> tuple[Int64Array, Int64Array]:
        """For each partition, its rows whose only order key is an ordinary value."""
        _, plain = self._distances
        starts = self.group_starts
        if plain is None:
            return starts[:-1], starts[1:]
        places = np.flatnonzero(plain)
        first, last = np.searchsorted(places, starts[:-1]), np.searchsorted(places, starts[1:])
        some = first < last
        none = np.zeros(1, np.int64)
        padded = np.concatenate([places, none])
        return np.where(some, padded[first], 0), np.where(some, padded[np.maximum(last, 1) - 1] + 1, 0)

    @cached_property
    def _distances(self) -> tuple[Array, npt.NDArray[np.bool_] | None]:
        return distances(join_chunks(self.table.column(self.order[0].column)), self.order[0])

    def bounds(self, frame: BoundFrame, begin: int, end: int) -> Bounds:
        """The first row of the frames of rows ``begin`` to before ``end``, and the row after their last."""
        if frame.unit == "rows":
            place = np.arange(begin, end, dtype=np.int64)
            first, last = self._group(begin, end) or self.groups(begin, end)
            return tuple(self._count_from(frame, side, place, first, last, begin, end) for side in (0, 1))  # type: ignore[return-value]
        if frame.unit == "groups":
            starts = self.peer_starts
            place = _number(starts, begin, end)
            group = _number(self.group_starts, begin, end)
            first, last = self._first_peers[group], self._first_peers[group + 1]
            low, high = (self._count_from(frame, side, place, first, last, begin, end) for side in (0, 1))
            return starts[low], starts[high]
        return self._search_distance(frame, 0, begin, end), self._search_distance(frame, 1, begin, end)

    def groups(self, begin: int, end: int) -> Bounds:
        """The first and after the last row of the partitions of some rows."""
        return _around(self.group_starts, begin, end)

    def _group(self, begin: int, end: int) -> tuple[int, int] | None:
        """The first and after the last row of the one partition that holds all of some rows."""
        number = int(np.searchsorted(self.group_starts, begin, "right")) - 1
        first, last = (int(edge) for edge in self.group_starts[number : number + 2])
        return (first, last) if end <= last else None

    def peers(self, begin: int, end: int) -> Bounds:
        """The first and after the last of the peers of some rows."""
        return _around(self.peer_starts, begin, end)

    def reach(self, envelopes: Sequence[BoundFrame], row: int) -> tuple[int, int]:
        """The rows that this row may need."""
        found = [self.bounds(frame, row, row + 1) for frame in envelopes]
        return min([row, *(int(low[0]) for low, _ in found)]), max([row + 1, *(int(high[0]) for _, high in found)])

    def complete(self, envelopes: Sequence[BoundFrame]) -> int:
        """How many rows, from the first on, have all the rows of their frames here."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.reach(envelopes, middle)[1] < self.count:
                low = middle + 1
            else:
                high = middle
        return low

    def _count_from(
        self, frame: BoundFrame, side: int, place: Int64Array, first: Edge, last: Edge, begin: int, end: int
    ) -> Int64Array:
        bound = frame.end if side else frame.start
        if bound.is_unbounded:
            return np.broadcast_to(last if side else first, place.shape).astype(np.int64)
        offset: Any = bound.offset
        if bound.column is not None:
            offset = self._column(bound, begin, end)
        # Offsets beyond all rows would overflow, and are as good as ones that just leave them.
        offset = np.clip(offset, -self.count - 1, self.count + 1)
        found: Int64Array = place + (offset + side)
        np.clip(found, first, last, out=found)
        return found

    def _column(self, bound: FrameBound, begin: int, end: int) -> Array:
        assert bound.column is not None
        column = join_chunks(self.table.column(bound.column)).slice(begin, end - begin)
        if column.null_count:
            raise DataError("a frame's bound must not be NULL")
        values = unscale(column) if pa.types.is_decimal(column.type) else numbers(column)
        assert values is not None
        return values

    def _search_distance(self, frame: BoundFrame, side: int, begin: int, end: int) -> Int64Array:
        bound = frame.end if side else frame.start
        if bound.is_unbounded:
            return self.groups(begin, end)[side]
        peers = self.peers(begin, end)[side]
        if bound.is_current_row:
            return peers
        values, plain = self._distances
        wanted, over, under = self._wanted_keys(bound, side, begin, end)
        group = _number(self.group_starts, begin, end)
        first, last = (edge[group] for edge in self._plain_starts)
        found = np.empty(end - begin, np.int64)
        search_segments(values, wanted, first, last, bool(side), found)
        found = np.where(over, last, np.where(under, first, found))
        return found if plain is None else np.where(plain[begin:end], found, peers)

    def _wanted_keys(self, bound: FrameBound, side: int, begin: int, end: int) -> tuple[Array, Any, Any]:
        """The keys at the bound's distance, and which of them are too large or too small for their type."""
        values = self._distances[0][begin:end]
        offset: Any = bound.offset if bound.column is None else self._column(bound, begin, end)
        if isinstance(offset, Interval):
            return self._after(offset, values), False, False
        if values.dtype.kind == "f":
            with np.errstate(over="ignore", invalid="ignore"):
                return values + offset, False, False
        step = np.asarray(offset)
        if step.dtype.kind == "f":
            # Keys are whole: at least 1.5 further means at least 2, at most 1.5 further means at most 1.
            step = np.clip(np.floor(step) if side else np.ceil(step), -(2.0**62), 2.0**62).astype(np.int64)
        moved = values + step
        over, under = (step > 0) & (moved < values), (step < 0) & (moved > values)
        return moved, over, under

    def _after(self, interval: Interval, values: Array) -> Array:
        if not self.order[0].descending:
            return interval.after(values.view("M8[us]")).view(np.int64)
        return ~((-interval).after((~values).view("M8[us]")).view(np.int64))


def _starts(changes: npt.NDArray[np.bool_], count: int) -> Int64Array:
    if not count:
        return np.zeros(1, np.int64)
    return np.concatenate([[0], np.flatnonzero(changes) + 1, [count]]).astype(np.int64)


def _number(starts: Int64Array, begin: int, end: int) -> Int64Array:
    """In which stretch each row lies."""
    if end == begin + 1:
        return np.searchsorted(starts, [begin], "right") - 1
    first = int(np.searchsorted(starts, begin, "right")) - 1
    last = int(np.searchsorted(starts, end, "left"))
    edges = np.clip(starts[first : last + 1], begin, end)
    return np.repeat(np.arange(first, first + len(edges) - 1, dtype=np.int64), np.diff(edges))


def _around(starts: Int64Array, begin: int, end: int) -> Bounds:
    number = _number(starts, begin, end)
    return starts[number], starts[number + 1]
