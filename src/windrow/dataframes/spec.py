"""What tasks of frames on tables need to know: sort keys, frames, aggregates and how far frames reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.model.frame import DAY, Frame, Interval, SortKey

Number = int | float

PLACE = "__windrow_place"
"""The column that says where a row lies: in which Spark partition, or in which slice of the order."""

TARGET, HOME = "__windrow_task", "__windrow_home"
"""The columns that say which task a row is sent to, and whether it is one of that task's own."""

CARRIED, TIMES = "__windrow_carried", "__windrow_times"
"""The columns of rows that only bring a task a value: for which aggregate and side, and how often it is elsewhere."""


@dataclass(frozen=True)
class FrameBound:
    """Where a frame begins or ends: one offset for all rows, a column of offsets, or None if it is unbounded.

    Offsets along dates and times are microseconds or a calendar interval. ``reach`` is how far a column's go at most.
    """

    offset: Number | Interval | None = 0
    column: str | None = None
    reach: tuple[Number, Number] = (0, 0)

    @property
    def is_unbounded(self) -> bool:
        return self.column is None and self.offset is None

    @property
    def is_current_row(self) -> bool:
        return self.column is None and not isinstance(self.offset, Interval) and self.offset == 0

    @property
    def furthest(self) -> tuple[Number, Number]:
        """The smallest and the largest offset of any row; months are counted at their longest."""
        if self.column is not None:
            return self.reach
        if isinstance(self.offset, Interval):
            days = 31 * self.offset.months * DAY
            # A day that a month lacks becomes its last, so moments may also come to lie closer.
            return min(days, 0) + self.offset.microseconds - DAY, max(days, 0) + self.offset.microseconds + DAY
        assert self.offset is not None
        return self.offset, self.offset


BoundFrame = Frame[FrameBound]
"""A frame whose bounds are known or stand in columns."""


def is_bounded(frame: BoundFrame) -> bool:
    return not (frame.start.is_unbounded or frame.end.is_unbounded)


def envelope(frame: BoundFrame, loads_all: bool) -> list[BoundFrame]:
    """Frames with the same bounds for all rows which hold whatever a frame's rows may need, and the row itself.

    An unbounded side reaches no further than the other one does, unless ``loads_all``: what lies beyond is carried.
    """
    start, end = frame.start, frame.end
    before = 0 if start.is_unbounded else start.furthest[0]
    after = 0 if end.is_unbounded else end.furthest[1]
    if start.is_unbounded and not end.is_unbounded:
        before = min(0, end.furthest[0])
    if end.is_unbounded and not start.is_unbounded:
        after = max(0, start.furthest[1])
    first: Any = None if start.is_unbounded and loads_all else min(before, 0)
    last: Any = None if end.is_unbounded and loads_all else max(after, 0)
    held = [Frame(frame.unit, FrameBound(first), FrameBound(last))]
    if frame.unit == "range" or frame.exclusion in ("group", "ties"):
        held.append(Frame("range", FrameBound(0), FrameBound(0)))
    return held


@dataclass(frozen=True)
class TableAggregate:
    """A result column: an aggregate over one of the frames, of the rows that ``keep`` marks."""

    output: str
    aggregate: Aggregate  # its attribute is a column of the rows that tasks see
    frame: int
    result: pa.DataType
    keep: str | None = None
    method: str = "auto"
    tau: float = 0.25
    strategy: str = "auto"

    @property
    def counts_rows(self) -> bool:
        """Whether it counts all rows, whatever their values."""
        return self.aggregate.attribute is None and self.keep is None

    @property
    def fraction(self) -> str | None:
        """The column that holds each row's fraction, if it varies."""
        return str(self.aggregate.parameter) if self.aggregate.varies else None


@dataclass(frozen=True)
class FrameTask:
    """Everything that the rows' tasks share."""

    partition: tuple[SortKey, ...]
    order: tuple[SortKey, ...]
    frames: tuple[BoundFrame, ...]
    aggregates: tuple[TableAggregate, ...]
    outputs: tuple[str, ...]  # the input's columns, which go through as they are
    is_unbounded: bool = False  # whether some frames are, so that a row may need all rows before or behind it
    holds_all: bool = False  # whether a task must see all its rows before it can give any
    loads_all: bool = False  # whether unbounded frames need the rows themselves rather than what is carried of them
    kinds: tuple[tuple[str, pa.DataType], ...] = ()  # the types of the columns that frames look at

    @property
    def keys(self) -> tuple[SortKey, ...]:
        return self.partition + self.order

    @property
    def running_counts(self) -> tuple[int, ...]:
        """The aggregates that count all rows up to each: a task need keep only the number of rows seen."""
        found = []
        for number, item in enumerate(self.aggregates):
            frame = self.frames[item.frame]
            if item.counts_rows and frame.start.is_unbounded and not frame.end.is_unbounded:
                found.append(number)
        return () if self.partition else tuple(found)

    @property
    def only_counts(self) -> bool:
        """Whether no unbounded frame needs more of the rows before than their number."""
        counted = self.running_counts
        others = [item for number, item in enumerate(self.aggregates) if number not in counted]
        return bool(counted) and all(is_bounded(self.frames[item.frame]) for item in others)

    @property
    def carries_numbers(self) -> bool:
        """Whether all that unbounded frames need of other tasks' rows is a few numbers, which Spark works out."""
        unbounded = [item for item in self.aggregates if not is_bounded(self.frames[item.frame])]
        tallied = any(item.aggregate.definition.tallies for item in unbounded)
        return not self.loads_all and not tallied

    @property
    def looks_at_peers_only(self) -> bool:
        """Whether a row needs no other rows than its peers, beside what is carried."""
        return all(not frame.start.offset and not frame.end.offset for frame in self.envelopes) and not self.loads_all

    @property
    def envelopes(self) -> tuple[BoundFrame, ...]:
        """The frames that say which rows a row may need."""
        held: dict[Any, BoundFrame] = {}
        for frame in self.frames:
            for one in envelope(frame, self.loads_all):
                held.setdefault((one.unit, one.start.offset, one.end.offset), one)
        return tuple(held.values())

    @property
    def looked_at(self) -> dict[str, pa.DataType]:
        """The columns that frames are worked out from: those needed of neighbours, and those for a row's own frame."""
        bounds = [bound.column for frame in self.frames for bound in (frame.start, frame.end)]
        fractions = [item.fraction for item in self.aggregates]
        kinds = {**dict(self.kinds), PLACE: pa.int32()}
        return {name: kinds[name] for name in [*self.needed, *bounds, *fractions] if name is not None}

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that neighbouring tasks need of a row."""
        names = [PLACE, *(key.column for key in self.keys)]
        for item in self.aggregates:
            names += [*item.aggregate.attributes, *([] if item.keep is None else [item.keep])]
        return tuple(dict.fromkeys(names))
