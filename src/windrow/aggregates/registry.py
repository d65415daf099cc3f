"""The built-in aggregates, one entry each. A new aggregate is one entry here, with its kernel or what composes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates import composed, moments
from windrow.aggregates import state_finishes as finishes
from windrow.aggregates.definition import Array, Computed, Definition, Finish, Join
from windrow.aggregates.extreme_states import ExtremeRule, OutermostRule, RangeRule
from windrow.aggregates.moments import XX, XXX, XXXX, XY, YY
from windrow.aggregates.states import CountRule
from windrow.errors import DataError, UnknownNameError, nearest
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.ranks import CONT, DISC, INDEX, PERCENTILE
from windrow.model.types import TYPES, DataType

NUMBER, ORDERED, ANY = ("number",), ("ordered",), ("any",)
PAIR = ("number", "number")


def _same(found: DataType) -> DataType:
    return found


def _int64(_found: DataType) -> DataType:
    return TYPES["int64"]


def _float64(_found: DataType) -> DataType:
    return TYPES["float64"]


def _sum_type(found: DataType) -> DataType:
    return TYPES["float64"] if found.is_float else TYPES["int64"]


# From a primitive's outcome to results


def _counts(outcome: Outcome, _found: DataType) -> Array:
    assert outcome.counts is not None
    return outcome.counts


def _sum(outcome: Outcome, found: DataType) -> Array:
    if found.is_float:
        return outcome.reals
    return whole_sums(outcome.exact)


def whole_sums(exact: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Sums of whole numbers as int64, which must hold them."""
    if exact.dtype != np.uint64:
        return exact
    if (exact > np.uint64(2**63 - 1)).any():
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    return exact.astype(np.int64)


def _average(outcome: Outcome, _found: DataType) -> Array:
    assert outcome.counts is not None
    return outcome.reals / np.maximum(outcome.counts, 1)


def _picked(outcome: Outcome, found: DataType) -> Array:
    return outcome.exact.astype(found.dtype, copy=False) if found.dtype.kind != "T" else outcome.exact


def _reals(outcome: Outcome, _found: DataType) -> Array:
    return outcome.reals


def _distinct(outcome: Outcome, _found: DataType) -> Array:
    distinct = outcome.reals.astype(np.int64, copy=False)
    if outcome.counts is None:  # somebody knows that nothing is empty
        return distinct
    there = outcome.counts > 0
    return distinct if there.all() else np.where(there, distinct, 0)


def _variance(sample: int, root: bool) -> Finish:
    def finish(outcome: Outcome, _found: DataType) -> Array:
        assert outcome.counts is not None
        variance = outcome.reals / np.maximum(outcome.counts - sample, 1)
        return np.sqrt(variance) if root else variance

    return finish


# From the results of parts to those of the whole


def _join_total(part: str) -> Join:
    return lambda parts: Computed(parts.total(part))


def _join_extreme(part: str, operation: str) -> Join:
    return lambda parts: Computed(parts.extreme(part, operation))


def _deviation(name: str, summary: str, sample: int, root: bool, spark: tuple[str, ...]) -> Definition:
    return Definition(
        name,
        summary,
        NUMBER,
        _float64,
        operation="squares",
        finish=_variance(sample, root),
        divides=True,
        least=1 + sample,
        parts=moments.parts_of((XX,), 1),
        join=moments.join_variance(sample, root),
        state=finishes.deviation_state(sample, root),
        spark=spark,
    )


def _rank(name: str, summary: str, **details: Any) -> Definition:
    interpolates = details["ranks"].interpolates
    return Definition(
        name,
        summary,
        NUMBER if interpolates else ORDERED,
        _float64 if interpolates else _same,
        operation="select",
        finish=_reals if interpolates else _picked,
        picks=not interpolates,
        **details,
    )


