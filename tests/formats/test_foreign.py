"""Dense files made by others: with xarray, h5netcdf and zarr, none of it by windrow's writer."""

from __future__ import annotations

import json
import pickle
import threading
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

from windrow.errors import FileFormatError, MachineError
from windrow.formats import netcdf
from windrow.formats.registry import GridOptions, format_of
from windrow.model.box import Box


def weather() -> xr.Dataset:
    time = np.datetime64("2012-01-01", "ns") + np.arange(10) * np.timedelta64(6, "h")
    lat = np.linspace(90, -90, 5, dtype=np.float32)
    shape = (10, 5, 4)
    t = np.arange(200, dtype=np.float32).reshape(shape) / 8
    t[3, 2, 1] = np.nan
    return xr.Dataset(
        {
            "t": (("time", "lat", "lon"), t, {"units": "K", "long_name": "temperature"}),
            "n": (("time", "lat", "lon"), np.arange(200, dtype=np.int16).reshape(shape)),
        },
        {"time": time, "lat": ("lat", lat, {"units": "degrees_north"}), "height": 2.0},
        {"title": "weather"},
    )


def write(data: xr.Dataset, path: Path, encoding: dict[str, Any] | None = None, **options: Any) -> None:
    if path.suffix == ".nc":
        data.to_netcdf(path, engine="h5netcdf", encoding=encoding, **options)
    else:
        data.to_zarr(path, encoding=encoding, consolidated=False, **options)


# NetCDF keeps the order of its variables; Zarr has none, and they come by name.
@pytest.mark.parametrize(
    ("name", "attributes"), [("x.nc", "<t: float32, n: int16>"), ("x.zarr", "<n: int16, t: float32>")]
)
def test_plain(name: str, attributes: str, tmp_path: Path) -> None:
    data = weather()
    write(data, tmp_path / name)
    source = format_of(name).open_grid(tmp_path / name)
    assert str(source.schema).startswith(f"{attributes} [time=1:10:10")
    assert source.schema.box().shape == (10, 5, 4)
    assert set(source.labels) == {"time", "lat"}
    assert source.labels["time"].values.tolist() == data.time.values.astype("M8[us]").tolist()
    assert source.labels["lat"].attributes == {"units": "degrees_north"}
    assert source.metadata["t"] == {"units": "K", "long_name": "temperature"}
    assert source.metadata[""] == {"title": "weather"}
    blocks = source.read(Box((2, 1, 3), (4, 5, 4)))
    np.testing.assert_array_equal(blocks["t"], data.t.values[1:4, :, 2:4])
    np.testing.assert_array_equal(blocks["n"], data.n.values[1:4, :, 2:4])


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_zarr_versions(version: int, consolidated: bool, tmp_path: Path) -> None:
    data = weather()
    data["s"] = ("lon", np.array(["a", "bb", "", "é"]))
    data = data[["t", "n"]].assign(ok=(("time", "lat", "lon"), data.n.values % 3 == 0))
    data.to_zarr(tmp_path / "x.zarr", zarr_format=version, consolidated=consolidated)
    blocks = format_of("x.zarr").open_grid(tmp_path / "x.zarr").read(Box((1, 1, 1), (10, 5, 4)))
    np.testing.assert_array_equal(blocks["t"], data.t.values)
    np.testing.assert_array_equal(blocks["ok"], data.ok.values, strict=True)


@pytest.mark.parametrize("name", ["x.nc", "x.zarr"])
def test_scaled_integers_become_the_floats_xarray_gives(name: str, tmp_path: Path) -> None:
    packed = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    write(weather(), tmp_path / name, {"t": packed})
    with xr.open_dataset(
        tmp_path / name,
        engine="h5netcdf" if name == "x.nc" else "zarr",
        **({} if name == "x.nc" else {"consolidated": False}),
    ) as data:
        expected = data.t.values
    source = format_of(name).open_grid(tmp_path / name)
    got = source.read(source.schema.box())["t"]
    np.testing.assert_array_equal(got, expected, strict=True)
    assert np.isnan(got[3, 2, 1])
    assert not source.schema.attribute("t").nullable


