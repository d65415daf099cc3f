"""Bounds of RANGE frames: where in a sorted order key the values at a distance from the current one begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, SchemaError

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Interval:
    """A calendar distance: months are as long as they are, and a day that a month lacks becomes its last."""

    months: int = 0
    microseconds: int = 0

    @property
    def is_negative(self) -> bool:
        return self.months < 0 or self.microseconds < 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.microseconds)

    def after(self, moments: Array) -> Array:
        """The moments so much later."""
        if self.months:
            month = moments.astype("M8[M]")
            day = moments - month.astype(moments.dtype)
            whole = (month + 1 + self.months).astype("M8[D]") - np.timedelta64(1, "D")  # the last day there is
            moved = (month + self.months).astype(moments.dtype) + day
            last = whole.astype(moments.dtype) + (moments - moments.astype("M8[D]").astype(moments.dtype))
            moments = np.minimum(moved, last)
        return moments + np.timedelta64(self.microseconds, "us") if self.microseconds else moments


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