def _outermost(name: str, operation: str) -> Definition:
    return Definition(
        name,
        f"the {name} value in coordinate or row order",
        ANY,
        _same,
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
        _int64,
        operation="count",
        finish=_counts,
        divides=True,
        least=0,
        bare=True,
        parts=("count",),
        join=_join_total("count"),
        state=CountRule(),
        spark=("count",),
        in_spark="count({0})",
    ),
    Definition(
        "sum",
        "the sum; of whole numbers an overflow is an error",
        NUMBER,
        _sum_type,
        operation="sum",
        finish=_sum,
        parts=("count", "sum"),
        join=_join_total("sum"),
        state=finishes.SUMMED,
        spark=("sum",),
        in_spark="sum({0})",
    ),
    Definition(
        "avg",
        "the average",
        NUMBER,
        _float64,
        operation="sum",
        finish=_average,
        divides=True,
        parts=("count", "avg"),
        join=moments.join_average,
        state=finishes.AVERAGED,
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
        _same,
        operation="min",
        finish=_picked,
        picks=True,
        parts=("min",),
        join=_join_extreme("min", "min"),
        state=ExtremeRule(largest=False),
        spark=("min",),
        in_spark="min({0})",
    ),
    Definition(
        "max",
        "the largest value",
        ORDERED,
        _same,
        operation="max",
        finish=_picked,
        picks=True,
        parts=("max",),
        join=_join_extreme("max", "max"),
        state=ExtremeRule(largest=True),
        spark=("max",),
        in_spark="max({0})",
    ),
    Definition(
        "range",
        "the largest value less the smallest",
        NUMBER,
        _same,
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
        _int64,
        operation="distinct",
        finish=_distinct,
        divides=True,
        least=0,
    ),
    Definition(
        "mode",
        "the most frequent value, the smallest of several",
        ORDERED,
        _same,
        operation="mode",
        finish=_picked,
        picks=True,
    ),
    _outermost("first", "min"),
    _outermost("last", "max"),
    Definition(
        "wavg",
        "the average of x with the weights y",
        PAIR,
        _float64,
        compose=composed.weighted_average,
        made_of=("sum", "sum"),
        parts=("pairs", "weighted_sum", "weights_sum"),
        join=composed.join_weighted,
        state=finishes.WEIGHTED,
    ),
    Definition(
        "covar",
        "the covariance of a sample",
        PAIR,
        _float64,
        compose=moments.covariance(1),
        made_of=("sum",) * 3,
        least=2,
        parts=moments.parts_of((XY,), 2),
        join=moments.join_covariance(1),
        state=finishes.covariance_state(1),
        synonyms=("covar_samp",),
        spark=("covar_samp",),
    ),
    Definition(
        "covar_pop",
        "the covariance of all there is",
        PAIR,
        _float64,
        compose=moments.covariance(0),
        made_of=("sum",) * 3,
        parts=moments.parts_of((XY,), 2),
        join=moments.join_covariance(0),
        state=finishes.covariance_state(0),
        spark=("covar_pop",),
    ),
    Definition(
        "corr",
        "Pearson's correlation; missing where either side does not vary",
        PAIR,
        _float64,
        compose=moments.correlation,
        made_of=(*("sum",) * 5, *("min", "max") * 2),
        least=2,
        parts=moments.parts_of((XX, XY, YY), 2, varies=True),
        join=moments.join_correlation,
        state=finishes.CORRELATED,
        spark=("corr",),
    ),
    Definition(
        "skew",
        "the skewness, bias-corrected as in pandas",
        NUMBER,
        _float64,
        compose=moments.skewness,
        made_of=(*("sum",) * 3, "min", "max"),
        least=3,
        parts=moments.parts_of((XXX,), 1, varies=True),
        join=moments.join_skewness,
        state=finishes.SKEWED,
    ),
    Definition(
        "kurtosis",
        "the excess kurtosis, bias-corrected as in pandas",
        NUMBER,
        _float64,
        compose=moments.kurtosis,
        made_of=(*("sum",) * 4, "min", "max"),
        least=4,
        parts=moments.parts_of((XXXX,), 1, varies=True),
        join=moments.join_kurtosis,
        state=finishes.PEAKED,
        differs_in_spark=True,
    ),
)

