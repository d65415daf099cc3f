"""Array: what a user holds in hand. Everything is looked up when it is needed; nothing is kept open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from windrow.api.cells import Cells
from windrow.api.selected import Selected, all_of, as_it_lies, check_memory
from windrow.errors import DataError, Error, UnknownNameError
from windrow.model.box import Box
from windrow.model.coordinates import coordinates_of
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.plan.nodes import Filter, Scan
from windrow.plan.scopes import CellScope
from windrow.plan.selections import by_either
from windrow.storage.dense.snapshots import DenseSnapshot
from windrow.storage.leases import Lease
from windrow.storage.working import dense_snapshot, sparse_snapshot
from windrow.views.location import Location, location_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    import xarray as xr
    from pyspark.sql import DataFrame

    from windrow.api.batch import Batch
    from windrow.api.batch_arguments import Grid
    from windrow.api.cells import Steps
    from windrow.api.database import Database
    from windrow.api.describe import Description
    from windrow.api.reports import Report
    from windrow.expressions.nodes import Node
    from windrow.operations.sparse.tasks import Duplicates
    from windrow.storage.records import ArrayRecord, ChunkStatistics, VersionRecord
    from windrow.storage.sparse import SparseSnapshot
    from windrow.storage.working import WorkingArray

Read = TypeVar("Read")

ATTEMPTS = 5
"""How often a reader that loses a version to a collection looks for the next one."""


class Array(Cells):
    """An array of a database: live, pinned to a version by ``at``, or as a batch has left it."""

    def __init__(
        self,
        database: Database,
        name: str,
        pinned: VersionRecord | None = None,
        record: ArrayRecord | None = None,
        batch: Batch | None = None,
    ) -> None:
        self._database = database
        self._name = name
        self._pinned = pinned
        self._known = record
        self._batch = batch

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
        working = self._working()
        return self._database.catalog.labels(self._version()) if working is None else dict(working.labels)

    @property
    def gridding(self) -> Gridding | None:
        text = self._record().gridding
        return None if text is None else Gridding.from_json(text)

    @property
    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        """What is known of each attribute beside its values, as it was given to ``create`` or found in a file."""
        return self._record().metadata

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

    def changes(self, before: int, after: int | None = None) -> pa.Table:
        """What distinguishes two versions: coordinates, ``change`` ("left" or "came") and attributes of each cell.

        A cell that was replaced is there twice; one that was written and is as it was is not there.
        """
        from windrow.api.changes import changes

        return changes(self._database, self._name, before, self.version if after is None else after)

    def chunks(self) -> ChunkStatistics:
        """The metadata of its chunks: ordinal, cells, stored bytes and bounds of each."""
        working, catalog = self._working(), self._database.catalog
        return (catalog.chunks(self._version()) if working is None else working.chunks(catalog)).merged()

    def location(self, version: int | None = None) -> Location:
        """Where xarray, DuckDB, Polars or Spark find a version (the newest by default) without windrow."""
        record = self._record()
        found = self._version() if version is None else self._database.catalog.version(record, version)
        return location_of(self._database.warehouse, record, found)

    def describe(self) -> Description:
        """Schema, size, chunks, labels and history in one view."""
        from windrow.api.describe import describe

        return describe(self._now())

    # Reading

    def read(self, attributes: Iterable[str] | None = None, /, **selection: object) -> xr.Dataset | pa.Table:
        """The selected cells: an xarray.Dataset if dense, a pyarrow.Table in coordinate order if sparse.

        It takes what is unmistakable: ``A.read(time=("2012-01-01", "2012-01-31"), lat=30.0)`` are labels, and integers
        are cells, both ends included, unless the labels are numbers. ``sel`` and ``isel`` say which is meant.
        ``A.read(["a"])`` reads one attribute.
        """
        return self._attempt(lambda now: now._chosen(selection).read(attributes))

    def batches(self, attributes: Iterable[str] | None = None, /, **selection: object) -> Iterator[pa.Table]:
        """The selected cells of a sparse array as a stream of tables, in no particular order."""
        if not self.sparse:
            raise DataError(f"array {self._name} is dense", hint="Use read(), to_xarray() or to_spark()")
        return self._attempt(lambda now: now._chosen(selection).batches(attributes))

    def to_xarray(self) -> xr.Dataset:
        """All of it as an xarray.Dataset: loaded lazily if dense, laid out on the grid if sparse."""
        from windrow.api.labelled import laid_out, opened

        now, lease = self._held()
        snapshot, bound = now._snapshot(), now._all().bind().bound
        if isinstance(snapshot, DenseSnapshot):
            return as_it_lies(bound, opened(snapshot, lease))  # type: ignore[no-any-return]
        check_memory(self._database.engine, self._name, 3 * snapshot.box.size * max(1, snapshot.schema.cell_bytes))
        with lease:
            found = laid_out(now._all().read_stored(), snapshot, now.labels, now._record().metadata)
        return as_it_lies(bound, found)  # type: ignore[no-any-return]

    def to_spark(self, **selection: object) -> DataFrame:
        """The selected cells as a lazy Spark DataFrame: dimensions and attributes as columns, missing as NULL."""
        return self._attempt(lambda now: now._chosen(selection).to_spark())

    def plot(self, path: str | Path, attribute: str | None = None, kind: str | None = None) -> Path:
        """A picture of it in a file: ``A.plot("a.png")``; see Query.plot."""
        return self._all().plot(path, attribute, kind)

    def _chosen(self, selection: Mapping[str, object]) -> Selected:
        """What is unmistakable. Reads are many and small, so that this looks at the array once."""
        schema, (scan, pinned) = self.schema, self._steps()
        coordinates = coordinates_of(schema, self.labels, self.gridding) if selection else {}
        scope = CellScope(schema, self.box, coordinates, schema.dimension_names)
        condition = by_either(scope, selection)
        if condition is None:
            return self._all()
        chosen = Selected(self._database, Filter(scan, condition), pinned, self._batch)
        return chosen.check(condition, schema.sparse)

    def _all(self) -> Selected:
        return all_of(self._database, *self._steps(), self._batch)

    def _steps(self) -> Steps:
        pinned = self._pinned
        scan = Scan(self._name, None if pinned is None else pinned.number)
        return scan, () if pinned is None else ((scan, (self._record(), pinned)),)

    # Writing

    def write(
        self,
        values: Any,
        at: Sequence[int] | Mapping[str, int] | None = None,
        labels: Mapping[str, Any] | None = None,
        batch: str | None = None,
    ) -> Report:
        """Write a box of values into a dense array, its first cell at ``at`` (by default the array's first).

        ``values`` is a mapping of attributes to ndarrays or DataArrays, one ndarray if there is one attribute, or an
        xarray.Dataset or DataArray; xarray's are placed by the names of their dimensions and by their coordinates.
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

    def _working(self) -> WorkingArray | None:
        """Its state in the batch that it is seen from, if the batch has touched it."""
        return None if self._batch is None else self._batch._known(self._name)

    def _record(self) -> ArrayRecord:
        working = self._working()
        return working.record if working is not None else self._known or self._database.catalog.array(self._name)

    def _now(self) -> Array:
        """This array at one version: what reads it in several steps must not meet two of them."""
        if self._pinned is not None or self._working() is not None:
            return self
        record, version = self._database.catalog.current(self._name)
        return Array(self._database, self._name, version, record)

    def _held(self) -> tuple[Array, Lease]:
        """This array at one version, which is not removed while the lease is held."""
        if self._working() is not None:  # which its lock protects
            return self, Lease()
        warehouse = self._database.warehouse
        return self._attempt(lambda now: (now, warehouse.hold([(now._record(), now._version())])))

    def _attempt(self, read: Callable[[Array], Read]) -> Read:
        """Read one version; for one that was given up before it could be held there is a newer one, unless pinned."""
        for _ in range(ATTEMPTS - 1):
            try:
                return read(self._now())
            except UnknownNameError:
                if self._pinned is not None or self._name not in self._database:
                    raise
        return read(self._now())

    def _version(self) -> VersionRecord:
        working = self._working()
        if working is not None:
            return working.version()
        return self._pinned or self._database.catalog.version(self._record())

    def _snapshot(self) -> DenseSnapshot | SparseSnapshot:
        """What reads it; whoever uses it has a lease."""
        working = self._working()
        if working is not None:
            return working.sparse() if working.record.sparse else working.dense()
        record, version = self._record(), self._version()
        open_ = sparse_snapshot if record.sparse else dense_snapshot
        return open_(self._database.warehouse, record, version)

    def _refuse_pinned(self) -> None:
        if self._batch is not None:
            raise DataError("inside a batch, the batch makes changes", got=self._name, hint="As in b.insert('A', …)")
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
