"""Database: a connection to a warehouse."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from windrow.api.array import Array
from windrow.api.batch import Batch
from windrow.errors import DataError
from windrow.execution.engine import Engine, EngineName, parse_bytes
from windrow.execution.executor import Progress
from windrow.execution.progress import progress_reporter
from windrow.model.gridding import Gridding
from windrow.model.schema import Schema
from windrow.storage.catalog import Catalog
from windrow.storage.view_rows import HIDDEN
from windrow.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.api.query import Query
    from windrow.api.views import View
    from windrow.operations.collect import Collected
    from windrow.views.explain import ViewExplanation

_VERSIONED = re.compile(r"(?P<name>[^@]+)@(?P<version>\d+)\Z")


def connect(
    path: str | os.PathLike[str] = "warehouse",
    spark: SparkSession | None = None,
    engine: EngineName = "auto",
    *,
    workers: int | None = None,
    memory: int | str | None = None,
    lock_timeout: float = 30.0,
    progress: bool | Progress | None = None,
    catalog: str | None = None,
    create: bool = True,
) -> Database:
    """Open a warehouse, or make a new one where there is nothing.

    ``engine`` is "auto" (small work in this process, large work on Spark), "local" or "spark"; ``spark`` is a session
    of yours to use. ``memory`` ("8 GB") is what all workers together may use, ``lock_timeout`` how many seconds to wait
    for another writer. ``catalog`` is an SQLAlchemy URL, if the catalog is not to be a file in the warehouse.
    """
    if not isinstance(lock_timeout, int | float) or not lock_timeout >= 0:
        raise DataError("lock_timeout is a number of seconds, not negative", got=repr(lock_timeout), hint="As in 30")
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise DataError("workers must be at least 1", got=repr(workers), hint="Leave it out to use every core")
    if not isinstance(path, str | os.PathLike):
        raise DataError("a warehouse is named by its path", got=repr(path), hint='As in connect("warehouse")')
    limit = None if memory is None else parse_bytes(memory)
    chosen = Engine(engine, spark, workers, limit, progress_reporter(progress))
    return Database(Warehouse.open(path, catalog, create), chosen, lock_timeout)


class Database:
    """A warehouse, and where work on it runs."""

    def __init__(self, warehouse: Warehouse, engine: Engine, lock_timeout: float) -> None:
        self.warehouse = warehouse
        self.engine = engine
        self.lock_timeout = lock_timeout
        self.view_use = "auto"
        """Whether queries are answered from views: "auto", "always", "stale" or "off"; ``set views`` changes it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is a connection of its own, which starts Spark itself if need be."""
        return _reconnect, (self.path, self.engine.name, self.engine.workers, self.engine.memory, self.lock_timeout)

    @property
    def catalog(self) -> Catalog:
        return self.warehouse.catalog

    @property
    def path(self) -> str:
        return str(self.warehouse.root)

    def create(
        self,
        name: str,
        schema: str | Schema,
        sparse: bool | None = None,
        *,
        labels: Mapping[str, Any] | None = None,
        grid: Mapping[str, object] | Gridding | None = None,
        chunks: Mapping[str, int] | Literal["patched"] | None = None,
        metadata: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Array:
        """Make an empty array: ``db.create("A", "<a: float64> [i=1:1000:250, j=1:1000:250]")``.

        ``labels`` names the cells of dimensions. ``grid`` makes a sparse array of gridded points: its dimensions come
        from the grid, and the exact coordinates are kept as attributes ``<dimension>_exact``.
        """
        with self.batch() as change:
            change.create(name, schema, sparse, labels=labels, grid=grid, chunks=chunks, metadata=metadata)
        return Array(self, name)

    def array(self, name: str) -> Array:
        """Open an array by name, or one of its versions as ``"A@3"``."""
        versioned = _VERSIONED.match(name) if isinstance(name, str) else None
        if versioned:
            return Array(self, versioned["name"]).at(version=int(versioned["version"]))
        record = self.catalog.array(name)
        if any(view.array_id == record.id for view in self.catalog.views()):
            return self.view(name)
        return Array(self, name)

    def arrays(self) -> list[Array]:
        """All arrays that are no views, by name."""
        views = {view.array_id for view in self.catalog.views()}
        shown = [record for record in self.catalog.array_records() if not record.name.startswith(HIDDEN)]
        return [Array(self, record.name) for record in shown if record.id not in views]

    # Views

    def create_view(
        self,
        name: str,
        query: Query | str,
        *,
        deferred: bool = False,
        chunks: Mapping[str, int] | None = None,
        maintain: str = "auto",
        on_failure: str = "refuse",
        store: str = "auto",
        strategy: str = "auto",
        placement: Mapping[str, float] | None = None,
    ) -> View:
        """Keep a query's result, brought up to date with every batch on the arrays that it reads.

        ``db.create_view("V", A.neighbours(wr.L1(1)).agg(n=wr.count()))``. A ``deferred`` view waits for ``refresh``.
        """
        from windrow.api.views import create_view
        from windrow.views.definition import Settings

        placed = {} if placement is None else {"placement": placement}
        settings = Settings(deferred, chunks, maintain, on_failure, store, strategy, **placed)
        return create_view(self, name, query, settings)

    def plan_maintenance(self, **settings: Any) -> None:
        """Plan the maintenance of all views in this session's own way, whatever they say; with nothing, as they say.

        ``db.plan_maintenance(strategy="reassign", window=5)``. Settings are those of placement, and ``strategy``.
        """
        from windrow.views.definition import Settings

        placed = {name: value for name, value in settings.items() if name != "strategy"}
        Settings(strategy=settings.get("strategy", "auto"), placement=placed)  # which says what is wrong with them
        self.engine.placement = dict(settings)

    def explain_view(self, query: Query | str, **settings: Any) -> ViewExplanation:
        """How a view of a query would be kept up to date, part by part; settings as those of create_view."""
        from windrow.api.views import explain_view
        from windrow.views.definition import Settings

        return explain_view(self, query, Settings.of(settings))

    def view(self, name: str) -> View:
        """Open a view by name."""
        from windrow.api.views import open_view

        return open_view(self, name)

    def views(self) -> list[View]:
        """All views, by name."""
        from windrow.api.views import View, view_names

        return [View(self, name) for name in view_names(self)]

    def drop_view(self, name: str, cascade: bool = False) -> None:
        """Remove a view; ``cascade`` also removes the views that read it."""
        self.view(name)
        self.drop(name, cascade)

    def _at_one_moment(self, names: Iterable[str]) -> dict[str, Array]:
        """Arrays at the versions that they have now, all as of one moment; those that are gone are left out."""
        with self.catalog.one_moment():
            there = set(self.catalog.array_names())
            return {name: Array(self, name)._now() for name in names if name in there}

    def __contains__(self, name: object) -> bool:
        return name in self.catalog.array_names()

    def __getitem__(self, name: str) -> Array:
        return self.array(name)

    def batch(self, id: str | None = None) -> Batch:
        """Changes to several arrays that become visible together: ``with db.batch("night42") as b: …``.

        A batch whose id was applied before to the same arrays is reported and passed over.
        """
        return Batch(self, id)

    def drop(self, name: str, cascade: bool = False) -> None:
        """Remove an array with all its versions; ``cascade`` also removes the views that read it."""
        with self.batch() as change:
            change.drop(name, cascade)

    def collect_garbage(
        self, keep_versions: int | None = None, older_than: datetime | None = None, drop_pins: bool = False
    ) -> Collected:
        """Free what no version that can be read needs; optionally give up old versions first.

        Versions from which a view that is behind is to be brought up to date are kept and reported, unless
        ``drop_pins`` gives them up; such a view is rebuilt when it is refreshed. Versions that the query of a view
        names (``A@3``) always stay.
        """
        from windrow.operations.collect import collect_garbage
        from windrow.views.known import versions_read

        if older_than is not None and not isinstance(older_than, datetime):
            raise DataError("older_than is a datetime", got=repr(older_than), hint="As in datetime(2026, 1, 31)")
        if older_than is not None and older_than.tzinfo is None:
            older_than = older_than.astimezone()
        return collect_garbage(self.warehouse, self.lock_timeout, versions_read, keep_versions, older_than, drop_pins)

    def import_file(self, path: Any, into: str, **options: Any) -> Any:
        """Read a file (NetCDF, GRIB, Zarr, Parquet, CSV, FITS) into an array, which is created if it is not there."""
        from windrow.api.transfer import import_file

        return import_file(self, path, into, **options)

    def export_file(self, array: str, path: Any, **options: Any) -> None:
        """Write an array, or a version of it ("A@3"), to a file."""
        from windrow.api.transfer import export_file

        export_file(self, array, path, **options)

    def query(self, text: str) -> Any:
        """Carry out one statement of the language: ``db.query("aggr A sum(a) by window(2,2)")``.

        A select or aggr gives a lazy query; other statements what they have to show, or a report of what they did.
        """
        from windrow.api.session.statements import run
        from windrow.language.parser import parse

        return run(self, parse(text))

    def sql(self, text: str) -> DataFrame:
        """Spark SQL with windrow's aggregates over any frame, and with arrays as tables, as a lazy DataFrame.

        ``db.sql("select day, median(delay) over (order by day rows 29 preceding) from flights")``
        """
        from windrow.sql.run import Arrays, run_sql

        names = frozenset(self.catalog.array_names())
        # A text that is none is refused further on.
        named = [name for name in names if isinstance(text, str) and name.lower() in text.lower()]
        held = self._at_one_moment(named)
        arrays = Arrays(names, lambda name: (held.get(name) or self.array(name)).to_spark())
        return run_sql(self.engine, arrays, text)

    def cancel(self) -> None:
        """Stop the work that other threads are doing through this connection; they get a CancelledError."""
        self.engine.cancellation.cancel()

    def close(self) -> None:
        """Let go of the catalog, and of Spark if windrow started it."""
        self.engine.close()
        self.warehouse.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.catalog.closed:
            return f"<windrow.Database {self.path}: closed>"
        names = [name for name in self.catalog.array_names() if not name.startswith(HIDDEN)]
        listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        return f"<windrow.Database {self.path}: {len(names)} arrays{': ' + listed if names else ''}>"


def _reconnect(path: str, engine: EngineName, workers: int, memory: int, lock_timeout: float) -> Database:
    return connect(
        path, engine=engine, workers=workers, memory=memory, lock_timeout=lock_timeout, progress=False, create=False
    )
