"""An aggregate asked for: which one, of which attributes, with which parameter. ``wr.percentile("t", 70)``."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.aggregates.definition import Definition
from windrow.aggregates.registry import canonical, definition, is_built_in
from windrow.errors import DataError
from windrow.kernels.contract.ranks import RankTable
from windrow.model.types import DataType

if TYPE_CHECKING:
    from windrow.kernels.frames.spans import Spans

VARYING = "Only in frames may each row have its own: wr.framed, wr.frames and db.sql"
FEW_FRACTIONS = 1 << 15
"""Frames whose ranks are worked out without compiled code."""

_NAME = re.compile(r"(?!(?:nan|inf|infinity)\Z)[A-Za-z_]\w*", re.IGNORECASE)
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(\s*(.*?)\s*\))?\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Aggregate:
    """``attribute`` is None for count(*), which counts cells; ``second`` is there for aggregates of two arguments.

    In frames the ``parameter`` of an order statistic may vary with the row: it is an array, or names a column.
    """

    name: str
    attribute: str | None
    parameter: Any = None
    # The functions of a user-defined one travel along.
    user: Any = field(default=None, compare=False, repr=False)
    second: str | None = None

    def __post_init__(self) -> None:
        if self.user is None:
            object.__setattr__(self, "name", canonical(self.name))
        found = self.definition
        if (found.parameter is None) != (self.parameter is None):
            needed = f"{self.name} needs a parameter {found.parameter}"
            what = needed if found.parameter else f"{self.name} takes no parameter"
            raise DataError(what, got=self.parameter, hint=f"As in {found.usage()}")
        if self.attribute is None and not found.bare:
            raise DataError(f"{self.name} needs an attribute", hint=f"As in {self.name}(a)")
        if (self.second is not None) != (found.arguments == 2):
            what = f"{self.name} takes {'two arguments' if found.arguments == 2 else 'one argument'}"
            raise DataError(what, got=", ".join(self.attributes), hint=f"As in {found.usage()}")
        if found.parameter is not None and not self.varies:
            self.ranks(0)  # refuses a parameter out of range now, not when the work runs

    @property
    def definition(self) -> Definition:
        if self.user is not None:
            found: Definition = self.user.definition
            return found
        return definition(self.name)

    @property
    def attributes(self) -> tuple[str, ...]:
        """What it is computed of: nothing, one attribute or two."""
        return tuple(name for name in (self.attribute, self.second) if name is not None)

    def check(self, found: DataType, second: DataType | None = None) -> None:
        """Refuse, before any work, values of a type that the aggregate cannot take."""
        self.definition.check_type(found)
        if second is not None:
            self.definition.check_type(second, 1)
        if self.user is not None:
            self.user.check(found)

    def of(self, attribute: str, second: str | None = None) -> Aggregate:
        """The same aggregate of other attributes."""
        return replace(
            self,
            attribute=attribute if self.attribute is not None else None,
            second=None if self.second is None else second or self.second,
        )

    def parts(self) -> dict[str, Aggregate]:
        """The aggregates of a part of the cells that results are joined from; none if that cannot be done."""
        found = {}
        for name in self.definition.parts:
            second = self.second if definition(name).arguments == 2 else None
            found[name] = Aggregate(name, self.attribute, second=second)
        return found

    def over(self, frame: Any) -> FramedAggregate:
        """The same aggregate over a frame of its own, on a DataFrame."""
        return FramedAggregate(self).over(frame)

    def where(self, condition: Any) -> FramedAggregate:
        """The same aggregate of the rows that a condition holds for, on a DataFrame: SQL's FILTER."""
        return FramedAggregate(self).where(condition)

    @property
    def varies(self) -> bool:
        """Whether each row has a parameter of its own."""
        return self.parameter is not None and not isinstance(self.parameter, int | float | Fraction | np.number)

    @property
    def constant(self) -> float | None:
        """The parameter, which must be the same everywhere."""
        if self.varies:
            got = self.parameter if isinstance(self.parameter, str) else type(self.parameter).__name__
            raise DataError(f"{self.definition.parameter} of {self.name} must be a number here", got=got, hint=VARYING)
        found: float | None = self.parameter
        return found

    @property
    def fraction(self) -> float:
        """The parameter of an order statistic."""
        fixed = self.definition.fraction
        chosen = self.constant if fixed is None else fixed
        assert chosen is not None
        return chosen

    def ranks(self, most: int) -> RankTable | None:
        """The ranks that answer an order statistic, for windows of up to ``most`` values; None for other aggregates."""
        rule = self.definition.ranks
        return None if rule is None else rule.table(self.fraction, most)

    def frame_ranks(self, spans: Spans) -> RankTable | None:
        """The ranks that answer an order statistic in frames; each may have a parameter of its own."""
        rule = self.definition.ranks
        if rule is None or not self.varies:
            return self.ranks(spans.most)
        if spans.count <= FEW_FRACTIONS:  # not worth compiled code
            return rule.each(self.parameter, spans.sizes)
        from windrow.kernels.frames.fractions import rank_fractions

        return rank_fractions(rule, self.parameter, spans.sizes)

    def __str__(self) -> str:
        inside = ["*"] if self.attribute is None else [*self.attributes]
        if self.varies:
            inside.append("…" if isinstance(self.parameter, np.ndarray) else str(self.parameter))
        elif self.parameter is not None:
            inside.append(f"{self.parameter:g}")
        return f"{self.name}({', '.join(inside)})"


