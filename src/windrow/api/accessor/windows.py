"""Windows and shapes on xarray objects: ``ds.windrow.window(time=wr.trailing(30)).percentile("t", 70)``.

It runs in this process, on NumPy arrays; a variable that is loaded lazily is loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import xarray as xr

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.definition import Definition
from windrow.aggregates.registry import DEFINITIONS
from windrow.api.accessor.groups import group_request
from windrow.api.accessor.requests import Aggregates, Request, neighbour_request, regrid_request, window_request
from windrow.errors import DataError, UnknownNameError, nearest
from windrow.expressions.evaluate import evaluate
from windrow.language.expression import parse_expression
from windrow.model.arrow import arrow_to_block, block_to_arrow
from windrow.model.shape import Shape

Asked = TypeVar("Asked")


def _worked_out(text: str, data: xr.Dataset) -> xr.DataArray:
    """What an expression over variables and coordinates gives, along the dimensions that it names."""
    node = parse_expression(text)
    known = {str(name): data[name] for name in [*data.coords, *data.data_vars]}
    for column in node.columns():
        if column.key not in known:
            raise UnknownNameError("no such variable", got=repr(column.key), hint=nearest(column.key, known))
    named = {column.key: known[column.key] for column in node.columns()}
    if not named:
        raise DataError("an expression has to name a variable or a coordinate", got=repr(text))
    laid = dict(zip(named, xr.broadcast(*named.values()), strict=True))
    first = next(iter(laid.values()))
    columns = {name: block_to_arrow(one.to_numpy().reshape(-1), None) for name, one in laid.items()}
    values, present = arrow_to_block(evaluate(node, columns, first.size))
    if present is not None and not present.all():
        values = np.where(present, values, np.nan)
    return xr.DataArray(values.reshape(first.shape), dims=first.dims, name=text)


def _check(aggregates: Mapping[str, Any]) -> Aggregates:
    if not aggregates:
        raise DataError("there is nothing to compute", hint='As in .agg(m=wr.max("t"))')
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise DataError(f"{name} is not an aggregate", got=repr(aggregate), hint='As in wr.max("t")')
    return aggregates


class DatasetWindow:
    """A window or shape on a Dataset: ``agg`` computes several aggregates, each aggregate's own name computes one."""

    def __init__(self, data: xr.Dataset, request: Request) -> None:
        self._data = data
        self._request = request

    def agg(self, **aggregates: Aggregate) -> xr.Dataset:
        """Named aggregates: ``.agg(p=wr.percentile("t", 70), m=wr.max("t"))``."""
        by_variable: dict[tuple[str, str | None], dict[str, Aggregate]] = {}
        for name, aggregate in _check(aggregates).items():
            key = (self._variable(aggregate.attribute), aggregate.second)
            by_variable.setdefault(key, {})[name] = aggregate
        found: dict[str, xr.DataArray] = {}
        for (variable, second), wanted in by_variable.items():
            found |= self._request.compute(self._data[variable], wanted, self._second(second))
        return xr.Dataset({name: found[name] for name in aggregates}, attrs=self._data.attrs)

    def _variable(self, name: str | None) -> str:
        known = [str(variable) for variable in self._data.data_vars]
        if name is None and len(known) == 1:
            return known[0]
        if name not in known:
            raise UnknownNameError("no such variable", got=repr(name), hint=nearest(str(name), known))
        return name

    def _second(self, text: str | None) -> xr.DataArray | None:
        return None if text is None else _worked_out(text, self._data)

    def one(self, aggregate: Aggregate) -> xr.DataArray:
        """One aggregate, named after its variable."""
        name = self._variable(aggregate.attribute)
        return self._request.compute(self._data[name], {name: aggregate}, self._second(aggregate.second))[name]


class DataArrayWindow:
    """A window or shape on a DataArray: each aggregate's name computes it."""

    def __init__(self, data: xr.DataArray, request: Request) -> None:
        self._data = data
        self._request = request

    def agg(self, **aggregates: Aggregate) -> xr.Dataset:
        """Named aggregates; the attribute that they name does not matter."""
        wanted = _check(aggregates)
        for aggregate in wanted.values():
            if aggregate.second is not None:
                hint = "Name both, as in ds.windrow.window(…).agg(…)"
                raise DataError(f"{aggregate.name} needs two variables of a Dataset", hint=hint)
        return xr.Dataset(self._request.compute(self._data, wanted))

    def one(self, aggregate: Aggregate, other: xr.DataArray | None = None) -> xr.DataArray:
        name = "result" if self._data.name is None else str(self._data.name)
        return self._request.compute(self._data, {name: aggregate}, other)[name].rename(self._data.name)


