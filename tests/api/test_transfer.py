"""Files in and out of a warehouse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import DataError, FileFormatError, UnknownNameError


def field(first: str, days: int) -> xr.Dataset:
    random = np.random.default_rng(days)
    return xr.Dataset(
        {"t2m": (("time", "lat", "lon"), random.normal(280, 9, (days, 3, 4)).astype(np.float32), {"units": "K"})},
        coords={
            "time": np.arange(first, np.datetime64(first) + days, dtype="M8[D]").astype("M8[ns]"),
            "lat": ("lat", [60.0, 30.0, 0.0], {"units": "degrees_north"}),
            "lon": [0.0, 90.0, 180.0, 270.0],
        },
    )


def save(data: xr.Dataset, path: Path) -> None:
    if path.suffix == ".nc":
        data.to_netcdf(path, engine="h5netcdf")
    else:
        data.to_zarr(path, consolidated=False)


def load(path: Path) -> xr.Dataset:
    if path.suffix == ".nc":
        with xr.open_dataset(path, engine="h5netcdf") as opened:
            return opened.load()
    return xr.open_zarr(path, consolidated=False, chunks=None).load()


@pytest.mark.parametrize("ending", [".nc", ".zarr"])
def test_a_gridded_file_goes_in_and_comes_out(database: wr.Database, tmp_path: Path, ending: str) -> None:
    made = field("2012-01-01", 5)
    save(made, tmp_path / f"in{ending}")
    report = database.import_file(tmp_path / f"in{ending}", "T", chunks={"time": 2})
    assert report.cells == 60
    array = database.array("T")
    assert array.read(time="2012-01-03", lat=30.0)["t2m"].values.tolist() == made["t2m"].values[2:3, 1:2].tolist()
    database.export_file("T", tmp_path / f"out{ending}")
    back = load(tmp_path / f"out{ending}")
    np.testing.assert_array_equal(back["t2m"].values, made["t2m"].values)
    np.testing.assert_array_equal(back["time"].values.astype("M8[D]"), made["time"].values.astype("M8[D]"))
    np.testing.assert_array_equal(back["lat"].values, made["lat"].values)
    assert back["t2m"].attrs["units"] == "K"
    with pytest.raises(FileFormatError, match="already there"):
        database.export_file("T", tmp_path / f"out{ending}")


def test_files_continue_a_growing_array(local: wr.Database, tmp_path: Path) -> None:
    for number, (first, days) in enumerate([("2012-01-01", 3), ("2012-01-04", 4), ("2012-01-04", 4)]):
        save(field(first, days), tmp_path / f"{number}.nc")
        local.import_file(tmp_path / f"{number}.nc", "T", grow="time", batch=f"file {number}")
    array = local.array("T")
    assert array.shape == (7, 3, 4)
    assert array.version == 3
    again = local.import_file(tmp_path / "0.nc", "T", grow="time", batch="file 0")
    assert not again.applied
    np.testing.assert_array_equal(
        array.read(time=("2012-01-04", None))["t2m"].values, field("2012-01-04", 4)["t2m"].values
    )
    local.export_file("T@1", tmp_path / "old.nc", time=(1, 2))
    assert load(tmp_path / "old.nc").sizes["time"] == 2
    save(field("2012-01-08", 1).assign_coords(lat=[61.0, 31.0, 1.0]), tmp_path / "other.nc")
    with pytest.raises((DataError, UnknownNameError)):
        local.import_file(tmp_path / "other.nc", "T", grow="time")
    assert array.version == 3


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_table_goes_in_and_comes_out(database: wr.Database, tmp_path: Path, ending: str) -> None:
    made = database.create("S", "<v: float64, s: string null> [x=0:9:4, y=-5:5:4]", sparse=True)
    made.insert({"x": [1, 4, 9], "y": [-5, 0, 5], "v": [0.1, None, -2.5e300], "s": ["a", "b,c", None]})
    database.export_file("S", tmp_path / f"cells{ending}")
    database.import_file(tmp_path / f"cells{ending}", "R", dimensions=["x", "y"])
    array = database.array("R")
    assert array.sparse
    assert array.read().to_pydict() == made.read().to_pydict()
    database.export_file("S", tmp_path / f"some{ending}", attributes=["v"], x=(2, 9))
    database.import_file(tmp_path / f"some{ending}", "Q", dimensions=["x", "y"])
    assert database.array("Q").read().to_pydict() == {"x": [4, 9], "y": [0, 5], "v": [None, -2.5e300]}


def test_what_cannot_be_moved(local: wr.Database, tmp_path: Path) -> None:
    local.create("S", "<v: int64> [x=0:9]", sparse=True)
    (tmp_path / "cells.csv").write_text("x,v\n1,2\n")
    cases: list[tuple[Callable[[], Any], type[wr.Error]]] = [
        (lambda: local.import_file(tmp_path / "none.nc", "A"), FileFormatError),
        (lambda: local.import_file(tmp_path / "cells.csv", "A"), DataError),
        (lambda: local.import_file(tmp_path / "cells.csv", "A", dimensions=["z"]), UnknownNameError),
        (lambda: local.export_file("S", tmp_path / "cells.nc"), FileFormatError),
        (lambda: local.export_file("T", tmp_path / "cells.nc"), UnknownNameError),
    ]
    for move, error in cases:
        with pytest.raises(error):
            move()
    assert [array.name for array in local.arrays()] == ["S"]
