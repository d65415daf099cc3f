"""The catalog: which arrays there are, and where each of their versions is.

Publishing is the one moment at which anything becomes visible: a single SQL transaction moves the pointers of every
array that a batch touched. Whatever the stores hold beyond the catalog's pointers does not exist for readers.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import ConflictError, StoreError, UnknownNameError, nearest
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.storage import tables
from windrow.storage.chunks.index import decode_index, existing_chunks, with_changes, with_live_cells
from windrow.storage.chunks.kept import Indexes
from windrow.storage.chunks.rows import (
    MOST_PARAMETERS,
    forget_dense_chunks,
    forget_parts,
    read_dense_chunks,
    read_indexes,
    read_marks,
    read_parts,
)
from windrow.storage.delta.vectors import read_rows
from windrow.storage.failures import damaged_rows, store_failures, vector_failures
from windrow.storage.places import check_directory, place_inside
from windrow.storage.publishing import News, enter_array, forget_array, publish_one
from windrow.storage.records import ArrayRecord, ChunkStatistics, Part, VersionRecord
from windrow.storage.rows import (
    array_record,
    assemble,
    clip_chunks,
    now_microseconds,
    version_record,
)
from windrow.storage.view_rows import (
    HIDDEN,
    ViewRecord,
    component_of,
    enter_views,
    has_views,
    held_versions,
    history_of,
    view_records,
)

VERSIONS_REMEMBERED = 16
"""Of how many versions a connection keeps the parts and labels, which never change."""

CHUNKS_REMEMBERED = 4
"""Of how many it keeps what is known of chunks, which may be some tens of bytes for each of a million."""


class Catalog:
    """Reads and changes of the catalog, each in one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._reader = engine
        self.closed = False
        self.format: str | None = None
        """The warehouse's format when it was opened, without which nothing is written."""
        self._views_known = False
        self._moment = threading.local()
        self._writer = engine.execution_options(writes=True)
        self._parts = functools.lru_cache(VERSIONS_REMEMBERED)(self._read_parts)
        self._labels = functools.lru_cache(VERSIONS_REMEMBERED)(self._read_labels)
        self._chunks = functools.lru_cache(CHUNKS_REMEMBERED)(self._read_chunks)
        self._indexes = Indexes()
        self.stores: Path | None = None
        """The warehouse's folder, where vectors are read."""

    @property
    def engine(self) -> Engine:
        return self._reader

    def close(self) -> None:
        self.closed = True
        self._reader.dispose()

    def _check_open(self) -> None:
        if self.closed:
            raise StoreError("the database is closed", hint="Connect again")

    def create_tables(self, settings: Mapping[str, str]) -> None:
        with self.writing() as connection:
            tables.metadata.create_all(connection)
            known = set(connection.scalars(sa.select(tables.settings.c.key)))
            rows = [{"key": key, "value": value} for key, value in settings.items() if key not in known]
            if rows:
                connection.execute(sa.insert(tables.settings), rows)

    def setting(self, key: str) -> str | None:
        with self.reading() as connection:
            return connection.scalar(sa.select(tables.settings.c.value).where(tables.settings.c.key == key))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        self._check_open()
        shared: Connection | None = getattr(self._moment, "connection", None)
        if shared is not None:
            yield shared
            return
        with store_failures("the catalog"), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Lets all that this thread reads inside be as of one moment: a batch is seen in every array or in none."""
        with self.reading() as connection:
            if getattr(self._moment, "connection", None) is not None:
                yield
                return
            if connection.dialect.name != "sqlite":  # SQLite's transactions see one state of the database anyway
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            self._moment.connection = connection
            try:
                yield
            finally:
                self._moment.connection = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        self._check_open()
        with store_failures("the catalog"), self._writer.begin() as connection:
            self._check_format(connection)
            yield connection

    def _check_format(self, connection: Connection) -> None:
        """Refuse to write into a warehouse that another windrow has brought to another format since it was opened."""
        if self.format is not None and (stated := connection.exec_driver_sql(_FORMAT).scalar()) != self.format:
            raise StoreError(
                "the warehouse's format was changed by another windrow while it was open",
                got=f"{stated} instead of {self.format}",
                hint="Connect again; if that is refused, upgrade windrow",
            )

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
            row = connection.execute(sa.select(tables.arrays).where(tables.arrays.c.name == name)).first()
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

    def forget_dense_chunks(self, record: ArrayRecord, oldest: int) -> None:
        """Forget the metadata of chunks that no version from ``oldest`` on has."""
        with self.writing() as connection:
            forget_dense_chunks(connection, record.id, oldest)

    # Parts, chunks and labels of a version

    def parts(self, version: VersionRecord) -> tuple[Part, ...]:
        """The files of a sparse array's version, in the order of their first cells, each with its dead rows.

        Whoever reads them holds the version first: of one that was given up meanwhile only some may be found.
        """
        return self._parts(version.array_id, version.number)

    def _read_parts(self, array_id: int, number: int) -> tuple[Part, ...]:
        with self.reading() as connection:
            return read_parts(connection, array_id, number)

    def every_part(self, record: ArrayRecord) -> list[tuple[int, str, int, int | None]]:
        """(id, path, since, until) of all parts the catalog knows of, whatever the version."""
        table = tables.parts
        columns = (table.c.id, table.c.path, table.c.since, table.c.until)
        return self._spans(sa.select(*columns).where(table.c.array_id == record.id), "parts")

    def every_vector(self, record: ArrayRecord) -> list[tuple[int, str, int, int | None]]:
        """(part, file, since, until) of all vectors the catalog knows of."""
        table, part = tables.vectors, tables.parts
        columns = (table.c.part_id, table.c.file, table.c.since, table.c.until)
        joined = sa.select(*columns).join(part, part.c.id == table.c.part_id).where(part.c.array_id == record.id)
        return self._spans(joined, "vectors")

    def _spans(self, query: sa.Select[Any], what: str) -> list[tuple[int, str, int, int | None]]:
        with self.reading() as connection:
            rows = connection.execute(query).all()
        with damaged_rows(what):
            return [
                (key, name, index(since), None if until is None else index(until)) for key, name, since, until in rows
            ]

    def forget_parts(self, ids: Sequence[int]) -> None:
        with self.writing() as connection:
            for start in range(0, len(ids), MOST_PARAMETERS):
                forget_parts(connection, tables.parts.c.id.in_(list(ids[start : start + MOST_PARAMETERS])))

    def chunks(self, version: VersionRecord) -> ChunkStatistics:
        """The chunk metadata of a version, one row per chunk and part, of chunks that have live cells."""
        if version.schema.sparse:
            return self._chunks(version.array_id, version.number, version.schema.grid)
        with self.reading() as connection:
            ordinals, sizes, changed = read_dense_chunks(connection, version.array_id, version.number)
        none = np.zeros((len(ordinals), version.schema.ndim), np.int64)
        return clip_chunks(ChunkStatistics(ordinals, ordinals, sizes, none, none, changed), version)

    def _read_chunks(self, array_id: int, number: int, grid: ChunkGrid) -> ChunkStatistics:
        parts = self._parts(array_id, number)
        if not parts:
            return ChunkStatistics.empty(grid.ndim)
        name, folder = self._store(array_id) if any(part.vector for part in parts) else ("", "")
        pieces = []
        for part, told in zip(parts, self.indexes(parts, number, grid), strict=True):
            with vector_failures(f"{name}@{number}", part.path, part.vector):
                pieces.append(with_live_cells(told, read_rows(folder, part.vector)))
        return existing_chunks(pieces, grid.ndim)

    def indexes(self, parts: Sequence[Part], number: int, grid: ChunkGrid) -> list[ChunkStatistics]:
        """The indexes of parts as of a version: all rows of each chunk, and when its live cells last changed."""
        ids = [part.id for part in parts if part.id is not None and part.vector is not None]
        with self.reading() as connection:
            marks = read_marks(connection, ids, number)
        written = self.written_indexes(parts, grid)
        return [with_changes(told, marks.get(part.id or 0, [])) for part, told in zip(parts, written, strict=True)]

    def written_indexes(self, parts: Sequence[Part], grid: ChunkGrid) -> list[ChunkStatistics]:
        """The indexes of parts as they were written; decoded ones are kept, for they never change."""
        found = {part.path: part.chunks or self._indexes.find(part.path) for part in parts}
        lacking = {part.id: part for part in parts if part.id is not None and found[part.path] is None}
        if lacking:
            with self.reading() as connection:
                encoded = read_indexes(connection, list(lacking))
            with damaged_rows("the chunks of a part"):
                for part_id, part in lacking.items():
                    decoded = found[part.path] = decode_index(encoded[part_id], grid, part.bytes)
                    self._indexes.keep(part.path, decoded)
        return [known for part in parts if (known := found[part.path]) is not None]

    def _store(self, array_id: int) -> tuple[str, str]:
        """The name of an array, and the folder of its store."""
        if self.stores is None:
            raise StoreError("this catalog belongs to no warehouse", hint="Open the warehouse")
        columns = sa.select(tables.arrays.c.name, tables.arrays.c.directory).where(tables.arrays.c.id == array_id)
        with self.reading() as connection:
            row = connection.execute(columns).first()
        if row is None:
            raise UnknownNameError("the array was dropped", got=str(array_id))
        return row.name, place_inside(self.stores, check_directory(row.directory))

    def labels(self, version: VersionRecord) -> dict[str, Labels]:
        """The coordinate labels of a version, by dimension."""
        return dict(self._labels(version.array_id, version.number))

    def _read_labels(self, array_id: int, number: int) -> dict[str, Labels]:
        table = tables.labels
        query = (
            sa.select(table.c.dimension, table.c.start, table.c.encoded)
            .where((table.c.array_id == array_id) & (table.c.since <= number))
            .order_by(table.c.since)
        )
        with self.reading() as connection:
            rows = connection.execute(query).all()
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
            if news.batch is not None:
                self._enter_batch(connection, news.batch, news.report(published))
        return published

    def _enter_batch(self, connection: Connection, batch: str, report: str) -> None:
        try:
            row = {"id": batch, "created": now_microseconds(), "report": report}
            connection.execute(sa.insert(tables.batches).values(row))
        except sa.exc.IntegrityError:
            what = "another process applied a batch of this id to other arrays meanwhile"
            raise ConflictError(what, got=repr(batch), hint="Choose another id; nothing was done") from None


_FORMAT = "select value from settings where key = 'format'"
"""As text, because every change asks it."""

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
