"""The parts of a sparse array inside a transaction: what was there, what came, and which rows died."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from windrow.storage.chunks.index import (
    chunks_of_rows,
    dead_in_chunks,
    existing_chunks,
    with_changes,
    with_live_cells,
)
from windrow.storage.delta.vectors import encode_rows
from windrow.storage.records import ChunkStatistics, Int64Array, Marked, Part

if TYPE_CHECKING:
    from windrow.storage.working import WorkingArray

NOTHING: Int64Array = np.empty(0, np.int64)


def add_run(working: WorkingArray, parts: Sequence[Part]) -> None:
    """Take up cells that were written as parts, over those that are there."""
    working.steps += 1
    number = 1 + max((part.run for part in working.parts.values()), default=0)
    for part in parts:
        working.parts[part.path] = replace(part, run=number)
        working.hi = working.schema.box(tuple(map(max, working.hi, part.box.hi))).hi


def mark_rows(working: WorkingArray, part: Part, rows: Int64Array) -> None:
    """Let live rows of a part be dead, besides those that are."""
    if len(rows):
        working.steps += 1
        dead = np.sort(np.concatenate([working.reader.dead_rows(part), rows]), kind="stable")
        chunks = part.chunks
        if chunks is not None:  # one of this transaction's: a chunk that an earlier step left as it was changes now
            chunks = replace(chunks, changed=np.where(dead_in_chunks(chunks, rows) > 0, 0, chunks.changed))
        working.parts[part.path] = replace(part, vector=encode_rows(dead), chunks=chunks)


def indexes_of(working: WorkingArray, parts: Sequence[Part]) -> list[ChunkStatistics]:
    """The indexes of parts as they were written."""
    if working.catalog is None:  # an array that is being made has but parts of its own
        return [part.chunks for part in parts if part.chunks is not None]
    return working.catalog.written_indexes(parts, working.base.schema.grid)


def told_of(working: WorkingArray, parts: Sequence[Part]) -> list[ChunkStatistics]:
    """The indexes of parts, with the version at which each chunk last changed; what changed in here is new."""
    new = working.base.number + 1
    old = [part for part in parts if part.path in working.base_parts]
    told: dict[str, ChunkStatistics] = {}
    if old and working.catalog is not None:
        found = working.catalog.indexes(old, working.base.number, working.base.schema.grid)
        told = {
            part.path: with_changes(index, [(new, marked_chunks(working, part))])
            for part, index in zip(old, found, strict=True)
        }
    for part in parts:
        if part.path not in told:
            (index,) = indexes_of(working, [part])
            told[part.path] = replace(index, changed=np.where(index.changed > 0, index.changed, new))
    return [told[part.path] for part in parts]


def chunks_of(working: WorkingArray) -> ChunkStatistics:
    """The metadata of its chunks as it stands, one row per chunk and part."""
    parts = list(working.parts.values())
    pieces = [
        with_live_cells(told, working.reader.dead_rows(part))
        for part, told in zip(parts, told_of(working, parts), strict=True)
    ]
    return existing_chunks(pieces, working.schema.ndim)


def died_rows(working: WorkingArray, part: Part) -> Int64Array:
    """The rows of a part, there before, that are dead now and were not."""
    before = working.base_parts[part.path]
    if part.vector == before.vector:
        return NOTHING
    return np.setdiff1d(working.reader.dead_rows(part), working.reader.dead_rows(before), assume_unique=True)


def marked_chunks(working: WorkingArray, part: Part) -> Int64Array:
    """The chunks in which cells of a part, there before, died of a change."""
    if part.path in working.marked:
        return working.marked[part.path]
    rows = died_rows(working, part)
    return chunks_of_rows(indexes_of(working, [part])[0], rows) if len(rows) else NOTHING


def marked_parts(working: WorkingArray) -> tuple[Marked, ...]:
    """The parts that were there before and have another vector now."""
    return tuple(
        Marked(part, working.marked.get(path, NOTHING))
        for path, part in working.parts.items()
        if path in working.base_parts and part.vector != working.base_parts[path].vector
    )
