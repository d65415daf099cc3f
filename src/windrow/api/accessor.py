"""Windows on xarray objects: ``ds.windrow.window(time=wr.trailing(30)).percentile("t", 70)``.

It runs in this process, on NumPy arrays; a variable that is loaded lazily is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.definitions import DEFINITIONS
from windrow.aggregates.evaluate import METHODS
from windrow.errors import DataError, SchemaError, UnknownNameError, nearest
from windrow.model.conform import conform
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import data_type_of
from windrow.model.window import Extent, LabelExtent, Window
from windrow.operations.sources import MemorySource
from windrow.operations.windows import WindowSource
from windrow.plan.windows import WindowPlan

Aggregates = Mapping[str, Aggregate]


@dataclass(frozen=True)
class WindowRequest:
    """A window asked for by names of dimensions, which each variable binds for itself."""

    extents: Mapping[str, Extent | LabelExtent]
    step: Any
    boundary: str
    min_count: int
    method: str

    def compute(self, data: xr.DataArray, aggregates: Aggregates) -> dict[str, xr.DataArray]:
        """The aggregates of one variable, in one pass over it."""
        for name in self.extents:
            if name not in data.dims:
                hint = nearest(name, map(str, data.dims))
                raise UnknownNameError("no such dimension", got=repr(name), hint=hint)
        if 0 in data.shape:
            raise DataError(f"variable {data.name} has no cells", got=dict(data.sizes), hint="Select some")
        source = _memory_source(data)
        window = Window.of(
            source.schema, self.extents, step=self.step, boundary=self.boundary, min_count=self.min_count
        )
        of_values = {name: aggregate.of("x") for name, aggregate in aggregates.items()}
        plan = WindowPlan(
            source.schema, source.schema.box(), window, tuple(of_values.items()), _labels(data), self.method
        )
        computed = WindowSource(source, plan)
        blocks = computed.read(plan.results)
        kept = data.isel({str(d): slice(None, None, s) for d, s in zip(data.dims, window.step, strict=True)})
        return {
            name: xr.DataArray(
                _filled(blocks, computed.schema.attribute(name)), kept.coords, kept.dims, name, data.attrs
            )
            for name in aggregates
        }


def _memory_source(data: xr.DataArray) -> MemorySource:
    values = data.to_numpy()
    attribute = Attribute("x", data_type_of(values.dtype), nullable=True)
    plain, present = conform(values, attribute)
    dimensions = tuple(Dimension(str(name), 0, size - 1, size) for name, size in data.sizes.items())
    if present is None or present.all():
        return MemorySource(Schema(dimensions, (Attribute("x", attribute.type),)), {"x": plain})
    return MemorySource(Schema(dimensions, (attribute,)), {"x": plain, attribute.companion: present})


def _labels(data: xr.DataArray) -> tuple[tuple[str, Labels], ...]:
    """The coordinates that windows in label units may ask for; others, such as object ones, are no labels."""
    found = []
    for name in map(str, data.dims):
        if name in data.coords and data.coords[name].dtype.kind in "iufM":
            coordinate = data.coords[name]
            attributes = {str(key): str(value) for key, value in coordinate.attrs.items()}
            found.append((name, Labels.of(coordinate.to_numpy(), attributes)))
    return tuple(found)


def _filled(blocks: Mapping[str, Any], attribute: Attribute) -> Any:
    """Values as xarray keeps them: NaN or NaT where something is missing."""
    values = blocks[attribute.name]
    if not attribute.has_companion or blocks[attribute.companion].all():
        return values.astype(object) if values.dtype.kind == "T" else values
    missing = ~blocks[attribute.companion]
    if values.dtype.kind == "M":
        return np.where(missing, np.datetime64("NaT", "us"), values)
    filled = values.astype(object if values.dtype.kind == "T" else np.float64)
    filled[missing] = None if values.dtype.kind == "T" else np.nan
    return filled


def _request(extents: Mapping[str, Any], step: Any, boundary: str, min_count: int, method: str) -> WindowRequest:
    if not extents:
        raise SchemaError("the window has no dimension", hint="As in .window(time=wr.trailing(30))")
    for name, extent in extents.items():
        if not isinstance(extent, Extent | LabelExtent):
            raise SchemaError(
                f"the window along {name} needs an anchor",
                got=repr(extent),
                hint=f"As in {name}=wr.trailing({extent!r}) or wr.centred({extent!r})",
            )
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
    return WindowRequest(dict(extents), step, boundary, min_count, method)


def _checked(aggregates: Mapping[str, Any]) -> Aggregates:
    if not aggregates:
        raise DataError("there is nothing to compute", hint='As in .agg(m=wr.max("t"))')
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise DataError(f"{name} is not an aggregate", got=repr(aggregate), hint='As in wr.max("t")')
    return aggregates


class DatasetWindow:
    """A window on a Dataset: ``agg`` computes several aggregates, each aggregate's own name computes one."""

    def __init__(self, data: xr.Dataset, request: WindowRequest) -> None:
        self._data = data
        self._request = request

    def agg(self, **aggregates: Aggregate) -> xr.Dataset:
        """Named aggregates: ``.agg(p=wr.percentile("t", 70), m=wr.max("t"))``."""
        by_variable: dict[str, dict[str, Aggregate]] = {}
        for name, aggregate in _checked(aggregates).items():
            by_variable.setdefault(self._variable(aggregate.attribute), {})[name] = aggregate
        found: dict[str, xr.DataArray] = {}
        for variable, wanted in by_variable.items():
            found |= self._request.compute(self._data[variable], wanted)
        return xr.Dataset({name: found[name] for name in aggregates}, attrs=self._data.attrs)

    def _variable(self, name: str | None) -> str:
        known = [str(variable) for variable in self._data.data_vars]
        if name is None and len(known) == 1:
            return known[0]
        if name not in known:
            raise UnknownNameError("no such variable", got=repr(name), hint=nearest(str(name), known))
        return name

    def one(self, aggregate: Aggregate) -> xr.DataArray:
        """One aggregate, named after its variable."""
        name = self._variable(aggregate.attribute)
        return self._request.compute(self._data[name], {name: aggregate})[name]


