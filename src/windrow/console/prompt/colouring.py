"""Colours for what is typed, from the tokens of the language itself: a keyword that is a name here looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

if TYPE_CHECKING:
    from windrow.api.session.script import Span

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
_LONGEST = 20_000
"""Characters that are worth colouring at every key that is pressed."""


class StatementColours(Lexer):
    """Colours a document, once the language is loaded."""

    def __init__(self, loaded: Callable[[], bool]) -> None:
        self._loaded = loaded

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        text = document.text
        found = _spans(text) if self._loaded() and len(text) <= _LONGEST else []
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


def _spans(text: str) -> list[Span]:
    from windrow.api.session.script import spans

    return list(spans(text))
