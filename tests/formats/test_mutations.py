"""Files of every format with bytes changed by Hypothesis: the right data or an error of windrow's, and nothing else.

A few of each in every run, a thousand of each in the slow ones. A change may hit a value and nothing that checks it:
the right data is what another reader finds in the same bytes. What must not happen is a traceback, a hang, or an array
that was touched by an import that failed or that cannot be read after one that did not.
"""

from __future__ import annotations

import gzip
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import xarray as xr
from astropy.table import Table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from formats.spoiling import Spoiling, plain, read_plainly, spoilings
from formats.test_grib import Message, some_map
from formats.test_grib import write as write_grib
from windrow.errors import Error, FileFormatError
from windrow.formats.apart import call_apart

SEED = 20261117


def dataset() -> xr.Dataset:
    steps = np.random.default_rng(SEED)
    return xr.Dataset(
        {
            "t": (("time", "lat"), steps.normal(280, 9, (12, 10)).astype("f4"), {"units": "K"}),
            "n": (("time", "lat"), steps.integers(0, 99, (12, 10), "i2"), {"_FillValue": np.int16(-1)}),
            "s": (("time", "lat"), np.full((12, 10), "wheat", object)),
        },
        {"time": np.arange(12).astype("M8[D]").astype("M8[ns]"), "lat": np.linspace(-45.0, 45.0, 10)},
    )


def rows() -> pa.Table:
    steps = np.random.default_rng(SEED)
    x = np.arange(1, 301)
    values = {"x": x, "y": steps.permutation(x), "v": steps.normal(size=300), "s": [f"text {i % 7}" for i in x]}
    return pa.table(values)


def make_netcdf(path: Path) -> Path:
    dataset().to_netcdf(path / "a.nc", engine="h5netcdf", encoding={"t": {"chunksizes": (4, 5), "zlib": True}})
    return path / "a.nc"


def make_hdf5(path: Path) -> Path:
    """With the newer layouts of HDF5, which have other indices of chunks."""
    with h5py.File(path / "a.nc", "w", libver="latest") as file:
        for name, size in (("x", 40), ("y", 6)):
            file.create_dataset(name, data=np.arange(size, dtype="f8")).make_scale(name)
        made = file.create_dataset("t", (40, 6), "f4", chunks=(4, 3), maxshape=(None, 6), compression="gzip")
        made[...] = np.arange(240).reshape(40, 6)
        for axis, name in enumerate(("x", "y")):
            made.dims[axis].attach_scale(file[name])
    return path / "a.nc"


def make_zarr(version: int, **encoding: Any) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # texts of any length are an extension of version 3
            dataset().to_zarr(path / "a.zarr", zarr_format=version, consolidated=False, encoding={"t": encoding})
        return path / "a.zarr"

    return make


def make_parquet(path: Path) -> Path:
    pa.parquet.write_table(rows(), path / "a.parquet", row_group_size=100)
    return path / "a.parquet"


def make_csv(path: Path) -> Path:
    pa.csv.write_csv(rows(), path / "a.csv")
    return path / "a.csv"


def make_gzipped(path: Path) -> Path:
    with gzip.open(path / "a.csv.gz", "wb") as file:
        pa.csv.write_csv(rows(), file)
    return path / "a.csv.gz"


def make_fits(path: Path) -> Path:
    columns = rows().to_pydict()
    Table({name: np.array(column) for name, column in columns.items()}).write(path / "a.fits")
    return path / "a.fits"


def make_grib(path: Path) -> Path:
    return write_grib(path / "a.grib2", [Message(some_map(day), date=20120101 + day) for day in range(4)])


FORMATS: dict[str, Callable[[Path], Path]] = {
    "netcdf": make_netcdf,
    "hdf5": make_hdf5,
    "zarr2": make_zarr(2),
    "zarr3": make_zarr(3, chunks=(3, 5), shards=(6, 10)),
    "parquet": make_parquet,
    "csv": make_csv,
    "csv.gz": make_gzipped,
    "fits": make_fits,
    "grib": make_grib,
}