def _of_dataset(definition: Definition) -> Callable[..., xr.DataArray]:
    if definition.arguments == 2:

        def of_two(self: DatasetWindow, variable: str, second: str) -> xr.DataArray:
            return self.one(Aggregate(definition.name, variable, second=second))

        return _name(of_two, definition)
    if definition.weighted is not None:
        weighted = definition.weighted

        def of_weights(self: DatasetWindow, variable: str | None = None, weight: str | None = None) -> xr.DataArray:
            if weight is None:
                return self.one(Aggregate(definition.name, variable))
            return self.one(Aggregate(weighted, variable, second=weight))

        return _name(of_weights, definition)

    def method(self: DatasetWindow, variable: str | None = None, parameter: float | None = None) -> xr.DataArray:
        return self.one(Aggregate(definition.name, variable, parameter))

    return _name(method, definition)


def _of_array(definition: Definition) -> Callable[..., xr.DataArray]:
    if definition.arguments == 2:

        def of_two(self: DataArrayWindow, second: xr.DataArray) -> xr.DataArray:
            return self.one(Aggregate(definition.name, "x", second="y"), second)

        return _name(of_two, definition)
    if definition.weighted is not None:
        weighted = definition.weighted

        def of_weights(self: DataArrayWindow, weight: xr.DataArray | None = None) -> xr.DataArray:
            if weight is None:
                return self.one(Aggregate(definition.name, "x"))
            return self.one(Aggregate(weighted, "x", second="y"), weight)

        return _name(of_weights, definition)

    def method(self: DataArrayWindow, parameter: float | None = None) -> xr.DataArray:
        return self.one(Aggregate(definition.name, "x", parameter))

    return _name(method, definition)


def _name(method: Callable[..., xr.DataArray], definition: Definition) -> Callable[..., xr.DataArray]:
    method.__name__ = definition.name
    method.__doc__ = f"Over the window, missing values skipped: {definition.summary}."
    return method


def _add_methods(definitions: Mapping[str, Definition]) -> None:
    for definition in definitions.values():
        for name in (definition.name, *definition.synonyms):
            setattr(DatasetWindow, name, _of_dataset(definition))
            setattr(DataArrayWindow, name, _of_array(definition))


_add_methods(DEFINITIONS)


class _Accessor(ABC, Generic[Asked]):
    """What both kinds of xarray objects offer."""

    def __init__(self, data: Any) -> None:
        self._data = data

    @abstractmethod
    def _ask(self, request: Request) -> Asked:
        """A request, on this object."""

    def window(
        self,
        *,
        step: Any = 1,
        boundary: str = "clip",
        min_count: int = 0,
        method: str = "auto",
        strategy: str = "auto",
        **extents: Any,
    ) -> Asked:
        """A window around every cell; each dimension's anchor must be given, as in ``time=wr.trailing(30)``."""
        return self._ask(window_request(extents, step, boundary, min_count, method, strategy))

    def regrid(self, *, boundary: str = "clip", min_count: int = 0, **sizes: int) -> Asked:
        """Blocks side by side, as in ``regrid(lat=2, lon=2)``; each has the coordinate of its first cell."""
        return self._ask(regrid_request(sizes, boundary, min_count))

    def neighbours(
        self, shape: Shape, *, step: Any = 1, min_count: int = 0, method: str = "auto", strategy: str = "auto"
    ) -> Asked:
        """The cells in a shape around every cell, as in ``neighbours(wr.L2(3, on=("lat", "lon")))``."""
        return self._ask(neighbour_request(shape, step, min_count, method, strategy))

    def groupby(self, *keys: str) -> Asked:
        """Groups by dimensions and parts of times, as in ``groupby("lat", "time.month")``; only these remain."""
        return self._ask(group_request(keys))


class DatasetAccessor(_Accessor[DatasetWindow]):
    """``ds.windrow``: windows on the variables of a Dataset."""

    def _ask(self, request: Request) -> DatasetWindow:
        return DatasetWindow(self._data, request)


class DataArrayAccessor(_Accessor[DataArrayWindow]):
    """``array.windrow``: windows on one variable."""

    def _ask(self, request: Request) -> DataArrayWindow:
        return DataArrayWindow(self._data, request)
