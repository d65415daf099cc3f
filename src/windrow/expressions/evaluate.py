"""Expressions computed on Arrow columns, with SQL's three-valued logic.

Inside, every whole number is int64 or uint64, every other number float64, and NaN is null, since in arrays it means
missing. Operands of ``case``, ``coalesce``, ``and`` and ``or`` are computed only on the rows that reach them, so that
``case when b <> 0 then a / b end`` never divides by zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import DataError, ExpressionError
from windrow.expressions.arithmetic import calculate, negate
from windrow.expressions.casts import cast, comparable, fitted, wide_type, widen
from windrow.expressions.functions import FUNCTIONS, Kind
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
    Unary,
)
from windrow.expressions.rebuilding import as_said
from windrow.expressions.types import NULL, resolve
from windrow.model.arrow import arrow_type, data_type_from_arrow
from windrow.model.types import TYPES, DataType

Columns = Mapping[str, pa.Array | pa.ChunkedArray]

_COMPARE: dict[str, Callable[..., pa.Array]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_WANTED = {Kind.FLOAT: pa.float64(), Kind.STRING: pa.string(), Kind.DATETIME: pa.timestamp("us")}


def evaluate(node: Node, columns: Columns, rows: int) -> pa.Array:
    """The value of an expression in each of ``rows`` rows, of exactly the type that ``check`` gives it.

    ``columns`` holds at least the columns the expression reads, keyed by name or ``qualifier.name``.
    """
    types = {
        key: data_type_from_arrow(columns[key].type) for column in node.columns() if (key := column.key) in columns
    }
    types |= dict.fromkeys(columns.keys() - types.keys(), TYPES["string"])  # not read; they serve as hints only
    resolved, result = resolve(node, types)
    read = {column.key: _load(column.key, columns, rows) for column in resolved.columns()}
    values = _run(resolved, Frame(read, rows, types))
    return _narrow(values, result)


@dataclass(frozen=True)
class Frame:
    """The rows an expression is computed on, their columns widened."""

    columns: Mapping[str, pa.Array]
    rows: int
    types: Mapping[str, DataType]

    def only(self, mask: pa.Array, node: Node) -> Frame:
        """The rows where ``mask`` is true, with the columns that ``node`` reads."""
        keys = {column.key for column in node.columns()}
        rows = mask.true_count
        if rows == self.rows:
            return self
        return Frame({key: self.columns[key].filter(mask) for key in keys}, rows, self.types)


def _load(key: str, columns: Columns, rows: int) -> pa.Array:
    values = columns[key]
    if len(values) != rows:
        raise DataError(f"column {key!r} must have {rows} rows", got=len(values))
    return widen(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)


def _narrow(values: pa.Array, result: DataType) -> pa.Array:
    if result == NULL:
        return pa.nulls(len(values))
    return values if values.type == arrow_type(result) else values.cast(arrow_type(result))


def _run(node: Node, frame: Frame) -> pa.Array:
    return _RULES[type(node)](node, frame)


def _literal(node: Literal, frame: Frame) -> pa.Array:
    value = node.value
    unsigned = type(value) is int and value >= 2**63
    return pa.repeat(pa.scalar(value, pa.uint64() if unsigned else None), frame.rows)


def _column(node: Column, frame: Frame) -> pa.Array:
    return frame.columns[node.key]


def _label(node: Label, frame: Frame) -> pa.Array:
    cells = frame.columns[node.cell.key]
    return widen(node.coordinate.values(cells.to_numpy()))


def _unary(node: Unary, frame: Frame) -> pa.Array:
    return negate(_run(node.operand, frame), node)


def _binary(node: Binary, frame: Frame) -> pa.Array:
    left, right = _run(node.left, frame), _run(node.right, frame)
    return calculate(node, left, right)


def _comparison(node: Comparison, frame: Frame) -> pa.Array:
    left, right = comparable([_run(node.left, frame), _run(node.right, frame)])
    return _COMPARE[node.operator](left, right)


def _between(node: Between, frame: Frame) -> pa.Array:
    operand, low, high = comparable([_run(part, frame) for part in (node.operand, node.low, node.high)])
    inside = pc.and_kleene(pc.less_equal(low, operand), pc.less_equal(operand, high))
    return pc.invert(inside) if node.negated else inside


def _in_list(node: InList, frame: Frame) -> pa.Array:
    operand = _run(node.operand, frame)
    one = Frame({}, 1, {})
    constants = [_literal(option, one) for option in node.options if isinstance(option, Literal)]
    found = _among(operand, constants) if constants else pa.repeat(False, frame.rows)
    for option in node.options:
        if not isinstance(option, Literal):
            found = pc.or_kleene(found, pc.equal(*comparable([operand, _run(option, frame)])))
    found = pc.if_else(pc.is_valid(operand), found, pa.scalar(None, pa.bool_()))
    return pc.invert(found) if node.negated else found


def _among(operand: pa.Array, constants: list[pa.Array]) -> pa.Array:
    """Whether a value is one of the constants; null if not, and one of them is null."""
    same, *others = comparable([operand, *constants])
    options = pa.concat_arrays(others)
    if pa.types.is_floating(same.type):  # a hash tells -0.0 from 0.0
        same, options = pc.add(same, 0.0), pc.add(options, 0.0)
    found = pc.is_in(same, value_set=options.drop_null())
    return pc.if_else(found, True, pa.scalar(None, pa.bool_())) if options.null_count else found


def _is_null(node: IsNull, frame: Frame) -> pa.Array:
    operand = _run(node.operand, frame)
    return pc.is_valid(operand) if node.negated else pc.is_null(operand)


def _not(node: Not, frame: Frame) -> pa.Array:
    return pc.invert(_condition(node.operand, frame))


def _condition(node: Node, frame: Frame) -> pa.Array:
    return _run(node, frame).cast(pa.bool_())


def _logical(node: And | Or, frame: Frame) -> pa.Array:
    """From left to right; an operand that might fail is computed only where it can still matter."""
    combine, deciding = (pc.and_kleene, False) if isinstance(node, And) else (pc.or_kleene, True)
    result = _condition(node.operands[0], frame)
    for operand in node.operands[1:]:
        if not _may_fail(operand):
            result = combine(result, _condition(operand, frame))
            continue
        open_rows = pc.fill_null(pc.not_equal(result, deciding), True)
        values = _condition(operand, frame.only(open_rows, operand))
        result = combine(result, _spread([(open_rows, values)]))
    return result


def _may_fail(node: Node) -> bool:
    return any(isinstance(part, (Unary, Binary, Call, Cast)) for part in node.walk())


def _case(node: Case, frame: Frame) -> pa.Array:
    waiting = pa.repeat(True, frame.rows)
    parts = []
    for condition, result in node.branches:
        met = pc.fill_null(_condition(condition, frame.only(waiting, condition)), False)
        chosen = _spread([(waiting, met)]).fill_null(False)
        parts.append((chosen, _run(result, frame.only(chosen, result))))
        waiting = pc.and_not(waiting, chosen)
    if node.otherwise is not None:
        parts.append((waiting, _run(node.otherwise, frame.only(waiting, node.otherwise))))
    return _merge(node, parts, frame)


def _coalesce(node: Call, frame: Frame) -> pa.Array:
    waiting = pa.repeat(True, frame.rows)
    parts = []
    for argument in node.arguments:
        values = _run(argument, frame.only(waiting, argument))
        present = pc.is_valid(values)
        chosen = _spread([(waiting, present)]).fill_null(False)
        parts.append((chosen, values.filter(present)))
        waiting = pc.and_not(waiting, chosen)
    return _merge(node, parts, frame)


def _merge(node: Node, parts: list[tuple[pa.Array, pa.Array]], frame: Frame) -> pa.Array:
    """The branches' values, each for its own rows, as one array of the node's type."""
    result = resolve(node, frame.types)[1]
    if result == NULL:
        return pa.nulls(frame.rows)
    wide = wide_type(arrow_type(result))
    return _spread([(mask, fitted(values, wide, node)) for mask, values in parts])


def _spread(parts: list[tuple[pa.Array, pa.Array]]) -> pa.Array:
    """Values put at the rows where their mask is true; rows of no mask are null."""
    rows = len(parts[0][0])
    positions = np.full(rows, -1, np.int64)
    begin = 0
    for mask, values in parts:
        positions[mask.to_numpy(zero_copy_only=False)] = np.arange(begin, begin + len(values))
        begin += len(values)
    indices = pa.array(positions, mask=positions < 0)
    return pa.concat_arrays([values for _, values in parts]).take(indices)


def _call(node: Call, frame: Frame) -> pa.Array:
    if node.function == "coalesce":
        return _coalesce(node, frame)
    function = FUNCTIONS[node.function]
    result = resolve(node, frame.types)[1]
    if function.compute is None or result == NULL:
        return pa.nulls(frame.rows)
    given: list[Any] = []
    for kind, argument in zip(function.kinds(len(node.arguments)), node.arguments, strict=True):
        if kind.is_constant:
            given.append(argument.value if isinstance(argument, Literal) else None)
            continue
        values = _run(argument, frame)
        wanted = wide_type(arrow_type(result)) if kind is Kind.SAME else _WANTED.get(kind, values.type)
        given.append(fitted(values, wanted, node))
    try:
        return widen(function.compute(*given))
    except pa.ArrowInvalid as error:
        raise ExpressionError("a value cannot be computed", got=as_said(node), hint=str(error)) from error


def _cast(node: Cast, frame: Frame) -> pa.Array:
    return cast(_run(node.operand, frame), node)


_RULES: dict[type[Node], Callable[[Any, Frame], pa.Array]] = {
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
    Cast: _cast,
}
