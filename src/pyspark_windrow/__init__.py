"""``format("windrow")`` in Spark: arrays to read from, to write to, and to stream into.

Spark looks for packages whose names begin with ``pyspark_`` and takes their ``DefaultSource``, so that any session
whose Python has windrow knows the format. What this package names is called by Python processes of Spark's own.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)

from windrow.errors import CorruptionError, DataError, SchemaError

if TYPE_CHECKING:
    from windrow.api.array import Array
    from windrow.api.database import Database
    from windrow.operations.dataframes import BlockRows, PartRows
    from windrow.storage.records import Versioned

INCOMING = "incoming"
"""The folder of a warehouse in which rows wait until all tasks have written theirs."""
_OPTIONS = ("path", "version", "batch", "on_duplicate", "catalog")
_SPARKS_OWN = ("checkpointlocation", "querytype")


@dataclass(frozen=True)
class Target:
    """What ``load`` or ``save`` names, and the options that came with it."""

    warehouse: str
    array: str
    version: int | None = None
    batch: str | None = None
    on_duplicate: str | None = None
    catalog: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Target:
        given = {name.lower(): value for name, value in options.items()}
        for name in given:
            if name not in (*_OPTIONS, *_SPARKS_OWN):
                raise DataError("no such option of windrow", got=name, hint=f"Known: {', '.join(_OPTIONS)}")
        path = given.get("path", "").rstrip("/")
        warehouse, _, array = path.removeprefix("file:").rpartition("/")
        array, _, number = array.partition("@")
        number = number or given.get("version", "")
        if not warehouse or not array or not (number == "" or number.isdecimal()):
            raise DataError(
                "not the path of an array", got=repr(path), hint='As in load("warehouse/A"), or "warehouse/A@3"'
            )
        batch = given.get("batch") or given.get("checkpointlocation")
        version = int(number) if number else None
        return cls(warehouse, array, version, batch, given.get("on_duplicate"), given.get("catalog"))

    def connect(self) -> Database:
        """A connection that works in this process: Spark has started it for one step of its own."""
        import windrow

        return windrow.connect(self.warehouse, engine="local", progress=False, catalog=self.catalog, create=False)

    def open(self, database: Database) -> Array:
        array = database.array(self.array)
        return array if self.version is None else array.at(version=self.version)


class DefaultSource(DataSource):
    """What Spark asks for, by name, when a user writes ``format("windrow")``."""

    @classmethod
    def name(cls) -> str:
        return "windrow"

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        from windrow.operations.dataframes import frame_fields

        target = Target.of(self.options)
        with target.connect() as database:
            return from_arrow_schema(frame_fields(target.open(database).schema))

    def reader(self, schema: Any) -> ArrayReader:
        return ArrayReader(Target.of(self.options), tuple(schema.names))

    def writer(self, schema: Any, overwrite: bool) -> ArrayWriter:
        return ArrayWriter(Incoming.into(Target.of(self.options), overwrite))

    def streamWriter(self, schema: Any, overwrite: bool) -> ArrayStreamWriter:  # noqa: N802
        return ArrayStreamWriter(Incoming.into(Target.of(self.options), overwrite))


class CellTask(InputPartition):
    """The cells of one block, or of one part, and the versions that they are of."""

    def __init__(self, value: BlockRows | PartRows, warehouse: str, versions: tuple[Versioned, ...]) -> None:
        super().__init__(value)
        self.warehouse = warehouse
        self.versions = versions
        self.planned = time.time()


class ArrayReader(DataSourceReader):
    """Reads the version that was current when the query was planned.

    Spark plans in a process of its own that ends then, and its tasks are others': no lease of theirs would last.
    """

    def __init__(self, target: Target, columns: tuple[str, ...]) -> None:
        self.target = target
        self.columns = columns

    def partitions(self) -> list[CellTask]:
        from windrow.operations.dataframes import row_tasks

        with self.target.connect() as database:
            query = self.target.open(database).isel().bind()
            bound: Any = query.bound
            place, versions = str(database.warehouse.root), query.lease.versions
            database.warehouse.promise(versions)
            return [CellTask(task, place, versions) for task in row_tasks(bound.snapshot)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from windrow.operations.dataframes import task_rows
        from windrow.storage.leases import PROMISED_SECONDS

        if not isinstance(partition, CellTask):
            return
        if time.time() > partition.planned + PROMISED_SECONDS / 2:
            with self._connect(partition) as database:
                database.warehouse.promise(partition.versions)
        try:
            for batch in task_rows(partition.value):
                yield batch.select(list(self.columns))
        except CorruptionError:  # or a version that was given up, which is another matter
            with self._connect(partition) as database:
                database.warehouse.check_offered(partition.versions)
            raise

    def _connect(self, task: CellTask) -> Database:
        return replace(self.target, warehouse=task.warehouse).connect()


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The file that one task wrote, or none if it had no rows."""

    path: str | None


