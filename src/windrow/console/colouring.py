"""Colours for what is typed, from the tokens of the language itself: a keyword that is a name here looks like one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

STYLE = Style.from_dict(
    {
        "keyword": "bold ansiblue",
        "text": "ansigreen",
        "number": "ansicyan",
        "function": "ansimagenta",
        "comment": "ansibrightblack",
        "prompt": "bold",
    }
)
_KINDS = {
    "TEXT": "text",
    "MOMENT": "text",
    "INTEGER": "number",
    "FLOAT": "number",
    "HEXADECIMAL": "number",
    "VERSION": "number",
}
_LONGEST = 20_000
"""Characters that are worth colouring at every key that is pressed."""

Span = tuple[int, int, str]


class StatementColours(Lexer):
    """Colours a document, once the language is loaded."""

    def __init__(self, loaded: Callable[[], bool]) -> None:
        self._loaded = loaded

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        text = document.text
        found = [*spans(text)] if self._loaded() and len(text) <= _LONGEST else []
        kinds = [""] * len(text)
        for start, stop, kind in found:
            kinds[start:stop] = [f"class:{kind}"] * (stop - start)
        starts = [0]
        for line in document.lines:
            starts.append(starts[-1] + len(line) + 1)

        def line_at(number: int) -> StyleAndTextTuples:
            if number >= len(document.lines):
                return []
            begin = starts[number]
            return [(kinds[begin + at], sign) for at, sign in enumerate(document.lines[number])]

        return line_at

    def invalidation_hash(self) -> bool:
        """Once the language is there, what was drawn without it is drawn again."""
        return self._loaded()


def spans(text: str) -> Iterator[Span]:
    """Where the words of each kind stand; nothing from the first thing on that cannot be read."""
    from windrow.language.parser import StatementSyntaxError, split

    try:
        pieces = split(text)
    except StatementSyntaxError as error:
        yield from spans(text[: error.position])
        yield (error.position, len(text), "text")  # a quote that is still open
        return
    end = 0
    for piece in pieces:
        yield from _comments(text, end, piece.start)
        end = piece.start + len(piece.text)
        yield from _tokens(piece.text, piece.start)
        for at, (shown, read) in enumerate(zip(text[piece.start : end], piece.text, strict=True)):
            if shown != read:  # comments are blanked out before a statement is read
                yield (piece.start + at, piece.start + at + 1, "comment")
    yield from _comments(text, end, len(text))


def _comments(text: str, start: int, stop: int) -> Iterator[Span]:
    """What stands between statements and is no semicolon."""
    for at in range(start, stop):
        if text[at] != ";" and not text[at].isspace():
            yield (at, at + 1, "comment")


def _tokens(text: str, offset: int) -> Iterator[Span]:
    from lark.exceptions import LarkError

    from windrow.language.mistakes import words_of
    from windrow.language.tables import parser

    state = parser().parse_interactive(text, start="statement")
    name: Span | None = None
    try:
        for token in state.iter_parse():
            start = offset + (token.start_pos or 0)
            stop = start + len(token)
            if name is not None and token.type == "_OPEN":
                yield (name[0], name[1], "function")
            name = (start, stop, "") if token.type == "NAME" else None
            kind = _KINDS.get(token.type) or ("keyword" if words_of(token.type) else None)
            if kind is not None:
                yield (start, stop, kind)
    except LarkError:
        return
