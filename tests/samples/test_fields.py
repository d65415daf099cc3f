"""The made-up temperatures: deterministic, cut as one likes, and shaped like weather."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.model.box import Box
from windrow.samples import TemperatureSource, temperature_field


@pytest.fixture(scope="module")
def year() -> Any:
    return temperature_field(lon=72, lat=37, time=366)


def test_shape_and_labels(year: Any) -> None:
    values, labels = year
    assert values.shape == (72, 37, 366)
    assert values.dtype == np.float32
    assert np.isfinite(values).all()
    assert 190 < values.min() < 250
    assert 295 < values.max() < 330
    assert (labels["lon"][0], labels["lon"][-1]) == (0.0, 355.0)
    assert (labels["lat"][0], labels["lat"][-1]) == (-90.0, 90.0)
    assert labels["time"][[0, 59, -1]].astype("M8[D]").astype(str).tolist() == [
        "2012-01-01",
        "2012-02-29",
        "2012-12-31",
    ]


def test_seeds() -> None:
    first, _ = temperature_field(8, 5, 20)
    np.testing.assert_array_equal(first, temperature_field(8, 5, 20)[0])
    assert not np.array_equal(first, temperature_field(8, 5, 20, seed=1)[0])


def test_seasons_are_opposite(year: Any) -> None:
    values, labels = year
    zonal = values.mean(axis=0)
    january, july = zonal[:, :31].mean(axis=1), zonal[:, 182:213].mean(axis=1)
    north, south = labels["lat"] > 30, labels["lat"] < -30
    assert (july[north] > january[north] + 3).all()
    assert (july[south] < january[south] - 3).all()


def test_it_is_warmest_at_the_equator(year: Any) -> None:
    values, labels = year
    by_latitude = values.mean(axis=(0, 2))
    assert abs(labels["lat"][by_latitude.argmax()]) < 20
    assert by_latitude[0] < by_latitude[-1] < by_latitude.max() - 30


def weather_alone() -> Any:
    """The difference of two seeds: climate and seasons cancel."""
    first, second = (temperature_field(72, 37, 366, seed=seed)[0].astype(np.float64) for seed in (3, 4))
    return first - second


def test_weather_is_correlated_in_time_and_space() -> None:
    weather = weather_alone()[:, 10:28, :]

    def correlation(a: Any, b: Any) -> float:
        return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])

    by_days = [correlation(weather[..., :-lag], weather[..., lag:]) for lag in (1, 3, 15)]
    assert 0.6 < by_days[0] < 0.95
    assert by_days[0] > by_days[1] > by_days[2]
    assert abs(by_days[2]) < 0.2
    assert correlation(weather, np.roll(weather, 1, axis=0)) > 0.8
    assert correlation(weather[:, :-1], weather[:, 1:]) > 0.8
    assert abs(correlation(weather, np.roll(weather, 36, axis=0))) < 0.6
    assert 1 < weather.std() < 15


def test_afternoons_are_warmer_than_nights() -> None:
    values, labels = temperature_field(8, 9, 4 * 400, per_day=4)
    assert labels["time"][1] - labels["time"][0] == np.timedelta64(6, "h")
    by_hour = values[0, 4].reshape(-1, 4).mean(axis=0)
    assert by_hour.argmax() == 2  # 12 o'clock at longitude 0
    assert by_hour.argmin() == 0


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> Box:
    bounds = [sorted(draw(st.tuples(*[st.integers(1, size)] * 2))) for size in shape]
    return Box(tuple(lo for lo, _ in bounds), tuple(hi for _, hi in bounds))


@pytest.mark.parametrize("per_day", [1, 4])
@given(data=st.data())
def test_a_box_does_not_depend_on_the_cut(per_day: int, data: st.DataObject) -> None:
    source = TemperatureSource(9, 7, 50, per_day)
    whole = source.read(source.schema.box())["t"]
    box = data.draw(boxes((9, 7, 50)))
    part = pickle.loads(pickle.dumps(source)).read(box)["t"]
    np.testing.assert_array_equal(part, whole[box.slices((1, 1, 1))])


def test_a_longer_series_begins_like_a_shorter_one() -> None:
    short, _ = temperature_field(6, 5, 100)
    np.testing.assert_array_equal(temperature_field(6, 5, 300)[0][..., :100], short)


def test_the_source_can_be_written(local: Any) -> None:
    source = TemperatureSource(10, 7, 30)
    array = local.create("T", source.schema, labels=source.labels, metadata=source.metadata, chunks={"time": 8})
    array.write(source)
    stored = array.read(time=("2012-01-05", "2012-01-09"))["t"]
    assert stored.attrs["units"] == "K"
    np.testing.assert_array_equal(stored.values, temperature_field(10, 7, 30)[0][..., 4:9])


def test_a_long_series_is_read_in_parts() -> None:
    source = TemperatureSource(time=29_220, per_day=4)
    assert source.schema.box().size * 4 > 4e9
    block = source.read(Box((100, 70, 29_000), (103, 74, 29_220)))["t"]
    assert block.shape == (4, 5, 221)
    assert str(source.labels["time"].values[-1]) == "2031-12-31T18:00:00.000000"


def test_chunks_suit_reading() -> None:
    schema = TemperatureSource(time=29_220).schema
    assert schema.grid.chunk[1:] == (145, 366)
    assert schema.grid.chunk_cells * 4 < 8 * 2**20


@pytest.mark.parametrize("sizes", [{"lon": 0}, {"lat": -1}, {"time": 1.5}, {"per_day": 0}])
def test_wrong_sizes(sizes: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="at least 1"):
        TemperatureSource(**sizes)


def test_a_box_outside() -> None:
    with pytest.raises(DataError, match="outside"):
        TemperatureSource(3, 3, 3).read(Box((1, 1, 1), (4, 3, 3)))
