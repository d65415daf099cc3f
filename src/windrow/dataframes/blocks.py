"""Evaluating frames over a sorted stream of rows, some rows at a time.

A block holds rows whose frames are known, and the rows before and after them that those frames reach. What a task needs
in memory is bounded by a block, as many rows again as its frames reach, and what is worked out of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.columns import Column
from windrow.aggregates.frames import FrameEvaluation, Frames
from windrow.dataframes.fractions import fractions_of
from windrow.dataframes.growing_frames import Growth
from windrow.dataframes.keys import join_chunks
from windrow.dataframes.rows import SortedRows
from windrow.dataframes.spec import FrameTask, TableAggregate
from windrow.dataframes.unbounded_states import Outside, Part, joins_parts, merge, unite_parts
from windrow.dataframes.values import take_column
from windrow.errors import DataError

BLOCK_ROWS = 1 << 18
"""Rows that are evaluated at a time, unless frames are longer."""


@dataclass
class FrameStream:
    """The rows of one task in order: feed ``add`` with what comes, take what it gives, and ``finish``.

    ``before`` are rows of earlier tasks, which are only looked at.
    """

    task: FrameTask
    before: pa.Table | None = None
    outside: Sequence[Outside | None] = ()  # for each aggregate, what is carried of rows that are not seen
    block_rows: int = BLOCK_ROWS
    _held: pa.Table | None = None  # the columns that frames need of rows that may still be needed
    _done: int = 0  # how many of those rows have their results
    _waiting: list[pa.Table] = field(default_factory=list)  # all columns of rows that have none yet
    _fresh: list[pa.Table] = field(default_factory=list)  # rows that came since the last block
    _fresh_rows: int = 0
    _home: int = 0  # rows that want results
    _dropped: int = 0  # rows that were seen and are not held any more

    def __post_init__(self) -> None:
        if self.before is not None and self.before.num_rows:
            self._held = self._columns(self.before)
            self._done = self.before.num_rows

    def add(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows that want results."""
        self._waiting.append(rows.select(self.task.outputs))
        self._home += rows.num_rows
        yield from self.look(rows)

    def look(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows that are only looked at; they come before all or after all others."""
        self._fresh.append(self._columns(rows))
        self._fresh_rows += rows.num_rows
        held = 0 if self._held is None else self._held.num_rows
        if self._fresh_rows >= max(self.block_rows, held) and not self.task.holds_all:
            yield from self._evaluate(final=False)

    def skip(self, rows: pa.Table) -> None:
        """Rows before those that want results."""
        if self._home:
            raise DataError("rows of earlier tasks must come first")
        self._done += rows.num_rows
        list(self.look(rows))

    def finish(self, after: pa.Table | None = None) -> Iterator[pa.RecordBatch]:
        """No rows come any more but those of later tasks, which are only looked at."""
        if after is not None and after.num_rows and self._home:
            self._fresh.append(self._columns(after))
        if self._home:
            yield from self._evaluate(final=True)

    def _columns(self, rows: pa.Table) -> pa.Table:
        """What frames need; bounds are not needed of rows that are only looked at, and may be absent there."""
        columns = {}
        for name, kind in self.task.looked_at.items():
            there = name in rows.column_names
            columns[name] = rows.column(name) if there else pa.chunked_array([pa.nulls(rows.num_rows, kind)])
        return pa.table(columns) if columns else rows.select([])

    def _evaluate(self, final: bool) -> Iterator[pa.RecordBatch]:
        held = [] if self._held is None else [self._held]
        table = pa.concat_tables([*held, *self._fresh]).combine_chunks()
        self._held, self._fresh, self._fresh_rows = table, [], 0
        rows = SortedRows(table, self.task.partition, self.task.order)
        if not rows.in_order:
            raise DataError("rows came out of order", hint="The input changed while it was read; try again")
        envelopes = self.task.envelopes
        stop = min(rows.count if final else rows.complete(envelopes), self._done + self._home)
        if stop > self._done:
            yield from self._give(rows, stop)
        first = rows.reach(envelopes, min(stop, rows.count - 1))[0]
        self._held, self._done = table.slice(first), stop - first
        self._dropped += first

    def _give(self, rows: SortedRows, stop: int) -> Iterator[pa.RecordBatch]:
        count = stop - self._done
        waiting = pa.concat_tables(self._waiting)
        given = waiting.slice(0, count)
        self._waiting = [waiting.slice(count)]
        self._home -= count
        results = evaluate_block(self.task, rows, self._done, stop, self._carried())
        for item, result in zip(self.task.aggregates, results, strict=True):
            given = given.append_column(pa.field(item.output, item.result), result)
        yield from given.to_batches(max_chunksize=self.block_rows)

    def _carried(self) -> Sequence[Outside | None]:
        """What is known of rows that are not held: of other tasks', and how many of its own there were."""
        if not self._dropped or self.task.holds_all:
            return self.outside
        known = [*self.outside, *(None for _ in self.task.aggregates[len(self.outside) :])]
        for number in self.task.running_counts:
            there = known[number] or Outside()
            rows = self._dropped + (0 if there.before is None else there.before.rows)
            parts = self.task.aggregates[number].aggregate.parts()
            known[number] = replace(there, before=Part(rows, dict.fromkeys(parts, rows)))
        return known


def evaluate_block(
    task: FrameTask, rows: SortedRows, begin: int, end: int, outside: Sequence[Outside | None] = ()
) -> list[pa.Array]:
    """All aggregates at the rows ``begin`` to before ``end``."""
    block = Block(task, rows, begin, end)
    known = [*outside, *(None for _ in task.aggregates[len(outside) :])]
    results = [
        pa.nulls(end - begin, item.result) if block.is_carried(item, carried) else block.result(item)
        for item, carried in zip(task.aggregates, known, strict=True)
    ]
    for number, carried in enumerate(outside):
        if carried is not None:
            results[number] = block.join_carried(task.aggregates[number], results[number], carried)
    return results


@dataclass
class Block:
    """Rows whose results are wanted, among those that their frames reach; what aggregates share is worked out once."""

    task: FrameTask
    rows: SortedRows
    begin: int
    end: int
    _frames: dict[int, Frames] = field(default_factory=dict)
    _columns: dict[str, Column] = field(default_factory=dict)
    _evaluations: dict[Any, FrameEvaluation] = field(default_factory=dict)
    _keeps: dict[str, Any] = field(default_factory=dict)

    def result(self, item: TableAggregate) -> pa.Array:
        """One aggregate at each row."""
        aggregate = item.aggregate
        if aggregate.attribute is None:
            self._columns.setdefault("", Column(np.zeros(self.rows.count, np.int8)))
            counted = self._evaluation(item, ("",)).result(aggregate, self.keep(item.keep))
            return pa.array(counted.values)
        forms = [take_column(join_chunks(self.rows.table.column(name)), aggregate) for name in aggregate.attributes]
        names = [f"{name}\n{form.form}" for name, form in zip(aggregate.attributes, forms, strict=True)]
        for name, form in zip(names, forms, strict=True):
            self._columns.setdefault(name, form.column)
        aggregate = aggregate.of(*names)
        if item.fraction is not None:
            fractions = fractions_of(self.rows.table, item.fraction, self.begin, self.end)
            aggregate = replace(aggregate, parameter=fractions)
        found = self._evaluation(item, tuple(names)).result(aggregate, self.keep(item.keep))
        return forms[0].decode(found, item.result)

    def is_carried(self, item: TableAggregate, outside: Outside | None) -> bool:
        """Whether every result depends on rows of other tasks, so that results over these rows alone are not needed."""
        if outside is None or not item.aggregate.definition.tallies or len(self.rows.group_starts) != 2:
            return False
        frame = self.task.frames[item.frame]
        before = frame.start.is_unbounded and outside.before is not None
        return before or (frame.end.is_unbounded and outside.after is not None)

    def join_carried(self, item: TableAggregate, found: pa.Array, outside: Outside) -> pa.Array:
        """Results over unbounded frames, joined with what is known of the first and last partition's other rows."""
        frame, starts = self.task.frames[item.frame], self.rows.group_starts
        before = outside.before if frame.start.is_unbounded else None
        after = outside.after if frame.end.is_unbounded else None
        first, last = (int(starts[0]), int(starts[1])), (int(starts[-2]), int(starts[-1]))
        if first == last:
            both = [part for part in (before, after) if part is not None]
            return self._join_parts(item, found, first, both) if both else found
        if before is not None:
            found = self._join_parts(item, found, first, [before])
        return found if after is None else self._join_parts(item, found, last, [after])

    def _join_parts(self, item: TableAggregate, found: pa.Array, group: tuple[int, int], parts: list[Part]) -> pa.Array:
        begin, end = max(group[0], self.begin), min(group[1], self.end)
        if begin >= end:
            return found
        cut = slice(begin - self.begin, end - self.begin)
        if item.aggregate.definition.tallies:
            middle = self._growth(item, group, cut, parts).result(item.aggregate, item.result)
        else:
            part, seen = unite_parts(parts, item), self._parts_seen(item, cut)
            middle = merge(item, found.slice(cut.start, cut.stop - cut.start), seen, part)
        return pa.concat_arrays([found.slice(0, cut.start), middle.cast(found.type), found.slice(cut.stop)])

    def _parts_seen(self, item: TableAggregate, cut: slice) -> dict[str, Column]:
        """The parts of the rows seen, of which results are joined with those of other rows."""
        if not joins_parts(item.aggregate):
            return {}
        seen = {}
        for name, part in item.aggregate.parts().items():
            whole = not part.definition.least
            found = self.result(replace(item, aggregate=part, result=pa.int64() if whole else pa.float64()))
            there = found.is_valid().to_numpy(zero_copy_only=False)[cut]
            values = found.fill_null(0).to_numpy(zero_copy_only=False)[cut]
            seen[name] = Column(values, None if there.all() else there)
        return seen

    def _growth(self, item: TableAggregate, group: tuple[int, int], cut: slice, parts: list[Part]) -> Growth:
        frame, frames = self.task.frames[item.frame], self.frames(item.frame)
        size = group[1] - group[0]
        column = join_chunks(self.rows.table.column(item.aggregate.attribute)).slice(group[0], size)
        keep = self.keep(item.keep)
        keep = None if keep is None else keep[group[0] : group[1]]
        if any(part.has_seen for part in parts):
            return Growth(column.slice(0, 0), None, np.zeros(cut.stop - cut.start, np.int64), parts)
        if frame.start.is_unbounded:
            stop = np.maximum(frames.hi[cut] - group[0], 0)
        else:  # from the last row backwards
            column = column.take(pa.array(np.arange(size)[::-1]))
            keep = None if keep is None else keep[::-1]
            stop = np.maximum(group[1] - frames.lo[cut], 0)
        return Growth(column, keep, stop, parts)

    def frames(self, number: int) -> Frames:
        """The bounds of a frame at each row."""
        if number not in self._frames:
            frame = self.task.frames[number]
            low, high = self.rows.bounds(frame, self.begin, self.end)
            peers = self.rows.peers(self.begin, self.end) if frame.exclusion in ("group", "ties") else None
            current = np.arange(self.begin, self.end, dtype=np.int64)
            self._frames[number] = Frames(low, high, frame.exclusion, peers, current)
        return self._frames[number]

    def keep(self, name: str | None) -> Any:
        """Which rows a FILTER leaves in; NULL leaves none."""
        if name is None:
            return None
        if name not in self._keeps:
            column = join_chunks(self.rows.table.column(name))
            self._keeps[name] = column.fill_null(False).to_numpy(zero_copy_only=False)
        return self._keeps[name]

    def _evaluation(self, item: TableAggregate, names: tuple[str, ...]) -> FrameEvaluation:
        key = (names, item.frame, item.method, item.tau, item.strategy)
        if key not in self._evaluations:
            columns = {name: self._columns[name] for name in names}
            self._evaluations[key] = FrameEvaluation(
                columns, self.frames(item.frame), item.method, "value", item.tau, item.strategy
            )
        return self._evaluations[key]


def gather_batches(batches: Iterable[pa.RecordBatch], least: int) -> Iterator[pa.Table]:
    """Batches joined into tables of at least ``least`` rows, because each table has a fixed cost."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        rows += batch.num_rows
        if rows >= least:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)
