"""Sparse arrays: a Delta table with one row per cell.

windrow reads by the catalog's list of parts; the Delta log says the same to everybody else. The log is committed by
the driver alone, from what the tasks wrote.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from windrow.errors import CorruptionError
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.storage.cells import cell_fields, from_stored, in_coordinate_order, stored_fields
from windrow.storage.delta.log import CHECKPOINT_ENTRIES, PACKAGE, DeltaLog, Entry
from windrow.storage.delta.vectors import is_vectors_file
from windrow.storage.failures import store_failures
from windrow.storage.parts import PartReader
from windrow.storage.records import Int64Array, Part, parts_touching
from windrow.storage.runtimes import use_runtime

STAGED = ".staged"
"""How the names of files end that only the tasks of a batch under way read."""

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

    def read(
        self,
        box: Box | None = None,
        attributes: Iterable[str] | None = None,
        threads: int = 1,
        chunks: Int64Array | None = None,
    ) -> pa.Table:
        """The cells in ``box``, and in some chunks (ascending) if these are told, in the order of their coordinates."""
        columns = self.columns(attributes)
        parts = self.touching(box)
        read = functools.partial(self.reader.read, box=box, columns=columns, chunks=chunks)
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                tables = list(pool.map(read, parts))
        else:  # as in a task, which has a thread already
            tables = list(map(read, parts))
        fields = cell_fields(self.schema)
        empty = pa.schema([fields.field(name) for name in columns]).empty_table()
        return in_coordinate_order(pa.concat_tables([empty, *tables]), self.schema)


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
        """Remove every part, vectors and staged file that is not among ``kept``, and the log before the oldest version
        that is; returns the bytes freed."""
        freed = 0
        with store_failures(f"the array's store {self.path}"):
            for file in Path(self.path).iterdir():
                ours = file.name.endswith((".parquet", STAGED)) or is_vectors_file(file.name)
                if ours and file.name not in kept:
                    freed += file.lstat().st_size
                    file.unlink()
            return freed + self.log.collect(_version(oldest))


def _version(pointer: str) -> int:
    if not (pointer.isdecimal() and len(pointer) < 16):
        raise CorruptionError("the catalog is damaged: it names a version of the array's log", got=repr(pointer))
    return int(pointer)