_PARTS = (
    Definition(
        "moment_xx",
        "the sum of squared distances from the mean",
        NUMBER,
        _float64,
        operation="squares",
        finish=_reals,
        divides=True,
        parts=moments.parts_of((XX,), 1),
        join=moments.join_moment(XX, 1),
        in_spark="var_pop({0}) * count({0})",
        hidden=True,
    ),
    *(
        Definition(
            moments.part_name(term, 1),
            "a moment of a part",
            NUMBER,
            _float64,
            compose=moments.moment(term, 1),
            parts=moments.parts_of((term,), 1),
            join=moments.join_moment(term, 1),
            in_spark=in_spark,
            hidden=True,
        )
        for term, in_spark in (
            # Spark divides by the deviation, which is 0 where values do not vary.
            (XXX, "coalesce(nanvl(skewness({0}), 0) * power(var_pop({0}), 1.5) * count({0}), 0)"),
            (XXXX, "coalesce((nanvl(kurtosis({0}), -3) + 3) * power(var_pop({0}), 2) * count({0}), 0)"),
        )
    ),
    *(
        Definition(
            moments.part_name(term, 2),
            "a moment of the pairs of a part",
            PAIR,
            _float64,
            compose=moments.moment(term, 2),
            parts=moments.parts_of((term,), 2),
            join=moments.join_moment(term, 2),
            in_spark=in_spark,
            hidden=True,
        )
        for term, in_spark in (
            (XX, "var_pop(if({1} is null, null, {0})) * regr_count({0}, {1})"),
            (XY, "covar_pop({0}, {1}) * regr_count({0}, {1})"),
            (YY, "var_pop(if({0} is null, null, {1})) * regr_count({0}, {1})"),
        )
    ),
    *(
        Definition(
            f"pair_mean_{'xy'[argument]}",
            "the mean of one side of a part's pairs",
            PAIR,
            _float64,
            compose=moments.paired_mean(argument),
            parts=moments.parts_of((), 2),
            join=moments.join_paired_mean(argument),
            in_spark=f"avg(if({{{1 - argument}}} is null, null, {{{argument}}}))",
            hidden=True,
        )
        for argument in (0, 1)
    ),
    *(
        Definition(
            f"pair_{operation}_{'xy'[argument]}",
            "an extreme of one side of a part's pairs",
            PAIR,
            _float64,
            compose=moments.paired_extreme(argument, operation),
            parts=("pairs", f"pair_{operation}_{'xy'[argument]}"),
            join=_join_extreme(f"pair_{operation}_{'xy'[argument]}", operation),
            in_spark=f"{operation}(if({{{1 - argument}}} is null, null, {{{argument}}}))",
            hidden=True,
        )
        for argument in (0, 1)
        for operation in ("min", "max")
    ),
    *(
        Definition(
            f"place_{operation}",
            "where the first or last value of a part is",
            ANY,
            _int64,
            compose=composed.place_of(operation),
            parts=("count", f"place_{operation}"),
            join=_join_extreme(f"place_{operation}", operation),
            ordered=True,
            hidden=True,
        )
        for operation in ("min", "max")
    ),
    Definition(
        "pairs",
        "the pairs of a part",
        PAIR,
        _int64,
        compose=moments.count_pairs,
        parts=("pairs",),
        join=_join_total("pairs"),
        least=0,
        in_spark="regr_count({0}, {1})",
        hidden=True,
    ),
    Definition(
        "weighted_sum",
        "the sum of products of a part",
        PAIR,
        _float64,
        compose=composed.weighted_sum,
        parts=("pairs", "weighted_sum"),
        join=_join_total("weighted_sum"),
        in_spark="sum({0} * {1})",
        hidden=True,
    ),
    Definition(
        "weights_sum",
        "the weights of a part",
        PAIR,
        _float64,
        compose=composed.sum_of_weights,
        parts=("pairs", "weights_sum"),
        join=_join_total("weights_sum"),
        in_spark="sum(if({0} is null, null, {1}))",
        hidden=True,
    ),
)

DEFINITIONS: Mapping[str, Definition] = {definition.name: definition for definition in _SHOWN}
"""Those that users may name."""

SYNONYMS: Mapping[str, str] = {synonym: found.name for found in _SHOWN for synonym in found.synonyms}

_ALL = {definition.name: definition for definition in (*_SHOWN, *_PARTS)}


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
