"""Windows and shapes asked for on xarray objects: each variable binds them for itself, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import xarray as xr

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.windows import METHODS
from windrow.errors import DataError, SchemaError, UnknownNameError, nearest
from windrow.kernels.choose import check_strategy
from windrow.kernels.shapes.strategies import NAMES as SHAPE_NAMES
from windrow.kernels.windows import NAMES
from windrow.model.box import Box
from windrow.model.conform import conform
from windrow.model.coordinates import coordinates_of
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.shape import Shape
from windrow.model.types import data_type_of
from windrow.model.window import Extent, LabelExtent, Window, corner
from windrow.operations.query.held import HeldGrid
from windrow.operations.query.shapes import ShapeSource
from windrow.operations.query.windows import WindowSource
from windrow.plan.windows import WindowPlan, neighbourhood_schema

Aggregates = Mapping[str, Aggregate]


class Request(Protocol):
    """Neighbourhoods of any kind, on a variable or two."""

    def compute(
        self, data: xr.DataArray, aggregates: Aggregates, other: xr.DataArray | None = None
    ) -> dict[str, xr.DataArray]:
        """The aggregates of one variable, or of one and another, in one pass over it."""
        ...


@dataclass(frozen=True)
class WindowRequest:
    """A window asked for by names of dimensions, which each variable binds for itself."""

    extents: Mapping[str, Extent | LabelExtent]
    step: Any
    boundary: str
    min_count: int
    method: str
    strategy: str

    def compute(
        self, data: xr.DataArray, aggregates: Aggregates, other: xr.DataArray | None = None
    ) -> dict[str, xr.DataArray]:
        """The aggregates of one variable, or of one and another, in one pass over it."""
        for name in self.extents:
            if name not in data.dims:
                hint = nearest(name, map(str, data.dims))
                raise UnknownNameError("no such dimension", got=repr(name), hint=hint)
        source = hold_variable(data, other)
        window = Window.of(
            source.schema, self.extents, step=self.step, boundary=self.boundary, min_count=self.min_count
        )
        of_values = {name: aggregate.of(*argument_names(data)) for name, aggregate in aggregates.items()}
        plan = WindowPlan(
            source.schema, source.schema.box(), window, tuple(of_values.items()), labels_of(data), self.method,
            self.strategy,
        )  # fmt: skip
        return _deliver(data, WindowSource(source, plan), window.step)


@dataclass(frozen=True)
class NeighbourRequest:
    """A shape asked for by names of dimensions."""

    shape: Shape
    step: Any
    min_count: int
    method: str
    strategy: str

    def compute(
        self, data: xr.DataArray, aggregates: Aggregates, other: xr.DataArray | None = None
    ) -> dict[str, xr.DataArray]:
        source = hold_variable(data, other)
        labels = dict(labels_of(data))
        bounds = source.schema.box()
        bound = self.shape.bind(source.schema, bounds, coordinates=coordinates_of(source.schema, labels))
        reached = zip(bound.dimensions, bound.bounds(), bound.free, strict=True)
        named = {name: Extent(0, 0) for name, reach, free in reached if free or reach != (0, 0)}
        step = Window.of(source.schema, named, step=self.step).step
        items = tuple((name, aggregate.of(*argument_names(data))) for name, aggregate in aggregates.items())
        counts = [-(-n // s) for n, s in zip(bounds.shape, step, strict=True)]
        schema = neighbourhood_schema(source.schema, Box.at(bounds.lo, counts), step, items, self.min_count)
        found = ShapeSource.of(
            source, bound, bounds, labels, items, schema, min_count=self.min_count, method=self.method, step=step,
            strategy=self.strategy,
        )  # fmt: skip
        return _deliver(data, found, step)


def _deliver(data: xr.DataArray, source: WindowSource | ShapeSource, step: tuple[int, ...]) -> dict[str, xr.DataArray]:
    blocks = source.read(source.schema.box())
    kept = data.isel({str(d): slice(None, None, s) for d, s in zip(data.dims, step, strict=True)})
    return {
        name: xr.DataArray(
            fill_missing(blocks, source.schema.attribute(name)), kept.coords, kept.dims, name, data.attrs
        )
        for name in source.schema.attribute_names
    }


def hold_variable(data: xr.DataArray, other: xr.DataArray | None = None) -> HeldGrid:
    """The variable, and the other one laid out over the same cells, as attributes."""
    if 0 in data.shape:
        raise DataError(f"variable {data.name} has no cells", got=dict(data.sizes), hint="Select some")
    dimensions = tuple(Dimension(str(name), 0, size - 1, size) for name, size in data.sizes.items())
    attributes, blocks = [], {}
    first, second = argument_names(data)
    variables = {first: data} if other is None else {first: data, second: _lay_out(other, data)}
    for name, variable in variables.items():
        values = variable.to_numpy()
        attribute = Attribute(name, data_type_of(values.dtype), nullable=True)
        plain, present = conform(values, attribute)
        blocks[name] = plain
        if present is None or present.all():
            attribute = Attribute(name, attribute.type)
        else:
            blocks[attribute.companion] = present
        attributes.append(attribute)
    schema = Schema(dimensions, tuple(attributes))
    return HeldGrid(schema, schema.box(), (), blocks)


def argument_names(data: xr.DataArray) -> tuple[str, str]:
    """What the variables are called here, where no dimension has that name."""
    used = set(map(str, data.dims))
    names = ["x", "y"]
    while used & set(names):
        names = [f"{name}_" for name in names]
    return names[0], names[1]


def _lay_out(other: xr.DataArray, data: xr.DataArray) -> xr.DataArray:
    """The other variable over the same cells, matched by coordinates where both have some."""
    what = f"{other.name} does not fit the cells of {data.name}"
    lacking = [str(name) for name in other.dims if name not in data.dims]
    if lacking or any(other.sizes[name] != data.sizes[name] for name in other.dims):
        raise SchemaError(what, got=f"{dict(other.sizes)} beside {dict(data.sizes)}")
    for name in other.dims:
        if name in other.indexes and name in data.indexes and not other.indexes[name].equals(data.indexes[name]):
            theirs, ours = other.indexes[name], data.indexes[name]
            if not theirs.is_unique or not ours.isin(theirs).all():
                raise SchemaError(what, got=f"other coordinates along {name}", hint="Select the same cells of both")
            other = other.isel({name: theirs.get_indexer(ours)})
    # What xarray would align by itself it would also sort, and enlarge.
    return other.drop_vars(other.coords).broadcast_like(data.drop_vars(data.coords)).transpose(*data.dims)


def labels_of(data: xr.DataArray) -> tuple[tuple[str, Labels], ...]:
    """The coordinates that windows in label units may ask for; others, such as object ones, are no labels."""
    found = []
    for name in map(str, data.dims):
        if name in data.coords and data.coords[name].dtype.kind in "iufM":
            coordinate = data.coords[name]
            attributes = {str(key): str(value) for key, value in coordinate.attrs.items()}
            found.append((name, Labels.of(coordinate.to_numpy(), attributes)))
    return tuple(found)


def fill_missing(blocks: Mapping[str, Any], attribute: Attribute) -> Any:
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


def window_request(
    extents: Mapping[str, Any], step: Any, boundary: str, min_count: int, method: str, strategy: str
) -> WindowRequest:
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
    check_strategy(method, strategy, NAMES)
    return WindowRequest(dict(extents), step, boundary, min_count, method, strategy)


def regrid_request(sizes: Mapping[str, int], boundary: str, min_count: int) -> WindowRequest:
    if not sizes:
        raise SchemaError("the regrid has no dimension", hint="As in .regrid(lat=2, lon=2)")
    return window_request(
        {name: corner(size) for name, size in sizes.items()}, dict(sizes), boundary, min_count, "auto", "auto"
    )


def neighbour_request(shape: object, step: Any, min_count: int, method: str, strategy: str) -> NeighbourRequest:
    if not isinstance(shape, Shape):
        hint = "As in .neighbours(wr.L2(3, on=('lat', 'lon')))"
        raise SchemaError("neighbours needs one of windrow's shapes", got=repr(shape), hint=hint)
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
    check_strategy(method, strategy, SHAPE_NAMES)
    return NeighbourRequest(shape, step, min_count, method, strategy)
