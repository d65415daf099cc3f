"""Which stored cells new ones replace: found by what is known of chunks, then by the keys of the chunks in common."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from windrow.execution.executor import Executor, Job
from windrow.storage.cells import coordinates
from windrow.storage.chunks.index import row_starts
from windrow.storage.part_writing import GROUP_CELLS
from windrow.storage.parts import PartReader
from windrow.storage.records import ChunkStatistics, Int64Array, Part
from windrow.storage.upkeep.working_parts import indexes_of, mark_rows
from windrow.storage.working import WorkingArray

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FindReplaced:
    """A task: the rows of ``part`` that are cells of ``newer`` parts too, in the chunks that both have.

    The rows of chunk ``ordinals[i]`` are those from ``starts[i]`` up to ``stops[i]``.
    """

    reader: PartReader
    part: Part
    newer: tuple[Part, ...]
    ordinals: Int64Array
    starts: Int64Array
    stops: Int64Array


def mark_replaced(executor: Executor, working: WorkingArray, written: Sequence[Part]) -> int:
    """Let the stored cells be dead that newly written parts bring again; returns how many there were."""
    tasks = _tasks(working, written)
    if not tasks:
        return 0
    memory = 4 * GROUP_CELLS * 8 * (working.schema.ndim + 2) + 32 * max(part.cells for part in written)
    found = executor.run(Job(f"replacing cells of {working.record.name}", find_replaced, tasks, memory))
    for task, rows in zip(tasks, found, strict=True):
        mark_rows(working, working.parts[task.part.path], rows)
    return sum(map(len, found))


def _tasks(working: WorkingArray, written: Sequence[Part]) -> list[FindReplaced]:
    pieces = [part.chunks for part in written if part.chunks is not None]
    new = ChunkStatistics.concatenate(pieces, working.schema.ndim).merged()
    if not len(new):
        return []
    first, last = int(new.ordinals[0]), int(new.ordinals[-1])
    older = [part for part in working.parts.values() if part.live and part.first <= last and part.last >= first]
    tasks = []
    for part, index in zip(older, indexes_of(working, older), strict=True):
        places, common = common_chunks(index, new)
        if len(places):
            borders = row_starts(index)
            ends = new.ordinals[common[0]], new.ordinals[common[-1]]
            newer = tuple(replace(p, chunks=None) for p in written if p.first <= ends[1] and p.last >= ends[0])
            rows = borders[places], borders[places + 1]
            tasks.append(FindReplaced(working.reader, replace(part, chunks=None), newer, index.ordinals[places], *rows))
    return tasks


def common_chunks(index: ChunkStatistics, new: ChunkStatistics) -> tuple[Int64Array, Int64Array]:
    """Places of the chunks that two lists have in common and in which cells of both may meet."""
    first, last = np.searchsorted(new.ordinals, (index.ordinals[0], index.ordinals[-1] + 1))
    ordinals = new.ordinals[first:last]
    places = np.searchsorted(index.ordinals, ordinals)  # none lies behind the last
    common = np.flatnonzero((index.ordinals[places] == ordinals) & (index.cells[places] > 0))
    places, common = places[common], common + first
    meeting = (index.lo[places] <= new.hi[common]) & (index.hi[places] >= new.lo[common])
    chosen = meeting.all(axis=1)
    return places[chosen], common[chosen]


def find_replaced(task: FindReplaced) -> Int64Array:
    """The numbers of the live rows that newer cells replace."""
    wanted = np.concatenate([_keys_in(task, part) for part in task.newer])
    return live_rows_among(task, np.sort(wanted) if len(task.newer) > 1 else wanted)


class RowsOfChunks(Protocol):
    """Some chunks of a part, and where their rows are."""

    @property
    def reader(self) -> PartReader: ...
    @property
    def part(self) -> Part: ...
    @property
    def starts(self) -> Int64Array: ...
    @property
    def stops(self) -> Int64Array: ...


def live_rows_among(task: RowsOfChunks, wanted: Int64Array) -> Int64Array:
    """The numbers of the live rows with a key among sorted ones; only row groups with such a chunk are decoded."""
    rows, chunks = _rows_between(task.starts, task.stops)
    keys = chunks * task.reader.schema.grid.chunk_cells + task.reader.offsets(task.part, rows)
    # The rows of a part are in the order of their keys, so that either list can be looked up in the other.
    if len(wanted) < len(keys):
        places, there = _look_up(keys, wanted)
        found = rows[places[there]]
    else:
        found = rows[_look_up(wanted, keys)[1]]
    return found[~_look_up(task.reader.dead_rows(task.part), found)[1]]


def _rows_between(starts: Int64Array, stops: Int64Array) -> tuple[Int64Array, Int64Array]:
    """All row numbers of several ranges, and which range each is of."""
    counts = stops - starts
    numbers = np.arange(counts.sum())
    ranges = np.repeat(np.arange(len(counts)), counts)
    numbers += (starts - np.cumsum(counts) + counts)[ranges]
    return numbers, ranges


def _look_up(sorted_: npt.NDArray[np.integer], values: Int64Array) -> tuple[npt.NDArray[np.intp], Bools]:
    """Where values are among sorted ones, and whether they are there at all."""
    if not len(sorted_):
        return np.zeros(len(values), np.intp), np.zeros(len(values), bool)
    places = np.searchsorted(sorted_, values)
    places[places == len(sorted_)] = 0
    return places, sorted_[places] == values


def _keys_in(task: FindReplaced, part: Part) -> Int64Array:
    """The keys of a new part's cells in the chunks in common: chunks are renumbered, so that a key fits int64."""
    ordinals, offsets = _cells_of(task.reader, part)
    ends = (np.searchsorted(ordinals, task.ordinals, side) for side in ("left", "right"))
    rows, chunks = _rows_between(*ends)
    keys: Int64Array = chunks * task.reader.schema.grid.chunk_cells + offsets[rows]
    return keys


@functools.lru_cache(4)
def _cells_of(reader: PartReader, part: Part) -> tuple[Int64Array, Int64Array]:
    """(chunks, offsets in them) of a part's cells; it is asked once for each older part that it meets."""
    at = coordinates(reader.read(part, None, reader.schema.dimension_names), reader.schema)
    return reader.schema.grid.ordinals(at), reader.schema.grid.offsets(at)