@dataclass(frozen=True, eq=False)
class FramedAggregate:
    """An aggregate of a DataFrame's rows with a frame (None: the query's) and a condition of its own."""

    aggregate: Aggregate
    frame: Any = None
    condition: Any = None

    def over(self, frame: Any) -> FramedAggregate:
        return replace(self, frame=frame)

    def where(self, condition: Any) -> FramedAggregate:
        return replace(self, condition=condition)


def aggregate_of(given: Any) -> Aggregate:
    """An aggregate as ``sliding`` and ``framed`` take it: a name, a call as text, an object, a user's class."""
    from windrow.aggregates.user import UserAggregate

    if isinstance(given, str):
        return parse_aggregate(given)
    if isinstance(given, UserAggregate):
        return given("x")
    if isinstance(given, Aggregate):
        return given
    hint = 'As in "max", "percentile(70)" or wr.percentile("x", 70)'
    raise DataError("agg must be an aggregate", got=repr(given), hint=hint)


def parse_aggregate(text: str) -> Aggregate:
    """An aggregate of nameless attributes, as ``sliding`` takes it: "max", "percentile(70)", "count(*)".

    A call may be written as in the language, "percentile(x, 70)": what the attribute is called does not count.
    """
    match = _CALL.match(text)
    if match is None:
        raise DataError("not an aggregate", got=repr(text), hint="As in 'max' or 'percentile(70)'")
    name, inside = match[1].lower(), match[2]
    if not is_built_in(name):
        from windrow.aggregates.user import user_aggregate

        return user_aggregate(name)("x")
    return _built_in(name, inside)


@functools.lru_cache(maxsize=256)
def _built_in(name: str, parameter: str | None) -> Aggregate:
    arguments = definition(name).arguments
    second = "y" if arguments == 2 else None
    if name == "count" and parameter == "*":
        return Aggregate(name, None)
    given = [part.strip() for part in (parameter or "").split(",")]
    if len(given) >= arguments and all(_NAME.fullmatch(part) for part in given[:arguments]):
        parameter = ",".join(given[arguments:])
    if not parameter:
        return Aggregate(name, "x", second=second)
    try:
        return Aggregate(name, "x", float(parameter), second=second)
    except ValueError:
        raise DataError(f"the parameter of {name} is not a number", got=repr(parameter)) from None