@dataclass(frozen=True)
class Incoming:
    """Rows on their way into an array: each task leaves a file, and the last step inserts all of them as one batch."""

    target: Target
    folder: str
    overwrite: bool

    @classmethod
    def into(cls, target: Target, overwrite: bool) -> Incoming:
        with target.connect() as database:
            array = target.open(database)
            if target.version is not None:
                raise DataError("an old version cannot be changed", got=f"{target.array}@{target.version}")
            if overwrite and not array.sparse:
                raise SchemaError(
                    "the cells of a dense array cannot be removed",
                    got='mode("overwrite")',
                    hint='Use mode("append"), which sets the cells that come',
                )
            folder = os.path.join(os.path.abspath(target.warehouse), INCOMING, uuid.uuid4().hex)
        return cls(target, folder, overwrite)

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        """Write the rows of one task. An attempt that Spark gives up leaves a file that no message names."""
        import pyarrow.parquet as pq

        path = os.path.join(self.folder, f"{uuid.uuid4().hex}.parquet")
        writer = None
        try:
            for batch in batches:
                if batch.num_rows:
                    if writer is None:
                        os.makedirs(self.folder, exist_ok=True)
                        writer = pq.ParquetWriter(path, batch.schema)
                    writer.write_batch(batch)
        finally:
            if writer is not None:
                writer.close()
        return Staged(None if writer is None else path)

    def insert(self, messages: list[WriterCommitMessage | None], batch: str | None) -> None:
        """All files as one version: views follow, and a batch that was applied before is passed over."""
        files = [message.path for message in messages if isinstance(message, Staged) and message.path is not None]
        try:
            with self.target.connect() as database, database.batch(batch) as changes:
                if self.overwrite:
                    changes.delete(self.target.array)
                if files:
                    changes.insert(self.target.array, _read(files), self.target.on_duplicate)  # type: ignore[arg-type]
        finally:
            self.remove(messages)

    def remove(self, messages: list[WriterCommitMessage | None]) -> None:
        """Take the files away again. A stream's last step is told by messages alone where its tasks wrote."""
        paths = [message.path for message in messages if isinstance(message, Staged) and message.path is not None]
        for folder in {self.folder, *map(os.path.dirname, paths)}:
            shutil.rmtree(folder, ignore_errors=True)


def _read(files: list[str]) -> pa.Table:
    import pyarrow.parquet as pq

    return pa.concat_tables([pq.read_table(file) for file in files])


class ArrayWriter(DataSourceArrowWriter):
    """``df.write``: one batch."""

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return self.incoming.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.incoming.insert(messages, self.incoming.target.batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.incoming.remove(messages)


class ArrayStreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream``: a batch for each of the stream's, each of which is applied once."""

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return self.incoming.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        name = self.incoming.target.batch
        self.incoming.insert(messages, None if name is None else f"{name} {batchId}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self.incoming.remove(messages)
