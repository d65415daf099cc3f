"""Frames of SQL: units, bounds and EXCLUDE as they are written.

A bound of such a ``Frame`` is None where it is unbounded, 0 at the current row, and else an ``Offset`` whose amount is
a number, an interval, or a node to be computed for each row.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from sqlglot import exp

from windrow.model.frame import Frame, Interval, Offset, parse_interval
from windrow.sql.reading import Reading

_CHANGING = {
    "rand", "random", "randn", "uniform", "randstr", "uuid", "shuffle", "monotonically_increasing_id",
    "spark_partition_id", "input_file_name",
}  # fmt: skip
"""Functions that give another value each time."""


def read_frame(reading: Reading, window: exp.Expr, spec: exp.Expr | None, ordered: bool) -> Frame[Any]:
    """A frame clause, or SQL's default: all rows, or with an ORDER BY those up to the current row's peers."""
    if spec is None:
        return Frame.range(None, 0 if ordered else None)
    start = _read_bound(reading, window, spec.args.get("start"), spec.args.get("start_side"), "preceding")
    end = 0
    if spec.args.get("end") is not None:
        end = _read_bound(reading, window, spec.args["end"], spec.args.get("end_side"), "following")
    exclude = spec.args.get("exclude")
    return Frame(str(spec.args["kind"]).lower(), start, end, "no others" if exclude is None else exclude.name.lower())


def _read_bound(reading: Reading, window: exp.Expr, value: Any, side: Any, unbounded: str) -> Any:
    """A bound; ``unbounded`` is the side on which it may have no end."""
    if isinstance(value, str) and value.upper() == "CURRENT ROW":
        return 0
    side = str(side).lower()
    if side not in ("preceding", "following"):
        hint = "As in rows between 29 preceding and current row"
        raise reading.error("a frame's bound is so many preceding or following", window, hint=hint)
    if isinstance(value, str):
        if side != unbounded:
            does = "start" if unbounded == "preceding" else "end"
            raise reading.error(f"a frame cannot {does} at unbounded {side}", window)
        return None
    amount = _read_constant(value)
    return 0 if amount == 0 else Offset(value if amount is None else amount, before=side == "preceding")


def _read_constant(node: exp.Expr) -> int | float | Interval | None:
    """An amount that is the same for all rows, if that can be read off the text."""
    if isinstance(node, exp.Interval):
        return _read_interval(node)
    number = _fold_constants(node)
    if number is None:
        return None
    return int(number) if number.denominator == 1 else float(number)


def _read_interval(node: exp.Interval) -> Interval | None:
    """``interval 7 days``, ``interval '7' day`` and ``interval '1 day 2 hours'``; None for one that is computed."""
    if not isinstance(node.this, exp.Literal):
        return None
    unit = node.args.get("unit")
    text = str(node.this.this).strip().lower() + (f" {unit.name.lower()}" if unit is not None else "")
    return parse_interval(text) if re.fullmatch(r"(\d+(\.\d+)?\s+[a-z]+\s*)+", text) else None


def _fold_constants(node: Any) -> Fraction | None:
    """The value of arithmetic on numbers that are written out: ``100-1``."""
    if isinstance(node, exp.Literal) and not node.is_string:
        return Fraction(node.this)
    if isinstance(node, exp.Paren):
        return _fold_constants(node.this)
    if isinstance(node, exp.Neg):
        inner = _fold_constants(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        left, right = _fold_constants(node.this), _fold_constants(node.expression)
        if left is None or right is None:
            return None
        return (
            left + right if isinstance(node, exp.Add) else left - right if isinstance(node, exp.Sub) else left * right
        )
    return None


def find_varying_amount(bound: Any) -> exp.Expr | None:
    """The node of a bound that is computed for each row."""
    return bound.amount if isinstance(bound, Offset) and isinstance(bound.amount, exp.Expr) else None


def has_varying_bounds(frame: Frame[Any]) -> bool:
    """Whether a column stands in one of the bounds."""
    nodes = [find_varying_amount(bound) for bound in (frame.start, frame.end)]
    return any(node is not None and node.find(exp.Column, exp.Query, exp.Subquery) is not None for node in nodes)


def check_frame(reading: Reading, window: exp.Expr, frame: Frame[Any], orders: int) -> None:
    """Refuse frames that SQL does not have, under ``orders`` columns that rows are ordered by."""
    if frame.unit == "groups" and not orders:
        raise reading.error("a groups frame needs an ORDER BY", window)
    for bound in (frame.start, frame.end):
        if isinstance(bound, Offset):
            _check_amount(reading, window, frame.unit, bound.amount, orders)


def _check_amount(reading: Reading, window: exp.Expr, unit: str, amount: Any, orders: int) -> None:
    if unit == "range" and orders != 1:
        got = f"{orders} order columns" if orders else "no ORDER BY"
        hint = "Use rows or groups"
        raise reading.error("a range frame with an offset needs exactly one order column", window, got, hint)
    if isinstance(amount, int | float) and amount < 0:
        hint = "Use the other of preceding and following"
        raise reading.error("the offset of a frame must not be negative", window, got=amount, hint=hint)
    if unit != "range" and isinstance(amount, float | Interval):
        raise reading.error(f"the offsets of a {unit} frame are whole numbers", window, got=amount)
    if isinstance(amount, exp.Expr):
        refuse_changing(reading, amount, "a frame's bound")


def refuse_changing(reading: Reading, node: exp.Expr, what: str) -> None:
    """Refuse functions that would give another value when they are computed again."""
    for function in node.find_all(exp.Anonymous):
        if function.name.lower() in _CHANGING:
            raise reading.error(f"{what} must be the same each time it is computed", node, got=f"{function.name}()")
