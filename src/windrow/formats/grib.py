"""GRIB files, editions 1 and 2, through ecCodes and cfgrib: messages put together to fields of several dimensions.

A file is a heap of maps. Those of one parameter that differ in time, forecast step, level or ensemble member are one
variable with these dimensions. A dimension of one value is left out, all but time, along which archives continue; the
value is kept among what is known of the variable.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cfgrib
import cfgrib.xarray_store
import numpy as np
import xarray as xr

from windrow.errors import FileFormatError
from windrow.formats.dataset import Contents, open_source
from windrow.formats.place import expand
from windrow.formats.registry import GridOptions, Paths
from windrow.formats.several import concatenate
from windrow.model.source import GridSource

MAP_DIMENSIONS = ("latitude", "longitude", "y", "x", "values")
"""Those of one message: degrees, rows and columns of a projection, or points in no grid."""
ALWAYS_KEPT = ("time", *MAP_DIMENSIONS)
DERIVED = "valid_time"
"""The sum of time and step, which cfgrib adds to what the file has."""
TELLING_APART = ("GRIB_typeOfLevel", "GRIB_stepType")
"""What variables of one name differ in: the kind of level, or whether values are instantaneous, means or sums."""
DESCRIBING = ("long_name", "units", "standard_name", "GRIB_paramId", "GRIB_shortName", *TELLING_APART)
"""What is kept of a variable's many attributes; the others tell how its maps are packed."""

_START = b"GRIB"


def open_grid(path: Paths, options: GridOptions | None = None) -> GridSource:
    """The fields of a file, or of several files that continue one another."""
    options = options or GridOptions()
    opener = MessageOpener(() if options.along is None else (options.along,))
    files = expand(path)
    if len(files) == 1:
        return open_source(files[0], opener, options)
    parts = [open_source(file, opener, options) for file in files]
    return concatenate(parts, options.along, in_order=not isinstance(path, (str, os.PathLike)))


@dataclass(frozen=True)
class MessageOpener:
    """Opens files; ``kept`` are further dimensions that stay although they have one value."""

    kept: tuple[str, ...] = ()

    def __call__(self, path: str) -> Contents:
        try:
            with open(path, "rb") as file:
                start = file.read(len(_START))
        except OSError as error:
            raise FileFormatError(f"cannot read {path}", got=error) from error
        if start != _START:
            raise FileFormatError("not a GRIB file", got=path)
        datasets = _open_datasets(path)
        fields = Fields((*ALWAYS_KEPT, *self.kept))
        for dataset in datasets:
            fields.add(dataset)
        return Contents(fields.variables, _describe_file(datasets[0].attrs), lambda: None)


def _open_datasets(path: str) -> list[xr.Dataset]:
    """The messages of a file, as few datasets as their levels and grids allow."""
    # Every message counts: one that cannot be read is an error, and no index is written beside the file.
    how = {"indexpath": "", "squeeze": False, "errors": "raise"}
    raw: dict[str, Any] = {"decode_cf": False, "cache": False}
    logging.getLogger("cfgrib").setLevel(logging.CRITICAL)  # what it tries in vain is no news
    try:
        return [xr.open_dataset(path, engine="cfgrib", backend_kwargs=how, **raw)]
    except cfgrib.DatasetBuildError:
        pass  # parameters on several kinds of levels or grids: each kind by itself
    except Exception as error:  # ecCodes and cfgrib raise whatever they like over damaged messages
        raise _unreadable(path, error) from error
    try:
        found = cfgrib.xarray_store.open_variable_datasets(path, backend_kwargs=how, **raw)
    except Exception as error:
        raise _unreadable(path, error) from error
    if not found:
        raise FileFormatError(f"{path} has no messages")
    return list(found)


def _unreadable(path: str, error: Exception) -> FileFormatError:
    lines = str(error).splitlines() or [type(error).__name__]
    return FileFormatError(f"cannot read {path}, which may be damaged", got=lines[0][:300])


