"""What expressions are written with: names, texts in quotes, and the values that a literal can hold."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from typing import Any

from windrow.errors import ExpressionError

RESERVED = frozenset(
    {"and", "as", "between", "case", "cast", "else", "end", "false", "in", "is", "not", "null", "or", "then"}
    | {"true", "when"}
)
"""Words that name a column only in double quotes."""

_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
Value = bool | int | float | str | datetime | None


def quoted(text: str, quote: str) -> str:
    """``text`` between quotes, those inside it doubled."""
    return quote + text.replace(quote, quote + quote) + quote


def written_name(text: str) -> str:
    return text if _BARE_NAME.match(text) and text.lower() not in RESERVED else quoted(text, '"')


def check_call(name: str) -> None:
    """Refuse what cannot be the name of a function."""
    if not _BARE_NAME.match(name) or name in RESERVED:
        raise ExpressionError("not a function's name", got=repr(name))


def check_known(operator: str, operators: tuple[str, ...]) -> None:
    if operator not in operators:
        raise ExpressionError("unknown operator", got=repr(operator), hint="Known: " + " ".join(operators))


def check_number(parts: tuple[Any, ...], count: int, what: str) -> None:
    if not isinstance(parts, tuple) or len(parts) < count:
        raise ExpressionError(f"{what!r} needs a tuple of at least {count}", got=repr(parts))


def held_value(value: object) -> Value:
    """The value of a literal, if every walk, printer and Arrow can hold it."""
    if type(value) is date:
        return datetime(value.year, value.month, value.day)
    if type(value) is datetime:
        naive = value if value.tzinfo is None else value.astimezone(UTC)
        return naive.replace(tzinfo=None, fold=0)
    if value is not None and type(value) not in (bool, int, float, str):
        raise ExpressionError("not a value an expression can hold", got=f"a {type(value).__name__}")
    if type(value) is int and not -(2**63) <= value < 2**64:
        shown = str(value) if value.bit_length() < 200 else f"one of {value.bit_length()} bits"
        raise ExpressionError("an integer does not fit 64 bits", got=shown)
    if type(value) is float and not math.isfinite(value):
        raise ExpressionError("a literal number must be finite", got=value, hint="A missing value is null")
    if type(value) is str and any("\ud800" <= character <= "\udfff" for character in value):
        raise ExpressionError("a text holds half a character", got=ascii(value))
    return value  # type: ignore[return-value]