@pytest.mark.parametrize("name", ["x.nc", "x.zarr"])
def test_integers_with_fill_values_stay_integers(name: str, tmp_path: Path) -> None:
    values = np.array([2**62 + 1, -1, 7], np.int64)
    data = xr.Dataset({"x": ("i", values, {"_FillValue": np.int64(-1)})})
    write(data, tmp_path / name)
    source = format_of(name).open_grid(tmp_path / name)
    assert str(source.schema.attributes[0]) == "x: int64 null"
    blocks = source.read(source.schema.box())
    assert blocks["x"].tolist() == [2**62 + 1, 0, 7]
    assert blocks["x__valid"].tolist() == [True, False, True]


def test_missing_value_and_unsigned(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"i": 4}
        counts = file.create_variable("counts", ("i",), "i1", fillvalue=np.int8(-1))
        counts[:] = np.array([-1, -2, 5, 9], "i1")
        counts.attrs["_Unsigned"] = "true"
        counts.attrs["missing_value"] = np.array([9], "i1")
        floats = file.create_variable("floats", ("i",), "f4", fillvalue=np.float32(1e20))
        floats[:] = np.array([1e20, -999, 1.5, np.inf], "f4")
        floats.attrs["missing_value"] = np.float64(-999)
        half = file.create_variable("big", ("i",), ">f8")
        half[:] = [1.0, 2.0, 3.0, 4.0]
    source = format_of(path).open_grid(path)
    assert [str(a) for a in source.schema.attributes] == ["counts: uint8 null", "floats: float32", "big: float64"]
    blocks = source.read(source.schema.box())
    assert blocks["counts"].tolist() == [0, 254, 5, 0]
    assert blocks["counts__valid"].tolist() == [False, True, True, False]
    np.testing.assert_array_equal(blocks["floats"], np.array([np.nan, np.nan, 1.5, np.inf], "f4"), strict=True)
    np.testing.assert_array_equal(blocks["big"], np.array([1.0, 2, 3, 4]), strict=True)


def test_texts_of_all_sorts(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"i": 2, "length": 3}
        file.create_variable("characters", ("i", "length"), "S1")[:] = np.array(
            [[b"a", b"b", b""], [b"\xc3", b"\xa9", b""]]
        )
        file.create_variable("strings", ("i",), h5py.string_dtype())[:] = np.array(["x", "yé"], object)
    source = format_of(path).open_grid(path)
    blocks = source.read(source.schema.box())
    assert blocks["characters"].tolist() == ["ab", "é"]
    assert blocks["strings"].tolist() == ["x", "yé"]
    assert source.read(Box((2,), (2,)))["characters"].tolist() == ["é"]


def test_time_attributes_with_gaps(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"i": 3}
        seen = file.create_variable("seen", ("i",), "f8", fillvalue=np.float64(-1))
        seen[:] = [0.5, -1, 366]
        seen.attrs["units"] = "days since 2000-01-01"
    source = format_of(path).open_grid(path)
    assert str(source.schema.attributes[0]) == "seen: datetime null"
    blocks = source.read(source.schema.box())
    assert blocks["seen"][[0, 2]].tolist() == np.array(["2000-01-01T12", "2001-01-01"], "M8[us]").tolist()
    assert blocks["seen__valid"].tolist() == [True, False, True]


def test_other_calendars_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"time": 2}
        file.create_variable("a", ("time",), "f8")[:] = [1, 2]
        time = file.create_variable("time", ("time",), "f8")
        time[:] = [0, 360]
        time.attrs.update({"units": "days since 2000-01-01", "calendar": "360_day"})
    with pytest.raises(FileFormatError, match=r"360_day.*convert_calendar"):
        format_of(path).open_grid(path)


def test_bounds_and_auxiliary_coordinates_are_no_data(tmp_path: Path) -> None:
    data = weather()
    data["lat_bounds"] = (("lat", "edge"), np.zeros((5, 2)))
    data["lat"].attrs["bounds"] = "lat_bounds"
    data = data.assign_coords(area=(("lat", "lon"), np.ones((5, 4))))
    data.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    source = format_of("x.nc").open_grid(tmp_path / "x.nc")
    assert source.schema.attribute_names == ("t", "n")


