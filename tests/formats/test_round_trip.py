"""Dense files: what was written is what is read, in every type, and other readers understand it too."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings

from formats.memory import MemorySource, assert_same, sources
from windrow.errors import DataError, FileFormatError, StoreError
from windrow.formats import encode
from windrow.formats.registry import format_of
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES

KINDS = ["netcdf", "zarr"]
SUFFIX = {"netcdf": ".nc", "zarr": ".zarr"}


def simple(values: np.ndarray, valid: np.ndarray | None = None, **options: object) -> MemorySource:
    type_ = TYPES[
        "string" if values.dtype.kind == "T" else values.dtype.name.split("64[")[0].replace("datetime", "datetime")
    ]
    dimensions = tuple(Dimension(n, 1, s, 2) for n, s in zip("ij", values.shape, strict=False))
    cells = {"a": values} if valid is None else {"a": values, "a__valid": valid}
    return MemorySource(Schema(dimensions, (Attribute("a", type_, valid is not None),)), cells, **options)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(source=sources())
def test_written_is_read(kind: str, source: MemorySource) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / f"x{SUFFIX[kind]}")
        form = format_of(path)
        form.write_grid(path, source)
        got = pickle.loads(pickle.dumps(form.open_grid(path)))
        assert_same(got, source)
        box = source.schema.box()
        inner = Box(box.hi, box.hi)
        for name, values in got.read(inner).items():
            np.testing.assert_array_equal(values, source.cells[name][inner.slices(source.schema.lo)])
        assert [p.name for p in Path(directory).iterdir()] == [f"x{SUFFIX[kind]}"]


@pytest.mark.parametrize("kind", KINDS)
def test_xarray_understands_what_is_written(kind: str, tmp_path: Path) -> None:
    times = np.array(["2012-01-01T00:00:00", "2012-01-01T06:00:00.000001"], "datetime64[us]")
    values = np.array([[1, 2, 3], [4, 5, 6]], np.int16)
    valid = np.array([[True, False, True], [True, True, False]])
    source = simple(
        values, valid, labels={"i": Labels.of(times, {"long_name": "when"})}, metadata={"a": {"units": "K"}}
    )
    path = str(tmp_path / f"x{SUFFIX[kind]}")
    format_of(path).write_grid(path, source)
    options = {"engine": "zarr"} if kind == "zarr" else {"engine": "h5netcdf"}
    with xr.open_dataset(path, **options) as data:
        np.testing.assert_array_equal(data.a.values, np.where(valid, values, np.nan))
        assert data.a.attrs["units"] == "K"
        assert data.i.values.astype("datetime64[us]").tolist() == times.tolist()
        assert data.i.attrs["long_name"] == "when"
        assert data.j.values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_in_use_leaves_no_mark_for_missing(kind: str, tmp_path: Path) -> None:
    values = np.arange(257, dtype=np.int64).astype(np.uint8)
    valid = np.ones(257, bool)
    values[256], valid[256] = 0, False
    path = str(tmp_path / f"x{SUFFIX[kind]}")
    source = simple(values, valid)
    format_of(path).write_grid(path, source)
    assert_same(format_of(path).open_grid(path), source)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_bounded(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK_BYTES", 64)
    source = simple(np.arange(48.0).reshape(6, 8))
    path = str(tmp_path / f"x{SUFFIX[kind]}")
    format_of(path).write_grid(path, source)
    assert max(box.size for box in source.reads) <= 8
    assert sum(box.size for box in source.reads) == 48
    assert_same(format_of(path).open_grid(path), source)


class Failing(MemorySource):
    def read(self, box: Box) -> dict[str, np.ndarray]:
        if box.lo[0] > 2:
            raise OSError(28, "No space left on device")
        return dict(super().read(box))


@pytest.mark.parametrize("kind", [*KINDS, "parquet", "csv"])
def test_a_failure_leaves_what_was_there(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "BLOCK_BYTES", 64)
    monkeypatch.setattr("windrow.formats.cells._BLOCK_CELLS", 8)
    good = simple(np.arange(48.0).reshape(6, 8))
    path = tmp_path / f"x{SUFFIX.get(kind, '.' + kind)}"
    form = format_of(path)
    with pytest.raises(StoreError, match="No space left"):
        form.write_grid(path, Failing(good.schema, good.cells))
    assert not list(tmp_path.iterdir())
    form.write_grid(path, good)
    with pytest.raises(FileFormatError, match="already there"):
        form.write_grid(path, good)
    with pytest.raises(StoreError):
        form.write_grid(path, Failing(good.schema, good.cells), overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    other = simple(np.ones((6, 8)))
    form.write_grid(path, other, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if form.open_grid is not None:
        assert_same(form.open_grid(path), other)


@pytest.mark.parametrize("kind", KINDS)
def test_outside_box_and_growing(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / f"x{SUFFIX[kind]}")
    source = simple(np.arange(4.0))
    format_of(path).write_grid(path, source)
    with pytest.raises(DataError, match="outside"):
        format_of(path).open_grid(path).read(Box((1,), (5,)))
    growing = Schema((Dimension("i", 1, None, 2),), source.schema.attributes)
    with pytest.raises(FileFormatError, match="bounds"):
        format_of(path).write_grid(str(tmp_path / "y.nc"), MemorySource(growing, source.cells))


def test_netcdf_refuses_text_with_null_characters(tmp_path: Path) -> None:
    source = simple(np.array(["a\x00b"], np.dtypes.StringDType()))
    with pytest.raises(FileFormatError, match="cannot hold"):
        format_of("x.nc").write_grid(tmp_path / "x.nc", source)
    assert not list(tmp_path.iterdir())
