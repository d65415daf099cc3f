"""Frames of SQL by NumPy alone: what windrow's own bounds of many partitions are held against.

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
from windrow.model.frame import UNITS, Interval, check_exclude

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

Offset = int | float | np.timedelta64 | Interval | Array | Any


@dataclass(frozen=True, eq=False)
class OrderKey:
    """One column that a partition is sorted by; what is not ``present`` is NULL, all of it at one end.

    NaN is a value, equal to itself and larger than all others. Decimals may be given as Python's own.
    """

    values: Array
    present: Mask | None = None
    descending: bool = False

    def changes(self) -> Mask:
        """For each row but the first, whether its key differs from that of the row before."""
        values = self.values
        differ: Mask = np.asarray(values[1:] != values[:-1], bool)
        if values.dtype.kind == "f":
            differ &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
        if self.present is None:
            return differ
        there, before = self.present[1:], self.present[:-1]
        moved: Mask = (differ & there & before) | (there != before)
        return moved

    def check_distance(self, offset: Any) -> None:
        """Refuse offsets that cannot be added to this key."""
        if offset is None or (isinstance(offset, (int, np.integer)) and offset == 0):
            return
        kind = self.values.dtype.kind
        if kind not in "iufMO" or (kind == "O" and _text_inside(self.values)):
            raise SchemaError(
                "a range frame with an offset needs numbers or points in time to order by",
                got="strings" if kind in "TUSO" else str(self.values.dtype),
                hint="Use rows or groups",
            )
        spans = isinstance(offset, (np.timedelta64, Interval)) or (
            isinstance(offset, np.ndarray) and offset.dtype.kind == "m"
        )
        days = kind == "M" and np.datetime_data(self.values.dtype)[0] == "D"
        if spans != (kind == "M") and not (days and _whole(offset)):
            wanted = "an interval" if kind == "M" else "a number"
            raise SchemaError(
                f"the offset of a range frame over {self.values.dtype} must be {wanted}", got=repr(offset)
            )
        if not spans and kind != "O" and not np.all(np.isfinite(np.asarray(offset, np.float64))):
            raise DataError("the offset of a range frame must be finite", got=repr(offset))

    @property
    def segment(self) -> tuple[int, int]:
        """The rows whose keys are ordinary values: neither NULL nor NaN."""
        plain = np.ones(len(self.values), bool) if self.present is None else self.present
        if self.values.dtype.kind == "f":
            plain = plain & ~np.isnan(self.values)
        places = np.flatnonzero(plain)
        return (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)


def _text_inside(values: Array) -> bool:
    return any(isinstance(value, str) for value in values)


def _whole(offset: Any) -> bool:
    return isinstance(offset, (int, np.integer)) or (isinstance(offset, np.ndarray) and offset.dtype.kind in "iu")


def range_start(key: OrderKey, offset: Offset, peer_starts: Int64Array) -> Int64Array:
    """For each row, the first row whose key is at least ``offset`` past its own (in the direction of the order)."""
    return _found(key, offset, peer_starts, at_end=0)


def range_end(key: OrderKey, offset: Offset, peer_ends: Int64Array) -> Int64Array:
    """For each row, the row after the last one whose key is at most ``offset`` past its own."""
    return _found(key, offset, peer_ends, at_end=1)


def _found(key: OrderKey, offset: Offset, peers: Int64Array, at_end: int) -> Int64Array:
    """Rows with NULL or NaN have only their peers at any distance."""
    begin, end = key.segment
    bound = peers.copy()
    if begin == end:
        return bound
    values = key.values[begin:end]
    if isinstance(offset, np.ndarray):
        offset = offset[begin:end]
    rises = values[::-1] if key.descending else values
    wanted, over, under = _moved(values, offset, key.descending, at_end)
    # In a falling order the rows are looked up from the other end, where what was first is last.
    after = bool(at_end) != key.descending
    place = np.searchsorted(rises, wanted, "right" if after else "left").astype(np.int64)
    place = np.where(over, end - begin, np.where(under, 0, place))
    bound[begin:end] = begin + ((end - begin) - place if key.descending else place)
    return bound


def _moved(values: Array, offset: Any, descending: bool, at_end: int) -> tuple[Array, Any, Any]:
    """Keys at the distance, and where these are larger or smaller than the key's type can say."""
    if descending:
        offset = -offset
    if values.dtype.kind == "M":
        return _moved_moments(values, offset), False, False
    if values.dtype.kind in "iu":
        # A key is whole: at least 1.5 further means at least 2.
        up = bool(at_end) == descending
        step: Any = np.atleast_1d(offset)  # unlike arrays, single numbers warn when they wrap around
        if step.dtype.kind == "f":
            step = np.ceil(step) if up else np.floor(step)
        step = np.clip(step, -(2.0**62), 2.0**62).astype(np.int64) if step.dtype.kind == "f" else step
        limits = np.iinfo(values.dtype if values.dtype.itemsize == 8 else np.int64)
        wide = values.astype(limits.dtype)
        return _added(wide, step, limits)
    with np.errstate(over="ignore"):
        return values + offset, False, False


def _added(values: Array, step: Any, limits: Any) -> tuple[Array, Any, Any]:
    """``values + step`` within the type, and where the sum is above or below it."""
    rise = np.maximum(step, 0).astype(np.uint64)
    # The smallest int64 has no positive twin in int64, but has one as an unsigned number.
    fall = np.where(step < 0, (~step.astype(np.int64)).astype(np.uint64) + np.uint64(1), np.uint64(0))
    headroom = np.uint64(limits.max) - values.view(np.uint64)
    floor_room = values.view(np.uint64) - np.uint64(limits.min % 2**64)
    over, under = rise > headroom, fall > floor_room
    moved = (values.view(np.uint64) + rise - fall).view(values.dtype)
    return moved, over, under


def _moved_moments(values: Array, offset: Any) -> Array:
    if isinstance(offset, Interval):
        return offset.after(values.astype("M8[us]") if offset.microseconds else values)
    spans = np.asarray(offset)
    moved: Array = values + (spans if spans.dtype.kind == "m" else spans.astype("m8[D]"))
    return moved


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