def test_groups_of_dimensions_must_be_chosen(tmp_path: Path) -> None:
    data = weather()
    data["land mask"] = (("lat", "lon"), np.ones((5, 4), bool))
    data["turned"] = data.n.transpose("lon", "time", "lat")
    data.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    form = format_of("x.nc")
    with pytest.raises(FileFormatError, match=r"t, n, turned \[time, lat, lon\]; land mask \[lat, lon\]"):
        form.open_grid(tmp_path / "x.nc")
    mask = form.open_grid(tmp_path / "x.nc", GridOptions(variables=("land mask",), lo={"lon": 0}))
    assert mask.schema.attribute_names == ("land_mask",)
    assert mask.schema.lo == (1, 0)
    assert mask.read(mask.schema.box())["land_mask"].all()
    with pytest.raises(FileFormatError, match="Did you mean 'turned'"):
        form.open_grid(tmp_path / "x.nc", GridOptions(variables=("turnd",)))
    both = form.open_grid(tmp_path / "x.nc", GridOptions(variables=("n", "turned"), lo=0))
    blocks = both.read(Box((1, 0, 2), (3, 4, 3)))
    np.testing.assert_array_equal(blocks["turned"], blocks["n"])
    np.testing.assert_array_equal(blocks["n"], data.n.values[1:4, :, 2:4])


def test_chunks_are_whole_chunks_of_the_file(tmp_path: Path) -> None:
    zeros = xr.Dataset({"a": (("t", "y", "x"), np.zeros((40, 145, 288), "f4"))})
    zeros.to_netcdf(tmp_path / "x.nc", engine="h5netcdf", encoding={"a": {"chunksizes": (3, 145, 100)}})
    chunk = format_of("x.nc").open_grid(tmp_path / "x.nc").schema.grid.chunk
    assert chunk[0] % 3 == 0
    assert chunk[1] == 145
    assert chunk[2] % 100 == 0 or chunk[2] == 288
    assert 2**21 <= np.prod(chunk) * 4 <= 2**22


def years(tmp_path: Path) -> xr.Dataset:
    data = weather()
    for number, (start, stop) in enumerate([(0, 3), (3, 4), (4, 10)]):
        # By name, the last comes first.
        data.isel(time=slice(start, stop)).to_netcdf(tmp_path / f"w.{9 - number}.nc", engine="h5netcdf")
    return data


