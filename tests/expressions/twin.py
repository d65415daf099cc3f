"""Expressions computed one row at a time in plain Python, with None for null: slow, and obvious."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from windrow.expressions.nodes import (
    And,
    Between,
    Binary,
    Call,
    Case,
    Column,
    Comparison,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Unary,
)


class WrongError(Exception):
    """The row has no value: a division by zero, or an integer beyond 64 bits."""


def value(node: Node, row: Mapping[str, Any]) -> Any:
    result = _value(node, row)
    if isinstance(result, float) and math.isnan(result):
        return None
    if type(result) is int and not -(2**63) <= result < 2**63:
        raise WrongError(node)
    return result


def _value(node: Node, row: Mapping[str, Any]) -> Any:
    match node:
        case Literal(constant):
            return constant
        case Column(name, _):
            return row[name]
        case Unary(_, operand):
            known = value(operand, row)
            return None if known is None else -known
        case Binary(operator, left, right):
            return _binary(operator, value(left, row), value(right, row))
        case Comparison(operator, left, right):
            return compare(operator, value(left, row), value(right, row))
        case IsNull(operand, negated):
            return (value(operand, row) is None) is not negated
        case Not(operand):
            return negate(value(operand, row))
        case And(operands):
            return _first(operands, False, row)
        case Or(operands):
            return _first(operands, True, row)
        case Between(operand, low, high, negated):
            x, a, b = value(operand, row), value(low, row), value(high, row)
            above, below = compare("<=", a, x), compare("<=", x, b)
            inside = False if False in (above, below) else None if None in (above, below) else True
            return negate(inside) if negated else inside
        case InList(operand, options, negated):
            x, known = value(operand, row), [value(option, row) for option in options]
            found = [compare("=", x, option) for option in known]
            inside = True if True in found else None if None in found else False
            return negate(inside) if negated else inside
        case Case(branches, otherwise):
            for condition, result in branches:
                if value(condition, row) is True:
                    return value(result, row)
            return None if otherwise is None else value(otherwise, row)
        case Call("coalesce", arguments):
            return next((known for part in arguments if (known := value(part, row)) is not None), None)
        case Call(function, arguments):
            return _call(function, [value(argument, row) for argument in arguments])
    raise AssertionError(node)


def negate(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def compare(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    if operator == "=":
        return bool(left == right)
    if operator == "<>":
        return bool(left != right)
    if operator in (">", ">="):
        left, right = right, left
    return bool(left < right) or (bool(left == right) and operator in ("<=", ">="))


def _first(operands: tuple[Node, ...], deciding: bool, row: Mapping[str, Any]) -> bool | None:
    doubtful = False
    for operand in operands:
        truth = value(operand, row)
        if truth is deciding:
            return bool(deciding)
        doubtful = doubtful or truth is None
    return None if doubtful else not deciding


def _binary(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if operator in ("/", "//", "%") and right == 0:
        raise WrongError(operator)
    if isinstance(left, float) or isinstance(right, float) or operator == "/":
        left, right = float(left), float(right)
    if operator == "||":
        return left + right
    return {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
        "//": lambda: left // right,
        "%": lambda: left % right,
    }[operator]()


def _call(function: str, given: list[Any]) -> Any:
    known = [one for one in given if one is not None]
    if function in ("least", "greatest"):
        return (min if function == "least" else max)(known) if known else None
    if function == "nullif":
        return None if compare("=", *given) else given[0]
    if len(known) < len(given):
        return None
    x = given[0]
    if function in TEXT_FUNCTIONS:
        return _text(function, *given)
    if function == "date_trunc":
        return _truncated(*given)
    if isinstance(x, datetime):
        return _part(function, x)
    if function in ("floor", "ceil", "trunc") and (isinstance(x, int) or math.isinf(x)):
        return x
    if function in ("floor", "ceil", "trunc"):
        return float(getattr(math, function)(x))
    if function == "sign":
        return type(x)((x > 0) - (x < 0))
    if function == "sqrt":
        return math.nan if x < 0 else math.sqrt(x)
    if function == "ln":
        return math.nan if x < 0 else -math.inf if x == 0 else math.log(x)
    assert function == "abs"
    return abs(x)


def _part(function: str, instant: datetime) -> int:
    if function in ("dayofyear", "dayofweek", "week", "quarter"):
        calendar = instant.isocalendar()
        return {
            "dayofyear": instant.timetuple().tm_yday,
            "dayofweek": calendar.weekday,
            "week": calendar.week,
            "quarter": (instant.month + 2) // 3,
        }[function]
    found: int = getattr(instant, function)
    return found


TEXT_FUNCTIONS = (
    "lower",
    "upper",
    "length",
    "trim",
    "ltrim",
    "rtrim",
    "contains",
    "starts_with",
    "ends_with",
    "substr",
)


def _text(function: str, text: str, *more: Any) -> Any:
    answers: dict[str, Callable[[], Any]] = {
        "lower": lambda: text.lower(),
        "upper": lambda: text.upper(),
        "trim": lambda: text.strip(),
        "ltrim": lambda: text.lstrip(),
        "rtrim": lambda: text.rstrip(),
        "length": lambda: len(text),
        "contains": lambda: more[0] in text,
        "ends_with": lambda: text.endswith(more[0]),
        "starts_with": lambda: text.startswith(more[0]),
        "substr": lambda: "".join([c for n, c in enumerate(text, 1) if more[0] <= n < more[0] + more[1]]),
    }
    return answers[function]()


def _truncated(unit: str, instant: datetime) -> datetime:
    midnight = datetime(instant.year, instant.month, instant.day)
    return {
        "year": datetime(instant.year, 1, 1),
        "month": datetime(instant.year, instant.month, 1),
        "week": midnight - timedelta(days=midnight.weekday()),
        "day": midnight,
        "hour": midnight + timedelta(hours=instant.hour),
        "minute": midnight + timedelta(hours=instant.hour, minutes=instant.minute),
    }[unit]
