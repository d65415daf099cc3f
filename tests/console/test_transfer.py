"""import and export: round trips, selections, and files that are not as they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import xarray as xr

import windrow as wr
from console.runs import done, windrow
from windrow.samples import temperature_field


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, so that ./warehouse is the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def field() -> xr.Dataset:
    values, labels = temperature_field(lon=6, lat=5, time=10)
    times = labels["time"].astype("datetime64[ns]")
    return xr.Dataset({"t": (("lon", "lat", "time"), values)}, coords=labels | {"time": times})


@pytest.mark.parametrize("file", ["t.nc", "t.zarr"])
def test_grids_go_in_and_out(here: Path, field: xr.Dataset, file: str) -> None:
    if file.endswith(".nc"):
        field.to_netcdf(file, engine="h5netcdf")
    else:
        field.to_zarr(file, consolidated=False)
    said = done("import", file, "--into", "T", "--chunks", "time=4,lat=5")
    assert "300 cells" in said
    assert "[lon=1:6:6, lat=1:5:5, time=1:10:4]" in said
    back = f"back-{file}"
    assert done("export", "T", back) == f"wrote T to {back}\n"
    options = {"consolidated": False} if file.endswith(".zarr") else {}
    with xr.open_dataset(back, engine="zarr" if options else "h5netcdf", **options) as opened:
        xr.testing.assert_equal(opened["t"].load(), field["t"])


def test_files_continue_one_another(here: Path, field: xr.Dataset) -> None:
    for number, start in enumerate((0, 4)):
        field.isel(time=slice(start, start + 4)).to_netcdf(f"part{number}.nc", engine="h5netcdf")
    field.isel(time=slice(8, 10)).to_netcdf("last.nc", engine="h5netcdf")
    done("import", "part0.nc", "part1.nc", "--into", "T", "--along", "time", "--grow", "time")
    done("import", "last.nc", "--into", "T", "--batch", "last")
    assert "applied before" in done("import", "last.nc", "--into", "T", "--batch", "last")
    with wr.connect(create=False) as db:
        assert db.array("T").version == 2
        np.testing.assert_array_equal(db.array("T").read()["t"].values, field["t"].values)


def test_a_pattern_of_files(here: Path, field: xr.Dataset) -> None:
    for number, start in enumerate((5, 0)):
        field.isel(time=slice(start, start + 5)).to_netcdf(f"p{number}.nc", engine="h5netcdf")
    done("import", "p*.nc", "--into", "T")
    with wr.connect(create=False) as db:
        np.testing.assert_array_equal(db.array("T").read()["t"].values, field["t"].values)


def test_variables_are_chosen_and_names_come_from_files(here: Path, field: xr.Dataset) -> None:
    field.assign(u=field["t"] * 2, v=field["t"] * 3).to_netcdf("air.2m.nc", engine="h5netcdf")
    done("import", "air.2m.nc", "--variables", "u,t")
    with wr.connect(create=False) as db:
        assert set(db.array("air_2m").schema.attribute_names) == {"u", "t"}


def test_export_of_a_part(here: Path, field: xr.Dataset) -> None:
    field.assign(u=field["t"] * 2).to_netcdf("t.nc", engine="h5netcdf")
    done("import", "t.nc")
    select = ["--select", "time=2012-01-02:2012-01-04", "--select", "lat=-90:0", "--select", "cell(lon)=2:3"]
    done("export", "t", "part.nc", "--attributes", "u", *select)
    with xr.open_dataset("part.nc", engine="h5netcdf") as part:
        assert list(part.data_vars) == ["u"]
        expected = field["t"].isel(lon=slice(1, 3), lat=slice(0, 3), time=slice(1, 4)) * 2
        np.testing.assert_array_equal(part["u"].values, expected.values)


def test_export_of_an_older_version(here: Path) -> None:
    with wr.connect() as db:
        array = db.create("A", "<a: int32> [i=1:3]")
        array.write({"a": np.array([1, 2, 3])})
        array.write({"a": np.array([7, 8, 9])})
    done("export", "A@1", "a.csv")
    assert pyarrow.csv.read_csv("a.csv")["a"].to_pylist() == [1, 2, 3]
    assert windrow("export", "A", "a.csv").exit_code == 1
    done("export", "A", "a.csv", "--overwrite")
    assert pyarrow.csv.read_csv("a.csv")["a"].to_pylist() == [7, 8, 9]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz", ".tsv"])
def test_tables_go_in_and_out(here: Path, suffix: str) -> None:
    cells = pa.table({"x": [4, 1, 9], "y": [1, 2, 3], "v": [1.5, 2.5, -3.5], "name": ["a", "b", "c"]})
    with wr.connect("first") as db:
        schema = "<v: float64, name: string> [x=1:9, y=1:3]"
        db.create("P", schema, sparse=True).insert(cells)
    file = f"points{suffix}"
    done("export", "P", file, "--db", "first")
    assert "3 cells" in done("import", file, "--dims", "x,y", "--db", "second")
    with wr.connect("second", create=False) as db:
        found = db.array("points")
        assert found.sparse
        assert found.read().select(cells.column_names).to_pylist() == cells.sort_by("x").to_pylist()


def test_the_format_may_be_stated(here: Path) -> None:
    pq.write_table(pa.table({"i": [1, 2], "v": [1.0, 2.0]}), "cells.dat")
    assert windrow("import", "cells.dat", "--dims", "i", "--format", "csv").exit_code == 1
    done("import", "cells.dat", "--dims", "i", "--format", "parquet")


def test_the_start_of_a_file_tells_its_format(here: Path) -> None:
    pq.write_table(pa.table({"i": [1, 2], "v": [1.0, 2.0]}), "cells.dat")
    done("import", "cells.dat", "--dims", "i")
    Path("text.dat").write_text("i,v\n1,2\n")
    assert windrow("import", "text.dat", "--dims", "i").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["import", "missing.nc"], 1, "no such file"),
        (["import", "cells.csv"], 1, "which columns are dimensions"),
        (["import", "cells.csv", "--dims", "i,k"], 1, "no such column"),
        (["import", "cells.csv", "--dims", "v"], 1, "cannot be a dimension"),
        (["import", "broken.nc"], 1, "error:"),
        (["import", "twice.csv", "--dims", "i"], 1, "several cells for one coordinate"),
        (["import", "cells.csv", "--dims", "i", "--format", "grib3"], 1, "unknown file format"),
        (["import", "cells.csv", "--dims", "i", "--into", "a b"], 1, "not a valid name"),
        (["import", "cells.csv", "twice.csv", "--dims", "i"], 2, "--into"),
        (["import", "cells.csv", "--dims", "i,,v"], 2, "--dims"),
        (["import", "cells.csv", "--dims", "i", "--chunks", "i:3"], 2, "--chunks"),
        (["import", "cells.csv", "--dims", "i", "--chunks", "i=0"], 2, "--chunks"),
        (["import", "cells.csv", "--dims", "i", "--engine", "gpu"], 2, "--engine"),
        (["import"], 2, "Missing argument"),
    ],
)
def test_imports_that_fail_leave_nothing(here: Path, arguments: list[str], code: int, said: str) -> None:
    Path("cells.csv").write_text("i,v\n1,0.5\n2,1.5\n")
    Path("twice.csv").write_text("i,v\n1,0.5\n1,1.5\n")
    Path("broken.nc").write_bytes(b"not a NetCDF file")
    result = windrow(*arguments)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert "Traceback" not in result.stderr
    if Path("warehouse").exists():
        assert done("list").startswith("no arrays yet")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["B", "b.nc"], 1, "no such array"),
        (["A", "a.xyz"], 1, "no file format has this suffix"),
        (["A", "none/a.csv"], 1, "no such directory"),
        (["A", "a.csv", "--attributes", "b"], 1, "b"),
        (["A", "a.csv", "--select", "k=1"], 1, "k"),
        (["A", "a.csv", "--select", "i=2:9"], 1, "outside the array"),
        (["A", "a.csv", "--select", "i=2012-01-01"], 1, "no labels"),
        (["A", "a.csv", "--select", "i"], 2, "--select"),
        (["A"], 2, "Missing argument"),
    ],
)
def test_exports_that_fail_write_nothing(here: Path, arguments: list[str], code: int, said: str) -> None:
    with wr.connect() as db:
        db.create("A", "<a: int32> [i=1:3]").write({"a": np.array([1, 2, 3])})
    result = windrow("export", *arguments)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert [path.name for path in here.iterdir()] == ["warehouse"]
