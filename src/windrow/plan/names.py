"""How names and values are written in the language, so that what is printed reads back as the same."""

from __future__ import annotations

import re

from windrow.expressions.nodes import Literal
from windrow.expressions.written import RESERVED, Value, quoted

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

KEYWORDS = RESERVED | frozenset(
    {
        "aggr",
        "aggregate",
        "aggregates",
        "analyse",
        "analyze",
        "anti",
        "any",
        "apply",
        "array",
        "arrays",
        "auto",
        "begin",
    }
    | {"boundary", "by", "centered", "centred", "clip", "commit", "corner", "create", "deferred", "delete"}
    | {"describe", "drop", "excluding", "explain", "filter", "from", "functions", "group", "having"}
    | {"histogram", "history", "import", "incremental", "insert", "into", "join", "left", "line", "list", "load"}
    | {
        "map",
        "method",
        "mutual",
        "naive",
        "nan",
        "nearest",
        "neighbors",
        "neighbours",
        "of",
        "offsets",
        "on",
        "plot",
        "project",
    }
    | {
        "reflected",
        "refresh",
        "regrid",
        "rollback",
        "save",
        "scan",
        "select",
        "self",
        "set",
        "shape",
        "show",
        "similarity",
    }
    | {
        "sparse",
        "step",
        "strategy",
        "sweep",
        "to",
        "trailing",
        "update",
        "values",
        "versions",
        "view",
        "views",
        "where",
        "window",
        "with",
    }
    | {"within", "wrap"}
    | {"cascade", "changes", "check", "full"}
    | {"asc", "desc", "limit", "order", "over"}
)
"""Every word that means something somewhere; a name may be one of them, and is then printed in double quotes."""


def name_text(name: str) -> str:
    """A name as it can stand anywhere."""
    return name if _BARE.match(name) and name.lower() not in KEYWORDS else quoted(name, '"')


def value_text(value: Value) -> str:
    """A constant as it is written in statements."""
    return str(Literal(value))


def text_text(text: str) -> str:
    """A file's name, or another text."""
    return quoted(text, "'")