class Importer:
    """Imports spoilt files into an array that is there and into new ones, and looks at what came of it.

    Every example finds the same warehouse, so that one that fails can be made smaller.
    """

    def __init__(self, database: wr.Database, original: Path, folder: Path) -> None:
        self.database = database
        self.original = original
        self.target = folder / f"spoilt{''.join(original.suffixes)}"
        self.is_table = original.suffix in (".parquet", ".csv", ".gz", ".fits")
        self.options: dict[str, Any] = {"dimensions": ["x", "y"]} if self.is_table else {}
        self.outcomes = Counter[str]()
        self.put_back()
        self.before = repr(contents(database.array("A")))

    def put_back(self) -> None:
        """Let A be what the sound file makes it."""
        if "A" in self.database:
            self.database.drop("A")
        self.database.import_file(self.original, "A", **self.options)
        self.version = self.database.array("A").version

    def check(self, spoiling: Spoiling, into: str) -> None:
        """Anything but an Error or the right data is a failure of the test."""
        try:
            spoiling.spoil(self.original, self.target)
            self.take(into)
        finally:
            shutil.rmtree(self.target) if self.target.is_dir() else self.target.unlink(missing_ok=True)

    def take(self, into: str) -> None:
        try:
            self.database.import_file(self.target, into, **self.options)
        except Error:
            self.outcomes["refused"] += 1
            assert "B" not in self.database
            assert self.database.array("A").version == self.version
            assert repr(contents(self.database.array("A"))) == self.before
            return
        try:
            found = contents(self.database.array(into))
            self.outcomes["taken"] += 1
            if into == "B":
                self.compare(found)
        finally:
            if into == "B":
                self.database.drop("B")
            else:
                self.put_back()

    def compare(self, found: Any) -> None:
        """What was taken is what another reader finds in the same bytes; many a change hits nothing that is checked."""
        try:
            expected = call_apart(str(self.target), read_plainly, str(self.target))
        except Exception:  # the other reader refuses the file, in whatever way
            self.outcomes["refused by the other reader"] += 1
            return
        self.outcomes["compared"] += 1
        if self.is_table:
            names = [name for name in expected if name in (found[0] if found else expected)]
            rows = zip(*(plain(expected[name]) for name in names), strict=True)
            assert sorted(map(repr, rows)) == sorted(repr(tuple(plain(row[name]) for name in names)) for row in found)
            return
        if "" in expected:  # the values of all maps
            values = np.concatenate([found[name].values.ravel() for name in found])
            assert sorted(values[~np.isnan(values)].tolist()) == expected[""][1]
            return
        for name in expected.keys() & found.keys():
            dimensions, values = expected[name]
            valid = found.get(f"{name}__valid", True)
            assert plain(found[name].astype(object).where(valid).transpose(*dimensions).values) == values, name


def contents(array: wr.Array) -> Any:
    found = array.read()
    return found.to_pylist() if array.sparse else {name: found[name] for name in found}


@pytest.fixture(scope="module")
def importer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Importer]:
    """One for each format, whose name the test states."""
    folder = tmp_path_factory.mktemp("spoilt")
    with wr.connect(folder / "warehouse", engine="local", progress=False) as database:
        made = Importer(database, FORMATS[request.param](folder), folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WINDROW_FILE_SECONDS", "5")  # a file that hangs is refused soon
            yield made


def spoil_files(importer: Importer, examples: int) -> None:
    """Draw so many spoilt files and try each; Hypothesis makes one that fails smaller, and says what it was."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(spoilings(importer.original), st.sampled_from(["A", "B"]))
    def check(spoiling: Spoiling, into: str) -> None:
        importer.check(spoiling, into)

    check()
    print(f"{importer.original.name}: {dict(importer.outcomes)}")


@pytest.mark.parametrize("importer", FORMATS, indirect=True)
def test_spoilt_files(importer: Importer) -> None:
    spoil_files(importer, 15)
    assert importer.outcomes["refused"] > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("importer", FORMATS, indirect=True)
def test_a_thousand_spoilt_files(importer: Importer) -> None:
    spoil_files(importer, 1000)


def test_a_format_s_errors_are_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(FileFormatError), wr.connect(tmp_path / "w", engine="local") as database:
        database.import_file(tmp_path / "a.nc", "A")
