"""OVER clauses: what each asks for, and whether windrow or Spark does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.definition import Definition
from windrow.aggregates.positions import NAMES as POSITIONS
from windrow.aggregates.positions import PICKS, PLACES, SHIFTS, Position
from windrow.aggregates.registry import DEFINITIONS, definition, is_built_in
from windrow.aggregates.user import user_aggregate
from windrow.errors import DataError, Error, UnknownNameError
from windrow.model.frame import Frame
from windrow.sql.frame_clauses import check_frame, has_varying_bounds, read_frame
from windrow.sql.reading import Reading

PREFIX = "windrow_"
"""Before the name of an aggregate: windrow's own meaning, done by windrow."""

_SPARK = {name: found.name for found in DEFINITIONS.values() for name in found.spark}
"""What Spark does well in the frames that it has, and windrow in all."""

_WITHIN = {found.within: found.name for found in DEFINITIONS.values() if found.within is not None}
"""Order statistics as SQL writes them: percentile_cont(0.5) within group (order by x)."""

KNOWN = sorted({*_SPARK, *_WITHIN, *(name for name, found in DEFINITIONS.items() if not found.differs_in_spark)})
"""The functions that windrow can do over frames."""


@dataclass(frozen=True)
class Order:
    """One column of an ORDER BY, its NULLs where Spark puts them unless told otherwise."""

    node: exp.Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, eq=False)
class WindowCall:
    """An aggregate over a frame that windrow does: the expressions in it are nodes of the query."""

    node: exp.Window
    aggregate: Aggregate
    arguments: tuple[exp.Expr, ...]  # none for count(*), several for a distinct count of them together
    fraction: exp.Expr | None  # of a quantile whose fraction is computed for each row
    condition: exp.Expr | None
    partition: tuple[exp.Expr, ...]
    order: tuple[Order, ...]
    frame: Frame[Any]
    position: Position | None = None  # a function of the row's place, in the place of the aggregate
    optional: bool = False  # whether Spark can do it too, in one task


@dataclass(frozen=True)
class Function:
    """A call taken out of its wrapping: FILTER, WITHIN GROUP, IGNORE NULLS."""

    node: exp.Expr
    condition: exp.Expr | None = None
    within: exp.Expr | None = None
    respects_nulls: bool = False

    @property
    def name(self) -> str:
        return str(self.node.name).lower() if isinstance(self.node, exp.Anonymous) else ""


def read_window(
    reading: Reading, window: exp.Window, named: Mapping[str, exp.Window], *, everything: bool = False
) -> WindowCall | None:
    """What a window asks of windrow; None if Spark does it. With ``everything`` windrow does all that it can."""
    function = unwrap_call(window.this)
    over = _read_specification(reading, window, named)
    name, forced = function.name.removeprefix(PREFIX), function.name.startswith(PREFIX)
    if name in POSITIONS and not everything and (name in PICKS or not over.beyond_spark):
        position = _read_position(reading, window, function, over, forced)
        if position is not None or not over.beyond_spark:
            return position
    owner = _aggregate_kind(name, forced)
    # Spark moves all rows to one task where there is no PARTITION BY.
    alone = owner == "spark" and not over.partition and not everything
    if owner is None or (owner == "spark" and not (everything or forced or alone or _needs_windrow(function, over))):
        if over.beyond_spark:
            what = f"{function.name or 'this function'} cannot be computed over such a frame"
            hint = (
                "GROUPS, EXCLUDE, bounds that vary and empty frames are for windrow's aggregates: "
                f"{', '.join((*KNOWN, *PICKS))}"
            )
            raise reading.error(what, window, hint=hint)
        return None
    asked = read_aggregate(reading, window, function, name, forced)
    if asked is None:
        if forced or (over.beyond_spark and not alone):
            raise reading.error(f"this form of {name} cannot be computed over such a frame", window)
        return None
    if function.respects_nulls:
        raise reading.error(f"{name} passes NULLs over", window, got="respect nulls")
    check_frame(reading, window, over.frame, len(over.order))
    aggregate, arguments, *fraction = asked
    return WindowCall(
        window, aggregate, arguments, fraction[0] if fraction else None, function.condition, over.partition,
        over.order, over.frame, optional=alone and not forced and not _needs_windrow(function, over),
    )  # fmt: skip


