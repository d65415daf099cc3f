"""Names that WITH defines: which definition a table's name means, and what a query inside needs to stand alone.

A definition is seen by those after it in its WITH clause, by the query that the clause belongs to, and by all queries
inside these; a definition further in hides one of the same name further out. A WITH RECURSIVE is also seen by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp

from windrow.sql.reading import Reading
from windrow.sql.splits import OWN, quote_name


def definition_of(table: exp.Table) -> exp.CTE | None:
    """The definition that a table's name means; None if it means a table, a view or an array."""
    if table.args.get("db") is not None:
        return None
    named = (definition for definition in _find_visible(table) if definition.alias.lower() == table.name.lower())
    return next(named, None)


def definitions_for(reading: Reading, select: exp.Select) -> str:
    """The WITH clause that a query inside others needs to stand alone."""
    seen = list(_find_visible(select))[::-1]
    if not seen:
        return ""
    recursive = "recursive " if any(_is_recursive(definition) for definition in seen) else ""
    return f"with {recursive}{', '.join(map(reading.definition_text, seen))}\n"


def separate_names(reading: Reading) -> dict[str, str]:
    """Rename definitions whose names have another meaning elsewhere in the query; returns the old name of each new one.

    Afterwards all definitions that a query sees can stand in one WITH clause.
    """
    tables = list(reading.tree.find_all(exp.Table))
    meant = {id(table): definition_of(table) for table in tables}
    shared = Counter(definition.alias.lower() for definition in reading.tree.find_all(exp.CTE))
    shared.update({table.name.lower() for table in tables if meant[id(table)] is None})
    renamed: dict[int, str] = {}
    meanings: dict[str, str] = {}
    for definition in reading.tree.find_all(exp.CTE):
        if shared[definition.alias.lower()] > 1:
            name = renamed[id(definition)] = f"{OWN}w{len(renamed)}"
            meanings[name] = definition.alias
            _rename(reading, definition.args["alias"].this, name)
    for table in tables:
        own_name = renamed.get(id(meant[id(table)]))
        if own_name is not None:
            label = "" if table.alias or table.args.get("sample") else f" as {quote_name(table.name)}"
            _rename(reading, table.this, own_name + label)
    return meanings


def refuse_recursion(reading: Reading, select: exp.Select, window: exp.Expr) -> None:
    """Refuse a window over the result of a recursive query inside that query: its rows are not all known yet."""
    around = [node for node in _ancestors(select) if isinstance(node, exp.CTE) and _is_recursive(node)]
    meant = [definition_of(table) for table in select.find_all(exp.Table)]
    if any(one is definition for one in meant for definition in around):
        hint = "Put the window into a query over the whole of it"
        raise reading.error("a window cannot stand in the recursive part of a query", window, hint=hint)


def _find_visible(node: exp.Expr) -> Iterator[exp.CTE]:
    """The definitions that a node sees, the nearest first."""
    inside: exp.CTE | None = None
    for ancestor in _ancestors(node):
        if isinstance(ancestor, exp.CTE):
            inside = ancestor
        clause = ancestor.args.get("with_")
        if clause is None:
            continue
        known = list(clause.expressions)
        places = [place for place, definition in enumerate(known) if definition is inside]
        if places:
            known = known[: places[0] + bool(clause.args.get("recursive"))]
        yield from reversed(known)


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    """A node and those that it stands in, from the inside out."""
    current: exp.Expr | None = node
    while current is not None:
        yield current
        current = current.parent


def _is_recursive(definition: exp.CTE) -> bool:
    return definition.parent is not None and bool(definition.parent.args.get("recursive"))


def _rename(reading: Reading, identifier: exp.Expr, text: str) -> None:
    reading.replace((identifier.meta["start"], identifier.meta["end"] + 1), text)
