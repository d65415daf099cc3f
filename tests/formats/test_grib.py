"""GRIB files: maps put together to fields, and nothing lost or guessed where a file is not one field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import eccodes
import numpy as np
import pytest

import windrow as wr
from windrow.errors import Error, FileFormatError
from windrow.formats.registry import GridOptions, format_of

LATITUDES = np.array([60.0, 30.0, 0.0, -30.0])
LONGITUDES = np.array([0.0, 60.0, 120.0, 180.0])
SHAPE = len(LATITUDES), len(LONGITUDES)


@dataclass(frozen=True)
class Message:
    """One map: what of, when, where above ground, and its values."""

    values: np.ndarray
    name: str = "t"
    date: int = 20120101
    hour: int = 0
    step: int = 0
    level: int = 850
    level_type: str = "isobaricInhPa"
    edition: int = 2


def write(path: Path, messages: Sequence[Message]) -> Path:
    with path.open("wb") as file:
        for message in messages:
            file.write(encode(message))
    return path


def encode(message: Message) -> bytes:
    handle = eccodes.codes_grib_new_from_samples(f"regular_ll_pl_grib{message.edition}")
    facts: dict[str, Any] = {
        "Ni": SHAPE[1], "Nj": SHAPE[0],
        "latitudeOfFirstGridPointInDegrees": 60, "latitudeOfLastGridPointInDegrees": -30,
        "longitudeOfFirstGridPointInDegrees": 0, "longitudeOfLastGridPointInDegrees": 180,
        "iDirectionIncrementInDegrees": 60, "jDirectionIncrementInDegrees": 30,
        "dataDate": message.date, "dataTime": message.hour * 100, "stepRange": str(message.step),
        "typeOfLevel": message.level_type, "level": message.level, "shortName": message.name, "bitsPerValue": 24,
    }  # fmt: skip
    for name, value in facts.items():
        eccodes.codes_set(handle, name, value)
    missing = np.isnan(message.values)
    eccodes.codes_set(handle, "missingValue", 9999.0)
    eccodes.codes_set(handle, "bitmapPresent", int(missing.any()))
    eccodes.codes_set_values(handle, np.where(missing, 9999.0, message.values).reshape(-1))
    try:
        found: bytes = eccodes.codes_get_message(handle)
        return found
    finally:
        eccodes.codes_release(handle)


def some_map(seed: int) -> np.ndarray:
    """Numbers that 24 bits hold exactly: sixteenths between 200 and 300."""
    return np.random.default_rng(seed).integers(3200, 4800, SHAPE) / 16


@pytest.mark.parametrize("edition", [1, 2])
def test_maps_become_a_field(tmp_path: Path, local: wr.Database, edition: int) -> None:
    maps = {(day, level): some_map(10 * day + level) for day in (1, 2, 3) for level in (850, 500)}
    messages = [
        Message(values, date=20120100 + day, level=level, edition=edition) for (day, level), values in maps.items()
    ]
    path = write(tmp_path / "jra55.grib2", messages)
    local.query(f"import '{path}' into T")
    array = local.array("T")
    assert array.schema.dimension_names == ("time", "isobaricInhPa", "latitude", "longitude")
    found = array.read()
    assert found["t"].dtype == np.float32
    assert (
        found["time"].values.astype("M8[D]").tolist() == np.arange("2012-01-01", "2012-01-04", dtype="M8[D]").tolist()
    )
    assert found["isobaricInhPa"].values.tolist() == [850.0, 500.0]
    assert found["latitude"].values.tolist() == LATITUDES.tolist()
    assert found["longitude"].values.tolist() == LONGITUDES.tolist()
    assert found["t"].attrs["units"] == "K"
    for (day, level), values in maps.items():
        one = found["t"].sel(time=f"2012-01-{day:02}", isobaricInhPa=level)
        assert np.allclose(one.values.reshape(SHAPE), values, atol=1e-4)


def test_files_of_one_time_continue_one_another(tmp_path: Path, local: wr.Database) -> None:
    maps = [some_map(day) for day in range(4)]
    for day, values in enumerate(maps):
        write(tmp_path / f"anl.{day}.grib2", [Message(values, date=20120101 + day)])
    local.import_file(str(tmp_path / "anl.[012].grib2"), "T", along="time", grow="time")
    local.import_file(str(tmp_path / "anl.3.grib2"), "T")
    found = local.array("T").read()
    assert np.allclose(found["t"].values, maps, atol=1e-4)
    assert found["t"].attrs["isobaricInhPa"] == "850.0"


def test_files_of_one_forecast_step_continue_along_step(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"f{step}.grib2", [Message(some_map(step), step=step)]) for step in (0, 6)]
    source = format_of(paths).open_grid(paths, GridOptions(along="step"))  # type: ignore[misc]
    assert source.schema.dimension_names == ("time", "step", "latitude", "longitude")
    assert source.labels["step"].values.tolist() == [0.0, 6.0]


def test_missing_values_are_missing(tmp_path: Path, local: wr.Database) -> None:
    values = some_map(1)
    values[1, 2] = np.nan
    local.import_file(str(write(tmp_path / "a.grib", [Message(values)])), "T")
    found = local.array("T").read()["t"].values.reshape(SHAPE)
    assert np.array_equal(np.isnan(found), np.isnan(values))


def test_maps_that_are_no_one_field_are_named(tmp_path: Path, local: wr.Database) -> None:
    messages = [
        Message(some_map(1), level=850),
        Message(some_map(2), level=500),
        Message(some_map(3), level=2, level_type="hybrid"),
        Message(some_map(4), name="u", level=850),
    ]
    path = str(write(tmp_path / "mixed.grib2", messages))
    with pytest.raises(FileFormatError, match="differ in dimensions") as caught:
        local.import_file(path, "T")
    assert "t_hybrid" in str(caught.value) or "t_isobaricInhPa" in str(caught.value)
    assert "T" not in local
    local.import_file(path, "T", variables=["u"])
    assert np.allclose(local.array("T").read()["u"].values.reshape(SHAPE), some_map(4), atol=1e-4)


def test_two_messages_for_one_map_are_refused(tmp_path: Path, local: wr.Database) -> None:
    path = write(tmp_path / "twice.grib2", [Message(some_map(1)), Message(some_map(2))])
    with pytest.raises(FileFormatError, match="several messages for one map of t"):
        local.import_file(str(path), "T")


def test_a_projected_grid_has_rows_and_columns(tmp_path: Path) -> None:
    handle = eccodes.codes_grib_new_from_samples("polar_stereographic_sfc_grib2")
    path = tmp_path / "polar.grib2"
    path.write_bytes(eccodes.codes_get_message(handle))
    eccodes.codes_release(handle)
    source = format_of(path).open_grid(path)  # type: ignore[misc]
    assert source.schema.dimension_names == ("time", "y", "x")
    assert set(source.labels) == {"time"}


def test_a_file_without_a_suffix_is_recognised(tmp_path: Path, local: wr.Database) -> None:
    local.import_file(str(write(tmp_path / "anl_surf125.2012010100", [Message(some_map(1))])), "T")
    assert local.array("T").shape == (1, *SHAPE)


@pytest.mark.parametrize("cut", [4, 50, -1, -40])
def test_damaged_files_are_refused(tmp_path: Path, local: wr.Database, cut: int) -> None:
    whole = encode(Message(some_map(1)))
    path = tmp_path / "cut.grib2"
    path.write_bytes((whole + encode(Message(some_map(2), date=20120102)))[:cut] if cut < 0 else whole[:cut])
    with pytest.raises(Error):
        local.import_file(str(path), "T")
    assert "T" not in local


def test_what_is_no_grib_is_refused_and_none_is_written(tmp_path: Path, local: wr.Database) -> None:
    path = tmp_path / "text.grib2"
    path.write_text("day,t\n1,2\n")
    with pytest.raises(FileFormatError, match="not a GRIB file"):
        local.import_file(str(path), "T")
    local.create("A", "<a: float64> [i=1:3]")
    with pytest.raises(FileFormatError):
        local.export_file("A", str(tmp_path / "a.grib2"))


def test_a_moving_mean_of_an_archive(tmp_path: Path, local: wr.Database) -> None:
    maps = [some_map(day) for day in range(5)]
    messages = [Message(values, date=20120101 + day) for day, values in enumerate(maps)]
    local.import_file(str(write(tmp_path / "a.grib2", messages)), "T")
    found = local.array("T").window(time=wr.trailing(3)).agg(mean=wr.avg("t")).compute()["mean"].values
    assert np.allclose(found[4], np.mean(maps[2:5], axis=0), atol=1e-4)
