"""NetCDF files: NetCDF 4 through h5netcdf, the classic formats where SciPy is installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import h5netcdf
import h5py
import numpy as np
import numpy.typing as npt
import xarray as xr

from windrow.errors import FileFormatError, MachineError
from windrow.formats.dataset import Contents, open_source
from windrow.formats.encode import Stored, write_blocks
from windrow.formats.place import expand, replacing
from windrow.formats.registry import GridOptions, Paths
from windrow.formats.several import concatenate
from windrow.model.source import GridSource

_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC = b"CDF"


def open_grid(path: Paths, options: GridOptions | None = None) -> GridSource:
    """The dense data of a file, or of several files that continue one another."""
    options = options or GridOptions()
    files = expand(path)
    if len(files) == 1:
        return open_source(files[0], open_file, options)
    parts = [open_source(file, open_file, options) for file in files]
    return concatenate(parts, options.along, in_order=not isinstance(path, (str, os.PathLike)))


def open_file(path: str) -> Contents:
    """A file's raw variables and attributes; xarray serialises access to HDF5, which is not safe with threads."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(_HDF5))
        if start.startswith(_CLASSIC):
            return _open_classic(path)
        if start != _HDF5:
            raise FileFormatError("not a NetCDF file", got=path)
        _check_nothing_elsewhere(path)
        return _contents(xr.backends.H5NetCDFStore.open(path, mode="r"))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise FileFormatError(f"cannot read {path}, which may be damaged", got=error) from error


def _check_nothing_elsewhere(path: str) -> None:
    """Refuse a file whose data is said to lie in other files: it could name any file of its reader's."""
    with h5py.File(path, "r") as file:
        for name in file:
            link = file.get(name, getlink=True)
            found = None if isinstance(link, h5py.ExternalLink) else file.get(name)
            if isinstance(link, h5py.ExternalLink) or (
                isinstance(found, h5py.Dataset) and (found.external or found.is_virtual)
            ):
                hint = "Copy it into one file first, as with nccopy or h5repack"
                raise FileFormatError(f"variable {name} of {path} lies in another file", hint=hint)


def _open_classic(path: str) -> Contents:
    if find_spec("scipy") is None:
        hint = "pip install scipy, or convert the file: nccopy -k nc4 old.nc new.nc"
        raise MachineError("classic NetCDF files need the package scipy", got=path, hint=hint)
    return _contents(xr.backends.ScipyDataStore(path, mode="r"))


def _contents(store: Any) -> Contents:
    variables, attributes = store.load()
    return Contents(dict(variables), dict(attributes), store.close)


def write_grid(path: str | os.PathLike[str], source: GridSource, *, overwrite: bool = False) -> None:
    """Write dense data as a NetCDF 4 file, block by block."""
    with replacing(path, overwrite) as temporary:
        write_blocks(source, lambda: _Sink(temporary))


class _Sink:
    """A NetCDF file being written."""

    def __init__(self, path: Path) -> None:
        self._file = h5netcdf.File(path, "w")

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._file.close()

    def begin(self, dimensions: Mapping[str, int], attributes: Mapping[str, Any]) -> None:
        self._file.dimensions = dict(dimensions)
        self._file.attrs.update(attributes)

    def create(self, stored: Stored) -> None:
        if stored.dtype.kind == "T":
            variable = self._file.create_variable(stored.name, stored.dimensions, h5py.string_dtype())
        else:
            variable = self._file.create_variable(
                stored.name,
                stored.dimensions,
                stored.dtype,
                chunks=stored.chunks,
                fillvalue=stored.fill,
                compression="gzip",
                compression_opts=1,
                shuffle=True,
            )
        variable.attrs.update(stored.attributes)

    def write(self, name: str, where: tuple[slice, ...], values: npt.NDArray[Any]) -> None:
        raw = values.astype(object) if values.dtype.kind == "T" else values
        try:
            self._file.variables[name][where] = np.ascontiguousarray(raw)
        except ValueError as error:
            raise FileFormatError(f"NetCDF cannot hold the values of {name}", got=error) from error
