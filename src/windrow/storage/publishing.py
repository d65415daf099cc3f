"""What publishing writes into the catalog's tables: arrays that are made or dropped, and new versions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from windrow.errors import ConflictError, SchemaError
from windrow.model.labels import Labels
from windrow.storage import tables
from windrow.storage.chunks.rows import forget_parts, publish_dense_chunks, publish_parts
from windrow.storage.homes import NewHomes, forget_homes
from windrow.storage.records import ArrayRecord, NewVersion, VersionRecord
from windrow.storage.rows import assemble, now_microseconds, version_row
from windrow.storage.view_rows import ViewChange, forget_view

LABEL_SEGMENTS = 32
"""After so many label changes the next one is stored whole, so that reading labels stays quick."""


_NEWEST = (
    sa.select(tables.versions)
    .where(tables.versions.c.array_id == sa.bindparam("array_id"))
    .order_by(tables.versions.c.number.desc())
    .limit(1)
)
"""Put together once, for every batch asks it."""


class HeldLock(Protocol):
    """What a transaction holds an array by."""

    def check(self, connection: Connection, name: str) -> None: ...


@dataclass(frozen=True)
class NewArray:
    """An array that is to be entered, with its version 0."""

    record: ArrayRecord
    version: VersionRecord
    labels: Mapping[str, Labels]


@dataclass(frozen=True)
class News:
    """All that one transaction makes visible; ``before`` are the versions that its arrays had."""

    locks: Sequence[tuple[HeldLock, str]]
    dropped: Sequence[ArrayRecord] = ()
    created: Sequence[NewArray] = ()
    changed: Mapping[str, NewVersion] = field(default_factory=dict)
    before: dict[str, int] = field(default_factory=dict)
    batch: str | None = None
    folders: Mapping[str, str] = field(default_factory=dict)
    """Of each array: what tells it from one that is given its name later."""
    views: Sequence[ViewChange] = ()
    homes: Mapping[str, NewHomes] = field(default_factory=dict)
    """Where chunks of arrays are at home from now on."""
    rates: str | None = None
    """What nodes were measured to take, if they were."""
    maintained: frozenset[str] = frozenset()
    """Arrays that only followed: whoever sends the batch again does not name them."""

    def report(self, published: Mapping[str, VersionRecord]) -> str:
        """What is kept of a batch with an id: what it is a replay of, if it comes again."""
        known = {*self.before, *self.changed, *(made.record.name for made in self.created)} - self.maintained
        versions = self.before | {name: version.number for name, version in published.items() if name in known}
        unchanged = [name for name in self.before if name not in published]
        dropped = [record.name for record in self.dropped]
        folders = {name: folder for name, folder in self.folders.items() if name in versions}
        return json.dumps({"versions": versions, "unchanged": unchanged, "dropped": dropped, "folders": folders})


def enter_array(connection: Connection, made: NewArray) -> VersionRecord:
    """Enter a new array with its version 0."""
    record = made.record
    values = {
        "name": record.name,
        "directory": record.directory,
        "kind": "sparse" if record.sparse else "dense",
        "gridding": record.gridding,
        "metadata": json.dumps({k: dict(v) for k, v in record.metadata.items()}),
    }
    try:
        inserted = connection.execute(sa.insert(tables.arrays).values(values))
    except sa.exc.IntegrityError:  # made by a windrow that does not lock names
        raise SchemaError("an array of that name exists", got=repr(record.name), hint="Drop it first") from None
    array_id = int(inserted.inserted_primary_key[0])  # type: ignore[index]
    connection.execute(sa.insert(tables.versions).values(version_row(made.version, array_id)))
    for name, of_dimension in made.labels.items():
        row = {"array_id": array_id, "dimension": name, "since": 0, "start": 0}
        connection.execute(sa.insert(tables.labels).values(row | {"encoded": of_dimension.to_bytes()}))
    return replace(made.version, array_id=array_id)


def forget_array(connection: Connection, record: ArrayRecord) -> None:
    """Forget an array; its directory is remembered as trash until it is removed."""
    connection.execute(sa.insert(tables.trash).values(directory=record.directory))
    # Explicit, because not every database was created with its cascades switched on.
    forget_view(connection, record.id)
    forget_parts(connection, tables.parts.c.array_id == record.id)
    forget_homes(connection, record.id)
    for table in (tables.labels, tables.dense_chunks, tables.versions):
        connection.execute(sa.delete(table).where(table.c.array_id == record.id))
    connection.execute(sa.delete(tables.arrays).where(tables.arrays.c.id == record.id))


def publish_one(connection: Connection, change: NewVersion, batch: str | None) -> VersionRecord:
    """Enter the version that follows ``change.base``, with what it adds and ends."""
    table = tables.versions
    newest = connection.execute(_NEWEST, {"array_id": change.array_id}).first()
    if newest is None or newest.number != change.base:
        raise ConflictError(
            "the array changed while this write was under way",
            got=f"version {newest.number if newest else 'dropped'} instead of {change.base}",
            hint="Write again",
        )
    number = newest.number + 1
    cells, size = publish_parts(connection, change, number, (newest.cells, newest.bytes))
    if change.dense_chunks is not None or change.replaces_all_chunks:
        cells, size = change.schema.box(change.hi).size, publish_dense_chunks(connection, change, number)
    _add_labels(connection, change, number)
    version = VersionRecord(
        change.array_id, number, change.pointer, change.schema, change.hi, change.operation, batch,
        _time_after(newest.created), cells, size, change.checksum,
    )  # fmt: skip
    connection.execute(sa.insert(table), version_row(version, change.array_id))
    return version


def _time_after(created: int) -> datetime:
    """Now, or right after the version before if the clock was set back since: "as of" goes by these times."""
    return datetime.fromtimestamp(max(now_microseconds(), created + 1) / 1_000_000, UTC)


def _add_labels(connection: Connection, change: NewVersion, number: int) -> None:
    table = tables.labels
    for label in change.labels:
        mine = (table.c.array_id == change.array_id) & (table.c.dimension == label.dimension)
        start, encoded = label.start, label.encoded
        if start > 0:
            query = sa.select(table.c.start, table.c.encoded).where(mine).order_by(table.c.since.desc())
            recent = connection.execute(query.limit(LABEL_SEGMENTS)).all()
            if not any(row.start == 0 for row in recent):
                rows = connection.execute(sa.select(table.c.start, table.c.encoded).where(mine).order_by(table.c.since))
                segments = [(row.start, row.encoded) for row in rows] + [(start, encoded)]
                newest_whole = max(index for index, segment in enumerate(segments) if segment[0] == 0)
                start, encoded = 0, assemble(segments[newest_whole:]).to_bytes()
        row = {"array_id": change.array_id, "dimension": label.dimension, "since": number, "start": start}
        connection.execute(sa.insert(table).values(row | {"encoded": encoded}))
