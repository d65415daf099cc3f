"""The built-in aggregates, one entry each. A new aggregate is one entry here, with its kernel or what composes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windrow.aggregates import composed, moments, rounding
from windrow.aggregates.definition import Definition
from windrow.aggregates.ingredients import (
    ANY,
    NUMBER,
    ORDERED,
    PAIR,
    always_float64,
    always_int64,
    give_average,
    give_counts,
    give_distinct,
    give_picked,
    give_reals,
    give_sum,
    give_variance,
    join_extreme,
    join_total,
    same,
    sum_type,
)
from windrow.aggregates.moments import XX, XXX, XXXX, XY, YY
from windrow.aggregates.part_definitions import PART_DEFINITIONS
from windrow.aggregates.states import finishes
from windrow.aggregates.states.extremes import ExtremeRule, OutermostRule, RangeRule
from windrow.aggregates.states.sums import CountRule
from windrow.errors import UnknownNameError, nearest
from windrow.kernels.contract.ranks import CONT, DISC, INDEX, PERCENTILE


def _deviation(name: str, summary: str, sample: int, root: bool, spark: tuple[str, ...]) -> Definition:
    return Definition(
        name,
        summary,
        NUMBER,
        always_float64,
        operation="squares",
        finish=give_variance(sample, root),
        divides=True,
        least=1 + sample,
        parts=moments.parts_of((XX,), 1),
        join=moments.join_variance(sample, root),
        state=finishes.deviation_state(sample, root),
        rounding=rounding.DEVIATION if root else rounding.VARIANCE,
        spark=spark,
    )


def _rank(name: str, summary: str, **details: Any) -> Definition:
    interpolates = details["ranks"].interpolates
    return Definition(
        name,
        summary,
        NUMBER if interpolates else ORDERED,
        always_float64 if interpolates else same,
        operation="select",
        finish=give_reals if interpolates else give_picked,
        picks=not interpolates,
        **details,
    )


def _outermost(name: str, operation: str) -> Definition:
    return Definition(
        name,
        f"the {name} value in coordinate or row order",
        ANY,
        same,
        compose=composed.outermost(operation),
        made_of=(operation,),
        picks=True,
        ordered=True,
        differs_in_spark=True,
        parts=("count", f"place_{operation}", name),
        join=composed.join_outermost(name, operation),
        state=OutermostRule(last=operation == "max"),
    )


_SHOWN = (
    Definition(
        "count",
        "present values; count(*) counts cells",
        ANY,
        always_int64,
        operation="count",
        finish=give_counts,
        divides=True,
        least=0,
        bare=True,
        parts=("count",),
        join=join_total("count"),
        state=CountRule(),
        spark=("count",),
        in_spark="count({0})",
    ),
    Definition(
        "sum",
        "the sum; of whole numbers an overflow is an error",
        NUMBER,
        sum_type,
        operation="sum",
        finish=give_sum,
        parts=("count", "sum"),
        join=join_total("sum"),
        state=finishes.SUMMED,
        rounding=rounding.SUM,
        spark=("sum",),
        in_spark="sum({0})",
    ),
    Definition(
        "avg",
        "the average",
        NUMBER,
        always_float64,
        operation="sum",
        finish=give_average,
        divides=True,
        parts=("count", "avg"),
        join=moments.join_average,
        state=finishes.AVERAGED,
        weighted="wavg",
        rounding=rounding.AVERAGE,
        spark=("avg", "mean"),
        in_spark="avg({0})",
    ),
    _deviation("var", "the variance of a sample", 1, False, ("variance", "var_samp")),
    _deviation("std", "the standard deviation of a sample", 1, True, ("std", "stddev", "stddev_samp")),
    _deviation("var_pop", "the variance of all there is", 0, False, ("var_pop",)),
    _deviation("std_pop", "the standard deviation of all there is", 0, True, ("stddev_pop",)),
    Definition(
        "min",
        "the smallest value",
        ORDERED,
        same,
        operation="min",
        finish=give_picked,
        picks=True,
        parts=("min",),
        join=join_extreme("min", "min"),
        state=ExtremeRule(largest=False),
        spark=("min",),
        in_spark="min({0})",
    ),
    Definition(
        "max",
        "the largest value",
        ORDERED,
        same,
        operation="max",
        finish=give_picked,
        picks=True,
        parts=("max",),
        join=join_extreme("max", "max"),
        state=ExtremeRule(largest=True),
        spark=("max",),
        in_spark="max({0})",
    ),
    Definition(
        "range",
        "the largest value less the smallest",
        NUMBER,
        same,
        compose=composed.range_of,
        made_of=("min", "max"),
        parts=("count", "min", "max"),
        join=composed.join_ranges,
        state=RangeRule(),
    ),
    _rank(
        "percentile",
        "the value of the nearest rank, 0 ≤ P ≤ 100",
        ranks=PERCENTILE,
        parameter="P",
        instead_in_spark="quantile_cont",
    ),
    _rank("quantile_disc", "SQL's percentile_disc, 0 ≤ q ≤ 1", ranks=DISC, parameter="q", within="percentile_disc"),
    _rank(
        "quantile_cont",
        "SQL's percentile_cont, interpolated, 0 ≤ q ≤ 1",
        ranks=CONT,
        parameter="q",
        within="percentile_cont",
    ),
    _rank(
        "quantile_index",
        "the k-th smallest counted from 0, k = floor(q·(N-1))",
        ranks=INDEX,
        parameter="q",
        synonyms=("quantile",),
    ),
    _rank("median", "the middle value, or between the two middle ones", ranks=CONT, fraction=0.5),
    Definition(
        "count_distinct",
        "how many different values there are",
        ORDERED,
        always_int64,
        operation="distinct",
        finish=give_distinct,
        divides=True,
        least=0,
    ),
    Definition(
        "mode",
        "the most frequent value, the smallest of several",
        ORDERED,
        same,
        operation="mode",
        finish=give_picked,
        picks=True,
    ),
    _outermost("first", "min"),
    _outermost("last", "max"),
    Definition(
        "wavg",
        "the average of x with the weights y",
        PAIR,
        always_float64,
        compose=composed.weighted_average,
        made_of=("sum", "sum"),
        parts=("pairs", "weighted_sum", "weights_sum"),
        join=composed.join_weighted,
        state=finishes.WEIGHTED,
        rounding=rounding.WEIGHTED,
    ),
    Definition(
        "covar",
        "the covariance of a sample",
        PAIR,
        always_float64,
        compose=moments.covariance(1),
        made_of=("sum",) * 3,
        least=2,
        parts=moments.parts_of((XY,), 2),
        join=moments.join_covariance(1),
        state=finishes.covariance_state(1),
        rounding=rounding.COVARIANCE,
        synonyms=("covar_samp",),
        spark=("covar_samp",),
    ),
    Definition(
        "covar_pop",
        "the covariance of all there is",
        PAIR,
        always_float64,
        compose=moments.covariance(0),
        made_of=("sum",) * 3,
        parts=moments.parts_of((XY,), 2),
        join=moments.join_covariance(0),
        state=finishes.covariance_state(0),
        rounding=rounding.COVARIANCE,
        spark=("covar_pop",),
    ),
    Definition(
        "corr",
        "Pearson's correlation; missing where either side does not vary",
        PAIR,
        always_float64,
        compose=moments.correlation,
        made_of=(*("sum",) * 5, *("min", "max") * 2),
        least=2,
        parts=moments.parts_of((XX, XY, YY), 2, varies=True),
        join=moments.join_correlation,
        state=finishes.CORRELATED,
        rounding=rounding.RATIO,
        spark=("corr",),
    ),
    Definition(
        "skew",
        "the skewness, bias-corrected as in pandas",
        NUMBER,
        always_float64,
        compose=moments.skewness,
        made_of=(*("sum",) * 3, "min", "max"),
        least=3,
        parts=moments.parts_of((XXX,), 1, varies=True),
        join=moments.join_skewness,
        state=finishes.SKEWED,
        rounding=rounding.RATIO,
    ),
    Definition(
        "kurtosis",
        "the excess kurtosis, bias-corrected as in pandas",
        NUMBER,
        always_float64,
        compose=moments.kurtosis,
        made_of=(*("sum",) * 4, "min", "max"),
        least=4,
        parts=moments.parts_of((XXXX,), 1, varies=True),
        join=moments.join_kurtosis,
        state=finishes.PEAKED,
        rounding=rounding.RATIO,
        differs_in_spark=True,
    ),
)

DEFINITIONS: Mapping[str, Definition] = {definition.name: definition for definition in _SHOWN}
"""Those that users may name."""

SYNONYMS: Mapping[str, str] = {synonym: found.name for found in _SHOWN for synonym in found.synonyms}

_ALL = {definition.name: definition for definition in (*_SHOWN, *PART_DEFINITIONS)}


def canonical(name: str) -> str:
    """An aggregate's own name for any of its names."""
    lower = name.lower()
    return SYNONYMS.get(lower, lower)


def is_built_in(name: str) -> bool:
    return canonical(name) in DEFINITIONS


def definition(name: str) -> Definition:
    """The built-in aggregate of that name."""
    found = _ALL.get(canonical(name))
    if found is None:
        known = [*DEFINITIONS, *SYNONYMS]
        raise UnknownNameError("no such aggregate", got=repr(name), hint=nearest(name.lower(), known))
    return found
