"""Windows of SQL: what an OVER clause asks for, and whether windrow or Spark does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.user import user_aggregate
from windrow.errors import Error, UnknownNameError
from windrow.language.sql_frames import FrameText, frame_of
from windrow.language.sql_reading import Reading

PREFIX = "windrow_"
"""Before the name of an aggregate: windrow's own meaning, done by windrow."""

_ALSO_SPARK = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "std": "std",
    "stddev": "std",
    "stddev_samp": "std",
    "stddev_pop": "std_pop",
    "variance": "var",
    "var_samp": "var",
    "var_pop": "var_pop",
}
"""What Spark does well in the frames that it has, and windrow in all."""

_OWN = {name: name for name in ("count_distinct", "median", "mode", "var", "std_pop")}
_QUANTILES = {"quantile_cont", "quantile_disc", "quantile_index", "percentile"}
_WITHIN = {"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc"}

KNOWN = sorted({*_ALSO_SPARK, *_OWN, *_QUANTILES, *_WITHIN})
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
    condition: exp.Expr | None
    partition: tuple[exp.Expr, ...]
    order: tuple[Order, ...]
    frame: FrameText


@dataclass(frozen=True)
class _Function:
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
    function = _unwrapped(window.this)
    frame, partition, order = _specification(reading, window, named)
    name, forced = function.name.removeprefix(PREFIX), function.name.startswith(PREFIX)
    owner = _aggregate_kind(name)
    if owner is None or (owner == "spark" and not (everything or forced or _needs_windrow(function, frame))):
        if frame.beyond_spark:
            what = f"{function.name or 'this function'} cannot be computed over such a frame"
            hint = f"GROUPS, EXCLUDE and bounds that vary are for windrow's aggregates: {', '.join(KNOWN)}"
            raise reading.error(what, window, hint=hint)
        return None
    asked = _asked(reading, window, function, name, forced)
    if asked is None:
        if forced or frame.beyond_spark:
            raise reading.error(f"this form of {name} cannot be computed over such a frame", window)
        return None
    if function.respects_nulls:
        raise reading.error(f"{name} passes NULLs over", window, got="respect nulls")
    frame.check(reading, window, len(order))
    aggregate, arguments = asked
    return WindowCall(window, aggregate, arguments, function.condition, partition, order, frame)


def _unwrapped(node: Any) -> _Function:
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        inner = _unwrapped(node.this)
        return _Function(inner.node, inner.condition, inner.within, isinstance(node, exp.RespectNulls))
    if isinstance(node, exp.Filter):
        inner = _unwrapped(node.this)
        return _Function(inner.node, node.expression.this, inner.within)
    if isinstance(node, exp.WithinGroup):
        return _Function(node.this, within=node.expression)
    return _Function(node)


def _aggregate_kind(name: str) -> str | None:
    if name in _ALSO_SPARK:
        return "spark"
    if name in _OWN or name in _QUANTILES or name in _WITHIN:
        return "windrow"
    try:
        user_aggregate(name)
    except UnknownNameError:
        return None
    return "windrow"


def _needs_windrow(function: _Function, frame: FrameText) -> bool:
    distinct = any(isinstance(argument, exp.Distinct) for argument in function.node.expressions)
    return frame.beyond_spark or distinct


def _specification(
    reading: Reading, window: exp.Window, named: Mapping[str, exp.Window]
) -> tuple[FrameText, tuple[exp.Expr, ...], tuple[Order, ...]]:
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
    orders = tuple(_order(item) for item in order.expressions) if order is not None else ()
    return frame_of(reading, window, spec, bool(orders)), tuple(partition), orders


def _order(item: exp.Expr) -> Order:
    if not isinstance(item, exp.Ordered):
        return Order(item, False, True)
    descending = bool(item.args.get("desc"))
    nulls_first = item.args.get("nulls_first")
    # sqlglot fills in the dialect's own rule, which for Spark is that NULL is smaller than everything.
    return Order(item.this, descending, not descending if nulls_first is None else bool(nulls_first))


_Asked = tuple[Aggregate, tuple[exp.Expr, ...]]


