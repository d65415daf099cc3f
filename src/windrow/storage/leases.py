"""Readers hold leases, so that nothing is removed that they read.

A lease says which version of which array a process is reading. It is written before the first byte is read, and only
then is the version looked for once more: so either a collection sees the lease, or the reader sees that the version
was given up. A lease ends with what it was taken for; that of a process which died has lapsed, at once on the same
host, and elsewhere when nothing was heard of it for a minute. To processes that nobody knows beforehand, as the tasks
of a Spark job are, versions are promised for a stated time.

Leases are no part of what is stored. Beside a catalog in a file they have a file of their own, which is not flushed to
the disk and in which readers never wait for a writer; any other catalog keeps them in a table.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import CorruptionError, Error, StoreError
from windrow.storage.connection import open_engine
from windrow.storage.failures import store_failures
from windrow.storage.locks import HEARTBEAT_SECONDS, SILENT_SECONDS, is_alive, process_started
from windrow.storage.records import Versioned
from windrow.storage.rows import now_microseconds
from windrow.storage.tables import leases

PROMISED_SECONDS = 3600
_NO_HOST = ""
"""Of a promise, which is no process's: it lapses with its time alone."""

_of_this_process: weakref.WeakValueDictionary[str, Leases] = weakref.WeakValueDictionary()


@dataclass(frozen=True, order=True)
class Held:
    """A version of an array that somebody reads: where it lies, and when it was made."""

    array_id: int
    number: int
    directory: str
    pointer: str
    created: int  # microseconds since 1970, UTC


def _nothing() -> None:
    pass


class Lease:
    """Keeps versions from being removed until it is released, or nobody holds it any more."""

    def __init__(
        self,
        release: Callable[[], None] = _nothing,
        check: Callable[[], None] = _nothing,
        versions: tuple[Versioned, ...] = (),
    ) -> None:
        self.release = weakref.finalize(self, release)
        self._check = check
        self.versions = versions

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """While something is read: what is missing because its version was given up is not called damaged.

        That can only be if the lease could not be written, or lapsed because nothing was heard of this process.
        """
        try:
            yield
        except CorruptionError:
            self._check()
            raise

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


