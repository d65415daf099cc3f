"""Points become cells: which cell of a stated grid a coordinate falls into.

Cell ``first + k`` holds the coordinates from ``low + k * step`` up to, not including, ``low + (k + 1) * step``; the
last cell also holds ``high``. Bounds and steps are kept as exact fractions, because a point written as 10 degrees
must start arcsecond cell 36,000, although no sum of doubles of 1/3600 says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from windrow.errors import CorruptionError, DataError, Error, SchemaError, UnknownNameError, nearest
from windrow.model import units
from windrow.model.schema import MOST_CELLS, Attribute, Dimension, check_name
from windrow.model.types import TYPES

AxisKind = Literal["number", "datetime"]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

EXACT_SUFFIX = "_exact"
"""The exact coordinate along dimension ``ra`` is kept in the attribute ``ra_exact``."""

_EXACT_IN_DOUBLE = 2**53


@dataclass(frozen=True)
class Axis:
    """One gridded coordinate; datetimes count in microseconds. ``high`` is None where the axis grows."""

    name: str
    kind: AxisKind
    low: Fraction
    high: Fraction | None
    step: Fraction
    first: int = 1

    def __post_init__(self) -> None:
        check_name(self.name, "a gridded dimension")
        if self.step <= 0:
            raise SchemaError(f"the cells of {self.name} need a size above 0", got=float(self.step))
        if self.high is not None and self.high <= self.low:
            raise SchemaError(
                f"the range of {self.name} is empty", got=f"{self._text(self.low)} to {self._text(self.high)}"
            )
        if self.count is not None and self.count >= MOST_CELLS:
            raise SchemaError(f"{self.name} has too many cells", got="more than 2^62", hint="Use a larger step")
        farthest = max(abs(self.low), abs(self.low if self.high is None else self.high))
        if self.kind == "number" and math.ulp(float(farthest)) * 8 > self.step:
            raise SchemaError(f"the step of {self.name} is too small to tell cells apart", got=float(self.step))

    @classmethod
    def of(cls, name: str, low: object, high: object, step: object, first: int = 1) -> Axis:
        """The axis from ``low`` to ``high`` (None grows) in cells of ``step``, as in (0, 360, '1 arcsec')."""
        size = units.parse_quantity(step)
        if size.kind == "time":
            ends = [None if end is None else Fraction(units.period(end).first) for end in (low, high)]
            size = units.Quantity(Fraction(size.microseconds), "time")
        else:
            ends = [None if end is None else units.parse_quantity(end).degrees for end in (low, high)]
        if ends[0] is None:
            raise SchemaError(f"the range of {name} needs a lower end", hint="As in (0, 360, '1 arcsec')")
        return cls(name, "datetime" if size.kind == "time" else "number", ends[0], ends[1], size.value, first)

    @cached_property
    def count(self) -> int | None:
        """How many cells there are; None if the axis grows."""
        return None if self.high is None else math.ceil((self.high - self.low) / self.step)

    def dimension(self, name: str | None = None, chunk: int | None = None) -> Dimension:
        last = None if self.count is None else self.first + self.count - 1
        return Dimension(self.name if name is None else name, self.first, last, chunk)

    def exact(self, values: Any) -> npt.NDArray[Any]:
        """The coordinates as the exact attribute keeps them: float64, or datetime64[us] rounded to it."""
        array = _coordinates(values)
        if array.dtype.kind in "OUT" and array.ndim == 1:
            array = self._from_objects(array.tolist())
        wanted = "M" if self.kind == "datetime" else "iuf"
        if array.ndim != 1 or array.dtype.kind not in wanted:
            what = "datetimes" if self.kind == "datetime" else "numbers"
            raise DataError(
                f"the coordinates along {self.name} are a vector of {what}", got=f"{array.ndim}-d {array.dtype}"
            )
        return units.microseconds(array) if self.kind == "datetime" else array.astype(np.float64)

    def _from_objects(self, items: list[Any]) -> npt.NDArray[Any]:
        """Coordinates from Python objects, where None and pandas' NA are missing."""
        if self.kind == "datetime":
            missing = np.datetime64("NaT", "us")
            instants = [missing if _is_missing(v) else np.datetime64(units.period(v).first, "us") for v in items]
            return np.array(instants, "datetime64[us]")
        return np.array([math.nan if _is_missing(v) else _degrees(v) for v in items], np.float64)

    def cells(self, values: Any) -> Int64Array:
        """The cell of each coordinate."""
        exact = self.exact(values)
        if self.kind == "datetime":
            whole = exact.view(np.int64)
            low = int(self.low)
            high = np.iinfo(np.int64).max if self.high is None else int(self.high)
            self._refuse(exact, np.isnat(exact) | (whole < low) | (whole > high))
            # Distances may pass 2^63, but then they are right as unsigned numbers.
            distance = whole.view(np.uint64) - np.uint64(low % 2**64)
            cells = (distance // np.uint64(int(self.step))).astype(np.int64)
        else:
            low_edge = float(self.low)
            high_edge = math.inf if self.high is None else float(self.high)
            with np.errstate(invalid="ignore"):
                fine = np.spacing(np.abs(exact)) * 8 <= float(self.step)
            self._refuse(exact, ~((exact >= low_edge) & (exact <= high_edge) & fine & np.isfinite(exact)))
            cells = self._number_cells(exact)
        if self.count is not None:
            cells = np.minimum(cells, self.count - 1)
        return cells + self.first

    def _number_cells(self, exact: Float64Array) -> Int64Array:
        """Cells from 0: a division to come close, then a comparison with the very borders."""
        cells = np.floor((exact - float(self.low)) / float(self.step)).astype(np.int64)
        cells = np.maximum(cells, 0)
        while True:
            change = (exact >= self._borders(cells + 1)).astype(np.int64) - (exact < self._borders(cells))
            if not change.any():
                return cells
            cells = np.maximum(cells + change, 0)

    def _borders(self, cells: Int64Array) -> Float64Array:
        """The lowest double of each cell, counted from 0.

        Both the double nearest to the border and the one that adding up in doubles gives belong to the upper cell.
        """
        return np.minimum(self._edges(cells), self._added_up(cells))

    def _edges(self, cells: Int64Array) -> Float64Array:
        """The double nearest to each border, where whole numbers allow to tell."""
        denominator = math.lcm(self.low.denominator, self.step.denominator)
        start, width = int(self.low * denominator), int(self.step * denominator)
        farthest = abs(start) + width * int(np.max(cells, initial=0))
        if max(farthest, denominator) > _EXACT_IN_DOUBLE:
            return self._added_up(cells)
        return np.divide(start + cells * width, denominator, dtype=np.float64)

    def _added_up(self, cells: Int64Array) -> Float64Array:
        sums = cells.astype(np.float64) * float(self.step) + float(self.low)
        return sums

    def _refuse(self, exact: npt.NDArray[Any], bad: npt.NDArray[np.bool_]) -> None:
        if not bad.any():
            return
        position = int(np.argmax(bad))
        top = "*" if self.high is None else self._text(self.high)
        raise DataError(
            f"{int(bad.sum()):,} of {len(bad):,} points have no cell along {self.name}",
            got=f"{exact[position]} at position {position} first",
            hint=f"{self.name} goes from {self._text(self.low)} to {top}, and nothing may be missing",
        )

    def low_edge(self, cells: Any) -> npt.NDArray[Any]:
        """The lowest coordinate of each cell."""
        positions = self._positions(cells)
        if self.kind == "datetime":
            return (positions * int(self.step) + int(self.low)).view("datetime64[us]")
        return self._edges(positions)

    def centre(self, cells: Any) -> npt.NDArray[Any]:
        """The middle of each cell; datetimes are rounded down to the microsecond."""
        positions = self._positions(cells)
        if self.kind == "datetime":
            return (positions * int(self.step) + int(self.low) + int(self.step) // 2).view("datetime64[us]")
        return replace(self, low=self.low + self.step / 2, high=None)._edges(positions)

    def _positions(self, cells: Any) -> Int64Array:
        positions = np.atleast_1d(np.asarray(cells)).astype(np.int64) - self.first
        count = int((2**63 - 1 - self.low) // self.step) if self.count is None else self.count
        if np.any(positions < 0) or np.any(positions >= count):
            raise DataError(f"a cell is outside {self.name}", got=cells, hint=f"It has the cells {self.dimension()}")
        return positions

    def label_range(self, lower: object = None, upper: object = None) -> tuple[int, int | None]:
        """The first and last cell that may hold coordinates within [lower, upper], first > last if none may.

        None leaves an end open; the last cell is None at the open end of a growing axis.
        """
        low = self.low if lower is None else self._read_bound(lower)[0]
        high = self.high if upper is None else self._read_bound(upper)[1]
        if lower is not None and upper is not None and high is not None and high < low:
            raise DataError(f"the range of {self.name} ends before it starts", got=f"{lower} to {upper}")
        if (self.high is not None and low > self.high) or (high is not None and high < self.low):
            return self.first, self.first - 1
        first = self._cell_of(max(low, self.low))
        if high is None:
            return first, None
        return first, self._cell_of(high if self.high is None else min(high, self.high))

    def _read_bound(self, value: object) -> tuple[Fraction, Fraction]:
        if self.kind == "datetime":
            first, last = units.period(value)
            return Fraction(first), Fraction(last)
        number = units.parse_quantity(value).degrees
        return number, number

    def _cell_of(self, bound: Fraction) -> int:
        if self.kind == "datetime":
            return int(self.cells(np.array([int(bound)], np.int64).view("datetime64[us]"))[0])
        return int(self.cells(np.array([float(bound)]))[0])

    def __str__(self) -> str:
        size = f"{float(self.step) / 1e6:.9g} seconds" if self.kind == "datetime" else f"{float(self.step):.9g}"
        top = "*" if self.high is None else self._text(self.high)
        return f"{self.name} from {self._text(self.low)} to {top} in cells of {size}"

    def _text(self, bound: Fraction) -> str:
        return str(np.datetime64(int(bound), "us")) if self.kind == "datetime" else f"{float(bound):g}"


def _coordinates(values: Any) -> npt.NDArray[Any]:
    """An ndarray in which masked values are missing ones and mixed types stay objects."""
    if isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind == "M":
            return np.ma.filled(values, np.datetime64("NaT"))
        return np.ma.filled(values.astype(np.float64), math.nan)
    return np.asarray(values) if hasattr(values, "__array__") else np.asarray(values, object)


def _degrees(value: object) -> float:
    if isinstance(value, (float, np.floating)):
        return float(value)
    return float(units.parse_quantity(value).degrees)


def _is_missing(value: object) -> bool:
    return value is None or value is np.ma.masked or type(value).__name__ == "NAType" or value != value


@dataclass(frozen=True)
class Gridding:
    """How the coordinates of points become cells, dimension by dimension."""

    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, grid: Mapping[str, object], first: int = 1) -> Gridding:
        """The gridding of ``{"ra": (0, 360, "1 arcsec"), …}``; cells are numbered from ``first``."""
        axes = []
        for name, stated in grid.items():
            if not isinstance(stated, (tuple, list)) or len(stated) != 3:
                raise SchemaError(
                    f"the grid of {name} needs low, high and step", got=repr(stated), hint="As in (0, 360, '1 arcsec')"
                )
            low, high, step = stated
            axes.append(Axis.of(name, low, high, step, first))
        if not axes:
            raise SchemaError("a gridding needs at least one dimension", hint="As in {'ra': (0, 360, '1 arcsec')}")
        return cls(tuple(axes))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def axis(self, name: str) -> Axis:
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise UnknownNameError("no such gridded dimension", got=repr(name), hint=nearest(name, self.names))

    def along(self, names: Collection[str]) -> Gridding | None:
        """The gridding of some dimensions; None if none of them has any."""
        axes = tuple(axis for axis in self.axes if axis.name in names)
        return Gridding(axes) if axes else None

    def dimensions(self, chunks: Mapping[str, int] | None = None) -> tuple[Dimension, ...]:
        return tuple(axis.dimension(chunk=(chunks or {}).get(axis.name)) for axis in self.axes)

    def exact_attributes(self) -> tuple[Attribute, ...]:
        """The attributes that keep the exact coordinates."""
        types = {"number": TYPES["float64"], "datetime": TYPES["datetime"]}
        return tuple(Attribute(axis.name + EXACT_SUFFIX, types[axis.kind]) for axis in self.axes)

    def to_json(self) -> str:
        """The gridding as text that keeps every fraction."""
        axes = [
            {
                "name": axis.name,
                "kind": axis.kind,
                "low": str(axis.low),
                "high": None if axis.high is None else str(axis.high),
                "step": str(axis.step),
                "first": axis.first,
            }
            for axis in self.axes
        ]
        return json.dumps({"format": 1, "axes": axes})

    @classmethod
    def from_json(cls, text: str) -> Gridding:
        try:
            axes = json.loads(text)["axes"]
            return cls(
                tuple(
                    Axis(
                        axis["name"],
                        axis["kind"],
                        Fraction(axis["low"]),
                        None if axis["high"] is None else Fraction(axis["high"]),
                        Fraction(axis["step"]),
                        axis["first"],
                    )
                    for axis in axes
                )
            )
        except (ValueError, KeyError, TypeError, Error) as error:
            raise CorruptionError("the stored gridding is damaged", got=repr(text[:100])) from error