def function_of(name: str) -> Callable[..., Aggregate] | None:
    """What asks for a built-in aggregate by its name, as the functions below do; None if there is none."""
    if not is_built_in(name):
        return None
    found = definition(name)

    def ask(attribute: str | None = None, *more: Any) -> Aggregate:
        second, parameter = (*more, None, None)[:2] if found.arguments == 2 else (None, *more, None)[:2]
        if len(more) > (found.arguments == 2) + (found.parameter is not None):
            raise DataError(f"{name} takes fewer arguments", got=1 + len(more), hint=f"As in {found.usage()}")
        return Aggregate(name, attribute, parameter, second=second)

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"{found.usage()}: {found.summary}."
    return ask


def count(attribute: str | None = None) -> Aggregate:
    """Present values of an attribute, or cells."""
    return Aggregate("count", attribute)


def sum(attribute: str) -> Aggregate:
    return Aggregate("sum", attribute)


def avg(attribute: str, weight: str | None = None) -> Aggregate:
    """The average; with ``weight``, an attribute or an expression, the weighted one."""
    return Aggregate("avg", attribute) if weight is None else Aggregate("wavg", attribute, second=weight)


def var(attribute: str) -> Aggregate:
    """Sample variance."""
    return Aggregate("var", attribute)


def std(attribute: str) -> Aggregate:
    """Sample standard deviation."""
    return Aggregate("std", attribute)


def var_pop(attribute: str) -> Aggregate:
    return Aggregate("var_pop", attribute)


def std_pop(attribute: str) -> Aggregate:
    return Aggregate("std_pop", attribute)


def min(attribute: str) -> Aggregate:
    return Aggregate("min", attribute)


def max(attribute: str) -> Aggregate:
    return Aggregate("max", attribute)


def percentile(attribute: str, percent: Any) -> Aggregate:
    """The value of the nearest rank; in frames ``percent`` may be a column, and so may the fractions of quantiles."""
    return Aggregate("percentile", attribute, percent)


def quantile_disc(attribute: str, quantile: Any) -> Aggregate:
    """SQL's percentile_disc."""
    return Aggregate("quantile_disc", attribute, quantile)


def quantile_cont(attribute: str, quantile: Any) -> Aggregate:
    """SQL's percentile_cont, interpolated."""
    return Aggregate("quantile_cont", attribute, quantile)


def quantile_index(attribute: str, quantile: Any) -> Aggregate:
    """The k-th smallest counted from 0, k = floor(quantile·(N-1))."""
    return Aggregate("quantile_index", attribute, quantile)


def median(attribute: str) -> Aggregate:
    return Aggregate("median", attribute)


def count_distinct(attribute: str) -> Aggregate:
    return Aggregate("count_distinct", attribute)


def mode(attribute: str) -> Aggregate:
    """The most frequent value, the smallest of several."""
    return Aggregate("mode", attribute)


def quantile(attribute: str, quantile: Any) -> Aggregate:
    """The same as ``quantile_index``, by the name that paper 003 gives it."""
    return Aggregate("quantile_index", attribute, quantile)


def range(attribute: str) -> Aggregate:
    """The largest value less the smallest."""
    return Aggregate("range", attribute)


def first(attribute: str) -> Aggregate:
    """The first present value in coordinate order, over frames in row order."""
    return Aggregate("first", attribute)


def last(attribute: str) -> Aggregate:
    """The last present value in coordinate order, over frames in row order."""
    return Aggregate("last", attribute)


def covar(attribute: str, second: str) -> Aggregate:
    """Sample covariance, over the cells that have both."""
    return Aggregate("covar", attribute, second=second)


def covar_pop(attribute: str, second: str) -> Aggregate:
    return Aggregate("covar_pop", attribute, second=second)


def corr(attribute: str, second: str) -> Aggregate:
    """Pearson's correlation, over the cells that have both."""
    return Aggregate("corr", attribute, second=second)


def skew(attribute: str) -> Aggregate:
    """Skewness, bias-corrected as in pandas."""
    return Aggregate("skew", attribute)


def kurtosis(attribute: str) -> Aggregate:
    """Excess kurtosis, bias-corrected as in pandas."""
    return Aggregate("kurtosis", attribute)
