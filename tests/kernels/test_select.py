"""Order statistics against windows cut out one by one and sorted in plain Python."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from windrow.errors import DataError, UnknownNameError
from windrow.kernels.contract.ranks import DISC, INDEX, RankTable, cont_ranks, percentile_ranks
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.order import bitset, lane_plans
from windrow.kernels.windows import choose_windows, compute_windows

STRATEGIES = ("direct", "series", "rows", "bitset")


def window_select(
    values: Any, sweeps: list[Sweep], ranks: RankTable, out: Any = None, *, valid: Any = None, strategy: str = "direct"
) -> Any:
    return compute_windows("select", values, valid, sweeps, ranks, out, strategy)


def plan_select(shape: tuple[int, ...], dtype: Any, sweeps: list[Sweep], ranks: RankTable) -> str:
    return str(choose_windows("select", shape, dtype, sweeps, ranks))


def expected(values: Any, sweeps: list[Sweep], ranks: RankTable, missing: Any = None) -> list[Any]:
    """The result of every window, outputs in C order, None where nothing is present."""
    results = []
    for index in itertools.product(*(range(sweep.count) for sweep in sweeps)):
        ranges = []
        for k, sweep, extent in zip(index, sweeps, values.shape, strict=True):
            position = sweep.first + k * sweep.step
            cells = range(position + sweep.start, position + sweep.stop + 1)
            ranges.append([cell for cell in cells if 0 <= cell < extent])
        cells = list(itertools.product(*ranges))
        window = sorted(values[cell].item() for cell in cells if not (missing is not None and missing[cell]))
        results.append(answer(window, ranks) if window else None)
    return results


def answer(window: list[Any], ranks: RankTable) -> Any:
    count = len(window)
    low, high, weight = window[ranks.lower[count]], window[ranks.upper[count]], float(ranks.weight[count])
    if not ranks.interpolates:
        return low
    low, high = float(low), float(high)
    if low == high or weight == 0:
        return low
    distance = high - low
    return low + weight * distance if math.isfinite(distance) else low * (1 - weight) + high * weight


def plain(selection: Any) -> list[Any]:
    """Results as a list, None where there is none."""
    values = selection.exact
    if values.dtype.kind == "f":
        return [None if math.isnan(x) else x for x in values.reshape(-1).tolist()]
    flat = values.view(np.int64) if values.dtype.kind in "mM" else values
    gone = np.zeros(values.shape, bool) if selection.empty is None else selection.empty
    return [None if m else x for x, m in zip(flat.reshape(-1).tolist(), gone.reshape(-1), strict=True)]


def check(values: Any, sweeps: list[Sweep], ranks: RankTable, strategy: str, missing: Any = None) -> None:
    try:
        selection = window_select(values, sweeps, ranks, strategy=strategy)
    except DataError as error:
        assert f"strategy {strategy} cannot do" in str(error)  # noqa: PT017
        return
    wanted = expected(values, sweeps, ranks, missing)
    # Only the middle of two opposite infinities is NaN though there are values.
    assert plain(selection) == [None if isinstance(x, float) and math.isnan(x) else x for x in wanted]
    assert selection.exact.shape == tuple(sweep.count for sweep in sweeps)


def one_sweep(extent: int, reach: int) -> st.SearchStrategy[Sweep]:
    everywhere = st.builds(
        lambda start, width: Sweep(0, extent, start, start + width),
        st.integers(-reach, reach // 2),
        st.integers(0, reach),
    )
    anywhere = st.builds(
        lambda first, count, start, width, step: Sweep(first, count, start, start + width, step),
        st.integers(-3, extent),
        st.integers(0, extent + 2),
        st.integers(-reach, reach // 2),
        st.integers(0, reach),
        st.integers(1, 4),
    )
    beyond = st.just(Sweep(0, extent, -3 * extent, 3 * extent))
    alone = st.just(Sweep(0, extent, 0, 0))
    return st.one_of(everywhere, anywhere, alone, beyond)


def tables(most: int) -> st.SearchStrategy[RankTable]:
    share = st.sampled_from([0.0, 0.1, 0.5, 0.7, 1.0])
    return st.one_of(
        share.map(lambda q: percentile_ranks(100 * q, most)),
        share.map(lambda q: cont_ranks(q, most)),
        share.map(lambda q: DISC.table(q, most)),
        share.map(lambda q: INDEX.table(q, most)),
    )


@st.composite
def floats(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Fields of many kinds: ties, constants, infinities, holes, nothing at all."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    values = draw(
        st.sampled_from(
            [
                generator.normal(size=shape),
                generator.integers(-2, 3, shape).astype(float),
                np.full(shape, 1.5),
                generator.normal(size=shape) * 1e-9 + 1.0,
                generator.choice([-0.0, 0.0, 1e300, -1e300, 5e-324], shape),
            ]
        )
    )
    with np.errstate(over="ignore"):
        values = values.astype(dtype)
    for special in (np.inf, -np.inf, np.nan):
        share = draw(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0]))
        values[generator.random(shape) < share] = special
    return values


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, list[Sweep], RankTable]:
    axes = draw(st.integers(1, 4))
    most, reach = {1: (150, 30), 2: (40, 5), 3: (9, 3), 4: (5, 2)}[axes]
    shape = tuple(draw(st.lists(st.integers(1, most), min_size=axes, max_size=axes)))
    sweeps = [draw(one_sweep(extent, reach)) for extent in shape]
    cells = math.prod(min(n, sweep.width) for n, sweep in zip(shape, sweeps, strict=True))
    return draw(floats(shape)), sweeps, draw(tables(cells))


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(deadline=None, max_examples=40)
@given(problem=problems())
def test_every_strategy_agrees_with_sorted_windows(strategy: str, problem: tuple[Any, Any, Any]) -> None:
    values, sweeps, ranks = problem
    if strategy == "series":  # windows along one axis only
        kept = max(range(len(sweeps)), key=lambda axis: sweeps[axis].width)
        sweeps = [sweep if k == kept else replace(sweep, stop=sweep.start) for k, sweep in enumerate(sweeps)]
    if strategy in ("series", "rows") and math.prod(sweep.width for sweep in sweeps) > 60:
        return  # compiling one large network after the other is what takes time
    check(values, sweeps, ranks, strategy, np.isnan(values))


@pytest.mark.parametrize("strategy", ["series", "bitset"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("shape", [(3, 300), (300, 3), (70, 2, 40), (700,)])
def test_long_series_along_any_axis(strategy: str, share: float, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(7)
    values = generator.normal(size=shape).astype(np.float32)
    values[generator.random(shape) < share] = np.nan
    axis = int(np.argmax(shape))
    sweeps = [Sweep(0, n, -11, 0) if k == axis else Sweep(0, n, 0, 0) for k, n in enumerate(shape)]
    check(values, sweeps, percentile_ranks(70, 12), strategy, np.isnan(values))
    check(values, sweeps, cont_ranks(0.5, 12), strategy, np.isnan(values))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("start", [-2, -1, 1])
def test_series_that_lie_outside_the_input(dtype: Any, start: int) -> None:
    values = np.random.default_rng(10).normal(size=(6, 32)).astype(dtype)
    sweeps = [Sweep(0, 6, -1, 1), Sweep(0, 32, start, start)]
    check(values, sweeps, percentile_ranks(50, 3), "series", np.isnan(values))


@pytest.mark.parametrize("strategy", ["rows", "bitset"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_wide_fields_with_holes(strategy: str, share: float) -> None:
    generator = np.random.default_rng(8)
    values = generator.normal(size=(23, 150))
    values[generator.random(values.shape) < share] = np.nan
    sweeps = [Sweep(0, 23, -2, 2), Sweep(0, 150, -2, 2)]
    check(values, sweeps, percentile_ranks(70, 25), strategy, np.isnan(values))
    check(values, sweeps, cont_ranks(0.5, 25), strategy, np.isnan(values))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [(3, 3), (6, 4), (1, 5), (2, 3, 2)])
@pytest.mark.parametrize("make", [percentile_ranks, cont_ranks], ids=["percentile", "between"])
def test_a_few_holes_here_and_there(dtype: Any, width: tuple[int, ...], make: Any) -> None:
    """Tiles inside the field, which a network takes with their holes; infinities and crowds of holes need more care."""
    generator = np.random.default_rng(11)
    shape = (2,) * (len(width) - 2) + (13, 100)
    values = generator.normal(size=shape).astype(dtype)
    values[generator.random(shape) < 0.1] = np.nan
    values[..., 8:12, 60:64] = np.nan
    for special in (np.inf, -np.inf, 0.0, -0.0):
        values[generator.random(shape) < 0.02] = special
    sweeps = [Sweep(0, n, -(w // 2), (w - 1) // 2) for n, w in zip(shape, width, strict=True)]
    strategy = "series" if width[0] == 1 else "rows"
    for share in (0.1, 0.5, 0.7, 1.0):
        ranks = make(share if make is cont_ranks else 100 * share, math.prod(width))
        check(values, sweeps, ranks, strategy, np.isnan(values))


def test_windows_whose_ranks_the_network_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One corner of a field is missing: no margin foresees that; without any, more windows fail than can be listed."""
    values = np.random.default_rng(9).normal(size=(40, 80)).astype(np.float32)
    values[:20, :40] = np.nan
    values[20:, 40:][np.random.default_rng(9).random((20, 40)) < 0.5] = np.nan
    sweeps = [Sweep(0, 40, -2, 2), Sweep(0, 80, -2, 2)]
    check(values, sweeps, percentile_ranks(30, 25), "rows", np.isnan(values))
    monkeypatch.setattr(lane_plans, "_margin", lambda cells: 0)
    check(values, sweeps, percentile_ranks(30, 25), "rows", np.isnan(values))
    monkeypatch.setattr(lane_plans, "_room_for_failures", lambda problem: np.empty(3, np.int64))
    check(values, sweeps, percentile_ranks(30, 25), "rows", np.isnan(values))


