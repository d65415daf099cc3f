"""A made-up year of air temperatures: seasons, continents and weather, the same for the same seed.

The weather is a sum of waves around the globe. Each wave's amplitude is a damped random walk (AR(1)) that also turns
eastwards, so that the field is smooth in space, correlated in time, and computable at any place without its
neighbours. All sums are made element by element in one order, never by BLAS, whose rounding depends on shapes: a cell
has the same bits however the boxes are cut.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.source import Blocks
from windrow.model.types import data_type

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]

ATTRIBUTE = "t"
METADATA = {ATTRIBUTE: {"units": "K", "long_name": "made-up air temperature"}}
FIRST_DAY = "2012-01-01"
CHUNK_BYTES = 4 * 2**20
LONGEST_CHUNK = 366

WAVES = 9
PROFILES = 7
STORMINESS = 5.5  # K, the weather's standard deviation where it is strongest
DAY_TO_DAY = 0.82  # how much of a wave is left a day later
EASTWARD = 0.16  # radians by which wave 5 turns in a day

# Centre and half width in degrees, and height in K of cooling, of soft ellipses that stand for land.
_LAND = (
    (95.0, 55.0, 62.0, 20.0, 2.0),
    (85.0, 33.0, 22.0, 9.0, 16.0),
    (15.0, 50.0, 24.0, 10.0, 1.0),
    (20.0, 14.0, 24.0, 19.0, 1.0),
    (25.0, -15.0, 13.0, 19.0, 3.0),
    (260.0, 52.0, 34.0, 19.0, 3.0),
    (258.0, 25.0, 9.0, 11.0, 4.0),
    (318.0, 72.0, 15.0, 11.0, 14.0),
    (300.0, -8.0, 15.0, 17.0, 1.0),
    (291.0, -33.0, 7.0, 19.0, 5.0),
    (134.0, -25.0, 17.0, 10.0, 0.0),
)


@dataclass(frozen=True)
class TemperatureSource:
    """The field as a GridSource: a worker makes its own boxes, so that a series may be longer than memory.

    >>> TemperatureSource(lon=8, lat=5, time=10).schema.attribute_names
    ('t',)
    """

    lon: int = 288
    lat: int = 145
    time: int = 366
    per_day: int = 1
    seed: int = 2012

    def __post_init__(self) -> None:
        for name in ("lon", "lat", "time", "per_day"):
            size = getattr(self, name)
            if not isinstance(size, int) or size < 1:
                raise DataError(f"{name} must be a whole number of at least 1", got=repr(size))

    @property
    def schema(self) -> Schema:
        days = min(self.time, LONGEST_CHUNK)
        pieces = -(-self.lon * self.lat * days * 4 // CHUNK_BYTES)
        columns = -(-self.lon // pieces)
        sizes = {"lon": (self.lon, columns), "lat": (self.lat, self.lat), "time": (self.time, days)}
        dimensions = tuple(Dimension(name, 1, size, chunk) for name, (size, chunk) in sizes.items())
        return Schema(dimensions, (Attribute(ATTRIBUTE, data_type("float32")),))

    @property
    def labels(self) -> Mapping[str, Labels]:
        degrees = {"lon": "degrees_east", "lat": "degrees_north"}
        return {
            name: Labels.of(values, {"units": degrees[name]} if name in degrees else {})
            for name, values in axes(self.lon, self.lat, self.time, self.per_day).items()
        }

    @property
    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        return METADATA

    def read(self, box: Box) -> Blocks:
        if box not in self.schema.box():
            raise DataError("the box is outside the field", got=box, hint=f"Its cells are {self.schema.box()}")
        lons, lats, times = box.slices((1, 1, 1))
        climate = _climate(self.lon, self.lat)
        sun = _sun(self.lon, self.time, self.per_day)
        weather = self._weather(lats, times)
        block = np.empty(box.shape, np.float32)
        term = np.empty(box.shape[1:], np.float32)
        for row, column in zip(block, range(lons.start, lons.stop), strict=True):
            row[:] = climate.mean[column, lats, None]
            np.multiply(climate.seasonal[column, lats, None], sun.season[None, times], out=term)
            row += term
            if self.per_day > 1:
                np.multiply(climate.daily[column, lats, None], sun.hour[column, None, times], out=term)
                row += term
            for wave, factor in zip(weather, _around(self.lon)[:, column], strict=True):
                np.multiply(wave, factor, out=term)
                row += term
        return {ATTRIBUTE: block}

    def _weather(self, lats: slice, times: slice) -> Float32Array:
        """The cosine and sine parts of each wave at every latitude and time of a box."""
        profiles = _profiles(self.lat)[:, lats]
        amplitudes = _amplitudes(self.time, self.per_day, self.seed)[:, :, times]
        parts = np.zeros((len(amplitudes), profiles.shape[1], amplitudes.shape[2]), np.float32)
        for part, of_wave in zip(parts, amplitudes, strict=True):
            for profile, amplitude in zip(profiles, of_wave, strict=True):
                part += profile[:, None] * amplitude[None, :]
        return parts


def temperature_field(
    lon: int = 288, lat: int = 145, time: int = 366, per_day: int = 1, seed: int = 2012
) -> tuple[Float32Array, dict[str, npt.NDArray[Any]]]:
    """Temperatures in kelvin by longitude, latitude and time, and the labels of the three dimensions.

    >>> values, labels = temperature_field(lon=8, lat=5, time=10)
    >>> values.shape, sorted(labels)
    ((8, 5, 10), ['lat', 'lon', 'time'])
    """
    source = TemperatureSource(lon, lat, time, per_day, seed)
    return np.asarray(source.read(source.schema.box())[ATTRIBUTE]), axes(lon, lat, time, per_day)


def axes(lon: int, lat: int, time: int, per_day: int) -> dict[str, npt.NDArray[Any]]:
    """Degrees east from 0, degrees north from pole to pole, and time stamps from the start of a leap year."""
    step = np.timedelta64(86_400_000_000 // per_day, "us")
    return {
        "lon": np.arange(lon) * (360.0 / lon),
        "lat": np.linspace(-90.0, 90.0, lat) if lat > 1 else np.zeros(1),
        "time": np.datetime64(FIRST_DAY, "us") + np.arange(time) * step,
    }


@dataclass(frozen=True)
class _Climate:
    """By longitude and latitude: the year's mean, and how far summer and afternoon depart from it."""

    mean: Float32Array
    seasonal: Float32Array
    daily: Float32Array


