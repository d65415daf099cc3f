"""Which ranks of a window answer an order statistic, as tables over the number of values present.

Every order statistic of SPEC section 3 is such a table, so that one kernel serves them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError

Number = int | float | Fraction


@dataclass(frozen=True, eq=False)
class RankTable:
    """For N present values (the index of each table): ``value[lower] + weight * (value[upper] - value[lower])``.

    Ranks count from 0. Without ``interpolates`` the result is ``value[lower]`` itself, in the type of the values.
    ``slope`` is about how much ``lower`` grows with each value.
    """

    lower: npt.NDArray[np.int32]
    upper: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    slope: float
    interpolates: bool = False

    @property
    def most(self) -> int:
        """The largest number of present values that the table answers for."""
        return len(self.lower) - 1

    def picking(self, ranks: npt.NDArray[np.int32]) -> RankTable:
        """The table that picks ``ranks`` and does not interpolate."""
        return RankTable(ranks, ranks, np.zeros(len(ranks)), self.slope)


def percentile_ranks(percent: Number, most: int) -> RankTable:
    """Nearest rank: of N values the n-th smallest, n = min(N, floor(percent·N/100 + 1)).

    >>> percentile_ranks(50, 4).lower.tolist()
    [0, 0, 1, 1, 2]
    """
    share = _exact(percent, 100, "percentile") / 100
    count = _counts(most, share)
    return _picked(np.minimum(count * share.numerator // share.denominator, count - 1), share)


def disc_ranks(quantile: Number, most: int) -> RankTable:
    """SQL's percentile_disc: the first value whose cumulative share is at least ``quantile``.

    >>> disc_ranks(0.5, 4).lower.tolist()
    [0, 0, 0, 1, 1]
    """
    share = _exact(quantile, 1, "quantile_disc")
    count = _counts(most, share)
    return _picked(-(-count * share.numerator // share.denominator) - 1, share)


def cont_ranks(quantile: Number, most: int) -> RankTable:
    """SQL's percentile_cont: linear interpolation at rank quantile·(N-1); 0.5 is the median.

    >>> table = cont_ranks(0.5, 4)
    >>> table.lower.tolist(), table.upper.tolist(), table.weight.tolist()
    ([0, 0, 0, 1, 1], [0, 0, 1, 1, 2], [0.0, 0.0, 0.5, 0.0, 0.5])
    """
    share = _exact(quantile, 1, "quantile_cont")
    place = np.maximum(_counts(most, share) - 1, 0) * share.numerator
    lower, rest = place // share.denominator, place % share.denominator
    # The division of two whole numbers rounds once, so the weight is the nearest double to the true fraction.
    weight = np.array([int(r) / share.denominator for r in rest]) if rest.dtype == object else rest / share.denominator
    upper = lower + (rest > 0)
    return RankTable(lower.astype(np.int32), upper.astype(np.int32), weight, float(share), interpolates=True)


def index_ranks(quantile: Number, most: int) -> RankTable:
    """Paper 003's rule: the k-th smallest counted from 0, k = floor(quantile·(N-1)).

    >>> index_ranks(0.5, 4).lower.tolist()
    [0, 0, 0, 1, 1]
    """
    share = _exact(quantile, 1, "quantile_index")
    return _picked((_counts(most, share) - 1) * share.numerator // share.denominator, share)


def _picked(rank: npt.NDArray[Any], share: Fraction) -> RankTable:
    lower = np.maximum(rank, 0).astype(np.int32)
    return RankTable(lower, lower, np.zeros(len(lower)), float(share))


def _exact(number: Number, limit: int, name: str) -> Fraction:
    """The number as it was typed: 0.3 means three tenths, not the double next to it, or floors would go wrong."""
    if number != number or not 0 <= number <= limit:
        raise DataError(f"{name} must be between 0 and {limit}", got=number)
    return Fraction(repr(float(number))) if isinstance(number, float) else Fraction(number)


def _counts(most: int, share: Fraction) -> npt.NDArray[Any]:
    """0..most, as Python integers where a product with ``share`` could overflow or lose digits."""
    # 2**53, because the weights divide as doubles.
    narrow = max(share.numerator * most, share.denominator) < 2**53
    return np.arange(most + 1, dtype=np.int64 if narrow else object)


Constructor = Callable[[Number, int], RankTable]
