"""Quantities and instants as users write them: ``'1 arcsec'``, ``'30 days'``, ``'2012-01'``.

Instants are whole microseconds since 1970 in UTC. A quantity keeps an exact fraction, so that a step of one
arcsecond is 1/3600 degree and not the double nearest to it.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, nearest

UnitKind = Literal["number", "time", "angle"]

_MICROSECONDS = (
    (1, ("us", "µs", "usec", "microsecond", "microseconds")),
    (10**3, ("ms", "msec", "millisecond", "milliseconds")),
    (10**6, ("s", "sec", "secs", "second", "seconds")),
    (60 * 10**6, ("min", "mins", "minute", "minutes")),
    (3600 * 10**6, ("h", "hr", "hrs", "hour", "hours")),
    (86400 * 10**6, ("d", "day", "days")),
    (7 * 86400 * 10**6, ("w", "week", "weeks")),
)
_DEGREES = (
    (Fraction(1), ("deg", "degree", "degrees", "°", "degrees_north", "degrees_east", "degree_north", "degree_east")),
    (Fraction(1, 60), ("arcmin", "arcmins", "arcminute", "arcminutes")),
    (Fraction(1, 3600), ("arcsec", "arcsecs", "arcsecond", "arcseconds")),
    (Fraction(1, 3_600_000), ("mas", "milliarcsec", "milliarcsecond", "milliarcseconds")),
    (Fraction(180 / math.pi), ("rad", "rads", "radian", "radians")),
)
UNITS: dict[str, tuple[UnitKind, Fraction]] = {
    **{name: ("time", Fraction(size)) for size, names in _MICROSECONDS for name in names},
    **{name: ("angle", size) for size, names in _DEGREES for name in names},
}
"""Unit name to its kind and its size, in microseconds or degrees."""

_VARYING = {"month", "months", "mon", "year", "years", "yr", "y"}
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?)\s*([A-Za-zµ°%].*?)?\s*\Z")


class Quantity(NamedTuple):
    """An exact value in microseconds (time), degrees (angle) or as it stands (number)."""

    value: Fraction
    kind: UnitKind

    @property
    def microseconds(self) -> int:
        """The quantity as whole microseconds."""
        if self.kind != "time":
            raise DataError("a length of time is needed", got=self._shown, hint="Write it with a unit, as in '30 days'")
        if self.value.denominator != 1:
            raise DataError("times are kept to the microsecond", got=f"{float(self.value)} microseconds")
        return int(self.value)

    @property
    def degrees(self) -> Fraction:
        """The quantity in degrees; a bare number is taken as degrees."""
        if self.kind == "time":
            raise DataError("an angle is needed", got=self._shown, hint="Write it as in '5 degrees' or '1 arcsec'")
        return self.value

    @property
    def _shown(self) -> str:
        unit = {"number": "without a unit", "time": "microseconds", "angle": "degrees"}[self.kind]
        return f"{float(self.value):g} {unit}"


def split_quantity(value: object) -> tuple[Fraction, str]:
    """The number and the unit's text (perhaps empty) of ``'5 degrees'``, ``'5'`` or ``5``."""
    if isinstance(value, str):
        match = _QUANTITY.match(value)
        if not match:
            raise DataError("not a quantity", got=repr(value), hint="Write a number and a unit, as in '30 days'")
        if abs(int(match[2] or 0)) > 400:
            raise DataError("the number is beyond what a double can hold", got=repr(value))
        return Fraction(match[1]), match[3] or ""
    return exact_number(value), ""


