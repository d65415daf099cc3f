"""The writing side of dense arrays: their Icechunk repository, in which every version is a snapshot."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import icechunk
import zarr

from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.storage.checksums import snapshot_checksum
from windrow.storage.dense.blocks import BlockReceipt
from windrow.storage.dense.layout import create_variables, stored_variable, write_coordinate
from windrow.storage.dense.repository import BRANCH, PACKAGE, commit, open_repository
from windrow.storage.failures import store_failures
from windrow.storage.places import check_no_links
from windrow.storage.runtimes import use_runtime

MANIFEST_CHUNKS = 2000
"""A manifest lists about so many chunks, because every change to one of them writes it anew."""


@dataclass(frozen=True)
class Reshape:
    """A change of an array's extent and labels, in the same commit as what is written into it, where that can be."""

    schema: Schema
    old_hi: tuple[int, ...]
    hi: tuple[int, ...]
    labels: Mapping[str, Labels]

    def apply(self, group: zarr.Group) -> None:
        """Grow the arrays, and set the labels of dimensions that changed."""
        if self.hi != self.old_hi:
            shape = self.schema.box(self.hi).shape
            for attribute in self.schema.attributes:
                stored_variable(group, attribute.name).resize(shape)
                if attribute.has_companion:
                    stored_variable(group, attribute.companion).resize(shape)
        for axis, name in enumerate(self.schema.dimension_names):
            if self.hi[axis] != self.old_hi[axis] or name in self.labels:
                write_coordinate(group, self.schema, self.hi, axis, self.labels.get(name))


def manifest_shape(schema: Schema) -> tuple[int, ...]:
    """How many chunks along each dimension one manifest lists."""
    grid = schema.grid
    shape = [1 if hi is None else count for hi, count in zip(grid.hi, grid.radix, strict=True)]
    while math.prod(shape) > MANIFEST_CHUNKS:
        axis = next(axis for axis, count in enumerate(shape) if count > 1)
        shape[axis] = -(-shape[axis] // 2)
    for axis in schema.growing:
        shape[axis] = max(1, MANIFEST_CHUNKS // math.prod(shape))
    return tuple(shape)


def _split_manifests(schema: Schema) -> icechunk.RepositoryConfig:
    """Stored with the repository, so that every later writer goes by it."""
    sizes: dict[Any, int] = {
        icechunk.ManifestSplitDimCondition.Axis(axis): n for axis, n in enumerate(manifest_shape(schema))
    }
    every = icechunk.ManifestSplitCondition.AnyArray()
    splitting = icechunk.ManifestSplittingConfig.from_dict({every: sizes})
    return icechunk.RepositoryConfig(manifest=icechunk.ManifestConfig(splitting=splitting))


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
        use_runtime(PACKAGE)
        with store_failures(f"the array's store {self.path}"):
            Path(self.path).mkdir(parents=True, exist_ok=True)
            storage = icechunk.local_filesystem_storage(self.path)
            repository = icechunk.Repository.create(storage, config=_split_manifests(schema))
            session = repository.writable_session(BRANCH)
            group = zarr.open_group(session.store, mode="a", zarr_format=3)
            create_variables(group, schema, hi, metadata)
            for axis, name in enumerate(schema.dimension_names):
                write_coordinate(group, schema, hi, axis, labels.get(name))
            return commit(repository, session, "create")

    def recover(self, pointer: str) -> str:
        """Make the store's head the published version, and return it: a writer that died may have left it ahead."""
        with store_failures(f"the array's store {self.path}"):
            repository = open_repository(self.path, pointer)
            head = repository.lookup_branch(BRANCH)
            if head != pointer:
                repository.reset_branch(BRANCH, pointer, from_snapshot_id=head)
            return pointer

    def reshape(self, change: Reshape) -> None:
        """Change extent and labels in a commit of its own."""
        repository, session = self.begin(change)
        with store_failures(f"the array's store {self.path}"):
            commit(repository, session, "reshape")

    def rechunk(self, schema: Schema, hi: tuple[int, ...], metadata: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the arrays by empty ones with the schema's chunk sizes, for a compaction to fill."""
        with store_failures(f"the array's store {self.path}"):
            repository = open_repository(self.path)
            session = repository.writable_session(BRANCH)
            create_variables(zarr.open_group(session.store, mode="r+", zarr_format=3), schema, hi, metadata)
            commit(repository, session, "rechunk")

    def begin(self, change: Reshape | None = None) -> tuple[icechunk.Repository, icechunk.Session]:
        """A session to write in, with the extent and labels changed that its writes need."""
        with store_failures(f"the array's store {self.path}"):
            repository = open_repository(self.path)
            session = repository.writable_session(BRANCH)
            if change is not None:
                change.apply(zarr.open_group(session.store, mode="r+", zarr_format=3))
            return repository, session

    def finish(
        self, repository: icechunk.Repository, session: icechunk.Session, receipts: Iterable[BlockReceipt], message: str
    ) -> str:
        """Merge what the tasks wrote and commit it: a new pointer, which nobody sees before it is published."""
        with store_failures(f"the array's store {self.path}"):
            forks = [receipt.fork for receipt in receipts if isinstance(receipt.fork, icechunk.ForkSession)]
            if forks:
                session.merge(*forks)
            return commit(repository, session, message)

    def head(self) -> str:
        with store_failures(f"the array's store {self.path}"):
            return open_repository(self.path).lookup_branch(BRANCH)

    def checksum(self, pointer: str) -> str:
        """A digest of a snapshot's metadata, taken before it is published."""
        with store_failures(f"the array's store {self.path}"):
            return snapshot_checksum(open_repository(self.path), self.path, pointer)

    def collect(self, kept: Iterable[str], current: str) -> int:
        """Remove what no kept snapshot needs; returns the bytes freed.

        Published snapshots are ancestors of the branch, so that they are kept without being named; what is older than
        the oldest kept one is cut off. What is kept is the caller's word alone: tags are made to fit it.
        """
        check_no_links(self.path)
        self.recover(current)
        with store_failures(f"the array's store {self.path}"):
            repository = open_repository(self.path)
            wanted = set(kept) | {current}
            ancestors = {snapshot.id: snapshot.written_at for snapshot in repository.ancestry(branch=BRANCH)}
            _keep_by_tags(repository, wanted - set(ancestors))
            repository.expire_snapshots(min(ancestors[pointer] for pointer in wanted & set(ancestors)))
            return int(repository.garbage_collect(datetime.now(UTC)).bytes_deleted)


def _keep_by_tags(repository: icechunk.Repository, pointers: set[str]) -> None:
    """Let tags name these snapshots and no others.

    Earlier windrows cut the branch off behind every version, and kept the versions before by tags alone.
    """
    missing = set(pointers)
    for tag in repository.list_tags():
        if repository.lookup_tag(tag) in missing:
            missing.discard(repository.lookup_tag(tag))
        else:
            repository.delete_tag(tag)
    for pointer in missing:
        repository.create_tag(f"windrow-{uuid.uuid4().hex}", pointer)
