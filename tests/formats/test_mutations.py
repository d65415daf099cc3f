"""Files of every format with bytes changed at random: the right data or an error of windrow's, and nothing else.

A few of each in every run, a thousand of each in the slow ones. A change may hit a value and nothing that checks it, so
that other values are right too; what must not happen is a traceback, a hang, or an array that was touched by an import
that failed or that cannot be read after one that did not.
"""

from __future__ import annotations

import gzip
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import xarray as xr

import windrow as wr
from windrow.errors import Error, FileFormatError

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


FORMATS: dict[str, Callable[[Path], Path]] = {
    "netcdf": make_netcdf,
    "hdf5": make_hdf5,
    "zarr2": make_zarr(2),
    "zarr3": make_zarr(3, chunks=(3, 5), shards=(6, 10)),
    "parquet": make_parquet,
    "csv": make_csv,
    "csv.gz": make_gzipped,
}


def mutate(data: bytes, choose: random.Random) -> bytes:
    """Bytes with one or two changes: bits, runs, numbers that are odd as sizes or offsets, pieces cut or moved."""
    spoilt = bytearray(data)
    for _ in range(choose.randint(1, 2)):
        at = choose.randrange(max(1, len(spoilt)))
        kind = choose.choice(["bit", "bit", "bit", "zeros", "number", "number", "copy", "cut", "leave out", "put in"])
        length = min(choose.randint(1, 64), len(spoilt) - at)
        if kind == "bit" and spoilt:
            spoilt[at] ^= 1 << choose.randrange(8)
        elif kind == "zeros":
            spoilt[at : at + length] = bytes(length)
        elif kind == "number":
            number = choose.choice([0, 1, 2**7, 2**15, 2**31 - 1, 2**32 - 1, 2**62, 2**64 - 1])
            width = choose.choice([1, 2, 4, 8])
            spoilt[at : at + width] = (number % 2 ** (8 * width)).to_bytes(width, choose.choice(["little", "big"]))
        elif kind == "copy":
            other = choose.randrange(max(1, len(spoilt) - length))
            spoilt[at : at + length] = spoilt[other : other + length]
        elif kind == "cut" and choose.random() < 0.3:
            del spoilt[at:]
        elif kind == "leave out":
            del spoilt[at : at + choose.randint(1, 16)]
        elif kind == "put in":
            spoilt[at:at] = choose.randbytes(choose.randint(1, 8))
    return bytes(spoilt)


def spoil(original: Path, target: Path, choose: random.Random) -> None:
    """A copy with one of its files mutated."""
    if original.is_file():
        target.write_bytes(mutate(original.read_bytes(), choose))
        return
    shutil.copytree(original, target)
    file = choose.choice(sorted(entry for entry in target.rglob("*") if entry.is_file()))
    file.write_bytes(mutate(file.read_bytes(), choose))


def contents(array: wr.Array) -> Any:
    found = array.read()
    return found.to_pylist() if array.sparse else {name: found[name].to_numpy().tolist() for name in found}


class Importer:
    """Imports spoilt files into arrays that are there and into new ones, and looks at what came of it."""

    def __init__(self, database: wr.Database, original: Path, folder: Path) -> None:
        self.database = database
        self.original = original
        self.folder = folder
        self.options: dict[str, Any] = (
            {"dimensions": ["x", "y"]} if original.suffix in (".parquet", ".csv", ".gz") else {}
        )
        database.import_file(original, "A", **self.options)
        self.before = repr(contents(database.array("A")))
        self.version = database.array("A").version

    def check(self, number: int) -> bool:
        """Whether a spoilt file was taken for a sound one; anything but an Error is a failure of the test."""
        choose = random.Random(f"{SEED} {number}")
        target = self.folder / f"{number}{''.join(self.original.suffixes)}"
        spoil(self.original, target, choose)
        into = choose.choice(["A", "B"])
        try:
            self.database.import_file(target, into, **self.options)
        except Error:
            assert "B" not in self.database
            assert self.database.array("A").version == self.version
            if number % 10 == 0:
                assert repr(contents(self.database.array("A"))) == self.before
            return False
        finally:
            shutil.rmtree(target) if target.is_dir() else target.unlink()
        contents(self.database.array(into))
        if into == "B":
            self.database.drop("B")
        else:
            self.version = self.database.array("A").version
            self.before = repr(contents(self.database.array("A")))
        return True


@pytest.fixture
def importer(
    name: str, connect: Callable[..., wr.Database], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Importer:
    monkeypatch.setenv("WINDROW_FILE_SECONDS", "3")  # a file that hangs is refused soon
    (tmp_path / "spoilt").mkdir()
    return Importer(connect(), FORMATS[name](tmp_path), tmp_path / "spoilt")


@pytest.mark.parametrize("name", FORMATS)
def test_spoilt_files(importer: Importer) -> None:
    taken = sum(importer.check(number) for number in range(20))
    assert taken < 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FORMATS)
def test_many_spoilt_files(importer: Importer) -> None:
    for number in range(20, 1020):
        importer.check(number)


def test_a_format_s_errors_are_those_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(FileFormatError), wr.connect(tmp_path / "w", engine="local") as database:
        database.import_file(tmp_path / "a.nc", "A")
