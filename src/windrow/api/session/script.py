"""Statements as text, for consoles and editors: cut apart, read, coloured, and looked at while they are typed."""

from __future__ import annotations

import re
from collections.abc import Callable

from windrow.errors import Error
from windrow.expressions.written import Value
from windrow.language.parser import Piece, StatementSyntaxError, is_complete, parse, split, split_lines
from windrow.language.pointing import PointedError
from windrow.language.tokens import Span, spans
from windrow.plan import statements as asked
from windrow.plan.names import name_text
from windrow.plan.nodes import Scan

__all__ = ["Piece", "Span", "StatementSyntaxError", "is_ready", "line_of", "load_language", "point_out", "read_rows"]
__all__ += ["spans", "split", "split_lines"]

_QUOTED = re.compile(r"(?P<quote>['\"])(?P<name>.*)(?P=quote)", re.DOTALL)
_LONGEST_NAME = 200
_LOOKING = (
    *(asked.CreateArray, asked.Load, asked.Describe, asked.Explain, asked.ExplainView, asked.List, asked.Plot),
    *(asked.Sql, asked.ShowHistory, asked.CheckView, asked.Begin, asked.Commit, asked.Rollback, asked.SetOption),
)
"""What runs at Enter: it changes no cells, or asks for them itself."""


def load_language() -> None:
    """Import what reads statements, and make its tables, before the first statement needs them."""
    import windrow.language.building  # noqa: F401
    from windrow.language.tables import parser

    parser()


def read_rows(array: str, line: str) -> list[tuple[Value, ...]]:
    """The values of a line that was typed for an array, in groups as they were typed."""
    found = parse(f"load {name_text(array)} values {line}")
    assert isinstance(found, asked.Load)
    return list(found.rows)


# What is typed


def is_ready(text: str, is_array: Callable[[str], bool]) -> bool:
    """Whether Enter runs what was typed, or starts another line.

    A semicolon runs it, and so does an empty line. Without either, a single line runs if it is a whole statement that
    changes no cells, or has a mistake before its end; what changes cells waits, because more may follow. ``select a``
    asks for an array if there is one of that name, and else waits for its ``from``.
    """
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


def _lacks_source(statement: asked.Statement, is_array: Callable[[str], bool]) -> bool:
    bare = isinstance(statement, asked.Query) and isinstance(statement.plan, Scan)
    return bare and not is_array(statement.plan.array)  # type: ignore[attr-defined]


def _only_looks(statement: asked.Statement) -> bool:
    if isinstance(statement, asked.Query):
        return statement.into is None
    return isinstance(statement, _LOOKING)


# Mistakes


def point_out(error: Error, text: str) -> Error:
    """The error with its place in a statement's text, if what it got stands there: an unknown name, say."""
    place = None if isinstance(error, PointedError) else _place(error.got, text)
    if place is None:
        return error
    found = PointedError(error.what, got=error.got, hint=error.hint, text=text, position=place)
    found.exit_code = error.exit_code
    return found.with_traceback(error.__traceback__)


def _place(got: str | None, text: str) -> int | None:
    if not got or len(got) > _LONGEST_NAME:
        return None
    quoted = _QUOTED.fullmatch(got)
    name = quoted["name"] if quoted else got
    # A number may stand in the text for many reasons.
    if not name.strip() or not (quoted or name.isidentifier()):
        return None
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return None if found is None else found.start()


def line_of(error: Error, piece: Piece) -> int:
    """The line of a script in which a statement, or the mistake in it, stands."""
    return piece.line + (error.line - 1 if isinstance(error, PointedError) and error.text == piece.text else 0)
