"""Sparse arrays: a Delta table with one row per cell.

windrow reads by the catalog's list of parts; the Delta log says the same to everybody else. The log is committed by
the driver alone, from what the tasks wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from windrow.errors import CorruptionError
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.storage.cells import cell_fields, coordinates, from_stored, stored_fields
from windrow.storage.delta.log import CHECKPOINT_ENTRIES, PACKAGE, DeltaLog, Entry
from windrow.storage.delta.vectors import is_vectors_file
from windrow.storage.failures import store_failures
from windrow.storage.parts import PartReader
from windrow.storage.records import Part, parts_touching
from windrow.storage.runtimes import use_runtime

_CONFIGURATION = {
    "delta.checkpointInterval": str(CHECKPOINT_ENTRIES),
    # The catalog decides which versions can still be read; Delta's own clean-up must not take them away.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


@dataclass(frozen=True)
class SparseSnapshot:
    """One version of a sparse array, readable here or on a worker (it pickles)."""

    title: str
    path: str
    schema: Schema
    hi: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def box(self) -> Box:
        return self.schema.box(self.hi)

    @property
    def reader(self) -> PartReader:
        return PartReader(self.title, self.path, self.schema)

    def touching(self, box: Box | None) -> list[Part]:
        return [part for part in self.parts if part.live] if box is None else parts_touching(self.parts, box)

    def columns(self, attributes: Iterable[str] | None = None) -> list[str]:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        return [*self.schema.dimension_names, *(self.schema.attribute(name).name for name in names)]

    def batches(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> Iterator[pa.Table]:
        """The cells in ``box``, a row group at a time, in no particular order."""
        columns = self.columns(attributes)
        for part in self.touching(box):
            for table in self.reader.batches(part, box, columns):
                yield from_stored(table, self.schema)

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None, threads: int = 1) -> pa.Table:
        """The cells in ``box`` as one table, in the order of their coordinates."""
        columns = self.columns(attributes)
        parts = self.touching(box)
        with ThreadPoolExecutor(max(1, threads)) as pool:
            tables = list(pool.map(lambda part: self.reader.read(part, box, columns), parts))
        fields = cell_fields(self.schema)
        empty = pa.schema([fields.field(name) for name in columns]).empty_table()
        return _in_coordinate_order(pa.concat_tables([empty, *tables]), self.schema)


def _in_coordinate_order(table: pa.Table, schema: Schema) -> pa.Table:
    table = table.combine_chunks()
    if table.num_rows < 2:
        return table
    at = coordinates(table, schema)
    lows = [int(column.min()) for column in at]
    spans = [int(column.max()) - lo + 1 for column, lo in zip(at, lows, strict=True)]
    if np.prod(np.array(spans, dtype=float)) < 2**62:
        key = np.zeros(table.num_rows, np.int64)
        for column, lo, span in zip(at, lows, spans, strict=True):
            key = key * span + (column - lo)
        order = np.argsort(key, kind="stable")  # which makes use of the order inside chunks
    else:
        order = np.lexsort(at[::-1])
    return table.take(pa.array(order))


class SparseStore:
    """The writing side of one sparse array. Its caller holds the array's lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.log = DeltaLog(path)

    def create(self, schema: Schema, name: str) -> str:
        from deltalake import DeltaTable

        use_runtime(PACKAGE)
        with store_failures(f"the array's store {self.path}"):
            Path(self.path).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(self.path, stored_fields(schema), name=name, configuration=_CONFIGURATION)
        return "0"

    def recover(self, pointer: str) -> str:
        """Make the log's head say what the published version says: a writer that died may have left it ahead.

        Returns the pointer to build on.
        """
        use_runtime(PACKAGE)
        with store_failures(f"the log of the array's store {self.path}"):
            return str(self.log.recover(_version(pointer)))

    def commit(self, schema: Schema, pointer: str, entry: Entry) -> str:
        """Write one log entry behind a pointer: a new pointer, which nobody sees before it is published."""
        with store_failures(f"the log of the array's store {self.path}"):
            return str(self.log.append(schema, _version(pointer), entry))

    def discard(self, parts: Iterable[Part]) -> None:
        """Remove parts that will not be published."""
        for part in parts:
            Path(self.path, part.path).unlink(missing_ok=True)

    def collect(self, kept: set[str], oldest: str) -> int:
        """Remove every part and vectors file that is not among ``kept``, and the log before the oldest version that
        is; returns the bytes freed."""
        freed = 0
        with store_failures(f"the array's store {self.path}"):
            for file in Path(self.path).iterdir():
                ours = file.name.endswith(".parquet") or is_vectors_file(file.name)
                if ours and file.name not in kept:
                    freed += file.lstat().st_size
                    file.unlink()
            return freed + self.log.collect(_version(oldest))


def _version(pointer: str) -> int:
    if not (pointer.isdecimal() and len(pointer) < 16):
        raise CorruptionError("the catalog is damaged: it names a version of the array's log", got=repr(pointer))
    return int(pointer)
