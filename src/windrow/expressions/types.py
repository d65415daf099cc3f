"""What type an expression has, found before any data is touched.

``resolve`` also rewrites the tree into what ``evaluate`` computes: texts compared with datetimes become timestamps, and
functions that are other notations (``mod``, ``if``, ``||``) become what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from windrow.errors import ExpressionError, UnknownNameError, nearest
from windrow.expressions.functions import FUNCTIONS, Function, Kind
from windrow.expressions.instants import timestamp
from windrow.expressions.nodes import (
    And,
    Around,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Cell,
    Column,
    Comparison,
    InList,
    IsNull,
    Label,
    Literal,
    Node,
    Not,
    Or,
    Over,
    Unary,
)
from windrow.model.types import TYPES, DataType

NULL = DataType("null", np.dtype("V"))
"""The type of a bare ``null``, which goes with every other type."""

Types = Mapping[str, DataType]
Typed = tuple[Node, DataType]

_BOOL, _INT64, _UINT64, _FLOAT64 = (TYPES[name] for name in ("bool", "int64", "uint64", "float64"))
_STRING, _DATETIME = TYPES["string"], TYPES["datetime"]


def check(node: Node, types: Types) -> DataType:
    """The type of an expression over columns of these types, keyed by name or ``qualifier.name``."""
    return resolve(node, types)[1]


def check_condition(node: Node, types: Types) -> None:
    """Refuses an expression that is not a condition."""
    _expect_condition(*resolve(node, types), "a condition")


def resolve(node: Node, types: Types) -> Typed:
    """The tree that is evaluated for an expression, and its type."""
    return _RULES[type(node)](node, types)


def _literal(node: Literal, types: Types) -> Typed:
    value = node.value
    if value is None:
        return node, NULL
    if type(value) is int:
        return node, _INT64 if value < 2**63 else _UINT64
    return node, {bool: _BOOL, float: _FLOAT64, str: _STRING}.get(type(value), _DATETIME)


def _column(node: Column, types: Types) -> Typed:
    if node.key not in types:
        raise UnknownNameError("no such column", got=repr(node.key), hint=nearest(node.key, types))
    return node, types[node.key]


def _label(node: Label, types: Types) -> Typed:
    resolve(node.cell, types)
    return node, node.coordinate.type


def _unary(node: Unary, types: Types) -> Typed:
    operand, kind = resolve(node.operand, types)
    _expect_number(operand, kind, node)
    return Unary("-", operand), _FLOAT64 if kind.is_float else NULL if kind == NULL else _INT64


def _binary(node: Binary, types: Types) -> Typed:
    if node.operator == "||":
        return _call(Call("concat", (node.left, node.right)), types)
    (left, left_type), (right, right_type) = resolve(node.left, types), resolve(node.right, types)
    _expect_number(left, left_type, node)
    _expect_number(right, right_type, node)
    return Binary(node.operator, left, right), arithmetic_type(node.operator, (left, left_type), (right, right_type))


def arithmetic_type(operator: str, left: Typed, right: Typed) -> DataType:
    """Whole numbers are computed as int64 (uint64 where no sign can be met), all others as float64."""
    kinds = {left[1], right[1]} - {NULL}
    if operator == "/" or any(kind.is_float for kind in kinds):
        return _FLOAT64
    if not kinds:
        return NULL
    return _UINT64 if _UINT64 in kinds and all(_is_unsigned(*side) for side in (left, right)) else _INT64


def _is_unsigned(node: Node, kind: DataType) -> bool:
    if isinstance(node, Literal):
        return node.value is None or (type(node.value) is int and node.value >= 0)
    return kind == _UINT64


def _comparison(node: Comparison, types: Types) -> Typed:
    left, right = _alike([node.left, node.right], types, node)[0]
    return Comparison(node.operator, left, right), _BOOL


def _between(node: Between, types: Types) -> Typed:
    operand, low, high = _alike([node.operand, node.low, node.high], types, node)[0]
    return Between(operand, low, high, node.negated), _BOOL


def _in_list(node: InList, types: Types) -> Typed:
    operand, *options = _alike([node.operand, *node.options], types, node)[0]
    return InList(operand, tuple(options), node.negated), _BOOL


def _is_null(node: IsNull, types: Types) -> Typed:
    return replace(node, operand=resolve(node.operand, types)[0]), _BOOL


def _logical(node: And | Or, types: Types) -> Typed:
    operands = [resolve(operand, types) for operand in node.operands]
    for operand, kind in operands:
        _expect_condition(operand, kind, f"an operand of {'and' if isinstance(node, And) else 'or'}")
    return type(node)(tuple([operand for operand, _ in operands])), _BOOL


def _not(node: Not, types: Types) -> Typed:
    operand, kind = resolve(node.operand, types)
    _expect_condition(operand, kind, "the operand of not")
    return Not(operand), _BOOL


def _case(node: Case, types: Types) -> Typed:
    conditions = [resolve(condition, types) for condition, _ in node.branches]
    for condition, kind in conditions:
        _expect_condition(condition, kind, "what follows when")
    results = [result for _, result in node.branches] + ([] if node.otherwise is None else [node.otherwise])
    resolved, kind = _alike(results, types, node)
    branches = tuple((condition, result) for (condition, _), result in zip(conditions, resolved, strict=False))
    return Case(branches, None if node.otherwise is None else resolved[-1]), kind


def _cast(node: Cast, types: Types) -> Typed:
    operand, kind = resolve(node.operand, types)
    if {kind.name, node.type.name} >= {"datetime"} and not {kind, node.type} <= {_DATETIME, _STRING, NULL}:
        raise ExpressionError(
            f"{kind} cannot be cast to {node.type}", got=node, hint="Datetimes cast from and to string"
        )
    return Cast(operand, node.type), node.type


def _call(node: Call, types: Types) -> Typed:
    function = FUNCTIONS.get(node.function)
    if function is None:
        raise ExpressionError("no such function", got=repr(node.function), hint=nearest(node.function, FUNCTIONS))
    _expect_count(function, node)
    if function.rewrite is not None:
        return resolve(function.rewrite(*node.arguments), types)
    kinds = function.kinds(len(node.arguments))
    if kinds[0] is Kind.SAME:
        arguments, common = _alike(list(node.arguments), types, node)
        if function.name in ("least", "greatest") and common == _BOOL:
            raise ExpressionError(f"{function.name} needs numbers, texts or datetimes", got=node)
        return Call(node.function, tuple(arguments)), common
    typed = [resolve(argument, types) for argument in node.arguments]
    given = [_argument(kind, argument, node) for kind, argument in zip(kinds, typed, strict=True)]
    arguments = [argument for argument, _ in given]
    return Call(node.function, tuple(arguments)), function.result or _widest(given[0][1])


def _widest(kind: DataType) -> DataType:
    return kind if kind in (NULL, _UINT64) else _FLOAT64 if kind.is_float else _INT64


def _argument(kind: Kind, argument: Typed, call: Call) -> Typed:
    """An argument if it is what the function takes there."""
    node, given = argument
    if kind.is_constant:
        wanted = int if kind is Kind.CONSTANT_INTEGER else str
        if not isinstance(node, Literal) or type(node.value) is not wanted:
            what = "a whole number" if wanted is int else "a 'text'"
            raise ExpressionError(f"{call.function} needs {what} written out there", got=f"{node} in {call}")
        return argument
    if kind is Kind.DATETIME and isinstance(node, Literal) and isinstance(node.value, str):
        return Literal(timestamp(node.value)), _DATETIME
    fits = {Kind.STRING: given == _STRING, Kind.DATETIME: given == _DATETIME}.get(kind, given.is_number)
    if not fits and given != NULL:
        raise ExpressionError(f"{call.function} needs a {kind.word}", got=f"{node} of type {given} in {call}")
    return argument


def _alike(nodes: list[Node], types: Types, whole: Node) -> tuple[list[Node], DataType]:
    """The nodes resolved, texts read as timestamps where another is a datetime, and the type all of them fit."""
    typed = [resolve(node, types) for node in nodes]
    if any(kind == _DATETIME for _, kind in typed):
        typed = [_as_datetime(*one) for one in typed]
    return [node for node, _ in typed], common_type(typed, whole)


def _as_datetime(node: Node, kind: DataType) -> Typed:
    if isinstance(node, Literal) and isinstance(node.value, str):
        return Literal(timestamp(node.value)), _DATETIME
    return node, kind


def common_type(typed: Sequence[Typed], whole: Node) -> DataType:
    """The type that values of all these types fit."""
    kinds = {kind for _, kind in typed} - {NULL}
    if len(kinds) < 2:
        return next(iter(kinds), NULL)
    if not all(kind.is_number for kind in kinds):
        found = " and ".join(sorted(map(str, kinds)))
        hint = "Use cast(… as datetime)" if kinds == {_DATETIME, _STRING} else "Use cast(… as …)"
        raise ExpressionError(f"{found} do not go together", got=whole, hint=hint)
    if any(kind.is_float for kind in kinds):
        return _FLOAT64
    return _UINT64 if _UINT64 in kinds and all(_is_unsigned(*one) for one in typed) else _INT64


def _expect_number(node: Node, kind: DataType, whole: Node) -> None:
    if not kind.is_number and kind != NULL:
        raise ExpressionError(
            "arithmetic needs numbers", got=f"{node} of type {kind} in {whole}", hint="Use cast(… as …)"
        )


def _expect_condition(node: Node, kind: DataType, what: str) -> None:
    if kind not in (_BOOL, NULL):
        raise ExpressionError(f"{what} must be true or false", got=f"{node} of type {kind}", hint="Compare it: a <> 0")


def _expect_count(function: Function, node: Call) -> None:
    given = len(node.arguments)
    if given < function.fewest or (function.most is not None and given > function.most):
        raise ExpressionError(
            f"{function.name} takes {function.count_text}", got=f"{given} in {node}", hint=function.usage
        )


def _over(node: Over, _: Types) -> Typed:
    """Binding puts a column in its place where a query may have it; what is left stands elsewhere."""
    hint = "Compute it in a query in parentheses after from"
    raise ExpressionError("an aggregate over groups can only be selected, from cells", got=node, hint=hint)


_RULES: dict[type[Node], Callable[[Any, Types], Typed]] = {
    Literal: _literal,
    Column: _column,
    Cell: _column,
    Label: _label,
    Unary: _unary,
    Binary: _binary,
    Comparison: _comparison,
    And: _logical,
    Or: _logical,
    Around: _logical,
    Not: _not,
    Between: _between,
    InList: _in_list,
    IsNull: _is_null,
    Case: _case,
    Call: _call,
    Over: _over,
    Cast: _cast,
}
