"""Transactions: arrays made, changed and dropped, which become visible together, or not at all.

A transaction locks each array it touches, brings its store back to the published version, and hands out a
*working array*: the state that the next change builds on. Stores are committed as changes are made; nobody sees it,
because readers follow the catalog, and the catalog moves only in ``publish``. A new array is a folder and a lock on
its name until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from windrow.errors import ConflictError, SchemaError, UnknownNameError
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.storage.catalog import Catalog
from windrow.storage.dense import DenseSnapshot
from windrow.storage.dense_store import DenseStore, Reshape
from windrow.storage.locks import ArrayLock, name_key
from windrow.storage.parts import PartReader
from windrow.storage.publishing import NewArray, News
from windrow.storage.records import (
    ArrayRecord,
    ChunkStatistics,
    Int64Array,
    LabelChange,
    NewVersion,
    Part,
    VersionRecord,
)
from windrow.storage.rows import clip_chunks
from windrow.storage.sparse import SparseSnapshot, SparseStore
from windrow.storage.upkeep.sealing import seal
from windrow.storage.upkeep.working_parts import chunks_of, marked_parts
from windrow.storage.view_rows import ViewChange
from windrow.storage.warehouse import Warehouse


def dense_snapshot(warehouse: Warehouse, record: ArrayRecord, version: VersionRecord) -> DenseSnapshot:
    """A version of a dense array, ready to be read."""
    labels = tuple(sorted(warehouse.catalog.labels(version).items()))
    title = f"{record.name}@{version.number}"
    path = warehouse.path(record.directory)
    return DenseSnapshot(title, path, version.pointer, version.schema, version.hi, labels, version.checksum)


def sparse_snapshot(warehouse: Warehouse, record: ArrayRecord, version: VersionRecord) -> SparseSnapshot:
    """A version of a sparse array, ready to be read."""
    parts = warehouse.catalog.parts(version)
    title = f"{record.name}@{version.number}"
    return SparseSnapshot(title, warehouse.path(record.directory), version.schema, version.hi, parts)


@dataclass
class WorkingArray:
    """An array as it stands inside a transaction, and what publishing it will write into the catalog."""

    record: ArrayRecord
    base: VersionRecord
    path: str
    pointer: str
    schema: Schema
    hi: tuple[int, ...]
    labels: dict[str, Labels]
    operation: str = ""
    written_chunks: list[ChunkStatistics] = field(default_factory=list)
    replaces_all_chunks: bool = False
    base_parts: dict[str, Part] = field(default_factory=dict)
    parts: dict[str, Part] = field(default_factory=dict)
    label_changes: dict[str, LabelChange] = field(default_factory=dict)
    growth: Reshape | None = None
    """Of a dense array, what the next write brings to the store with its blocks."""
    checksum: str = ""
    made: NewArray | None = None
    """What is entered with it, if it is new."""
    catalog: Catalog | None = None
    """Knows the chunks of the parts that were there before."""
    steps: int = 0
    """How often the parts of a sparse array changed in here: they get a pointer of their own when it is sealed."""
    marked: dict[str, Int64Array] = field(default_factory=dict)
    """Of parts that were there before, the chunks in which cells died of a change, once it is sealed."""

    @property
    def title(self) -> str:
        return f"{self.record.name}@{self.base.number}"

    @property
    def box(self) -> Box:
        return self.schema.box(self.hi)

    @property
    def reader(self) -> PartReader:
        return PartReader(self.title, self.path, self.schema)

    def dense(self) -> DenseSnapshot:
        labels = tuple(sorted(self.labels.items()))
        known = self.base.checksum if self.pointer == self.base.pointer else ""
        return DenseSnapshot(self.title, self.path, self.pointer, self.schema, self.hi, labels, known)

    def sparse(self) -> SparseSnapshot:
        return SparseSnapshot(self.title, self.path, self.schema, self.hi, tuple(self.parts.values()))

    def version(self) -> VersionRecord:
        """Its state in here in the form of a version, for queries inside the transaction."""
        cells = sum(part.live for part in self.parts.values()) if self.record.sparse else self.box.size
        pointer = f"{self.pointer}+{self.steps}" if self.steps else self.pointer
        return replace(self.base, pointer=pointer, schema=self.schema, hi=self.hi, cells=cells, checksum="")

    def chunks(self, catalog: Catalog) -> ChunkStatistics:
        """The metadata of its chunks, of which the catalog knows those that were there before."""
        if not self.record.sparse:
            before = () if self.replaces_all_chunks else (catalog.chunks(self.base),)
            return clip_chunks(self._newest((*before, *self.written_chunks)), self.version())
        return chunks_of(self)

    def _newest(self, written: Iterable[ChunkStatistics]) -> ChunkStatistics:
        """What was last written of each chunk."""
        every = ChunkStatistics.concatenate(written, self.schema.ndim)
        newest = {int(ordinal): index for index, ordinal in enumerate(every.ordinals)}
        return every.take(np.array(sorted(newest.values()), np.intp))

    def set_labels(self, dimension: str, labels: Labels, start: int = 0) -> None:
        """Note the labels of a dimension, of which those before ``start`` are as they were."""
        self.labels[dimension] = labels
        earlier = self.label_changes.get(dimension)
        first = start if earlier is None else min(start, earlier.start)
        encoded = labels.slice(first, len(labels)).to_bytes()
        self.label_changes[dimension] = LabelChange(dimension, first, encoded)

    @property
    def changed(self) -> bool:
        """Whether there is anything to publish: only something that was done makes a version."""
        return bool(self.operation)

    def note(self, operation: str) -> None:
        """Name what was done, for the version's history."""
        self.operation = operation if self.operation in ("", operation) else "batch"

    def change(self) -> NewVersion:
        dense = None
        if self.written_chunks:
            dense = self._newest(self.written_chunks)
        removed = [part.id for path, part in self.base_parts.items() if path not in self.parts]
        return NewVersion(
            self.record.id,
            self.base.number,
            self.pointer,
            self.schema,
            self.hi,
            self.operation,
            dense_chunks=dense,
            replaces_all_chunks=self.replaces_all_chunks,
            added_parts=tuple(part for path, part in self.parts.items() if path not in self.base_parts),
            removed_parts=tuple(part_id for part_id in removed if part_id is not None),
            marked_parts=marked_parts(self),
            labels=tuple(self.label_changes.values()),
            checksum=self.checksum,
        )


