"""One SELECT cut in two: what Spark computes below the windows, and what it computes above them.

The inner query has the items that hold no window of windrow's, as they stand, and after them every expression that a
window or the outer query needs. Spark resolves all names there, where they were written. The outer query knows only
columns with generated names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sqlglot import exp

from windrow.model.frame import Offset, SortKey
from windrow.sql.frame_clauses import find_varying_amount, refuse_changing
from windrow.sql.items import Clauses, Item, clauses_of, items_of
from windrow.sql.over_clauses import WindowCall, read_window
from windrow.sql.reading import Reading, Span, walk_query
from windrow.sql.splits import OWN, Column, Sort, Split

Keep = Callable[[exp.Expr], str | None]
"""What stands for a node in the outer query; None if the node is computed as any other."""


class ScopeReader:
    """Makes the two queries of one SELECT; ``is_column`` asks Spark whether the tables have a column."""

    def __init__(
        self, reading: Reading, select: exp.Select, is_column: Callable[[str, str], bool], *, optional: bool = True
    ) -> None:
        self.reading = reading
        self.select = select
        self._is_column = is_column
        self.named = {w.name.lower(): w for w in select.args.get("windows") or []}
        self.calls: dict[int, WindowCall] = {}
        for window in windows_of(select):
            call = read_window(reading, window, self.named)
            if call is not None and (optional or not call.optional):
                self.calls[id(window)] = call
        self._pulled: dict[str, str] = {}
        self._results: dict[str, str] = {}
        self._sorts: dict[tuple[object, ...], Sort] = {}
        self._aliases: dict[str, Item] = {}
        self._checked: dict[str, bool] = {}
        self._from = ""

    def split(self) -> Split:
        """The SELECT in two."""
        self._refuse()
        clauses = clauses_of(self.reading, self.select)
        items = items_of(self.reading, self.select, f"{OWN}m")
        self._from = clauses.tables
        for item in items:
            if self._needs_windrow(item.value):
                item.above = self._write_above(item.value)
                self._aliases[item.name.lower()] = item
        where = self._write_qualify(items)
        above = "\n".join([*where, *self._write_organising(clauses, items)])
        return Split(
            clauses.span,
            self._write_inner(clauses, items),
            clauses.tables,
            list(self._pulled.values()),
            self._plain_columns(items),
            list(self._sorts.values()),
            items,
            above,
            clauses.distinct,
            {name: text for text, name in (*self._pulled.items(), *self._results.items())},
            self._write_for_readers(clauses, items),
        )

    def _refuse(self) -> None:
        """Windows stand in the select list, in QUALIFY and in ORDER BY."""
        for clause in ("where", "group", "having"):
            node = self.select.args.get(clause)
            for part in walk_query(node) if node is not None else ():
                if id(part) in self.calls:
                    hint = "Use qualify, or put the window into a subquery"
                    raise self.reading.error(f"a window cannot stand in {clause.upper()}", part, hint=hint)
        group = self.select.args.get("group")
        if group is not None and group.args.get("all"):
            raise self.reading.error(
                "GROUP BY ALL cannot stand beside windows of windrow's", group, hint="Name the columns"
            )

    # What stays above

    def _needs_windrow(self, node: exp.Expr) -> bool:
        """Whether an expression needs a result of windrow's, by itself or through an alias."""
        return any(id(part) in self.calls or self._is_alias(part) for part in walk_query(node))

    def _is_alias(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column) or node.table or isinstance(node.this, exp.Star):
            return False
        return node.name.lower() in self._aliases and not self._in_tables(node.name)

    def _in_tables(self, name: str) -> bool:
        """Whether a name is a column of the tables, which goes before an alias, as in Spark."""
        if name.lower() not in self._checked:
            self._checked[name.lower()] = self._is_column(name, self._from)
        return self._checked[name.lower()]

    def _write_above(self, node: exp.Expr) -> str:
        """The text of an expression for the outer query."""
        span = self.reading.span(node)
        if span is None:
            raise self.reading.error("windrow cannot follow this expression", node, hint="Compute it in a subquery")
        return self._compose(span, [node], _nothing)

    def _compose(self, span: Span, nodes: list[exp.Expr], kept: Keep) -> str:
        """The text of a part, its expressions made ready for the outer query."""
        edits: list[tuple[Span, str]] = []
        for node in nodes:
            self._edit(node, edits, kept)
        text, at = [], span[0]
        for (begin, end), new in sorted(edits):
            text += [self.reading.between(at, begin), new]
            at = end
        return "".join([*text, self.reading.between(at, span[1])])

    def _edit(self, node: exp.Expr, edits: list[tuple[Span, str]], kept: Keep) -> None:
        span, instead = self.reading.span(node), kept(node)
        if instead is None and self._is_alias(node):
            # Spark has no aliases inside windows, so what an alias stands for is written out.
            instead = f"({self._aliases[node.name.lower()].above})"
        if instead is None and id(node) in self.calls:
            instead = self._result(self.calls[id(node)])
        if span is not None and instead is not None:
            edits.append((span, instead))
        elif _is_constant(node):
            return
        elif span is not None and not self._keeps(node, kept):
            edits.append((span, self._pull(node)))
        elif isinstance(node, exp.Query | exp.Subquery | exp.Column):
            raise self.reading.error("windrow cannot follow this expression", node, hint="Compute it in a subquery")
        else:
            for child in node.iter_expressions():
                # The function of a window that stays here stays with it.
                for part in _function_parts(child) if isinstance(node, exp.Window) else [child]:
                    self._edit(part, edits, kept)

    def _keeps(self, node: exp.Expr, kept: Keep) -> bool:
        """Whether something in an expression must stay above."""
        return self._needs_windrow(node) or any(kept(part) is not None for part in walk_query(node))

    def _write_qualify(self, items: list[Item]) -> list[str]:
        qualify = self.select.args.get("qualify")
        if qualify is None:
            return []
        plain = {item.name.lower(): item for item in items if isinstance(item.node, exp.Alias) and item.above is None}

        def output(node: exp.Expr) -> str | None:
            named = isinstance(node, exp.Column) and not node.table and node.name.lower() in plain
            return self._pull(plain[node.name.lower()].value) if named and not self._in_tables(node.name) else None

        span = self.reading.span(qualify.this)
        if span is None:
            raise self.reading.error("windrow cannot follow this condition", qualify.this)
        text = self._compose(span, [qualify.this], output)
        stays = any(self._has_window_above(node) for node in (*(item.value for item in items), qualify.this))
        return [f"{'qualify' if stays else 'where'} {text}"]

    def _has_window_above(self, node: exp.Expr) -> bool:
        """Whether a window of Spark's uses a result of windrow's, so that it must be computed above."""
        own = (part for part in walk_query(node) if isinstance(part, exp.Window) and id(part) not in self.calls)
        return any(self._needs_windrow(part) for part in own)

    def _write_organising(self, clauses: Clauses, items: list[Item]) -> Iterator[str]:
        """ORDER BY and what follows: names of the result go before columns of the tables."""
        shown = {item.name.lower() for item in items if item.name and not item.several}

        def output(node: exp.Expr) -> str | None:
            plain = isinstance(node, exp.Column) and not node.table and not isinstance(node.this, exp.Star)
            return self.reading.text_of(node) if plain and node.name.lower() in shown | {"all"} else None

        for span, nodes in clauses.organising:
            yield self._compose(span, nodes, output)

    # What goes below

    def _pull(self, node: exp.Expr) -> str:
        """The inner column of an expression."""
        text = self.reading.text_of(node)
        return self._pulled.setdefault(text, f"{OWN}g{len(self._pulled)}")

    def _result(self, call: WindowCall) -> str:
        label = self.reading.label(call.node)
        if label in self._results:
            return self._results[label]
        for node in (*call.partition, *(order.node for order in call.order)):
            refuse_changing(self.reading, node, "what a window is sorted by")
        for node in call.node.iter_expressions():
            if any(self._is_alias(part) or (id(part) in self.calls) for part in walk_query(node)):
                hint = "Put the one inside into a subquery"
                raise self.reading.error("a window cannot use the result of another", call.node, hint=hint)
        result = self._results[label] = f"{OWN}r{len(self._results)}"
        partition = tuple(self._pull(node) for node in call.partition)
        order = tuple(SortKey(self._pull(o.node), o.descending, o.nulls_first) for o in call.order)
        sort = self._sorts.setdefault((partition, order), Sort(partition, order))
        arguments = tuple(self._pull(node) for node in call.arguments)
        condition = None if call.condition is None else self._pull(call.condition)
        frame = replace(call.frame, start=self._pull_bound(call.frame.start), end=self._pull_bound(call.frame.end))
        fraction = None if call.fraction is None else self._pull(call.fraction)
        sort.columns.append(Column(result, call, arguments, fraction, condition, frame))
        return result

    def _pull_bound(self, bound: Any) -> Any:
        """A bound that varies is computed below."""
        node = find_varying_amount(bound)
        return bound if node is None else Offset(self._pull(node), bound.before)

    def _write_inner(self, clauses: Clauses, items: list[Item]) -> str:
        """The items as they stand, so that GROUP BY and aliases find them; NULL where a window was."""
        listed = []
        for item in items:
            listed.append(f"null as {item.mark}" if item.above is not None else self.reading.between(*item.span))
            if item.several:
                listed.append(f"null as {item.mark}")
        listed += [f"{text} as {name}" for text, name in self._pulled.items()]
        windows = [self.reading.definition_text(self.named[name]) for name in self._spark_windows()]
        window = f"\nwindow {', '.join(windows)}" if windows else ""
        return f"select {clauses.hint} {', '.join(listed)}\n{clauses.below}{window}"

    def _write_for_readers(self, clauses: Clauses, items: list[Item]) -> str:
        kept = [self.reading.between(*item.span) for item in items if item.above is None]
        listed = ", ".join(dict.fromkeys([*kept, *self._pulled]))
        return f"select {listed}\n{clauses.below}"

    def _plain_columns(self, items: list[Item]) -> dict[str, str]:
        """Generated columns that are a column of the tables, known by its name alone."""
        for item in items:
            if not item.several and item.above is None:
                item.same = self._pulled.get(self.reading.text_of(item.value))
        aliases = {item.name.lower() for item in items if isinstance(item.node, exp.Alias)}
        plain = {
            text.strip("`").lower(): name for text, name in self._pulled.items() if re.fullmatch(r"\w+|`\w+`", text)
        }
        return {text: name for text, name in plain.items() if text not in aliases}

    def _spark_windows(self) -> list[str]:
        """The names of WINDOW definitions that Spark's own functions use."""
        used = [w.args["alias"] for w in windows_of(self.select) if id(w) not in self.calls and w.args.get("alias")]
        names: list[str] = []
        while used:
            name = used.pop().name.lower()
            if name in self.named and name not in names:
                names.append(name)
                used += [base for base in [self.named[name].args.get("alias")] if base is not None]
        return [name for name in self.named if name in names]


def windows_of(select: exp.Select) -> Iterator[exp.Window]:
    """The OVER clauses of a SELECT, without those of queries inside it and without named definitions."""
    for node in walk_query(select):
        if isinstance(node, exp.Window) and node.args.get("over") is not None:
            yield node


def _nothing(_node: exp.Expr) -> str | None:
    return None


def _function_parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions in a window's function, or a part of its OVER clause as it is."""
    if isinstance(node, exp.Anonymous | exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        for child in node.iter_expressions():
            yield from _function_parts(child)
    else:
        yield node


def _is_constant(node: exp.Expr) -> bool:
    """Whether an expression is made of what is written out alone, and can stand anywhere."""
    return node.find(exp.Column, exp.Star, exp.Window, exp.Anonymous, exp.Query, exp.Subquery) is None
