"""The arrays of a placed join as tasks need them: what their chunks are called, where they are, what happened."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.operations.query.blocks import row_bytes
from windrow.plan.bound import BoundScan
from windrow.storage.cells import cell_fields
from windrow.storage.chunks.reading import chunk_statistics
from windrow.storage.homes import Homes, NewHomes, load_homes, load_identities
from windrow.storage.records import ArrayRecord, ChunkStatistics
from windrow.storage.sparse import SparseSnapshot
from windrow.storage.staged import Staged, stage
from windrow.storage.transaction import Transaction
from windrow.storage.working import WorkingArray
from windrow.views.changes import CellChange
from windrow.views.placed.problem import Base
from windrow.views.placed.shelf import ArrayChunks


@dataclass
class JoinedArray:
    """A base of a view on its way from one moment to another."""

    transaction: Transaction
    record: ArrayRecord
    before: BoundScan
    after: BoundScan
    change: CellChange
    staged: Staged

    @classmethod
    def of(
        cls, transaction: Transaction, before: BoundScan, after: BoundScan, change: CellChange | None
    ) -> JoinedArray:
        working = transaction.known(after.name)
        record = transaction.catalog.array(after.name) if working is None else working.record
        nothing = change if change is not None else _unchanged(after)
        path = transaction.warehouse.path(record.directory)
        staged = stage(path, after.schema, nothing.left, nothing.came)
        return cls(transaction, record, before, after, nothing, staged)

    @property
    def name(self) -> str:
        return self.after.name

    def base(self) -> Base:
        """What the planner has to know of it."""
        assert self.before.chunks is not None
        changed = pa.concat_tables([self.change.left, self.change.came])
        homes = Homes.none() if not self.record.id else load_homes(self.transaction.catalog, self.record)
        new = chunk_statistics(changed, self.after.schema)
        return Base(self.before.chunks().merged(), new, row_bytes(self.after.schema), homes)

    def chunks(self, old: ChunkStatistics) -> ArrayChunks:
        """What tasks have to know of it."""
        assert self.after.chunks is not None
        names = known_identities(self.transaction, self.record)
        now = self.after.chunks().merged()
        mine = np.isin(now.ordinals, np.fromiter(self.staged.places, np.int64, len(self.staged.places)))
        return ArrayChunks(
            place_of(self.transaction, self.record),
            without_indexes(self.before.snapshot),
            chunk_versions(old),
            names.of(old.changed),
            self.staged,
            dict(zip(now.ordinals[mine].tolist(), now.changed[mine].tolist(), strict=True)),
            names.of(now.changed[mine]) | self._next(),
        )

    def _next(self) -> dict[int, str]:
        """The name of the version that is being made, if one is."""
        working = self.transaction.known(self.name)
        return {} if working is None or not working.changed else {working.base.number + 1: self.identity()}

    def identity(self) -> str:
        """The same for all views that are brought up to date with one state of the array."""
        working = self.transaction.known(self.name)
        known = self.transaction.homes.get(self.name)
        if known is None or known.identity is None or working is None or known.steps != working.steps:
            known = NewHomes(identity=uuid.uuid4().hex, steps=0 if working is None else working.steps).after(known)
            self.transaction.homes[self.name] = known
        assert known.identity is not None
        return known.identity


def _unchanged(scan: BoundScan) -> CellChange:
    nothing = cell_fields(scan.schema).empty_table()
    return CellChange(scan.schema, nothing, nothing)


@dataclass(frozen=True)
class Identities:
    """The names of an array's versions; those up to ``newest`` are published."""

    newest: int
    known: Mapping[int, str]

    def of(self, versions: Iterable[int]) -> dict[int, str]:
        """A name for each of some versions; one that is not published has none, one long given up an empty one."""
        return {int(one): self.known.get(int(one), "") for one in np.unique(np.asarray(versions)) if one <= self.newest}


def known_identities(transaction: Transaction, record: ArrayRecord) -> Identities:
    if not record.id:  # made in this transaction
        return Identities(-1, {})
    found = load_identities(transaction.catalog, record)
    return Identities(max(found, default=-1), found)


def place_of(transaction: Transaction, record: ArrayRecord) -> str:
    """What an array is called in every cache: folders of stores have names that do not come back."""
    return transaction.warehouse.path(record.directory)


def chunk_versions(stats: ChunkStatistics) -> dict[int, int]:
    """When each chunk last changed."""
    return dict(zip(stats.ordinals.tolist(), stats.changed.tolist(), strict=True))


def without_indexes(snapshot: SparseSnapshot) -> SparseSnapshot:
    """A snapshot for tasks, which look at chunks by the parts' own footers."""
    return replace(snapshot, parts=tuple(replace(part, chunks=None) for part in snapshot.parts))


def result_chunks(
    transaction: Transaction, working: WorkingArray, touched: Iterable[int], identity: str, looks: bool
) -> ArrayChunks:
    """A view or its states as tasks that merge have to know it; as empty, unless they are to look at it."""
    stats = working.chunks(transaction.catalog).merged() if looks else ChunkStatistics.empty(working.schema.ndim)
    following = working.base.number + 1
    return ArrayChunks(
        place_of(transaction, working.record),
        without_indexes(working.sparse()),
        chunk_versions(stats),
        known_identities(transaction, working.record).of(stats.changed),
        Staged("", working.schema),
        dict.fromkeys(touched, following),
        {following: identity},
    )
