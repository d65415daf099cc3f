"""The catalog's database: how it is opened, and how its transactions begin."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import StoreError


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
