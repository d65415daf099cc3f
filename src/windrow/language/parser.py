"""Text to statements: scripts are cut at semicolons, and every mistake is shown under a caret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from windrow.errors import Error, LanguageError
from windrow.language.mistakes import explained, located, unclosed
from windrow.language.pointing import PointedError
from windrow.language.tables import parser
from windrow.plan.statements import Sql, Statement

LONGEST_STATEMENT = 200_000
"""Characters a statement may have; more data than that comes from files."""

MOST_LENGTHENED = 20
"""How many times longer than it was typed a statement may be when it is printed."""

_PARTS = re.compile(
    r"""(?P<quote>'[^']*'?|"[^"]*"?)|(?P<comment>(?:--|\#)[^\n]*)|(?P<end>;)|(?P<open>\[)|(?P<close>\])|[^'"\#;\[\]-]+|-"""
)
_NEXT_DIMENSION = re.compile(r"\s*[A-Za-z_]\w*\s*=")
_NEXT_STATEMENT = re.compile(
    r"\n\s*(?P<word>aggr|begin|changes|check|commit|create|delete|describe|drop|explain|import|insert|list|load|plot|refresh"
    r"|rollback|save|select|set|show|update)\b",
    re.IGNORECASE,
)
_VISIBLE = re.compile(r"[^\n]")
_SQL = re.compile(r"sql\s+(?=\S)", re.IGNORECASE)
"""What another language follows, which Spark reads."""


class StatementSyntaxError(PointedError, LanguageError):
    """A statement that cannot be read, shown under a caret."""


@dataclass(frozen=True)
class Piece:
    """A statement's text: where it begins in the script, and in which line, counted from 1."""

    text: str
    start: int
    line: int


def parse(text: str) -> Statement:
    """The one statement that a text holds; a semicolon may end it.

    >>> parse("AGGR A sum(b) BY window(2,2)")
    Query(plan=Windowed(source=Scan(array='A', version=None, as_of=None), ...
    """
    script = _script(text)
    pieces = split(script)
    if not pieces:
        raise _mistake("there is no statement", script, len(script.rstrip()), hint="As in select A")
    if len(pieces) > 1:
        raise _mistake("one statement at a time is expected", script, pieces[1].start)
    return _parsed(pieces[0], script)


def split(script: str) -> list[Piece]:
    """The statements of a script, comments and the semicolons between them left out."""
    pieces = []
    for begin, blanked in _cut(script):
        body = blanked.rstrip()
        start = begin + len(body) - len(body.lstrip())
        if start < begin + len(body):
            pieces.append(Piece(body.lstrip(), start, script.count("\n", 0, start) + 1))
    return pieces


def split_lines(script: str) -> list[Piece]:
    """The statements of a script; without a semicolon, a line that begins another statement ends the one before.

    That holds only for what cannot be read as one statement, and whose lines before can.
    """
    pieces = []
    for piece in split(script):
        rest: Piece | None = piece
        while rest is not None:
            first, rest = _first_statement(rest)
            pieces.append(first)
    return pieces


def _first_statement(piece: Piece) -> tuple[Piece, Piece | None]:
    if "\n" in piece.text and not _can_read(piece.text):
        for begin in _NEXT_STATEMENT.finditer(piece.text):
            first, at = piece.text[: begin.start()].rstrip(), begin.start("word")
            if _can_read(first):
                rest = Piece(piece.text[at:], piece.start + at, piece.line + piece.text.count("\n", 0, at))
                return Piece(first, piece.start, piece.line), rest
    return piece, None


def _can_read(text: str) -> bool:
    try:
        _parsed(Piece(text, 0, 1), text)
    except Error:
        return False
    return True


def is_complete(text: str) -> bool:
    """Whether what was typed so far ends with a semicolon that ends a statement."""
    try:
        return not [*_cut(text)][-1][1].strip() and ";" in text
    except StatementSyntaxError:
        return False


def _cut(script: str) -> Iterator[tuple[int, str]]:
    """Where each text between semicolons begins, and the text with comments blanked out."""
    begin, inside = 0, False
    texts: list[str] = []
    for part in _PARTS.finditer(script):
        kind, text = part.lastgroup, part[0]
        if kind == "quote" and (len(text) == 1 or text[0] != text[-1]):
            raise unclosed(script, part.start(), StatementSyntaxError)
        if kind in ("open", "close"):
            inside = kind == "open"
        # Paper 004 separates dimensions with semicolons: [i=1,6,2;j=1,8,2].
        if kind == "end" and not (inside and _NEXT_DIMENSION.match(script, part.end())):
            yield begin, "".join(texts)
            begin, texts, inside = part.end(), [], False
            continue
        texts.append(_VISIBLE.sub(" ", text) if kind == "comment" else text)
    yield begin, "".join(texts)


def _parsed(piece: Piece, script: str) -> Statement:
    from lark.exceptions import UnexpectedInput, VisitError

    from windrow.language.building import StatementBuilder

    if len(piece.text) > LONGEST_STATEMENT:
        raise _too_long(script, piece.start + LONGEST_STATEMENT, len(piece.text))
    sql = _SQL.match(piece.text)
    if sql is not None:
        return Sql(piece.text[sql.end() :])
    try:
        tree = parser().parse(piece.text, start="statement")
        found: Statement = StatementBuilder().transform(tree)
    except UnexpectedInput as error:
        raise _in_script(explained(error, piece.text, "statement", StatementSyntaxError), piece, script) from None
    except VisitError as error:
        mistake = located(error, piece.text, StatementSyntaxError)
        if not isinstance(mistake, StatementSyntaxError):
            raise mistake from error
        raise _in_script(mistake, piece, script) from None
    # What can be read must be readable again as it is printed: with all names, and with blanks.
    if len(piece.text) * MOST_LENGTHENED > LONGEST_STATEMENT and len(str(found)) > LONGEST_STATEMENT:
        raise _too_long(script, piece.start, len(str(found)))
    return found


def _too_long(script: str, position: int, length: int) -> StatementSyntaxError:
    what, hint = f"a statement may have {LONGEST_STATEMENT:,} characters", "Load large data from a file"
    return _mistake(what, script, position, got=f"{length:,}", hint=hint)


def _in_script(error: StatementSyntaxError, piece: Piece, script: str) -> StatementSyntaxError:
    """The mistake at its place in the whole script, where its line can be counted."""
    return _mistake(error.what, script, piece.start + error.position, got=error.got, hint=error.hint)


def _mistake(
    what: str, text: str, position: int, *, got: object = None, hint: str | None = None
) -> StatementSyntaxError:
    return StatementSyntaxError(what, got=got, hint=hint, text=text, position=position)


def _script(text: str) -> str:
    if not isinstance(text, str):
        raise LanguageError("a statement is a text", got=f"a {type(text).__name__}", hint="As in 'select A'")
    return text
