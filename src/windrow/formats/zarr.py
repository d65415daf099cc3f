"""Zarr directories: versions 2 and 3 in, version 3 out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy.typing as npt
import xarray as xr
import zarr

from windrow.errors import FileFormatError
from windrow.formats.codecs import check_codecs
from windrow.formats.dataset import Contents, open_source
from windrow.formats.encode import Stored, write_blocks
from windrow.formats.place import expand, replacing
from windrow.formats.registry import GridOptions, Paths
from windrow.formats.several import concatenate
from windrow.model.source import GridSource


def open_grid(path: Paths, options: GridOptions | None = None) -> GridSource:
    """The dense data of a Zarr group, or of several that continue one another."""
    options = options or GridOptions()
    groups = expand(path)
    if len(groups) == 1:
        return open_source(groups[0], open_group, options)
    parts = [open_source(group, open_group, options) for group in groups]
    return concatenate(parts, options.along, in_order=not isinstance(path, (str, os.PathLike)))


def open_group(path: str) -> Contents:
    """A group's raw variables and attributes; consolidated metadata is not needed to list a directory.

    Zarr keeps no order of a group's arrays and lists them as answers arrive: by name, one file is always one schema.
    """
    check_codecs(path)
    try:
        store = xr.backends.ZarrStore.open_group(path, mode="r", consolidated=False)
        variables, attributes = store.load()
    except KeyError as error:
        hint = "Its arrays may lack dimension names (dimension_names, in version 2 _ARRAY_DIMENSIONS)"
        raise FileFormatError(f"cannot read {path}", got=error, hint=hint) from error
    except (OSError, ValueError, RuntimeError, TypeError, AttributeError, LookupError) as error:
        raise FileFormatError(f"cannot read {path} as a Zarr group", got=error) from error
    return Contents(dict(sorted(variables.items())), dict(attributes), store.close)


def write_grid(path: str | os.PathLike[str], source: GridSource, *, overwrite: bool = False) -> None:
    """Write dense data as a Zarr version 3 group, block by block."""
    with replacing(path, overwrite) as temporary:
        write_blocks(source, lambda: _Sink(temporary))


class _Sink:
    """A Zarr group being written."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __enter__(self) -> _Sink:
        self._group = zarr.create_group(self._path, zarr_format=3, overwrite=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            with warnings.catch_warnings():
                # Zarr warns that this is an extension of version 3; without it, xarray warns at every opening.
                warnings.simplefilter("ignore")
                zarr.consolidate_metadata(self._path)

    def begin(self, dimensions: Mapping[str, int], attributes: Mapping[str, Any]) -> None:
        self._sizes = dict(dimensions)
        self._group.attrs.update(attributes)

    def create(self, stored: Stored) -> None:
        attributes = dict(stored.attributes)
        if stored.fill is not None:
            attributes["_FillValue"] = stored.fill.item()
        self._group.create_array(
            stored.name,
            shape=tuple(self._sizes[name] for name in stored.dimensions),
            chunks=stored.chunks,
            dtype=stored.dtype,
            dimension_names=stored.dimensions,
            attributes={key: value.item() if hasattr(value, "item") else value for key, value in attributes.items()},
        )

    def write(self, name: str, where: tuple[slice, ...], values: npt.NDArray[Any]) -> None:
        array = self._group[name]
        assert isinstance(array, zarr.Array)
        array[where] = values
