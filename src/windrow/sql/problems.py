"""Spark's complaints about a query as windrow's errors: what, where, and the nearest name that is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from windrow.errors import Error, nearest
from windrow.sql.over_clauses import KNOWN
from windrow.sql.reading import SqlError, SqlNameError

_PREFIX = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_OWN = re.compile(r"^windrow\.[\w.]+Error: (.*?)(?:\n\n|SQLSTATE|\Z)", re.DOTALL | re.MULTILINE)
_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")


def is_spark_error(error: BaseException) -> bool:
    """Whether an error is Spark's own about a query, and not windrow's."""
    return hasattr(error, "getCondition") and not isinstance(error, Error)


def translate_error(
    error: Exception,
    text: str,
    tables: Callable[[], Sequence[str]],
    named: Callable[[str], str] = str,
) -> Error:
    """The error as windrow says it, under a caret where its place in ``text`` can be told."""
    condition = str(error.getCondition() or "")  # type: ignore[attr-defined]
    found = error.getMessageParameters() or {}  # type: ignore[attr-defined]
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_USING_COLUMN")):
        name = _unquote(found.get("objectName") or found.get("colName") or "")
        known = [_unquote(part) for part in (found.get("proposal") or found.get("suggestion") or "").split(", ")]
        close = nearest(name.split(".")[-1], [part.split(".")[-1] for part in known if part])
        hint = close if "." not in name else f"{close} A query with windows cannot use columns of the query around it"
        return SqlNameError("no such column", got=repr(name), hint=hint, text=text, position=_find(text, name))
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        name = _unquote(found.get("relationName", ""))
        hint = nearest(name.split(".")[-1], tables())
        position = _find(text, name.split(".")[0])
        return SqlNameError("no such table, view or array", got=repr(name), hint=hint, text=text, position=position)
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = _unquote(found.get("routineName", ""))
        hint = nearest(name, KNOWN)
        return SqlNameError("no such function", got=repr(name), hint=hint, text=text, position=_find(text, name))
    inside = _OWN.findall(str(error))
    if inside:
        return SqlError(inside[-1].strip(), text=text, position=_find(text, "windrow_frames"))
    told = named(_STATE.sub("", _PREFIX.sub("", str(error).strip()))).strip().rstrip(".")
    return SqlError(told[:1].lower() + told[1:], text=text, position=_place(error, text))


def _unquote(name: str) -> str:
    return name.replace("`", "")


def _find(text: str, name: str) -> int:
    """Where a name stands first, as a word."""
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    return match.start() if match else 0


def _place(error: Exception, text: str) -> int:
    """The place that Spark names, if it saw this text, or that of the fragment it quotes."""
    match = _PLACE.search(str(error))
    if match is not None and f"== SQL ==\n{text}" in str(error):
        lines = text.split("\n")
        return sum(len(line) + 1 for line in lines[: int(match[1]) - 1]) + int(match[2])
    for context in getattr(error, "getQueryContext", list)() or []:
        fragment = context.fragment() if hasattr(context, "fragment") else ""
        if fragment and fragment in text:
            return text.index(fragment)
    return 0
