"""The catalog: which arrays there are, and where each of their versions is.

Publishing is the one moment at which anything becomes visible: a single SQL transaction moves the pointers of every
array that a batch touched. Whatever the stores hold beyond the catalog's pointers does not exist for readers.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import ConflictError, SchemaError, StoreError, UnknownNameError, nearest
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.schema import Schema
from windrow.storage import tables
from windrow.storage.failures import store_failures
from windrow.storage.records import ArrayRecord, ChunkStatistics, NewVersion, Part, VersionRecord

LABEL_SEGMENTS = 32
"""After so many label changes the next one is stored whole, so that reading labels stays quick."""

BatchReport = Callable[[Mapping[int, int]], str]


def now_microseconds() -> int:
    return time.time_ns() // 1000


def open_engine(url: str | sa.URL) -> Engine:
    """A connection pool for the catalog's database."""
    try:
        engine = sa.create_engine(url)
    except (sa.exc.ArgumentError, ImportError, ValueError) as error:
        raise StoreError(
            "the catalog's address cannot be used", got=f"{url!r}: {error}", hint="As in sqlite:////data/catalog.sqlite"
        ) from None
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, below
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that will write takes SQLite's write lock at once: one that first reads could not upgrade.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class Catalog:
    """Reads and changes of the catalog, each in one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._reader = engine
        self.closed = False
        self._writer = engine.execution_options(writes=True)

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
        return _array_record(row)

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
                connection.execute(sa.insert(tables.versions).values(_version_row(version, array_id)))
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
        return _version_record(row, record.sparse)

    def versions(self, record: ArrayRecord) -> list[VersionRecord]:
        table = tables.versions
        query = sa.select(table).where(table.c.array_id == record.id).order_by(table.c.number)
        with self.reading() as connection:
            return [_version_record(row, record.sparse) for row in connection.execute(query)]

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

    def parts(self, version: VersionRecord) -> list[Part]:
        """The files of a sparse array's version, in the order of their chunks."""
        table = tables.parts
        columns = (table.c.id, table.c.path, table.c.cells, table.c.bytes, table.c.checksum, table.c.lo, table.c.hi)
        query = sa.select(*columns).where(_alive(table, version)).order_by(table.c.id)
        of_version = (tables.versions.c.array_id == version.array_id) & (tables.versions.c.number == version.number)
        with self.reading() as connection:
            rows = connection.execute(query).all()
            offered = connection.scalar(sa.select(tables.versions.c.number).where(of_version))
        if offered is None:  # its parts went with it: those found are some of its cells
            raise UnknownNameError("no such version any more", got=version.number, hint="Read a newer one")
        lows, highs = (_unpack_all([row[end] for row in rows], version) for end in (-2, -1))
        found = [
            Part(path, cells, size, checksum, Box(lo, hi), id=key)
            for (key, path, cells, size, checksum, _, _), lo, hi in zip(rows, lows, highs, strict=True)
        ]
        return sorted(found, key=lambda part: part.box.lo)

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
        query = sa.select(*columns).where(_alive(table, version)).order_by(table.c.chunk, table.c.id)
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
        return found if version.schema.sparse else _clipped(found, version)

    def labels(self, version: VersionRecord) -> dict[str, Labels]:
        """The coordinate labels of a version, by dimension."""
        table = tables.labels
        query = (
            sa.select(table.c.dimension, table.c.start, table.c.encoded)
            .where((table.c.array_id == version.array_id) & (table.c.since <= version.number))
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
        return {dimension: _assemble(of_dimension) for dimension, of_dimension in segments.items()}

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
                published[change.array_id] = self._publish_one(connection, change, batch)
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

    def _publish_one(self, connection: Connection, change: NewVersion, batch: str | None) -> VersionRecord:
        table = tables.versions
        newest = connection.execute(
            sa.select(table).where(table.c.array_id == change.array_id).order_by(table.c.number.desc()).limit(1)
        ).first()
        if newest is None or newest.number != change.base:
            raise ConflictError(
                "the array changed while this write was under way",
                got=f"version {newest.number if newest else 'dropped'} instead of {change.base}",
                hint="Write again",
            )
        number = newest.number + 1
        if change.replaces_all_chunks:
            _end(connection, tables.chunks, number, tables.chunks.c.array_id == change.array_id)
        if change.dense_chunks is not None:
            _replace_dense_chunks(connection, change.array_id, number, change.dense_chunks)
        _end_parts(connection, change.removed_parts, number)
        for part in change.added_parts:
            _add_part(connection, change.array_id, number, part)
        _add_labels(connection, change, number)
        cells, size = _totals(connection, change.array_id, change.added_parts, change.removed_parts, newest)
        if change.dense_chunks is not None or change.replaces_all_chunks:
            cells, size = change.schema.box(change.hi).size, _dense_bytes(connection, change.array_id)
        version = VersionRecord(
            change.array_id, number, change.pointer, change.schema, change.hi, change.operation, batch,
            datetime.now(UTC), cells, size, change.checksum,
        )  # fmt: skip
        connection.execute(sa.insert(table).values(_version_row(version, change.array_id)))
        return version


def _clipped(chunks: ChunkStatistics, version: VersionRecord) -> ChunkStatistics:
    """Dense chunks with the cells they have in this version: a dimension may have grown since they were written."""
    grid, box = version.schema.grid, version.box
    boxes = [grid.box_of(grid.key(ordinal)) & box for ordinal in chunks.ordinals.tolist()]
    cells = np.array([chunk.size for chunk in boxes], np.int64)
    lo, hi = (np.array([getattr(chunk, end) for chunk in boxes], np.int64) for end in ("lo", "hi"))
    return ChunkStatistics(chunks.ordinals, cells, chunks.bytes, lo, hi)


def _alive(table: sa.Table, version: VersionRecord) -> sa.ColumnElement[bool]:
    return (
        (table.c.array_id == version.array_id)
        & (table.c.since <= version.number)
        & (table.c.until.is_(None) | (table.c.until > version.number))
    )


def _end(connection: Connection, table: sa.Table, number: int, where: sa.ColumnElement[bool]) -> None:
    connection.execute(sa.update(table).where(where & table.c.until.is_(None)).values(until=number))


def _end_parts(connection: Connection, ids: Sequence[int], number: int) -> None:
    if ids:
        by_part = sa.update(tables.parts).where(tables.parts.c.id == sa.bindparam("ended")).values(until=number)
        by_chunk = sa.update(tables.chunks).where(tables.chunks.c.part_id == sa.bindparam("ended")).values(until=number)
        rows = [{"ended": part_id} for part_id in ids]
        connection.execute(by_part, rows)
        connection.execute(by_chunk, rows)


def _replace_dense_chunks(connection: Connection, array_id: int, number: int, chunks: ChunkStatistics) -> None:
    if not len(chunks):
        return
    table = tables.chunks
    ended = (table.c.array_id == array_id) & (table.c.chunk == sa.bindparam("ordinal")) & table.c.until.is_(None)
    connection.execute(
        sa.update(table).where(ended).values(until=number), [{"ordinal": int(o)} for o in chunks.ordinals]
    )
    connection.execute(sa.insert(table), _chunk_rows(array_id, number, chunks, None))


def _add_part(connection: Connection, array_id: int, number: int, part: Part) -> None:
    row = {
        "array_id": array_id,
        "path": part.path,
        "since": number,
        "cells": part.cells,
        "bytes": part.bytes,
        "checksum": part.checksum,
        "lo": _pack(part.box.lo),
        "hi": _pack(part.box.hi),
    }
    inserted = connection.execute(sa.insert(tables.parts).values(row))
    part_id = int(inserted.inserted_primary_key[0])  # type: ignore[index]
    if part.chunks is not None and len(part.chunks):
        connection.execute(sa.insert(tables.chunks), _chunk_rows(array_id, number, part.chunks, part_id))


def _chunk_rows(array_id: int, number: int, chunks: ChunkStatistics, part_id: int | None) -> list[dict[str, Any]]:
    lows, highs = (np.ascontiguousarray(bounds, "<i8") for bounds in (chunks.lo, chunks.hi))
    columns = zip(chunks.ordinals.tolist(), chunks.cells.tolist(), chunks.bytes.tolist(), lows, highs, strict=True)
    return [
        {
            "array_id": array_id,
            "part_id": part_id,
            "chunk": ordinal,
            "since": number,
            "cells": cells,
            "bytes": size,
            "lo": lo.tobytes(),
            "hi": hi.tobytes(),
        }
        for ordinal, cells, size, lo, hi in columns
    ]


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
                start, encoded = 0, _assemble(segments[newest_whole:]).to_bytes()
        row = {"array_id": change.array_id, "dimension": label.dimension, "since": number, "start": start}
        connection.execute(sa.insert(table).values(row | {"encoded": encoded}))


def _assemble(segments: Sequence[tuple[int, bytes]]) -> Labels:
    result = Labels.from_bytes(segments[0][1])
    for start, encoded in segments[1:]:
        piece = Labels.from_bytes(encoded)
        result = result.concat(piece) if start == len(result) else result.replaced(start, piece.values)
    return result


def _totals(
    connection: Connection, array_id: int, added: Sequence[Part], removed: Sequence[int], newest: Any
) -> tuple[int, int]:
    """Cells and bytes after adding and removing parts, from those of the version before."""
    cells = newest.cells + sum(part.cells for part in added)
    size = newest.bytes + sum(part.bytes for part in added)
    for part_id in removed:
        columns = sa.select(tables.parts.c.cells, tables.parts.c.bytes)
        row = connection.execute(columns.where(tables.parts.c.id == part_id)).one()
        cells, size = cells - row.cells, size - row.bytes
    return cells, size


def _dense_bytes(connection: Connection, array_id: int) -> int:
    table = tables.chunks
    alive = (table.c.array_id == array_id) & table.c.until.is_(None)
    return int(connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(table.c.bytes), 0)).where(alive)) or 0)


