"""Text to expression trees: the grammar is in ``expression.lark``, and every mistake is shown under a caret."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from windrow.errors import Error, ExpressionError, nearest
from windrow.expressions.instants import timestamp
from windrow.expressions.nodes import (
    DEEPEST,
    RESERVED,
    And,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    InList,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Unary,
)
from windrow.model.types import DataType, data_type

if TYPE_CHECKING:
    from lark import Lark

LONGEST = 200_000
"""Characters an expression may have."""

_SHOWN = 100
_LONGEST_NUMBER = 100
_VALUE = "a value (a name, a number, a 'text', a function or parentheses)"
_OPERATORS = frozenset({"PLUS", "MINUS", "CONCAT", "MULTIPLY", "COMPARE", "_AND", "_OR", "_BETWEEN", "_IN", "_IS"})
_WORDS = {"_OPEN": "'('", "_CLOSE": "')'", "_COMMA": "','", "_DOT": "'.'", "NAME": "a name", "$END": "the end"}


class ExpressionSyntaxError(ExpressionError):
    """Text that cannot be read: the reason, the line with a caret under ``position``, and what would be right."""

    def __init__(
        self, what: str, *, got: object = None, hint: str | None = None, text: str = "", position: int = 0
    ) -> None:
        super().__init__(what, got=got, hint=hint)
        self.text = text
        self.position = position

    def __str__(self) -> str:
        reason = self.what if self.got is None else f"{self.what}, got {self.got}"
        shown = f"{reason}\n{caret(self.text, self.position)}"
        return shown if self.hint is None else f"{shown}\n{self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.what, self.got, self.hint, self.text, self.position)


def _rebuild(what: str, got: str | None, hint: str | None, text: str, position: int) -> ExpressionSyntaxError:
    return ExpressionSyntaxError(what, got=got, hint=hint, text=text, position=position)


def parse_expression(text: str, functions: Collection[str] | None = None) -> Node:
    """The tree of an expression such as ``a > 3 and i between 1 and 2``.

    Only ``functions`` may be called; without it, those windrow computes cell by cell.
    """
    from lark.exceptions import UnexpectedInput, VisitError

    if not isinstance(text, str):
        raise ExpressionError("an expression is a text", got=f"a {type(text).__name__}", hint="As in 'a > 3'")
    if len(text) > LONGEST:
        what = f"an expression may have {LONGEST:,} characters"
        raise ExpressionSyntaxError(what, got=f"{len(text):,}", text=text, position=LONGEST)
    try:
        tree = _parser().parse(text)
        built = _builder(functions).transform(tree)
        return built.node if isinstance(built, _Group) else built
    except UnexpectedInput as error:
        raise _explained(error, text) from None
    except VisitError as error:
        raise _located(error, text) from None


def caret(text: str, position: int) -> str:
    """The line of ``text`` around ``position``, and a line with a caret below that place."""
    position = min(max(position, 0), len(text))
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    first, last = max(begin, position - _SHOWN // 2), min(end, position + _SHOWN // 2)
    before = ("…" if first > begin else "") + _printable(text[first:position])
    after = _printable(text[position:last]) + ("…" if last < end else "")
    return f"  {before}{after}\n  {' ' * sum(map(_width, before))}^"


def _printable(text: str) -> str:
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "\ufffd" for character in text
    )


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _explained(error: Any, text: str) -> ExpressionSyntaxError:
    """What Lark did not expect, in words."""
    from lark.exceptions import UnexpectedToken

    position = error.pos_in_stream
    if not isinstance(error, UnexpectedToken):
        character = text[position]
        if character in "'\"":
            ending = f"End it with {character}; a quote inside is written twice"
            return ExpressionSyntaxError("a quote is never closed", hint=ending, text=text, position=position)
        what, expected, got = "a character that has no meaning here", error.allowed or set(), _visible(character)
        return ExpressionSyntaxError(what, got=got, hint=f"Expected {_words(expected)}", text=text, position=position)
    token = error.token
    accepted = error.accepts or error.expected
    if token.type == "$END":
        what = f"the expression ends where {_words(accepted)} is expected"
        return ExpressionSyntaxError(what, text=text, position=len(text.rstrip()))
    got = f"{_cut(str(token))!r}"
    hint: str | None = None
    if token.type == "NAME":
        close = nearest(str(token).lower(), RESERVED)
        hint = close if close.startswith("Did you mean") else None
    elif str(token).lower() in RESERVED and "NAME" in accepted:
        hint = f'{str(token)!r} is a keyword; a column of that name is written "{token}"'
    return ExpressionSyntaxError(f"expected {_words(accepted)}", got=got, hint=hint, text=text, position=position)


def _words(terminals: Collection[str]) -> str:
    names = set(terminals)
    parts = []
    if "INTEGER" in names:
        parts.append(_VALUE)
        names = {"_CLOSE"} & names
    elif names >= {"PLUS", "MULTIPLY"}:
        parts.append("an operator")
        names -= _OPERATORS | {"_NOT", "_OPEN", "_DOT"}
    parts += sorted(_WORDS.get(name, name.strip("_").lower()) for name in names)
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1] if parts else "nothing"


def _visible(character: str) -> str:
    """A character as it is, with its number if it cannot be seen."""
    return repr(character) if character.isprintable() else f"U+{ord(character):04X}"


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _located(error: Any, text: str) -> Exception:
    """A mistake found while building the tree, at its place in the text."""
    mistake = error.orig_exc
    if not isinstance(mistake, Error):
        return mistake  # type: ignore[no-any-return]
    position = getattr(getattr(error.obj, "meta", None), "start_pos", 0)
    return ExpressionSyntaxError(mistake.what, got=mistake.got, hint=mistake.hint, text=text, position=position)


@cache
def _parser() -> Lark:
    from lark import Lark

    grammar = files("windrow.language").joinpath("expression.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)


class _Group:
    """What stands in parentheses; ``-(1)`` is not the literal ``-1``, and parentheses count as nesting."""

    def __init__(self, node: Node, level: int) -> None:
        self.node = node
        self.level = level
        if level > DEEPEST:
            raise ExpressionError(
                f"an expression is nested more than {DEEPEST} levels deep", hint="Compute it in steps"
            )


def _builder(functions: Collection[str] | None) -> Any:
    from lark.visitors import Transformer_NonRecursive

    if functions is None:
        from windrow.expressions.functions import FUNCTIONS

        functions = FUNCTIONS.keys()
    builder = type("_BoundBuilder", (_Builder, Transformer_NonRecursive), {})()
    builder.known = functions
    return builder


def _nodes(children: list[Any]) -> list[Node]:
    return [child.node if isinstance(child, _Group) else child for child in children]


class _Builder:
    """One method per alternative of the grammar; Lark calls them from the leaves up, without recursion."""

    known: Collection[str] = ()

    def either(self, children: list[Any]) -> Node:
        return Or(tuple(_nodes(children)))

    def both(self, children: list[Any]) -> Node:
        return And(tuple(_nodes(children)))

    def negation(self, children: list[Any]) -> Node:
        return Not(*_nodes(children))

    def comparison(self, children: list[Any]) -> Node:
        left, operator, right = _nodes(children)
        return Comparison({"==": "=", "!=": "<>"}.get(str(operator), str(operator)), left, right)

    def between(self, children: list[Any]) -> Node:
        operand, low, high = _nodes(children)
        return Between(operand, low, high)

    def not_between(self, children: list[Any]) -> Node:
        operand, low, high = _nodes(children)
        return Between(operand, low, high, negated=True)

    def in_list(self, children: list[Any]) -> Node:
        return InList(_nodes(children)[0], children[1])

    def not_in_list(self, children: list[Any]) -> Node:
        return InList(_nodes(children)[0], children[1], negated=True)

    def is_null(self, children: list[Any]) -> Node:
        return IsNull(_nodes(children)[0])

    def is_not_null(self, children: list[Any]) -> Node:
        return IsNull(_nodes(children)[0], negated=True)

    def binary(self, children: list[Any]) -> Node:
        left, operator, right = _nodes(children)
        return Binary(str(operator), left, right)

    def minus(self, children: list[Any]) -> Node:
        operand = children[1]
        if isinstance(operand, Literal) and type(operand.value) in (int, float) and not operand.is_negative:
            return Literal(-operand.value)  # type: ignore[operator]
        return Unary("-", *_nodes(children[1:]))

    def plus(self, children: list[Any]) -> Any:
        return children[1]

    def integer(self, children: list[Any]) -> Node:
        if len(children[0]) > _LONGEST_NUMBER:
            raise ExpressionError("an integer does not fit 64 bits", got=f"one of {len(children[0])} digits")
        return Literal(int(children[0]))

    def hexadecimal(self, children: list[Any]) -> Node:
        return Literal(int(children[0], 16))

    def decimal(self, children: list[Any]) -> Node:
        value = float(children[0])
        if math.isinf(value):
            raise ExpressionError("a number is too large for float64", got=_cut(children[0]))
        return Literal(value)

    def text(self, children: list[Any]) -> Node:
        return Literal(_unquoted(children[0]))

    def moment(self, children: list[Any]) -> Node:
        token = str(children[0])
        return Literal(timestamp(_unquoted(token[token.index("'") :])))

    def true(self, _: list[Any]) -> Node:
        return Literal(True)

    def false(self, _: list[Any]) -> Node:
        return Literal(False)

    def null(self, _: list[Any]) -> Node:
        return Literal(None)

    def name(self, children: list[Any]) -> str:
        return _unquoted(children[0]) if children[0].startswith('"') else str(children[0])

    def column(self, children: list[Any]) -> Node:
        return Column(children[0])

    def qualified_column(self, children: list[Any]) -> Node:
        return Column(children[1], qualifier=children[0])

    def items(self, children: list[Any]) -> tuple[Node, ...]:
        return tuple(_nodes(children))

    def call(self, children: list[Any]) -> Node:
        name, arguments = str(children[0]).lower(), children[1]
        if name not in self.known:
            raise ExpressionError("no such function", got=repr(str(children[0])), hint=nearest(name, self.known))
        return Call(name, arguments or ())

    def type_name(self, children: list[Any]) -> DataType:
        return data_type(str(children[0]))

    def cast(self, children: list[Any]) -> Node:
        return Cast(_nodes(children)[0], children[1])

    def branch(self, children: list[Any]) -> tuple[Node, Node]:
        condition, result = _nodes(children)
        return condition, result

    def case(self, children: list[Any]) -> Node:
        *branches, otherwise = _nodes(children)
        return Case(tuple(branches), otherwise)  # type: ignore[arg-type]

    def simple_case(self, children: list[Any]) -> Node:
        operand, *branches, otherwise = _nodes(children)
        compared = tuple((Comparison("=", operand, value), result) for value, result in branches)  # type: ignore
        return Case(compared, otherwise)

    def group(self, children: list[Any]) -> _Group:
        inner = children[0]
        if isinstance(inner, _Group):
            return _Group(inner.node, inner.level + 1)
        return _Group(inner, inner.depth + 1)


def _unquoted(token: str) -> str:
    quote = token[0]
    return token[1:-1].replace(quote + quote, quote)
