"""Functions of a row's place among the others: ``wr.rank()``, ``wr.lag("x")`` and their kin, on DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from windrow.errors import DataError

PLACES = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")
"""Those that depend on the order alone."""
SHIFTS = ("lag", "lead")
PICKS = ("first_value", "last_value", "nth_value")
"""Those that pick a row of a frame, NULL or not."""
NAMES = (*PLACES, *SHIFTS, *PICKS)


@dataclass(frozen=True, eq=False)
class Position:
    """One such function: of ``attribute``, if it has one, with its ``number``, over a frame of its own or none."""

    name: str
    attribute: Any = None
    number: int = 1
    default: Any = None
    frame: Any = None

    def __post_init__(self) -> None:
        least = {"ntile": 1, "nth_value": 1}.get(self.name)
        if isinstance(self.number, bool) or not isinstance(self.number, int):
            raise DataError(f"the number of {self.name} is a whole number", got=repr(self.number))
        if least is not None and self.number < least:
            raise DataError(f"the number of {self.name} must be at least {least}", got=self.number)

    @property
    def is_frameless(self) -> bool:
        return self.name not in PICKS

    def over(self, frame: Any) -> Position:
        """The same over a frame of its own."""
        if self.is_frameless:
            raise DataError(f"{self.name} has no frame", hint="It depends on the order of the rows alone")
        return replace(self, frame=frame)


def row_number() -> Position:
    """1, 2, 3, … in the order of the rows."""
    return Position("row_number")


def rank() -> Position:
    """One more than the rows before all that have the same order key."""
    return Position("rank")


def dense_rank() -> Position:
    """The same, counted in different keys."""
    return Position("dense_rank")


def percent_rank() -> Position:
    """(rank - 1) / (rows - 1), and 0 for a single row."""
    return Position("percent_rank")


def cume_dist() -> Position:
    """The share of rows up to the last that has the same order key."""
    return Position("cume_dist")


def ntile(buckets: int) -> Position:
    """Into which of so many buckets of about the same size the row falls."""
    return Position("ntile", number=buckets)


def lag(attribute: Any, rows: int = 1, default: Any = None) -> Position:
    """The value so many rows before; ``default``, a number, a column or SQL, where there is no such row."""
    return Position("lag", attribute, rows, default)


def lead(attribute: Any, rows: int = 1, default: Any = None) -> Position:
    """The value so many rows after."""
    return Position("lead", attribute, rows, default)


def first_value(attribute: Any) -> Position:
    """The value of the frame's first row, even if it is NULL; ``first`` passes NULL over."""
    return Position("first_value", attribute)


def last_value(attribute: Any) -> Position:
    """The value of the frame's last row, even if it is NULL."""
    return Position("last_value", attribute)


def nth_value(attribute: Any, number: int) -> Position:
    """The value of the frame's n-th row, counted from 1, even if it is NULL."""
    return Position("nth_value", attribute, number)


FUNCTIONS: Mapping[str, Any] = {
    function.__name__: function
    for function in (
        row_number, rank, dense_rank, percent_rank, cume_dist, ntile, lag, lead, first_value, last_value, nth_value,
    )
}  # fmt: skip
