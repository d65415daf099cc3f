"""Coordinate labels: what the cells of one dimension are called (latitudes, time stamps, station names)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, UnknownNameError, nearest
from windrow.model import units
from windrow.model.label_encoding import decode, encode
from windrow.model.label_values import KINDS, NORMAL_FORMS, LabelKind, label_number, normalised, parse_label

Int64Array = npt.NDArray[np.int64]

_NAMES_SEARCHED = 2000


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per cell of a dimension, from its ``lo``; int64, float64, datetime64[us] or strings."""

    values: npt.NDArray[Any]
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.values.dtype not in NORMAL_FORMS:
            raise DataError("labels are not in normal form", got=self.values.dtype, hint="Make them with Labels.of()")
        frozen = self.values.view()
        frozen.flags.writeable = False
        object.__setattr__(self, "values", frozen)
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    @classmethod
    def of(cls, values: Any, attributes: Mapping[str, object] | None = None, kind: LabelKind | None = None) -> Labels:
        """Labels from a sequence, an ndarray, a pandas Index or an xarray coordinate, whose attributes are kept.

        Text stays text unless another ``kind`` is asked for. Times finer than a microsecond are rounded to it.
        """
        if isinstance(values, Labels):
            attributes = values.attributes if attributes is None else attributes
            values = values.values
        if attributes is None:
            attributes = getattr(values, "attrs", None)
        return cls(normalised(values, kind), {str(name): str(value) for name, value in (attributes or {}).items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels, (self.values, dict(self.attributes))

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        return self.same_values(other) and self.attributes == other.attributes

    def __hash__(self) -> int:
        return hash((self.kind, len(self), *self.values[:1].tolist(), *self.values[-1:].tolist()))

    def same_values(self, other: Labels) -> bool:
        """Whether the labels are equal, whatever their attributes."""
        return self.kind == other.kind and np.array_equal(self.values, other.values)

    @property
    def kind(self) -> LabelKind:
        return KINDS[self.values.dtype.kind]

    @cached_property
    def _direction(self) -> int:
        """1 if strictly increasing, -1 if strictly decreasing, else 0."""
        if np.all(self.values[1:] > self.values[:-1]):
            return 1
        return -1 if np.all(self.values[1:] < self.values[:-1]) else 0

    @property
    def is_monotonic(self) -> bool:
        """Strictly increasing or strictly decreasing."""
        return self._direction != 0

    @property
    def is_decreasing(self) -> bool:
        return self._direction < 0

    @property
    def is_regular(self) -> bool:
        return self.step is not None

    @cached_property
    def step(self) -> int | float | np.timedelta64 | None:
        """The difference of any two neighbours, or None if it varies (by over a thousandth, for floats)."""
        if len(self) < 2 or self.kind == "string" or not self.is_monotonic:
            return None
        if self.values.dtype == np.float64:
            step = (float(self.values[-1]) - float(self.values[0])) / (len(self) - 1)
            if not math.isfinite(step):
                return None
            line = self.values[0] + np.arange(len(self)) * step
            return step if np.all(np.abs(self.values - line) <= abs(step) / 1000) else None
        whole = self.values.astype(np.int64)
        difference, steps = int(whole[1]) - int(whole[0]), np.diff(whole)
        # Differences of far labels wrap around, so their sum is checked as well.
        if np.any(steps != steps[0]) or int(whole[-1]) - int(whole[0]) != difference * len(steps):
            return None
        return np.timedelta64(difference, "us") if self.kind == "datetime" else difference

    def slice(self, start: int, stop: int) -> Labels:
        """The labels at positions ``start`` to ``stop``, the latter excluded."""
        if not 0 <= start <= stop <= len(self):
            raise DataError("the slice is outside the labels", got=f"{start}:{stop}", hint=f"There are {len(self)}")
        return Labels(self.values[start:stop], self.attributes)

    def concat(self, other: Labels) -> Labels:
        """These labels followed by ``other``, with the attributes of these."""
        return Labels(np.concatenate(self._alike(other)), self.attributes)

    def take(self, positions: Int64Array) -> Labels:
        """The labels at these positions, in their order."""
        return Labels(self.values[positions], self.attributes)

    def positions(self, wanted: Labels) -> Int64Array:
        """Where each of the wanted labels is among these; -1 for one that is not."""
        mine, theirs = self._alike(wanted)
        order = np.argsort(mine, stable=True)
        ascending = mine[order]
        left, right = (np.searchsorted(ascending, theirs, side) for side in ("left", "right"))
        if (right - left > 1).any():
            twin = theirs[int(np.argmax(right - left))]
            raise DataError(
                "several cells have this label", got=str(twin), hint="Give at=, or run windrow doctor --repair"
            )
        found = np.full(len(theirs), -1, np.int64)
        found[right > left] = order[left[right > left]]
        return found

    def first_twin(self) -> int | None:
        """The position of a label that another cell has as well, if there is one."""
        order = np.argsort(self.values, stable=True)
        ascending = self.values[order]
        twins = order[1:][np.asarray(ascending[1:] == ascending[:-1], bool)]
        return int(twins.min()) if len(twins) else None

    def _alike(self, other: Labels) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if self.kind != other.kind and len(self) and len(other):
            raise DataError(f"the labels are of kind {self.kind}", got=other.kind, hint="Convert them first")
        dtype = other.values.dtype if len(self) == 0 else self.values.dtype
        if {self.values.dtype, other.values.dtype} == {np.dtype(np.int64), np.dtype(np.float64)}:
            dtype = np.dtype(np.float64)
        return self.values.astype(dtype), other.values.astype(dtype)

    def parse(self, value: object) -> Any:
        """``value`` (text or a value) as a label of this kind; a date is its first instant."""
        return parse_label(value, self.kind)

    def compared(self, operator: str, wanted: object) -> npt.NDArray[np.bool_]:
        """Which labels are ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=`` a value; a date stands for its period."""
        lower, upper = self._interval(wanted)
        values = self._comparable
        if operator in ("=", "<>"):
            same = (values >= lower) & (values <= upper)
            return np.asarray(same if operator == "=" else ~same)
        if operator in ("<", ">="):
            return np.asarray(values < lower if operator == "<" else values >= lower)
        return np.asarray(values > upper if operator == ">" else values <= upper)

    def find(self, label: object) -> int:
        """The position of the one cell with this label; a date finds the one label in it."""
        lower, upper = self._interval(label)
        positions = np.flatnonzero((self._comparable >= lower) & (self._comparable <= upper))
        if len(positions) == 1:
            return int(positions[0])
        if len(positions):
            raise DataError("several cells have this label", got=label, hint="Give a range, or select by index")
        raise UnknownNameError("no such label", got=_show_label(label), hint=self._nearest(lower))

    def nearest(self, wanted: object, period: int | float | None = None) -> int:
        """The position of the label nearest to a value, the first of two; labels may begin anew after a ``period``."""
        if self.kind == "string":
            raise DataError("text labels have no distances", got=repr(wanted), hint="Give the label itself")
        if not len(self):
            raise UnknownNameError("no such label", got=_show_label(wanted), hint="There are no labels yet")
        distance = np.abs(self._comparable.astype(np.float64) - float(self._interval(wanted)[0]))
        if period is not None:
            distance = np.minimum(distance % period, -distance % period)
        return int(np.argmin(distance))

    def neighbour_ranges(
        self, before: object, after: object, *, open_before: bool = False, open_after: bool = False
    ) -> tuple[Int64Array, Int64Array]:
        """For each cell, the first and last position whose label is within [label - before, label + after].

        An ``open`` end leaves out labels that lie exactly on it.
        Extents are numbers, for datetimes lengths of time or microseconds. Floats are compared up to their rounding,
        so that on a grid of 0.1 an extent of 0.3 reaches three cells. A negative extent may give first > last.
        """
        if self.kind == "string" or not self.is_monotonic:
            raise DataError(
                "a window in label units needs labels that increase or decrease throughout",
                got=f"{self.kind} labels",
                hint="Give the window as a number of cells",
            )
        ascending = self._comparable[::-1] if self.is_decreasing else self._comparable
        low, high = _reach(ascending, (self._extent(before), open_before), (self._extent(after), open_after))
        first = np.searchsorted(ascending, low, "left").astype(np.int64)
        last = np.searchsorted(ascending, high, "right").astype(np.int64) - 1
        if self.is_decreasing:
            return len(self) - 1 - last[::-1], len(self) - 1 - first[::-1]
        return first, last

    def reaching_outside(self, before: object, after: object) -> npt.NDArray[np.bool_]:
        """For each cell, whether [label - before, label + after] leaves the range from the first label to the last."""
        ascending = self._comparable[::-1] if self.is_decreasing else self._comparable
        low, high = _reach(ascending, (self._extent(before), True), (self._extent(after), True))
        outside: npt.NDArray[np.bool_] = (low < ascending[0]) | (high > ascending[-1])
        return outside[::-1] if self.is_decreasing else outside

    def parse_extent(self, text: object) -> int | float:
        """A window's extent in label units: microseconds for datetimes, else in the labels' own unit."""
        if self.kind == "string":
            raise DataError("text labels have no distances", got=repr(text), hint="Give a number of cells")
        if self.kind == "datetime":
            return units.parse_quantity(text).microseconds
        number, name = units.split_quantity(text)
        own = self.attributes.get("units", "")
        if name in ("", own):
            return _plain(number)
        kind, size = units.unit(name)
        own_kind, own_size = units.UNITS.get(own, ("angle", 1) if not own else ("number", 1))
        if kind != own_kind:
            raise DataError(
                "the extent's unit is not that of the labels", got=repr(name), hint=f"They are in {own or 'degrees'!r}"
            )
        return _plain(number * size / own_size)

    def to_bytes(self) -> bytes:
        """The labels and their attributes as bytes, the same for equal labels."""
        return encode(self.values, self.attributes)

    @classmethod
    def from_bytes(cls, data: bytes) -> Labels:
        return cls(*decode(data))

    def __repr__(self) -> str:
        shown = [str(value) for value in (self.values if len(self) <= 4 else self.values[[0, 1, -1]])]
        if len(self) > 4:
            shown.insert(2, "…")
        return f"Labels({len(self)} × {self.kind}: {', '.join(shown)})"

    @cached_property
    def _comparable(self) -> npt.NDArray[Any]:
        return self.values.view(np.int64) if self.kind == "datetime" else self.values

    def _interval(self, value: object) -> tuple[Any, Any]:
        """The lowest and highest comparable value that ``value`` stands for."""
        if self.kind == "datetime":
            return units.period(value)
        parsed = self.parse(value)
        if self.values.dtype == np.int64 and isinstance(parsed, float) and math.isfinite(parsed):
            return math.ceil(parsed), math.floor(parsed)  # NumPy would compare as doubles, inexact beyond 2^53
        return parsed, parsed

    def _extent(self, value: object) -> int | float:
        if isinstance(value, (str, timedelta, np.timedelta64)):
            return self.parse_extent(value)
        return label_number(value)

    def _nearest(self, value: Any) -> str:
        if not len(self):
            return "There are no labels yet"
        if self.kind == "string":
            return nearest(value, self.values[:_NAMES_SEARCHED].tolist())
        distances = np.abs(self._comparable.astype(np.float64) - float(value))
        return f"The nearest is {self.values[int(np.argmin(distances))]}"


def _plain(number: Any) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


_End = tuple[int | float, bool]
"""How far a window reaches, and whether what lies exactly there is left out."""


def _reach(ascending: npt.NDArray[Any], before: _End, after: _End) -> tuple[Any, Any]:
    """The lowest and highest label each cell's window takes in."""
    if ascending.dtype == np.float64:
        # Labels read from float32 files are only as exact as float32.
        with np.errstate(over="ignore"):
            single = np.array_equal(ascending, ascending.astype(np.float32).astype(np.float64))
            largest = np.max(np.abs(ascending[np.isfinite(ascending)]), initial=0)
            slack = 4 * float(np.finfo(np.float32 if single else np.float64).eps) * largest
            low, high = ((reach - slack if is_open else reach + slack) for reach, is_open in (before, after))
            return ascending - low, ascending + high
    return _shift(ascending, -_whole(*before)), _shift(ascending, _whole(*after))


def _whole(reach: int | float, is_open: bool) -> int:
    """The largest whole number that is at most ``reach``, or less than it."""
    if not math.isfinite(reach):
        return int(math.copysign(2**64, reach))
    return math.ceil(reach) - 1 if is_open else math.floor(reach)


def _shift(values: Int64Array, offset: int) -> Int64Array:
    """``values + offset``, kept within int64."""
    bounds = np.iinfo(np.int64)
    offset = min(max(offset, -(2**64)), 2**64)
    part = min(max(offset, -bounds.max), bounds.max)
    if part != offset:
        return _shift(_shift(values, part), offset - part)
    if offset >= 0:
        return np.where(values > bounds.max - offset, bounds.max, values + np.int64(offset))
    return np.where(values < bounds.min - offset, bounds.min, values + np.int64(offset))


def _show_label(label: object) -> str:
    """A label as a user would write it, though NumPy may hold it."""
    if isinstance(label, np.datetime64):
        return str(label)
    return repr(label.item() if isinstance(label, np.generic) else label)
