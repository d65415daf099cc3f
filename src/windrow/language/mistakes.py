"""What the parser did not expect, in words."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, TypeVar

from windrow.errors import Error, nearest
from windrow.expressions.written import RESERVED
from windrow.language.pointing import PointedError, cut, visible

_Kind = TypeVar("_Kind", bound=PointedError)

_VALUE = "a value (a name, a number, a 'text', a function or parentheses)"
_VALUE_STARTS = frozenset({"INTEGER", "FLOAT", "TEXT", "_OPEN", "_CASE"})
_VALUES = _VALUE_STARTS | {"HEXADECIMAL", "MOMENT", "NAME", "QUOTED", "MINUS", "PLUS", "STAR"} | {
    *("_CAST", "_FALSE", "_NOT", "_NULL", "_TRUE")
}  # fmt: skip
_CONSTANTS = frozenset(
    {"INTEGER", "FLOAT", "HEXADECIMAL", "TEXT", "MOMENT", "PLUS", "MINUS", "_FALSE", "_NAN", "_NULL", "_TRUE"}
)
_OPERATORS = frozenset(
    {"PLUS", "MINUS", "CONCAT", "STAR", "MULTIPLY", "COMPARE", "EQUAL", "_AND", "_OR", "_BETWEEN", "_IN", "_IS"}
)
_SIGNS = {
    "_OPEN": "'('",
    "_CLOSE": "')'",
    "_COMMA": "','",
    "_DOT": "'.'",
    "_COLON": "':'",
    "EQUAL": "'='",
    "VERSION": "'@'",
    "STAR": "'*'",
    "NAME": "a name",
    "INTEGER": "a whole number",
    "FLOAT": "a number",
    "TEXT": "a 'text'",
    "SCHEMA": "a schema such as <a: float64> [i=1:10]",
    "$END": "the end",
}
_SILENT = frozenset({"QUOTED", "HEXADECIMAL", "MOMENT", "PROJECTION", "MINUS", "PLUS"})
_SEVERAL = {
    "_AS_OF": ("as of",),
    "_MIN_COUNT": ("min count",),
    "_ORDER_BY": ("order by",),
    "_MUTUAL_NEAREST": ("mutual nearest",),
    "_WRAP_NAMES": ("wrap",),
    "BOUNDARY": ("clip", "drop"),
    "DIRECTION": ("asc", "desc"),
    "DROPPED": ("array", "view"),
    "EXISTING": ("if exists",),
    "FORM": ("aggregate", "apply", "between", "filter", "project", "regrid", "scan", "window"),
    "LISTED": ("aggregates", "arrays", "functions", "views"),
    "METHOD": ("auto", "incremental", "naive"),
    "PLOTTED": ("as histogram", "as line", "as map"),
}
_FORMS = frozenset({"FORM", "_CHANGES"})
_MOST_WORDS = 12
_ADVICE = {"@": "A version is a number, as in A@3", "[": "Square brackets hold the dimensions of a schema"}
_JOIN = "As in A similarity join B with shape L1(1), or left or anti similarity join"
_CLAUSES = (
    "from",
    "where",
    "window",
    "regrid",
    "neighbours",
    "group",
    "having",
    "order",
    "limit",
    "into",
    "similarity",
    "left",
    "anti",
    "nearest",
    "mutual",
)
_LAST_WORD = re.compile(r"([A-Za-z_]\w*)\s*\Z")


class MisplacedError(Error):
    """A mistake at a known place of the text, which ``located`` turns into what users see."""

    def __init__(self, what: str, place: int, *, got: object = None, hint: str | None = None) -> None:
        super().__init__(what, got=got, hint=hint)
        self.place = place


def words_of(terminal: str) -> tuple[str, ...]:
    """The keywords that a terminal of the grammar stands for."""
    nameless = terminal.startswith("__") or terminal in ("COMPARE", "CONCAT", "MULTIPLY")
    if nameless or terminal in _SIGNS or terminal in _SILENT:
        return ()
    return _SEVERAL.get(terminal, (terminal.strip("_").lower(),))


def explained(error: Any, text: str, whole: str, kind: type[_Kind]) -> _Kind:
    """A failure of the parser on ``text``, which is called ``whole`` (an expression, a statement)."""
    from lark.exceptions import UnexpectedToken

    position = error.pos_in_stream
    if not isinstance(error, UnexpectedToken):
        return _strange(text, position, error.allowed or set(), kind)
    token, accepted = error.token, error.accepts or error.expected
    if token.type == "$END":
        what = f"the {whole} ends where {expected(accepted)} is expected"
        hint = _meant(text, len(text), accepted)
        return kind(what, hint=hint, text=text, position=len(text.rstrip()))
    hint = _close(str(token), [word for terminal in accepted for word in words_of(terminal)])
    if str(token).lower() == "join" and "_SIMILARITY" in accepted:
        hint = _JOIN
    if hint is None and str(token).lower() in RESERVED and "NAME" in accepted:
        hint = f'{str(token)!r} is a keyword; a column of that name is written "{token}"'
    hint = hint or _meant(text, position, accepted)
    return kind(f"expected {expected(accepted)}", got=f"{cut(str(token))!r}", hint=hint, text=text, position=position)


def located(error: Any, text: str, kind: type[_Kind]) -> Exception:
    """A mistake found while building the tree, at its place in the text."""
    mistake = error.orig_exc
    if not isinstance(mistake, Error):
        return mistake  # type: ignore[no-any-return]
    position = getattr(getattr(error.obj, "meta", None), "start_pos", 0)
    if isinstance(mistake, MisplacedError):
        position = mistake.place
    return kind(mistake.what, got=mistake.got, hint=mistake.hint, text=text, position=position)


def expected(terminals: Collection[str]) -> str:
    """What could stand at a place, in words."""
    parts = _parts(terminals)
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1] if parts else "nothing"


def _parts(terminals: Collection[str]) -> list[str]:
    """Each thing that could stand at a place; terminals that go together are one thing."""
    names = set(terminals)
    parts = []
    if names >= {"_SELECT", "_CREATE", "_INSERT"}:
        return ["a statement"]
    if names >= _VALUE_STARTS:
        parts.append(_VALUE)
        names -= _VALUES
    elif names >= {"PLUS", "MULTIPLY"}:
        parts.append("an operator")
        names -= _OPERATORS | {"_NOT", "_OPEN", "_DOT"}
    elif names >= _CONSTANTS:
        parts.append("a constant (a number, a 'text', true, false or null)")
        names -= _CONSTANTS
    if names >= {"_SELECT", "_AGGR", *_FORMS}:
        parts.append("a query")
        names -= {"_SELECT", "_AGGR", *_FORMS}
    elif names >= _FORMS:
        parts.append("a form such as filter(…)")
        names -= _FORMS
    signs = {_SIGNS[name] for name in names if name in _SIGNS}
    return parts + sorted(signs | {word for name in names for word in words_of(name)})


def _strange(text: str, position: int, allowed: Collection[str], kind: type[_Kind]) -> _Kind:
    character = text[position]
    if character in "'\"":
        return unclosed(text, position, kind)
    what, hint = "a character that has no meaning here", _ADVICE.get(character)
    if hint is None and len(_parts(allowed)) <= _MOST_WORDS:
        hint = f"Expected {expected(allowed)}"
    return kind(what, got=visible(character), hint=hint, text=text, position=position)


def unclosed(text: str, position: int, kind: type[_Kind]) -> _Kind:
    """A quote that is opened at ``position`` and never closed."""
    ending = f"End it with {text[position]}; a quote inside is written twice"
    return kind("a quote is never closed", hint=ending, text=text, position=position)


def _close(word: str, known: Collection[str]) -> str | None:
    """The keyword that was meant, if one is close."""
    if len(word) < 3 or not known:
        return None
    hint = nearest(word.lower(), known)
    return hint if hint.startswith("Did you mean") else None


def _meant(text: str, position: int, accepted: Collection[str]) -> str | None:
    """A misspelt keyword before the place where it hurts: ``from A windw (2, 2)`` reads as an array called windw."""
    if "_COMMA" not in accepted and "_FROM" not in accepted and "_WHERE" not in accepted:
        return None
    before = _LAST_WORD.search(text, max(0, position - 250), position)
    if before is not None and before[1].lower() == "join":
        return _JOIN
    return None if before is None or before[1].lower() in _CLAUSES else _close(before[1], _CLAUSES)
