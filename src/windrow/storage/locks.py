"""One writer at a time for each array, by a row in the catalog.

A lock names its holder's host and process. A holder whose process is gone is passed over at once on its own host; a
holder on another host is passed over when its heartbeat has been silent for a minute.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass, field

import psutil
import sqlalchemy as sa

from windrow.errors import ConflictError
from windrow.storage.catalog import Catalog, now_microseconds
from windrow.storage.tables import locks

HEARTBEAT_SECONDS = 10.0
SILENT_SECONDS = 60.0
_POLL_SECONDS = 0.02


def _process_started(process: int) -> int:
    """When a process began, to tell it from a later one with the same number; 0 if there is none."""
    try:
        status = psutil.Process(process)
        return 0 if status.status() == psutil.STATUS_ZOMBIE else int(status.create_time() * 100)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
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
        self._released.set()
        with self.catalog.writing() as connection:
            connection.execute(sa.delete(locks).where(locks.c.token == self.token))

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
                if _is_alive(row.host, row.process, row.process_started, row.heartbeat):
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
            with self.catalog.writing() as connection:
                mine = locks.c.token == self.token
                connection.execute(sa.update(locks).where(mine).values(heartbeat=now_microseconds()))


def _is_alive(host: str, process: int, started: int, heartbeat: int) -> bool:
    if host == socket.gethostname():
        # Start times are derived from the clock, which may have been set meanwhile: allow two seconds.
        return abs(_process_started(process) - started) <= 200
    return now_microseconds() - heartbeat < SILENT_SECONDS * 1_000_000
