"""Whole chunks of a sparse array, many at a time: each row group that holds any of them is decoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from windrow.model.schema import Schema
from windrow.storage.cells import CellKeys, cell_fields, coordinates, from_stored
from windrow.storage.parts import PartReader
from windrow.storage.records import ChunkStatistics, Int64Array, Part
from windrow.storage.sparse import SparseSnapshot


def read_chunks(snapshot: SparseSnapshot, ordinals: Int64Array) -> dict[int, pa.Table]:
    """The live cells of some chunks (ordinals ascending), in the order of their coordinates; empty ones included."""
    tables = [cell_fields(snapshot.schema).empty_table()]
    if len(ordinals):
        for part in snapshot.parts:
            if part.live and part.first <= ordinals[-1] and part.last >= ordinals[0]:
                tables += _read_part(snapshot.reader, part, ordinals)
    return split_chunks(pa.concat_tables(tables), snapshot.schema, ordinals)


def _read_part(reader: PartReader, part: Part, ordinals: Int64Array) -> Iterator[pa.Table]:
    for table in reader.chunk_batches(part, ordinals):
        yield from_stored(table, reader.schema)


def split_chunks(table: pa.Table, schema: Schema, ordinals: Sequence[int] | Int64Array) -> dict[int, pa.Table]:
    """The cells of each chunk, in the order of their coordinates; a chunk without cells has an empty table."""
    keys = CellKeys(schema.grid, coordinates(table, schema))
    if not keys.is_sorted():
        order = keys.order()
        keys.take(order)
        table = table.take(pa.array(order))
    table = table.combine_chunks()
    wanted = np.asarray(ordinals, np.int64)
    starts, stops = np.searchsorted(keys.ordinals, wanted, "left"), np.searchsorted(keys.ordinals, wanted, "right")
    ends = zip(wanted.tolist(), starts.tolist(), stops.tolist(), strict=True)
    return {ordinal: table.slice(start, stop - start) for ordinal, start, stop in ends}


def chunk_statistics(table: pa.Table, schema: Schema) -> ChunkStatistics:
    """What a table of cells holds, chunk by chunk in the order of ordinals."""
    if not table.num_rows:
        return ChunkStatistics.empty(schema.ndim)
    at = coordinates(table, schema)
    ordinals = schema.grid.ordinals(at)
    order = np.argsort(ordinals, kind="stable")
    starts = np.flatnonzero(np.diff(ordinals[order], prepend=-1))
    counts = np.diff(np.append(starts, len(order)))
    lo = np.stack([np.minimum.reduceat(column[order], starts) for column in at], axis=1)
    hi = np.stack([np.maximum.reduceat(column[order], starts) for column in at], axis=1)
    return ChunkStatistics(ordinals[order][starts], counts, np.zeros(len(starts), np.int64), lo, hi)
