"""Spark SQL read into a tree whose nodes know their place in the text.

sqlglot parses. Its tree says what is where; the text itself is what Spark gets, so nothing is lost by writing a tree
out again. Functions are read by name alone, for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from windrow.errors import LanguageError, UnknownNameError
from windrow.language.pointing import PointedError

Span = tuple[int, int]
"""Where something begins in the text, and where it has ended."""

_LAYERS = (
    "_parse_expression",
    "_parse_assignment",
    "_parse_disjunction",
    "_parse_conjunction",
    "_parse_equality",
    "_parse_comparison",
    "_parse_range",
    "_parse_bitwise",
    "_parse_term",
    "_parse_factor",
    "_parse_exponent",
    "_parse_unary",
    "_parse_type",
    "_parse_column",
    "_parse_ordered",
    "_parse_lambda",
    "_parse_named_window",
    "_parse_cte",
)
"""The parser's methods that begin at a node's first token and return the node."""


class SqlError(PointedError, LanguageError):
    """A query that cannot be read or run, shown under a caret."""


class SqlNameError(PointedError, UnknownNameError):
    """A column, table or function that is not there, shown under a caret."""


class WindrowSpark(Spark):
    """Spark's dialect with every function read as a name and arguments, and with spans."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[Any] = {}
        FUNCTION_PARSERS: ClassVar[Any] = {
            name: parse
            for name, parse in SparkParser.FUNCTION_PARSERS.items()
            if name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "SUBSTRING", "STRUCT", "OVERLAY")
        }
        spans: dict[int, tuple[exp.Expr, int, int]]
        selects: list[int | None]

        def reset(self) -> None:
            super().reset()
            self.spans = {}
            self.selects = []

        def _parse_select_query(self, *arguments: Any, **options: Any) -> Any:
            begins = self._curr is not None and self._curr.token_type == TokenType.SELECT
            self.selects.append(self._index if begins else None)
            try:
                return super()._parse_select_query(*arguments, **options)
            finally:
                self.selects.pop()

        def _parse_query_modifiers(self, this: Any) -> Any:
            """A SELECT ends where these end; a UNION comes after."""
            node = super()._parse_query_modifiers(this)
            begin = self.selects[-1] if self.selects else None
            if isinstance(this, exp.Select) and begin is not None and id(this) not in self.spans:
                self.spans[id(this)] = (this, begin, self._index - 1)
            return node

        def _parse_window_spec(self) -> Any:
            bound = super()._parse_window_spec()
            if bound["value"] is None:
                self.raise_error("Expected a frame's bound")
            return bound

        def _warn_unsupported(self) -> None:
            """Commands go to Spark as they are."""

        def _parse_as_command(self, start: Token) -> exp.Command:
            raise SqlglotError("not a query")


def _record_span(name: str) -> Any:
    plain = getattr(SparkParser, name)

    def parse(self: Any, *arguments: Any, **options: Any) -> Any:
        begin = self._index
        node = plain(self, *arguments, **options)
        # A method that is given a node continues after it, so its first token is not where it began to parse.
        given = any(isinstance(value, exp.Expr) for value in (*arguments, *options.values()))
        if not isinstance(node, exp.Expr) or given or self._index <= begin:
            return node
        # The node itself is kept, because the number of one that is gone may be given to another.
        self.spans[id(node)] = (node, begin, self._index - 1)
        return node

    return parse


for _name in _LAYERS:
    setattr(WindrowSpark.Parser, _name, _record_span(_name))


