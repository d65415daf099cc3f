"""SQL for consoles: files as tables, and what a statement gives, its first rows or all of them piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.dataframes.sessions import collect_table
from windrow.errors import DataError, Error, FileFormatError
from windrow.execution.spark import explain_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.api.database import Database

_LABEL = "computing a SQL query"
_NAME = re.compile(r"[A-Za-z_]\w*")
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, eq=False)
class SqlResult:
    """A lazy table of Spark's, and the connection that it came through."""

    database: Database
    frame: DataFrame

    @property
    def is_text(self) -> bool:
        """Whether it is a text rather than a table: what ``explain`` gives."""
        return list(self.frame.columns) == ["plan"]

    def head(self, rows: int) -> pa.Table:
        """The first rows, in the order that the query gives them."""
        return collect_table(self.frame.limit(rows), _LABEL)

    def batches(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """All rows, a part of them in memory at a time."""
        return self.head(0).schema, self._stream()

    def _stream(self) -> Iterator[pa.RecordBatch]:
        packed = self.frame.mapInArrow(_pack, "packed binary")
        try:
            for row in packed.toLocalIterator():
                yield from pa.ipc.open_stream(row[0])
        except Exception as failure:
            raise explain_failure(_LABEL, failure) from failure


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function that workers run: each batch as one value."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed: Any = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.record_batch([packed], names=["packed"])


def run_sql(database: Database, text: str) -> SqlResult | None:
    """Carry out one SQL statement; None if it has nothing to show."""
    frame = database.sql(text)
    return SqlResult(database, frame) if frame.columns else None


def register_table(database: Database, name: str, path: str) -> None:
    """Make a file, or a folder of files, known to SQL queries by a name."""
    if not _NAME.fullmatch(name):
        raise DataError("a table's name is a word", got=repr(name), hint="As in t=flights.parquet")
    if name in database:
        raise DataError("an array has that name", got=repr(name), hint="Give the table another name")
    place = Path(path)
    if not place.exists():
        raise FileFormatError("there is no such file", got=repr(path))
    session = database.engine.spark().session
    try:
        _read(session, place.absolute()).createOrReplaceTempView(name)
    except Error:
        raise
    except Exception as failure:
        told = next((line.strip() for line in str(failure).splitlines() if line.strip()), type(failure).__name__)
        raise FileFormatError(f"{place} cannot be read as a table", got=told[:200]) from failure


def _read(session: SparkSession, place: Path) -> DataFrame:
    from windrow.storage.foreign_delta import delta_files, is_delta_table

    if is_delta_table(place):
        return session.read.option("basePath", str(place)).parquet(*delta_files(place))
    suffix = place.suffix.lower()
    if suffix in _DELIMITERS:
        reader = session.read.option("header", True).option("inferSchema", True)
        return reader.option("sep", _DELIMITERS[suffix]).csv(str(place))
    if suffix in (".parquet", ".pq") or (place.is_dir() and any(place.rglob("*.parquet"))):
        return session.read.parquet(str(place))
    hint = "Tables are Parquet (.parquet), CSV (.csv, .tsv), or folders of Parquet files or of a Delta table"
    raise FileFormatError("this is no table that windrow can read", got=repr(str(place)), hint=hint)
