"""The catalog: which arrays there are, and where each of their versions is.

Publishing is the one moment at which anything becomes visible: a single SQL transaction moves the pointers of every
array that a batch touched. Whatever the stores hold beyond the catalog's pointers does not exist for readers.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import ConflictError, SchemaError, StoreError, UnknownNameError, nearest
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.storage import tables
from windrow.storage.failures import store_failures
from windrow.storage.publishing import publish_one
from windrow.storage.records import ArrayRecord, ChunkStatistics, NewVersion, Part, VersionRecord
from windrow.storage.rows import (
    alive,
    array_record,
    assemble,
    clipped,
    now_microseconds,
    unpack_all,
    version_record,
    version_row,
)

VERSIONS_REMEMBERED = 16
"""Of how many versions a connection keeps the parts and labels, which never change."""

BatchReport = Callable[[Mapping[int, int]], str]


class Catalog:
    """Reads and changes of the catalog, each in one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._reader = engine
        self.closed = False
        self._writer = engine.execution_options(writes=True)
        self._parts = functools.lru_cache(VERSIONS_REMEMBERED)(self._read_parts)
        self._labels = functools.lru_cache(VERSIONS_REMEMBERED)(self._read_labels)

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
        with store_failures("the catalog"), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        self._check_open()
        with store_failures("the catalog"), self._writer.begin() as connection:
            yield connection

    # Arrays

    def array_names(self) -> list[str]:
        with self.reading() as connection:
            return list(connection.scalars(sa.select(tables.arrays.c.name).order_by(tables.arrays.c.name)))

    def array(self, name: str) -> ArrayRecord:
        if not isinstance(name, str):
            raise UnknownNameError("an array's name is a text", got=repr(name), hint=nearest("", self.array_names()))
        with self.reading() as connection:
            row = connection.execute(sa.select(tables.arrays).where(tables.arrays.c.name == name)).first()
        if row is None:
            raise UnknownNameError("no such array", got=repr(name), hint=nearest(name, self.array_names()))
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

    def add_array(self, record: ArrayRecord, version: VersionRecord, labels: Mapping[str, Labels]) -> ArrayRecord:
        """Enter a new array with its version 0."""
        try:
            with self.writing() as connection:
                values = {
                    "name": record.name,
                    "directory": record.directory,
                    "kind": "sparse" if record.sparse else "dense",
                    "gridding": record.gridding,
                    "metadata": json.dumps({k: dict(v) for k, v in record.metadata.items()}),
                }
                inserted = connection.execute(sa.insert(tables.arrays).values(values))
                array_id = int(inserted.inserted_primary_key[0])  # type: ignore[index]
                connection.execute(sa.insert(tables.versions).values(version_row(version, array_id)))
                for name, of_dimension in labels.items():
                    row = {"array_id": array_id, "dimension": name, "since": 0, "start": 0}
                    connection.execute(sa.insert(tables.labels).values(row | {"encoded": of_dimension.to_bytes()}))
        except sa.exc.IntegrityError:
            raise SchemaError("an array of that name exists", got=repr(record.name), hint="Drop it first") from None
        return ArrayRecord(array_id, record.name, record.directory, record.sparse, record.gridding, record.metadata)

    def drop_array(self, record: ArrayRecord) -> None:
        """Forget an array; its directory is remembered as trash until it is removed."""
        with self.writing() as connection:
            connection.execute(sa.insert(tables.trash).values(directory=record.directory))
            # Explicit, because not every database was created with its cascades switched on.
            for table in (tables.labels, tables.chunks, tables.parts, tables.versions):
                connection.execute(sa.delete(table).where(table.c.array_id == record.id))
            connection.execute(sa.delete(tables.arrays).where(tables.arrays.c.id == record.id))

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
            # What no database could hold is no version either.
            query = query.where(table.c.number == (number if abs(number) < 2**63 else -1))
        if as_of is not None:
            query = query.where(table.c.created <= int(as_of.timestamp() * 1_000_000))
        with self.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            asked = f"{record.name}@{number}" if number is not None else f"{record.name} as of {as_of}"
            raise UnknownNameError("no such version", got=asked, hint=self._offered_versions(record))
        return version_record(row, record.sparse)

    def versions(self, record: ArrayRecord) -> list[VersionRecord]:
        table = tables.versions
        query = sa.select(table).where(table.c.array_id == record.id).order_by(table.c.number)
        with self.reading() as connection:
            return [version_record(row, record.sparse) for row in connection.execute(query)]

    def _offered_versions(self, record: ArrayRecord) -> str:
        numbers = [version.number for version in self.versions(record)]
        return f"{record.name} has versions {numbers[0]} to {numbers[-1]}" if numbers else f"{record.name} was dropped"

    def forget_versions(self, record: ArrayRecord, numbers: Sequence[int]) -> None:
        """Stop offering versions; what only they used becomes garbage."""
        table = tables.versions
        with self.writing() as connection:
            for number in numbers:
                chosen = (table.c.array_id == record.id) & (table.c.number == number)
                connection.execute(sa.delete(table).where(chosen))
            oldest = connection.scalar(sa.select(sa.func.min(table.c.number)).where(table.c.array_id == record.id))
            ended = (tables.chunks.c.array_id == record.id) & (tables.chunks.c.until <= oldest)
            connection.execute(sa.delete(tables.chunks).where(ended))

    # Parts, chunks and labels of a version

    def parts(self, version: VersionRecord) -> tuple[Part, ...]:
        """The files of a sparse array's version, in the order of their chunks."""
        key = {"array_id": version.array_id, "number": version.number}
        found = self._parts(**key)
        # Looked for last: the parts of a version that was given up go with it, and those found may be only some.
        with self.reading() as connection:
            offered = connection.scalar(_OFFERED, key)
        if offered is None:
            raise UnknownNameError("no such version any more", got=version.number, hint="Read a newer one")
        return found

    def _read_parts(self, array_id: int, number: int) -> tuple[Part, ...]:
        table = tables.parts
        columns = (table.c.id, table.c.path, table.c.cells, table.c.bytes, table.c.checksum, table.c.lo, table.c.hi)
        query = sa.select(*columns).where(alive(table, array_id, number)).order_by(table.c.id)
        with self.reading() as connection:
            rows = connection.execute(query).all()
        lows, highs = (unpack_all([row[end] for row in rows]) for end in (-2, -1))
        found = [
            Part(path, cells, size, checksum, Box(lo, hi), id=key)
            for (key, path, cells, size, checksum, _, _), lo, hi in zip(rows, lows, highs, strict=True)
        ]
        return tuple(sorted(found, key=lambda part: part.box.lo))

    def every_part(self, record: ArrayRecord) -> list[tuple[int, str, int, int | None]]:
        """(id, path, since, until) of all parts the catalog knows of, whatever the version."""
        table = tables.parts
        query = sa.select(table.c.id, table.c.path, table.c.since, table.c.until).where(table.c.array_id == record.id)
        with self.reading() as connection:
            return [(row.id, row.path, row.since, row.until) for row in connection.execute(query)]

    def forget_parts(self, ids: Sequence[int]) -> None:
        with self.writing() as connection:
            for part_id in ids:
                connection.execute(sa.delete(tables.chunks).where(tables.chunks.c.part_id == part_id))
                connection.execute(sa.delete(tables.parts).where(tables.parts.c.id == part_id))

    def chunks(self, version: VersionRecord, part_ids: Sequence[int] | None = None) -> ChunkStatistics:
        """The chunk metadata of a version, one row per chunk and part, or of some of its parts."""
        table = tables.chunks
        columns = (table.c.chunk, table.c.cells, table.c.bytes, table.c.lo, table.c.hi)
        query = (
            sa.select(*columns)
            .where(alive(table, version.array_id, version.number))
            .order_by(table.c.chunk, table.c.id)
        )
        if part_ids is not None:
            query = query.where(table.c.part_id.in_(list(part_ids)))
        with self.reading() as connection:
            rows = connection.execute(query).all()
        if not rows:
            return ChunkStatistics.empty(version.schema.ndim)
        ordinals, cells, sizes, lows, highs = zip(*rows, strict=True)
        bounds = [np.frombuffer(b"".join(column), "<i8").reshape(len(rows), -1) for column in (lows, highs)]
        numbers = [np.array(column, np.int64) for column in (ordinals, cells, sizes)]
        found = ChunkStatistics(*numbers, *bounds)
        return found if version.schema.sparse else clipped(found, version)

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

    # Publishing

    def batch_report(self, batch: str) -> str | None:
        """What the batch of that id did, if it was applied before."""
        with self.reading() as connection:
            return connection.scalar(sa.select(tables.batches.c.report).where(tables.batches.c.id == batch))

    def publish(
        self, changes: Sequence[NewVersion], batch: str | None = None, report: BatchReport | None = None
    ) -> dict[int, VersionRecord]:
        """Move the pointers of all changed arrays together; either all new versions are visible or none."""
        published: dict[int, VersionRecord] = {}
        with self.writing() as connection:
            for change in changes:
                published[change.array_id] = publish_one(connection, change, batch)
            if batch is not None:
                text = "" if report is None else report({key: v.number for key, v in published.items()})
                try:
                    row = {"id": batch, "created": now_microseconds(), "report": text}
                    connection.execute(sa.insert(tables.batches).values(row))
                except sa.exc.IntegrityError:
                    raise ConflictError(
                        "another process applied a batch of this id meanwhile", got=repr(batch), hint="Nothing was done"
                    ) from None
        return published


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
