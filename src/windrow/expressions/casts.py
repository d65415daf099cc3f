"""Values brought to another Arrow type: for computing, for comparing, and where an expression asks for it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExpressionError
from windrow.expressions.instants import timestamp
from windrow.expressions.nodes import Cast, Node
from windrow.expressions.rebuilding import as_said
from windrow.model.arrow import arrow_type

_MICROSECONDS = pa.timestamp("us")
_EVERY_INTEGER = pa.decimal128(20, 0)


def widen(values: pa.Array) -> pa.Array:
    """Values as they are computed with: int64, uint64, float64 without NaN, string, timestamp in microseconds, bool."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    wide = wide_type(values.type)
    if values.type != wide:
        values = values.cast(wide, safe=not pa.types.is_timestamp(wide))
    if pa.types.is_floating(wide):
        strange = pc.is_nan(values)
        if pc.any(strange).as_py():
            values = pc.if_else(strange, pa.scalar(None, wide), values)
    return values


def wide_type(kind: pa.DataType) -> pa.DataType:
    """The type in which values of a type are computed."""
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_uint64(kind):
        return kind
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return pa.int64()
    return _MICROSECONDS if pa.types.is_temporal(kind) else pa.string()


def comparable(columns: list[pa.Array]) -> list[pa.Array]:
    """Arrays of types that go together, as one type that keeps their order and equality."""
    kinds = {column.type for column in columns if not pa.types.is_null(column.type)}
    if len(kinds) > 1:
        common = pa.float64() if pa.float64() in kinds else _EVERY_INTEGER
    else:
        common = next(iter(kinds), pa.bool_())
    return [as_type(column, common) for column in columns]


def as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values as another type; integers are rounded where a float64 cannot hold them, all else must fit."""
    if values.type == kind:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind)
    return values.cast(kind, safe=not pa.types.is_floating(kind))


def fitted(values: pa.Array, kind: pa.DataType, node: Node) -> pa.Array:
    """Values as another type, for the sake of ``node``."""
    try:
        return as_type(values, kind)
    except pa.ArrowInvalid as error:
        raise ExpressionError(f"a value does not fit {kind}", got=as_said(node), hint="Use cast(… as …)") from error


def cast(values: pa.Array, node: Cast) -> pa.Array:
    """What ``cast(… as type)`` gives: fractions are cut off, and what the type cannot hold is an error."""
    target = arrow_type(node.type)
    if pa.types.is_floating(values.type) and node.type.is_integer:
        values = _whole(values, node)
    if pa.types.is_string(values.type) and target == _MICROSECONDS:
        return _instants(values)
    if pa.types.is_string(values.type):
        values = pc.utf8_trim_whitespace(values) if target != pa.string() else values
    try:
        return widen(as_type(values, target))
    except pa.ArrowInvalid as error:
        raise ExpressionError(f"a value cannot be cast to {node.type}", got=as_said(node), hint=str(error)) from error


def _whole(values: pa.Array, node: Cast) -> pa.Array:
    """Floats cut to integers; Arrow itself would wrap those that are too large."""
    unsigned = node.type.name == "uint64"
    low, high = (0.0, 2.0**64) if unsigned else (-(2.0**63), 2.0**63)
    whole = pc.trunc(values)
    fits = pc.and_(pc.greater_equal(whole, low), pc.less(whole, high))
    if not pc.all(fits, min_count=0).as_py():
        wrong = values.filter(pc.invert(fits))[0].as_py()
        raise ExpressionError(f"a value cannot be cast to {node.type}", got=f"{wrong} in {node}")
    return whole.cast(pa.uint64() if unsigned else pa.int64(), safe=False)


def _instants(values: pa.Array) -> pa.Array:
    encoded = values.dictionary_encode()
    instants = [None if text is None else timestamp(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(instants, _MICROSECONDS).take(encoded.indices)