@pytest.mark.parametrize("strategy", ["series", "bitset", "direct"])
def test_tables_that_are_not_straight_lines(strategy: str) -> None:
    most = 9
    lower = np.array([0, 0, 0, 2, 1, 3, 3, 6, 2, 8], np.int32)
    upper = np.minimum(lower + 2, np.maximum(np.arange(most + 1) - 1, 0)).astype(np.int32)
    values = np.random.default_rng(3).normal(size=(5, 60))
    values[np.random.default_rng(4).random(values.shape) < 0.2] = np.nan
    sweeps = [Sweep(0, 5, 0, 0), Sweep(0, 60, -4, 4)]
    for table in (
        RankTable(lower, lower, np.zeros(most + 1), 0.5),
        RankTable(lower, upper, np.full(most + 1, 0.25), 0.5, interpolates=True),
    ):
        check(values, sweeps, table, strategy, np.isnan(values))


TYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]


@pytest.mark.parametrize("strategy", ["direct", "series", "bitset"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ranks", [percentile_ranks(70, 5), cont_ranks(0.5, 5)], ids=["percentile", "median"])
def test_whole_numbers_up_to_their_limits(strategy: str, dtype: Any, ranks: RankTable) -> None:
    generator = np.random.default_rng(5)
    if dtype is np.bool_:
        values = generator.random((4, 40)) < 0.5
    else:
        limits = np.iinfo(dtype)
        values = generator.integers(limits.min, limits.max, (4, 40), dtype, endpoint=True)
        values[0, :2] = limits.min, limits.max
    missing = generator.random(values.shape) < 0.4
    missing[3] = True
    sweeps = [Sweep(0, 4, 0, 0), Sweep(0, 40, -2, 2)]
    for gone in (None, missing):
        valid = None if gone is None else ~gone
        selection = window_select(values, sweeps, ranks, valid=valid, strategy=strategy)
        assert selection.exact.dtype == (np.float64 if ranks.interpolates else dtype)
        assert plain(selection) == expected(values, sweeps, ranks, gone)


@pytest.mark.parametrize("offset", [0, 2**62, -(2**62)])
def test_whole_numbers_close_together_but_far_from_zero(offset: int) -> None:
    values = np.random.default_rng(6).integers(0, 9, 50) + offset
    sweeps = [Sweep(0, 50, -3, 3)]
    for ranks in (percentile_ranks(40, 7), cont_ranks(0.4, 7)):
        assert plain(window_select(values, sweeps, ranks)) == expected(values, sweeps, ranks)


def test_datetimes_stay_datetimes_and_nat_is_missing() -> None:
    values = np.array(["2012-01-03", "2012-01-01", "NaT", "2012-01-02", "NaT"], "M8[ns]")
    selection = window_select(values, [Sweep(0, 5, 0, 1)], percentile_ranks(0, 2))
    assert selection.exact[:4].astype("M8[D]").astype(str).tolist() == [
        "2012-01-01", "2012-01-01", "2012-01-02", "2012-01-02",
    ]  # fmt: skip
    assert selection.empty is not None
    assert selection.empty.tolist() == [False, False, False, False, True]


@settings(deadline=None, max_examples=30)
@given(problem=problems(), strategy=st.sampled_from(["direct", "bitset"]), seed=st.integers(0, 99))
def test_blocks_give_what_the_whole_gives(problem: tuple[Any, Any, Any], strategy: str, seed: int) -> None:
    """A part of the outputs, from a part of the input that holds their windows, bit by bit."""
    values, sweeps, ranks = problem
    assume(strategy == "direct" or sum(sweep.width > 1 for sweep in sweeps) <= bitset.AXES)
    whole = window_select(values, sweeps, ranks, strategy=strategy).exact
    generator = np.random.default_rng(seed)
    box, block, cut = [], [], []
    for sweep, extent in zip(sweeps, values.shape, strict=True):
        first = int(generator.integers(0, sweep.count + 1))
        count = int(generator.integers(0, sweep.count - first + 1))
        position = sweep.first + first * sweep.step
        low = min(max(position + sweep.start, 0), extent)
        high = max(min(position + max(count - 1, 0) * sweep.step + sweep.stop + 1, extent), low)
        box.append(slice(first, first + count))
        cut.append(slice(low, high))
        block.append(Sweep(position - low, count, sweep.start, sweep.stop, sweep.step))
    part = window_select(np.ascontiguousarray(values[tuple(cut)]), block, ranks).exact
    assert part.tobytes() == np.ascontiguousarray(whole[tuple(box)]).tobytes()


def test_results_go_into_the_array_given() -> None:
    values, out = np.arange(6.0), np.zeros(6)
    assert window_select(values, [Sweep(0, 6, -1, 0)], percentile_ranks(0, 2), out).exact is out
    assert out.tolist() == [0, 0, 1, 2, 3, 4]


def test_the_choice_is_explained() -> None:
    table = percentile_ranks(70, 30)
    time = [Sweep(0, 288, 0, 0), Sweep(0, 145, 0, 0), Sweep(0, 366, -29, 0)]
    told = plan_select((288, 145, 366), np.float32, time, table)
    assert told.startswith("series, the cheapest of 5\n  series ")
    assert "windows reach along one axis" in told
    wide = plan_select((10**6,), np.float64, [Sweep(0, 10**6, -2499, 0)], percentile_ranks(70, 2500))
    assert wide.startswith("bitset, the cheapest of 4\n")
    assert "its network would be too large" in wide
    assert plan_select((10,), np.float64, [Sweep(0, 10, -1, 1)], table).startswith("tiny, ")


def test_mistakes_are_named() -> None:
    table = percentile_ranks(50, 3)
    with pytest.raises(DataError, match="rank table must answer for windows of 5 values, got 3"):
        window_select(np.zeros(9), [Sweep(0, 9, -2, 2)], table)
    with pytest.raises(DataError, match="one sweep per axis, got 1 for 2 axes"):
        window_select(np.zeros((2, 2)), [Sweep(0, 2, 0, 0)], table)
    with pytest.raises(UnknownNameError, match="no strategy magic for an order statistic over windows of 2 cells"):
        window_select(np.zeros(9), [Sweep(0, 9, 0, 1)], table, strategy="magic")
    with pytest.raises(DataError, match="order statistics need numbers"):
        window_select(np.array(["a"]), [Sweep(0, 1, 0, 0)], table)
    with pytest.raises(DataError, match="at least one cell"):
        window_select(np.zeros(9), [Sweep(0, 9, 2, 1)], table)
