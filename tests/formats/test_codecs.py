"""Zarr arrays that name codecs: harmless ones are run, others refused by name before anything is decoded."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

from windrow.errors import FileFormatError
from windrow.formats.codecs import check_codecs
from windrow.formats.registry import format_of


class Payload:
    """What a hostile file would hold: unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def make(path: Path, version: int, **encoding: Any) -> Path:
    data = xr.Dataset({"t": (("x", "y"), np.arange(48.0).reshape(8, 6))})
    data.to_zarr(path, zarr_format=version, consolidated=False, encoding={"t": encoding})
    return path


def change(document: Path, **changes: Any) -> None:
    document.write_text(json.dumps(json.loads(document.read_text()) | changes))


HARMLESS = {
    "version 2": (2, {}),
    "version 2, filters": (2, {"filters": [{"id": "delta", "dtype": "<f8"}], "compressors": [{"id": "zlib"}]}),
    "version 3": (3, {}),
    "version 3, shards": (3, {"chunks": (2, 3), "shards": (4, 6)}),
    "version 3, no compression": (3, {"compressors": None}),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_usual_codecs_are_run(tmp_path: Path, name: str) -> None:
    version, encoding = HARMLESS[name]
    if "filters" in encoding:
        import numcodecs

        encoding = {"filters": [numcodecs.Delta("<f8")], "compressors": [numcodecs.Zlib()]}
    source = format_of("a.zarr").open_grid(make(tmp_path / "a.zarr", version, **encoding))
    assert np.array_equal(source.read(source.schema.box())["t"].reshape(-1), np.arange(48.0))


def test_a_pickle_in_version_2_is_not_opened(tmp_path: Path) -> None:
    path = make(tmp_path / "a.zarr", 2, compressors=None)
    change(path / "t" / ".zarray", dtype="|O", filters=[{"id": "pickle"}], fill_value=None)
    (path / "t" / "0.0").write_bytes(pickle.dumps(Payload(tmp_path / "harm")))
    with pytest.raises(FileFormatError, match=r"codec.*'pickle'"):
        format_of(path).open_grid(path)
    assert not (tmp_path / "harm").exists()


HOSTILE: dict[str, dict[str, Any]] = {
    "filter": {"filters": [{"id": "pickle"}]},
    "filter with another name": {"filters": [{"id": "pickle", "name": "gzip"}]},
    "compressor": {"compressor": {"id": "pickle"}},
    "unknown": {"compressor": {"id": "mystery"}},
    "codec": {"codecs": [{"name": "numcodecs.pickle", "configuration": {}}]},
    "text": {"codecs": ["numcodecs.pickle"]},
    "in a shard": {
        "codecs": [{"name": "sharding_indexed", "configuration": {"codecs": [{"name": "numcodecs.pickle"}]}}]
    },
    "in a shard's index": {
        "codecs": [{"name": "sharding_indexed", "configuration": {"index_codecs": [{"name": "numcodecs.pickle"}]}}]
    },
    "no name": {"codecs": [{}]},
    "number": {"codecs": [5]},
    "consolidated": {"consolidated_metadata": {"metadata": {"u": {"codecs": [{"name": "numcodecs.pickle"}]}}}},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("version", [2, 3])
def test_other_codecs_are_refused(tmp_path: Path, name: str, version: int) -> None:
    path = make(tmp_path / "a.zarr", version)
    change(path / "t" / (".zarray" if version == 2 else "zarr.json"), **HOSTILE[name])
    with pytest.raises(FileFormatError, match="codec"):
        check_codecs(str(path))


def test_attributes_may_be_called_as_they_like(tmp_path: Path) -> None:
    group = zarr.open_group(make(tmp_path / "a.zarr", 3), mode="r+")
    group.attrs["codecs"] = ["mystery"]
    check_codecs(str(tmp_path / "a.zarr"))


def test_data_said_to_lie_in_other_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 64)
    with h5py.File(tmp_path / "external.nc", "w") as file:
        file.create_dataset("t", (8,), "f8", external=[(str(secret), 0, 64)])
    with h5py.File(tmp_path / "link.nc", "w") as file:
        file["t"] = h5py.ExternalLink(str(tmp_path / "external.nc"), "t")
    with h5py.File(tmp_path / "virtual.nc", "w") as file:
        layout = h5py.VirtualLayout((8,), "f8")
        layout[:] = h5py.VirtualSource(str(tmp_path / "external.nc"), "t", (8,))
        file.create_virtual_dataset("t", layout)
    for name in ("external", "link", "virtual"):
        with pytest.raises(FileFormatError, match="another file"):
            format_of("a.nc").open_grid(tmp_path / f"{name}.nc")
