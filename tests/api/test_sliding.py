"""Three methods, one meaning: on random arrays, windows and options they agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.api.sliding import sliding
from windrow.model.window import between

EXACT = [
    "count",
    "min",
    "max",
    "percentile(70)",
    "quantile_disc(0.3)",
    "quantile_index(0.4)",
    "count_distinct",
    "mode",
]
ROUNDED = ["sum", "avg", "var", "std", "var_pop", "std_pop", "quantile_cont(0.3)", "median"]


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["float64", "float32", "int64", "uint8", "bool", "masked"]))
    whole = seed.integers(0, 6, shape)
    if kind == "masked":
        return np.ma.masked_array(whole, seed.random(shape) < 0.3)
    values = whole.astype(kind)
    if values.dtype.kind == "f":
        values[seed.random(shape) < 0.2] = np.nan
        if draw(st.booleans()):
            values.flat[seed.integers(0, values.size)] = draw(st.sampled_from([math.inf, -math.inf]))
    return values


@st.composite
def options(draw: st.DrawFn, ndim: int) -> dict[str, Any]:
    starts = [draw(st.integers(-4, 3)) for _ in range(ndim)]
    return {
        "window": [between(start, start + draw(st.integers(0, 5))) for start in starts],
        "boundary": draw(st.sampled_from(["clip", "drop"])),
        "wrap": draw(st.booleans()),
        "min_count": draw(st.integers(0, 3)),
        "step": draw(st.integers(1, 3)),
    }


@pytest.mark.parametrize("aggregate", EXACT + ROUNDED)
@settings(max_examples=25)
@given(data=st.data())
def test_all_methods_agree(aggregate: str, data: st.DataObject) -> None:
    values = data.draw(arrays())
    chosen = data.draw(options(values.ndim))
    with np.errstate(invalid="ignore"):
        naive, *others = (sliding(values, aggregate, method=m, **chosen) for m in ("naive", "incremental", "auto"))
        others.append(sliding(values, aggregate, sweep=data.draw(st.integers(0, values.ndim - 1)), **chosen))
    for other in others:
        assert other.dtype == naive.dtype
        if aggregate in EXACT:
            np.testing.assert_array_equal(other, naive)
        else:
            np.testing.assert_allclose(other, naive, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["naive", "incremental", "auto"])
def test_figure_3_of_paper_002(method: str) -> None:
    array = np.array([[4, 7, 3, 1, 8], [5, 2, 6, 2, 2], [3, 9, 3, 2, 4], [7, 7, 8, 2, 6]])
    result = sliding(array, "max", (2, 3), method=method)
    assert result.tolist() == [[7, 7, 8, 8, 8], [9, 9, 6, 4, 4], [9, 9, 8, 6, 6], [8, 8, 8, 6, 6]]


def test_integers_stay_integers_where_nothing_is_missing() -> None:
    assert sliding(np.array([3, 1, 2]), "min", 2).dtype == np.int64
    dropped = sliding(np.array([3, 1, 2]), "min", 2, boundary="drop")
    np.testing.assert_array_equal(dropped, [1.0, 1.0, math.nan])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"agg": "max", "window": 0}, wr.SchemaError),
        ({"agg": "max", "window": -3}, wr.SchemaError),
        ({"agg": "max", "window": (2, 2)}, wr.SchemaError),
        ({"agg": "percentile(140)", "window": 2}, wr.DataError),
        ({"agg": "percentile", "window": 2}, wr.DataError),
        ({"agg": "maxx", "window": 2}, wr.UnknownNameError),
        ({"agg": "max", "window": 2, "anchor": "middle"}, wr.SchemaError),
        ({"agg": "max", "window": 2, "step": 0}, wr.SchemaError),
        ({"agg": "max", "window": 2, "method": "quick"}, wr.DataError),
        ({"agg": "max", "window": 2, "boundary": "reflect"}, wr.SchemaError),
        ({"agg": "max", "window": 2, "sweep": 1}, wr.SchemaError),
        ({"agg": "max", "window": 2, "sweep": "time"}, wr.SchemaError),
        ({"agg": "max", "window": 2, "sweep": 0, "method": "naive"}, wr.DataError),
        ({"agg": "max", "window": 2, "sweep": 0, "strategy": "tiny"}, wr.DataError),
        ({"agg": "max", "shape": wr.L1(1), "sweep": 0}, wr.SchemaError),
    ],
)
def test_bad_input_is_refused_before_any_work(arguments: dict[str, Any], error: type[wr.Error]) -> None:
    with pytest.raises(error):
        sliding(np.arange(5.0), **arguments)


def test_an_overflowing_sum_is_an_error() -> None:
    for method in ("naive", "incremental", "auto"):
        with pytest.raises(wr.DataError, match="overflows"):
            sliding(np.array([2**62, 2**62], np.int64), "sum", 2, method=method)


@pytest.mark.parametrize("aggregate", ["sum", "avg", "max", "count", "percentile(70)", "var"])
@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "uint8"])
def test_results_are_written_into_an_array(aggregate: str, kind: str) -> None:
    values = np.random.default_rng(0).integers(0, 90, (70, 90)).astype(kind)
    expected = sliding(values, aggregate, (5, 7), "centred")
    for out in (np.empty_like(expected), np.empty(expected.shape[::-1], expected.dtype).T):
        assert sliding(values, aggregate, (5, 7), "centred", out=out) is out
        np.testing.assert_array_equal(out, expected)


def test_missing_results_in_an_array() -> None:
    values = np.random.default_rng(0).random((40, 50))
    values[10:20, 10:25] = np.nan
    for aggregate in ("sum", "avg", "min"):
        out = np.empty(values.shape)
        expected = sliding(values, aggregate, (4, 4), boundary="drop", method="naive")
        np.testing.assert_allclose(sliding(values, aggregate, (4, 4), boundary="drop", out=out), expected, rtol=1e-12)
        assert np.isnan(out[12, 12])
        assert np.isnan(out[-1]).all()


def test_results_may_replace_what_they_are_made_of() -> None:
    values = np.random.default_rng(0).random((40, 50))
    expected = sliding(values, "avg", (3, 3), "centred")
    sliding(values, "avg", (3, 3), "centred", out=values)
    np.testing.assert_array_equal(values, expected)


def test_whole_numbers_can_go_into_floats() -> None:
    whole = np.arange(6000).reshape(60, 100)
    out = np.empty(whole.shape)
    np.testing.assert_array_equal(sliding(whole, "sum", (3, 3), out=out), sliding(whole, "sum", (3, 3)))
    assert np.isnan(sliding(whole, "sum", (3, 3), boundary="drop", out=out)[-1]).all()
    with pytest.raises(wr.DataError, match="missing results are NaN"):
        sliding(whole, "sum", (3, 3), boundary="drop", out=np.empty(whole.shape, np.int64))


@pytest.mark.parametrize("shape", [(6,), (40, 50)])
@pytest.mark.parametrize("agg", ["min", "max", "mode", "percentile(70)", "quantile_disc(0.3)"])
@pytest.mark.parametrize("method", ["auto", "naive"])
def test_booleans_of_which_some_are_missing_can_be_written_into_an_array(
    shape: tuple[int, ...], agg: str, method: str
) -> None:
    draw = np.random.default_rng(1)
    mask = draw.random(shape) < 0.3
    mask[..., :3] = True
    values = np.ma.MaskedArray(draw.random(shape) < 0.5, mask=mask)
    window = (2,) * len(shape)
    expected = sliding(values, agg, window, method=method)
    assert np.isnan(expected).any()
    out = np.empty(shape)
    assert sliding(values, agg, window, method=method, out=out) is out
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(wr.DataError, match=r"which out cannot hold, got bool\. Use float64"):
        sliding(values, agg, window, method=method, out=np.empty(shape, bool))


@pytest.mark.parametrize("kind", [bool, np.float64])
def test_booleans_of_which_none_is_missing_are_written_as_they_are(kind: type) -> None:
    values = np.random.default_rng(1).random((7, 9)) < 0.5
    out = np.empty(values.shape, kind)
    np.testing.assert_array_equal(sliding(values, "max", (2, 3), out=out), sliding(values, "max", (2, 3)))


def test_missing_strings_need_an_array_of_objects() -> None:
    names = np.array(["b", "a", "c"])
    out = np.empty(3, object)
    assert sliding(names, "max", 2, boundary="drop", out=out).tolist() == ["b", "c", None]
    with pytest.raises(wr.DataError, match=r"missing results are None, which out cannot hold, got .*Use object"):
        sliding(names, "max", 2, boundary="drop", out=np.empty(3, np.dtypes.StringDType()))


@pytest.mark.parametrize("out", [np.empty(4), np.empty(5, np.float32), [0.0] * 5, np.broadcast_to(0.0, 5)])
def test_arrays_that_cannot_take_the_results(out: Any) -> None:
    with pytest.raises(wr.DataError, match="out must"):
        sliding(np.arange(5.0), "sum", 2, out=out)


def test_one_extent_is_a_window_of_a_vector() -> None:
    values = np.array([4.0, 7, 3, 1, 8])
    assert wr.sliding(values, "max", wr.centred(3)).tolist() == wr.sliding(values, "max", 3, "centred").tolist()
    assert wr.sliding(values, "max", wr.between(1, 2)).tolist()[:4] == [7, 3, 8, 8]
    with pytest.raises(wr.SchemaError, match="a width for each of 2 axes"):
        wr.sliding(values.reshape(1, 5), "max", wr.centred(3))


@pytest.mark.parametrize(("window", "axis", "whole"), [(3, 1, (1, 3)), (3, -2, (3, 1)), ((2, 3), (1, 0), (3, 2))])
def test_windows_along_some_axes(window: Any, axis: Any, whole: tuple[int, int]) -> None:
    values = np.arange(20.0).reshape(4, 5) % 7
    assert np.array_equal(wr.sliding(values, "sum", window, axis=axis), wr.sliding(values, "sum", whole))


@pytest.mark.parametrize("axis", [2, True, (0, 0), "time"])
def test_axes_that_are_not_there(axis: Any) -> None:
    with pytest.raises(wr.SchemaError):
        wr.sliding(np.zeros((3, 3)), "sum", 2 if not isinstance(axis, tuple) else (2, 2), axis=axis)


def test_calls_are_written_as_in_the_language() -> None:
    values = np.array([[1.0, np.nan, 3.0]])
    assert wr.sliding(values, "count(*)", (1, 2)).tolist() == [[2, 2, 1]]
    assert wr.sliding(values, "count(x)", (1, 2)).tolist() == [[1, 1, 1]]
    assert (
        wr.sliding(values, "percentile(t, 70)", (1, 3)).tolist()
        == wr.sliding(values, "percentile(70)", (1, 3)).tolist()
    )
    assert wr.sliding(values, "wavg(x, w)", (1, 3), second=values)[0, 0] == 2.5
    with pytest.raises(wr.DataError, match="not a number"):
        wr.sliding(values, "percentile(t, seventy)", (1, 3))


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 2.5},
        {"window": {0: 2}},
        {"min_count": -1},
        {"agg": None},
        {"agg": max},
        {"boundary": "wrap"},
        {"step": 1.5},
    ],
)
def test_arguments_of_no_use_are_refused_with_a_reason(wrong: dict[str, Any]) -> None:
    with pytest.raises(wr.Error):
        wr.sliding(np.zeros(4), **({"agg": "max", "window": 2} | wrong))


def test_a_users_aggregate_is_given_as_it_was_made() -> None:
    @wr.aggregate("lowest_of_all", result="float64")
    class Lowest:
        def empty() -> Any:
            return (np.inf,)

        def add(state: Any, x: Any) -> Any:  # noqa: N805
            return (min(state[0], x),)

        def result(state: Any) -> Any:  # noqa: N805
            return state[0]

    values = np.array([4.0, 7, 3, 1, 8])
    assert wr.sliding(values, Lowest, 2).tolist() == [4, 3, 1, 1, 8]
    assert wr.framed(values, Lowest, lo=[0], hi=[3]).tolist() == [3]
