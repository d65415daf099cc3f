"""What has been typed so far: whether Enter runs it, and which statement the cursor is in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_PARTS = re.compile(r"""'[^']*'?|"[^"]*"?|(?:--|\#)[^\n]*|;|[^'"\#;-]+|-""")


@dataclass(frozen=True)
class Typed:
    """The statement that a text ends in, and the quote that is open there, if any."""

    statement: str
    quote: str | None = None


def typed(text: str) -> Typed:
    """The last statement of a text that goes on.

    >>> typed("select A; import 'data/te")
    Typed(statement=" import 'data/te", quote='data/te')
    """
    begin = 0
    for part in _PARTS.finditer(text):
        found = part[0]
        if found == ";":
            begin = part.end()
        elif found[0] == "'" and part.end() == len(text) and (len(found) == 1 or found[-1] != "'"):
            return Typed(text[begin:], found[1:])
    return Typed(text[begin:])


def is_ready(text: str, is_array: Callable[[str], bool]) -> bool:
    """Whether Enter runs what was typed, or starts another line.

    A semicolon runs it, and so does an empty line. Without either, a single line runs if it is a whole statement that
    changes no cells, or has a mistake before its end; what changes cells waits, because more may follow. ``select a``
    asks for an array if there is one of that name, and else waits for its ``from``.
    """
    from windrow.language.parser import StatementSyntaxError, is_complete, parse, split

    lines = text.split("\n")
    if not text.strip() or is_complete(text) or (len(lines) > 1 and not lines[-1].strip()):
        return True
    if len(lines) > 1:
        return False
    try:
        split(text)
    except StatementSyntaxError:
        return False  # a quote is open
    try:
        statement = parse(text)
        return _only_looks(statement) and not _lacks_source(statement, is_array)
    except StatementSyntaxError as error:
        at_end = error.position >= len(text.rstrip())
        # Schemas are read on their own, and say little about where they end.
        return not at_end and not text.lstrip().lower().startswith("create")
    except Exception:
        return True


def _lacks_source(statement: object, is_array: Callable[[str], bool]) -> bool:
    from windrow.plan.nodes import Scan
    from windrow.plan.statements import Query

    bare = isinstance(statement, Query) and isinstance(statement.plan, Scan)
    return bare and not is_array(statement.plan.array)  # type: ignore[attr-defined]


def _only_looks(statement: object) -> bool:
    from windrow.plan import statements as asked

    if isinstance(statement, asked.Query):
        return statement.into is None
    looking = (asked.CreateArray, asked.Load, asked.Describe, asked.Explain, asked.List, asked.ShowHistory, asked.Plot)
    return isinstance(statement, (*looking, asked.Begin, asked.Commit, asked.Rollback, asked.SetOption))