def _read_position(
    reading: Reading, window: exp.Window, function: Function, over: _Specification, forced: bool
) -> WindowCall | None:
    """A function of a row's place; Spark keeps those over partitions, and forms that only it knows."""
    name, arguments = function.name.removeprefix(PREFIX), tuple(function.node.expressions)
    plain = isinstance(window.this, exp.Anonymous) and function.condition is None
    if (over.partition and not forced and not over.beyond_spark) or not over.order or not plain:
        return None
    numbered = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}.get(name)
    number = 1
    if numbered is not None and len(arguments) > numbered:
        given = _read_number(arguments[numbered])
        if given is None or given != int(given):
            return None
        number = int(given)
    values = arguments[:1] if name not in PLACES else ()
    defaults = arguments[2:3] if name in SHIFTS else ()
    try:
        position = Position(name, number=number)
    except Error:
        return None
    check_frame(reading, window, over.frame, len(over.order))
    return WindowCall(
        window, Aggregate("count", None), (*values, *defaults), None, None, over.partition, over.order, over.frame,
        position, optional=not forced and not over.beyond_spark,
    )  # fmt: skip


def unwrap_call(node: Any) -> Function:
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        inner = unwrap_call(node.this)
        return Function(inner.node, inner.condition, inner.within, isinstance(node, exp.RespectNulls))
    if isinstance(node, exp.Filter):
        inner = unwrap_call(node.this)
        return Function(inner.node, node.expression.this, inner.within)
    if isinstance(node, exp.WithinGroup):
        return Function(node.this, within=node.expression)
    return Function(node)


def _aggregate_kind(name: str, forced: bool) -> str | None:
    if name in _SPARK:
        return "spark"
    if is_built_in(name):
        return None if definition(name).differs_in_spark and not forced else "windrow"
    if name in _WITHIN:
        return "windrow"
    try:
        user_aggregate(name)
    except UnknownNameError:
        return None
    return "windrow"


_SAME_IN_GROUPS = {
    *(found.within for found in DEFINITIONS.values() if found.within is not None and found.interpolates),
    *(name for name, found in DEFINITIONS.items() if found.fraction is not None or found.instead_in_spark is not None),
}
"""What Spark computes in groups as windrow does over frames."""


def grouped_kind(function: Function) -> tuple[str, bool] | None:
    """The name of an aggregate that windrow computes in groups, and whether it was asked for by prefix; else None."""
    name, forced = function.name.removeprefix(PREFIX), function.name.startswith(PREFIX)
    if not name or (not forced and _is_sparks_in_groups(name)):
        return None
    return (name, forced) if _aggregate_kind(name, forced) is not None else None


def _is_sparks_in_groups(name: str) -> bool:
    return name in _SPARK or name in _SAME_IN_GROUPS


def is_own_name(name: str) -> bool:
    """Whether a word may be a function of windrow's that Spark lacks or means otherwise."""
    return grouped_kind(Function(exp.Anonymous(this=name))) is not None


def _needs_windrow(function: Function, over: _Specification) -> bool:
    distinct = any(isinstance(argument, exp.Distinct) for argument in function.node.expressions)
    return over.beyond_spark or distinct


@dataclass(frozen=True)
class _Specification:
    """What stands behind OVER; ``beyond_spark`` says that Spark has no such frames."""

    frame: Frame[Any]
    partition: tuple[exp.Expr, ...]
    order: tuple[Order, ...]
    beyond_spark: bool