def exact_number(value: object) -> Fraction:
    """A number as the decimal it was written as: 0.1 is one tenth."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise DataError("a number is needed", got=repr(value))
    if isinstance(value, (int, np.integer)):
        return Fraction(int(value))
    if not math.isfinite(value):
        raise DataError("a finite number is needed", got=value)
    return Fraction(repr(float(value)))


def unit(name: str) -> tuple[UnitKind, Fraction]:
    """The kind and size of a unit."""
    known = UNITS.get(name) or UNITS.get(name.lower())
    if known is not None:
        return known
    if name.lower() in _VARYING:
        raise DataError(
            f"{name!r} is no fixed length of time, as months and years vary", hint="Use days, as in '30 days'"
        )
    raise DataError("unknown unit", got=repr(name), hint=nearest(name.lower(), UNITS))


def parse_quantity(value: object) -> Quantity:
    """What ``'1 arcsec'``, ``'30 days'``, ``'0.5'``, ``0.5`` or a timedelta says."""
    if isinstance(value, (timedelta, np.timedelta64)):
        return Quantity(Fraction(_timedelta_microseconds(value)), "time")
    number, name = split_quantity(value)
    if not name:
        return Quantity(number, "number")
    kind, size = unit(name)
    return Quantity(number * size, kind)


def _timedelta_microseconds(value: timedelta | np.timedelta64) -> int:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    name, count = np.datetime_data(value.dtype)
    if np.isnat(value) or name in ("Y", "M", "generic"):
        raise DataError("a fixed length of time is needed", got=repr(value), hint="As in np.timedelta64(30, 'D')")
    whole = int(value.astype(np.int64)) * count
    nanoseconds = {"ps": 10**3, "fs": 10**6, "as": 10**9}
    if name in ("ns", *nanoseconds):
        return whole // (1000 * nanoseconds.get(name, 1))
    return whole * int(UNITS[{"m": "min", "W": "w", "D": "d"}.get(name, name)][1])


class Period(NamedTuple):
    """The instants a date or time stands for, ``first`` to ``last`` inclusive, in microseconds since 1970."""

    first: int
    last: int


_STAMP = re.compile(
    r"\s*(?P<Y>\d{4}|[+-]\d{4,6})"
    r"(?:-(?P<M>\d\d)(?:-(?P<D>\d\d)(?:[T ](?P<h>\d\d)(?::(?P<m>\d\d)(?::(?P<s>\d\d)(?:\.(?P<f>\d{1,9}))?)?)?"
    r"(?P<zone>Z|z|[+-]\d\d:?\d\d)?)?)?)?\s*\Z"
)


def period(value: object) -> Period:
    """The instants that text, a date, a datetime or a datetime64 stands for.

    What is given only to the day (month, year, hour, …) stands for all of it; datetimes and datetime64 in seconds or
    finer are single instants. Instants with a time zone become UTC.
    """
    if isinstance(value, str):
        return _parse_stamp(value)
    if hasattr(value, "to_datetime64"):  # a pandas Timestamp, which would lose its nanoseconds as a datetime
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return _period_of_datetime64(value)
    if isinstance(value, datetime):
        naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        instant = (naive - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        return Period(instant, instant)
    if isinstance(value, date):
        return _period_of_datetime64(np.datetime64(value, "D"))
    raise DataError("a date or time is needed", got=repr(value), hint="As in '2012-01-31' or '2012-01-31T18:00'")


def _parse_stamp(text: str) -> Period:
    hint = "Write it as in '2012', '2012-01-31' or '2012-01-31T18:00:00.5Z'"
    match = _STAMP.match(text)
    if not match:
        raise DataError("not a date or time", got=repr(text), hint=hint)
    parts = match.groupdict()
    finest = next(name for name in "smhDMY" if parts[name])
    stamp = parts["Y"]
    for name, before in zip("MDhms", "--T::", strict=True):
        stamp += before + parts[name] if parts[name] else ""
    try:
        first, last = _period_of_datetime64(np.array(stamp, f"datetime64[{finest}]"), whole=True)
    except ValueError as error:
        raise DataError("not a date or time", got=repr(text), hint=hint) from error
    if parts["f"]:
        first += round(Fraction("0." + parts["f"]) * 10**6)
        last = first + 10 ** max(0, 6 - len(parts["f"])) - 1
    if parts["zone"] and parts["zone"] not in "Zz":
        digits = parts["zone"].replace(":", "")
        shift = int(digits[0] + "1") * (int(digits[1:3]) * 60 + int(digits[3:5])) * 60 * 10**6
        first, last = first - shift, last - shift
    return Period(first, last)


def _period_of_datetime64(value: np.datetime64 | npt.NDArray[Any], whole: bool = False) -> Period:
    if np.isnat(value):
        raise DataError("a date or time is missing", got="NaT")
    first = int(microseconds(np.asarray(value)).astype(np.int64))
    if not whole and np.datetime_data(value.dtype)[0] not in ("Y", "M", "W", "D", "h", "m"):
        return Period(first, first)
    following = np.asarray(value + 1)
    return Period(first, int(microseconds(following).astype(np.int64)) - 1)


def microseconds(values: npt.NDArray[Any]) -> npt.NDArray[np.datetime64]:
    """datetime64 of any unit as datetime64[us], finer ones rounded to the nearest; NaT stays."""
    name, count = np.datetime_data(values.dtype)
    if count != 1:
        values = values.astype(f"datetime64[{name}]")
    finer = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}.get(name)
    if finer is not None:
        whole = values.astype(np.int64)
        rounded = whole // finer + (whole % finer >= finer // 2)
        return np.where(np.isnat(values), np.datetime64("NaT", "us"), rounded.astype("datetime64[us]"))
    result = values.astype("datetime64[us]")
    if name != "generic" and not np.all((result.astype(values.dtype) == values) | np.isnat(values)):
        raise DataError("a time is too far from 1970 to keep to the microsecond", got=f"unit {name}")
    return result
