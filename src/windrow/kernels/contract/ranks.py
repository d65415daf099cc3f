"""Which ranks of a window answer an order statistic, as tables over the number of values present.

Every order statistic of SPEC section 3 is such a table, so that one kernel serves them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError

Number = int | float | Fraction


@dataclass(frozen=True, eq=False)
class RankTable:
    """For N present values (the index of each table): ``value[lower] + weight * (value[upper] - value[lower])``.

    Ranks count from 0. Without ``interpolates`` the result is ``value[lower]`` itself, in the type of the values.
    ``slope`` is about how much ``lower`` grows with each value. With ``each`` the tables have an entry for each frame,
    not for each number of values: frames have parameters of their own.
    """

    lower: npt.NDArray[np.int32]
    upper: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    slope: float
    interpolates: bool = False
    each: bool = False

    @property
    def most(self) -> int:
        """The largest number of present values that the table answers for."""
        return len(self.lower) - 1

    def weights(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The weights of frames that have so many values."""
        return self.weight if self.each else self.weight[counts]

    def part(self, first: int, last: int) -> RankTable:
        """The table for some of the frames, which is the same unless each has its own entry."""
        if not self.each:
            return self
        some = slice(first, last)
        return replace(self, lower=self.lower[some], upper=self.upper[some], weight=self.weight[some])

    def picking(self, ranks: npt.NDArray[np.int32]) -> RankTable:
        """The table that picks ``ranks`` and does not interpolate."""
        return RankTable(ranks, ranks, np.zeros(len(ranks)), self.slope, each=self.each)


class Shares(NamedTuple):
    """Parameters as fractions, all over one denominator."""

    numerator: npt.NDArray[Any]
    denominator: int | float


DECIMAL = 10**6
"""Parameters with up to six digits after the point, as people write them, are exact as whole numbers over this."""
FINE, MARGIN = 2.0**20, 8.0
"""Others are floats over ``FINE``; a rank that lies so close to a whole number is worked out exactly."""


