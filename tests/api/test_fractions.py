"""Quantiles whose fraction is another one for each frame: as if each frame were asked for on its own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import windrow as wr
from windrow.kernels.contract.ranks import CONT, DISC, INDEX, PERCENTILE, RankRule
from windrow.kernels.frames.fractions import rank_fractions

RULES = {"percentile": PERCENTILE, "quantile_disc": DISC, "quantile_cont": CONT, "quantile": INDEX}
WAYS: list[dict[str, Any]] = [
    {"method": "auto"},
    *({"method": method} for method in ("naive", "incremental", "reuse", "replace")),
    *({"strategy": strategy} for strategy in ("tiny", "ordered", "bitset", "wavelet")),
]
TYPED = st.one_of(st.floats(0, 1), st.integers(0, 100).map(lambda n: n / 100), st.integers(0, 7).map(lambda n: n / 7))


@given(st.sampled_from(sorted(RULES)), st.lists(st.tuples(TYPED, st.integers(0, 3000)), min_size=1, max_size=20))
def test_ranks_of_each_frame_are_those_of_its_fraction(name: str, asked: list[tuple[float, int]]) -> None:
    rule: RankRule = RULES[name]
    fractions = np.array([fraction * rule.limit for fraction, _ in asked])
    counts = np.array([count for _, count in asked])
    for found in (rule.each(fractions, counts), rank_fractions(rule, fractions, counts)):
        for k, count in enumerate(counts):
            alone = rule.table(float(fractions[k]), int(count))
            assert (found.lower[k], found.upper[k]) == (alone.lower[count], alone.upper[count])
            assert found.weight[k] == pytest.approx(alone.weight[count], abs=1e-11)
        assert found.slope == pytest.approx(fractions.mean() / rule.limit)


def pick(values: list[Any], name: str, fraction: float) -> Any:
    """The definition, in whole numbers: nothing is shared with the kernels."""
    share, count = Fraction(repr(fraction)) / RULES[name].limit, len(values)
    ordered = sorted(values)
    if name == "percentile":
        return ordered[min(count, int(share * count) + 1) - 1]
    if name == "quantile_disc":
        return ordered[max(0, -(-share * count // 1) - 1)]
    place = share * (count - 1)
    low = ordered[int(place)]
    if name == "quantile":
        return low
    return float(low) + float(place % 1) * (float(ordered[min(count - 1, int(place) + 1)]) - float(low))


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rows = draw(st.integers(1, 60))
    elements = draw(st.sampled_from([st.integers(0, 5), st.integers(-(10**15), 10**15), st.floats(-9, 9, width=16)]))
    values = draw(arrays(np.float64 if "floats" in repr(elements) else np.int64, rows, elements=elements))
    row = np.arange(rows)
    width = draw(st.integers(1, 20))
    back = draw(arrays(np.int64, rows, elements=st.integers(0, 9))) if draw(st.booleans()) else np.zeros(rows, int)
    lo, hi = row - width + back, row + 1 - back // 3
    return values, lo, hi, draw(arrays(np.float64, rows, elements=TYPED))


@given(problems(), st.sampled_from(sorted(RULES)), st.sampled_from(WAYS))
def test_every_method_gives_each_frame_its_own_quantile(
    problem: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], name: str, way: dict[str, Any]
) -> None:
    values, lo, hi, fractions = problem
    fractions = fractions * RULES[name].limit
    found = wr.framed(values, name, lo, hi, fraction=fractions, **way)
    for k in range(len(lo)):
        frame = values[max(0, lo[k]) : max(0, hi[k])].tolist()
        if not frame:
            assert np.isnan(found[k])
        else:
            assert found[k] == pytest.approx(pick(frame, name, float(fractions[k])), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [3000, 40_000])
def test_many_rows_by_compiled_code(size: int) -> None:
    chance = np.random.default_rng(size)
    row, fractions = np.arange(size), chance.random(size)
    for values in (chance.random(size), chance.integers(0, 50, size)):
        first = wr.framed(values, "quantile_cont", row - 99, row + 1, fraction=fractions)
        ways: list[dict[str, Any]] = [{"strategy": "bitset"}, {"strategy": "wavelet"}, {"method": "replace"}]
        if values.dtype.kind == "i":
            ways += [{"strategy": "lanes"}, {"strategy": "counters"}]
        for way in ways:
            again = wr.framed(values, "quantile_cont", row - 99, row + 1, fraction=fractions, **way)
            np.testing.assert_allclose(first, again, rtol=1e-12)


@pytest.mark.parametrize(("width", "low"), [(20, 0), (256, -3), (300, 0)])
def test_windows_of_few_values_count_in_lanes_of_one_and_two_bytes(width: int, low: int) -> None:
    chance = np.random.default_rng(width)
    row, fractions = np.arange(4000), np.round(chance.random(4000), 3)
    values = chance.integers(low, 90, 4000)
    for name in ("quantile_disc", "quantile_cont"):
        one, other = (
            wr.framed(values, name, row - width // 2, row + width // 2, fraction=fractions, strategy=strategy)
            for strategy in ("lanes", "bitset")
        )
        np.testing.assert_array_equal(one, other)


def test_an_aggregate_may_bring_its_fractions_and_text_and_time_have_quantiles_too() -> None:
    words = np.array(["d", "b", "c", "a"])
    days = np.array(["2026-01-04", "2026-01-02", "2026-01-03", "2026-01-01"], "M8[D]")
    bounds: dict[str, Any] = {"lo": np.zeros(4, int), "hi": np.arange(4) + 1}
    fractions = np.array([0.0, 1.0, 0.5, 0.0])
    assert wr.framed(words, wr.quantile("x", fractions), **bounds).tolist() == ["d", "d", "c", "a"]
    assert wr.framed(days, wr.percentile("x", 100 * fractions), **bounds).tolist() == days[[0, 0, 2, 3]].tolist()


@pytest.mark.parametrize(("rows", "at"), [(1000, "700"), (70_000, "60,000")])
@pytest.mark.parametrize("wrong", [None, np.nan, -0.1, 1.1])
def test_a_wrong_fraction_is_named_with_its_row(wrong: float | None, rows: int, at: str) -> None:
    fractions = np.full(rows, 0.5, object)
    fractions[int(at.replace(",", ""))] = wrong
    row = np.arange(rows)
    with pytest.raises(wr.DataError, match=rf"must be between 0 and 1, got (nan|-0.1|1.1) in row {at}"):
        wr.framed(row, "quantile", row - 9, row + 1, fraction=fractions)
    hidden = np.ma.masked_array(np.full(rows, 0.5), np.arange(rows) == int(at.replace(",", "")))
    with pytest.raises(wr.DataError, match=rf"must be between 0 and 1, got nan in row {at}"):
        wr.framed(row, "quantile", row - 9, row + 1, fraction=hidden)


def test_what_cannot_take_fractions_says_so() -> None:
    row = np.arange(5)
    with pytest.raises(wr.DataError, match="must be a number here"):
        wr.sliding(row, wr.quantile("x", "q"), window=3)
    with pytest.raises(wr.DataError, match="takes no parameter"):
        wr.framed(row, "median", row, row + 1, fraction=row / 5)
    with pytest.raises(wr.DataError, match="a fraction for each of 5 frames"):
        wr.framed(row, "quantile", row, row + 1, fraction=[0.5])
    with pytest.raises(wr.DataError, match=r'(?s)each of 5 frames.*as in "quantile_index\(x, 0.5\)"'):
        wr.framed(row, "quantile", row, row + 1, fraction=0.5)
    with pytest.raises(wr.DataError, match="each frame has a fraction of its own"):
        wr.framed(row, "quantile", row, row + 1, fraction=row / 5, strategy="windows")


def test_no_hint_names_what_was_given() -> None:
    with pytest.raises(wr.UnknownNameError) as caught:
        wr.framed([1], "quantile_idx(0.5)", [0], [1])
    assert "Did you mean 'quantile_index'?" in str(caught.value)
    from windrow.errors import nearest

    assert "'quantile_index'" not in nearest("quantile_index", ["quantile_index", "quantile_disc"])


def test_quantile_is_quantile_index_in_text_and_in_python(local: Any) -> None:
    array = local.create("A", "<a: float64> [i=1:5]")
    array.write({"a": np.array([5.0, 1.0, 4.0, 2.0, 3.0])})
    text = local.query("select quantile(a, 0.5) as m, quantile_index(a, 0.5) as n from A window (i 3)").compute()
    asked = array.window(i=3).agg(m=wr.quantile("a", 0.5)).compute()
    assert text["m"].values.tolist() == text["n"].values.tolist() == asked["m"].values.tolist() == [4, 2, 3, 2, 3]
    assert float(local.query("aggr A quantile(a, 0.25)").compute().to_array().item()) == 2.0


def test_two_fractions_are_one_too_many() -> None:
    row = np.arange(3)
    with pytest.raises(wr.DataError, match=r"two fractions were given, got 'quantile\(0\.3\)' and fraction"):
        wr.framed(row * 1.0, "quantile(0.3)", row, row + 1, fraction=[0.1, 0.2, 0.3])
