"""Dense arrays: one Zarr v3 array per attribute in an Icechunk repository.

Each stored chunk ends in a CRC-32C, so a damaged one is found when it is read. Readers hold a snapshot; writers
fork a session, pickle the fork out to where the bytes are written, and merge what comes back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.core.sync import sync
from zarr.storage import WrapperStore

from windrow.errors import CorruptionError, Error
from windrow.model.box import Box
from windrow.model.conform import conform
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks, ChangedBlocks, GridSource
from windrow.storage.checksums import snapshot_checksum
from windrow.storage.failures import store_failures
from windrow.storage.records import ChunkStatistics

BRANCH = "main"
Fork = icechunk.ForkSession
_COORDINATE_CHUNK = 8192
_MOST_NUMBERED = 2**26  # a longer dimension without labels gets no coordinate: numbering its cells takes long
_CF_TIME = {"units": "microseconds since 1970-01-01T00:00:00", "calendar": "proleptic_gregorian"}

icechunk.set_logs_filter("error")  # it warns of concurrent local commits, which the catalog's locks exclude


def compressors() -> list[Any]:
    """How chunks are compressed and checked; benchmarks give the same to their peers."""
    return [BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), Crc32cCodec()]


def bounded(schema: Schema, hi: tuple[int, ...]) -> Schema:
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

    @property
    def schema(self) -> Schema:
        return bounded(self.growing_schema, self.hi)

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    @property
    def box(self) -> Box:
        return self.growing_schema.box(self.hi)

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        """The values in ``box`` of the named attributes (all by default) and of their companions."""
        names = self.growing_schema.attribute_names if attributes is None else tuple(attributes)
        result: dict[str, Any] = {}
        for attribute in map(self.growing_schema.attribute, names):
            result[attribute.name] = self._read_variable(attribute.name, attribute, box)
            if attribute.has_companion:
                result[attribute.companion] = self._read_variable(attribute.companion, attribute, box)
        return result

    def _read_variable(self, variable: str, attribute: Attribute, box: Box) -> Any:
        if box.is_empty:
            dtype = bool if variable == attribute.companion else attribute.type.dtype
            return np.empty(box.shape, dtype)
        try:
            values = np.asarray(_variable(self._group(), variable)[box.slices(self.growing_schema.lo)])
        except Exception as error:
            raise self._damage(variable, box, error) from error
        return values.view("datetime64[us]") if variable == attribute.name and _is_time(attribute) else values

    def check(self) -> None:
        """Refuse to build on a version whose metadata is damaged: what it hides would be lost in the next one too."""
        try:
            self._group()
        except Exception as error:
            raise self._unreadable(error) from error

    def _group(self) -> zarr.Group:
        return _open_snapshot(self.path, self.pointer, self.checksum)

    def _damage(self, variable: str, box: Box, error: Exception) -> Error:
        """Which chunk of a failed read is the damaged one."""
        return _damaged_chunk(self.title, self.growing_schema, box, [variable], self._group) or self._unreadable(error)

    def _unreadable(self, error: Exception) -> Error:
        return CorruptionError(
            f"array {self.title} cannot be read",
            got=_first_line(error),
            hint="Read an older version, or restore the warehouse from a copy",
        )


def _damaged_chunk(
    title: str, schema: Schema, box: Box, variables: Sequence[str], group: Callable[[], zarr.Group]
) -> Error | None:
    """The first chunk in ``box`` that cannot be read, as an error that names it."""
    for key in schema.grid.keys_touching(box):
        where = schema.grid.box_of(key) & box
        for variable in variables:
            try:
                _variable(group(), variable)[where.slices(schema.lo)]
            except Exception as reason:
                return CorruptionError(
                    f"array {title}: chunk {key} of {variable}, cells {schema.grid.box_of(key)}, is damaged",
                    got=_first_line(reason),
                    hint="Read an older version, or restore the warehouse from a copy",
                )
    return None


def open_store(path: str, pointer: str, checksum: str = "") -> Any:
    """The Zarr store of a snapshot, as any Zarr reader takes it, once its metadata has the stated checksum."""
    repository = _repository(path)
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
    return zarr.open_group(open_store(path, pointer, checksum), mode="r", zarr_format=3)


def _variable(group: zarr.Group, name: str) -> zarr.Array[Any]:
    found = group[name]
    assert isinstance(found, zarr.Array)
    return found


def _repository(path: str) -> icechunk.Repository:
    return icechunk.Repository.open(icechunk.local_filesystem_storage(path))


@dataclass(frozen=True)
class BlockWrite:
    """A task: write ``box`` from ``source``, whose own coordinates are ``shift`` away, through a forked session.

    ``bounds`` are the cells the array has now, which clip its last chunks. Errors name ``title``.
    """

    fork: Fork
    schema: Schema
    bounds: Box
    source: GridSource
    box: Box
    shift: tuple[int, ...]
    title: str = ""


@dataclass(frozen=True)
class BlockReceipt:
    """What a BlockWrite did: its session, to be merged, the metadata of the chunks it wrote, the cells it changed."""

    fork: Fork
    chunks: ChunkStatistics
    cells: int


class _MeasuringStore(WrapperStore[Any]):
    """Notes the encoded size of every chunk that passes through."""

    def __init__(self, store: Any, sizes: dict[str, int] | None = None) -> None:
        super().__init__(store)
        self.sizes: dict[str, int] = {} if sizes is None else sizes

    def _with_store(self, store: Any) -> _MeasuringStore:
        return _MeasuringStore(store, self.sizes)

    async def set(self, key: str, value: Any) -> None:
        self.sizes[key] = len(value)
        await super().set(key, value)


def write_block(task: BlockWrite) -> BlockReceipt:
    """Write one block; its chunks belong to no other task."""
    blocks = task.source.read(task.box.shift([-s for s in task.shift]))
    store = _MeasuringStore(task.fork.store)
    with store_failures("the array's store"):
        group = zarr.open_group(store, mode="r+", zarr_format=3)
        for attribute in task.schema.attributes:
            if attribute.name in blocks:
                with _damage_named(task, group, attribute):
                    _write_attribute(group, attribute, blocks, task.box.slices(task.schema.lo))
    if not blocks:
        return BlockReceipt(task.fork, ChunkStatistics.empty(task.schema.ndim), 0)
    _measure_others(task, store, blocks)
    changed = blocks.cells if isinstance(blocks, ChangedBlocks) else task.box.size
    return BlockReceipt(task.fork, _chunk_statistics(task, store.sizes), changed)


@contextmanager
def _damage_named(task: BlockWrite, group: zarr.Group, attribute: Attribute) -> Iterator[None]:
    """A write to part of a chunk reads the rest, and so may find damage."""
    try:
        yield
    except ValueError as error:
        variables = [attribute.name, attribute.companion] if attribute.has_companion else [attribute.name]
        grid = task.schema.grid
        touched = [grid.box_of(key) & task.bounds for key in grid.keys_touching(task.box)]
        whole = functools.reduce(Box.__or__, touched)
        found = _damaged_chunk(task.title, task.schema, whole, variables, lambda: group)
        raise found or error from error


def _write_attribute(group: zarr.Group, attribute: Attribute, blocks: Blocks, where: tuple[slice, ...]) -> None:
    values, valid = conform(blocks[attribute.name], attribute, blocks.get(attribute.companion))
    _variable(group, attribute.name)[where] = values.view("int64") if _is_time(attribute) else values
    if valid is not None:
        _variable(group, attribute.companion)[where] = valid


def _measure_others(task: BlockWrite, store: _MeasuringStore, blocks: Blocks) -> None:
    """Add the sizes of what the chunks hold besides the attributes just written."""
    for attribute in task.schema.attributes:
        if attribute.name in blocks:
            continue
        variables = [attribute.name, attribute.companion] if attribute.has_companion else [attribute.name]
        for key in task.schema.grid.keys_touching(task.box):
            for variable in variables:
                name = f"{variable}/c/{'/'.join(map(str, key))}"
                if sync(store.exists(name)):
                    store.sizes[name] = sync(store.getsize(name))


def _chunk_statistics(task: BlockWrite, sizes: Mapping[str, int]) -> ChunkStatistics:
    stored: dict[str, int] = {}
    for name, size in sizes.items():
        _, _, key = name.partition("/c/")
        stored[key] = stored.get(key, 0) + size
    grid = task.schema.grid
    keys = list(grid.keys_touching(task.box))
    boxes = [grid.box_of(key) & task.bounds for key in keys]
    return ChunkStatistics(
        np.array([grid.ordinal(key) for key in keys], np.int64),
        np.array([chunk.size for chunk in boxes], np.int64),
        np.array([stored.get("/".join(map(str, key)), 0) for key in keys], np.int64),
        np.array([chunk.lo for chunk in boxes], np.int64).reshape(len(keys), task.schema.ndim),
        np.array([chunk.hi for chunk in boxes], np.int64).reshape(len(keys), task.schema.ndim),
    )


class DenseStore:
    """The writing side of one dense array. Its caller holds the array's lock."""

    def __init__(self, path: str) -> None:
        self.path = path

    def create(
        self,
        schema: Schema,
        hi: tuple[int, ...],
        labels: Mapping[str, Labels],
        metadata: Mapping[str, Mapping[str, str]],
    ) -> str:
        """Lay out the arrays of an empty version and return its pointer."""
        with store_failures(f"the array's store {self.path}"):
            Path(self.path).mkdir(parents=True, exist_ok=True)
            repository = icechunk.Repository.create(icechunk.local_filesystem_storage(self.path))
            session = repository.writable_session(BRANCH)
            group = zarr.open_group(session.store, mode="a", zarr_format=3)
            _create_variables(group, schema, hi, metadata)
            for axis, name in enumerate(schema.dimension_names):
                _write_coordinate(group, schema, hi, axis, labels.get(name))
            return self._commit(repository, session, "create")

    def recover(self, pointer: str) -> None:
        """Make the store's head the published version: a writer that died may have left it ahead."""
        with store_failures("the array's store"):
            repository = _repository(self.path)
            head = repository.lookup_branch(BRANCH)
            if head != pointer:
                repository.reset_branch(BRANCH, pointer, from_snapshot_id=head)

    def reshape(
        self, schema: Schema, old_hi: tuple[int, ...], hi: tuple[int, ...], labels: Mapping[str, Labels]
    ) -> None:
        """Grow the arrays to ``hi``, and set the labels of dimensions that changed."""
        with store_failures("the array's store"):
            repository = _repository(self.path)
            session = repository.writable_session(BRANCH)
            group = zarr.open_group(session.store, mode="r+", zarr_format=3)
            if hi != old_hi:
                shape = schema.box(hi).shape
                for attribute in schema.attributes:
                    _variable(group, attribute.name).resize(shape)
                    if attribute.has_companion:
                        _variable(group, attribute.companion).resize(shape)
            for axis, name in enumerate(schema.dimension_names):
                if hi[axis] != old_hi[axis] or name in labels:
                    _write_coordinate(group, schema, hi, axis, labels.get(name))
            self._commit(repository, session, "reshape")

    def rechunk(self, schema: Schema, hi: tuple[int, ...], metadata: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the arrays by empty ones with the schema's chunk sizes, for a compaction to fill."""
        repository = _repository(self.path)
        session = repository.writable_session(BRANCH)
        _create_variables(zarr.open_group(session.store, mode="r+", zarr_format=3), schema, hi, metadata)
        self._commit(repository, session, "rechunk")

    def begin(self) -> tuple[icechunk.Repository, icechunk.Session]:
        repository = _repository(self.path)
        return repository, repository.writable_session(BRANCH)

    def finish(
        self, repository: icechunk.Repository, session: icechunk.Session, receipts: Iterable[BlockReceipt], message: str
    ) -> str:
        """Merge what the tasks wrote and commit it: a new pointer, which nobody sees before it is published."""
        with store_failures("the array's store"):
            forks = [receipt.fork for receipt in receipts]
            if forks:
                session.merge(*forks)
            return self._commit(repository, session, message)

    def head(self) -> str:
        return _repository(self.path).lookup_branch(BRANCH)

    def _commit(self, repository: icechunk.Repository, session: icechunk.Session, message: str) -> str:
        if not session.has_uncommitted_changes:
            return repository.lookup_branch(BRANCH)
        return session.commit(message)

    def pin(self, pointer: str) -> str:
        """Tag a snapshot, or garbage collection would not know that it can still be read; returns its checksum."""
        with store_failures("the array's store"):
            repository = _repository(self.path)
            try:
                repository.create_tag(_tag(pointer), pointer)
            except icechunk.IcechunkError as error:
                if "already exists" not in str(error):
                    raise
            return snapshot_checksum(repository, self.path, pointer)

    def collect(self, kept: Iterable[str], current: str) -> int:
        """Remove what no kept snapshot needs; returns the bytes freed."""
        self.recover(current)
        with store_failures("the array's store"):
            repository = _repository(self.path)
            wanted = {_tag(pointer) for pointer in kept}
            for tag in repository.list_tags() - wanted:
                repository.delete_tag(tag)
            now = datetime.now(UTC)
            repository.expire_snapshots(now)
            return int(repository.garbage_collect(now).bytes_deleted)


def _tag(pointer: str) -> str:
    return f"windrow-{pointer}"


def _create_variables(
    group: zarr.Group, schema: Schema, hi: tuple[int, ...], metadata: Mapping[str, Mapping[str, str]]
) -> None:
    group.attrs["windrow"] = {"schema": str(schema)}
    shape = schema.box(hi).shape
    for attribute in schema.attributes:
        described = dict(metadata.get(attribute.name, {}))
        if _is_time(attribute):
            described |= _CF_TIME
        fill = 0 if _is_time(attribute) else attribute.type.fill
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


def _write_coordinate(group: zarr.Group, schema: Schema, hi: tuple[int, ...], axis: int, labels: Labels | None) -> None:
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
        known = _variable(group, dimension.name)
        if known.dtype == np.int64 and known.shape[0] <= len(values):
            start = known.shape[0]
            known.resize((len(values),))
            known[start:] = values[start:]
            return
    created = group.create_array(
        dimension.name,
        shape=values.shape,
        chunks=(_COORDINATE_CHUNK if dimension.growing else min(len(values), _COORDINATE_CHUNK),),
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
    return np.dtype("int64") if _is_time(attribute) else attribute.type.dtype


def _is_time(attribute: Attribute) -> bool:
    return attribute.type.name == "datetime"


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" x|") for line in str(error).splitlines() if line.strip(" x|")]
    return (lines or [type(error).__name__])[0][:200]
