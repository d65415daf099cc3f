"""Dense arrays: one Zarr v3 array per attribute in an Icechunk repository.

Each stored chunk ends in a CRC-32C, so a damaged one is found when it is read. Readers hold a snapshot,
which is here; writers fork a session, pickle the fork out to where the bytes are written, and merge what comes back.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import icechunk
import numpy as np
import zarr
from zarr.storage import WrapperStore

from windrow.errors import CorruptionError, Error, MachineError
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks
from windrow.storage.checksums import snapshot_checksum
from windrow.storage.dense.chunks import (
    WRONG_CHECKSUM,
    ChunkKey,
    ChunkRequests,
    has_right_checksum,
    layout_obstacle,
    read_box,
)
from windrow.storage.dense.layout import is_time, stored_variable, variables_of
from windrow.storage.dense.repository import PACKAGE, open_repository
from windrow.storage.failures import store_failures
from windrow.storage.runtimes import use_runtime

_RESTORE = "Read an older version, or restore the warehouse from a copy"


def bound_schema(schema: Schema, hi: tuple[int, ...]) -> Schema:
    """The schema as of a version: growing dimensions end where the version's data ends."""
    ends = zip(schema.dimensions, hi, strict=True)
    return replace(schema, dimensions=tuple(replace(d, hi=max(end, d.lo)) for d, end in ends))


@dataclass(frozen=True)
class DenseSnapshot:
    """One version of a dense array, readable here or on a worker (it pickles); a GridSource."""

    title: str
    path: str
    pointer: str
    growing_schema: Schema
    hi: tuple[int, ...]
    label_items: tuple[tuple[str, Labels], ...] = ()
    checksum: str = ""
    """Of its metadata; empty for a state that is not published."""

    @cached_property
    def schema(self) -> Schema:
        return bound_schema(self.growing_schema, self.hi)

    @cached_property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    @cached_property
    def box(self) -> Box:
        return self.growing_schema.box(self.hi)

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # without what was derived

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        """The values in ``box`` of the named attributes (all by default) and of their companions."""
        names = self.growing_schema.attribute_names if attributes is None else tuple(attributes)
        kept = [self.growing_schema.attribute(name) for name in names]
        found = self._read_variables([variable for attribute in kept for variable in variables_of(attribute)], box)
        result: dict[str, Any] = {}
        for attribute in kept:
            values = found[attribute.name]
            result[attribute.name] = values.view("datetime64[us]") if is_time(attribute) else values
            if attribute.has_companion:
                result[attribute.companion] = found[attribute.companion]
        return result

    def _read_variables(self, names: Sequence[str], box: Box) -> dict[str, Any]:
        try:
            stored = {name: self._variable(name) for name in names}
        except MachineError:
            raise
        except Exception as error:
            raise self._unreadable(error) from error
        if box.is_empty:
            return {name: np.empty(box.shape, variable.dtype) for name, variable in stored.items()}
        grid = self.growing_schema.grid
        plain = {name: one for name, one in stored.items() if layout_obstacle(one, grid.chunk) is None}
        found = read_box(plain, grid, box, self._damaged_chunk) if plain else {}
        for name in stored.keys() - plain.keys():
            try:
                found[name] = np.asarray(stored[name][box.slices(self.growing_schema.lo)])
            except MachineError:
                raise
            except Exception as error:
                raise self._damage(name, box, error) from error
        return found

    def requests(self, variables: Iterable[str], sequence: Sequence[ChunkKey]) -> ChunkRequests:
        """Chunks of these variables, for whoever decodes them into memory of their own."""
        return ChunkRequests({name: self._variable(name) for name in variables}, sequence, self._damaged_chunk)

    def layout_obstacle(self, attribute: Attribute) -> str | None:
        """Why an attribute's chunks cannot be asked for one by one; None if they can."""
        if attribute.type.dtype.kind not in "biuf" or is_time(attribute):
            return f"values of type {attribute.type} are read by zarr"
        chunk = self.growing_schema.grid.chunk
        found = (layout_obstacle(self._variable(name), chunk) for name in variables_of(attribute))
        return next(filter(None, found), None)

    def check(self) -> None:
        """Refuse to build on a version whose metadata is damaged: what it hides would be lost in the next one too."""
        try:
            self._group()
        except MachineError:
            raise
        except Exception as error:
            raise self._unreadable(error) from error

    def _group(self) -> zarr.Group:
        use_runtime(PACKAGE)  # an open group may have come from the process that this one was forked from
        return _open_snapshot(self.path, self.pointer, self.checksum)

    def _variable(self, name: str) -> zarr.Array[Any]:
        use_runtime(PACKAGE)
        return _open_variable(self.path, self.pointer, self.checksum, name)

    def _damaged_chunk(self, variable: str, key: ChunkKey, error: Exception) -> Error:
        return self._damage(variable, self.growing_schema.grid.box_of(key) & self.box, error)

    def _damage(self, variable: str, box: Box, error: Exception) -> Error:
        """Which chunk of a failed read is the damaged one."""
        return damaged_chunk(self.title, self.growing_schema, box, [variable], self._group) or self._unreadable(error)

    def _unreadable(self, error: Exception) -> Error:
        return CorruptionError(
            f"array {self.title} cannot be read",
            got=_first_line(error),
            hint=_RESTORE,
        )


