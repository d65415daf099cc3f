"""A cache of chunks on a node's own disk: one SQLite file, of a limited size, that any process of the node may use.

An entry is the cells of a chunk as they were from one version on. Its key says which version that is, so that one
that is older than what is asked for is never found. What cannot be read or written is a warning, and no more than
that: the store has everything.
"""

from __future__ import annotations

import os
import sqlite3
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

CACHE_BYTES = 4 * 2**30
"""What a node keeps unless told otherwise."""

_FILE = "chunks.sqlite"
_WAIT_SECONDS = 10.0
_TABLE = """
create table if not exists chunks (
    array text not null, ordinal integer not null, version integer not null, identity text not null,
    used real not null, checksum integer not null, size integer not null, cells blob not null,
    primary key (array, ordinal, version, identity)
)
"""
_SAME = "where array = ? and ordinal = ? and version = ? and identity = ?"
_ORDER = "create index if not exists chunks_by_use on chunks (used)"


class CacheWarning(UserWarning):
    """A node's cache cannot be used as it should: chunks are read from the store instead."""


@dataclass(frozen=True, order=True)
class ChunkKey:
    """A chunk of an array as it was from one version on.

    ``identity`` tells versions of one number apart: a batch that failed has left nothing but perhaps entries here.
    """

    array: str
    ordinal: int
    version: int
    identity: str


@dataclass(frozen=True)
class ChunkCache:
    """The cache in a folder; nothing is opened before it is used."""

    folder: Path
    limit: int = CACHE_BYTES

    def read(self, keys: Sequence[ChunkKey]) -> dict[ChunkKey, pa.Table]:
        """Those chunks that are here; one that is damaged is not."""
        found: dict[ChunkKey, pa.Table] = {}
        if not keys or not (self.folder / _FILE).exists():
            return found
        with self._warning("read"), self._open() as connection:
            for key in keys:
                row = connection.execute(f"select checksum, cells from chunks {_SAME}", _parts(key)).fetchone()
                if row is not None:
                    table = _decode(*row)
                    if table is None:
                        warnings.warn(f"a damaged chunk in the cache {self.folder}", CacheWarning, stacklevel=2)
                    else:
                        found[key] = table
            self._note_use(connection, list(found))
        return found

    def has(self, keys: Sequence[ChunkKey]) -> set[ChunkKey]:
        """Those chunks that are here already, whole or not."""
        found: set[ChunkKey] = set()
        if keys and (self.folder / _FILE).exists():
            with self._warning("read"), self._open() as connection:
                for key in keys:
                    row = connection.execute(f"select 1 from chunks {_SAME}", _parts(key)).fetchone()
                    found |= {key} if row is not None else set()
        return found

    def write(self, chunks: Sequence[tuple[ChunkKey, pa.Table]]) -> int:
        """Keep chunks, and let those go that were not used for longest; returns how many bytes were written."""
        written = 0
        with self._warning("written"), self._open() as connection, connection:
            now = time.time()
            for key, table in chunks:
                cells = _encode(table)
                if len(cells) > self.limit:
                    continue
                row = (*_parts(key), now, zlib.crc32(cells), len(cells), cells)
                connection.execute("insert or replace into chunks values (?, ?, ?, ?, ?, ?, ?, ?)", row)
                written += len(cells)
            self._evict(connection)
        return written

    def size(self) -> int:
        """The bytes of all entries."""
        if not (self.folder / _FILE).exists():
            return 0
        with self._open() as connection:
            return _total(connection)

    def _evict(self, connection: sqlite3.Connection) -> None:
        excess = _total(connection) - self.limit
        for number, size in connection.execute("select rowid, size from chunks order by used, version").fetchall():
            if excess <= 0:
                return
            connection.execute("delete from chunks where rowid = ?", (number,))
            excess -= size

    def _note_use(self, connection: sqlite3.Connection, keys: Sequence[ChunkKey]) -> None:
        now = time.time()
        with connection:
            connection.executemany(f"update chunks set used = ? {_SAME}", [(now, *_parts(key)) for key in keys])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        os.makedirs(self.folder, exist_ok=True)
        with closing(sqlite3.connect(self.folder / _FILE, timeout=_WAIT_SECONDS)) as connection:
            connection.execute("pragma synchronous = off")  # what a crash damages is read from the store
            connection.execute("pragma auto_vacuum = full")
            connection.execute(_TABLE)
            connection.execute(_ORDER)
            yield connection

    @contextmanager
    def _warning(self, done: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            what = f"the cache {self.folder} cannot be {done}: {error}; chunks are read from the store"
            warnings.warn(what, CacheWarning, stacklevel=4)


def _parts(key: ChunkKey) -> tuple[str, int, int, str]:
    return key.array, key.ordinal, key.version, key.identity


def _total(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select coalesce(sum(size), 0) from chunks").fetchone()[0])


def _encode(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _decode(checksum: int, cells: bytes) -> pa.Table | None:
    if not isinstance(cells, bytes) or zlib.crc32(cells) != checksum:
        return None
    try:
        with pa.ipc.open_stream(cells) as reader:
            return reader.read_all()
    except (pa.ArrowException, OSError):
        return None
