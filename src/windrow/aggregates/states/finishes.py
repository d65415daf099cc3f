"""From sums of products to results, with the error that the sums bring along: the other half of ``moments``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from windrow.aggregates.bounded import Bounded, Float64Array
from windrow.aggregates.states.rule import Int64Array, Mask, writable
from windrow.aggregates.states.sums import SUM_LIMIT, FinishSums, SumRule, Sums, Term

X, Y = (1,), (0, 1)
XX, XXX, XXXX = (2,), (3,), (4,)

SQUARE_LIMIT = 1e-18
"""The error of a sum of squared distances, of the sum of squares, from which on it is computed anew."""
RATIO_LIMIT = 1e-10
"""The same for quotients of moments, of the quotient."""

Results = tuple[Float64Array, Mask, Mask]


def summed(average: bool) -> FinishSums:
    def finish(counts: Int64Array, sums: Mapping[Term, Sums]) -> Results:
        from windrow.kernels.states.sums import finish_sums

        found, groups = sums[X], len(counts)
        values, missing, doubtful = np.empty(groups), np.empty(groups, bool), np.empty(groups, bool)
        parts = (*found.value, found.gross, found.drift)
        whole = tuple(writable(part) for part in parts), (writable(found.plus), writable(found.minus))
        finish_sums(*whole, writable(counts), average, SUM_LIMIT, values, missing, doubtful)
        return values, missing, doubtful

    return finish


def weighted(counts: Int64Array, sums: Mapping[Term, Sums]) -> Results:
    """Whether weights sum to 0 must be certain; so must the quotient's error."""
    products, weights = sums[(1, 1)], sums[Y]
    total = weights.real()
    values = products.real() / total
    nothing = weights.finite & (total == 0) & (weights.value.error == 0)
    near = weights.finite & (np.abs(total) <= 1e3 * weights.value.error) & ~nothing
    error = (products.value.error + np.abs(values) * weights.value.error) / np.abs(total)
    spread = products.size / np.abs(total)
    doubtful = near | (products.finite & weights.finite & ~nothing & ~(error <= SUM_LIMIT * spread))
    return values, nothing | np.isnan(values), doubtful


def deviated(sample: int, root: bool) -> FinishSums:
    def finish(counts: Int64Array, sums: Mapping[Term, Sums]) -> Results:
        squares = _central(counts, sums[X], sums[X], sums[XX])
        variance = np.maximum(squares.high, 0.0) / np.maximum(counts - sample, 1)
        finite = sums[XX].finite
        values = np.where(finite, np.sqrt(variance) if root else variance, np.nan)
        doubtful = finite & ~(squares.error <= SQUARE_LIMIT * sums[XX].size)
        return values, np.isnan(values), doubtful

    return finish


def covaried(sample: int) -> FinishSums:
    def finish(counts: Int64Array, sums: Mapping[Term, Sums]) -> Results:
        products = _central(counts, sums[(1, 0)], sums[Y], sums[(1, 1)])
        finite = sums[(1, 0)].finite & sums[Y].finite
        values = np.where(finite, products.high / np.maximum(counts - sample, 1), np.nan)
        scale = np.sqrt(sums[(2, 0)].size) * np.sqrt(sums[(0, 2)].size)
        doubtful = finite & ~(products.error <= SQUARE_LIMIT * scale)
        return values, np.isnan(values), doubtful

    return finish


def correlated(counts: Int64Array, sums: Mapping[Term, Sums]) -> Results:
    """Where a side may not vary at all, that has to be looked up."""
    x, y = sums[(1, 0)], sums[Y]
    across = _central(counts, x, y, sums[(1, 1)])
    sides = [_central(counts, one, one, sums[square]) for one, square in ((x, (2, 0)), (y, (0, 2)))]
    finite = x.finite & y.finite
    apart = np.sqrt(np.maximum(sides[0].high, 0.0)) * np.sqrt(np.maximum(sides[1].high, 0.0))
    values = np.where(finite, np.clip(across.high / apart, -1.0, 1.0), np.nan)
    lost = across.error / apart + sum(side.error / side.high for side in sides)
    return values, np.isnan(values) & ~finite, finite & ~(lost <= RATIO_LIMIT)


def skewed(counts: Int64Array, sums: Mapping[Term, Sums]) -> Results:
    second, third, _ = _moments(counts, sums)
    n = np.maximum(counts, 3).astype(np.float64)
    values = n * np.sqrt(n - 1) / (n - 2) * (third.high / (second.high * np.sqrt(second.high)))
    lost = third.error / second.high**1.5 + 3 * second.error / second.high
    return _judge(values, lost, sums)


def peaked(counts: Int64Array, sums: Mapping[Term, Sums]) -> Results:
    second, _, fourth = _moments(counts, sums)
    n = np.maximum(counts, 4).astype(np.float64)
    part = n * (n + 1) * (n - 1) / ((n - 2) * (n - 3))
    values = part * (fourth.high / second.high**2) - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))
    lost = (fourth.error / second.high**2 + 4 * second.error / second.high) * n
    return _judge(values, lost, sums)


def _judge(values: Float64Array, lost: Float64Array, sums: Mapping[Term, Sums]) -> Results:
    finite = sums[X].finite
    values = np.where(finite, values, np.nan)
    return values, np.isnan(values) & ~finite, finite & ~(lost <= RATIO_LIMIT)


def _central(counts: Int64Array, one: Sums, other: Sums, product: Sums) -> Bounded:
    """The sum of products of distances from the means."""
    whole = np.maximum(counts, 1).astype(np.float64)
    return product.value.minus(one.value.times(other.value).over(whole))


def _moments(counts: Int64Array, sums: Mapping[Term, Sums]) -> tuple[Bounded, Bounded, Bounded]:
    """The second, third and fourth central sums, as far as their terms are there."""
    whole = np.maximum(counts, 1).astype(np.float64)
    x, xx, xxx = sums[X].value, sums[XX].value, sums[XXX].value
    mean = x.over(whole)
    second = xx.minus(x.times(mean))
    third = xxx.minus(_times(3, xx.times(mean))).plus(_times(2, x.times(mean).times(mean)))
    if XXXX not in sums:
        return second, third, second
    fourth = sums[XXXX].value.minus(_times(4, xxx.times(mean))).plus(_times(6, xx.times(mean).times(mean)))
    return second, third, fourth.minus(_times(3, x.times(mean).times(mean).times(mean)))


def _times(factor: float, number: Bounded) -> Bounded:
    shape = np.full_like(number.high, factor)
    nothing = np.zeros_like(shape)
    return number.times(Bounded(shape, nothing, nothing))


SUMMED = SumRule((X,), summed(average=False), whole=True)
AVERAGED = SumRule((X,), summed(average=True), whole=True, averages=True)
WEIGHTED = SumRule(((1, 1), Y), weighted)
CORRELATED = SumRule(((1, 0), Y, (2, 0), (1, 1), (0, 2)), correlated, least=2)
SKEWED = SumRule((X, XX, XXX), skewed, least=3)
PEAKED = SumRule((X, XX, XXX, XXXX), peaked, least=4)


def deviation_state(sample: int, root: bool) -> SumRule:
    return SumRule((X, XX), deviated(sample, root), least=1 + sample)


def covariance_state(sample: int) -> SumRule:
    return SumRule(((1, 0), Y, (2, 0), (1, 1), (0, 2)), covaried(sample), least=1 + sample)
