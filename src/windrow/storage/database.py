"""The catalog's transactions: each reads or changes it as of one moment, in the format it was opened with."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from windrow.errors import StoreError
from windrow.storage import tables
from windrow.storage.failures import store_failures

_FORMAT = "select value from settings where key = 'format'"
"""As text, because every change asks it."""


class CatalogDatabase:
    """The database of a catalog, which threads of a process share."""

    def __init__(self, engine: Engine) -> None:
        self._reader = engine
        self.closed = False
        self.format: str | None = None
        """The warehouse's format when it was opened, without which nothing is written."""
        self._moment = threading.local()
        self._writer = engine.execution_options(writes=True)

    @property
    def engine(self) -> Engine:
        return self._reader

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
        shared: Connection | None = getattr(self._moment, "connection", None)
        if shared is not None:
            yield shared
            return
        with store_failures("the catalog"), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Lets all that this thread reads inside be as of one moment: a batch is seen in every array or in none."""
        with self.reading() as connection:
            if getattr(self._moment, "connection", None) is not None:
                yield
                return
            if connection.dialect.name != "sqlite":  # SQLite's transactions see one state of the database anyway
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            self._moment.connection = connection
            try:
                yield
            finally:
                self._moment.connection = None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        self._check_open()
        with store_failures("the catalog"), self._writer.begin() as connection:
            self._check_format(connection)
            yield connection

    def _check_format(self, connection: Connection) -> None:
        """Refuse to write into a warehouse that another windrow has brought to another format since it was opened.

        SQLite lets one transaction write at a time, and much here counts on that. Elsewhere the row that is read here
        makes them wait for one another.
        """
        asked = _FORMAT if connection.dialect.name == "sqlite" else f"{_FORMAT} FOR UPDATE"
        if self.format is not None and (stated := connection.exec_driver_sql(asked).scalar()) != self.format:
            raise StoreError(
                "the warehouse's format was changed by another windrow while it was open",
                got=f"{stated} instead of {self.format}",
                hint="Connect again; if that is refused, upgrade windrow",
            )
