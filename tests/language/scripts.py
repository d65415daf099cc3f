"""Scripts as lists of statements, none of them if one cannot be read."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.language.parser import Piece, _parsed, split
from windrow.plan.statements import Statement


@dataclass(frozen=True)
class Parsed:
    """A statement and the text it was read from."""

    statement: Statement
    source: Piece


def parse_script(text: str) -> list[Parsed]:
    """All statements of a text."""
    return [Parsed(_parsed(piece, text), piece) for piece in split(text)]
