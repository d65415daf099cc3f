"""Database: a connection to a warehouse."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from windrow.api.array import Array
from windrow.api.batch import Batch
from windrow.errors import DataError, SchemaError
from windrow.execution.engine import Engine, EngineName, parse_bytes
from windrow.execution.executor import Progress
from windrow.execution.progress import progress_reporter
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.schema import NUMBERING, Dimension, Schema, check_name
from windrow.operations.write import check_cells
from windrow.storage.catalog import Catalog
from windrow.storage.dense_store import DenseStore
from windrow.storage.locks import ArrayLock
from windrow.storage.records import ArrayRecord, VersionRecord
from windrow.storage.sparse import SparseStore
from windrow.storage.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.operations.collect import Collected

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
        chunks: Mapping[str, int] | None = None,
        metadata: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Array:
        """Make an empty array: ``db.create("A", "<a: float64> [i=1:1000:250, j=1:1000:250]")``.

        ``labels`` names the cells of dimensions. ``grid`` makes a sparse array of gridded points: its dimensions come
        from the grid, and the exact coordinates are kept as attributes ``<dimension>_exact``.
        """
        check_name(name, "an array")
        parsed = _parse(name, schema, sparse if grid is None else True)
        gridding = Gridding.of(grid) if isinstance(grid, Mapping) else grid
        if gridding is not None:
            parsed = _gridded_schema(parsed, gridding)
        resolved = parsed.with_chunks(chunks)
        named = _check_labels(resolved, labels or {})
        _check_metadata(metadata or {})
        if name in self.catalog.array_names():
            raise SchemaError("an array of that name exists", got=repr(name), hint="Drop it, or choose another name")
        hi = tuple(d.lo - 1 if d.hi is None else d.hi for d in resolved.dimensions)
        if not resolved.sparse:
            check_cells(resolved, hi)
        directory = self.warehouse.new_directory(name)
        record = ArrayRecord(
            0, name, directory, resolved.sparse, None if gridding is None else gridding.to_json(), metadata or {}
        )
        path = self.warehouse.path(directory)
        if resolved.sparse:
            pointer, checksum = SparseStore(path).create(resolved, name), ""
        else:
            store = DenseStore(path)
            pointer = store.create(resolved, hi, named, record.metadata)
            checksum = store.pin(pointer)
        cells = 0 if resolved.sparse else resolved.box(hi).size
        version = VersionRecord(0, 0, pointer, resolved, hi, "create", None, datetime.now(UTC), cells, 0, checksum)
        self.catalog.add_array(record, version, named)
        return Array(self, name)

    def array(self, name: str) -> Array:
        """Open an array by name, or one of its versions as ``"A@3"``."""
        versioned = _VERSIONED.match(name) if isinstance(name, str) else None
        if versioned:
            return Array(self, versioned["name"]).at(version=int(versioned["version"]))
        self.catalog.array(name)
        return Array(self, name)

    def arrays(self) -> list[Array]:
        """All arrays, by name."""
        return [Array(self, name) for name in self.catalog.array_names()]

    def __contains__(self, name: object) -> bool:
        return name in self.catalog.array_names()

    def batch(self, id: str | None = None) -> Batch:
        """Changes to several arrays that become visible together: ``with db.batch("night42") as b: …``.

        A batch whose id was applied before is reported and passed over.
        """
        return Batch(self, id)

    def drop(self, name: str) -> None:
        """Remove an array with all its versions."""
        record = self.catalog.array(name)
        lock = ArrayLock(self.catalog, record.id).acquire(name, self.lock_timeout)
        try:
            self.catalog.drop_array(record)
        finally:
            lock.release()
        self.warehouse.remove(record.directory)
        self.catalog.empty_trash(record.directory)

    def collect_garbage(self, keep_versions: int | None = None, older_than: datetime | None = None) -> Collected:
        """Free what no version that can be read needs; optionally give up old versions first."""
        from windrow.operations.collect import collect_garbage

        if older_than is not None and not isinstance(older_than, datetime):
            raise DataError("older_than is a datetime", got=repr(older_than), hint="As in datetime(2026, 1, 31)")
        if older_than is not None and older_than.tzinfo is None:
            older_than = older_than.astimezone()
        return collect_garbage(self.warehouse, self.lock_timeout, keep_versions, older_than)

    def import_file(self, path: Any, into: str, **options: Any) -> Any:
        """Read a file (NetCDF, Zarr, Parquet, CSV) into an array, which is created if it is not there."""
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
        from windrow.api.statements import run
        from windrow.language.parser import parse

        return run(self, parse(text))

    def sql(self, text: str) -> DataFrame:
        """Spark SQL with windrow's aggregates over any frame, and with arrays as tables, as a lazy DataFrame.

        ``db.sql("select day, median(delay) over (order by day rows 29 preceding) from flights")``
        """
        from windrow.tables.sql import run_sql

        return run_sql(self, text)

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
        names = self.catalog.array_names()
        listed = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        return f"<windrow.Database {self.path}: {len(names)} arrays{': ' + listed if names else ''}>"


def _parse(name: str, schema: str | Schema, sparse: bool | None) -> Schema:
    if isinstance(schema, Schema):
        return schema if sparse is None else replace(schema, sparse=sparse)
    stated, parsed = parse_schema(schema, sparse)
    if stated is not None and stated != name:
        raise SchemaError(f"the schema names another array than {name!r}", got=repr(stated))
    return parsed


def _gridded_schema(schema: Schema, gridding: Gridding) -> Schema:
    """The schema with the grid's own dimensions, the exact coordinates, and a number for cells that coincide."""
    dimensions = [
        gridding.axis(d.name).dimension(chunk=d.chunk) if d.name in gridding.names else d for d in schema.dimensions
    ]
    dimensions += [gridding.axis(name).dimension() for name in gridding.names if name not in schema.dimension_names]
    if NUMBERING not in {dimension.name for dimension in dimensions}:
        dimensions.append(Dimension(NUMBERING, 0, None))
    attributes = [*schema.attributes]
    attributes += [a for a in gridding.exact_attributes() if a.name not in schema.attribute_names]
    return Schema(tuple(dimensions), tuple(attributes), sparse=True)


def _check_metadata(metadata: Mapping[str, Mapping[str, str]]) -> None:
    if not isinstance(metadata, Mapping) or not all(isinstance(of, Mapping) for of in metadata.values()):
        raise SchemaError(
            "metadata maps attributes to mappings", got=repr(metadata), hint="As in {'a': {'units': 'K'}}"
        )


def _check_labels(schema: Schema, labels: Mapping[str, Any]) -> dict[str, Labels]:
    result = {}
    for name, values in labels.items():
        dimension = schema.dimension(name)
        named = values if isinstance(values, Labels) else Labels.of(values)
        if dimension.extent is None:
            raise SchemaError(
                f"dimension {name} grows: its labels come with the values", hint="Give labels= to append() or write()"
            )
        if len(named) != dimension.extent:
            raise SchemaError(f"dimension {name} has {dimension.extent} cells", got=f"{len(named)} labels")
        result[name] = named
    return result
