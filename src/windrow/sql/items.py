"""The parts of a SELECT by their places in the text: its items, and its clauses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from windrow.sql.reading import Reading, Span

_GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack")
_ORGANISING = {
    TokenType.ORDER_BY: "order",
    TokenType.SORT_BY: "sort",
    TokenType.CLUSTER_BY: "cluster",
    TokenType.DISTRIBUTE_BY: "distribute",
    TokenType.LIMIT: "limit",
    TokenType.OFFSET: "offset",
}
_WINDOWS = {TokenType.WINDOW: "windows", TokenType.QUALIFY: "qualify"}
_ROWS = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)


@dataclass
class Item:
    """One item of a select list; ``above`` is its text in the outer query, if a window is in it."""

    node: exp.Expr
    span: Span
    mark: str
    name: str = ""
    above: str | None = None
    same: str | None = None  # the generated column that holds the same values, if there is one

    @property
    def is_star(self) -> bool:
        return isinstance(self.value, exp.Star)

    @property
    def value(self) -> exp.Expr:
        """The item without its alias."""
        value: exp.Expr = self.node.this if isinstance(self.node, exp.Alias) else self.node
        return value

    @property
    def several(self) -> bool:
        """Whether it may stand for any number of columns."""
        value = self.value
        star = isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star))
        generates = isinstance(value, exp.Anonymous) and value.name.lower() in (*_GENERATORS, "json_tuple")
        return star or generates or isinstance(self.node, exp.Aliases)


@dataclass(frozen=True)
class Clauses:
    """A SELECT's text: ``below`` the windows from FROM to HAVING, ``organising`` from ORDER BY on."""

    span: Span
    hint: str
    distinct: bool
    tables: str
    below: str
    organising: list[tuple[Span, list[exp.Expr]]]


def items_of(reading: Reading, select: exp.Select, own: str) -> list[Item]:
    """The items of a select list; ``own`` begins the names of the marks that tell them apart."""
    items = []
    for number, node in enumerate(select.expressions):
        span = reading.span(node)
        if span is None:
            raise reading.error("windrow cannot follow this part of the select list", node)
        name = node.alias_or_name if isinstance(node, exp.Alias | exp.Column) else reading.label(node)
        items.append(Item(node, span, f"{own}{number}", name))
    return items


def clauses_of(reading: Reading, select: exp.Select) -> Clauses:
    """The clauses of a select, found by their keywords outside parentheses."""
    found = reading.tokens_of(select)
    last = reading.tokens_of(select.expressions[-1]) if select.expressions else None
    if found is None or last is None:
        raise reading.error("windrow reads a SELECT that begins with its columns", select, hint="As in select x from t")
    starts = _starts(reading, select, last[1] + 1, found[1])
    # What follows the last of several united queries belongs to all of them.
    united = isinstance(select.parent, exp.SetOperation)
    cut = [token for token, kind in starts if kind in _ORGANISING] if united else []
    end = cut[0].start if cut else reading.tokens[found[1]].end + 1
    starts = [(token, kind) for token, kind in starts if token.start < end]
    first, body = reading.tokens[found[0]], reading.tokens[last[1]].end + 1
    between = reading.between(first.end + 1, reading.span_start(select.expressions[0]))
    above = [token.start for token, kind in starts if kind in _ORGANISING or kind in _WINDOWS]
    rows = [token.start for token, kind in starts if kind in _ROWS]
    below_end = min(above, default=end)
    return Clauses(
        (first.start, end),
        re.sub(r"\b(distinct|all)\s*$", "", between.strip(), flags=re.IGNORECASE).strip(),
        select.args.get("distinct") is not None,
        reading.between(body, min(rows, default=below_end)).strip(),
        reading.between(body, below_end).strip(),
        _organising(reading, select, starts, end),
    )


def _starts(reading: Reading, select: exp.Select, begin: int, end: int) -> list[tuple[Token, TokenType]]:
    depth, starts = 0, []
    for token in reading.tokens[begin : end + 1]:
        kind = token.token_type
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
        if depth:
            continue
        if kind in _WINDOWS and not select.args.get(_WINDOWS[kind]):
            continue  # a name that only looks like the keyword
        if kind in _ORGANISING or kind in _WINDOWS or kind in _ROWS:
            starts.append((token, kind))
    return starts


def _organising(
    reading: Reading, select: exp.Select, starts: list[tuple[Token, TokenType]], end: int
) -> list[tuple[Span, list[exp.Expr]]]:
    clauses = []
    for number, (token, kind) in enumerate(starts):
        if kind not in _ORGANISING:
            continue
        stop = starts[number + 1][0].start if number + 1 < len(starts) else end
        node = select.args.get(_ORGANISING[kind])
        sorts = kind not in (TokenType.LIMIT, TokenType.OFFSET)
        nodes = list(node.expressions) if sorts and isinstance(node, exp.Expr) else []
        parts = [part.this if isinstance(part, exp.Ordered) else part for part in nodes]
        clauses.append(((token.start, stop), parts))
    return clauses
