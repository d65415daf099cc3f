"""Which words can stand next in a statement: keywords, arrays, their columns, functions and aggregates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windrow.api.session.options import VIEW_SETTINGS
from windrow.errors import Error
from windrow.language.tokens import expected
from windrow.plan.names import name_text
from windrow.views.definition import CHOICES

if TYPE_CHECKING:
    from windrow.api.database import Database

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETTING = re.compile(
    r"""\A\s*(?:explain\s+)?create\s+(?:array\s+)?view\s+(?:\w+|"[^"]*")\s+(?:deferred\s+)?with\s*\(
    (?:[^()']|'[^']*')*?(?<=[(,])\s*(?:(?P<name>\w+)\s*=\s*)?\Z""",
    re.IGNORECASE | re.VERBOSE,
)
"""A view that is being made, up to where one of its settings may begin, or the value of one."""
_SOURCE = re.compile(r"\b(?:aggr|from|join|select)\b", re.IGNORECASE)
"""Words of a query, in which an operator may be what is read."""
_SQL = re.compile(r"\s*sql\s", re.IGNORECASE)


def next_words(database: Database | None, before: str, whole: str) -> dict[str, str]:
    """What may follow ``before`` in a statement, each word with what it is; keywords need no saying.

    ``whole`` is the statement with what comes after the cursor, which may name the arrays whose columns are meant.
    """
    setting = _SETTING.search(before)
    if setting is not None:
        return _settings(setting["name"])
    if _SQL.match(before):
        return _names(database, whole) | _functions()
    wanted = expected(before)
    words: dict[str, str] = {} if before.strip() else {"sql": ""}
    if wanted is None or wanted.names:
        words |= _names(database, whole) | (_operators() if _SOURCE.search(before) else {})
        if wanted is None or wanted.values:
            words |= _functions()
    if wanted is not None and "excluding" in wanted.words:  # a part of a shape may begin
        words |= dict.fromkeys(("L1(", "L2(", "Linf(", "Lp(", "Hamming(", "Sky("), "shape")
    return words | {word: "" for word in (wanted.words if wanted is not None else ()) if word not in words}


def _settings(name: str | None) -> dict[str, str]:
    """The settings of a view, or what the one that is named may be."""
    if name is None:
        return dict.fromkeys(VIEW_SETTINGS, "setting of a view")
    return dict.fromkeys(CHOICES.get(name.lower(), ()), f"for {name}")


def _names(database: Database | None, statement: str) -> dict[str, str]:
    """Arrays and views, and the columns of those that the statement names."""
    if database is None:
        return {}
    views = [view.name for view in database.views()]
    arrays = [*(array.name for array in database.arrays()), *views]
    names = {name_text(name): "view" if name in views else "array" for name in arrays}
    for array in set(_NAME.findall(statement)) & set(arrays):
        names |= _columns(database, array)
    return names


def _columns(database: Database, array: str) -> dict[str, str]:
    try:
        schema = database.array(array).schema
    except Error:
        return {}
    attributes = {name_text(a.name): f"{a.type.name} of {array}" for a in schema.attributes}
    return attributes | {name_text(name): f"dimension of {array}" for name in schema.dimension_names}


def _operators() -> dict[str, str]:
    from windrow.plan.operators import installed_operators

    return {f"{found.name}(": "operator" for found in installed_operators().values()}


def _functions() -> dict[str, str]:
    from windrow.aggregates.registry import DEFINITIONS, SYNONYMS
    from windrow.aggregates.user import installed_aggregates
    from windrow.expressions.functions import FUNCTIONS

    own = {f"{found.name}(": "aggregate" for found in installed_aggregates().values()}
    known = {f"{name}(": "aggregate" for name in (*DEFINITIONS, *SYNONYMS)}
    return {f"{name}(": "function" for name in FUNCTIONS} | known | own