@pytest.mark.parametrize("along", ["time", None])
def test_files_that_continue_one_another(along: str | None, tmp_path: Path) -> None:
    data = years(tmp_path)
    pattern = str(tmp_path / "w.*.nc")
    source = pickle.loads(pickle.dumps(format_of(pattern).open_grid(pattern, GridOptions(along=along))))
    assert source.labels["time"].values.tolist() == data.time.values.astype("M8[us]").tolist()
    for lo in range(1, 11):
        for hi in range(lo, 11):
            got = source.read(Box((lo, 2, 1), (hi, 3, 4)))
            np.testing.assert_array_equal(got["n"], data.n.values[lo - 1 : hi, 1:3])
            np.testing.assert_array_equal(got["t"], data.t.values[lo - 1 : hi, 1:3])
    (tmp_path / "w.8.nc").unlink()
    source.read(Box((1, 1, 1), (3, 5, 4)))
    with pytest.raises(FileFormatError, match="no such file"):
        source.read(Box((3, 1, 1), (4, 5, 4)))


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    data = years(tmp_path)
    pattern = str(tmp_path / "w.*.nc")
    form = format_of(pattern)
    with pytest.raises(FileFormatError, match=r"no such dimension.*'time'"):
        form.open_grid(pattern, GridOptions(along="tiem"))
    with pytest.raises(FileFormatError, match="differ along time"):
        form.open_grid(pattern, GridOptions(along="lat"))
    same = [tmp_path / "w.9.nc", tmp_path / "w.9.nc"]
    with pytest.raises(FileFormatError, match=r"not clear.*along='time'"):
        form.open_grid(same)
    with pytest.raises(FileFormatError, match=r"overlap along time.*w\.9\.nc"):
        form.open_grid(same, GridOptions(along="time"))
    shifted = data.isel(time=slice(0, 2)).assign_coords(lat=data.lat + 1)
    shifted.to_netcdf(tmp_path / "w.1.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="differ along lat"):
        form.open_grid(pattern, GridOptions(along="time"))
    data.isel(time=slice(0, 2)).assign(n=data.n[:2].astype("i8")).to_netcdf(tmp_path / "w.1.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="differ in variables"):
        form.open_grid(pattern, GridOptions(along="time"))


def test_threads_read_at_once(tmp_path: Path) -> None:
    data = weather()
    data.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    source = format_of("x.nc").open_grid(tmp_path / "x.nc")
    wrong: list[object] = []

    def work(step: int) -> None:
        for repeat in range(20):
            lo = 1 + (step + repeat) % 10
            got = source.read(Box((lo, 1, 1), (lo, 5, 4)))["n"]
            if not np.array_equal(got[0], data.n.values[lo - 1]):
                wrong.append(lo)

    threads = [threading.Thread(target=work, args=(step,)) for step in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_replaced_file_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.nc"
    for value in (1.0, 2.0):
        path.unlink(missing_ok=True)
        xr.Dataset({"a": ("i", np.full(3, value))}).to_netcdf(path, engine="h5netcdf")
        source = format_of(path).open_grid(path)
        assert source.read(source.schema.box())["a"].tolist() == [value] * 3


def test_damage(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "x.nc"
    data = xr.Dataset({"a": ("i", rng.random(50_000))})
    data.to_netcdf(path, engine="h5netcdf", encoding={"a": {"zlib": True, "chunksizes": (10_000,)}})
    whole = path.read_bytes()
    form = format_of(path)
    for size in (0, 4, 100, len(whole) // 2):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=r"x\.nc"):
            form.open_grid(path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes(2000) + whole[middle + 2000 :])
    source = form.open_grid(path)
    with pytest.raises(FileFormatError, match=r"a \[1:50000\] of .*x\.nc"):
        source.read(source.schema.box())


def test_damaged_zarr(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    xr.Dataset({"a": ("i", np.arange(9.0))}).to_zarr(path, consolidated=False)
    form = format_of(path)
    source = form.open_grid(path)
    next(iter((path / "a" / "c").iterdir())).write_bytes(b"damaged")
    with pytest.raises(FileFormatError, match=r"x\.zarr"):
        source.read(source.schema.box())
    (path / "zarr.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"x\.zarr"):
        form.open_grid(path)
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(FileFormatError, match=r"empty\.zarr"):
        form.open_grid(tmp_path / "empty.zarr")
    bare = zarr.create_group(tmp_path / "bare.zarr")
    bare.create_array("a", shape=(3,), dtype="f8")
    with pytest.raises(FileFormatError, match="dimension names"):
        form.open_grid(tmp_path / "bare.zarr")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("name", "length"), [("t", 0), ("t", 5), ("t", 13), ("time", 11), ("time", 13)])
def test_variables_that_differ_in_the_length_of_a_dimension(
    tmp_path: Path, version: int, name: str, length: int
) -> None:
    """Which Zarr allows; one that is too short once was a traceback, and of one too long a part was left out."""
    values = np.arange(120.0).reshape(12, 10)
    made = xr.Dataset({"n": (("time", "lat"), values), "t": (("time", "lat"), values)}, {"time": np.arange(12.0)})
    made.to_zarr(tmp_path / "a.zarr", zarr_format=version, consolidated=False)
    described = tmp_path / "a.zarr" / name / (".zarray" if version == 2 else "zarr.json")
    stated = json.loads(described.read_text())
    stated["shape"][0] = length
    described.write_text(json.dumps(stated))
    with pytest.raises(FileFormatError, match=f"differ in the length of time, got 12 in n, {length} in {name}"):
        format_of(tmp_path / "a.zarr").open_grid(tmp_path / "a.zarr")


def test_classic_files_name_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netcdf, "find_spec", lambda name: None)
    (tmp_path / "x.nc").write_bytes(b"CDF\x01" + bytes(100))
    with pytest.raises(MachineError, match="scipy"):
        netcdf.open_file(str(tmp_path / "x.nc"))


def test_nothing_to_read(tmp_path: Path) -> None:
    xr.Dataset({"a": 1.0}).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="no variables with dimensions"):
        format_of("x.nc").open_grid(tmp_path / "x.nc")
    with pytest.raises(FileFormatError, match=r"Did you mean 'x\.nc'"):
        format_of("x.nc").open_grid(tmp_path / "xx.nc")
    with pytest.raises(FileFormatError, match="matches"):
        format_of("x.nc").open_grid(tmp_path / "y*.nc")


def test_missing_values_in_only_some_files(tmp_path: Path) -> None:
    marked = {"_FillValue": np.int32(-1)}
    xr.Dataset({"x": ("i", np.array([1, -1], "i4"))}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    xr.Dataset({"x": ("i", np.array([3, -1], "i4"), marked)}).to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    source = format_of("a.nc").open_grid([tmp_path / "a.nc", tmp_path / "b.nc"], GridOptions(along="i"))
    blocks = source.read(source.schema.box())
    assert blocks["x"].tolist() == [1, -1, 3, 0]
    assert blocks["x__valid"].tolist() == [True, True, True, False]
