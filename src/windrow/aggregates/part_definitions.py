"""Aggregates that nobody names: what is computed of a part, so that the parts of others can be joined."""

from __future__ import annotations

from windrow.aggregates import composed, moments
from windrow.aggregates.definition import Definition
from windrow.aggregates.ingredients import (
    ANY,
    NUMBER,
    PAIR,
    always_float64,
    always_int64,
    give_picked,
    give_reals,
    join_extreme,
    join_total,
    same,
)
from windrow.aggregates.moments import XX, XXX, XXXX, XY, YY

PART_DEFINITIONS = (
    Definition(
        "row_value",
        "the value of a frame's n-th row, missing or not, counted from the frame's end if n is negative",
        ANY,
        same,
        operation="row",
        finish=give_picked,
        parameter="n",
        picks=True,
        ordered=True,
        hidden=True,
    ),
    Definition(
        "moment_xx",
        "the sum of squared distances from the mean",
        NUMBER,
        always_float64,
        operation="squares",
        finish=give_reals,
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
            always_float64,
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
            always_float64,
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
            always_float64,
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
            always_float64,
            compose=moments.paired_extreme(argument, operation),
            parts=("pairs", f"pair_{operation}_{'xy'[argument]}"),
            join=join_extreme(f"pair_{operation}_{'xy'[argument]}", operation),
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
            always_int64,
            compose=composed.place_of(operation),
            parts=("count", f"place_{operation}"),
            join=join_extreme(f"place_{operation}", operation),
            ordered=True,
            hidden=True,
        )
        for operation in ("min", "max")
    ),
    Definition(
        "pairs",
        "the pairs of a part",
        PAIR,
        always_int64,
        compose=moments.count_pairs,
        parts=("pairs",),
        join=join_total("pairs"),
        least=0,
        in_spark="regr_count({0}, {1})",
        hidden=True,
    ),
    Definition(
        "weighted_sum",
        "the sum of products of a part",
        PAIR,
        always_float64,
        compose=composed.weighted_sum,
        parts=("pairs", "weighted_sum"),
        join=join_total("weighted_sum"),
        in_spark="sum({0} * {1})",
        hidden=True,
    ),
    Definition(
        "weights_sum",
        "the weights of a part",
        PAIR,
        always_float64,
        compose=composed.sum_of_weights,
        parts=("pairs", "weights_sum"),
        join=join_total("weights_sum"),
        in_spark="sum(if({0} is null, null, {1}))",
        hidden=True,
    ),
)
