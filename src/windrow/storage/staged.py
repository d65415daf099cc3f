"""Staged cells: what a batch did to an array, chunk by chunk in a file beside its parts, for tasks that need some.

The file is there for as long as the job that reads it. If the process dies before, a collection removes it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from windrow.errors import CorruptionError
from windrow.model.schema import Schema
from windrow.storage.cells import cell_fields
from windrow.storage.chunks.reading import chunk_statistics, split_chunks
from windrow.storage.failures import store_failures
from windrow.storage.sparse import STAGED


class ChunkChange(NamedTuple):
    """The cells that left a chunk, with the values they had, and those that came to it."""

    left: pa.Table
    came: pa.Table


@dataclass(frozen=True)
class Staged:
    """A file of changes: two batches of cells for each chunk, those that left and those that came. It pickles."""

    path: str
    schema: Schema
    places: Mapping[int, int] = field(default_factory=dict)
    """Of each chunk the number of its first batch."""

    def __contains__(self, ordinal: int) -> bool:
        return ordinal in self.places

    def read(self, ordinals: Iterable[int]) -> dict[int, ChunkChange]:
        """The changes of some chunks; those of a chunk that did not change are empty."""
        fields, found = cell_fields(self.schema), {}
        empty = fields.empty_table()
        wanted = list(ordinals)
        if not any(ordinal in self.places for ordinal in wanted):
            return {ordinal: ChunkChange(empty, empty) for ordinal in wanted}
        try:
            with pa.memory_map(self.path) as source, pa.ipc.open_file(source) as reader:
                for ordinal in wanted:
                    first = self.places.get(ordinal)
                    if first is None:
                        found[ordinal] = ChunkChange(empty, empty)
                    else:
                        batches = (reader.get_batch(number) for number in (first, first + 1))
                        found[ordinal] = ChunkChange(*(pa.Table.from_batches([batch]) for batch in batches))
        except (OSError, pa.ArrowException) as error:
            raise CorruptionError("what a batch changed cannot be read", got=f"{self.path}: {error}") from error
        return found

    def remove(self) -> None:
        if self.path:
            Path(self.path).unlink(missing_ok=True)


def stage(directory: str, schema: Schema, left: pa.Table, came: pa.Table) -> Staged:
    """Write a change into the folder of an array's store."""
    fields = cell_fields(schema)
    both = [chunk_statistics(table, schema).ordinals for table in (left, came)]
    ordinals = np.union1d(*both)
    if not len(ordinals):
        return Staged("", schema)
    pieces = [split_chunks(table.select(fields.names).cast(fields), schema, ordinals) for table in (left, came)]
    path = os.path.join(directory, f"{uuid.uuid4().hex}{STAGED}")
    with store_failures("a file of changes"), pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, fields) as writer:
        for ordinal in ordinals.tolist():
            for tables in pieces:
                writer.write_batch(_one_batch(tables[ordinal], fields))
    return Staged(path, schema, {ordinal: 2 * number for number, ordinal in enumerate(ordinals.tolist())})


def _one_batch(table: pa.Table, fields: pa.Schema) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], fields)
