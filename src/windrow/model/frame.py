"""Frames of SQL: which rows of a sorted partition an aggregate at a row is over.

A frame is ROWS, RANGE or GROUPS between two bounds, with EXCLUDE. ``row_bounds`` turns it, for one partition whose
order keys are sorted, into the first row of every frame and the row after its last; a frame that ends before it starts
is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, SchemaError, nearest
from windrow.model.frame_ranges import Interval, Offset, OrderKey, range_end, range_start

Int64Array = npt.NDArray[np.int64]

UNITS = ("rows", "range", "groups")
EXCLUDES = ("no others", "current row", "group", "ties")

__all__ = [
    "Bound",
    "Frame",
    "Interval",
    "OrderKey",
    "current_row",
    "following",
    "peer_bounds",
    "preceding",
    "row_bounds",
]


@dataclass(frozen=True, eq=False)
class Bound:
    """Where a frame begins or ends: ``offset`` past the current row, before it if negative; or nowhere.

    ``offset`` is one number or interval for all rows, or an array with one for each row of the partition.
    """

    offset: Offset | None = 0
    before: bool = False  # of an unbounded one: whether it is unbounded preceding

    @property
    def is_unbounded(self) -> bool:
        return self.offset is None

    @property
    def is_current_row(self) -> bool:
        return isinstance(self.offset, (int, np.integer)) and self.offset == 0


current_row = Bound()
unbounded_preceding = Bound(None, before=True)
unbounded_following = Bound(None)


def preceding(amount: Offset) -> Bound:
    """So far before the current row; ``amount`` must not be negative."""
    amount = _amount(amount, "preceding")
    if isinstance(amount, np.ndarray) and amount.dtype.kind == "u":
        amount = np.minimum(amount, np.iinfo(np.int64).max).astype(np.int64)
    return Bound(-amount)


def following(amount: Offset) -> Bound:
    """So far after the current row; ``amount`` must not be negative."""
    return Bound(_amount(amount, "following"))


def _amount(amount: Any, side: str) -> Any:
    try:
        # NaN and NaT are not at least 0 either.
        right = (
            not amount.is_negative
            if isinstance(amount, Interval)
            else bool(np.all(np.asarray(amount) >= _zero(amount)))
        )
    except TypeError:
        raise SchemaError("a frame's offset must be a number or an interval", got=repr(amount)) from None
    if not right:
        raise DataError(
            f"the offset of {side} must not be negative or missing",
            got=_shown(amount),
            hint="Use the other of preceding and following",
        )
    return amount


def _zero(amount: Any) -> Any:
    return np.timedelta64(0) if np.asarray(amount).dtype.kind == "m" else 0


def _shown(amount: Any) -> Any:
    return amount if not isinstance(amount, np.ndarray) else amount.min() if amount.dtype.kind != "O" else "an array"


@dataclass(frozen=True, eq=False)
class Frame:
    """``unit`` rows, range or groups; by default all rows from the first to the current one's last peer, as in SQL."""

    unit: str = "range"
    start: Bound = unbounded_preceding
    end: Bound = current_row
    exclude: str = "no others"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SchemaError(
                "a frame counts in " + ", ".join(UNITS), got=repr(self.unit), hint=nearest(self.unit, UNITS)
            )
        check_exclude(self.exclude)
        if self.start.is_unbounded and not self.start.before:
            raise SchemaError("a frame cannot start at unbounded following")
        if self.end.is_unbounded and self.end.before:
            raise SchemaError("a frame cannot end at unbounded preceding")
        if self.unit != "range":
            for bound in (self.start, self.end):
                _check_whole(bound.offset, self.unit)

    @property
    def needs_distance(self) -> bool:
        """Whether bounds are distances along the order key, of which there must then be exactly one."""
        bounds = (self.start, self.end)
        return self.unit == "range" and any(not b.is_unbounded and not b.is_current_row for b in bounds)