class DataArrayWindow:
    """A window on a DataArray: each aggregate's name computes it."""

    def __init__(self, data: xr.DataArray, request: WindowRequest) -> None:
        self._data = data
        self._request = request

    def agg(self, **aggregates: Aggregate) -> xr.Dataset:
        """Named aggregates; the attribute that they name does not matter."""
        return xr.Dataset(self._request.compute(self._data, _checked(aggregates)))

    def one(self, aggregate: Aggregate) -> xr.DataArray:
        name = "result" if self._data.name is None else str(self._data.name)
        return self._request.compute(self._data, {name: aggregate})[name].rename(self._data.name)


def _of_dataset(name: str) -> Callable[..., xr.DataArray]:
    def method(self: DatasetWindow, variable: str | None = None, parameter: float | None = None) -> xr.DataArray:
        return self.one(Aggregate(name, variable, parameter))

    return _named(method, name)


def _of_array(name: str) -> Callable[..., xr.DataArray]:
    def method(self: DataArrayWindow, parameter: float | None = None) -> xr.DataArray:
        return self.one(Aggregate(name, "x", parameter))

    return _named(method, name)


def _named(method: Callable[..., xr.DataArray], name: str) -> Callable[..., xr.DataArray]:
    method.__name__ = name
    method.__doc__ = f"{name} over the window, missing values skipped."
    return method


def _add_methods(names: Iterable[str]) -> None:
    for name in names:
        setattr(DatasetWindow, name, _of_dataset(name))
        setattr(DataArrayWindow, name, _of_array(name))


_add_methods(DEFINITIONS)


class DatasetAccessor:
    """``ds.windrow``: windows on the variables of a Dataset."""

    def __init__(self, data: xr.Dataset) -> None:
        self._data = data

    def window(
        self, *, step: Any = 1, boundary: str = "clip", min_count: int = 0, method: str = "auto", **extents: Any
    ) -> DatasetWindow:
        """A window around every cell; each dimension's anchor must be given, as in ``time=wr.trailing(30)``."""
        return DatasetWindow(self._data, _request(extents, step, boundary, min_count, method))


class DataArrayAccessor:
    """``array.windrow``: windows on one variable."""

    def __init__(self, data: xr.DataArray) -> None:
        self._data = data

    def window(
        self, *, step: Any = 1, boundary: str = "clip", min_count: int = 0, method: str = "auto", **extents: Any
    ) -> DataArrayWindow:
        """A window around every cell; each dimension's anchor must be given, as in ``time=wr.trailing(30)``."""
        return DataArrayWindow(self._data, _request(extents, step, boundary, min_count, method))