def _read_specification(reading: Reading, window: exp.Window, named: Mapping[str, exp.Window]) -> _Specification:
    """Frame, partition and order, with those of the window that is named."""
    partition, order, spec = window.args.get("partition_by") or [], window.args.get("order"), window.args.get("spec")
    base, seen = window.args.get("alias"), set()
    while base is not None:
        if base.name.lower() not in named or base.name.lower() in seen:
            hint = "Name it after the table: window w as (order by day)"
            raise reading.error("there is no such window", window, got=repr(base.name), hint=hint)
        seen.add(base.name.lower())
        definition = named[base.name.lower()]
        partition = partition or definition.args.get("partition_by") or []
        order = order or definition.args.get("order")
        spec = spec or definition.args.get("spec")
        base = definition.args.get("alias")
    orders = tuple(_read_order(item) for item in order.expressions) if order is not None else ()
    frame = read_frame(reading, window, spec, bool(orders))
    excludes = spec is not None and spec.args.get("exclude") is not None  # of which Spark knows none
    beyond_spark = frame.unit == "groups" or excludes or has_varying_bounds(frame) or frame.is_reversed
    return _Specification(frame, tuple(partition), orders, beyond_spark)


def partition_of(reading: Reading, window: exp.Window, named: Mapping[str, exp.Window]) -> tuple[exp.Expr, ...]:
    """What a window is divided by, also if it is a named one."""
    return _read_specification(reading, window, named).partition


def _read_order(item: exp.Expr) -> Order:
    if not isinstance(item, exp.Ordered):
        return Order(item, False, True)
    descending = bool(item.args.get("desc"))
    nulls_first = item.args.get("nulls_first")
    # sqlglot fills in the dialect's own rule, which for Spark is that NULL is smaller than everything.
    return Order(item.this, descending, not descending if nulls_first is None else bool(nulls_first))


_Asked = tuple[Aggregate, tuple[exp.Expr, ...]] | tuple[Aggregate, tuple[exp.Expr, ...], exp.Expr]
"""An aggregate, what it is computed of, and the fraction of a quantile if that is computed for each row."""

FRACTION = "q"
"""Stands for a fraction that is computed for each row."""


def read_aggregate(reading: Reading, window: exp.Expr, function: Function, name: str, forced: bool) -> _Asked | None:
    """The aggregate and what it is computed of; None if only Spark knows this form of it."""
    arguments = tuple(function.node.expressions)
    try:
        if name in _WITHIN and not arguments[1:] and function.within is not None:
            return _read_within(reading, window, name, arguments, function.within)
        found = definition(_SPARK.get(name, name)) if name in _SPARK or is_built_in(name) else None
        frequent = found is not None and found.most_frequent
        if frequent and not arguments and function.within is not None:
            return _read_mode_within(reading, window, function.within)
        if function.within is not None:
            raise reading.error(f"{name} has no within group", window)
        if found is not None and found.parameter is not None:
            return _read_quantile(found, function.name, arguments, forced)
        if frequent and len(arguments) == 2 and isinstance(arguments[1], exp.Boolean):
            arguments = arguments[:1]  # Spark's mode(x, true): of several the smallest, which is windrow's rule
        return _read_plain(reading, window, name, found, arguments)
    except Error as error:
        if type(error).__module__ == type(reading.error("", window)).__module__:
            raise
        raise reading.error(error.what, window, got=error.got, hint=error.hint) from None


def _read_plain(
    reading: Reading, window: exp.Expr, name: str, found: Definition | None, arguments: tuple[exp.Expr, ...]
) -> _Asked:
    first = arguments[0] if arguments else None
    if isinstance(first, exp.Distinct):
        if found is not None and found.bare:
            return Aggregate("count_distinct", "x"), tuple(first.expressions)
        if found is None or not found.ignores_repeats or len(first.expressions) != 1:
            raise reading.error(f"there is no {name}(distinct …) over a frame", window, hint="Only count(distinct x)")
        arguments = (first.expressions[0],)
    wanted = 1 if found is None else found.arguments
    if len(arguments) != wanted:
        number = "one argument" if wanted == 1 else "two arguments"
        hint = f"As in {name}(x)" if wanted == 1 else f"As in {name}(x, y)"
        raise reading.error(f"{name} takes {number} over a frame", window, got=f"{len(arguments)} arguments", hint=hint)
    if found is None:
        return user_aggregate(name)("x"), arguments
    if found.bare and isinstance(first, exp.Star | exp.Literal):
        return Aggregate(found.name, None), ()
    return Aggregate(found.name, "x", second="y" if wanted == 2 else None), arguments


