"""The registry: which format a path means, what is missing, what others add."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from windrow.errors import FileFormatError, MachineError
from windrow.formats import registry
from windrow.formats.registry import FileFormat, format_of, formats, import_lazily, register


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_FORMATS", dict(registry._FORMATS))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.nc", "netcdf"),
        ("A.NC", "netcdf"),
        ("dir/jra55.*.nc", "netcdf"),
        ("a.zarr/", "zarr"),
        ("a.parquet", "parquet"),
        ("a.csv.gz", "csv"),
        (["a.csv", "b.tsv"], "csv"),
        (Path("x/a.pq"), "parquet"),
    ],
)
def test_by_suffix(path: registry.Paths, name: str) -> None:
    assert format_of(path).name == name


def test_by_name_and_content(tmp_path: Path) -> None:
    assert format_of("data.txt", "CSV").name == "csv"
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "zarr.json").touch()
    (tmp_path / "p" / "k=1").mkdir(parents=True)
    (tmp_path / "p" / "k=1" / "x.parquet").touch()
    assert format_of(tmp_path / "z").name == "zarr"
    assert format_of(tmp_path / "p").name == "parquet"


def test_unknown() -> None:
    with pytest.raises(FileFormatError, match=r"a\.parqet\. Did you mean '\.parquet'"):
        format_of("a.parqet")
    with pytest.raises(FileFormatError, match="Did you mean 'netcdf'"):
        format_of("a.nc", "netcfd")
    with pytest.raises(FileFormatError, match="one format, got csv, netcdf"):
        format_of(["a.nc", "b.csv"])


@pytest.mark.parametrize("package", ["h5netcdf", "h5py"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MachineError, match=rf"{package}.*pip install 'windrow\[netcdf\]'"):
        format_of("a.nc").open_grid("a.nc")


def test_register() -> None:
    bufr = FileFormat("bufr", (".bufr",), open_grid=import_lazily("windrow.formats.nowhere", "open_grid"))
    register(bufr)
    register(bufr)
    assert format_of("a.bufr") is bufr
    assert list(formats()) == ["netcdf", "grib", "zarr", "parquet", "csv", "fits", "bufr"]
    with pytest.raises(FileFormatError, match="already registered"):
        register(FileFormat("bufr", (".bfr",)))
    with pytest.raises(FileFormatError, match=r"\.nc of netcdf"):
        register(FileFormat("other", (".nc",)))


class Point:
    def __init__(self, name: str, value: object) -> None:
        self.name, self.value = name, str(value)
        self._value = value

    def load(self) -> object:
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


def test_plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    odim = FileFormat("odim", (".odim",))
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point("odim", odim)])
    assert format_of("a.odim") is odim
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point("bad", ValueError("no"))])
    assert format_of("a.csv").name == "csv"
    with pytest.raises(MachineError, match="bad does not load"):
        format_of("a.bad")
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point("odd", 3)])
    with pytest.raises(MachineError, match="not a windrow FileFormat"):
        format_of("a.odd")


def test_nothing_heavy_is_imported() -> None:
    heavy = "{'xarray', 'pyarrow', 'h5netcdf', 'h5py', 'zarr', 'pandas', 'cfgrib', 'eccodes', 'astropy'}"
    code = f"import sys; import windrow.formats.registry as r; r.format_of('a.nc'); print({heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
