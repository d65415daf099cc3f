"""One writer at a time for each array, and one maker for each new name, by a row in the catalog.

A lock names its holder's host and process. A holder whose process is gone is passed over at once on its own host; a
holder on another host is passed over when its heartbeat has been silent for a minute. Whoever was passed over can
publish nothing any more: publishing looks whether the row is still there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from windrow.errors import ConflictError, Error
from windrow.storage.catalog import Catalog
from windrow.storage.rows import now_microseconds
from windrow.storage.tables import locks

HEARTBEAT_SECONDS = 10.0
SILENT_SECONDS = 60.0
_POLL_SECONDS = 0.02

_given_back: set[str] = set()
"""Tokens of locks that this process has let go of and that could not be deleted yet."""

_taken_by: dict[str, threading.Thread] = {}
"""Tokens of this process's locks, and the threads that took them: these themselves, for numbers are given again."""


class HeldHereError(ConflictError):
    """The lock is held by an open batch of the thread that wants it."""


class _Holder(NamedTuple):
    """Who holds a lock that is wanted."""

    text: str
    is_here: bool = False


def name_key(name: str) -> int:
    """Under which number the lock of a name that has no array yet is kept: negative, as no array's number is."""
    return -1 - int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest())


def process_started(process: int) -> int:
    """When a process began, to tell it from a later one with the same number; 0 if there is none."""
    try:
        status = psutil.Process(process)
        return 0 if status.status() == psutil.STATUS_ZOMBIE else int(status.create_time() * 100)
    except psutil.NoSuchProcess:
        return 0


@contextlib.contextmanager
def locked(catalog: Catalog, key: int, name: str, timeout: float) -> Iterator[ArrayLock]:
    """Hold a lock for a while; it is given back however the while ends, also while the lock is being taken."""
    lock = ArrayLock(catalog, key)
    try:
        yield lock.acquire(name, timeout)
    finally:
        lock.release()


@contextlib.contextmanager
def locked_array(catalog: Catalog, array_id: int, name: str, timeout: float) -> Iterator[ArrayLock]:
    """Hold the lock of an array, which is that of all arrays that views join with it."""
    while True:
        key = catalog.lock_key(array_id)
        with locked(catalog, key, name, timeout) as lock:
            if catalog.lock_key(array_id) == key:
                yield lock
                return
        # A view was made or dropped while we waited.


@dataclass
class ArrayLock:
    """A lock on an array, or on a name that is to have one; ``release`` gives it back, also if it was never taken."""

    catalog: Catalog
    array_id: int
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _released: threading.Event = field(default_factory=threading.Event)

    def acquire(self, name: str, timeout: float) -> ArrayLock:
        """Wait for the lock up to ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        pause = _POLL_SECONDS
        _taken_by[self.token] = threading.current_thread()
        while (holder := self._try()) is not None:
            if holder.is_here:
                raise HeldHereError(
                    f"array {name} is being written by a batch of this process, which is open",
                    got="a change beside the batch, for which it would wait in vain",
                    hint="Commit the batch first, or make the change through it",
                )
            if time.monotonic() >= deadline:
                raise ConflictError(
                    f"array {name} is being written by another process",
                    got=f"{holder.text}, after waiting {timeout:g} s",
                    hint="Try again later, or connect with a larger lock_timeout",
                )
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 1.5, 0.5)
        threading.Thread(target=self._beat, name=f"windrow-lock-{name}", daemon=True).start()
        return self

    def check(self, connection: Connection, name: str) -> None:
        """Refuse to publish if the lock was passed over: what was built on it may be collected by now."""
        row = connection.execute(sa.select(locks.c.token).where(locks.c.array_id == self.array_id)).first()
        if row is None or row.token != self.token:
            raise ConflictError(
                f"the lock on {name} was lost while this write was under way",
                got="no sign of life for too long, so that others went on without it",
                hint="Write again; nothing was changed",
            )

    def release(self) -> None:
        """Give the lock back, now or, if the catalog cannot be written, as soon as it can be again."""
        self._released.set()
        _taken_by.pop(self.token, None)
        _given_back.add(self.token)
        try:
            self._delete()
        except Error:  # a full disk, say: the array's next writer must not wait for this one
            self.abandon()

    def abandon(self) -> None:
        """Give the lock back by the next who wants it, where there is no time to do it now."""
        self._released.set()
        _taken_by.pop(self.token, None)
        _given_back.add(self.token)
        threading.Thread(target=self._delete_later, name="windrow-unlock", daemon=True).start()

    def _delete(self) -> None:
        with self.catalog.writing() as connection:
            connection.execute(sa.delete(locks).where(locks.c.token == self.token))
        _given_back.discard(self.token)

    def _delete_later(self) -> None:
        while self.token in _given_back:
            time.sleep(1)
            with contextlib.suppress(Error):
                self._delete()

    def _try(self) -> _Holder | None:
        """Take the lock if it is free or its holder is dead; otherwise say who holds it."""
        try:
            return self._take()
        except sa.exc.IntegrityError:  # two writers found the lock free at the same moment
            return _Holder("another writer")

    def _take(self) -> _Holder | None:
        with self.catalog.writing() as connection:
            # Those of dead holders go, whatever they are on: a name that is never made would keep its lock for ever.
            for row in connection.execute(sa.select(locks)).all():
                if row.token in _given_back or not is_alive(row.host, row.process, row.process_started, row.heartbeat):
                    connection.execute(sa.delete(locks).where(locks.c.token == row.token))
                elif row.array_id == self.array_id:
                    is_own = row.process == os.getpid() and row.host == socket.gethostname()
                    return _Holder(f"process {row.process} on {row.host}", is_own and _is_of_this_thread(row.token))
            connection.execute(
                sa.insert(locks).values(
                    array_id=self.array_id,
                    token=self.token,
                    host=socket.gethostname(),
                    process=os.getpid(),
                    process_started=process_started(os.getpid()),
                    heartbeat=now_microseconds(),
                )
            )
        return None

    def _beat(self) -> None:
        while not self._released.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(Error), self.catalog.writing() as connection:
                mine = locks.c.token == self.token
                connection.execute(sa.update(locks).where(mine).values(heartbeat=now_microseconds()))


def _is_of_this_thread(token: str) -> bool:
    """Whether waiting for a lock is in vain, since who waits is who would have to give it back.

    A batch belongs to the thread in which it took the lock. Another thread of this process may be done with its batch
    at any moment, so it is waited for like another process. A child that was forked has its parent's table, not its
    locks: the caller has to look at the process, too.
    """
    return _taken_by.get(token) is threading.current_thread()


def is_alive(host: str, process: int, started: int, heartbeat: int) -> bool:
    """Whether a lock's holder can still be at work."""
    if host == socket.gethostname():
        try:
            # Start times are derived from the clock, which may have been set meanwhile: allow two seconds.
            return abs(process_started(process) - started) <= 200
        except psutil.AccessDenied:  # another user's process, which is there
            return True
    return now_microseconds() - heartbeat < SILENT_SECONDS * 1_000_000