def _read_quantile(found: Definition, name: str, arguments: tuple[exp.Expr, ...], forced: bool) -> _Asked | None:
    """Spark's percentile takes a fraction and interpolates; windrow's own is asked for as windrow_percentile."""
    if len(arguments) != 2 and found.instead_in_spark is not None and not forced:
        return None  # Spark's own takes other numbers of arguments too
    if arguments and isinstance(arguments[0], exp.Distinct):
        raise DataError(f"there is no {name}(distinct …)", hint="Only count(distinct x)")
    if len(arguments) != 2:
        told = "one argument" if len(arguments) == 1 else f"{len(arguments)} arguments"
        usual = 0.5 if found.ranks is None or found.ranks.limit == 1 else 70
        raise DataError(f"{name} takes two arguments", got=told, hint=f"As in {name}(x, {usual})")
    if _is_list(arguments[1]):
        return None
    parameter = _read_number(arguments[1])
    name = found.name
    if parameter is None:
        own = found.instead_in_spark is None or forced
        return Aggregate(name if own else str(found.instead_in_spark), "x", FRACTION), arguments[:1], arguments[1]
    if found.instead_in_spark is not None and not forced:
        if not 0 <= parameter <= 1:
            what, hint = f"{name} takes a fraction from 0 to 1", f"The nearest rank is {PREFIX}{name}(x, 70)"
            raise UnknownNameError(what, got=parameter, hint=hint)
        name = found.instead_in_spark
    return Aggregate(name, "x", float(parameter)), arguments[:1]


def _read_within(
    reading: Reading, window: exp.Expr, name: str, arguments: tuple[exp.Expr, ...], within: exp.Expr
) -> _Asked | None:
    if not arguments or _is_list(arguments[0]) or len(within.expressions) != 1:
        return None
    order = _read_order(within.expressions[0])
    parameter = _read_number(arguments[0])
    if parameter is None:
        return _read_varying_within(name, arguments[0], order)
    if not 0 <= parameter <= 1:
        raise reading.error(f"{name} takes a fraction from 0 to 1", window, got=parameter)
    if not order.descending:
        return Aggregate(_WITHIN[name], "x", float(parameter)), (order.node,)
    # From the top: with N values the ceil(q·N)-th largest is the floor((1-q)·N + 1)-th smallest, the nearest rank.
    if name == "percentile_disc":
        return Aggregate("percentile", "x", float(100 * (1 - parameter))), (order.node,)
    return Aggregate("quantile_cont", "x", float(1 - parameter)), (order.node,)


def _read_varying_within(name: str, fraction: exp.Expr, order: Order) -> _Asked:
    if not order.descending:
        return Aggregate(_WITHIN[name], "x", FRACTION), (order.node,), fraction
    # Decimals keep 1 - 0.9 what it is.
    rest = f"1 - cast({fraction.sql('spark')} as decimal(18, 15))"
    if name == "percentile_disc":
        return Aggregate("percentile", "x", FRACTION), (order.node,), sqlglot.parse_one(f"100 * ({rest})", read="spark")
    return Aggregate("quantile_cont", "x", FRACTION), (order.node,), sqlglot.parse_one(rest, read="spark")


def _is_list(node: exp.Expr) -> bool:
    """Whether Spark is asked for several percentiles at once."""
    return isinstance(node, exp.Anonymous) and str(node.name).lower() == "array"


def _read_mode_within(reading: Reading, window: exp.Expr, within: exp.Expr) -> _Asked | None:
    if len(within.expressions) != 1:
        return None
    order = _read_order(within.expressions[0])
    if order.descending:
        hint = "Leave out desc"
        raise reading.error("of several modes windrow gives the smallest", window, got="order by … desc", hint=hint)
    return Aggregate("mode", "x"), (order.node,)


def _read_number(node: exp.Expr) -> Decimal | None:
    """A number that is written out, exactly."""
    if isinstance(node, exp.Neg):
        inner = _read_number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        return Decimal(node.this)
    return None
