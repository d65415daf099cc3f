"""SQL's frames: which rows around a row an aggregate is over, and what rows are sorted by.

``Frame`` is the same wherever frames are: as a user gives it, as a query's text has it, and as tasks compute it. Only
what its bounds are made of differs: amounts that were given, expressions that were written, columns that hold them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from windrow.errors import SchemaError, nearest

UNITS = ("rows", "range", "groups")
EXCLUDES = ("no others", "current row", "group", "ties")

DAY = 86_400_000_000
"""Microseconds: distances along dates and times are counted in them."""

_DURATIONS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY,
    "week": 7 * DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_PART = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s+'?([a-z]+?)s?'?(?=\s|,|$)", re.IGNORECASE)


def check_exclude(exclude: str) -> None:
    """Refuse what is no EXCLUDE of SQL."""
    if exclude not in EXCLUDES:
        raise SchemaError(
            "exclude must be one of " + ", ".join(EXCLUDES), got=repr(exclude), hint=nearest(str(exclude), EXCLUDES)
        )


@dataclass(frozen=True)
class SortKey:
    """A column that rows are sorted by, as Spark sorts: NULL at one end, NaN above all numbers."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        return f"{self.column} desc" if self.descending else self.column


# Distances


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

    def after(self, moments: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The moments so much later."""
        if self.months:
            month = moments.astype("M8[M]")
            day = moments - month.astype(moments.dtype)
            whole = (month + 1 + self.months).astype("M8[D]") - np.timedelta64(1, "D")  # the last day there is
            moved = (month + self.months).astype(moments.dtype) + day
            last = whole.astype(moments.dtype) + (moments - moments.astype("M8[D]").astype(moments.dtype))
            moments = np.minimum(moved, last)
        return moments + np.timedelta64(self.microseconds, "us") if self.microseconds else moments

    def __str__(self) -> str:
        # A minus in front is of the whole, as it is when an interval is read.
        negative = (self.months or self.microseconds) < 0
        months, rest = (-self.months, -self.microseconds) if negative else (self.months, self.microseconds)
        parts = [_amount(months, "month")] if months else []
        sign, rest = (-1 if rest < 0 else 1), abs(rest)
        for unit in ("day", "hour", "minute", "second", "microsecond"):
            whole, rest = divmod(rest, _DURATIONS[unit])
            parts += [_amount(sign * whole, unit)] if whole else []
        return f"interval '{'-' if negative else ''}{' '.join(parts) or '0 days'}'"


def _amount(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if abs(number) == 1 else 's'}"


def parse_interval(text: str) -> Interval | None:
    """``7 days``, ``-1 month``, ``interval 2 hours 30 minutes``; None for what is no interval.

    >>> parse_interval("-1 day 12 hours")
    Interval(months=0, microseconds=-129600000000)
    """
    rest = re.sub(r"^\s*(-?)\s*interval\b", r"\1", text, flags=re.IGNORECASE).replace("'", " ").strip()
    sign = 1
    if rest.startswith("-"):
        sign, rest = -1, rest[1:]
    months, microseconds, place = 0, Fraction(0), 0
    while place < len(rest):
        match = _PART.match(rest, place)
        if match is None:
            return None
        amount, unit = Fraction(match[1].replace(" ", "")), match[2].lower()
        if unit in _DURATIONS:
            microseconds += amount * _DURATIONS[unit]
        elif unit in _MONTHS and amount.denominator == 1:
            months += int(amount) * _MONTHS[unit]
        else:
            return None
        place = match.end()
        while place < len(rest) and rest[place] in " ,":
            place += 1
    return Interval(sign * months, sign * int(microseconds)) if rest else None


# Frames


@dataclass(frozen=True, eq=False)
class Offset:
    """An amount before or after the current row, which must not be negative: ``wr.preceding``, ``wr.following``."""

    amount: Any
    before: bool

    def __str__(self) -> str:
        return f"{self.amount} {'preceding' if self.before else 'following'}"


def preceding(amount: Any) -> Offset:
    """A bound so far before the current row; a negative amount is an error, as in SQL."""
    return Offset(amount, before=True)


def following(amount: Any) -> Offset:
    """A bound so far after the current row; a negative amount is an error, as in SQL."""
    return Offset(amount, before=False)


Bound = TypeVar("Bound")


@dataclass(frozen=True, eq=False)
class Frame(Generic[Bound]):
    """Which rows around a row an aggregate is over: ``Frame.rows(-29, 0)``, ``Frame.range("-7 days", 0)``.

    Bounds count from the current row, negative before it. 0 is the current row (in range and groups: with its peers),
    None is unbounded. A bound may also be an interval, a Column, or Spark SQL for one, which gives each row its own.
    """

    unit: str
    start: Bound
    end: Bound
    exclusion: str = "no others"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SchemaError(
                "a frame counts in " + ", ".join(UNITS), got=repr(self.unit), hint=nearest(self.unit, UNITS)
            )
        check_exclude(self.exclusion)

    @staticmethod
    def rows(start: Any, end: Any) -> Frame[Any]:
        """So many rows before and after."""
        return Frame("rows", start, end)

    @staticmethod
    def range(start: Any, end: Any) -> Frame[Any]:
        """The rows whose order key is so far away."""
        return Frame("range", start, end)

    @staticmethod
    def groups(start: Any, end: Any) -> Frame[Any]:
        """So many groups of rows with equal order keys before and after."""
        return Frame("groups", start, end)

    def exclude(self, what: str) -> Frame[Bound]:
        """Leave out the ``current row``, its ``group`` of peers, or its ``ties``: the peers without the row itself."""
        return replace(self, exclusion=exclusion_of(what))

    @property
    def is_reversed(self) -> bool:
        """Whether it is known to end before it starts, so that it is empty."""
        start, end = _signed(self.start), _signed(self.end)
        if isinstance(start, Interval) and isinstance(end, Interval):
            return start != end and start.months >= end.months and start.microseconds >= end.microseconds
        return isinstance(start, int | float) and isinstance(end, int | float) and start > end

    def __str__(self) -> str:
        text = f"{self.unit} between {_shown(self.start, 'preceding')} and {_shown(self.end, 'following')}"
        return text if self.exclusion == "no others" else f"{text} exclude {self.exclusion}"


def exclusion_of(what: str) -> str:
    """An EXCLUDE however it is written."""
    words = " ".join(str(what).lower().split())
    if words not in EXCLUDES:
        raise SchemaError(
            "exclude must be one of " + ", ".join(EXCLUDES), got=repr(what), hint=nearest(words, EXCLUDES)
        )
    return words


def _signed(bound: Any) -> Any:
    """How far a bound is from the current row, negative before it, if it says that itself."""
    if isinstance(bound, Offset) and isinstance(bound.amount, int | float | Interval):
        return -bound.amount if bound.before else bound.amount
    return bound


def _shown(bound: Any, way: str) -> str:
    if bound is None:
        return f"unbounded {way}"
    if not isinstance(bound, int | float) or isinstance(bound, bool):
        return str(bound)
    return "current row" if bound == 0 else str(Offset(abs(bound), before=bound < 0))
