"""Patching a sparse array: some cells come or are replaced, others go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.operations.sparse.insert import write_parts
from windrow.operations.sparse.lookup import common_chunks, live_rows_among, mark_replaced
from windrow.operations.sparse.tasks import refuse_duplicates
from windrow.storage.cells import cell_fields, from_stored
from windrow.storage.chunks.index import row_starts
from windrow.storage.parts import PartReader
from windrow.storage.records import ChunkStatistics, Part
from windrow.storage.sparse import SparseStore
from windrow.storage.upkeep.working_parts import add_run, indexes_of, mark_rows
from windrow.storage.working import WorkingArray

Int64Array = npt.NDArray[np.int64]


def patch_cells(engine: Engine, working: WorkingArray, cells: pa.Table, gone: Sequence[Int64Array]) -> None:
    """Put cells in the place of those at their coordinates, and remove those at the coordinates ``gone``."""
    executor = engine.local
    remove_at(executor, working, gone)
    _write(executor, working, cells, replacing=True)


def _write(executor: Executor, working: WorkingArray, cells: pa.Table, *, replacing: bool) -> None:
    if not cells.num_rows:
        return
    receipts = write_parts(executor, working, cells, "error")
    written = [part for receipt in receipts for part in receipt.parts]
    try:
        refuse_duplicates(receipts, working.schema)
        if replacing:
            mark_replaced(executor, working, written)
    except BaseException:
        SparseStore(working.path).discard(written)
        raise
    add_run(working, written)


@dataclass(frozen=True, eq=False)
class Found:
    """The stored cells at some coordinates, and the rows that they are in, part after part."""

    cells: pa.Table
    rows: tuple[tuple[Part, Int64Array], ...]


def look_up(executor: Executor, working: WorkingArray, at: Sequence[Int64Array]) -> Found:
    """The cells at given coordinates, as far as they are there, with all their attributes."""
    found = [(part, rows) for part, rows in find_rows(executor, working, at) if len(rows)]
    tables = [from_stored(working.reader.take(part, rows), working.schema) for part, rows in found]
    return Found(pa.concat_tables([cell_fields(working.schema).empty_table(), *tables]), tuple(found))


def replace_found(
    executor: Executor, working: WorkingArray, found: Found, dead: npt.NDArray[np.bool_], cells: pa.Table
) -> None:
    """Put cells in the place of those of the found ones that are ``dead`` from now on, and of no others."""
    begin = 0
    for part, rows in found.rows:
        mark_rows(working, working.parts[part.path], rows[dead[begin : begin + len(rows)]])
        begin += len(rows)
    _write(executor, working, cells, replacing=False)


@dataclass(frozen=True, eq=False)
class FindAt:
    """A task: the rows of ``part`` that lie at given coordinates.

    The rows of chunk ``ordinals[i]`` are those from ``starts[i]`` up to ``stops[i]``. Coordinates are given by keys:
    the place of their chunk among these, and where they lie in it.
    """

    reader: PartReader
    part: Part
    ordinals: Int64Array
    starts: Int64Array
    stops: Int64Array
    keys: Int64Array


def find_at(task: FindAt) -> Int64Array:
    return live_rows_among(task, task.keys)


def remove_at(executor: Executor, working: WorkingArray, at: Sequence[Int64Array]) -> int:
    """Let the cells at given coordinates be dead; returns how many there were."""
    found = find_rows(executor, working, at)
    for part, dead in found:
        mark_rows(working, working.parts[part.path], dead)
    return sum(len(dead) for _, dead in found)


def find_rows(executor: Executor, working: WorkingArray, at: Sequence[Int64Array]) -> list[tuple[Part, Int64Array]]:
    """The live rows of each part that lie at given coordinates; only chunks in which such lie are looked at."""
    if not len(at[0]):
        return []
    grid = working.schema.grid
    ordinals, offsets = grid.ordinals(at), grid.offsets(at)
    wanted = _chunks_of(ordinals, at)
    first, last = int(wanted.ordinals[0]), int(wanted.ordinals[-1])
    older = [part for part in working.parts.values() if part.live and part.first <= last and part.last >= first]
    tasks = []
    for part, index in zip(older, indexes_of(working, older), strict=True):
        places, _ = common_chunks(index, wanted)
        if len(places):
            borders, own = row_starts(index), index.ordinals[places]
            found = np.searchsorted(own, ordinals)
            found[found == len(own)] = 0
            here = own[found] == ordinals
            keys = np.sort(found[here] * grid.chunk_cells + offsets[here])
            rows = borders[places], borders[places + 1]
            tasks.append(FindAt(working.reader, replace(part, chunks=None), own, *rows, keys))
    found_rows = executor.run(Job(f"looking cells of {working.record.name} up", find_at, tasks))
    return [(task.part, rows) for task, rows in zip(tasks, found_rows, strict=True)]


def _chunks_of(ordinals: Int64Array, at: Sequence[Int64Array]) -> ChunkStatistics:
    """The chunks in which coordinates lie, with the bounds of those in each."""
    order = np.argsort(ordinals, kind="stable")
    starts = np.flatnonzero(np.diff(ordinals[order], prepend=-1))
    lows = np.stack([np.minimum.reduceat(column[order], starts) for column in at], axis=1)
    highs = np.stack([np.maximum.reduceat(column[order], starts) for column in at], axis=1)
    counts = np.diff(np.append(starts, len(order)))
    return ChunkStatistics(ordinals[order][starts], counts, counts, lows, highs, np.zeros(len(starts), np.int64))
