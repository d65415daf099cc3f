"""How single values look on a screen: short numbers, dates without needless zeros, and missing ones that are seen."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MISSING = "null"
"""What stands for a missing value, as it is written in the language."""

_LONGEST_TEXT = 60
_DIGITS = 6
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_UNITS = (("D", 86_400_000_000), ("m", 60_000_000), ("s", 1_000_000), ("us", 1))
"""How fine moments are shown, and the microseconds of each."""


def texts(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None = None) -> list[str]:
    """Every value as text, in row-major order; those that are not valid are missing."""
    flat = values.reshape(-1)
    if flat.dtype.kind == "M":
        shown = _moments(flat)
    elif flat.dtype.kind == "f":
        shown = [number_text(float(value)) for value in flat]
    else:
        shown = [value_text(value) for value in flat.tolist()]
    if valid is None:
        return shown
    return [text if there else MISSING for text, there in zip(shown, valid.reshape(-1).tolist(), strict=True)]


def column_texts(column: Any) -> list[str]:
    """The values of an Arrow column as text."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        moments = column.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False).astype("datetime64[us]")
        # Columns with a time zone say when something was done; seconds are enough for that.
        return _moments(moments if column.type.tz is None else moments.astype("datetime64[s]"))
    return [value_text(value) for value in column.to_pylist()]


def value_text(value: Any) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    return str(value) if isinstance(value, int) else text_text(str(value))


def number_text(value: float) -> str:
    """A float with six significant digits, and all its digits before the point.

    >>> [number_text(value) for value in (5.4444444, 14.0, 1234567.89, 1e-9, float("nan"))]
    ['5.44444', '14', '1234567.9', '1e-09', 'null']
    """
    if math.isnan(value):
        return MISSING
    size = abs(value)
    if math.isinf(value) or (size and not 1e-4 <= size < 1e15):
        return f"{value:.{_DIGITS}g}"
    if value.is_integer():
        return str(int(value))
    decimals = max(1, _DIGITS - 1 - math.floor(math.log10(size)))
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")


def text_text(text: str) -> str:
    """A text for the screen: in quotes if it looks like a number or null, and without control characters."""
    if len(text) > _LONGEST_TEXT:
        text = text[: _LONGEST_TEXT - 1] + "…"
    shown = "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)
    misleading = not shown or shown == MISSING or shown != shown.strip()
    return f"'{shown}'" if misleading else shown


def _moments(values: npt.NDArray[Any]) -> list[str]:
    """Moments with as many parts as one of them needs."""
    moments = values.astype("datetime64[us]")
    present = moments[~np.isnat(moments)].astype(np.int64)
    unit = next(unit for unit, size in _UNITS if not np.any(present % size))
    shown: Any = np.datetime_as_string(moments, unit=unit)  # type: ignore[call-overload]
    return [MISSING if text == "NaT" else str(text).replace("T", " ") for text in shown]


def display_width(text: str) -> int:
    """The columns that a text takes on a screen."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def shorten(text: str, width: int) -> str:
    """A text that takes at most ``width`` columns."""
    if display_width(text) <= width:
        return text
    kept, used = "", 0
    for sign in text:
        used += _width(sign)
        if used >= width:
            break
        kept += sign
    return kept + "…"


def pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def on_points(shown: Sequence[str]) -> list[str]:
    """Numbers padded so that their decimal points stand below one another; anything else stays as it is."""
    if not all(text == MISSING or _NUMBER.fullmatch(text) for text in shown):
        return list(shown)
    tails = [0 if text == MISSING else len(text) - len(text.split(".")[0]) for text in shown]
    longest = max(tails, default=0)
    return [text if text == MISSING else text + " " * (longest - tail) for text, tail in zip(shown, tails, strict=True)]
