"""Sparse arrays: a Delta table with one row per cell.

windrow reads by the catalog's list of parts; the Delta log says the same to everybody else. The log is committed by
the driver alone, from what the tasks wrote.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.storage.cells import cell_fields, coordinates, from_stored, stored_fields
from windrow.storage.failures import store_failures
from windrow.storage.parts import PartReader
from windrow.storage.records import Part, parts_touching

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_CONFIGURATION = {
    "delta.checkpointInterval": "10",
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
        return list(self.parts) if box is None else parts_touching(self.parts, box)

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

    def create(self, schema: Schema, name: str) -> str:
        from deltalake import DeltaTable

        with store_failures(f"the array's store {self.path}"):
            Path(self.path).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(self.path, stored_fields(schema), name=name, configuration=_CONFIGURATION)
        return "0"

    def recover(self, pointer: str) -> None:
        """Make the log's head say what the published version says: a writer that died may have left it ahead."""
        with store_failures("the array's log"):
            if self._head(int(pointer)) != int(pointer):
                self._open().restore(int(pointer))

    def commit(self, schema: Schema, added: Sequence[Part], removed: Sequence[Part], message: str) -> str:
        """Write one log entry that adds and removes parts: a new pointer, which nobody sees before it is published."""
        from deltalake.transaction import CommitProperties

        with store_failures("the array's log"):
            table = self._open()
            actions: list[AddAction | RemoveAction] = [*(_add(part, schema) for part in added), *map(_remove, removed)]
            properties = CommitProperties(custom_metadata={"windrow": message})
            table.create_write_transaction(actions, "append", stored_fields(schema), commit_properties=properties)
            return str(self._head(table.version()))

    def _open(self) -> DeltaTable:
        from deltalake import DeltaTable  # here, because only writers of sparse arrays need it

        return DeltaTable(self.path)

    def _head(self, known: int) -> int:
        """The log's last version, looked for from a known one on: opening the table again would list all its parts."""
        log = Path(self.path, "_delta_log")
        if not (log / f"{known:020}.json").exists():
            return self._open().version()
        while (log / f"{known + 1:020}.json").exists():
            known += 1
        return known

    def discard(self, parts: Iterable[Part]) -> None:
        """Remove parts that will not be published."""
        for part in parts:
            Path(self.path, part.path).unlink(missing_ok=True)

    def collect(self, kept: set[str]) -> int:
        """Remove every part that is not among ``kept``; returns the bytes freed."""
        freed = 0
        for file in Path(self.path).glob("*.parquet"):
            if file.name not in kept:
                freed += file.stat().st_size
                file.unlink()
        return freed


def _add(part: Part, schema: Schema) -> AddAction:
    from deltalake.transaction import AddAction

    assert part.chunks is not None
    names = (CHUNK_COLUMN, *schema.dimension_names)
    lows = (int(part.chunks.ordinals.min()), *part.box.lo)
    highs = (int(part.chunks.ordinals.max()), *part.box.hi)
    statistics = {
        "numRecords": part.cells,
        "minValues": dict(zip(names, lows, strict=True)),
        "maxValues": dict(zip(names, highs, strict=True)),
        "nullCount": dict.fromkeys(names, 0),
    }
    return AddAction(part.path, part.bytes, {}, int(time.time() * 1000), True, json.dumps(statistics))


def _remove(part: Part) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(part.path, data_change=True, deletion_timestamp=int(time.time() * 1000), size=part.bytes)