class Reading:
    """A text, its tokens, its tree, and what was put in the place of parts of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = tokens_of(text)
        dialect = WindrowSpark()
        parser: Any = dialect.parser()
        try:
            trees = parser.parse(self.tokens, text)
        except SqlglotError as error:
            raise self._explain_failure(error) from None
        trees = [tree for tree in trees if tree is not None]
        if len(trees) != 1:
            raise SqlError("one statement at a time is expected", text=text, position=0)
        self.tree: exp.Expr = trees[0]
        self._spans = parser.spans
        self._places: dict[int, tuple[exp.Expr, Span | None]] = {}
        self._edits: dict[Span, str] = {}

    def _explain_failure(self, error: SqlglotError) -> SqlError:
        found = getattr(error, "errors", None) or [{}]
        line, column = found[0].get("line"), found[0].get("col")
        # sqlglot counts columns up to the end of the token that it stumbled over.
        at = [token for token in self.tokens if (token.line, token.col) == (line, column)]
        position = at[0].start if at else len(self.text.rstrip())
        told = str(found[0].get("description") or "this is not SQL that windrow can read").rstrip(".")
        if "<class" in told:
            told = "something is missing here"
        return SqlError(told[:1].lower() + told[1:], text=self.text, position=position)

    def tokens_of(self, node: exp.Expr) -> Span | None:
        """The first and the last token of a node, as numbers."""
        found = self._spans.get(id(node))
        if found is not None and found[0] is node:
            return found[1], found[2]
        parts = [self.tokens_of(child) for child in node.iter_expressions()]
        inside = [part for part in parts if part is not None]
        if not inside or len(inside) != len(parts):
            return None
        return min(first for first, _ in inside), max(last for _, last in inside)

    def span(self, node: exp.Expr) -> Span | None:
        """Where a node stands; None if its text, parsed alone, does not give the same node."""
        if id(node) not in self._places:
            found = self.tokens_of(node)
            place = None
            if found is not None:
                begin, end = self.tokens[found[0]].start, self.tokens[found[1]].end + 1
                place = (begin, end) if _reads_the_same(self.text[begin:end], node) else None
            self._places[id(node)] = (node, place)
        return self._places[id(node)][1]

    def span_start(self, node: exp.Expr) -> int:
        """Where a node begins that is known to have a place."""
        found = self.tokens_of(node)
        assert found is not None
        return self.tokens[found[0]].start

    def position(self, node: exp.Expr) -> int:
        """Where a caret points to."""
        found = self.tokens_of(node)
        if found is not None:
            return self.tokens[found[0]].start
        starts = [part.meta["start"] for part in node.find_all(exp.Identifier) if "start" in part.meta]
        return min(starts, default=0)

    def error(self, what: str, node: exp.Expr, got: object = None, hint: str | None = None) -> SqlError:
        return SqlError(what, got=got, hint=hint, text=self.text, position=self.position(node))

    def replace(self, span: Span, new: str) -> None:
        """From now on the text of this part is ``new``."""
        begin, end = span
        self._edits = {at: text for at, text in self._edits.items() if not (begin <= at[0] and at[1] <= end)}
        self._edits[span] = new

    def between(self, begin: int, end: int) -> str:
        """The text from one place to another, with what was put into it."""
        parts, at = [], begin
        for (first, last), new in sorted(self._edits.items()):
            if begin <= first and last <= end:
                parts += [self.text[at:first], new]
                at = last
        return "".join([*parts, self.text[at:end]])

    def text_of(self, node: exp.Expr) -> str:
        """A node's own text, with what was put into it."""
        span = self.span(node)
        return node.sql(WindrowSpark) if span is None else self.between(*span)

    def definition_text(self, node: exp.Expr) -> str:
        """The text of a definition in a WINDOW or WITH clause."""
        found = self.tokens_of(node)
        if found is None:
            raise self.error("windrow cannot follow a query of this form", node, hint="Begin with select")
        return self.between(self.tokens[found[0]].start, self.tokens[found[1]].end + 1)

    def label(self, node: exp.Expr) -> str:
        """A node's text in one line."""
        return re.sub(r"\s+", " ", self.text_of(node)).strip()


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text; an open quote or comment is an error."""
    try:
        return list(WindrowSpark().tokenize(text))
    except SqlglotError as error:
        raise SqlError(str(error).splitlines()[0].rstrip(".").lower(), text=text, position=len(text)) from None


def _reads_the_same(text: str, node: exp.Expr) -> bool:
    """Whether a text read on its own gives the node; an alias, a star or an order needs its place in a query."""
    try:
        dialect = WindrowSpark()
        (tree,) = dialect.parse(("select 1 order by " if isinstance(node, exp.Ordered) else "select ") + text)
        if isinstance(node, exp.Ordered):
            read = tree.args["order"].expressions if tree is not None else []
        else:
            read = tree.expressions if isinstance(tree, exp.Select) else []
    except (SqlglotError, KeyError, ValueError):
        return False
    return len(read) == 1 and read[0] == node


def walk_query(node: exp.Expr) -> Iterator[exp.Expr]:
    """A node and those below it in the same query, leaving out queries inside it."""
    yield node
    for child in node.iter_expressions():
        if not isinstance(child, exp.Query | exp.Subquery):
            yield from walk_query(child)
