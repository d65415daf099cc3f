"""A NetCDF file or Zarr directory as a dense source: what it holds, and its boxes read where they are needed."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import xarray as xr

from windrow.errors import DataError, Error, FileFormatError, SchemaError, nearest
from windrow.formats.apart import call_apart
from windrow.formats.decode import Encoded
from windrow.formats.limits import check_data, check_piece
from windrow.formats.registry import GridOptions
from windrow.model.box import Box
from windrow.model.grid import DENSE_CHUNK_BYTES, dense_chunks
from windrow.model.labels import Labels
from windrow.model.schema import VALID_SUFFIX, Attribute, Dimension, Schema
from windrow.model.source import Blocks

INDEX_MARK = "windrow_index"
"""Marks a coordinate variable that only numbers the cells, so that reading it back gives no labels."""
LO_MARK = "windrow_lo"
"""Keeps the first cell number of a labelled dimension."""
ORDER_MARK = "windrow_attributes"
"""Keeps the order of the attributes, which a Zarr group forgets."""
GLOBAL = ""
"""The key of a file's own attributes in ``metadata``."""

_LARGEST_CHUNK_BYTES = 16 * DENSE_CHUNK_BYTES

Opener = Callable[[str], "Contents"]


@dataclass(frozen=True)
class DatasetSource:
    """Dense data in one file. Pickled without handles; each process opens the file at its first read."""

    path: str
    opener: Opener
    variables: tuple[Encoded, ...]
    schema: Schema
    labels: Mapping[str, Labels] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    numbered: tuple[str, ...] = ()
    """The dimensions of which the file says the numbers of its cells."""
    order: tuple[int, ...] = ()
    """Which of the first variable's dimensions each dimension is; none if they are the same."""

    def arranged(self, names: Sequence[str]) -> DatasetSource:
        """The same with its dimensions in another order."""
        places = tuple(self.schema.axis(name) for name in names)
        schema = replace(self.schema, dimensions=tuple(self.schema.dimensions[axis] for axis in places))
        return replace(self, schema=schema, order=tuple(self.order[axis] if self.order else axis for axis in places))

    @property
    def _dimensions(self) -> tuple[str, ...]:
        stored = self.variables[0].dimensions
        return tuple(stored[axis] for axis in self.order) if self.order else stored

    def read(self, box: Box) -> Blocks:
        """The values in ``box``, decoded in a process apart, which needs neither labels nor metadata."""
        if box not in self.schema.box():
            raise DataError("the box is outside the file's cells", got=box, hint=f"They are {self.schema.box()}")
        return call_apart(self.path, DatasetSource._read_here, replace(self, labels={}, metadata={}), box)

    def _read_here(self, box: Box) -> Blocks:
        contents = _OPEN_FILES.contents(self.opener, self.path)
        object.__setattr__(self, "_contents", contents)  # keeps the file open as long as this source lives
        stored = contents.variables
        blocks: dict[str, npt.NDArray[Any]] = {}
        for encoded, attribute in zip(self.variables, self.schema.attributes, strict=True):
            values, valid = encoded.decode(self._raw(stored, encoded, encoded.name, box))
            if encoded.companion is not None:
                present = self._raw(stored, encoded, encoded.companion, box).astype(bool)
                valid = present if valid is None else valid & present
            blocks[attribute.name] = self._transpose(encoded, values)
            if attribute.has_companion:
                blocks[attribute.companion] = self._transpose(
                    encoded, np.ones(box.shape, bool) if valid is None else valid
                )
        return blocks

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_contents"}

    def _raw(self, stored: Mapping[str, xr.Variable], encoded: Encoded, name: str, box: Box) -> npt.NDArray[Any]:
        ranges = dict(zip(self._dimensions, box.slices(self.schema.lo), strict=True))
        key = tuple(ranges[dimension] for dimension in encoded.dimensions)
        try:
            raw: npt.NDArray[Any] = stored[name][key].to_numpy()
        except Error:
            raise
        except Exception as error:  # the libraries below raise whatever their decoders raise on damaged bytes
            raise FileFormatError(f"cannot read {name} {box} of {self.path}", got=error) from error
        if raw.shape[: len(key)] != tuple(part.stop - part.start for part in key):
            raise FileFormatError(f"{name} of {self.path} is not whole in {box}", got=f"values of shape {raw.shape}")
        return raw

    def _transpose(self, encoded: Encoded, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        wanted = self._dimensions
        if encoded.dimensions == wanted:
            return values
        return np.ascontiguousarray(values.transpose([encoded.dimensions.index(name) for name in wanted]))


class Contents:
    """An open file's raw, lazy variables and its attributes; closed when nobody holds it any more."""

    def __init__(self, variables: Mapping[str, xr.Variable], attributes: Mapping[str, Any], close: Callable[[], None]):
        self.variables = variables
        self.attributes = attributes
        self._close = close
        self._process = os.getpid()

    def close(self) -> None:
        # A forked child must not touch its parent's handles: the locks around them may be held by a lost thread.
        if os.getpid() == self._process:
            self._close()

    def __del__(self) -> None:
        self.close()


class _OpenFiles:
    """The files this process has open, shared by equal sources; forgotten in a forked child."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._open: WeakValueDictionary[tuple[object, ...], Contents] = WeakValueDictionary()

    def contents(self, opener: Opener, path: str) -> Contents:
        key = (opener, path, *_stamp(path))
        with self._lock:
            found = self._open.get(key)
            if found is None:
                for other, stale in list(self._open.items()):
                    if other[:2] == key[:2]:  # HDF5 would go on with what it knows of a file that was replaced
                        stale.close()
                found = self._open[key] = opener(path)
            return found


_OPEN_FILES = _OpenFiles()
os.register_at_fork(after_in_child=_OPEN_FILES.forget)


def _stamp(path: str) -> tuple[int, int, int]:
    """What changes when a file is replaced, so that a stale handle is not used."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise FileFormatError("no such file", got=path) from error
    return status.st_mtime_ns, status.st_size, status.st_ino


def open_source(path: str, opener: Opener, options: GridOptions) -> DatasetSource:
    """Look at a file, in a process apart, and describe the dense data in it."""
    return call_apart(path, _open_here, path, opener, options)


def _open_here(path: str, opener: Opener, options: GridOptions) -> DatasetSource:
    contents = opener(path)
    try:
        return _describe(path, opener, contents, options)
    finally:
        # Closed at once: HDF5 lets nobody replace a file that is open.
        contents.close()


def _describe(path: str, opener: Opener, contents: Contents, options: GridOptions) -> DatasetSource:
    stored = contents.variables
    chosen = _choose(path, contents, options)
    for encoded in chosen:
        encoded.check()
        _check_size(path, stored[encoded.name])
    names = [legal_name(encoded.name) for encoded in chosen]
    columns = tuple(Attribute(n, e.type, e.nullable) for n, e in zip(names, chosen, strict=True))
    dimensions, labels = [], {}
    sizes = _common_sizes(path, stored, chosen)
    for name in chosen[0].dimensions:
        start, found = _coordinate(path, stored, name, sizes[name], options)
        if sizes[name] == 0:
            raise FileFormatError(f"dimension {name} of {path} has no cells")
        dimensions.append(Dimension(legal_name(name), start, start + sizes[name] - 1))
        if found is not None:
            labels[legal_name(name)] = found
    schema = Schema(tuple(dimensions), columns)
    chunks = _chunks(stored, chosen, schema)
    schema = replace(schema, dimensions=tuple(replace(d, chunk=c) for d, c in zip(dimensions, chunks, strict=True)))
    _check_block(path, stored, chosen, schema)
    metadata = {name: encoded.metadata for name, encoded in zip(names, chosen, strict=True)}
    hidden = ("coordinates", ORDER_MARK)
    metadata[GLOBAL] = {str(name): str(value) for name, value in contents.attributes.items() if name not in hidden}
    numbered = tuple(legal_name(name) for name in chosen[0].dimensions if name in stored and _is_numbered(stored[name]))
    return DatasetSource(path, opener, chosen, schema, labels, {k: v for k, v in metadata.items() if v}, numbered)


def _common_sizes(path: str, stored: Mapping[str, xr.Variable], chosen: Sequence[Encoded]) -> dict[str, int]:
    """The length of each dimension, on which all variables must agree: nothing in a Zarr group sees to that."""
    names = [name for encoded in chosen for name in (encoded.name, encoded.companion) if name is not None]
    names += [name for name in chosen[0].dimensions if name in stored]
    sizes: dict[str, int] = {}
    for name in names:
        for dimension, size in zip(map(str, stored[name].dims), stored[name].shape, strict=True):
            if dimension in chosen[0].dimensions and sizes.setdefault(dimension, size) != size:
                got = f"{sizes[dimension]} in {names[0]}, {size} in {name}"
                raise FileFormatError(f"variables of {path} differ in the length of {dimension}", got=got)
    return sizes


def _is_numbered(coordinate: xr.Variable) -> bool:
    return INDEX_MARK in coordinate.attrs


def _check_size(path: str, variable: xr.Variable) -> None:
    """Refuse sizes that nothing can hold, before anything is made for them."""
    size = int(np.prod(variable.shape, dtype=object)) * variable.dtype.itemsize
    check_data(f"a variable of {path}", size)
    stored = variable.encoding.get("chunks") or variable.encoding.get("chunksizes")
    if stored:  # a decoder holds a whole chunk, even if it is larger than the array
        check_piece(f"a chunk of {path}", int(np.prod(stored, dtype=object)) * variable.dtype.itemsize)


def _check_block(path: str, stored: Mapping[str, xr.Variable], chosen: Sequence[Encoded], schema: Schema) -> None:
    """Refuse cells so wide that not even one chunk of windrow's fits: texts that claim a length of gigabytes."""
    cells = int(np.prod([dimension.chunk or 1 for dimension in schema.dimensions], dtype=object))
    for encoded in chosen:
        width = stored[encoded.name].shape[-1] if encoded.is_characters else 1
        check_piece(f"a block of {encoded.name} of {path}", cells * width * encoded.dtype.itemsize)


def legal_name(name: str) -> str:
    """A file's name as windrow may use it: ``2t`` becomes ``_2t``, ``air.temp`` ``air_temp``."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _choose(path: str, contents: Contents, options: GridOptions) -> tuple[Encoded, ...]:
    """The data variables asked for, or all of them, provided that they share their dimensions."""
    stored = contents.variables
    everything = {name: Encoded.of(name, variable) for name, variable in stored.items()}
    order = str(contents.attributes.get(ORDER_MARK, "")).split()
    names = options.variables if options.variables is not None else _data_variables(everything, order)
    for name in names:
        if name not in everything:
            raise FileFormatError(f"no such variable in {path}", got=repr(name), hint=nearest(name, everything))
        if not everything[name].dimensions:
            raise FileFormatError(f"variable {name} of {path} has no dimensions")
    if not names:
        raise FileFormatError(
            f"{path} has no variables with dimensions", hint="Found: " + (", ".join(stored) or "none")
        )
    groups: dict[frozenset[str], list[str]] = {}
    for name in names:
        groups.setdefault(frozenset(everything[name].dimensions), []).append(name)
    if len(groups) > 1:
        listed = "; ".join(f"{', '.join(g)} [{', '.join(everything[g[0]].dimensions)}]" for g in groups.values())
        raise FileFormatError(
            f"the variables of {path} differ in dimensions", got=listed, hint="Name those of one group"
        )
    return tuple(_with_companion(everything[name], everything) for name in names)


def _with_companion(encoded: Encoded, everything: Mapping[str, Encoded]) -> Encoded:
    companion = everything.get(encoded.name + VALID_SUFFIX)
    if companion is None or companion.dimensions != encoded.dimensions:
        return encoded
    return replace(encoded, companion=companion.name)


def _data_variables(everything: Mapping[str, Encoded], order: Sequence[str]) -> list[str]:
    """All but coordinates, bounds and companions, in the order stated or else in the file's."""
    referred = set()
    for encoded in everything.values():
        for key in ("bounds", "climatology", "coordinates", "grid_mapping"):
            referred.update(str(encoded.attributes.get(key, "")).split())
    companions = {name + VALID_SUFFIX for name in everything}
    axes = {dimension for encoded in everything.values() for dimension in encoded.dimensions}
    hidden = referred | companions | axes
    found = [name for name, encoded in everything.items() if encoded.dimensions and name not in hidden]
    return sorted(found, key=lambda name: order.index(name) if name in order else len(order))


def _coordinate(
    path: str, stored: Mapping[str, xr.Variable], name: str, size: int, options: GridOptions
) -> tuple[int, Labels | None]:
    """The first cell number of a dimension, and its labels if it has any."""
    stated = options.lo.get(name) if isinstance(options.lo, Mapping) else options.lo
    variable = stored.get(name)
    if variable is None or variable.dims[:1] != (name,):
        return (1 if stated is None else stated), None
    encoded = Encoded.of(name, variable)
    if encoded.dimensions != (name,):
        return (1 if stated is None else stated), None
    encoded.check()
    check_piece(f"coordinate {name} of {path}", int(np.prod(variable.shape, dtype=object)) * variable.dtype.itemsize)
    values, _ = encoded.decode(variable.to_numpy())
    kept = {key: text for key, text in encoded.metadata.items() if key not in (INDEX_MARK, LO_MARK)}
    if INDEX_MARK in encoded.attributes and size and np.array_equal(values, values[0] + np.arange(size)):
        return (int(values[0]) if stated is None else stated), None
    start = int(encoded.attributes.get(LO_MARK, 1)) if stated is None else stated
    try:
        return start, Labels.of(values.astype(np.int64) if values.dtype.kind == "b" else values, kept)
    except (DataError, SchemaError) as error:
        raise FileFormatError(f"coordinate {name} of {path} cannot label cells", got=error) from error


def _chunks(stored: Mapping[str, xr.Variable], chosen: Sequence[Encoded], schema: Schema) -> tuple[int, ...]:
    """Chunks near the usual size, made of whole chunks of the file where it has them."""
    extents = [dimension.extent or 1 for dimension in schema.dimensions]
    itemsize = max(attribute.type.itemsize for attribute in schema.attributes)
    sizes = stored[chosen[0].name].encoding.get("preferred_chunks")
    if not sizes:
        return dense_chunks(extents, itemsize, {})
    chunk = [min(int(sizes.get(n, e)), e) for n, e in zip(chosen[0].dimensions, extents, strict=True)]
    cells = DENSE_CHUNK_BYTES // itemsize
    for axis in reversed(range(len(chunk))):
        while chunk[axis] < extents[axis] and int(np.prod(chunk)) * 2 <= cells:
            chunk[axis] = min(chunk[axis] * 2, extents[axis])
    if int(np.prod(chunk)) * itemsize > _LARGEST_CHUNK_BYTES:
        return dense_chunks(chunk, itemsize, {})
    return tuple(chunk)
