"""The catalog's database: how it is opened, and how its transactions begin."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import MachineError, StoreError
from windrow.storage.marker import describe_address

_engines: WeakSet[Engine] = WeakSet()
_unusable_after_fork: WeakSet[Engine] = WeakSet()

PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "foreign_keys=ON")


def open_engine(url: str | sa.URL, pragmas: Sequence[str] = PRAGMAS) -> Engine:
    """A connection pool for the catalog's database; ``pragmas`` say how SQLite works on it."""
    try:
        engine = sa.create_engine(url)
    except (sa.exc.ArgumentError, ImportError, ValueError, TypeError) as error:
        # What was given may hold a password, and an error of SQLAlchemy's may repeat it.
        missing = f": {error}" if isinstance(error, ImportError) else ""
        address = describe_address(url)
        wants_driver = missing and address.startswith("postgresql")
        raise StoreError(
            "the catalog's address cannot be used",
            got=f"{address}{missing}",
            hint="Run: pip install 'windrow[postgresql]'" if wants_driver else "As in sqlite:////data/catalog.sqlite",
        ) from None
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", functools.partial(_prepare_sqlite, pragmas))
        sa.event.listen(engine, "begin", _begin_sqlite)
    _engines.add(engine)
    return engine


def _close_idle_connections() -> None:
    """Close what lies idle before a fork: SQLite's locks and a server's socket belong to one process.

    Parent and child connect anew when they next need to. A connection that another thread is using cannot be closed;
    the child must not use that catalog, and is told so.
    """
    for engine in _engines:
        if isinstance(engine.pool, sa.QueuePool):  # other pools are of databases in memory, which closing would end
            if engine.pool.checkedout():
                _unusable_after_fork.add(engine)
            engine.dispose()


def _forget_connections() -> None:
    for engine in _engines:
        if isinstance(engine.pool, sa.QueuePool):
            engine.dispose(close=False)
    for engine in _unusable_after_fork:
        sa.event.listen(engine, "do_connect", _refuse_after_fork)


def _refuse_after_fork(*_arguments: object) -> None:
    raise MachineError(
        "this process was forked while its parent was using the catalog",
        got=f"process {os.getpid()}",
        hint='Start processes by multiprocessing.get_context("spawn") or "forkserver"',
    )


os.register_at_fork(
    before=_close_idle_connections, after_in_parent=_unusable_after_fork.clear, after_in_child=_forget_connections
)


def _prepare_sqlite(pragmas: Sequence[str], connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, below
    cursor = connection.cursor()
    for pragma in pragmas:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that will write takes SQLite's write lock at once: one that first reads could not upgrade.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