def damaged_chunk(
    title: str, schema: Schema, box: Box, variables: Sequence[str], group: Callable[[], zarr.Group]
) -> Error | None:
    """The first chunk in ``box`` that cannot be read, as an error that names it."""
    for key in schema.grid.keys_touching(box):
        where = schema.grid.box_of(key) & box
        for variable in variables:
            try:
                stored_variable(group(), variable)[where.slices(schema.lo)]
            except Exception as reason:
                return CorruptionError(
                    f"array {title}: chunk {key} of {variable}, cells {schema.grid.box_of(key)}, is damaged",
                    got=_first_line(reason),
                    hint=_RESTORE,
                )
    return None


def open_store(path: str, pointer: str, checksum: str = "", title: str = "") -> Any:
    """The Zarr store of a snapshot, as any Zarr reader takes it, once its metadata has the stated checksum.

    Errors of reading it later name the array ``title``.
    """
    place = f"the array's store {path}"
    with store_failures(place):
        return _LazyStore(_snapshot_store(path, pointer, checksum), place, title)


class _LazyStore(WrapperStore[Any]):
    """A store that others keep, and may take along into a forked child, where reading it would never end.

    It looks at the checksums of chunks itself: what Zarr raises over a wrong one says neither the array nor the chunk.
    """

    def __init__(self, store: Any, place: str, title: str) -> None:
        super().__init__(store)
        self._place, self._title = place, title

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        use_runtime(PACKAGE)
        with store_failures(self._place):
            found = await super().get(key, prototype, byte_range)
        variable, is_chunk, chunk = key.partition("/c/")
        if found is None or not is_chunk or byte_range is not None or has_right_checksum(found.as_numpy_array()):
            return found
        # Chunks that windrow did not write may end otherwise; there is no need to know before this.
        described = await super().get(f"{variable}/zarr.json", prototype)
        codecs = json.loads(described.to_bytes())["codecs"] if described is not None else []
        if codecs and codecs[-1]["name"] == "crc32c":
            name = ", ".join(chunk.split("/"))
            raise CorruptionError(
                f"array {self._title}: chunk ({name}) of {variable} is damaged", got=WRONG_CHECKSUM, hint=_RESTORE
            )
        return found

    def _with_store(self, store: Any) -> _LazyStore:
        return _LazyStore(store, self._place, self._title)


def _snapshot_store(path: str, pointer: str, checksum: str) -> Any:
    repository = open_repository(path, pointer)
    if checksum and _checksum(repository, path, pointer) != checksum:
        raise CorruptionError("the checksum of the array's metadata is not that of what was written", got=pointer)
    return repository.readonly_session(snapshot_id=pointer).store


def _checksum(repository: icechunk.Repository, path: str, pointer: str) -> str:
    try:
        return snapshot_checksum(repository, path, pointer)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # Icechunk panics over some kinds of damage, which is no Exception
        raise CorruptionError("the array's metadata cannot be read", got=_first_line(error)) from error


@functools.lru_cache(maxsize=64)
def _open_snapshot(path: str, pointer: str, checksum: str) -> zarr.Group:
    return zarr.open_group(_snapshot_store(path, pointer, checksum), mode="r", zarr_format=3)


@functools.lru_cache(maxsize=512)
def _open_variable(path: str, pointer: str, checksum: str, name: str) -> zarr.Array[Any]:
    return stored_variable(_open_snapshot(path, pointer, checksum), name)


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" x|") for line in str(error).splitlines() if line.strip(" x|")]
    return (lines or [type(error).__name__])[0][:200]
