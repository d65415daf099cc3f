"""Dense data in long form: one row a cell, for formats that hold tables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import SchemaError
from windrow.formats.registry import WriteTable
from windrow.model.arrow import arrow_type, block_to_arrow
from windrow.model.box import Box
from windrow.model.source import GridSource
from windrow.model.types import data_type_of

LABEL_SUFFIX = "_label"
_BLOCK_CELLS = 2**19
_BATCH_ROWS = 2**17


def cells_schema(source: GridSource, labels: bool = False) -> pa.Schema:
    """The columns of ``dense_to_batches``: dimensions, their labels if asked for, attributes."""
    fields = [pa.field(name, pa.int64(), nullable=False) for name in source.schema.dimension_names]
    for name in _labelled_dimensions(source) if labels else ():
        data_type = data_type_of(source.labels[name].values.dtype)
        fields.append(pa.field(name + LABEL_SUFFIX, arrow_type(data_type)))
    fields += [pa.field(a.name, arrow_type(a.type), a.can_be_missing) for a in source.schema.attributes]
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise SchemaError("a label column has the name of another column", got=", ".join(names))
    return pa.schema(fields)


def dense_to_batches(source: GridSource, labels: bool = False) -> Iterator[pa.RecordBatch]:
    """All cells, block after block and row-major within each; missing values are null."""
    schema = cells_schema(source, labels)
    for block in source.schema.grid.blocks(source.schema.box(), _BLOCK_CELLS):
        batch = pa.RecordBatch.from_arrays(_columns(source, block, labels), schema=schema)
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(start, _BATCH_ROWS)


def write_cells(path: str | os.PathLike[str], source: GridSource, write_table: WriteTable, *, overwrite: bool) -> None:
    """Write dense data as a table of cells, with a column of labels beside each labelled dimension."""
    labels = bool(source.labels)
    write_table(path, cells_schema(source, labels), dense_to_batches(source, labels), overwrite=overwrite)


def _labelled_dimensions(source: GridSource) -> list[str]:
    return [name for name in source.schema.dimension_names if name in source.labels]


def _columns(source: GridSource, block: Box, labels: bool) -> list[pa.Array]:
    names = source.schema.dimension_names
    ranges = [np.arange(lo, hi + 1, dtype=np.int64) for lo, hi in zip(block.lo, block.hi, strict=True)]
    columns = [block_to_arrow(_repeat(cells, axis, block)) for axis, cells in enumerate(ranges)]
    for name in _labelled_dimensions(source) if labels else ():
        axis = names.index(name)
        inside = block.slices(source.schema.lo)[axis]
        columns.append(block_to_arrow(_repeat(source.labels[name].values[inside], axis, block)))
    blocks = source.read(block)
    for attribute in source.schema.attributes:
        valid = blocks[attribute.companion] if attribute.has_companion else None
        columns.append(block_to_arrow(np.asarray(blocks[attribute.name]), valid))
    return columns


def _repeat(values: npt.NDArray[Any], axis: int, block: Box) -> npt.NDArray[Any]:
    """One value per position along ``axis``, repeated over the other dimensions of the block."""
    shape = [-1 if d == axis else 1 for d in range(block.ndim)]
    return np.broadcast_to(values.reshape(shape), block.shape)
