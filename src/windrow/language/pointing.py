"""Mistakes in text, shown under a caret."""

from __future__ import annotations

import unicodedata
from typing import Any

from windrow.errors import Error

_SHOWN = 100


class PointedError(Error):
    """Text that cannot be read: the reason, the line with a caret under ``position``, and what would be right."""

    def __init__(
        self, what: str, *, got: object = None, hint: str | None = None, text: str = "", position: int = 0
    ) -> None:
        super().__init__(what, got=got, hint=hint)
        self.text = text
        self.position = position

    @property
    def line(self) -> int:
        """The line of the mistake, counted from 1."""
        return self.text.count("\n", 0, self.position) + 1

    @property
    def excerpt(self) -> str:
        return caret(self.text, self.position)

    def __str__(self) -> str:
        reason = self.what if self.got is None else f"{self.what}, got {self.got}"
        shown = f"{reason}\n{self.excerpt}"
        return shown if self.hint is None else f"{shown}\n{self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.what, self.got, self.hint, self.text, self.position)


def _rebuild(
    kind: type[PointedError], what: str, got: str | None, hint: str | None, text: str, position: int
) -> PointedError:
    return kind(what, got=got, hint=hint, text=text, position=position)


def caret(text: str, position: int) -> str:
    """The line of ``text`` around ``position``, and a line with a caret below that place."""
    position = min(max(position, 0), len(text))
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    first, last = max(begin, position - _SHOWN // 2), min(end, position + _SHOWN // 2)
    before = ("…" if first > begin else "") + _printable(text[first:position])
    after = _printable(text[position:last]) + ("…" if last < end else "")
    return f"  {before}{after}\n  {' ' * sum(map(_width, before))}^"


def visible(character: str) -> str:
    """A character as it is, with its number if it cannot be seen."""
    return repr(character) if character.isprintable() else f"U+{ord(character):04X}"


def cut(text: str) -> str:
    """A text short enough for one line."""
    return text if len(text) <= 40 else text[:39] + "…"


def _printable(text: str) -> str:
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "\ufffd" for character in text
    )


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
