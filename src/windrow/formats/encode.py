"""From windrow's blocks to variables as files store them, streamed in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from windrow.errors import FileFormatError
from windrow.formats.dataset import GLOBAL, INDEX_MARK, LO_MARK, ORDER_MARK
from windrow.formats.decode import TYPE_MARK
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.source import Blocks, GridSource
from windrow.model.types import TYPES, DataType

BLOCK_BYTES = 64 * 2**20
_EPOCH = {"units": "microseconds since 1970-01-01", "calendar": "proleptic_gregorian"}
_UNFIT = ("_FillValue", "missing_value", "scale_factor", "add_offset", "coordinates", "bounds", "dtype", TYPE_MARK)


@dataclass(frozen=True)
class Stored:
    """A variable to be made in a file."""

    name: str
    dimensions: tuple[str, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    fill: Any = None


class Sink(AbstractContextManager["Sink"], Protocol):
    """A file being written, closed when left."""

    def begin(self, dimensions: Mapping[str, int], attributes: Mapping[str, Any]) -> None: ...

    def create(self, stored: Stored) -> None: ...

    def write(self, name: str, where: tuple[slice, ...], values: npt.NDArray[Any]) -> None: ...


class _MarkInUseError(Exception):
    """A value that is present equals the one chosen to stand for missing ones."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        super().__init__(attribute)


def write_blocks(source: GridSource, open_sink: Callable[[], Any]) -> None:
    """Write a source's labels and cells.

    Missing values are marked by the type's extreme value. Should the data use that value, writing starts again with
    the companion kept as a variable of its own, as strings, which have no extreme, always do.
    """
    if source.schema.growing:
        raise FileFormatError("only arrays with bounds can be written to a file", got=source.schema)
    companions = {a.name for a in source.schema.attributes if a.has_companion and a.type.name == "string"}
    while True:
        try:
            with open_sink() as sink:
                _write(source, sink, companions)
            return
        except _MarkInUseError as clash:
            companions.add(clash.attribute)


def _write(source: GridSource, sink: Sink, companions: set[str]) -> None:
    schema = source.schema
    box = schema.box()
    metadata: Mapping[str, Mapping[str, str]] = getattr(source, "metadata", {})
    own = _drop_encoding(metadata.get(GLOBAL, {})) | {ORDER_MARK: " ".join(schema.attribute_names)}
    sink.begin(dict(zip(schema.dimension_names, box.shape, strict=True)), own)
    for dimension in schema.dimensions:
        _write_coordinate(source, sink, dimension)
    for attribute in schema.attributes:
        _create(sink, schema, attribute, metadata.get(attribute.name, {}), companions)
    for block in schema.grid.blocks(box, max(1, BLOCK_BYTES // max(1, schema.cell_bytes))):
        where = block.slices(schema.lo)
        blocks = source.read(block)
        for attribute in schema.attributes:
            if attribute.name in companions:
                sink.write(attribute.companion, where, np.asarray(blocks[attribute.companion]).astype(np.int8))
                sink.write(attribute.name, where, _raw(blocks[attribute.name], attribute.type))
            else:
                sink.write(attribute.name, where, _mark_missing(blocks, attribute))


def _write_coordinate(source: GridSource, sink: Sink, dimension: Dimension) -> None:
    size = dimension.extent or 0
    labels = source.labels.get(dimension.name)
    attributes: dict[str, Any]
    if labels is None:
        values: npt.NDArray[Any] = np.arange(size, dtype=np.int64) + dimension.lo
        attributes = {INDEX_MARK: "cell numbers"}
        data_type = TYPES["int64"]
    else:
        values = labels.values
        data_type = _type_of_labels(values)
        attributes = _drop_encoding(labels.attributes) | _storage(data_type)
        if dimension.lo != 1:
            attributes[LO_MARK] = np.int64(dimension.lo)
    raw = _raw(values, data_type)
    sink.create(Stored(dimension.name, (dimension.name,), raw.dtype, (max(1, size),), attributes))
    sink.write(dimension.name, (slice(0, size),), raw)


def _type_of_labels(values: npt.NDArray[Any]) -> DataType:
    return {"M": TYPES["datetime"], "T": TYPES["string"], "f": TYPES["float64"]}.get(values.dtype.kind, TYPES["int64"])


def _create(
    sink: Sink, schema: Schema, attribute: Attribute, metadata: Mapping[str, str], companions: set[str]
) -> None:
    shape = schema.box().shape
    chunks = tuple(min(size, extent) for size, extent in zip(schema.grid.chunk, shape, strict=True))
    attributes = _drop_encoding(metadata) | _storage(attribute.type)
    fill = None
    if attribute.has_companion and attribute.name not in companions:
        fill = _mark(attribute.type)
        if attribute.type.name == "bool":
            # Readers that know only dtype="bool" would take a missing value for True.
            attributes = _drop_encoding(metadata) | {TYPE_MARK: "bool"}
    dtype = _stored_dtype(attribute.type)
    sink.create(Stored(attribute.name, schema.dimension_names, dtype, chunks, attributes, fill))
    if attribute.name in companions:
        flags = {"dtype": "bool", "long_name": f"whether {attribute.name} is present"}
        sink.create(Stored(attribute.companion, schema.dimension_names, np.dtype("int8"), chunks, flags))


def _drop_encoding(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Attributes without those that would change how a reader decodes the values."""
    return {name: value for name, value in attributes.items() if name not in _UNFIT and name}


def _storage(data_type: DataType) -> dict[str, str]:
    if data_type.name == "datetime":
        return dict(_EPOCH)
    return {"dtype": "bool"} if data_type.name == "bool" else {}


def _stored_dtype(data_type: DataType) -> np.dtype[Any]:
    if data_type.name == "datetime":
        return np.dtype("int64")
    return np.dtype("int8") if data_type.name == "bool" else data_type.dtype


def _raw(values: npt.NDArray[Any], data_type: DataType) -> npt.NDArray[Any]:
    if data_type.name == "datetime":
        return np.ascontiguousarray(values.astype("datetime64[us]")).view(np.int64)
    return values.astype(_stored_dtype(data_type), copy=False)


def _mark(data_type: DataType) -> Any:
    """The value that stands for missing: a bool's is -1, as it is stored in int8."""
    if data_type.name == "bool":
        return np.int8(-1)
    dtype = _stored_dtype(data_type)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if dtype.kind == "i" else limits.max)


def _mark_missing(blocks: Blocks, attribute: Attribute) -> npt.NDArray[Any]:
    raw = _raw(blocks[attribute.name], attribute.type)
    if not attribute.has_companion:
        return raw
    mark = _mark(attribute.type)
    valid = blocks[attribute.companion]
    if np.any((raw == mark) & valid):
        raise _MarkInUseError(attribute.name)
    return np.where(valid, raw, mark)
