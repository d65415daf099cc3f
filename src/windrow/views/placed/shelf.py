"""What a node has at hand of an array: chunks from its own disk where they are up to date, else from the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windrow.kernels.sparse.matching import found_in
from windrow.model.schema import Schema
from windrow.storage.cells import cell_fields, coordinates
from windrow.storage.chunks.cache import ChunkCache, ChunkKey
from windrow.storage.chunks.reading import read_chunks, split_chunks
from windrow.storage.sparse import SparseSnapshot
from windrow.storage.staged import ChunkChange, Staged


@dataclass
class Counted:
    """Bytes of cells that a task took: from the store, from what the batch changed, and from the node's own disk."""

    store_bytes: int = 0
    staged_bytes: int = 0
    cache_bytes: int = 0
    hits: int = 0
    misses: int = 0
    read_seconds: float = 0.0


@dataclass(frozen=True)
class ArrayChunks:
    """An array as a task needs it. It pickles.

    ``versions`` says when each chunk last changed, ``identities`` under what name the chunks of a version are kept; a
    version without one was never published, and is not kept.
    """

    place: str
    """What the array is called in every cache."""
    snapshot: SparseSnapshot
    versions: Mapping[int, int]
    identities: Mapping[int, str]
    staged: Staged
    next_versions: Mapping[int, int]
    next_identities: Mapping[int, str]
    """The same of the chunks that the batch changes."""

    def key(self, ordinal: int) -> ChunkKey | None:
        return self._key(ordinal, self.versions, self.identities)

    def next_key(self, ordinal: int) -> ChunkKey | None:
        """That of a chunk that the batch changes."""
        return self._key(ordinal, self.next_versions, self.next_identities)

    def _key(self, ordinal: int, versions: Mapping[int, int], identities: Mapping[int, str]) -> ChunkKey | None:
        version = versions.get(ordinal)
        identity = None if version is None else identities.get(version)
        return None if version is None or identity is None else ChunkKey(self.place, ordinal, version, identity)


@dataclass
class Shelf:
    """The chunks of one array on one node, while a task runs."""

    array: ArrayChunks
    cache: ChunkCache
    counted: Counted
    _old: dict[int, pa.Table] = field(default_factory=dict)
    _changes: dict[int, ChunkChange] = field(default_factory=dict)

    def fetch(self, ordinals: Iterable[int]) -> None:
        """Have some chunks at hand as they were before the batch."""
        lacking = sorted({*ordinals} - self._old.keys())
        known = [ordinal for ordinal in lacking if ordinal in self.array.versions]
        keys = {ordinal: key for ordinal in known if (key := self.array.key(ordinal)) is not None}
        cached = self.cache.read(list(keys.values()))
        for ordinal in lacking:
            table = cached.get(keys[ordinal]) if ordinal in keys else None
            if table is not None:
                self._old[ordinal] = table
                self.counted.hits += 1
                self.counted.cache_bytes += table.nbytes
        rest = [ordinal for ordinal in known if ordinal not in self._old]
        read = read_chunks(self.array.snapshot, np.array(rest, np.int64)) if rest else {}
        self.counted.misses += len(rest)
        self.counted.store_bytes += sum(table.nbytes for table in read.values())
        self._old.update(read)
        empty = cell_fields(self.array.snapshot.schema).empty_table()
        self._old.update({ordinal: empty for ordinal in lacking if ordinal not in self._old})

    def fetch_changes(self, ordinals: Iterable[int]) -> None:
        """Have what the batch did to some chunks at hand."""
        read = self.array.staged.read(sorted({*ordinals} - self._changes.keys()))
        self.counted.staged_bytes += sum(change.left.nbytes + change.came.nbytes for change in read.values())
        self._changes.update(read)

    def old(self, ordinal: int) -> pa.Table:
        return self._old[ordinal]

    def change(self, ordinal: int) -> ChunkChange:
        return self._changes[ordinal]

    def keep(self, ordinals: Iterable[int]) -> None:
        """Keep chunks on this node's disk as they are after the batch."""
        wanted = list(ordinals)
        self.fetch(wanted)
        self.fetch_changes(wanted)
        changes = [self._changes[ordinal] for ordinal in wanted]
        empty = cell_fields(self.array.snapshot.schema).empty_table()
        left, came = (pa.concat_tables([empty, *(getattr(c, n) for c in changes)]) for n in ("left", "came"))
        self.keep_changed(wanted, ChunkChange(left, came))

    def keep_changed(self, ordinals: list[int], change: ChunkChange) -> None:
        """Keep chunks that are at hand on this node's disk, after a change of some of them."""
        if not ordinals:
            return
        schema = self.array.snapshot.schema
        places = [coordinates(table, schema) for table in change]
        touched = np.union1d(*(schema.grid.ordinals(at) for at in places))
        changed = [ordinal for ordinal in ordinals if ordinal in {*touched.tolist()}]
        kept = [(self.array.key(ordinal), self._old[ordinal]) for ordinal in {*ordinals} - {*changed}]
        if changed:
            old = pa.concat_tables([self._old[ordinal] for ordinal in changed])
            pieces = split_chunks(_changed(old, change, schema), schema, sorted(changed))
            kept += [(self.array.next_key(ordinal), table) for ordinal, table in pieces.items()]
        named = [(key, table) for key, table in kept if key is not None]
        present = self.cache.has([key for key, _ in named])
        self.cache.write([(key, table) for key, table in named if key not in present])


def _changed(old: pa.Table, change: ChunkChange, schema: Schema) -> pa.Table:
    """Cells after what happened to them."""
    gone = pa.concat_tables([table.select(schema.dimension_names) for table in change])
    stays = ~found_in(coordinates(old, schema), coordinates(gone, schema))
    return pa.concat_tables([old.filter(pa.array(stays)), change.came.select(old.column_names).cast(old.schema)])
