"""How a dense array is laid out in Zarr: an array per attribute, one per missing-value mask, one per coordinate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec

from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema

_COORDINATE_CHUNK = 8192
_MOST_NUMBERED = 2**26  # a longer dimension without labels gets no coordinate: numbering its cells takes long
_CF_TIME = {"units": "microseconds since 1970-01-01T00:00:00", "calendar": "proleptic_gregorian"}


def compressors() -> list[Any]:
    """How chunks are compressed and checked; benchmarks give the same to their peers."""
    return [BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), Crc32cCodec()]


def stored_variable(group: zarr.Group, name: str) -> zarr.Array[Any]:
    """One of the Zarr arrays of a dense array."""
    found = group[name]
    assert isinstance(found, zarr.Array)
    return found


def variables_of(attribute: Attribute) -> tuple[str, ...]:
    """The Zarr arrays that hold an attribute: its values, and where they are present if they do not say so."""
    return (attribute.name, attribute.companion) if attribute.has_companion else (attribute.name,)


def is_time(attribute: Attribute) -> bool:
    """Whether an attribute's values are stored as CF times: as integers with units."""
    return attribute.type.name == "datetime"


def create_variables(
    group: zarr.Group, schema: Schema, hi: tuple[int, ...], metadata: Mapping[str, Mapping[str, str]]
) -> None:
    """Empty Zarr arrays for a schema's attributes, in place of those that are there."""
    group.attrs["windrow"] = {"schema": str(schema)}
    shape = schema.box(hi).shape
    for attribute in schema.attributes:
        described = dict(metadata.get(attribute.name, {}))
        if is_time(attribute):
            described |= _CF_TIME
        fill = 0 if is_time(attribute) else attribute.type.fill
        _create_variable(group, schema, attribute.name, shape, _stored_dtype(attribute), fill, described)
        if attribute.has_companion:
            _create_variable(group, schema, attribute.companion, shape, np.dtype(bool), False, {})


def _create_variable(
    group: zarr.Group, schema: Schema, name: str, shape: tuple[int, ...], dtype: Any, fill: Any, attributes: Any
) -> None:
    group.create_array(
        name,
        shape=shape,
        chunks=schema.grid.chunk,
        dtype=dtype,
        fill_value=fill,
        compressors=compressors(),
        dimension_names=schema.dimension_names,
        attributes=dict(attributes),
        overwrite=name in group,
    )


def write_coordinate(group: zarr.Group, schema: Schema, hi: tuple[int, ...], axis: int, labels: Labels | None) -> None:
    """The dimension's labels, or its cell numbers, as the coordinate variable that xarray looks for."""
    dimension = schema.dimensions[axis]
    described: dict[str, Any] = {}
    if labels is None and hi[axis] - dimension.lo >= _MOST_NUMBERED:
        if dimension.name in group:
            del group[dimension.name]  # shorter than the dimension now, it would be an obstacle to xarray
        return
    if labels is None:
        values: Any = np.arange(dimension.lo, hi[axis] + 1, dtype=np.int64)
    else:
        values, described = labels.values, dict(labels.attributes)
        if values.dtype.kind == "M":
            values, described = values.view("int64"), described | _CF_TIME
    if dimension.name in group and labels is None:
        known = stored_variable(group, dimension.name)
        if known.dtype == np.int64 and known.shape[0] <= len(values):
            start = known.shape[0]
            known.resize((len(values),))
            known[start:] = values[start:]
            return
    created = group.create_array(
        dimension.name,
        shape=values.shape,
        chunks=(_COORDINATE_CHUNK if dimension.growing else max(1, min(len(values), _COORDINATE_CHUNK)),),
        dtype=str if values.dtype.kind == "T" else values.dtype,
        compressors=compressors(),
        dimension_names=(dimension.name,),
        attributes=described,
        overwrite=dimension.name in group,
    )
    created[:] = values


def _stored_dtype(attribute: Attribute) -> Any:
    if attribute.type.name == "string":
        return str
    return np.dtype("int64") if is_time(attribute) else attribute.type.dtype
