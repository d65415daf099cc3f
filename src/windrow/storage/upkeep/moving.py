"""Live rows moved from parts into new ones, which is what netting, folding and merging consist of.

Moving changes no cell. What was known of the chunks goes along: above all the version at which each last changed, also
of chunks that have no live cell left in the parts that go, for they may have some elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.storage.cells import CellKeys, coordinates
from windrow.storage.chunks.index import newest_changes
from windrow.storage.part_writing import PART_BYTES, PartWriter
from windrow.storage.records import ChunkStatistics, Int64Array, Part
from windrow.storage.upkeep.working_parts import indexes_of, mark_rows, told_of

if TYPE_CHECKING:
    from windrow.storage.working import WorkingArray

LARGER = 0.25
"""How much larger than others a part may become before it is divided."""

Source = tuple[Part, Int64Array]
"""A part, and those of its live rows that are moved."""


@dataclass
class Bench:
    """A working array whose parts are being put in order, and what became of them."""

    working: WorkingArray
    written: list[str] = field(default_factory=list)
    """Files written here, which are removed if it fails."""
    gone: list[str] = field(default_factory=list)
    """Files of this batch that are not needed after all."""
    forgotten: list[ChunkStatistics] = field(default_factory=list)
    """What was known of the chunks of parts that are gone."""

    @property
    def new_parts(self) -> list[Part]:
        base = self.working.base_parts
        return [part for path, part in self.working.parts.items() if path not in base]

    def drop(self, part: Part, told: ChunkStatistics) -> None:
        """Leave out a part without live cells."""
        del self.working.parts[part.path]
        self.forgotten.append(told)
        if part.path not in self.working.base_parts:
            self.gone.append(part.path)


def move_rows(bench: Bench, sources: Sequence[Source], run: int) -> list[Part]:
    """Write rows of several parts as new parts, in order, and let them be dead where they were."""
    working = bench.working
    parts = _write(bench, sources)
    told = told_of(working, [part for part, _ in sources])
    ordinals, changed = newest_changes(told)
    moved = []
    for part in parts:
        assert part.chunks is not None
        known = changed[np.searchsorted(ordinals, part.chunks.ordinals)]
        moved.append(replace(part, run=run, chunks=replace(part.chunks, changed=known)))
    for (part, rows), known_of_it in zip(sources, told, strict=True):
        if len(rows) == part.live:
            bench.drop(part, known_of_it)
        else:
            mark_rows(working, part, rows)
    working.parts.update({part.path: part for part in moved})
    return moved


def _write(bench: Bench, sources: Sequence[Source]) -> list[Part]:
    working = bench.working
    table = pa.concat_tables([working.reader.take(part, rows) for part, rows in sources])
    keys = CellKeys(working.schema.grid, coordinates(table, working.schema))
    if not keys.is_sorted():
        table = table.take(pa.array(keys.order()))
    stored = sum(part.bytes * len(rows) / max(1, part.cells) for part, rows in sources)
    # Of one size, instead of full ones and a short one, which every fold of a full part would leave behind.
    pieces = max(1, math.ceil(stored / PART_BYTES - LARGER))
    most = 2 * PART_BYTES if pieces == 1 else int(1.1 * stored / pieces)
    writer = PartWriter(working.path, working.schema, most)
    try:
        writer.append(table)
        parts = writer.close()
    except BaseException:
        writer.abandon()
        raise
    bench.written += [part.path for part in parts]
    return parts


def keep_changes(bench: Bench) -> None:
    """Let new parts say when chunks of parts that are gone changed, where cells of them are alive elsewhere."""
    if bench.forgotten:
        lacking = _not_known(bench, *newest_changes(bench.forgotten))
        if len(lacking[0]):
            part = bench.new_parts[0]
            assert part.chunks is not None
            bench.working.parts[part.path] = replace(part, chunks=_with_changes_of(part.chunks, *lacking))


def are_known(bench: Bench, told: ChunkStatistics) -> bool:
    """Whether nothing is lost if what was known of these chunks is forgotten."""
    return not len(_not_known(bench, *newest_changes([told]))[0])


def _not_known(bench: Bench, ordinals: Int64Array, changed: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Those of the chunks that others have cells of and no new part knows to have changed as late."""
    working = bench.working
    needed, elsewhere = np.ones(len(ordinals), bool), np.zeros(len(ordinals), bool)
    others = [part for part in working.parts.values() if part.last >= ordinals[0] and part.first <= ordinals[-1]]
    for part, index in zip(others, indexes_of(working, others), strict=True):
        places = np.searchsorted(index.ordinals, ordinals)
        places[places == len(index)] = 0
        there = index.ordinals[places] == ordinals
        elsewhere |= there
        if part.path not in working.base_parts:
            new = np.where(index.changed[places] > 0, index.changed[places], working.base.number + 1)
            needed &= ~(there & (new >= changed))
    chosen = needed & elsewhere
    return ordinals[chosen], changed[chosen]


def _with_changes_of(chunks: ChunkStatistics, ordinals: Int64Array, changed: Int64Array) -> ChunkStatistics:
    """An index with rows for chunks of which its part has no cell."""
    none, nowhere = np.zeros(len(ordinals), np.int64), np.zeros((len(ordinals), chunks.lo.shape[1]), np.int64)
    other = ChunkStatistics(ordinals, none, none, nowhere, nowhere, changed)
    every = ChunkStatistics.concatenate([chunks, other], chunks.lo.shape[1])
    order = np.lexsort((-every.cells, every.ordinals))  # of a chunk's two rows the one with cells comes first
    joined = every.take(order)
    first = np.flatnonzero(np.diff(joined.ordinals, prepend=joined.ordinals[0] - 1))
    return replace(joined.take(first), changed=np.maximum.reduceat(joined.changed, first))
