"""Coordinate labels: what the cells of one dimension are called (latitudes, time stamps, station names)."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from windrow.errors import CorruptionError, DataError, StoreError, UnknownNameError, nearest
from windrow.model import units

LabelKind = Literal["number", "datetime", "string"]
Int64Array = npt.NDArray[np.int64]
Positions = tuple[int, int]

_STRING = np.dtypes.StringDType()
_DATETIME = np.dtype("datetime64[us]")
_KINDS: dict[str, LabelKind] = {"i": "number", "f": "number", "M": "datetime", "T": "string"}
_DTYPE_OF_KIND: dict[LabelKind, np.dtype[Any]] = {
    "number": np.dtype(np.float64),
    "datetime": _DATETIME,
    "string": _STRING,
}
_NAMES_SEARCHED = 2000


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per cell of a dimension, from its ``lo``; int64, float64, datetime64[us] or strings."""

    values: npt.NDArray[Any]
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.values.dtype not in (np.int64, np.float64, _DATETIME, _STRING):
            raise DataError("labels are not in normal form", got=self.values.dtype, hint="Make them with Labels.of()")
        frozen = self.values.view()
        frozen.flags.writeable = False
        object.__setattr__(self, "values", frozen)
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    @classmethod
    def of(cls, values: Any, attributes: Mapping[str, object] | None = None, kind: LabelKind | None = None) -> Labels:
        """Labels from a sequence, an ndarray, a pandas Index or an xarray coordinate.

        Text stays text unless another ``kind`` is asked for. Times finer than a microsecond are rounded to it.
        """
        if attributes is None and isinstance(values, Labels):
            attributes = values.attributes
        return cls(_normalised(values, kind), {str(name): str(value) for name, value in (attributes or {}).items()})

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
        return _KINDS[self.values.dtype.kind]

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

    def replaced(self, start: int, values: Any) -> Labels:
        """The labels with those from position ``start`` on replaced by ``values``."""
        mine, new = self._alike(values if isinstance(values, Labels) else Labels.of(values))
        if not 0 <= start <= len(self) - len(new):
            raise DataError(
                "the new labels do not fit", got=f"{len(new)} at position {start}", hint=f"There are {len(self)}"
            )
        return Labels(np.concatenate([mine[:start], new, mine[start + len(new) :]]), self.attributes)

    def _alike(self, other: Labels) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if self.kind != other.kind and len(self) and len(other):
            raise DataError(f"the labels are of kind {self.kind}", got=other.kind, hint="Convert them first")
        dtype = other.values.dtype if len(self) == 0 else self.values.dtype
        if {self.values.dtype, other.values.dtype} == {np.dtype(np.int64), np.dtype(np.float64)}:
            dtype = np.dtype(np.float64)
        return self.values.astype(dtype), other.values.astype(dtype)

    def parse(self, value: object) -> Any:
        """``value`` (text or a value) as a label of this kind; a date is its first instant."""
        if self.kind == "datetime":
            return np.datetime64(units.period(value).first, "us")
        if self.kind == "number":
            return _number(value)
        if not isinstance(value, str):
            raise DataError("the labels are text", got=repr(value), hint="Give the label in quotes")
        return str(value)

    def find_range(self, lower: object = None, upper: object = None) -> Positions:
        """The first and last position, inclusive, of the labels within [lower, upper]; None leaves an end open.

        A date given only to the day, month or year as ``upper`` covers all of it. Nothing within gives first > last.
        """
        inside = np.ones(len(self), bool)
        if lower is not None:
            inside &= self._comparable >= self._interval(lower)[0]
        if upper is not None:
            inside &= self._comparable <= self._interval(upper)[1]
        positions = np.flatnonzero(inside)
        if not len(positions):
            return 0, -1
        first, last = int(positions[0]), int(positions[-1])
        if last - first + 1 != len(positions):
            outside = first + int(np.flatnonzero(~inside[first:])[0])
            raise DataError(
                f"the labels from {lower} to {upper} are not next to each other",
                got=f"{self.values[outside]} between {self.values[first]} and {self.values[last]}",
                hint="The labels are not sorted: select by index instead",
            )
        return first, last

    def find(self, label: object) -> int:
        """The position of the one cell with this label; a date finds the one label in it."""
        lower, upper = self._interval(label)
        positions = np.flatnonzero((self._comparable >= lower) & (self._comparable <= upper))
        if len(positions) == 1:
            return int(positions[0])
        if len(positions):
            raise DataError("several cells have this label", got=label, hint="Give a range, or select by index")
        raise UnknownNameError("no such label", got=repr(label), hint=self._nearest(lower))

    def neighbour_ranges(self, before: object, after: object) -> tuple[Int64Array, Int64Array]:
        """For each cell, the first and last position whose label is within [label - before, label + after].

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
        low, high = _reach(ascending, self._extent(before), self._extent(after))
        first = np.searchsorted(ascending, low, "left").astype(np.int64)
        last = np.searchsorted(ascending, high, "right").astype(np.int64) - 1
        if self.is_decreasing:
            return len(self) - 1 - last[::-1], len(self) - 1 - first[::-1]
        return first, last

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
        return _encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Labels:
        return _decode(data)

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
        return _number(value)

    def _nearest(self, value: Any) -> str:
        if not len(self):
            return "There are no labels yet"
        if self.kind == "string":
            return nearest(value, self.values[:_NAMES_SEARCHED].tolist())
        distances = np.abs(self._comparable.astype(np.float64) - float(value))
        return f"The nearest is {self.values[int(np.argmin(distances))]}"


def _plain(number: Any) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _reach(ascending: npt.NDArray[Any], before: int | float, after: int | float) -> tuple[Any, Any]:
    """The lowest and highest label each cell's window takes in."""
    if ascending.dtype == np.float64:
        # Labels read from float32 files are only as exact as float32.
        with np.errstate(over="ignore"):
            single = np.array_equal(ascending, ascending.astype(np.float32).astype(np.float64))
            largest = np.max(np.abs(ascending[np.isfinite(ascending)]), initial=0)
            slack = 4 * float(np.finfo(np.float32 if single else np.float64).eps) * largest
            return ascending - before - slack, ascending + after + slack
    return _shifted(ascending, -_floor(before)), _shifted(ascending, _floor(after))


