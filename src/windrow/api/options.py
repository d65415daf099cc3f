"""What ``set`` changes: the settings of a session, and the values each takes."""

from __future__ import annotations

from windrow.errors import DataError, SchemaError, nearest
from windrow.expressions.nodes import Value

OPTIONS: dict[str, tuple[str, ...]] = {
    "timing": ("on", "off"),
    "progress": ("on", "off"),
    "format": ("table", "csv", "json", "arrow"),
    "engine": ("auto", "local", "spark"),
    "rows": (),
}
"""Each setting with its values; one without a list is a number."""

_WORDS = {"true": "on", "false": "off"}
_MOST_ROWS = 10_000


def checked(option: str, value: Value) -> tuple[str, str]:
    """A setting and its value as they are kept."""
    name, text = option.lower(), str(value).lower()
    if name not in OPTIONS:
        raise SchemaError("no such setting", got=repr(option), hint=nearest(name, OPTIONS))
    text = _WORDS.get(text, text)
    if not OPTIONS[name]:
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= _MOST_ROWS):
            raise DataError(f"setting {name} is a number from 1 to {_MOST_ROWS:,}", got=repr(value))
    elif text not in OPTIONS[name]:
        raise DataError(f"setting {name} is one of " + ", ".join(OPTIONS[name]), got=repr(value))
    return name, text