class Transaction:
    """A set of working arrays, made, changed or dropped together."""

    def __init__(self, warehouse: Warehouse, lock_timeout: float, batch: str | None = None) -> None:
        self.warehouse = warehouse
        self.batch = batch
        self._lock_timeout = lock_timeout
        self._locks: dict[int, tuple[ArrayLock, str]] = {}
        self._working: dict[str, WorkingArray] = {}
        self._dropped: dict[str, ArrayRecord] = {}
        self.view_changes: dict[str, ViewChange] = {}
        """What publishing writes about views."""
        self.maintained: set[str] = set()
        """The views that follow what is done to other arrays: a batch is not known by them."""

    @property
    def changed(self) -> dict[str, WorkingArray]:
        """The arrays to which something was done."""
        return {name: working for name, working in self._working.items() if working.changed}

    @property
    def catalog(self) -> Catalog:
        return self.warehouse.catalog

    def working(self, name: str) -> WorkingArray:
        """The array to change, locked and with its store at the published version."""
        if name not in self._working:
            self._check_not_dropped(name)
            self._working[name] = self._open(self._lock_array(name))
        return self._working[name]

    def known(self, name: str) -> WorkingArray | None:
        """The array as it stands in here, if anything was done to it."""
        if name not in self._working:
            self._check_not_dropped(name)
        return self._working.get(name)

    def claim(self, name: str) -> bool:
        """Whether there is no array of that name, and nobody but this transaction can make one."""
        if name in self._working:
            return False
        if name not in self._dropped and name in self.catalog.array_names():
            return False
        self._take(name_key(name), name)
        if name in self._dropped or name not in self.catalog.array_names():
            return True
        self._give_back(name_key(name))  # somebody made it while we waited
        return False

    def create(self, plan: ArrayRecord, schema: Schema, labels: Mapping[str, Labels]) -> WorkingArray:
        """A new array, which nobody sees before it is published, and of which nothing stays if it is not."""
        if not self.claim(plan.name):
            raise SchemaError(
                "an array of that name exists", got=repr(plan.name), hint="Drop it, or choose another name"
            )
        hi = tuple(d.lo - 1 if d.hi is None else d.hi for d in schema.dimensions)
        path = self.warehouse.path(plan.directory)
        checksum, cells = "", 0
        try:
            if schema.sparse:
                pointer = SparseStore(path).create(schema, plan.name)
            else:
                store = DenseStore(path)
                pointer = store.create(schema, hi, labels, plan.metadata)
                checksum, cells = store.checksum(pointer), schema.box(hi).size
        except BaseException:
            self.warehouse.remove(plan.directory)
            raise
        base = VersionRecord(0, 0, pointer, schema, hi, "create", self.batch, datetime.now(UTC), cells, 0, checksum)
        working = WorkingArray(plan, base, path, pointer, schema, hi, dict(labels), made=NewArray(plan, base, labels))
        self._working[plan.name] = working
        return working

    def drop(self, name: str) -> ArrayRecord:
        """Let an array go when this is published; one that was made in here goes at once."""
        working = self._working.pop(name, None)
        if working is None:  # its store is not opened: an array that is damaged can be dropped too
            self._check_not_dropped(name)
            record = self._lock_array(name)
        else:
            record = working.record
        self.warehouse.path(record.directory)  # refused before the array is forgotten if it leads elsewhere
        if working is not None and working.made is not None:
            self.warehouse.remove(record.directory)
        else:
            self._dropped[name] = record
        return record

    def revert(self, name: str) -> None:
        """Take back what was done to an array in here."""
        if self._working.pop(name, None) is not None:
            self._working[name] = self._open(self.catalog.array(name))

    def is_dropped(self, name: str) -> bool:
        return name in self._dropped

    def _check_not_dropped(self, name: str) -> None:
        if name in self._dropped:
            raise UnknownNameError("the array was dropped in this batch", got=repr(name), hint="Create it anew")

    def _lock_array(self, name: str) -> ArrayRecord:
        while True:
            record = self.catalog.array(name)
            key = self.catalog.lock_key(record.id)
            taken = self._take(key, name)
            if self.catalog.array(name).id == record.id and self.catalog.lock_key(record.id) == key:
                return record
            if taken:
                self._give_back(key)  # the array was dropped and made anew, or a view was, while we waited

    def lock_all(self, names: Iterable[str]) -> None:
        """Lock several arrays, in the order in which everybody does."""
        records = [self.catalog.array(name) for name in names]
        for record in sorted(records, key=lambda one: self.catalog.lock_key(one.id)):
            self._lock_array(record.name)

    def _take(self, key: int, name: str) -> bool:
        """Take a lock, unless it is held in here already; whether it was taken now.

        Who holds a lock waits for those of larger numbers alone, so that two never wait for each other.
        """
        if key in self._locks:
            return False
        lock = ArrayLock(self.catalog, key)
        waits = key < 0 or key > max(self._locks, default=0)
        # Noted before it is taken: an interrupt in between must not leave a lock that nobody gives back.
        self._locks[key] = lock, name
        try:
            lock.acquire(name, self._lock_timeout if waits else 0.0)
        except ConflictError as error:
            self._give_back(key)
            if waits or self._lock_timeout == 0:
                raise
            hint = f"Touch {name} before {', '.join(held for _, held in self._locks.values())}; nothing was changed"
            raise ConflictError(error.what, got=error.got, hint=hint) from None
        except BaseException:
            self._give_back(key)
            raise
        return True

    def _give_back(self, key: int) -> None:
        self._locks[key][0].release()
        del self._locks[key]

    def _open(self, record: ArrayRecord) -> WorkingArray:
        version = self.catalog.version(record)
        path = self.warehouse.path(record.directory)
        store = SparseStore(path) if record.sparse else DenseStore(path)
        pointer = store.recover(version.pointer)
        if not record.sparse:
            dense_snapshot(self.warehouse, record, version).check()
        parts = {part.path: part for part in self.catalog.parts(version)} if record.sparse else {}
        return WorkingArray(
            record, version, path, pointer, version.schema, version.hi, self.catalog.labels(version),
            base_parts=parts, parts=dict(parts), catalog=self.catalog,
        )  # fmt: skip

    def publish(self) -> Mapping[str, VersionRecord]:
        """Make every change visible at once; returns the version at which each array is then."""
        locks = list(self._locks.values())
        with self.catalog.reading() as connection:  # before files are looked for that a collection may have taken
            for lock, name in locks:
                lock.check(connection, name)
        changed = self.changed
        for working in changed.values():
            if working.record.sparse:
                seal(working)
            else:
                working.checksum = DenseStore(working.path).checksum(working.pointer)
        news = News(
            locks=locks,
            dropped=tuple(self._dropped.values()),
            created=[working.made for working in self._working.values() if working.made is not None],
            changed={name: working.change() for name, working in changed.items()},
            before={n: working.base.number for n, working in self._working.items() if n not in self.maintained},
            batch=self.batch,
            views=tuple(self.view_changes.values()),
            maintained=frozenset(self.maintained),
        )
        published = self.catalog.publish(news)
        versions = {name: published.get(name, working.base) for name, working in self._working.items()}
        self._working = {name: working for name, working in self._working.items() if working.made is None}
        for record in self._dropped.values():
            self.warehouse.discard(record.directory)
        return versions

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The arrays that publishing leaves at the version they have."""
        same = (name for name, working in self._working.items() if not working.changed and working.made is None)
        return tuple(name for name in same if name not in self.maintained)

    def close(self) -> None:
        """Give the locks back. What was not published is garbage that the next writer or a collection removes."""
        try:
            for working in self._working.values():
                if working.made is not None:
                    self.warehouse.remove(working.record.directory)
        finally:
            self._working.clear()
            self._release_all()

    def _release_all(self) -> None:
        """Also if one of them cannot be given back, or somebody presses Ctrl-C meanwhile."""
        try:
            while self._locks:
                self._give_back(next(reversed(self._locks)))
        except BaseException:
            for lock, _ in self._locks.values():
                lock.abandon()
            raise

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
