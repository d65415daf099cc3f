"""Aggregates made of central moments: covariances, correlation, skewness and kurtosis.

With d the distance of a value from the mean of its neighbourhood, the sums of d², d³, d⁴ and of products of two
arguments' distances say all that these aggregates need. There are two ways to them:

- *directly*: the mean of each neighbourhood first, then its distances. Always accurate; each value is looked at again
  in every neighbourhood that holds it.
- *shifted*: all values are measured from one middle, powers of that are summed by whatever kernel sums fastest, and the
  sums are moved to each neighbourhood's own mean. Where that would lose digits, because a neighbourhood lies far from
  the middle and close together, it is computed directly after all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from windrow.aggregates.definition import Array, Compose, Computed, Float64Array, Int64Array, Join, Parts, Primitives
from windrow.kernels.contract.outcomes import centre

Term = tuple[int, int]
"""How often the first and the second argument's distance are multiplied: (2, 0) is the sum of squares."""

XX, XY, YY, XXX, XXXX = (2, 0), (1, 1), (0, 2), (3, 0), (4, 0)

LOST = 1e-10
"""How much of a moment rounding may take before it is computed directly."""

_EXACT = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Central:
    """Central moments of groups of values: how many, their means, and the sums of distances' products by term."""

    count: Int64Array
    means: tuple[Float64Array, ...]
    sums: dict[Term, Float64Array]