def _pack(bounds: Sequence[int]) -> bytes:
    return np.array(bounds, "<i8").tobytes()


def _unpack_all(packed: Sequence[bytes], version: VersionRecord) -> list[tuple[int, ...]]:
    bounds = np.frombuffer(b"".join(packed), "<i8").reshape(len(packed), version.schema.ndim)
    return list(map(tuple, bounds.tolist()))


def _array_record(row: Any) -> ArrayRecord:
    metadata = json.loads(row.metadata)
    return ArrayRecord(row.id, row.name, row.directory, row.kind == "sparse", row.gridding, metadata)


def _version_row(version: VersionRecord, array_id: int) -> dict[str, Any]:
    return {
        "array_id": array_id,
        "number": version.number,
        "pointer": version.pointer,
        "schema": str(version.schema),
        "hi": json.dumps(version.hi),
        "operation": version.operation,
        "batch": version.batch,
        "created": int(version.created.timestamp() * 1_000_000),
        "cells": version.cells,
        "bytes": version.bytes,
        "checksum": version.checksum,
    }


def _version_record(row: Any, sparse: bool) -> VersionRecord:
    schema = _schema(row.schema, sparse)
    created = datetime.fromtimestamp(row.created / 1_000_000, UTC)
    hi = tuple(json.loads(row.hi))
    return VersionRecord(
        row.array_id, row.number, row.pointer, schema, hi, row.operation, row.batch, created, row.cells, row.bytes,
        row.checksum,
    )  # fmt: skip


@functools.lru_cache(maxsize=256)
def _schema(text: str, sparse: bool) -> Schema:
    try:
        return parse_schema(text, sparse=sparse)[1]
    except SchemaError as error:
        raise StoreError("the catalog holds a schema this windrow cannot read", got=text, hint=str(error)) from None
