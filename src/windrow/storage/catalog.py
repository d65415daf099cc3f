"""The catalog: which arrays there are, and where each of their versions is.

Publishing is the one moment at which anything becomes visible: a single SQL transaction moves the pointers of every
array that a batch touched. Whatever the stores hold beyond the catalog's pointers does not exist for readers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import ConflictError, UnknownNameError, nearest
from windrow.model.labels import Labels
from windrow.storage import tables
from windrow.storage.chunks.parts_catalog import VERSIONS_REMEMBERED, PartsCatalog
from windrow.storage.homes import RATES, enter_homes, enter_setting
from windrow.storage.publishing import News, enter_array, forget_array, publish_one
from windrow.storage.records import ArrayRecord, VersionRecord
from windrow.storage.rows import array_record, assemble, now_microseconds, version_record
from windrow.storage.view_rows import (
    HIDDEN,
    ViewRecord,
    component_of,
    enter_views,
    forget_view_versions,
    has_views,
    held_versions,
    history_of,
    view_records,
)


class Catalog(PartsCatalog):
    """Reads and changes of the catalog, each in one transaction."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._views_known = False
        self._no_views: set[tuple[int, str]] = set()
        """Arrays that were found to be no views: every read asks."""
        self._labels = functools.lru_cache(VERSIONS_REMEMBERED)(self._read_labels)

    # Arrays

    def array_names(self) -> list[str]:
        with self.reading() as connection:
            return list(connection.scalars(sa.select(tables.arrays.c.name).order_by(tables.arrays.c.name)))

    def _shown_names(self) -> list[str]:
        """The arrays that users know of: what views keep beside themselves is none of them."""
        return [name for name in self.array_names() if not name.startswith(HIDDEN)]

    def array_records(self) -> list[ArrayRecord]:
        """All arrays, by name."""
        with self.reading() as connection:
            rows = connection.execute(sa.select(tables.arrays).order_by(tables.arrays.c.name)).all()
        return [array_record(row) for row in rows]

    def array(self, name: str) -> ArrayRecord:
        if not isinstance(name, str):
            raise UnknownNameError("an array's name is a text", got=repr(name), hint=nearest("", self._shown_names()))
        with self.reading() as connection:
            row = connection.execute(_ARRAY, {"name": name}).first()
        if row is None:
            raise UnknownNameError("no such array", got=repr(name), hint=nearest(name, self._shown_names()))
        return array_record(row)

    def current(self, name: str) -> tuple[ArrayRecord, VersionRecord]:
        """An array and its newest version, as of one moment."""
        if isinstance(name, str):
            with self.reading() as connection:
                row = connection.execute(_CURRENT, {"name": name}).first()
            if row is not None:
                record = array_record(row)
                return record, version_record(row, record.sparse)
        record = self.array(name)  # which says what is wrong with the name
        return record, self.version(record)

    def trash(self) -> list[str]:
        with self.reading() as connection:
            return list(connection.scalars(sa.select(tables.trash.c.directory)))

    def empty_trash(self, directory: str) -> None:
        with self.writing() as connection:
            connection.execute(sa.delete(tables.trash).where(tables.trash.c.directory == directory))

    # Versions

    def version(self, record: ArrayRecord, number: int | None = None, as_of: datetime | None = None) -> VersionRecord:
        """The version asked for: by number, the last one at a moment, or the newest."""
        table = tables.versions
        query = sa.select(table).where(table.c.array_id == record.id).order_by(table.c.number.desc()).limit(1)
        if number is not None:
            # A number too large for the database cannot be that of a version.
            query = query.where(table.c.number == (number if abs(number) < 2**63 else -1))
        if as_of is not None:
            query = query.where(table.c.created <= int(as_of.timestamp() * 1_000_000))
        with self.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            asked = f"{record.name}@{number}" if number is not None else f"{record.name} as of {as_of}"
            raise self._no_version(record, asked, number)
        return version_record(row, record.sparse)

    def check_offered(self, record: ArrayRecord, version: VersionRecord) -> None:
        """Refuse a version that was given up, or whose array was dropped."""
        with self.reading() as connection:
            offered = connection.scalar(_OFFERED, {"array_id": version.array_id, "number": version.number})
        if offered is None:
            raise self._no_version(record, f"{record.name}@{version.number}", version.number)

    def _no_version(self, record: ArrayRecord, asked: str, number: int | None) -> UnknownNameError:
        offered = [version.number for version in self.versions(record)]
        if not offered:
            return UnknownNameError("the array was dropped", got=asked, hint="Open the array of that name anew, if any")
        hint = f"{record.name} has versions {offered[0]} to {offered[-1]}"
        given_up = number is None or 0 <= number < offered[0]
        return UnknownNameError("that version was given up" if given_up else "no such version", got=asked, hint=hint)

    def versions(self, record: ArrayRecord) -> list[VersionRecord]:
        table = tables.versions
        query = sa.select(table).where(table.c.array_id == record.id).order_by(table.c.number)
        with self.reading() as connection:
            return [version_record(row, record.sparse) for row in connection.execute(query)]

    def forget_versions(self, record: ArrayRecord, numbers: Sequence[int]) -> None:
        """Stop offering versions; what only they used becomes garbage."""
        table = tables.versions
        with self.writing() as connection:
            for number in numbers:
                chosen = (table.c.array_id == record.id) & (table.c.number == number)
                connection.execute(sa.delete(table).where(chosen))
            if numbers and self._has_views(connection):
                forget_view_versions(connection, record.id, numbers)

    def labels(self, version: VersionRecord) -> dict[str, Labels]:
        """The coordinate labels of a version, by dimension."""
        return dict(self._labels(version.array_id, version.number))

    def _read_labels(self, array_id: int, number: int) -> dict[str, Labels]:
        with self.reading() as connection:
            rows = connection.execute(_LABELS, {"array_id": array_id, "number": number}).all()
        segments: dict[str, list[tuple[int, bytes]]] = {}
        for dimension, start, encoded in rows:
            of_dimension = segments.setdefault(dimension, [])
            if start == 0:
                of_dimension.clear()
            of_dimension.append((start, encoded))
        return {dimension: assemble(of_dimension) for dimension, of_dimension in segments.items()}

    # Views

    def views(self) -> list[ViewRecord]:
        """All views, each after those that it reads; hidden ones, too."""
        with self.reading() as connection:
            return view_records(connection) if self._has_views(connection) else []

    def view(self, record: ArrayRecord) -> ViewRecord | None:
        """What makes an array a view; None if it is none, which it then never becomes."""
        key = record.id, record.directory
        if key in self._no_views:
            return None
        found = next((view for view in self.views() if view.array_id == record.id), None)
        if found is None:
            self._no_views.add(key)
        return found

    def lock_key(self, array_id: int) -> int:
        """Under which number an array is locked: arrays that views join have one lock, for they change together."""
        return component_of(array_id, self.views())

    def view_history(self, record: ArrayRecord) -> list[dict[str, Any]]:
        with self.reading() as connection:
            return history_of(connection, record.id) if self._has_views(connection) else []

    def view_versions(self, record: ArrayRecord) -> dict[int, dict[int, tuple[int, int]]]:
        """For each version of a view, from which to which version of each base it holds."""
        with self.reading() as connection:
            return held_versions(connection, record.id) if self._has_views(connection) else {}

    def make_view_tables(self) -> None:
        """A warehouse that was made before there were views gets their tables with its first view."""
        with self.writing() as connection:
            tables.metadata.create_all(connection)

    def look_for_views(self) -> None:
        """Note whether there are tables of views, so that nobody has to ask again."""
        with self.reading() as connection:
            self._has_views(connection)

    def _has_views(self, connection: Connection) -> bool:
        self._views_known = self._views_known or has_views(connection)
        return self._views_known

    # Publishing

    def batch_report(self, batch: str) -> str | None:
        """What the batch of that id did, if it was applied before."""
        with self.reading() as connection:
            return connection.scalar(sa.select(tables.batches.c.report).where(tables.batches.c.id == batch))

    def publish(self, news: News) -> dict[str, VersionRecord]:
        """Make all of it visible together, or none of it; returns the version at which each array is then."""
        published: dict[str, VersionRecord] = {}
        with self.writing() as connection:
            for lock, name in news.locks:
                lock.check(connection, name)
            for record in news.dropped:
                forget_array(connection, record)
            for made in news.created:
                published[made.record.name] = enter_array(connection, made)
            for name, change in news.changed.items():
                known = published.get(name)
                numbered = change if known is None else replace(change, array_id=known.array_id)
                published[name] = publish_one(connection, numbered, news.batch)
            enter_views(connection, news.views, published)
            enter_homes(connection, news.homes, published)
            if news.rates is not None:
                enter_setting(connection, RATES, news.rates)
            if news.batch is not None:
                self._enter_batch(connection, news.batch, news.report(published))
        for change in news.changed.values():
            self.remember_indexes(change.added_parts)
        return published

    def _enter_batch(self, connection: Connection, batch: str, report: str) -> None:
        try:
            row = {"id": batch, "created": now_microseconds(), "report": report}
            connection.execute(sa.insert(tables.batches).values(row))
        except sa.exc.IntegrityError:
            what = "another process applied a batch of this id to other arrays meanwhile"
            raise ConflictError(what, got=repr(batch), hint="Choose another id; nothing was done") from None


_ARRAY = sa.select(tables.arrays).where(tables.arrays.c.name == sa.bindparam("name"))
_LABELS = (
    sa.select(tables.labels.c.dimension, tables.labels.c.start, tables.labels.c.encoded)
    .where(tables.labels.c.array_id == sa.bindparam("array_id"), tables.labels.c.since <= sa.bindparam("number"))
    .order_by(tables.labels.c.since)
)
_CURRENT = (
    sa.select(tables.arrays, tables.versions)
    .join(tables.versions, tables.versions.c.array_id == tables.arrays.c.id)
    .where(tables.arrays.c.name == sa.bindparam("name"))
    .order_by(tables.versions.c.number.desc())
    .limit(1)
)
_OFFERED = sa.select(tables.versions.c.number).where(
    tables.versions.c.array_id == sa.bindparam("array_id"), tables.versions.c.number == sa.bindparam("number")
)
