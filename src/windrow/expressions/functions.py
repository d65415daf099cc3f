"""The functions of expressions, as one table: what they take, what they give, and how Arrow computes them.

Arguments come as int64, uint64 or float64, string, or timestamps in microseconds, with null for missing; constants
come as Python values. NaN in a result is taken as missing by ``evaluate``, not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import ExpressionError, nearest
from windrow.expressions.nodes import Binary, Case, Node
from windrow.model.types import TYPES, DataType


class Kind(Enum):
    """What a function takes in one place."""

    FLOAT = "a number, computed as float64"
    NUMBER = "a number"
    STRING = "a string"
    DATETIME = "a datetime"
    SAME = "any value, of one type with the others"
    CONSTANT_INTEGER = "a whole number written out"
    CONSTANT_STRING = "a 'text' written out"

    @property
    def is_constant(self) -> bool:
        return self in (Kind.CONSTANT_INTEGER, Kind.CONSTANT_STRING)

    @property
    def word(self) -> str:
        return {Kind.STRING: "string", Kind.DATETIME: "datetime"}.get(self, "number")


@dataclass(frozen=True)
class Function:
    """A function: ``takes`` names its arguments' kinds, the last one repeated if ``most`` is None.

    ``result`` is None where the result has the type of the first argument (widened) or of all of them.
    ``rewrite`` is given instead of ``compute`` where the function is another notation for a node.
    """

    usage: str
    takes: tuple[Kind, ...]
    result: DataType | None
    compute: Callable[..., pa.Array] | None = None
    rewrite: Callable[..., Node] | None = None
    fewest: int = 1
    most: int | None = 1

    @property
    def name(self) -> str:
        return self.usage.split("(")[0]

    @property
    def count_text(self) -> str:
        """How many arguments it takes, in words."""
        if self.most is None:
            return f"at least {self.fewest} arguments"
        numbers = " or ".join(str(count) for count in range(self.fewest, self.most + 1))
        return f"{numbers} argument{'' if numbers == '1' else 's'}"

    def kinds(self, count: int) -> tuple[Kind, ...]:
        """The kind of each of ``count`` arguments."""
        return self.takes[:count] + self.takes[-1:] * (count - len(self.takes))


_INT64, _FLOAT64, _BOOL, _STRING, _DATETIME = (
    TYPES[name] for name in ("int64", "float64", "bool", "string", "datetime")
)
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
SEASONS = ("DJF", "MAM", "JJA", "SON")
"""The meteorological seasons, three whole months each, in the order of a year that begins with December."""

_MOST_DIGITS = 18
_LONGEST_SUBSTRING = 2**31 - 1


def _round(values: pa.Array, digits: int = 0) -> pa.Array:
    """Halves go away from zero, as in SQL."""
    if abs(digits) > _MOST_DIGITS:
        raise ExpressionError(f"round takes -{_MOST_DIGITS} to {_MOST_DIGITS} digits", got=digits)
    return pc.round(values, ndigits=digits, round_mode="half_towards_infinity")


def _sign(values: pa.Array) -> pa.Array:
    return pc.sign(values).cast(pa.float64() if pa.types.is_floating(values.type) else values.type)


def _absolute(values: pa.Array) -> pa.Array:
    return values if pa.types.is_uint64(values.type) else pc.abs_checked(values)


def _whole(compute: Callable[[pa.Array], pa.Array], values: pa.Array) -> pa.Array:
    """Integers are whole already, and large ones would not survive as floats."""
    return compute(values) if pa.types.is_floating(values.type) else values


def _scale(factor: float, values: pa.Array) -> pa.Array:
    return pc.multiply(values, factor)


def _null_if(values: pa.Array, others: pa.Array) -> pa.Array:
    same = pc.fill_null(pc.equal(values, others), False)
    return pc.if_else(same, pa.scalar(None, values.type), values)


def _substring(values: pa.Array, start: int, length: int = _LONGEST_SUBSTRING) -> pa.Array:
    """Characters are counted from 1."""
    if start < 1 or length < 0 or max(start, length) > _LONGEST_SUBSTRING:
        raise ExpressionError("substr takes a start from 1 and a length from 0", got=f"{start}, {length}")
    return pc.utf8_slice_codeunits(values, start=start - 1, stop=min(start - 1 + length, _LONGEST_SUBSTRING))


def _concat(*values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*values, "", null_handling="emit_null")


def _truncate(unit: str, values: pa.Array) -> pa.Array:
    if unit.lower() not in _UNITS:
        raise ExpressionError("date_trunc knows no such unit", got=repr(unit), hint=nearest(unit, _UNITS))
    return pc.floor_temporal(values, unit=unit.lower())


def _is_missing(values: pa.Array) -> pa.Array:
    """NaN is how a float is missing, so that by here it is null."""
    return pc.is_null(values)


def _is_finite(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.is_finite(values), False)


def _season(values: pa.Array) -> pa.Array:
    """December belongs to the winter of the year after it."""
    places = pc.divide(pc.month(values), 3)
    return pa.array(SEASONS).take(pc.if_else(pc.equal(places, 4), 0, places))


def _part(compute: Callable[[pa.Array], pa.Array], values: pa.Array) -> pa.Array:
    return compute(values).cast(pa.int64())


def _real(name: str, compute: Callable[..., pa.Array], usage: str = "x") -> Function:
    """A function of real numbers."""
    count = usage.count(",") + 1
    return Function(f"{name}({usage})", (Kind.FLOAT,) * count, _FLOAT64, compute, fewest=count, most=count)


def _text(usage: str, result: DataType, compute: Callable[..., pa.Array], *constants: Kind) -> Function:
    """A function of a string and constants."""
    count = 1 + len(constants)
    return Function(usage, (Kind.STRING, *constants), result, compute, fewest=count, most=count)


def _if(condition: Node, result: Node, otherwise: Node) -> Node:
    return Case(((condition, result),), otherwise)


def _of_dimension(function: str, argument: Node) -> Node:
    """Binding puts what they mean in the place of ``cell(d)`` and ``label(d)``; what is left has another argument."""
    raise ExpressionError(f"{function} takes the name of a dimension", got=argument, hint=f"As in {function}(time)")


def _distance(*_: Node) -> Node:
    """Binding puts a column in its place where there are pairs; what is left stands elsewhere."""
    hint = "As in with shape L2(5) where distance() > 1"
    raise ExpressionError("only the cells of a pair have a distance: in joins and neighbours", hint=hint)


_CONSTANT = Kind.CONSTANT_STRING
_NUMBERS = (Kind.NUMBER,)
_ALL = [
    Function("abs(x)", _NUMBERS, None, _absolute),
    Function("sign(x)", _NUMBERS, None, _sign),
    Function("floor(x)", _NUMBERS, None, partial(_whole, pc.floor)),
    Function("ceil(x)", _NUMBERS, None, partial(_whole, pc.ceil)),
    Function("trunc(x)", _NUMBERS, None, partial(_whole, pc.trunc)),
    Function("round(x[, digits])", (Kind.NUMBER, Kind.CONSTANT_INTEGER), None, _round, most=2),
    Function("mod(x, y)", _NUMBERS, None, rewrite=partial(Binary, "%"), fewest=2, most=2),
    _real("sqrt", pc.sqrt),
    _real("exp", pc.exp),
    _real("ln", pc.ln),
    _real("log10", pc.log10),
    _real("log2", pc.log2),
    _real("power", pc.power, "x, y"),
    *(_real(name, getattr(pc, name)) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")),
    _real("atan2", pc.atan2, "y, x"),
    _real("degrees", partial(_scale, 180 / math.pi)),
    _real("radians", partial(_scale, math.pi / 180)),
    Function("isnan(x)", (Kind.FLOAT,), _BOOL, _is_missing),
    Function("isfinite(x)", (Kind.FLOAT,), _BOOL, _is_finite),
    Function("least(x, y, …)", (Kind.SAME,), None, pc.min_element_wise, fewest=1, most=None),
    Function("greatest(x, y, …)", (Kind.SAME,), None, pc.max_element_wise, fewest=1, most=None),
    Function("coalesce(x, y, …)", (Kind.SAME,), None, pc.coalesce, fewest=1, most=None),
    Function("nullif(x, y)", (Kind.SAME,), None, _null_if, fewest=2, most=2),
    Function("if(condition, x, y)", (Kind.SAME,), None, rewrite=_if, fewest=3, most=3),
    _text("lower(s)", _STRING, pc.utf8_lower),
    _text("upper(s)", _STRING, pc.utf8_upper),
    _text("trim(s)", _STRING, pc.utf8_trim_whitespace),
    _text("ltrim(s)", _STRING, pc.utf8_ltrim_whitespace),
    _text("rtrim(s)", _STRING, pc.utf8_rtrim_whitespace),
    _text("length(s)", _INT64, partial(_part, pc.utf8_length)),
    _text("starts_with(s, 'text')", _BOOL, lambda values, text: pc.starts_with(values, pattern=text), _CONSTANT),
    _text("ends_with(s, 'text')", _BOOL, lambda values, text: pc.ends_with(values, pattern=text), _CONSTANT),
    _text("contains(s, 'text')", _BOOL, lambda values, text: pc.match_substring(values, pattern=text), _CONSTANT),
    _text(
        "replace(s, 'text', 'by')",
        _STRING,
        lambda values, text, by: pc.replace_substring(values, pattern=text, replacement=by) if text else values,
        _CONSTANT,
        _CONSTANT,
    ),
    Function(
        "substr(s, start[, length])",
        (Kind.STRING, Kind.CONSTANT_INTEGER, Kind.CONSTANT_INTEGER),
        _STRING,
        _substring,
        fewest=2,
        most=3,
    ),
    Function("concat(s, t, …)", (Kind.STRING,), _STRING, _concat, most=None),
    *(
        Function(f"{name}(t)", (Kind.DATETIME,), _INT64, partial(_part, kernel))
        for name, kernel in (
            ("year", pc.year),
            ("month", pc.month),
            ("day", pc.day),
            ("hour", pc.hour),
            ("minute", pc.minute),
            ("second", pc.second),
            ("dayofyear", pc.day_of_year),
            ("weekday", pc.day_of_week),
            ("dayofweek", partial(pc.day_of_week, count_from_zero=False)),
            ("week", pc.iso_week),
            ("quarter", pc.quarter),
        )
    ),
    Function("season(t)", (Kind.DATETIME,), _STRING, _season),
    Function("cell(d)", (Kind.SAME,), None, rewrite=partial(_of_dimension, "cell")),
    Function("label(d)", (Kind.SAME,), None, rewrite=partial(_of_dimension, "label")),
    Function("distance(['unit'])", (_CONSTANT,), _FLOAT64, rewrite=_distance, fewest=0),
    Function("date_trunc('unit', t)", (_CONSTANT, Kind.DATETIME), _DATETIME, _truncate, fewest=2, most=2),
]

FUNCTIONS: dict[str, Function] = {function.name: function for function in _ALL}
"""Every function by its name, in lower case."""
