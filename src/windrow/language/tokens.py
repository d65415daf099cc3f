"""Statements word by word, for what is still being typed: what each word is, and which may come next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from windrow.language.mistakes import words_of
from windrow.language.parser import StatementSyntaxError, split
from windrow.language.tables import parser

_KINDS = {
    "TEXT": "text",
    "MOMENT": "text",
    "INTEGER": "number",
    "FLOAT": "number",
    "HEXADECIMAL": "number",
    "VERSION": "number",
}
_VALUES = frozenset({"INTEGER", "TEXT", "_CASE"})
"""What the grammar accepts where an expression may begin."""


class Span(NamedTuple):
    """A stretch of a text: a keyword, text, number, function or comment."""

    start: int
    stop: int
    kind: str


class Expected(NamedTuple):
    """What may follow a text: keywords, names, and whether an expression may begin."""

    words: tuple[str, ...]
    names: bool
    values: bool


def spans(text: str) -> Iterator[Span]:
    """Where the words of each kind stand; nothing from the first thing on that cannot be read."""
    try:
        pieces = split(text)
    except StatementSyntaxError as error:
        yield from spans(text[: error.position])
        yield Span(error.position, len(text), "text")  # a quote that is still open
        return
    end = 0
    for piece in pieces:
        yield from _comments(text, end, piece.start)
        end = piece.start + len(piece.text)
        yield from _tokens(piece.text, piece.start)
        for at, (shown, read) in enumerate(zip(text[piece.start : end], piece.text, strict=True)):
            if shown != read:  # comments are blanked out before a statement is read
                yield Span(piece.start + at, piece.start + at + 1, "comment")
    yield from _comments(text, end, len(text))


def expected(text: str) -> Expected | None:
    """What may follow the beginning of a statement; None if the text is not such a beginning."""
    from lark.exceptions import LarkError

    try:
        state = parser().parse_interactive(text, start="statement")
        state.exhaust_lexer()
        accepted = set(state.accepts())  # type: ignore[no-untyped-call]
    except LarkError:
        return None
    words = sorted({word for terminal in accepted for word in words_of(terminal)})
    return Expected(tuple(words), "NAME" in accepted, accepted >= _VALUES)


def _comments(text: str, start: int, stop: int) -> Iterator[Span]:
    """What stands between statements and is no semicolon."""
    for at in range(start, stop):
        if text[at] != ";" and not text[at].isspace():
            yield Span(at, at + 1, "comment")


def _tokens(text: str, offset: int) -> Iterator[Span]:
    from lark.exceptions import LarkError

    state = parser().parse_interactive(text, start="statement")
    name: Span | None = None
    try:
        for token in state.iter_parse():
            start = offset + (token.start_pos or 0)
            stop = start + len(token)
            if name is not None and token.type == "_OPEN":
                yield name
            name = Span(start, stop, "function") if token.type == "NAME" else None
            kind = _KINDS.get(token.type) or ("keyword" if words_of(token.type) else None)
            if kind is not None:
                yield Span(start, stop, kind)
    except LarkError:
        return
