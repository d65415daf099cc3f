"""Frames of SQL: units, bounds and EXCLUDE as they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from windrow.language.sql_reading import Reading

_CHANGING = {
    "rand", "random", "randn", "uniform", "randstr", "uuid", "shuffle", "monotonically_increasing_id",
    "spark_partition_id", "input_file_name", "current_timestamp", "now",
}  # fmt: skip
"""Functions that give another value each time."""


@dataclass(frozen=True, eq=False)
class BoundText:
    """A frame's start or end: ``side`` is preceding or following, ``amount`` None if unbounded.

    An amount is a number, the text of an interval ("7 days"), or a node to be computed for each row.
    """

    side: str
    amount: int | float | str | exp.Expr | None

    @property
    def is_current_row(self) -> bool:
        return self.amount == 0

    @property
    def varies(self) -> bool:
        return isinstance(self.amount, exp.Expr)

    def __str__(self) -> str:
        if self.amount is None:
            return f"unbounded {self.side}"
        if self.is_current_row:
            return "current row"
        amount = self.amount.sql("spark").lower() if isinstance(self.amount, exp.Expr) else self.amount
        return f"interval '{amount}' {self.side}" if isinstance(self.amount, str) else f"{amount} {self.side}"


UNBOUNDED_PRECEDING = BoundText("preceding", None)
UNBOUNDED_FOLLOWING = BoundText("following", None)
CURRENT_ROW = BoundText("following", 0)


@dataclass(frozen=True, eq=False)
class FrameText:
    """A frame as it is written, or SQL's own where none is."""

    unit: str
    start: BoundText
    end: BoundText
    exclude: str | None = None
    stated: bool = True

    @property
    def beyond_spark(self) -> bool:
        """Whether Spark has no such frames."""
        constants = not any(isinstance(b.amount, exp.Expr) and not _fixed(b.amount) for b in (self.start, self.end))
        return self.unit == "groups" or self.exclude is not None or not constants

    def check(self, reading: Reading, window: exp.Expr, orders: int) -> None:
        """Refuse frames that SQL does not have."""
        if self.start.amount is None and self.start.side == "following":
            raise reading.error("a frame cannot start at unbounded following", window)
        if self.end.amount is None and self.end.side == "preceding":
            raise reading.error("a frame cannot end at unbounded preceding", window)
        if self.unit == "groups" and not orders:
            raise reading.error("a groups frame needs an ORDER BY", window)
        for bound in (self.start, self.end):
            self._check_bound(reading, window, bound, orders)

    def _check_bound(self, reading: Reading, window: exp.Expr, bound: BoundText, orders: int) -> None:
        if bound.amount is None or bound.is_current_row:
            return
        if self.unit == "range" and orders != 1:
            got = f"{orders} order columns" if orders else "no ORDER BY"
            hint = "Use rows or groups"
            raise reading.error("a range frame with an offset needs exactly one order column", window, got, hint)
        if isinstance(bound.amount, int | float) and bound.amount < 0:
            hint = "Use the other of preceding and following"
            raise reading.error("the offset of a frame must not be negative", window, got=bound.amount, hint=hint)
        if self.unit != "range" and isinstance(bound.amount, float | str):
            raise reading.error(f"the offsets of a {self.unit} frame are whole numbers", window, got=bound.amount)
        if isinstance(bound.amount, exp.Expr):
            refuse_changing(reading, bound.amount, "a frame's bound")

    def __str__(self) -> str:
        text = f"{self.unit} between {self.start} and {self.end}"
        return text if self.exclude in (None, "no others") else f"{text} exclude {self.exclude}"


def refuse_changing(reading: Reading, node: exp.Expr, what: str) -> None:
    """Refuse functions that would give another value when they are computed again."""
    for function in node.find_all(exp.Anonymous, exp.CurrentTimestamp):
        if function.name.lower() in _CHANGING and function.name.lower() not in ("now", "current_timestamp"):
            raise reading.error(f"{what} must be the same each time it is computed", node, got=f"{function.name}()")


def frame_of(reading: Reading, window: exp.Expr, spec: exp.Expr | None, ordered: bool) -> FrameText:
    """A frame clause, or SQL's default: all rows, or with an ORDER BY those up to the current row's peers."""
    if spec is None:
        end = CURRENT_ROW if ordered else UNBOUNDED_FOLLOWING
        return FrameText("range", UNBOUNDED_PRECEDING, end, stated=False)
    start = _bound(reading, window, spec.args.get("start"), spec.args.get("start_side"))
    end = CURRENT_ROW
    if spec.args.get("end") is not None:
        end = _bound(reading, window, spec.args["end"], spec.args.get("end_side"))
    exclude = spec.args.get("exclude")
    return FrameText(str(spec.args["kind"]).lower(), start, end, None if exclude is None else exclude.name.lower())


def _bound(reading: Reading, window: exp.Expr, value: Any, side: Any) -> BoundText:
    if isinstance(value, str) and value.upper() == "CURRENT ROW":
        return CURRENT_ROW
    if str(side).lower() not in ("preceding", "following"):
        hint = "As in rows between 29 preceding and current row"
        raise reading.error("a frame's bound is so many preceding or following", window, hint=hint)
    side = str(side).lower()
    if isinstance(value, str):
        return BoundText(side, None)
    if isinstance(value, exp.Interval):
        return BoundText(side, _interval(value) or value)
    number = _folded(value)
    if number is None:
        return BoundText(side, value)
    return BoundText(side, int(number) if number.denominator == 1 else float(number))


def _interval(node: exp.Interval) -> str | None:
    """``interval 7 days``, ``interval '7' day`` and ``interval '1 day 2 hours'`` as a number and unit each."""
    if not isinstance(node.this, exp.Literal):
        return None
    unit = node.args.get("unit")
    text = str(node.this.this).strip().lower() + (f" {unit.name.lower()}" if unit is not None else "")
    return text if re.fullmatch(r"(\d+(\.\d+)?\s+[a-z]+\s*)+", text) else None


def _folded(node: Any) -> Fraction | None:
    """The value of arithmetic on numbers that are written out: ``100-1``."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return Fraction(node.this)
    if isinstance(node, exp.Paren):
        return _folded(node.this)
    if isinstance(node, exp.Neg):
        inner = _folded(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = _folded(node.this), _folded(node.expression)
        if left is None or right is None:
            return None
        return (
            left + right if isinstance(node, exp.Add) else left - right if isinstance(node, exp.Sub) else left * right
        )
    return None


def _fixed(node: exp.Expr) -> bool:
    """Whether no column stands in an expression."""
    return node.find(exp.Column, exp.Query, exp.Subquery) is None
