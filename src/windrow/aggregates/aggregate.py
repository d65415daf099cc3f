"""An aggregate asked for: which one, of which attribute, with which parameter. ``wr.percentile("t", 70)``."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace
from typing import Any

from windrow.aggregates.definitions import DEFINITIONS, Definition, definition
from windrow.errors import DataError
from windrow.kernels.ranks import RankTable
from windrow.model.types import DataType

_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(\s*(.*?)\s*\))?\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Aggregate:
    """``attribute`` is None for count(*), which counts cells rather than values."""

    name: str
    attribute: str | None
    parameter: float | None = None
    user: Any = field(
        default=None, compare=False, repr=False
    )  # the functions of a user-defined one, which travel along

    def __post_init__(self) -> None:
        needed = self.definition.parameter
        if (needed is None) != (self.parameter is None):
            what = f"{self.name} needs a parameter {needed}" if needed else f"{self.name} takes no parameter"
            raise DataError(what, got=self.parameter)
        if self.attribute is None and self.name != "count":
            raise DataError(f"{self.name} needs an attribute", hint=f"As in {self.name}(a)")
        if needed is not None:
            self.ranks(0)  # refuses a parameter out of range now, not when the work runs

    @property
    def definition(self) -> Definition:
        if self.user is not None:
            found: Definition = self.user.definition
            return found
        return definition(self.name)

    def check(self, found: DataType) -> None:
        """Refuse, before any work, values of a type that the aggregate cannot take."""
        self.definition.check_type(found)
        if self.user is not None:
            self.user.check(found)

    def of(self, attribute: str) -> Aggregate:
        """The same aggregate of another attribute."""
        return replace(self, attribute=attribute if self.attribute is not None else None)

    def over(self, frame: Any) -> FramedAggregate:
        """The same aggregate over a frame of its own, on a DataFrame."""
        return FramedAggregate(self).over(frame)

    def where(self, condition: Any) -> FramedAggregate:
        """The same aggregate of the rows that a condition holds for, on a DataFrame: SQL's FILTER."""
        return FramedAggregate(self).where(condition)

    def ranks(self, most: int) -> RankTable | None:
        """The ranks that answer an order statistic, for windows of up to ``most`` values; None for other aggregates."""
        make = self.definition.ranks
        if make is None:
            return None
        return make(0.5 if self.parameter is None else self.parameter, most)

    def __str__(self) -> str:
        inside = "*" if self.attribute is None else self.attribute
        return f"{self.name}({inside})" if self.parameter is None else f"{self.name}({inside}, {self.parameter:g})"


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


def parse_aggregate(text: str) -> Aggregate:
    """An aggregate of one nameless attribute, as ``sliding`` takes it: "max", "percentile(70)"."""
    match = _CALL.match(text)
    if match is None:
        raise DataError("not an aggregate", got=repr(text), hint="As in 'max' or 'percentile(70)'")
    name, inside = match[1].lower(), match[2]
    if name not in DEFINITIONS:
        from windrow.aggregates.user import user_aggregate

        return user_aggregate(name)("x")
    return _built_in(name, inside)


@functools.lru_cache(maxsize=256)
def _built_in(name: str, parameter: str | None) -> Aggregate:
    if not parameter:
        return Aggregate(name, "x")
    try:
        return Aggregate(name, "x", float(parameter))
    except ValueError:
        raise DataError(f"the parameter of {name} is not a number", got=repr(parameter)) from None


def count(attribute: str | None = None) -> Aggregate:
    """Present values of an attribute, or cells."""
    return Aggregate("count", attribute)


def sum(attribute: str) -> Aggregate:
    return Aggregate("sum", attribute)


def avg(attribute: str) -> Aggregate:
    return Aggregate("avg", attribute)


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


def percentile(attribute: str, percent: float) -> Aggregate:
    """The value of the nearest rank."""
    return Aggregate("percentile", attribute, percent)


def quantile_disc(attribute: str, quantile: float) -> Aggregate:
    """SQL's percentile_disc."""
    return Aggregate("quantile_disc", attribute, quantile)


def quantile_cont(attribute: str, quantile: float) -> Aggregate:
    """SQL's percentile_cont, interpolated."""
    return Aggregate("quantile_cont", attribute, quantile)


def quantile_index(attribute: str, quantile: float) -> Aggregate:
    """The k-th smallest counted from 0, k = floor(quantile·(N-1))."""
    return Aggregate("quantile_index", attribute, quantile)


def median(attribute: str) -> Aggregate:
    return Aggregate("median", attribute)


def count_distinct(attribute: str) -> Aggregate:
    return Aggregate("count_distinct", attribute)


def mode(attribute: str) -> Aggregate:
    """The most frequent value, the smallest of several."""
    return Aggregate("mode", attribute)