def _describe_file(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: attributes[name] for name in ("institution", "Conventions") if name in attributes}


class Fields:
    """The variables of several datasets under one roof: a name that would stand for two things gets an ending."""

    def __init__(self, kept: Sequence[str]) -> None:
        self._kept = frozenset(kept)
        self.variables: dict[str, xr.Variable] = {}

    def add(self, dataset: xr.Dataset) -> None:
        axes = {name: self._axis(name, dataset) for name in map(str, dataset.sizes)}
        names = [str(name) for name in dataset.data_vars if name != DERIVED]
        places = [name for name in names if name in MAP_DIMENSIONS]  # latitudes of points that are in no such order
        for name in names:
            if name not in places:
                _refuse_doubles(name, dataset.variables[name])
                variable = self._lay_out(dataset.variables[name], dataset, axes, places)
                self.variables[self._free_name(name, variable)] = variable
        for name in places:
            variable = dataset.variables[name]
            self.variables.setdefault(name, xr.Variable([axes[str(axis)] for axis in variable.dims], variable, {}))

    def _axis(self, name: str, dataset: xr.Dataset) -> str:
        """What a dimension is called here; another one if the name is taken by other coordinates."""
        coordinate = dataset.variables.get(name)
        if coordinate is None or (dataset.sizes[name] == 1 and name not in self._kept):
            return name
        number, chosen = 1, name
        while chosen in self.variables and not np.array_equal(self.variables[chosen], coordinate):
            number += 1
            chosen = f"{name}_{number}"
        if chosen not in self.variables:
            self.variables[chosen] = xr.Variable((chosen,), coordinate.to_numpy(), _describe(coordinate.attrs))
        return chosen

    def _lay_out(
        self, variable: xr.Variable, dataset: xr.Dataset, axes: Mapping[str, str], places: Sequence[str]
    ) -> xr.Variable:
        attributes = {name: variable.attrs[name] for name in DESCRIBING if name in variable.attrs}
        single = [name for name, size in variable.sizes.items() if size == 1 and name not in self._kept]
        for name in single:
            if name in dataset.variables:
                attributes[str(name)] = dataset.variables[name].to_numpy().item()
        if places:
            attributes["coordinates"] = " ".join(places)
        laid = variable.isel(dict.fromkeys(single, 0))
        found = xr.Variable([axes[str(name)] for name in laid.dims], laid._data, attributes)
        # A message is a whole map: whoever reads a part of one decodes all of it.
        found.encoding["preferred_chunks"] = {
            axes[str(name)]: size if name in MAP_DIMENSIONS else 1 for name, size in laid.sizes.items()
        }
        return found

    def _free_name(self, name: str, variable: xr.Variable) -> str:
        taken = self.variables.get(name)
        endings = (
            [] if taken is None else [variable.attrs.get(key) for key in TELLING_APART if _differ(key, taken, variable)]
        )
        chosen = f"{name}_{endings[0]}" if endings else name
        number = 2
        while chosen in self.variables:
            chosen, number = f"{name}_{number}", number + 1
        return chosen


def _differ(key: str, one: xr.Variable, other: xr.Variable) -> bool:
    return bool(one.attrs.get(key) != other.attrs.get(key))


def _refuse_doubles(name: str, variable: xr.Variable) -> None:
    """Refuse two messages for one map: nothing says which of them is meant."""
    data = variable._data
    while not hasattr(data, "field_id_index") and hasattr(data, "array"):  # below xarray's layers lies cfgrib's index
        data = data.array
    doubles = [place for place, messages in getattr(data, "field_id_index", {}).items() if len(messages) > 1]
    if doubles:
        hint = "Divide it first, as with grib_copy -w dataType=an old.grib new.grib"
        raise FileFormatError(f"several messages for one map of {name}", got=f"{len(doubles)} such maps", hint=hint)


def _describe(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A coordinate's attributes; cfgrib's word on how xarray should store it is not for us."""
    return {name: value for name, value in attributes.items() if name != "dtype"}
