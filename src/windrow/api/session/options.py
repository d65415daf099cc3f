"""Options in statements: the settings that ``set`` changes, and what follows ``with``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windrow.errors import DataError, SchemaError, nearest
from windrow.expressions.written import Value
from windrow.plan.statements import Settings
from windrow.views.answering.uses import USES
from windrow.views.definition import CHOICES, PLACEMENT

OPTIONS: dict[str, tuple[str, ...]] = {
    "timing": ("on", "off"),
    "progress": ("on", "off"),
    "format": ("table", "csv", "json", "arrow"),
    "engine": ("auto", "local", "spark"),
    "rows": (),
    "views": USES,
    "strategy": CHOICES["strategy"],
}
"""Each setting with its values; one without a list is a number."""

VIEW_SETTINGS = ("chunks", *CHOICES, *PLACEMENT)
"""What may follow ``with`` when a view is made."""

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


def chosen(settings: Settings, known: tuple[str, ...]) -> dict[str, Any]:
    """What follows ``with`` as options of a function."""
    chosen: dict[str, Any] = {}
    for name, value in settings:
        if name not in known:
            raise DataError("no such option here", got=repr(name), hint=nearest(name, known))
        chosen[name] = _READ.get(name, _as_it_is)(value)
    return chosen


def view_options(settings: Settings) -> dict[str, Any]:
    """What follows ``with`` as options of ``create_view``, which looks at their values."""
    options: dict[str, Any] = {}
    for name, value in settings:
        if name not in VIEW_SETTINGS:
            raise DataError("a view has no such setting", got=repr(name), hint=nearest(name, VIEW_SETTINGS))
        if name in PLACEMENT:
            options.setdefault("placement", {})[name] = value
        else:
            options[name] = _sizes(value) if name == "chunks" else str(value).lower()
    return options


def _as_it_is(value: Value) -> Any:
    return value


def _listed(value: Value) -> list[str]:
    return [part.strip() for part in str(value).split(",")]


def _sizes(value: Value) -> dict[str, int]:
    """``time=366, lat=145`` as sizes by name."""
    sizes = {}
    for item in _listed(value):
        name, _, size = (part.strip() for part in item.partition("="))
        if not name or not size.isascii() or not size.isdigit() or name in sizes:
            raise DataError("chunk sizes are given once for each dimension", got=item, hint="As in 'time=366, lat=145'")
        sizes[name] = int(size)
    return sizes


_READ: dict[str, Callable[[Value], Any]] = {"variables": _listed, "dimensions": _listed, "chunks": _sizes}
"""The options that are not simply the value given."""
