"""Where in a statement a mistake is: an unknown name is looked for in the text, so that a caret can show it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windrow.errors import Error
from windrow.language.pointing import PointedError

if TYPE_CHECKING:
    from windrow.language.parser import Piece

_QUOTED = re.compile(r"(?P<quote>['\"])(?P<name>.*)(?P=quote)", re.DOTALL)
_LONGEST_NAME = 200


def pointed(error: Error, text: str) -> Error:
    """The error with its place in the text, if what it got stands there."""
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
    """The line of a script in which the statement, or the mistake in it, stands."""
    return piece.line + (error.line - 1 if isinstance(error, PointedError) and error.text == piece.text else 0)
