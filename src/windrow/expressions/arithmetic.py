"""Arithmetic that never gives a wrong number: integer overflow and division by zero are errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExpressionError
from windrow.expressions.casts import fitted, widen
from windrow.expressions.nodes import Binary, Comparison, Literal, Node, Unary
from windrow.expressions.rebuilding import as_said
from windrow.expressions.types import NULL, arithmetic_type
from windrow.model.arrow import arrow_type, data_type_from_arrow
from windrow.model.types import DataType

_INTEGER: dict[str, Callable[..., pa.Array]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_FLOAT: dict[str, Callable[..., pa.Array]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide}
_WHOLE: dict[str, Callable[..., npt.NDArray[Any]]] = {"//": np.floor_divide, "%": np.mod}


def negate(values: pa.Array, node: Unary) -> pa.Array:
    """The values with their signs changed."""
    if pa.types.is_null(values.type) or pa.types.is_floating(values.type):
        return values if pa.types.is_null(values.type) else pc.negate(values)
    return _compute(pc.negate_checked, node, fitted(values, pa.int64(), node))


def calculate(node: Binary, left: pa.Array, right: pa.Array) -> pa.Array:
    """One operation on each row; null where a side is null, or where a float has no value (inf - inf)."""
    kind = arithmetic_type(node.operator, (node.left, _kind(left)), (node.right, _kind(right)))
    if kind == NULL:
        return left
    left, right = fitted(left, arrow_type(kind), node), fitted(right, arrow_type(kind), node)
    if node.operator in ("/", "//", "%"):
        _refuse_zero(node, left, right)
    if node.operator in _WHOLE:
        return _divide(node, left, right)
    if kind.is_float:
        return widen(_FLOAT[node.operator](left, right))
    return _compute(_INTEGER[node.operator], node, left, right)


def _kind(values: pa.Array) -> DataType:
    return NULL if pa.types.is_null(values.type) else data_type_from_arrow(values.type)


def _compute(compute: Callable[..., pa.Array], node: Node, *values: pa.Array) -> pa.Array:
    try:
        return compute(*values)
    except pa.ArrowInvalid as error:
        raise _overflow(node) from error


def _overflow(node: Node) -> ExpressionError:
    hint = "The numbers are too large for 64 bits; compute with cast(… as float64)"
    return ExpressionError("integer overflow", got=as_said(node), hint=hint)


def _refuse_zero(node: Binary, left: pa.Array, right: pa.Array) -> None:
    zero = pc.and_(pc.equal(right, pa.scalar(0, right.type)), pc.is_valid(left))
    if pc.any(zero, min_count=0).as_py():
        divisor = as_said(Comparison("<>", node.right, Literal(0)))
        hint = None if isinstance(node.right, Literal) else f"Leave those cells out: case when {divisor} then … end"
        raise ExpressionError("division by zero", got=as_said(node), hint=hint)


def _divide(node: Binary, left: pa.Array, right: pa.Array) -> pa.Array:
    """Rounded down, and the remainder with the sign of the divisor, as in Python."""
    missing = pc.or_(pc.is_null(left), pc.is_null(right)).to_numpy(zero_copy_only=False)
    one = pa.scalar(1, left.type)
    above, below = (side.fill_null(one).to_numpy(zero_copy_only=False) for side in (left, right))
    below = np.where(missing, one.as_py(), below).astype(below.dtype)
    if node.operator == "//" and above.dtype == np.int64:
        if np.any((above == np.iinfo(np.int64).min) & (below == -1) & ~missing):
            raise _overflow(node)
        above = np.where(missing, 1, above)
    with np.errstate(all="ignore"):
        return widen(pa.array(_WHOLE[node.operator](above, below), type=left.type, mask=missing))
