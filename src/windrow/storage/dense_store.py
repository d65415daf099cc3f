"""The writing side of dense arrays: their Icechunk repository, in which every version is a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import icechunk
import zarr

from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.storage.checksums import snapshot_checksum
from windrow.storage.dense import open_repository
from windrow.storage.dense_blocks import BlockReceipt
from windrow.storage.dense_layout import create_variables, stored_variable, write_coordinate
from windrow.storage.failures import store_failures

BRANCH = "main"


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
            create_variables(group, schema, hi, metadata)
            for axis, name in enumerate(schema.dimension_names):
                write_coordinate(group, schema, hi, axis, labels.get(name))
            return self._commit(repository, session, "create")

    def recover(self, pointer: str) -> None:
        """Make the store's head the published version: a writer that died may have left it ahead."""
        with store_failures("the array's store"):
            repository = open_repository(self.path)
            head = repository.lookup_branch(BRANCH)
            if head != pointer:
                repository.reset_branch(BRANCH, pointer, from_snapshot_id=head)

    def reshape(
        self, schema: Schema, old_hi: tuple[int, ...], hi: tuple[int, ...], labels: Mapping[str, Labels]
    ) -> None:
        """Grow the arrays to ``hi``, and set the labels of dimensions that changed."""
        with store_failures("the array's store"):
            repository = open_repository(self.path)
            session = repository.writable_session(BRANCH)
            group = zarr.open_group(session.store, mode="r+", zarr_format=3)
            if hi != old_hi:
                shape = schema.box(hi).shape
                for attribute in schema.attributes:
                    stored_variable(group, attribute.name).resize(shape)
                    if attribute.has_companion:
                        stored_variable(group, attribute.companion).resize(shape)
            for axis, name in enumerate(schema.dimension_names):
                if hi[axis] != old_hi[axis] or name in labels:
                    write_coordinate(group, schema, hi, axis, labels.get(name))
            self._commit(repository, session, "reshape")

    def rechunk(self, schema: Schema, hi: tuple[int, ...], metadata: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the arrays by empty ones with the schema's chunk sizes, for a compaction to fill."""
        repository = open_repository(self.path)
        session = repository.writable_session(BRANCH)
        create_variables(zarr.open_group(session.store, mode="r+", zarr_format=3), schema, hi, metadata)
        self._commit(repository, session, "rechunk")

    def begin(self) -> tuple[icechunk.Repository, icechunk.Session]:
        repository = open_repository(self.path)
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
        return open_repository(self.path).lookup_branch(BRANCH)

    def _commit(self, repository: icechunk.Repository, session: icechunk.Session, message: str) -> str:
        if not session.has_uncommitted_changes:
            return repository.lookup_branch(BRANCH)
        return session.commit(message)

    def pin(self, pointer: str) -> str:
        """Tag a snapshot, or garbage collection would not know that it can still be read; returns its checksum."""
        with store_failures("the array's store"):
            repository = open_repository(self.path)
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
            repository = open_repository(self.path)
            wanted = {_tag(pointer) for pointer in kept}
            for tag in repository.list_tags() - wanted:
                repository.delete_tag(tag)
            now = datetime.now(UTC)
            repository.expire_snapshots(now)
            return int(repository.garbage_collect(now).bytes_deleted)


def _tag(pointer: str) -> str:
    return f"windrow-{pointer}"
