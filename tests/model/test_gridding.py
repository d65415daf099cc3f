"""Gridding: coordinates become cells, exactly at every border."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import CorruptionError, DataError, Error, SchemaError, UnknownNameError
from windrow.model.gridding import Axis, Gridding
from windrow.model.schema import Dimension

SKY = Gridding.of(
    {
        "ra": (0, 360, "1 arcsec"),
        "dec": (-90, 90, "1 arcsec"),
        "time": ("2012-01-01", "2013-01-01", "1 minute"),
        "x": (0, 100, 0.5),
        "day": (datetime(2012, 1, 1), None, timedelta(days=1)),
    }
)

decimals = st.integers(-(10**6), 10**6).map(lambda n: n / 1000)
steps = st.one_of(
    st.sampled_from(["1 arcsec", "1 arcmin", "50 mas", "1 degree", "0.1 rad", 1 / 3, 1 / 3600, 0.1, 0.7, 1e-5, 3]),
    st.floats(0.001, 1000),
)


def test_dimensions():
    assert SKY.dimensions({"x": 20}) == (
        Dimension("ra", 1, 1_296_000),
        Dimension("dec", 1, 648_000),
        Dimension("time", 1, 366 * 24 * 60),
        Dimension("x", 1, 200, 20),
        Dimension("day", 1, None),
    )
    assert SKY.axis("ra").dimension("alpha", 100) == Dimension("alpha", 1, 1_296_000, 100)
    assert Gridding.of({"x": (0, 10, 3)}, first=0).axis("x").dimension() == Dimension("x", 0, 3)
    assert [str(attribute) for attribute in SKY.exact_attributes()] == [
        "ra_exact: float64",
        "dec_exact: float64",
        "time_exact: datetime",
        "x_exact: float64",
        "day_exact: datetime",
    ]


@given(st.integers(0, 1_295_999))
def test_every_way_to_write_a_border_starts_its_cell(k):
    ra = SKY.axis("ra")
    step = 1 / 3600
    ways = np.array([k / 3600, k * step, float(Fraction(k, 3600)), 0 + np.float64(k) * step])
    assert ra.cells(ways).tolist() == [k + 1] * 4
    assert ra.cells(ra.low_edge([k + 1])).tolist() == [k + 1]
    assert ra.cells(ra.centre([k + 1])).tolist() == [k + 1]
    if k:
        below = min(ways)
        assert ra.cells([math.nextafter(below, -1)]).tolist() == [k]


@given(decimals, steps, st.integers(0, 10**5), st.floats(0.001, 0.999))
def test_cells_twin_inside_and_on_borders(low, step, k, within):
    axis = Axis.of("x", low, None, step, first=0)
    border = axis.low + k * axis.step
    assert axis.cells([float(axis.low) + k * float(axis.step)]).tolist() == [k]
    inside = float(border + axis.step * Fraction(within))
    assert axis.cells([inside]).tolist() == [math.floor((Fraction(inside) - axis.low) / axis.step)]
    assert axis.cells(axis.low_edge([k])).tolist() == [k]
    assert axis.low_edge([k])[0] == pytest.approx(float(border), abs=4 * math.ulp(abs(low) + abs(float(border))))


@given(decimals, steps, st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_cells_never_go_back(low, step, fractions):
    axis = Axis.of("x", low, low + 5000, step)
    points = np.sort(np.array([low + 5000 * f for f in fractions]))
    points = np.clip(points, float(axis.low), float(axis.high))
    cells = axis.cells(points)
    assert np.all(np.diff(cells) >= 0)
    assert cells.min() >= 1
    assert cells.max() <= axis.count


@given(
    st.datetimes(datetime(2012, 1, 1), datetime(2013, 1, 1)),
    st.integers(1, 10**9),
    st.sampled_from(["us", "ns", "object"]),
)
def test_datetime_cells_twin(instant, microseconds, unit):
    start, end = datetime(2012, 1, 1), datetime(2013, 1, 1)
    axis = Axis.of("time", start, end, timedelta(microseconds=microseconds), first=5)
    values = [instant] if unit == "object" else np.array([instant], f"M8[{unit}]")
    last = -(-(end - start) // timedelta(microseconds=microseconds)) - 1
    expected = min((instant - start) // timedelta(microseconds=microseconds), last)
    assert axis.cells(values).tolist() == [expected + 5]
    edge = axis.low_edge([expected + 5])[0].item()
    assert edge <= instant
    assert instant < edge + timedelta(microseconds=microseconds) or instant == end


def test_ends():
    assert SKY.axis("ra").cells([0.0, 360.0]).tolist() == [1, 1_296_000]
    assert SKY.axis("dec").cells([-90, 0, 90]).tolist() == [1, 324_001, 648_000]
    assert SKY.axis("time").cells(["2012-01-01", "2013-01-01"]).tolist() == [1, 527_040]
    assert Axis.of("x", 0, 10, 3).cells([9, 10]).tolist() == [4, 4]
    assert Axis.of("x", 0, 0.3, 0.1).count == 3
    assert Axis.of("x", -1, None, 1).cells([1e6]).tolist() == [1_000_002]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, None, math.nan, 400.0],
        np.array([1.0, np.nan, -0.1, np.inf]),
        pd.Series([1, None, None, 361], dtype="Int64"),
        pa.chunked_array([[1.0], [None, -5.0, 1e9]]),
        np.ma.masked_array([1.0, 2.0, 3.0, 4.0], [False, True, True, True]),
        [1.0, math.nextafter(0, -1), math.nextafter(360, 400), -math.inf],
    ],
)
def test_bad_points_are_counted(values):
    with pytest.raises(DataError, match=r"3 of 4 points have no cell along ra, got .* at position 1 first"):
        SKY.axis("ra").cells(values)


@pytest.mark.parametrize(
    "values",
    [
        ["2012-01-01", None, "2011-12-31", "2014"],
        np.array(["2012-02", "NaT", "2011", "2014"], "M8[D]"),
        pa.array([datetime(2012, 1, 1), None, None, None], pa.timestamp("us")),
        pd.Series(pd.to_datetime(["2012-01-01", None, None, None]).tz_localize("UTC")),
    ],
)
def test_bad_instants_are_counted(values):
    with pytest.raises(DataError, match="3 of 4 points have no cell along time"):
        SKY.axis("time").cells(values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ra", ["x"]),
        ("ra", [True]),
        ("ra", np.array([True])),
        ("ra", [datetime(2012, 1, 1)]),
        ("ra", np.array(["2012"], "M8[D]")),
        ("ra", np.zeros((2, 2))),
        ("ra", 5.0),
        ("time", [5]),
        ("time", np.array([5.0])),
        ("time", ["soon"]),
    ],
)
def test_wrong_kinds_of_points(name, values):
    with pytest.raises(DataError):
        SKY.axis(name).cells(values)


def test_no_points_and_far_points():
    assert SKY.axis("ra").cells([]).tolist() == []
    assert SKY.axis("time").cells([]).dtype == np.int64
    with pytest.raises(DataError, match="no cell"):
        Axis.of("x", 0, None, 0.001).cells([1e15])
    assert SKY.axis("ra").exact(np.array([1], "f4")).dtype == np.float64
    assert SKY.axis("time").exact([None]).dtype == "M8[us]"


@pytest.mark.parametrize(
    "grid",
    [
        {},
        {"x": (0, 1)},
        {"x": 5},
        {"x": (0, 1, 0)},
        {"x": (0, 1, -1)},
        {"x": (1, 0, 1)},
        {"x": (0, 0, 1)},
        {"x": (None, 1, 1)},
        {"x": (0, 1e16, 0.5)},
        {"x": (0, 1, "1 parsec")},
        {"x": (0, 1, "1 day")},
        {"x": ("2012", "2013", "1 month")},
        {"x": ("2012-01-01", "2013-01-01", 1)},
        {"x": (0, math.nan, 1)},
        {"x": (0, True, 1)},
        {"not a name": (0, 1, 1)},
        {"t": ("2012", "2013", "0.5 us")},
    ],
)
def test_griddings_that_cannot_be(grid):
    with pytest.raises(Error):
        Gridding.of(grid)


@given(decimals, decimals, st.sampled_from([0.25, 0.1, "1 arcmin", 3]))
def test_label_range_twin(lower, upper, step):
    axis = Axis.of("x", -100, 100, step)
    if lower > upper:
        with pytest.raises(DataError, match="ends before"):
            axis.label_range(lower, upper)
        return
    first, last = axis.label_range(lower, upper)
    assert last is not None
    inside = [x for x in np.arange(-1000, 1001) / 10 if lower <= x <= upper]
    if upper < -100 or lower > 100:
        assert first > last
    else:
        assert first == (1 if lower < -100 else axis.cells([lower])[0])
        assert last == (axis.count if upper > 100 else axis.cells([upper])[0])
    assert all(first <= cell <= last for cell in axis.cells(inside))


def test_label_range_of_times_and_open_ends():
    day = SKY.axis("day")
    assert day.label_range("2012-02", "2012-02") == (32, 60)
    assert day.label_range("2012-02", None) == (32, None)
    assert day.label_range(None, "2012-01-05T12") == (1, 5)
    assert day.label_range("2011", "2011") == (1, 0)
    assert SKY.axis("ra").label_range() == (1, 1_296_000)
    assert SKY.axis("ra").label_range("10 deg", "10 deg") == (36_001, 36_001)
    with pytest.raises(DataError):
        day.label_range(5.0, None)


def test_edges_and_centres():
    assert SKY.axis("x").low_edge([1, 200]).tolist() == [0.0, 99.5]
    assert SKY.axis("x").centre(3).tolist() == [1.25]
    assert SKY.axis("time").low_edge([2])[0] == np.datetime64("2012-01-01T00:01")
    assert SKY.axis("time").centre([1])[0] == np.datetime64("2012-01-01T00:00:30")
    for cells in ([0], [201]):
        with pytest.raises(DataError):
            SKY.axis("x").low_edge(cells)
    with pytest.raises(DataError):
        SKY.axis("day").low_edge([2**60])


@given(decimals, steps)
def test_json_keeps_everything(low, step):
    gridding = Gridding.of({"x": (low, low + 10**5, step), "y": (low, None, step)}, first=-3)
    assert Gridding.from_json(gridding.to_json()) == gridding


def test_json_of_times_and_damage():
    assert Gridding.from_json(SKY.to_json()) == SKY
    for text in ("", "{}", "[1]", '{"axes": [{}]}', SKY.to_json()[:-1], SKY.to_json().replace("1/3600", "-1")):
        with pytest.raises(CorruptionError):
            Gridding.from_json(text)
    with pytest.raises(UnknownNameError, match="'ra'"):
        SKY.axis("raa")
    with pytest.raises(SchemaError, match="low, high and step"):
        Gridding.of({"x": (0,)})


def test_an_axis_says_what_it_is_in_words() -> None:
    assert str(Axis.of("ra", 0, 360, "1 arcsec")) == "ra from 0 to 360 in cells of 0.000277777778"
    text = str(Axis.of("time", "2020-01-01", None, "1 day"))
    assert text == "time from 2020-01-01T00:00:00.000000 to * in cells of 86400 seconds"