@dataclass(frozen=True)
class _Sun:
    """How much summer it is by time (in the north), and how much afternoon by longitude and time."""

    season: Float32Array
    hour: Float32Array


@functools.lru_cache(maxsize=4)
def _climate(lon: int, lat: int) -> _Climate:
    places = axes(lon, lat, 1, 1)
    east, north = places["lon"][:, None], places["lat"][None, :]
    sine = np.sin(np.radians(north))
    land, cooling = _land(east, north)
    mean = 300.5 - 46.0 * np.abs(sine) ** 2.2 - 14.0 * np.clip(-sine - 0.75, 0, None) * 4 + 2.0 * land - cooling
    seasonal = 24.0 * np.sign(sine) * np.abs(sine) ** 1.1 * (0.28 + 0.72 * land)
    daily = (1.0 + 6.0 * land) * np.cos(np.radians(north))
    return _Climate(*(np.ascontiguousarray(part, np.float32) for part in (mean, seasonal, daily)))


def _land(east: Float64Array, north: Float64Array) -> tuple[Float64Array, Float64Array]:
    """How much of a place is land, from 0 to 1, and how much its height cools it."""
    land = 0.5 - 0.5 * np.tanh((north + 70.0) / 6.0) + 0.0 * east
    cooling = np.zeros_like(land)
    for centre_east, centre_north, width, height, cold in _LAND:
        across = (east - centre_east + 180.0) % 360.0 - 180.0
        distance = (across / width) ** 2 + ((north - centre_north) / height) ** 2
        land = np.maximum(land, 0.5 - 0.5 * np.tanh(2.0 * (distance - 1.0)))
        cooling = np.maximum(cooling, cold * np.exp(-distance))
    return land, cooling


@functools.lru_cache(maxsize=4)
def _sun(lon: int, time: int, per_day: int) -> _Sun:
    days = np.arange(time) / per_day
    season = -np.cos(2 * np.pi * (days - 20.0) / 365.25)
    if per_day == 1:
        return _Sun(season.astype(np.float32), np.zeros((lon, 0), np.float32))
    local = days[None, :] % 1.0 + axes(lon, 1, 1, 1)["lon"][:, None] / 360.0
    return _Sun(season.astype(np.float32), np.cos(2 * np.pi * (local - 14 / 24)).astype(np.float32))


@functools.lru_cache(maxsize=4)
def _around(lon: int) -> Float32Array:
    """The cosine, then the sine of each wave at each longitude."""
    turns = np.arange(1, WAVES + 1)[:, None] * np.radians(axes(lon, 1, 1, 1)["lon"])[None, :]
    return np.concatenate([np.cos(turns), np.sin(turns)]).astype(np.float32)


@functools.lru_cache(maxsize=4)
def _profiles(lat: int) -> Float32Array:
    """How a wave's parts vary from pole to pole: nothing at the poles, most in the middle latitudes."""
    north = axes(1, lat, 1, 1)["lat"]
    storm_track = 0.25 + 0.75 * np.sin(np.radians(2 * north)) ** 2
    turns = np.arange(1, PROFILES + 1)[:, None] * np.radians(north + 90.0)[None, :]
    return np.asarray(np.sin(turns) * storm_track * np.cos(np.radians(north)) ** 0.5, np.float32)


@functools.lru_cache(maxsize=2)
def _amplitudes(time: int, per_day: int, seed: int) -> Float32Array:
    """By wave (cosine parts, then sine parts), profile and time."""
    # Times come first, so that a longer series begins with the shorter one.
    noise = np.random.default_rng(seed).standard_normal((time, WAVES, PROFILES, 2))
    pushes = noise[..., 0] + 1j * noise[..., 1]
    waves = np.arange(1, WAVES + 1)
    kept = DAY_TO_DAY ** (1 / per_day)
    turned = kept * np.exp(-1j * EASTWARD * waves / 5 / per_day)[:, None]
    state = pushes[0]
    series = np.empty_like(pushes)
    series[0] = state
    for step in range(1, time):
        state = state * turned + pushes[step] * (1 - kept**2) ** 0.5
        series[step] = state
    strength = 1 / (1 + ((waves - 4.5) / 4.0) ** 2)[:, None] / (1 + 0.15 * np.arange(PROFILES))[None, :]
    scaled = (series * strength * (STORMINESS / np.sqrt((strength**2).sum() / 2))).transpose(1, 2, 0)
    return np.ascontiguousarray(np.concatenate([scaled.real, scaled.imag]), np.float32)
