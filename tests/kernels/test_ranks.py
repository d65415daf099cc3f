"""Rank tables against the definitions, worked out with whole numbers and fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.kernels.contract.ranks import DISC, INDEX, cont_ranks, percentile_ranks

shares = st.one_of(
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1 / 3, 5e-324]),
    st.floats(0, 1),
    st.fractions(0, 1),
)


@given(st.one_of(st.integers(0, 100), st.floats(0, 100)), st.integers(0, 200))
def test_percentile_is_the_nearest_rank(percent: float, most: int) -> None:
    exact = Fraction(str(percent))
    table = percentile_ranks(percent, most)
    assert table.most == most
    for count in range(1, most + 1):
        assert table.lower[count] + 1 == min(count, floor(exact * count / 100 + 1))


@given(shares, st.integers(0, 200))
def test_quantiles_follow_their_definitions(share: float | Fraction, most: int) -> None:
    exact = Fraction(str(share))
    disc, index, cont = DISC.table(share, most), INDEX.table(share, most), cont_ranks(share, most)
    for count in range(1, most + 1):
        # percentile_disc: the first value whose cumulative distribution reaches the share.
        assert disc.lower[count] == next(k for k in range(count) if Fraction(k + 1, count) >= exact)
        assert index.lower[count] == floor(exact * (count - 1))
        place = exact * (count - 1)
        assert (cont.lower[count], cont.upper[count]) == (floor(place), ceil(place))
        assert cont.weight[count] == float(place - floor(place))


def test_decimals_mean_what_was_typed() -> None:
    # In doubles 0.3 is a little less than three tenths, and 29 / 100 * 100 is less than 29.
    assert percentile_ranks(0.3, 1000).lower[1000] == 3
    assert percentile_ranks(29, 100).lower[100] == 29
    assert DISC.table(0.7, 10).lower[10] == 6


def test_cont_ranks_agree_with_numpy() -> None:
    values = np.sort(np.random.default_rng(1).normal(size=37))
    for share in (0.0, 0.25, 0.5, 0.9, 1.0):
        table = cont_ranks(share, 37)
        low, high = values[table.lower[37]], values[table.upper[37]]
        assert low + table.weight[37] * (high - low) == pytest.approx(np.quantile(values, share), abs=1e-12)


@pytest.mark.parametrize("wrong", [-1, 140, float("nan")])
def test_shares_outside_their_range_are_refused(wrong: float) -> None:
    with pytest.raises(DataError, match="percentile must be between 0 and 100, got"):
        percentile_ranks(wrong, 5)
    with pytest.raises(DataError, match="quantile_cont must be between 0 and 1, got"):
        cont_ranks(wrong, 5)