def _floor(reach: int | float) -> int:
    return math.floor(reach) if math.isfinite(reach) else int(math.copysign(2**64, reach))


def _shifted(values: Int64Array, offset: int) -> Int64Array:
    """``values + offset``, kept within int64."""
    bounds = np.iinfo(np.int64)
    offset = min(max(offset, -(2**64)), 2**64)
    part = min(max(offset, -bounds.max), bounds.max)
    if part != offset:
        return _shifted(_shifted(values, part), offset - part)
    if offset >= 0:
        return np.where(values > bounds.max - offset, bounds.max, values + np.int64(offset))
    return np.where(values < bounds.min - offset, bounds.min, values + np.int64(offset))


def _number(value: object) -> int | float:
    """A number from a number or its text; never NaN."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                raise DataError("the labels are numbers", got=repr(value), hint="As in 12.5") from None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise DataError("the labels are numbers", got=repr(value), hint="As in 12.5")
    if isinstance(value, (int, np.integer)):
        if abs(int(value)) < 2**1000:
            return int(value)
        return math.inf if value > 0 else -math.inf
    if math.isnan(value):
        raise DataError("a label cannot be NaN", hint="Give a number")
    return float(value)


def _normalised(values: Any, kind: LabelKind | None) -> npt.NDArray[Any]:
    """``values`` as int64, float64, datetime64[us] or strings, or a DataError saying why not."""
    array = _as_array(values)
    if array.ndim != 1:
        raise DataError("labels have one dimension", got=f"{array.ndim}")
    if array.dtype.kind == "S":
        array = _texts([text.decode(errors="surrogateescape") for text in array.tolist()])
    if array.dtype.kind in "UT" and kind in ("number", "datetime"):
        empty = Labels(np.empty(0, _DTYPE_OF_KIND[kind]))
        array = np.array([empty.parse(text) for text in array.tolist()])
    converted = _converted(array)
    if converted.dtype.kind in "fM" and np.isnan(converted).any():
        position = int(np.argmax(np.isnan(converted)))
        raise DataError("every cell needs a label", got=f"a missing one at position {position}")
    if kind is not None and not len(converted):
        return np.empty(0, _DTYPE_OF_KIND[kind])
    if kind is not None and _KINDS[converted.dtype.kind] != kind:
        raise DataError(f"labels of kind {kind} are needed", got=_KINDS[converted.dtype.kind])
    return converted


def _as_array(values: Any) -> npt.NDArray[Any]:
    """The values as an ndarray, in which mixed types stay objects instead of all becoming text."""
    if isinstance(values, Labels):
        return values.values
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError("labels are a sequence", got=repr(values), hint="As in [0.5, 1.5, 2.5]")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError("every cell needs a label", got="masked values")
    array = np.asarray(values) if hasattr(values, "__array__") else _objects(list(values))
    if array.dtype.kind != "O" or array.ndim != 1:
        return array
    return _from_objects(array.tolist())


def _objects(items: list[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _from_objects(items: list[Any]) -> npt.NDArray[Any]:
    """An ndarray of one kind from Python objects that are all of that kind."""
    for position, item in enumerate(items):
        if item is None or item is np.ma.masked or type(item).__name__ in ("NAType", "NaTType"):
            raise DataError("every cell needs a label", got=f"a missing one at position {position}")
        if type(item).__module__.startswith("cftime"):
            raise DataError(
                "labels in a calendar other than the standard one cannot be kept as datetimes",
                got=f"{type(item).__name__} at position {position}",
                hint="Convert them with xarray's convert_calendar('standard'), or give them as text",
            )
    if all(isinstance(item, str) for item in items):
        return _texts(items) if items else np.empty(0, np.float64)
    if all(isinstance(item, (date, np.datetime64)) for item in items):  # a datetime is a date too
        if any(isinstance(item, np.datetime64) and np.isnat(item) for item in items):
            raise DataError("every cell needs a label", got="NaT")
        return np.array([units.period(item).first for item in items], np.int64).view(_DATETIME)
    numbers = (int, float, np.integer, np.floating)
    odd = [item for item in items if isinstance(item, (bool, np.bool_)) or not isinstance(item, numbers)]
    if odd:
        kinds = sorted({type(item).__name__ for item in items})
        raise DataError(
            "labels are all numbers, all dates or all text", got=" and ".join(kinds), hint="Convert them to one kind"
        )
    try:
        return np.array(items, np.int64 if all(isinstance(item, (int, np.integer)) for item in items) else np.float64)
    except OverflowError as error:
        raise DataError("a label is too large for int64", got=max(items, key=abs), hint="Give them as text") from error


def _texts(items: Any) -> npt.NDArray[Any]:
    try:
        return np.array(items, _STRING)
    except UnicodeEncodeError as error:
        raise DataError("a label is not valid text", got=repr(error.object)) from error
    except ValueError as error:
        raise DataError("every cell needs a label", got="a missing one among text") from error


def _converted(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind in "iu":
        if array.dtype == np.uint64 and np.any(array > np.iinfo(np.int64).max):
            raise DataError("a label is too large for int64", got=array.max(), hint="Give them as floats or text")
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    if array.dtype.kind == "M":
        return units.microseconds(array)
    if array.dtype.kind in "UT":
        return _texts(array)
    hint = "Give them as numbers, as in values / np.timedelta64(1, 'h')" if array.dtype.kind == "m" else None
    raise DataError("labels are numbers, dates or text", got=array.dtype, hint=hint or "Convert them to one of these")


_MAGIC = b"wlab"
_FORMAT = 1
_HEADER = struct.Struct("<4sBcI")  # magic, format, kind of the dtype, CRC-32 of the body
_DTYPES: dict[bytes, np.dtype[Any]] = {b"i": np.dtype("<i8"), b"f": np.dtype("<f8"), b"M": np.dtype("<i8")}


def _encode(labels: Labels) -> bytes:
    code = labels.values.dtype.kind.encode()
    attributes = json.dumps(dict(labels.attributes), sort_keys=True).encode()
    if code == b"T":
        texts = [text.encode() for text in labels.values.tolist()]
        content = np.array([len(text) for text in texts], "<u4").tobytes() + b"".join(texts)
    elif code == b"f":
        content = _shuffled(labels.values.astype("<f8"))
    else:
        whole = labels.values.view(np.int64).astype("<i8")
        content = _shuffled(np.diff(whole, prepend=np.int64(0)))  # equal steps become equal numbers
    body = zlib.compress(struct.pack("<IQ", len(attributes), len(labels)) + attributes + content, 6)
    return _HEADER.pack(_MAGIC, _FORMAT, code, _checksum(code, body)) + body


def _checksum(code: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(code))


def _shuffled(values: npt.NDArray[Any]) -> bytes:
    """First bytes first, second bytes second, …: neighbours are alike, which compresses."""
    return values.view(np.uint8).reshape(-1, 8).T.tobytes()


def _decode(data: bytes) -> Labels:
    try:
        magic, version, code, checksum = _HEADER.unpack_from(data)
        body = bytes(data[_HEADER.size :])
        if magic == _MAGIC and version > _FORMAT:
            raise StoreError("the labels are of a newer format", got=version, hint="Use a newer windrow")
        if magic != _MAGIC or version != _FORMAT or checksum != _checksum(code, body):
            raise CorruptionError("the stored labels are damaged")
        content = zlib.decompress(body)
        size, count = struct.unpack_from("<IQ", content)
        attributes = json.loads(content[12 : 12 + size])
        return Labels(_decoded_values(code, content[12 + size :], count), attributes)
    except (ValueError, KeyError, TypeError, struct.error, zlib.error, DataError) as error:
        raise CorruptionError("the stored labels are damaged", got=f"{len(data)} bytes") from error


def _decoded_values(code: bytes, content: bytes, count: int) -> npt.NDArray[Any]:
    if code == b"T":
        ends = np.cumsum(np.frombuffer(content, "<u4", count), dtype=np.int64)
        texts = content[4 * count :]
        starts = np.concatenate([[0], ends])
        if len(texts) != starts[-1]:
            raise ValueError("wrong length")
        return _texts([texts[a:b].decode() for a, b in zip(starts, ends, strict=False)])
    raw = np.frombuffer(content, np.uint8).reshape(8, count).T.copy().view(_DTYPES[code]).reshape(count)
    if code == b"f":
        return raw.astype(np.float64)
    whole = np.cumsum(raw.astype(np.int64), dtype=np.int64)
    return whole.view(_DATETIME) if code == b"M" else whole
