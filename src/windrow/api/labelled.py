"""Dense data as labelled xarray Datasets."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import xarray as xr

from windrow.model.arrow import arrow_to_block
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks
from windrow.storage.cells import coordinates
from windrow.storage.dense.snapshots import DenseSnapshot, open_store
from windrow.storage.leases import Lease
from windrow.storage.sparse import SparseSnapshot

Metadata = Mapping[str, Mapping[str, str]]


def labelled(schema: Schema, box: Box, blocks: Blocks, labels: Mapping[str, Labels], metadata: Metadata) -> xr.Dataset:
    """Blocks as a Dataset with the coordinates of their cells, and with what is known of the attributes."""
    variables = {
        name: _variable(schema.dimension_names, values, dict(metadata.get(name, {}))) for name, values in blocks.items()
    }
    return xr.Dataset(variables, coords=_coordinates(schema, box, labels))


def _variable(names: tuple[str, ...], values: Any, attributes: dict[str, Any]) -> xr.Variable:
    """A variable of an array that is what xarray makes of it: to make sure, xarray would import Dask first."""
    return xr.Variable(names, values, attributes, fastpath=True)


def _index(name: str, values: Any, attributes: dict[str, Any]) -> xr.Variable:
    index: Any = xr.IndexVariable
    made: xr.Variable = index((name,), pd.Index(values), attributes, fastpath=True)
    return made


def of_blocks(schema: Schema, box: Box | None, blocks: Blocks, labels: Mapping[str, Labels]) -> xr.Dataset:
    """Computed blocks as a Dataset with the coordinates of their cells; without a box, of one cell that has none."""
    if box is None:
        return xr.Dataset({name: _variable((), values.reshape(()), {}) for name, values in blocks.items()})
    return labelled(schema, box, blocks, labels, {})


def _coordinates(schema: Schema, box: Box, labels: Mapping[str, Labels]) -> dict[str, xr.Variable]:
    result = {}
    for dimension, lo, hi in zip(schema.dimensions, box.lo, box.hi, strict=True):
        named = labels.get(dimension.name)
        if named is None:
            values: Any = np.arange(lo, hi + 1, dtype=np.int64)
            result[dimension.name] = _index(dimension.name, values, {})
        else:
            chosen = named.slice(lo - dimension.lo, hi + 1 - dimension.lo)
            values = chosen.values.astype(object) if chosen.kind == "string" else chosen.values
            result[dimension.name] = _index(dimension.name, values, dict(chosen.attributes))
    return result


def opened(snapshot: DenseSnapshot, lease: Lease) -> xr.Dataset:
    """A whole dense array, whose values are read when they are used; until nobody can, the lease is held."""
    store = open_store(snapshot.path, snapshot.pointer, snapshot.checksum, snapshot.title)
    weakref.finalize(store, Lease.__exit__, lease)  # which keeps the lease till then
    # Nanoseconds, xarray's default, would lose the years before 1678 and after 2262.
    times = xr.coders.CFDatetimeCoder(time_unit="us")
    whole: xr.Dataset = xr.open_zarr(store, consolidated=False, chunks=None, decode_times=times)
    return whole


def laid_out(cells: pa.Table, snapshot: SparseSnapshot, labels: Mapping[str, Labels], metadata: Metadata) -> xr.Dataset:
    """Sparse cells on their full grid; ``<name>__valid`` says where there is a value, floats hold NaN elsewhere."""
    schema, box = snapshot.schema, snapshot.box
    index = tuple(column - lo for column, lo in zip(coordinates(cells, schema), box.lo, strict=True))
    blocks: dict[str, Any] = {}
    for attribute in schema.attributes:
        values, valid = arrow_to_block(cells.column(attribute.name))
        block = np.full(box.shape, attribute.type.fill, attribute.type.dtype)
        block[index] = values
        blocks[attribute.name] = block
        if not attribute.type.is_float:
            present = np.zeros(box.shape, bool)
            present[index] = True if valid is None else valid
            blocks[attribute.companion] = present
    return labelled(schema, box, blocks, labels, metadata)
