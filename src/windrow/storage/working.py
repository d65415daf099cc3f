"""Arrays inside a transaction: the state that the next change builds on, and what publishing will write of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.storage.catalog import Catalog
from windrow.storage.dense.snapshots import DenseSnapshot
from windrow.storage.dense.store import Reshape
from windrow.storage.parts import PartReader
from windrow.storage.publishing import NewArray
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
from windrow.storage.sparse import SparseSnapshot
from windrow.storage.upkeep.working_parts import chunks_of, marked_parts
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
    written_boxes: list[Box] = field(default_factory=list)
    """Outside these a dense array is as it was, unless all its chunks are replaced."""
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
