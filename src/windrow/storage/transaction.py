"""Transactions: several changes to several arrays that become visible together, or not at all.

A transaction locks each array it touches, brings its store back to the published version, and hands out a
*working array*: the state that the next change builds on. Stores are committed as changes are made; nobody sees it,
because readers follow the catalog, and the catalog moves only in ``publish``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.storage.catalog import Catalog
from windrow.storage.dense import DenseSnapshot
from windrow.storage.dense_store import DenseStore
from windrow.storage.locks import ArrayLock
from windrow.storage.records import (
    ArrayRecord,
    ChunkStatistics,
    LabelChange,
    NewVersion,
    Part,
    VersionRecord,
)
from windrow.storage.sparse import SparseSnapshot, SparseStore
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
    checksum: str = ""

    @property
    def title(self) -> str:
        return f"{self.record.name}@{self.base.number}"

    @property
    def box(self) -> Box:
        return self.schema.box(self.hi)

    def dense(self) -> DenseSnapshot:
        labels = tuple(sorted(self.labels.items()))
        known = self.base.checksum if self.pointer == self.base.pointer else ""
        return DenseSnapshot(self.title, self.path, self.pointer, self.schema, self.hi, labels, known)

    def sparse(self) -> SparseSnapshot:
        return SparseSnapshot(self.title, self.path, self.schema, self.hi, tuple(self.parts.values()))

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
            every = ChunkStatistics.concatenate(self.written_chunks, self.schema.ndim)
            newest = {int(ordinal): index for index, ordinal in enumerate(every.ordinals)}
            dense = every.take(np.array(sorted(newest.values()), np.intp))
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
            labels=tuple(self.label_changes.values()),
            checksum=self.checksum,
        )


class Transaction:
    """A set of working arrays, published together."""

    def __init__(self, warehouse: Warehouse, lock_timeout: float, batch: str | None = None) -> None:
        self.warehouse = warehouse
        self.batch = batch
        self._lock_timeout = lock_timeout
        self._locks: list[ArrayLock] = []
        self._working: dict[str, WorkingArray] = {}

    @property
    def catalog(self) -> Catalog:
        return self.warehouse.catalog

    def working(self, name: str) -> WorkingArray:
        """The array to change, locked and with its store at the published version."""
        if name not in self._working:
            self._working[name] = self._open(self._lock(name))
        return self._working[name]

    def _lock(self, name: str) -> ArrayRecord:
        while True:
            record = self.catalog.array(name)
            lock = ArrayLock(self.catalog, record.id).acquire(name, self._lock_timeout)
            self._locks.append(lock)
            if self.catalog.array(name).id == record.id:
                return record
            self._locks.remove(lock)  # the array was dropped and made anew while we waited
            lock.release()

    def _open(self, record: ArrayRecord) -> WorkingArray:
        version = self.catalog.version(record)
        path = self.warehouse.path(record.directory)
        store = SparseStore(path) if record.sparse else DenseStore(path)
        store.recover(version.pointer)
        if not record.sparse:
            dense_snapshot(self.warehouse, record, version).check()
        parts = {part.path: part for part in self.catalog.parts(version)} if record.sparse else {}
        return WorkingArray(
            record, version, path, version.pointer, version.schema, version.hi, self.catalog.labels(version),
            base_parts=parts, parts=dict(parts),
        )  # fmt: skip

    def publish(self) -> Mapping[str, VersionRecord]:
        """Make every change visible at once; returns the version at which each array is then."""
        changed = {working.record.id: working for working in self._working.values() if working.changed}
        for working in changed.values():
            if not working.record.sparse:
                working.checksum = DenseStore(working.path).pin(working.pointer)
        numbers = {name: working.base.number for name, working in self._working.items()}

        def report(published: Mapping[int, int]) -> str:
            return json.dumps(numbers | {changed[key].record.name: number for key, number in published.items()})

        changes = [working.change() for working in changed.values()]
        published = self.catalog.publish(changes, self.batch, report)
        return {name: published.get(working.record.id, working.base) for name, working in self._working.items()}

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The arrays that publishing leaves at the version they have."""
        return tuple(name for name, working in self._working.items() if not working.changed)

    def close(self) -> None:
        """Give the locks back. What was not published is garbage that the next writer or a collection removes."""
        for lock in self._locks:
            lock.release()
        self._locks.clear()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
