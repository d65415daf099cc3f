"""One writer at a time for each array, by a row in the catalog.

A lock names its holder's host and process. A holder whose process is gone is passed over at once on its own host; a
holder on another host is passed over when its heartbeat has been silent for a minute.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field

import psutil
import sqlalchemy as sa

from windrow.errors import ConflictError, Error
from windrow.storage.catalog import Catalog
from windrow.storage.rows import now_microseconds
from windrow.storage.tables import locks

HEARTBEAT_SECONDS = 10.0
SILENT_SECONDS = 60.0
_POLL_SECONDS = 0.02

_given_back: set[str] = set()
"""Tokens of locks that this process has let go of and that could not be deleted yet."""


def _process_started(process: int) -> int:
    """When a process began, to tell it from a later one with the same number; 0 if there is none."""
    try:
        status = psutil.Process(process)
        return 0 if status.status() == psutil.STATUS_ZOMBIE else int(status.create_time() * 100)
    except psutil.NoSuchProcess:
        return 0


@dataclass
class ArrayLock:
    """A held lock; ``release`` gives it back."""

    catalog: Catalog
    array_id: int
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _released: threading.Event = field(default_factory=threading.Event)

    def acquire(self, name: str, timeout: float) -> ArrayLock:
        """Wait for the lock up to ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        pause = _POLL_SECONDS
        while (holder := self._try()) is not None:
            if time.monotonic() >= deadline:
                raise ConflictError(
                    f"array {name} is being written by another process",
                    got=f"{holder}, after waiting {timeout:g} s",
                    hint="Try again later, or connect with a larger lock_timeout",
                )
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 1.5, 0.5)
        threading.Thread(target=self._beat, name=f"windrow-lock-{name}", daemon=True).start()
        return self

    def release(self) -> None:
        """Give the lock back, now or, if the catalog cannot be written, as soon as it can be again."""
        self._released.set()
        _given_back.add(self.token)
        try:
            self._delete()
        except Error:  # a full disk, say: the array's next writer must not wait for this one
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

    def _try(self) -> str | None:
        """Take the lock if it is free or its holder is dead; otherwise say who holds it."""
        try:
            return self._take()
        except sa.exc.IntegrityError:  # two writers found the lock free at the same moment
            return "another writer"

    def _take(self) -> str | None:
        with self.catalog.writing() as connection:
            row = connection.execute(sa.select(locks).where(locks.c.array_id == self.array_id)).first()
            if row is not None:
                if row.token not in _given_back and is_alive(row.host, row.process, row.process_started, row.heartbeat):
                    return f"process {row.process} on {row.host}"
                connection.execute(sa.delete(locks).where(locks.c.token == row.token))
            connection.execute(
                sa.insert(locks).values(
                    array_id=self.array_id,
                    token=self.token,
                    host=socket.gethostname(),
                    process=os.getpid(),
                    process_started=_process_started(os.getpid()),
                    heartbeat=now_microseconds(),
                )
            )
        return None

    def _beat(self) -> None:
        while not self._released.wait(HEARTBEAT_SECONDS):
            with contextlib.suppress(Error), self.catalog.writing() as connection:
                mine = locks.c.token == self.token
                connection.execute(sa.update(locks).where(mine).values(heartbeat=now_microseconds()))


def is_alive(host: str, process: int, started: int, heartbeat: int) -> bool:
    """Whether a lock's holder can still be at work."""
    if host == socket.gethostname():
        try:
            # Start times are derived from the clock, which may have been set meanwhile: allow two seconds.
            return abs(_process_started(process) - started) <= 200
        except psutil.AccessDenied:  # another user's process, which is there
            return True
    return now_microseconds() - heartbeat < SILENT_SECONDS * 1_000_000
