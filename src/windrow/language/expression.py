"""Text to expression trees: the grammar is in ``expression.lark``, and every mistake is shown under a caret."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

from windrow.aggregates.registry import definition, is_built_in
from windrow.errors import ExpressionError, nearest
from windrow.expressions.instants import timestamp
from windrow.expressions.nodes import (
    DEEPEST,
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
from windrow.expressions.written import RESERVED
from windrow.language.mistakes import explained, located
from windrow.language.pointing import PointedError, cut
from windrow.language.tables import parser
from windrow.model.types import DataType, data_type

LONGEST = 200_000
"""Characters an expression may have."""

_LONGEST_NUMBER = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class ExpressionSyntaxError(PointedError, ExpressionError):
    """An expression that cannot be read, shown under a caret."""


def parse_expression(text: str, functions: Collection[str] | None = None) -> Node:
    """The tree of an expression such as ``a > 3 and i between 1 and 2``.

    Only ``functions`` may be called; without it, those windrow computes cell by cell.
    """
    if not isinstance(text, str):
        raise ExpressionError("an expression is a text", got=f"a {type(text).__name__}", hint="As in 'a > 3'")
    if _NAME.fullmatch(text) and text.lower() not in RESERVED:
        return Column(text)  # most expressions are names, which need no parser
    from lark.exceptions import UnexpectedInput, VisitError

    if len(text) > LONGEST:
        what = f"an expression may have {LONGEST:,} characters"
        raise ExpressionSyntaxError(what, got=f"{len(text):,}", text=text, position=LONGEST)
    try:
        tree = parser().parse(text, start="start")
        node: Node = plain([_builder(functions).transform(tree)])[0]
        return node
    except UnexpectedInput as error:
        raise explained(error, text, "expression", ExpressionSyntaxError) from None
    except VisitError as error:
        raise located(error, text, ExpressionSyntaxError) from None


class Group:
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
    builder = type("_BoundBuilder", (ExpressionBuilder, Transformer_NonRecursive), {})()
    builder.known = functions
    return builder


def plain(children: list[Any]) -> list[Any]:
    """The children without their parentheses."""
    return [child.node if isinstance(child, Group) else child for child in children]


class ExpressionBuilder:
    """One method per alternative of the grammar; Lark calls them from the leaves up, without recursion."""

    known: Collection[str] = ()

    def either(self, children: list[Any]) -> Node:
        return Or(tuple(plain(children)))

    def both(self, children: list[Any]) -> Node:
        return And(tuple(plain(children)))

    def negation(self, children: list[Any]) -> Node:
        return Not(*plain(children))

    def comparison(self, children: list[Any]) -> Node:
        left, operator, right = plain(children)
        return Comparison({"==": "=", "!=": "<>"}.get(str(operator), str(operator)), left, right)

    def between(self, children: list[Any]) -> Node:
        operand, low, high = plain(children)
        return Between(operand, low, high)

    def not_between(self, children: list[Any]) -> Node:
        operand, low, high = plain(children)
        return Between(operand, low, high, negated=True)

    def in_list(self, children: list[Any]) -> Node:
        return InList(plain(children)[0], children[1])

    def not_in_list(self, children: list[Any]) -> Node:
        return InList(plain(children)[0], children[1], negated=True)

    def is_null(self, children: list[Any]) -> Node:
        return IsNull(plain(children)[0])

    def is_not_null(self, children: list[Any]) -> Node:
        return IsNull(plain(children)[0], negated=True)

    def binary(self, children: list[Any]) -> Node:
        left, operator, right = plain(children)
        return Binary(str(operator), left, right)

    def minus(self, children: list[Any]) -> Node:
        operand = children[1]
        if isinstance(operand, Literal) and type(operand.value) in (int, float) and not operand.is_negative:
            return Literal(-operand.value)  # type: ignore[operator]
        return Unary("-", *plain(children[1:]))

    def plus(self, children: list[Any]) -> Any:
        return children[1]

    def integer(self, children: list[Any]) -> Node:
        return Literal(number(children[0]))

    def hexadecimal(self, children: list[Any]) -> Node:
        return Literal(number(children[0]))

    def decimal(self, children: list[Any]) -> Node:
        return Literal(number(children[0]))

    def text(self, children: list[Any]) -> Node:
        return Literal(unquoted(children[0]))

    def moment(self, children: list[Any]) -> Node:
        token = str(children[0])
        return Literal(timestamp(unquoted(token[token.index("'") :])))

    def true(self, _: list[Any]) -> Node:
        return Literal(True)

    def false(self, _: list[Any]) -> Node:
        return Literal(False)

    def null(self, _: list[Any]) -> Node:
        return Literal(None)

    def name(self, children: list[Any]) -> str:
        return unquoted(children[0]) if children[0].startswith('"') else str(children[0])

    def column(self, children: list[Any]) -> Node:
        return Column(children[0])

    def qualified_column(self, children: list[Any]) -> Node:
        return Column(children[1], qualifier=children[0])

    def items(self, children: list[Any]) -> tuple[Node, ...]:
        return tuple(plain(children))

    def call(self, children: list[Any]) -> Node:
        name, arguments = str(children[0]).lower(), children[1]
        if name not in self.known:
            raise ExpressionError("no such function", got=repr(str(children[0])), hint=nearest(name, self.known))
        return Call(name, arguments or ())

    def count_all(self, children: list[Any]) -> Node:
        name = str(children[0])
        if not (is_built_in(name) and definition(name).bare):
            raise ExpressionError("only count takes *", got=f"{cut(name)}(*)")
        return self.call([children[0], None])

    def over(self, children: list[Any]) -> Node:
        """Queries know aggregates, expressions do not."""
        self.call(children[:2])
        hint = "Only aggregates do, and only in the columns of a select"
        raise ExpressionError("a function has no groups to be computed over", got=cut(children[0]), hint=hint)

    def over_all(self, children: list[Any]) -> Node:
        return self.over([children[0], None])

    def type_name(self, children: list[Any]) -> DataType:
        return data_type(str(children[0]))

    def cast(self, children: list[Any]) -> Node:
        return Cast(plain(children)[0], children[1])

    def branch(self, children: list[Any]) -> tuple[Node, Node]:
        condition, result = plain(children)
        return condition, result

    def case(self, children: list[Any]) -> Node:
        *branches, otherwise = plain(children)
        return Case(tuple(branches), otherwise)

    def simple_case(self, children: list[Any]) -> Node:
        operand, *branches, otherwise = plain(children)
        compared = tuple((Comparison("=", operand, value), result) for value, result in branches)
        return Case(compared, otherwise)

    def group(self, children: list[Any]) -> Group:
        inner = children[0]
        if isinstance(inner, Group):
            return Group(inner.node, inner.level + 1)
        return Group(inner, inner.depth + 1)


def number(token: Any) -> int | float:
    """The value of an INTEGER, HEXADECIMAL or FLOAT of the grammar."""
    if token.type == "FLOAT":
        value = float(token)
        if math.isinf(value):
            raise ExpressionError("a number is too large for float64", got=cut(token))
        return value
    if len(token) > _LONGEST_NUMBER:
        raise ExpressionError("an integer does not fit 64 bits", got=f"one of {len(token)} digits")
    return int(token, 16 if token.type == "HEXADECIMAL" else 10)


def unquoted(token: str) -> str:
    """What stands between quotes."""
    quote = token[0]
    return token[1:-1].replace(quote + quote, quote)