def _asked(reading: Reading, window: exp.Window, function: _Function, name: str, forced: bool) -> _Asked | None:
    """The aggregate and what it is computed of; None if only Spark knows this form of it."""
    arguments = tuple(function.node.expressions)
    try:
        if name in _WITHIN and not arguments[1:] and function.within is not None:
            return _within(reading, window, name, arguments, function.within)
        if name == "mode" and not arguments and function.within is not None:
            return _mode_within(reading, window, function.within)
        if function.within is not None:
            raise reading.error(f"{name} has no within group", window)
        if name in _QUANTILES:
            return _quantile(name, arguments, forced)
        if name == "mode" and len(arguments) == 2 and isinstance(arguments[1], exp.Boolean):
            arguments = arguments[:1]  # Spark's mode(x, true): of several the smallest, which is windrow's rule
        return _plain(reading, window, name, arguments)
    except Error as error:
        if type(error).__module__ == type(reading.error("", window)).__module__:
            raise
        raise reading.error(error.what, window, got=error.got, hint=error.hint) from None


def _plain(reading: Reading, window: exp.Window, name: str, arguments: tuple[exp.Expr, ...]) -> _Asked:
    aggregate = _ALSO_SPARK.get(name) or _OWN.get(name)
    first = arguments[0] if arguments else None
    if isinstance(first, exp.Distinct):
        if aggregate == "count":
            return Aggregate("count_distinct", "x"), tuple(first.expressions)
        if aggregate not in ("min", "max", "count_distinct") or len(first.expressions) != 1:
            raise reading.error(f"there is no {name}(distinct …) over a frame", window, hint="Only count(distinct x)")
        arguments = (first.expressions[0],)
    if len(arguments) != 1:
        got = f"{len(arguments)} arguments"
        raise reading.error(f"{name} takes one argument over a frame", window, got=got, hint=f"As in {name}(x)")
    if aggregate == "count" and isinstance(first, exp.Star | exp.Literal):
        return Aggregate("count", None), ()
    if aggregate is None:
        return user_aggregate(name)("x"), arguments
    return Aggregate(aggregate, "x"), arguments


def _quantile(name: str, arguments: tuple[exp.Expr, ...], forced: bool) -> _Asked | None:
    """Spark's percentile takes a fraction and interpolates; windrow's own is asked for as windrow_percentile."""
    if len(arguments) != 2:
        return None
    parameter = _number(arguments[1])
    if parameter is None:
        return None
    if name == "percentile" and not forced:
        if not 0 <= parameter <= 1:
            what, hint = "percentile takes a fraction from 0 to 1", "The nearest rank is windrow_percentile(x, 70)"
            raise UnknownNameError(what, got=parameter, hint=hint)
        name = "quantile_cont"
    return Aggregate(name, "x", float(parameter)), arguments[:1]


def _within(
    reading: Reading, window: exp.Window, name: str, arguments: tuple[exp.Expr, ...], within: exp.Expr
) -> _Asked | None:
    parameter = _number(arguments[0]) if arguments else None
    if parameter is None or len(within.expressions) != 1:
        return None
    order = _order(within.expressions[0])
    if not 0 <= parameter <= 1:
        raise reading.error(f"{name} takes a fraction from 0 to 1", window, got=parameter)
    if not order.descending:
        return Aggregate(_WITHIN[name], "x", float(parameter)), (order.node,)
    # From the top: with N values the ceil(q·N)-th largest is the floor((1-q)·N + 1)-th smallest, the nearest rank.
    if name == "percentile_disc":
        return Aggregate("percentile", "x", float(100 * (1 - parameter))), (order.node,)
    return Aggregate("quantile_cont", "x", float(1 - parameter)), (order.node,)


def _mode_within(reading: Reading, window: exp.Window, within: exp.Expr) -> _Asked | None:
    if len(within.expressions) != 1:
        return None
    order = _order(within.expressions[0])
    if order.descending:
        hint = "Leave out desc"
        raise reading.error("of several modes windrow gives the smallest", window, got="order by … desc", hint=hint)
    return Aggregate("mode", "x"), (order.node,)


def _number(node: exp.Expr) -> Decimal | None:
    """A number that is written out, exactly."""
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        return Decimal(node.this)
    return None
