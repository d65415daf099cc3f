"""Bringing a warehouse from format 1 to format 2: chunk rows become an index per part, and no cell is touched.

Each array is migrated in a transaction of its own, so that a migration that was interrupted goes on where it was. Only
the last one makes the warehouse one of format 2; it also takes along what an older windrow wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from windrow.model.notation import parse_schema
from windrow.model.schema import Schema
from windrow.storage import tables
from windrow.storage.catalog import Catalog
from windrow.storage.chunks.rows import WHOLE_EVERY, add_index, enter_dense_chunks
from windrow.storage.failures import damaged_rows
from windrow.storage.records import ChunkStatistics

_METADATA = sa.MetaData()
OLD_CHUNKS = sa.Table(
    "chunks",
    _METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("array_id", sa.BigInteger),
    sa.Column("part_id", sa.BigInteger),
    sa.Column("chunk", sa.BigInteger),
    sa.Column("since", sa.BigInteger),
    sa.Column("until", sa.BigInteger),
    sa.Column("cells", sa.BigInteger),
    sa.Column("bytes", sa.BigInteger),
    sa.Column("lo", sa.LargeBinary),
    sa.Column("hi", sa.LargeBinary),
)
_NEW_COLUMNS = ("first", "last", "run")


def migrate(catalog: Catalog) -> None:
    """Make a catalog of format 1 one of format 2."""
    with catalog.writing() as connection:
        _prepare(connection)
    with catalog.reading() as connection:
        ids = list(connection.scalars(sa.select(tables.arrays.c.id).order_by(tables.arrays.c.id)))
    for array_id in ids:
        with catalog.writing() as connection:
            _migrate_array(connection, array_id)
    with catalog.writing() as connection:
        _finish(connection)


def _prepare(connection: Connection) -> None:
    tables.metadata.create_all(connection)
    known = {column["name"] for column in sa.inspect(connection).get_columns("parts")}
    for name in _NEW_COLUMNS:
        if name not in known:
            connection.exec_driver_sql(f'alter table parts add column "{name}" bigint')


def _finish(connection: Connection) -> None:
    if sa.inspect(connection).has_table("chunks"):
        for array_id in list(connection.scalars(sa.select(tables.arrays.c.id))):
            _migrate_array(connection, array_id)
        OLD_CHUNKS.drop(connection)
    connection.execute(sa.update(tables.settings).where(tables.settings.c.key == "format").values(value="2"))


def _migrate_array(connection: Connection, array_id: int) -> None:
    if not sa.inspect(connection).has_table("chunks"):
        return  # another process was faster
    row = connection.execute(sa.select(tables.arrays).where(tables.arrays.c.id == array_id)).first()
    if row is not None and row.kind == "sparse":
        _migrate_parts(connection, array_id)
    elif row is not None:
        _migrate_dense(connection, array_id)


def _migrate_parts(connection: Connection, array_id: int) -> None:
    """An index for every part that lacks one; its chunks changed when it was written, as far as anybody knows."""
    part = tables.parts
    lacking = connection.execute(sa.select(part).where((part.c.array_id == array_id) & part.c.run.is_(None))).all()
    for row in lacking:
        with damaged_rows("the chunks of a part"):
            schema = _schema_at(connection, array_id, row.since, row.until)
            index = _index_of(connection, row.id, schema.ndim, row.since)
            add_index(connection, row.id, index, schema.grid)
            ends = {"first": int(index.ordinals[0]), "last": int(index.ordinals[-1]), "run": 1}
        connection.execute(sa.update(part).where(part.c.id == row.id).values(ends))
    _choose_base(connection, array_id)


def _index_of(connection: Connection, part_id: int, ndim: int, since: int) -> ChunkStatistics:
    old = OLD_CHUNKS
    query = sa.select(old.c.chunk, old.c.cells, old.c.bytes, old.c.lo, old.c.hi).where(old.c.part_id == part_id)
    rows = connection.execute(query.order_by(old.c.chunk)).all()
    ordinals, cells, sizes = (np.array([row[n] for row in rows], np.int64) for n in range(3))
    lo, hi = (np.frombuffer(b"".join(row[n] for row in rows), "<i8").reshape(len(rows), ndim) for n in (3, 4))
    return ChunkStatistics(ordinals, cells, sizes, lo, hi, np.full(len(rows), since, np.int64))


def _schema_at(connection: Connection, array_id: int, since: int, until: int | None) -> Schema:
    """The schema that a part was written with: that of any version which has it, for compactions replace all parts."""
    table = tables.versions
    query = sa.select(table.c.schema).where((table.c.array_id == array_id) & (table.c.number >= since))
    if until is not None:
        query = query.where(table.c.number < until)
    text = connection.scalar(query.order_by(table.c.number).limit(1))
    if text is None:  # a collection was killed after it gave the part's versions up: nobody will read the part
        first = sa.select(table.c.schema).where(table.c.array_id == array_id).order_by(table.c.number).limit(1)
        text = connection.scalar(first)
    return parse_schema(str(text), sparse=True)[1]


def _choose_base(connection: Connection, array_id: int) -> None:
    """Of the parts of the newest version, those that do not overlap the ones before are base parts."""
    part = tables.parts
    mine = part.c.array_id == array_id
    rows = connection.execute(sa.select(part).where(mine & part.c.until.is_(None)).order_by(part.c.first)).all()
    if any(row.run == 0 for row in rows):
        return
    end, run = -1, 1
    for row in sorted(rows, key=lambda row: (row.first, row.last)):
        is_base = row.first >= end
        end, run = (row.last, run) if is_base else (end, run + 1)
        connection.execute(sa.update(part).where(part.c.id == row.id).values(run=0 if is_base else run))


def _migrate_dense(connection: Connection, array_id: int) -> None:
    """A list of chunks for every version that wrote or lost some."""
    old = OLD_CHUNKS
    rows = connection.execute(sa.select(old).where(old.c.array_id == array_id).order_by(old.c.since, old.c.id)).all()
    connection.execute(sa.delete(tables.dense_chunks).where(tables.dense_chunks.c.array_id == array_id))
    moments = sorted({row.since for row in rows} | {row.until for row in rows if row.until is not None})
    for place, number in enumerate(moments):
        with damaged_rows("chunks"):
            written = [row for row in rows if row.since == number]
            lost = {row.chunk for row in rows if row.until == number} - {row.chunk for row in written}
            whole = bool(lost) or place % WHOLE_EVERY == 0
            if whole:
                written = [row for row in rows if row.since <= number and (row.until is None or row.until > number)]
        enter_dense_chunks(connection, array_id, number, _columns(written), whole)


def _columns(rows: Sequence[Any]) -> tuple[Any, Any, Any]:
    ordered = sorted(rows, key=lambda row: row.chunk)
    names = ("chunk", "bytes", "since")
    ordinals, sizes, since = (np.array([getattr(row, name) for row in ordered], np.int64) for name in names)
    return ordinals, sizes, since