class Leases:
    """What the readers of one connection hold, and what all readers of the warehouse do."""

    def __init__(self, catalog: Engine) -> None:
        self._engine, self._writer = _engines(catalog)
        self._lock = threading.RLock()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._token = uuid.uuid4().hex
        self._held: Counter[Held] = Counter()
        self._idle: set[Held] = set()
        self._written: set[Held] = set()
        self._kept: list[Lease] = []
        self._ended = threading.Event()
        self._beating = False
        self._made = False
        _of_this_process[self._token] = self

    def hold(self, versions: Iterable[Held]) -> Callable[[], None]:
        """Hold versions until what is returned is called; to look for them once more is the caller's first step."""
        wanted = tuple(versions)
        with self._lock:
            if os.getpid() != self._process:  # a forked child: what its parent holds is not its own
                self._begin()
            fresh = [held for held in dict.fromkeys(wanted) if held not in self._written]
            if fresh:
                self._write(fresh)
            self._held.update(wanted)
            self._idle.difference_update(wanted)
        return lambda: self._release(wanted)

    def keep(self, lease: Lease) -> None:
        """Hold a lease as long as the connection is open: for what can be read later and does not say when it ends."""
        self._kept.append(lease)

    def promise(self, versions: Iterable[Held]) -> None:
        """Keep versions for ``PROMISED_SECONDS``, whoever reads them and whatever becomes of this process."""
        lapsed = now_microseconds() - int(SILENT_SECONDS * 1_000_000)
        common = {
            "token": uuid.uuid4().hex,
            "host": _NO_HOST,
            "process": 0,
            "process_started": 0,
            "heartbeat": lapsed + PROMISED_SECONDS * 1_000_000,
        }
        with self._writing() as connection:
            # Who reads for ever where nobody collects must not leave a row for each read.
            old = (leases.c.host == _NO_HOST) & (leases.c.heartbeat < lapsed)
            connection.execute(sa.delete(leases).where(old))
            connection.execute(sa.insert(leases), [common | vars(held) for held in versions])

    def _release(self, versions: tuple[Held, ...]) -> None:
        with self._lock:
            if os.getpid() != self._process:
                return
            self._held.subtract(versions)
            for held in versions:
                if self._held[held] <= 0:
                    del self._held[held]
                    self._idle.add(held)

    def _write(self, versions: list[Held]) -> None:
        common = {
            "token": self._token,
            "host": socket.gethostname(),
            "process": self._process,
            "process_started": process_started(self._process),
            "heartbeat": now_microseconds(),
        }
        with self._writing() as connection:
            connection.execute(sa.insert(leases), [common | vars(held) for held in versions])
        self._written.update(versions)
        if not self._beating:
            self._beating = True
            threading.Thread(target=self._beat, args=(self._ended,), name="windrow-leases", daemon=True).start()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._check_place()
        try:
            with store_failures("the list of readers"):
                if not self._made:
                    self._make_list()
                    self._made = True
                with self._writer.begin() as connection:
                    yield connection
        except sa.exc.SQLAlchemyError as error:
            raise StoreError("the list of readers cannot be written", got=str(error.__cause__ or error)) from error

    def _make_list(self) -> None:
        try:
            leases.create(self._writer, checkfirst=True)
        except sa.exc.DatabaseError:  # another process made it at the same moment
            if not sa.inspect(self._engine).has_table(leases.name):
                raise

    def _check_place(self) -> None:
        """Whoever may not write has no list; and whoever made the warehouse may not choose another place for it."""
        file = str(self._engine.url.database)
        if self._engine.dialect.name == "sqlite" and (file.startswith("file:") or os.path.islink(file)):
            raise StoreError("the list of readers cannot be written", got=file)

    def _beat(self, ended: threading.Event) -> None:
        """Say that this process lives, and forget what it has not read for a while."""
        while not ended.wait(HEARTBEAT_SECONDS):
            with suppress(Error):
                self.forget_idle()
                with self._lock:
                    if not self._written:
                        self._beating = False
                        return
                with self._writing() as connection:
                    mine = leases.c.token == self._token
                    connection.execute(sa.update(leases).where(mine).values(heartbeat=now_microseconds()))

    def forget_idle(self) -> None:
        """Give up the leases that nothing needs any more: they are kept a little, because reads come in rows."""
        with self._lock:
            idle = [held for held in self._idle if held in self._written]
            if idle:
                with suppress(StoreError), self._writing() as connection:  # they will be forgotten later
                    for held in idle:
                        this = (leases.c.array_id == held.array_id) & (leases.c.number == held.number)
                        connection.execute(sa.delete(leases).where((leases.c.token == self._token) & this))
            self._written.difference_update(idle)
            self._idle.clear()

    def alive(self) -> set[Held]:
        """All that is being read, by whomever; what lapsed is forgotten."""
        found: set[Held] = set()
        lapsed: set[str] = set()
        rows = self._rows()
        # Outside of the transaction: readers of this process take their own lock first, and then write.
        for row in rows:
            held = Held(row.array_id, row.number, row.directory, row.pointer, row.created)
            reader = _of_this_process.get(row.token)
            if reader is not None:
                found.update({held} & reader.in_use())
            elif is_alive(row.host, row.process, row.process_started, row.heartbeat):
                found.add(held)
            else:
                lapsed.add(row.token)
        if lapsed:
            with suppress(StoreError), self._writing() as connection:
                connection.execute(sa.delete(leases).where(leases.c.token.in_(lapsed)))
        return found

    def _rows(self) -> Sequence[sa.Row[Any]]:
        """All leases, read without writing anything: a collection must be able to free a full disk."""
        with store_failures("the list of readers"), self._engine.connect() as connection:
            if not sa.inspect(connection).has_table(leases.name):
                return []
            return connection.execute(sa.select(leases)).all()

    def in_use(self) -> set[Held]:
        """What this connection is reading, without what it only has not forgotten yet."""
        with self._lock:
            return set(self._held)

    def close(self) -> None:
        """Give everything back."""
        self._ended.set()
        with self._lock, suppress(Error):
            self._kept.clear()
            if self._written and os.getpid() == self._process:
                with self._writing() as connection:
                    connection.execute(sa.delete(leases).where(leases.c.token == self._token))
            self._held.clear()
            self._written.clear()
        self._engine.dispose()


def _engines(catalog: Engine) -> tuple[Engine, Engine]:
    """The database of the leases, for reading and for writing."""
    if catalog.dialect.name != "sqlite":
        return catalog, catalog.execution_options(writes=True)
    file = Path(str(catalog.url.database))
    own = open_engine(sa.URL.create("sqlite", database=str(file.with_name(f"{file.name}-readers"))), _PRAGMAS)
    return own, own.execution_options(writes=True)


# Whoever held a lease when the power went is gone as well, so that nothing is flushed. Without a log beside the file it
# can be read on a full disk, where a collection is needed most.
_PRAGMAS = ("journal_mode=TRUNCATE", "synchronous=OFF", "busy_timeout=30000")
