"""Array: what a user holds in hand. Everything is looked up when it is needed; nothing is kept open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from windrow.errors import DataError, Error, MemoryLimitError, UnknownNameError
from windrow.model.box import Box
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.selection import resolve
from windrow.storage.dense import DenseSnapshot
from windrow.storage.transaction import dense_snapshot, sparse_snapshot

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr
    from pyspark.sql import DataFrame

    from windrow.api.batch import Grid, Report
    from windrow.api.database import Database
    from windrow.api.describe import Description
    from windrow.api.query import Windowed
    from windrow.expressions.nodes import Node
    from windrow.operations.cell_tasks import Duplicates
    from windrow.storage.records import ArrayRecord, ChunkStatistics, VersionRecord
    from windrow.storage.sparse import SparseSnapshot


@dataclass(frozen=True)
class Location:
    """Where readers outside windrow find a version: ``format`` is "icechunk" or "delta"."""

    format: str
    path: str
    version: str

    @property
    def example(self) -> str:
        """Python that opens it without windrow."""
        if self.format == "delta":
            return f"deltalake.DeltaTable({self.path!r}, version={self.version})"
        return (
            f"xarray.open_zarr(icechunk.Repository.open(icechunk.local_filesystem_storage({self.path!r}))"
            f".readonly_session(snapshot_id={self.version!r}).store, consolidated=False)"
        )

    def __str__(self) -> str:
        return f"{self.format}:{self.path}@{self.version}"


class Array:
    """An array of a database: live, or pinned to a version by ``at``."""

    def __init__(
        self,
        database: Database,
        name: str,
        pinned: VersionRecord | None = None,
        record: ArrayRecord | None = None,
    ) -> None:
        self._database = database
        self._name = name
        self._pinned = pinned
        self._known = record

    # What it is

    @property
    def name(self) -> str:
        return self._name

    @property
    def schema(self) -> Schema:
        return self._version().schema

    @property
    def sparse(self) -> bool:
        return self._record().sparse

    @property
    def version(self) -> int:
        """The number of the version that reads see: 0 when created, one more with every write."""
        return self._version().number

    @property
    def box(self) -> Box:
        """The cells it has room for now; growing dimensions end at their last cell."""
        return self._version().box

    @property
    def shape(self) -> tuple[int, ...]:
        return self.box.shape

    @property
    def labels(self) -> Mapping[str, Labels]:
        """The coordinate labels of the dimensions that have any."""
        return self._database.catalog.labels(self._version())

    @property
    def gridding(self) -> Gridding | None:
        text = self._record().gridding
        return None if text is None else Gridding.from_json(text)

    def versions(self) -> list[VersionRecord]:
        """All versions that can be read, oldest first."""
        return self._database.catalog.versions(self._record())

    def at(self, version: int | None = None, time: datetime | None = None) -> Array:
        """This array as of a version number or a moment; it can be read, not written."""
        if (version is None) == (time is None):
            raise DataError(
                "give a version number or a time", got=f"version={version}, time={time}", hint="As in at(version=3)"
            )
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise DataError("a version is a number", got=repr(version), hint="As in at(version=3)")
        if time is not None and not isinstance(time, datetime):
            raise DataError("a time is a datetime", got=repr(time), hint="As in at(time=datetime(2026, 1, 31, 12))")
        if time is not None and time.tzinfo is None:
            time = time.astimezone()
        record = self._record()
        return Array(self._database, self._name, self._database.catalog.version(record, version, time), record)

    def chunks(self) -> ChunkStatistics:
        """The metadata of its chunks: ordinal, cells, stored bytes and bounds of each."""
        return self._database.catalog.chunks(self._version()).merged()

    def location(self, version: int | None = None) -> Location:
        """Where xarray, DuckDB, Polars or Spark find a version (the newest by default) without windrow."""
        record = self._record()
        found = self._version() if version is None else self._database.catalog.version(record, version)
        path = self._database.warehouse.path(record.directory)
        return Location("delta" if record.sparse else "icechunk", path, found.pointer)

    def describe(self) -> Description:
        """Schema, size, chunks, labels and history in one view."""
        from windrow.api.describe import describe

        return describe(self._now())

    # Reading

    def read(self, attributes: Iterable[str] | None = None, /, **selection: object) -> xr.Dataset | pa.Table:
        """The selected cells: an xarray.Dataset if dense, a pyarrow.Table in coordinate order if sparse.

        Integers select by cell number, both ends included: ``A.read(i=(1, 10), j=3)``. Anything else selects by
        label: ``A.read(time=("2012-01-01", "2012-01-31"))``. ``A.read(["a"])`` reads one attribute.
        """
        now = self._now()
        snapshot = now._snapshot()
        box = now._select(selection)
        names = now._attributes(attributes)
        if isinstance(snapshot, DenseSnapshot):
            return now._read_dense(snapshot, box, names)
        cells = sum(part.cells for part in snapshot.touching(box))
        row = 8 * now.schema.ndim + now.schema.cell_bytes
        self._check_memory(3 * cells * row)
        return snapshot.read(box if selection else None, names, self._database.engine.workers)

    def _read_dense(self, snapshot: DenseSnapshot, box: Box, names: Sequence[str]) -> xr.Dataset:
        from windrow.api.labelled import dataset

        self._check_memory(2 * box.size * snapshot.schema.select(names).cell_bytes)
        return dataset(snapshot, box, names, self._record().metadata)

    def batches(self, attributes: Iterable[str] | None = None, /, **selection: object) -> Iterator[pa.Table]:
        """The selected cells of a sparse array as a stream of tables, in no particular order."""
        now = self._now()
        snapshot = now._snapshot()
        if isinstance(snapshot, DenseSnapshot):
            raise DataError(f"array {self._name} is dense", hint="Use read(), to_xarray() or to_spark()")
        box = now._select(selection) if selection else None
        return snapshot.batches(box, now._attributes(attributes))

    def to_xarray(self) -> xr.Dataset:
        """All of it as an xarray.Dataset: loaded lazily if dense, laid out on the grid if sparse."""
        from windrow.api.labelled import laid_out, opened

        now = self._now()
        snapshot = now._snapshot()
        if isinstance(snapshot, DenseSnapshot):
            return opened(snapshot)
        self._check_memory(3 * snapshot.box.size * max(1, snapshot.schema.cell_bytes))
        return laid_out(snapshot.read(), snapshot, now.labels, now._record().metadata)

    def to_spark(self, **selection: object) -> DataFrame:
        """The selected cells as a lazy Spark DataFrame: dimensions and attributes as columns, missing as NULL."""
        from windrow.operations.dataframes import dense_frame, sparse_frame

        now = self._now()
        snapshot = now._snapshot()
        box = now._select(selection)
        executor = self._database.engine.spark()
        if isinstance(snapshot, DenseSnapshot):
            return dense_frame(executor, snapshot, box)
        return sparse_frame(executor, snapshot, box if selection else None)

    # Windows

    def window(
        self,
        extents: Mapping[str, Any] | None = None,
        /,
        *,
        boundary: str = "clip",
        min_count: int = 0,
        step: Any = 1,
        **dimensions: Any,
    ) -> Windowed:
        """A window around every cell: ``A.window(i=3, time=wr.trailing("30 days")).agg(m=wr.max("a"))``.

        A number is a width from the cell on; ``wr.centred``, ``wr.trailing``, ``wr.between`` and ``.wrap()`` say
        otherwise. Dimensions that are not named have a width of 1. ``boundary`` is "clip" or "drop", ``min_count``
        the fewest present values that give a result, ``step`` evaluates every so many cells.
        """
        from windrow.api.query import windowed

        options = {"boundary": boundary, "min_count": min_count, "step": step}
        return windowed(self, {**(extents or {}), **dimensions}, options)

    def regrid(
        self,
        sizes: Mapping[str, Any] | None = None,
        /,
        *,
        boundary: str = "clip",
        min_count: int = 0,
        **dimensions: Any,
    ) -> Windowed:
        """Blocks side by side, one result each: ``A.regrid(i=2, j=2).agg(m=wr.avg("a"))``."""
        from windrow.api.query import regridded

        return regridded(self, {**(sizes or {}), **dimensions}, {"boundary": boundary, "min_count": min_count})

    # Writing

    def write(
        self,
        values: Any,
        at: Sequence[int] | None = None,
        labels: Mapping[str, Any] | None = None,
        batch: str | None = None,
    ) -> Report:
        """Write a box of values into a dense array, its first cell at ``at`` (by default the array's first).

        ``values`` is a mapping of attributes to ndarrays, one ndarray if there is one attribute, or an
        xarray.Dataset or DataArray, which is placed by its own coordinates.
        """
        with self._writing(batch) as change:
            change.write(self._name, values, at, labels)
        return self._reported(change)

    def append(
        self, values: Any, labels: Mapping[str, Any] | Sequence[Any] | None = None, batch: str | None = None
    ) -> Report:
        """Write after the present end of the growing dimension, with labels for the new cells if it has any."""
        with self._writing(batch) as change:
            change.append(self._name, values, labels)
        return self._reported(change)

    def insert(
        self, cells: Any, on_duplicate: Duplicates | None = None, grid: Grid = None, batch: str | None = None
    ) -> Report:
        """Insert cells: Arrow, pandas, polars, dicts, a file name, or a Spark DataFrame of any size.

        A cell at an occupied coordinate replaces the one there. Several for one coordinate are an error, unless
        ``on_duplicate`` is "last" (ordered input) or "keep" (numbered along dimension ``n``). ``grid`` turns points
        into cells; arrays created with one use theirs.
        """
        with self._writing(batch) as change:
            change.insert(self._name, cells, on_duplicate, grid)
        return self._reported(change)

    def delete(self, where: str | Node | None = None, batch: str | None = None) -> Report:
        """Delete the cells of a sparse array that satisfy a condition (all of them without one)."""
        with self._writing(batch) as change:
            change.delete(self._name, where)
        return self._reported(change)

    def update(self, set: Mapping[str, Any], where: str | Node | None = None, batch: str | None = None) -> Report:
        """Set attributes to expressions, ``A.update({"a": "a + 1"}, where="a > 3")``, wherever a condition holds."""
        with self._writing(batch) as change:
            change.update(self._name, set, where)
        return self._reported(change)

    def set_labels(self, dimension: str, labels: Any) -> Report:
        """Give a dimension coordinate labels, one per cell."""
        with self._writing(None) as change:
            change.set_labels(self._name, dimension, labels)
        return self._reported(change)

    def compact(self, chunks: Mapping[str, int] | None = None) -> Report:
        """Store it anew, in a version of its own: a sparse array in order, a dense one in longer or other chunks."""
        with self._writing(None) as change:
            change.compact(self._name, chunks)
        return self._reported(change)

    def drop(self) -> None:
        """Remove the array with all its versions."""
        self._refuse_pinned()
        self._database.drop(self._name)

    # How it looks

    def __repr__(self) -> str:
        from windrow.api.describe import one_line

        try:
            return one_line(self)
        except Error as error:  # dropped, or its database closed: a repr says so instead of failing
            return f"<windrow.Array {self._name}: {error.what}>"

    def _repr_html_(self) -> str:
        return self.describe()._repr_html_()

    # What the methods above share

    def _record(self) -> ArrayRecord:
        return self._known or self._database.catalog.array(self._name)

    def _now(self) -> Array:
        """This array at one version: what reads it in several steps must not meet two of them."""
        if self._pinned is not None:
            return self
        record, version = self._database.catalog.current(self._name)
        return Array(self._database, self._name, version, record)

    def _version(self) -> VersionRecord:
        return self._pinned or self._database.catalog.version(self._record())

    def _snapshot(self) -> DenseSnapshot | SparseSnapshot:
        record, version = self._record(), self._version()
        if self._pinned is not None:
            self._check_offered(record, self._pinned)
        open_ = sparse_snapshot if record.sparse else dense_snapshot
        return open_(self._database.warehouse, record, version)

    def _check_offered(self, record: ArrayRecord, pinned: VersionRecord) -> None:
        """Refuse to read a version that was given up since, or whose array was dropped and made anew."""
        if record.id != pinned.array_id:
            raise UnknownNameError("no such version", got=f"{self._name}@{pinned.number}", hint="The array was dropped")
        self._database.catalog.version(record, pinned.number)

    def _select(self, selection: Mapping[str, object]) -> Box:
        version = self._version()
        if not selection:
            return version.box
        labels = self._database.catalog.labels(version)
        return resolve(version.schema, version.box, labels, selection, self.gridding)

    def _attributes(self, attributes: Iterable[str] | None) -> tuple[str, ...]:
        schema = self.schema
        if attributes is None:
            return schema.attribute_names
        if not isinstance(attributes, Iterable):
            raise DataError(
                "attributes is a list of names", got=repr(attributes), hint=f"As in {[schema.attributes[0].name]}"
            )
        listed = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        return tuple(schema.attribute(name).name for name in listed)

    def _check_memory(self, needed: int) -> None:
        limit = self._database.engine.memory
        if needed > limit:
            raise MemoryLimitError(
                f"reading this from {self._name} needs about {needed / 2**30:.1f} GB of memory",
                got=f"a limit of {limit / 2**30:.1f} GB",
                hint="Select less, use to_spark(), or connect with a larger memory=",
            )

    def _refuse_pinned(self) -> None:
        if self._pinned is not None:
            raise DataError(
                "an old version cannot be changed", got=f"{self._name}@{self._pinned.number}", hint="Write to the array"
            )

    def _writing(self, batch: str | None) -> Any:
        self._refuse_pinned()
        return self._database.batch(batch)

    def _reported(self, change: Any) -> Report:
        report: Report = change.report
        return report