def _close(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms, and all of lower degree that moving or joining them takes."""
    whole = {(i, j) for a, b in terms for i in range(a + 1) for j in range(b + 1) if i + j >= 2}
    return tuple(sorted(whole | set(terms), key=lambda term: (sum(term), term)))


def central(primitives: Primitives, terms: tuple[Term, ...], arguments: int) -> Central:
    """The moments of every neighbourhood."""
    counts = primitives.counts()
    if primitives.method == "naive":
        every = np.ones(counts.shape, bool)
        found = Central(counts, _zeros(counts, arguments), {term: np.zeros(counts.shape) for term in _close(terms)})
        _put_direct(primitives, found, every)
        return found
    found, doubtful = _shift(primitives, counts, terms, arguments)
    if doubtful.any():
        _put_direct(primitives, found, doubtful)
    return found


def _zeros(counts: Int64Array, arguments: int) -> tuple[Float64Array, ...]:
    return tuple(np.zeros(counts.shape) for _ in range(arguments))


def _shift(
    primitives: Primitives, counts: Int64Array, terms: tuple[Term, ...], arguments: int
) -> tuple[Central, npt.NDArray[np.bool_]]:
    """Moments from sums of powers about one middle, and where these are not to be trusted."""
    away = []
    for argument in range(arguments):
        reals = primitives.reals(argument)
        middle = centre(reals, ~np.isnan(reals))
        away.append((reals - middle, middle))
    powers: dict[Term, Float64Array] = {}
    closed = _close(terms)
    firsts: tuple[Term, ...] = ((1, 0), (0, 1))[:arguments]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for term in (*firsts, *closed):
            powers[term] = primitives.sums(f"power {term}", _power(away, term))
        means = tuple(powers[first] / np.maximum(counts, 1) for first in firsts)
        sums = {term: _move(powers, counts, means, term) for term in closed}
        doubtful = _doubtful(powers, sums, counts, terms)
        found = Central(counts, tuple(mean + middle for mean, (_, middle) in zip(means, away, strict=True)), sums)
    return found, doubtful


def _power(away: list[tuple[Float64Array, float]], term: Term) -> Callable[[], Float64Array]:
    def work_out() -> Float64Array:
        product = None
        for (distance, _), times in zip(away, term, strict=False):
            for _ in range(times):
                product = distance if product is None else product * distance
        assert product is not None
        return product

    return work_out


def _move(
    powers: dict[Term, Float64Array], counts: Int64Array, means: tuple[Float64Array, ...], term: Term
) -> Float64Array:
    """The sum of a term about the means, from sums about the middle: the binomial theorem for each argument."""
    total = np.zeros(counts.shape)
    # A value by itself is its own mean. Rounding would leave something, which joined parts would take at its word.
    alone = np.sum([0.0 * mean for mean, times in zip(means, term, strict=False) if times], axis=0)
    for i in range(term[0] + 1):
        for j in range(term[1] + 1):
            known = counts.astype(np.float64) if (i, j) == (0, 0) else powers[(i, j)]
            factor = comb(term[0], i) * comb(term[1], j)
            part = factor * known
            for mean, missing in zip(means, (term[0] - i, term[1] - j), strict=False):
                part = part * (-mean) ** missing
            total = total + part
    if term in (XX, YY):
        total = np.maximum(total, 0.0)
    return np.where(counts == 1, alone, total)


def _doubtful(
    powers: dict[Term, Float64Array], sums: dict[Term, Float64Array], counts: Int64Array, terms: tuple[Term, ...]
) -> npt.NDArray[np.bool_]:
    """Where sums about the middle are so much larger than those about the mean that too few digits are left."""
    degree = max(sum(term) for term in terms)
    doubtful = np.zeros(counts.shape, bool)
    for square in (XX, YY):
        if square in sums:
            whole, own = powers[square], sums[square]
            # A sum that met an infinity is none, however it is computed.
            lost = np.isfinite(whole) & (counts > 1)
            doubtful |= lost & ~((whole / own) ** (degree / 2) * _EXACT * 16 < LOST)
    return doubtful


def _put_direct(primitives: Primitives, found: Central, wanted: npt.NDArray[np.bool_]) -> None:
    """Moments of some neighbourhoods computed from their own means, put in place."""
    reals = [primitives.reals(argument).reshape(-1) for argument in range(len(found.means))]
    for numbers, cells, starts in primitives.lists(wanted):
        some = direct([values[cells] for values in reals], starts, tuple(found.sums))
        for mean, there in zip(some.means, found.means, strict=True):
            there.reshape(-1)[numbers] = mean
        for term, values in some.sums.items():
            found.sums[term].reshape(-1)[numbers] = values


def direct(columns: list[Float64Array], starts: Int64Array, terms: tuple[Term, ...]) -> Central:
    """Moments of groups that lie side by side; ``starts`` has where each begins, and the end of the last."""
    counts = np.diff(starts)
    empty = {term: np.zeros(len(counts)) for term in terms}
    if not len(columns[0]):
        return Central(counts, _zeros(counts, len(columns)), empty)
    some = counts > 0
    begins = starts[:-1][some]
    many, present = counts[some], counts[some].astype(np.float64)
    means, distances = [], []
    with np.errstate(invalid="ignore", over="ignore"):
        for values in columns:
            mean = np.add.reduceat(values, begins) / present
            away = values - np.repeat(mean, many)
            # What the first mean is off by shows in the sum of distances, which should be 0.
            off = np.where(np.isfinite(mean), np.add.reduceat(away, begins) / present, 0.0)
            means.append(mean + off)
            distances.append((away - np.repeat(off, many), 0.0))
        sums = {term: np.add.reduceat(_power(distances, term)(), begins) for term in terms}
    place = np.zeros(len(counts))
    return Central(
        counts,
        tuple(_at(place, some, mean) for mean in means),
        {term: _at(place, some, values) for term, values in sums.items()},
    )


def _at(place: Float64Array, some: Array, values: Float64Array) -> Float64Array:
    laid = place.copy()
    laid[some] = values
    return laid


# What aggregates make of moments


def covariance(sample: int) -> Compose:
    """``sample`` is 1 for the covariance of a sample, 0 for that of a population."""
    return _compose((XY,), 2, lambda found: _share(found.sums[XY], found.count - sample))


def correlation(primitives: Primitives) -> Computed:
    found = central(primitives, (XX, XY, YY), 2)
    return _correlate(found, _steady(primitives, 2))


def skewness(primitives: Primitives) -> Computed:
    """Bias-corrected, as in pandas."""
    return _find_skew(central(primitives, (XXX,), 1), _steady(primitives, 1))


def kurtosis(primitives: Primitives) -> Computed:
    """Bias-corrected excess, as in pandas."""
    return _find_kurtosis(central(primitives, (XXXX,), 1), _steady(primitives, 1))


def _compose(terms: tuple[Term, ...], arguments: int, finish: Callable[[Central], Float64Array]) -> Compose:
    def compose(primitives: Primitives) -> Computed:
        return Computed(finish(central(primitives, terms, arguments)))

    return compose


def _steady(primitives: Primitives, arguments: int) -> npt.NDArray[np.bool_]:
    """Where an argument does not vary: its smallest value is its largest."""
    steady = np.zeros(primitives.counts().shape, bool)
    for argument in range(arguments):
        steady |= primitives.extremes(argument, "min") == primitives.extremes(argument, "max")
    return steady


def _share(total: Float64Array, count: Int64Array) -> Float64Array:
    return total / np.maximum(count, 1)


def _correlate(found: Central, steady: npt.NDArray[np.bool_]) -> Computed:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        apart = np.sqrt(found.sums[XX]) * np.sqrt(found.sums[YY])
        return Computed(np.clip(found.sums[XY] / np.where(steady, 1.0, apart), -1.0, 1.0), steady)


def _find_skew(found: Central, steady: npt.NDArray[np.bool_]) -> Computed:
    n = np.maximum(found.count, 3).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        shape = found.sums[XXX] / np.where(steady, 1.0, found.sums[XX] * np.sqrt(found.sums[XX]))
        return Computed(n * np.sqrt(n - 1) / (n - 2) * shape, steady)


def _find_kurtosis(found: Central, steady: npt.NDArray[np.bool_]) -> Computed:
    n = np.maximum(found.count, 4).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        shape = found.sums[XXXX] / np.where(steady, 1.0, found.sums[XX] ** 2)
        part = n * (n + 1) * (n - 1) / ((n - 2) * (n - 3))
        return Computed(part * shape - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3)), steady)


# Parts: a moment each, and how those of several parts become one


def part_name(term: Term, arguments: int) -> str:
    """The hidden aggregate that gives one moment of a part: moment_xxx, pair_moment_xy."""
    return ("pair_" if arguments == 2 else "") + "moment_" + "x" * term[0] + "y" * term[1]


def moment(term: Term, arguments: int) -> Compose:
    """A hidden aggregate: the sum of one term, which squares beside it tell when to doubt."""
    terms = (XX, term, YY) if term == XY else (term,)
    return _compose(terms, arguments, lambda found: found.sums[term])


def paired_mean(argument: int) -> Compose:
    """A hidden aggregate: the mean of one of two arguments, over the cells that have both."""
    return _compose((XY,), 2, lambda found: found.means[argument])


def paired_extreme(argument: int, operation: str) -> Compose:
    """A hidden aggregate: the smallest or largest value of one of two arguments, over the cells that have both."""

    def compose(primitives: Primitives) -> Computed:
        return Computed(primitives.extremes(argument, operation).astype(np.float64))

    return compose


def count_pairs(primitives: Primitives) -> Computed:
    """A hidden aggregate: the cells that have both arguments."""
    return Computed(primitives.counts())


def joined_moments(parts: Parts, terms: tuple[Term, ...], arguments: int) -> Central:
    """The moments of groups from those of their parts (Pébay's formulas, for parts of any number)."""
    counts = parts.total("count" if arguments == 1 else "pairs")
    each = parts.values("count" if arguments == 1 else "pairs").astype(np.float64)
    names = ("avg",) if arguments == 1 else ("pair_mean_x", "pair_mean_y")
    whole = np.maximum(counts, 1)
    with np.errstate(invalid="ignore", over="ignore"):
        means = tuple(parts.sum(each * parts.values(name)) / whole for name in names)
        away = [parts.values(name) - parts.spread(mean) for name, mean in zip(names, means, strict=True)]
        sums = {term: parts.sum(_moved_part(parts, each, away, term)) for term in _close(terms)}
    return Central(counts.astype(np.int64), means, sums)


def _moved_part(parts: Parts, each: Float64Array, away: list[Float64Array], term: Term) -> Float64Array:
    """A part's sum of a term about the mean of its group."""
    total = np.zeros(len(each))
    for i in range(term[0] + 1):
        for j in range(term[1] + 1):
            if i + j == 1:
                continue  # a part's own distances sum to 0
            known = each if i + j == 0 else parts.values(part_name((i, j), len(away)))
            product = comb(term[0], i) * comb(term[1], j) * known
            for distance, missing in zip(away, (term[0] - i, term[1] - j), strict=False):
                product = product * distance**missing
            total = total + product
    return np.where(each > 0, total, 0.0)


def parts_of(terms: tuple[Term, ...], arguments: int, varies: bool = False) -> tuple[str, ...]:
    """The hidden aggregates that joining these terms takes; ``varies`` asks whether values differ at all."""
    heads = ("count", "avg") if arguments == 1 else ("pairs", "pair_mean_x", "pair_mean_y")
    extremes = ("min", "max") if arguments == 1 else ("pair_min_x", "pair_max_x", "pair_min_y", "pair_max_y")
    return (*heads, *(part_name(term, arguments) for term in _close(terms)), *(extremes if varies else ()))


def join_moment(term: Term, arguments: int) -> Join:
    return lambda parts: Computed(joined_moments(parts, (term,), arguments).sums[term])


def join_paired_mean(argument: int) -> Join:
    return lambda parts: Computed(joined_moments(parts, (), 2).means[argument])


def join_covariance(sample: int) -> Join:
    def join(parts: Parts) -> Computed:
        found = joined_moments(parts, (XY,), 2)
        return Computed(_share(found.sums[XY], found.count - sample))

    return join


def join_correlation(parts: Parts) -> Computed:
    found = joined_moments(parts, (XX, XY, YY), 2)
    return _correlate(found, _steady_parts(parts, (("pair_min_x", "pair_max_x"), ("pair_min_y", "pair_max_y"))))


def join_skewness(parts: Parts) -> Computed:
    return _find_skew(joined_moments(parts, (XXX,), 1), _steady_parts(parts, (("min", "max"),)))


def join_kurtosis(parts: Parts) -> Computed:
    return _find_kurtosis(joined_moments(parts, (XXXX,), 1), _steady_parts(parts, (("min", "max"),)))


def join_variance(sample: int, root: bool) -> Join:
    def join(parts: Parts) -> Computed:
        found = joined_moments(parts, (XX,), 1)
        variance = _share(found.sums[XX], found.count - sample)
        return Computed(np.sqrt(variance) if root else variance)

    return join


def join_average(parts: Parts) -> Computed:
    return Computed(joined_moments(parts, (), 1).means[0])


def _steady_parts(parts: Parts, sides: tuple[tuple[str, str], ...]) -> npt.NDArray[np.bool_]:
    pairs = [(parts.extreme(least, "min"), parts.extreme(most, "max")) for least, most in sides]
    return np.asarray(np.logical_or.reduce([least == most for least, most in pairs]))