class RanksAt(NamedTuple):
    """The two ranks that answer for some numbers of values, and how far the answer lies from the lower to the upper."""

    lower: npt.NDArray[np.signedinteger[Any]]
    upper: npt.NDArray[np.signedinteger[Any]]
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankRule:
    """An order statistic: which ranks of N values answer it, for a parameter from 0 to ``limit``.

    ``lowest`` gives the lower rank, times the denominator of the share: what is left over after dividing interpolates.
    """

    name: str
    limit: int
    lowest: Callable[[npt.NDArray[Any], Fraction | Shares], npt.NDArray[Any]]
    interpolates: bool = False
    fewer: int = 0
    less: int = 0
    """``lowest`` in numbers: max(0, N - fewer) times the share, minus less, and no more than the last rank."""

    def table(self, parameter: Number, most: int) -> RankTable:
        """The ranks for all numbers of values up to ``most``."""
        share = self._share(parameter)
        ranks = self._ranks(np.arange(most + 1), share)
        lower, upper = (np.maximum(side, 0).astype(np.int32) for side in (ranks.lower, ranks.upper))
        return RankTable(lower, upper if self.interpolates else lower, ranks.weight, float(share), self.interpolates)

    def at(self, parameter: Number, counts: npt.NDArray[np.int64]) -> RanksAt:
        """The ranks for some numbers of values; -1 for none."""
        ranks = self._ranks(counts, self._share(parameter))
        lower, upper = (np.where(counts > 0, np.maximum(side, 0), -1) for side in (ranks.lower, ranks.upper))
        return RanksAt(lower, upper, ranks.weight)

    def each(self, parameters: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> RankTable:
        """The ranks of frames that have a parameter each, and so many values."""
        self.check_each(parameters)
        whole = np.rint(parameters * DECIMAL)
        short = whole / DECIMAL == parameters
        if short.all():
            found = self._each_short(whole, counts)
        else:
            found = self._each_long(parameters, counts, ~short)
            rows = np.flatnonzero(short)
            for side, better in zip(found, self._each_short(whole[rows], counts[rows]), strict=True):
                side[rows] = better
        slope = float(parameters.mean() / self.limit) if len(parameters) else 0.0
        low = found.lower.astype(np.int32)
        high = found.upper.astype(np.int32) if self.interpolates else low
        return RankTable(low, high, found.weight, slope, self.interpolates, each=True)

    def _each_short(self, whole: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]) -> RanksAt:
        """The ranks for parameters in whole numbers over ``DECIMAL``."""
        shares = Shares(whole.astype(np.int64), DECIMAL * self.limit)
        return self._divide(self.lowest(counts, shares), shares.denominator)

    def _each_long(
        self, parameters: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], wanted: npt.NDArray[np.bool_]
    ) -> RanksAt:
        """The ranks for any parameters: in floats, and exactly where a float could round to another rank."""
        shares = Shares(parameters * (FINE / self.limit), FINE)
        place = self.lowest(counts, shares)
        found = self._divide(place, FINE)
        rest = place - np.floor(place / FINE) * FINE
        doubts = np.flatnonzero(wanted & ((rest < MARGIN) | (rest > FINE - MARGIN)))
        self.make_exact(found, parameters, counts, doubts)
        return found

    def make_exact(
        self,
        found: RanksAt,
        parameters: npt.NDArray[np.float64],
        counts: npt.NDArray[np.int64],
        rows: npt.NDArray[np.intp],
    ) -> None:
        """Work the ranks of some frames out without rounding."""
        for row in rows:
            exact = self._ranks(counts[row : row + 1], self._share(float(parameters[row])))
            for side, better in zip(found, exact, strict=True):
                side[row] = max(better[0], 0)

    def check_each(self, parameters: npt.NDArray[np.float64]) -> None:
        wrong = np.flatnonzero(~((parameters >= 0) & (parameters <= self.limit)))
        if len(wrong):
            raise DataError(
                f"{self.name} must be between 0 and {self.limit}", got=f"{parameters[wrong[0]]} in row {wrong[0]:,}"
            )

    def _divide(self, place: npt.NDArray[Any], denominator: int | float) -> RanksAt:
        floats = place.dtype.kind == "f"
        lower = np.maximum(np.floor(place / denominator) if floats else place // denominator, 0)
        if not self.interpolates:
            whole = lower.astype(np.int64)
            return RanksAt(whole, whole, np.zeros(len(whole)))
        rest = place - lower * denominator
        return RanksAt(lower.astype(np.int64), (lower + (rest > 0)).astype(np.int64), rest / denominator)

    def _share(self, parameter: Number) -> Fraction:
        return _exact(parameter, self.limit, self.name) / self.limit

    def _ranks(self, counts: npt.NDArray[Any], share: Fraction) -> RanksAt:
        # 2**53, because the weights divide as doubles; beyond it Python's own integers are exact.
        narrow = max(share.numerator * int(counts.max(initial=0)), share.denominator) < 2**53
        place = self.lowest(counts if narrow else counts.astype(object), share)
        lower, rest = place // share.denominator, place % share.denominator
        if not self.interpolates:
            whole = lower.astype(np.int64)
            return RanksAt(whole, whole, np.zeros(len(whole)))
        # The division of two whole numbers rounds once, so the weight is the nearest double to the true fraction.
        exact = rest.dtype == object
        weight = np.array([int(r) / share.denominator for r in rest]) if exact else rest / share.denominator
        return RanksAt(lower.astype(np.int64), (lower + (rest > 0)).astype(np.int64), weight.astype(np.float64))


PERCENTILE = RankRule("percentile", 100, lambda n, q: np.minimum(n * q.numerator, (n - 1) * q.denominator))
DISC = RankRule("quantile_disc", 1, lambda n, q: n * q.numerator - 1, less=1)
CONT = RankRule("quantile_cont", 1, lambda n, q: np.maximum(n - 1, 0) * q.numerator, interpolates=True, fewer=1)
INDEX = RankRule("quantile_index", 1, lambda n, q: np.maximum(n - 1, 0) * q.numerator, fewer=1)


def percentile_ranks(percent: Number, most: int) -> RankTable:
    """Nearest rank: of N values the n-th smallest, n = min(N, floor(percent·N/100 + 1)).

    >>> percentile_ranks(50, 4).lower.tolist()
    [0, 0, 1, 1, 2]
    """
    return PERCENTILE.table(percent, most)


def cont_ranks(quantile: Number, most: int) -> RankTable:
    """SQL's percentile_cont: linear interpolation at rank quantile·(N-1); 0.5 is the median.

    >>> table = cont_ranks(0.5, 4)
    >>> table.lower.tolist(), table.upper.tolist(), table.weight.tolist()
    ([0, 0, 0, 1, 1], [0, 0, 1, 1, 2], [0.0, 0.0, 0.5, 0.0, 0.5])
    """
    return CONT.table(quantile, most)


def _exact(number: Number, limit: int, name: str) -> Fraction:
    """The number as it was typed: 0.3 means three tenths, not the double next to it, or floors would go wrong."""
    if number != number or not 0 <= number <= limit:
        raise DataError(f"{name} must be between 0 and {limit}", got=number)
    return Fraction(repr(float(number))) if isinstance(number, float) else Fraction(number)