def check_exclude(exclude: str) -> None:
    """Refuse what is no EXCLUDE of SQL."""
    if exclude not in EXCLUDES:
        raise SchemaError(
            "exclude must be one of " + ", ".join(EXCLUDES), got=repr(exclude), hint=nearest(str(exclude), EXCLUDES)
        )


def _check_whole(offset: Any, unit: str) -> None:
    """Rows and groups are counted in whole numbers."""
    if offset is None or (isinstance(offset, (int, np.integer)) and not isinstance(offset, bool)):
        return
    if isinstance(offset, np.ndarray) and offset.dtype.kind in "iu":
        return
    got = f"an array of {offset.dtype}" if isinstance(offset, np.ndarray) else repr(offset)
    raise SchemaError(f"the offsets of a {unit} frame must be whole numbers", got=got)


def row_bounds(frame: Frame, keys: Sequence[OrderKey], rows: int) -> tuple[Int64Array, Int64Array]:
    """The first row of each row's frame and the row after its last, in a partition of ``rows`` sorted rows."""
    check_keys(frame, keys)
    for bound in (frame.start, frame.end):
        if isinstance(bound.offset, np.ndarray) and bound.offset.shape != (rows,):
            raise DataError(f"a frame needs one offset for each of {rows} rows", got=bound.offset.shape)
    if frame.unit == "rows":
        place = np.arange(rows, dtype=np.int64)
        return _counted(frame.start, place, rows, 0), _counted(frame.end, place, rows, 1)
    peers = peer_bounds(keys, rows)
    if frame.unit == "groups":
        fresh = peers[0] == np.arange(rows)
        number, starts = np.cumsum(fresh) - 1, np.append(np.flatnonzero(fresh), rows).astype(np.int64)
        groups = len(starts) - 1
        return starts[_counted(frame.start, number, groups, 0)], starts[_counted(frame.end, number, groups, 1)]
    return _range_bound(frame.start, keys, peers, rows, 0), _range_bound(frame.end, keys, peers, rows, 1)


def check_keys(frame: Frame, keys: Sequence[OrderKey]) -> None:
    """Refuse a RANGE frame with distances over anything but one number or point in time."""
    if not frame.needs_distance:
        return
    if len(keys) != 1:
        got = f"{len(keys)} order columns" if keys else "no order"
        raise SchemaError("a range frame with an offset needs exactly one order column", got=got)
    keys[0].check_distance(frame.start.offset)
    keys[0].check_distance(frame.end.offset)


def peer_bounds(keys: Sequence[OrderKey], rows: int) -> tuple[Int64Array, Int64Array]:
    """For each row the first of its peers (the rows with the same order keys) and the row after their last.

    Without an order all rows are peers.
    """
    fresh = np.zeros(rows, bool)
    fresh[:1] = True
    for key in keys:
        fresh[1:] |= key.changes()
    starts = np.flatnonzero(fresh)
    number = np.cumsum(fresh) - 1
    return starts[number].astype(np.int64), np.append(starts[1:], rows)[number].astype(np.int64)


def _counted(bound: Bound, place: Int64Array, count: int, past: int) -> Int64Array:
    """``place + offset``, plus 1 at a frame's end, within 0 and ``count``."""
    if bound.offset is None:
        return np.full(len(place), 0 if bound.before else count, np.int64)
    # Offsets beyond the partition would overflow, and are as good as ones that just leave it.
    offset = np.asarray(bound.offset)
    low = 0 if offset.dtype.kind == "u" else -count - 1
    moved: Int64Array = place + np.clip(offset, low, count + 1).astype(np.int64) + past
    return np.clip(moved, 0, count)


def _range_bound(
    bound: Bound, keys: Sequence[OrderKey], peers: tuple[Int64Array, Int64Array], rows: int, side: int
) -> Int64Array:
    if bound.offset is None:
        return np.full(rows, 0 if bound.before else rows, np.int64)
    if bound.is_current_row:
        return peers[side]
    find = range_end if side else range_start
    return find(keys[0], bound.offset, peers[side])
