"""Tidying: with every batch a few parts are folded and runs merged, so that no batch rewrites the array.

*Base parts* follow one another in the order of chunks; *runs* of later cells lie over them. A base part is folded
(written anew with the live cells that lie over it) when these or its dead rows are a quarter of it, or when the vectors
written for it have cost as much as itself. Six runs of one size become one, and so do two of which little is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.errors import CorruptionError
from windrow.storage.chunks.index import dead_in_chunks, row_starts
from windrow.storage.records import Int64Array, Part
from windrow.storage.upkeep.moving import Bench, Source, move_rows
from windrow.storage.upkeep.working_parts import indexes_of

FOLDS = 2
"""How many base parts a batch folds at most, the worst first."""

SHARE = 0.25
"""Of a base part's rows, how many may be dead, or how many cells lie over it, before it is folded."""

TIER = 6
"""So many runs of one size, in powers of this number, become one."""

LEFT = 0.1
"""Of a run's rows, how few may be alive before what is left of it goes with that of others: folds take the rest."""

MOST_CELLS = 4_000_000
"""What is moved at once, in this process; larger runs stay as they are until a compaction."""


def tidy(bench: Bench) -> None:
    """Fold base parts and merge runs where it is due."""
    fold_parts(bench)
    merge_runs(bench)


@dataclass(frozen=True)
class Overlay:
    """A part over the base parts: whose range each of its chunks is in, and how many of their cells live."""

    part: Part
    starts: Int64Array
    owners: Int64Array
    live: Int64Array

    def reaches_beyond(self, owner: int) -> bool:
        """Whether only some of its cells lie over one base part, so that folding these would need a vector.

        An array that has none, because it only ever grew, is to stay one.
        """
        there = self.owners == owner
        return bool(there.any() and not there.all())

    def rows_over(self, bench: Bench, owner: int) -> Int64Array:
        """The live rows that lie over one base part: its chunks are in order, and so are their owners."""
        first, last = np.searchsorted(self.owners, (owner, owner + 1))
        return bench.working.reader.live_rows(self.part, int(self.starts[first]), int(self.starts[last]))


def base_parts(parts: Sequence[Part]) -> list[Part]:
    return sorted((part for part in parts if part.run == 0), key=lambda part: (part.first, part.last))


def fold_parts(bench: Bench) -> None:
    parts = list(bench.working.parts.values())
    base = base_parts(parts)
    over = _overlays(bench, base, [part for part in parts if part.run and part.live])
    weights = sum((np.bincount(o.owners, o.live, len(base)) for o in over), np.zeros(len(base)))
    worth = [_worth_folding(part, cells) for part, cells in zip(base, weights, strict=True)]
    chosen = sorted((owner for owner in range(len(base)) if worth[owner] >= SHARE), key=lambda owner: -worth[owner])
    if not any(part.vector for part in parts):
        chosen = [owner for owner in chosen if not any(o.reaches_beyond(owner) for o in over)]
    for owner in chosen[:FOLDS]:
        if base[owner].live + weights[owner] <= MOST_CELLS:
            _fold(bench, base[owner], owner, over)


def _worth_folding(part: Part, over: float) -> float:
    """A share of the part; what its vectors have cost counts as due when it is the whole of the part."""
    dead = part.cells - part.live
    return max(over / part.cells, dead / part.cells, SHARE * part.spent / part.bytes)


def _overlays(bench: Bench, base: Sequence[Part], over: Sequence[Part]) -> list[Overlay]:
    """Where the chunks of runs belong: to the last base part that begins with them or before them."""
    if not base:
        return []
    firsts = np.array([part.first for part in base], np.int64)
    found = []
    for part, index in zip(over, indexes_of(bench.working, over), strict=True):
        owners = np.maximum(np.searchsorted(firsts, index.ordinals, side="right") - 1, 0)
        live = index.cells - dead_in_chunks(index, bench.working.reader.dead_rows(part))
        found.append(Overlay(part, row_starts(index), owners, live))
    return found


def _fold(bench: Bench, part: Part, owner: int, over: Sequence[Overlay]) -> None:
    working = bench.working
    try:
        sources: list[Source] = [(part, working.reader.live_rows(part))]
        for overlay in over:
            now = working.parts.get(overlay.part.path)  # the fold before may have taken some of its rows, or all
            rows = overlay.rows_over(bench, owner)
            if now is not None and len(rows):
                sources.append((now, rows))
        move_rows(bench, sources, run=0)
    except CorruptionError:
        return  # tidying can wait; whoever reads the damaged part is told


def merge_runs(bench: Bench) -> None:
    """Merge runs of the smallest size of which there are enough, and go on with what that makes."""
    runs: dict[int, list[Part]] = {}
    for part in bench.working.parts.values():
        if part.run and part.live:
            runs.setdefault(part.run, []).append(part)
    live = {run: sum(part.live for part in parts) for run, parts in runs.items()}
    spent = [run for run, parts in runs.items() if live[run] < LEFT * sum(part.cells for part in parts)]
    chosen = _runs_to_merge(live) or (spent if len(spent) > 1 else [])
    if not chosen:
        return
    try:
        sources = [(part, bench.working.reader.live_rows(part)) for run in chosen for part in runs[run]]
        move_rows(bench, sources, run=1 + max(runs))
    except CorruptionError:
        return


def _runs_to_merge(cells: dict[int, int]) -> list[int]:
    """Numbers of runs, given the live cells of each: those of one size, and larger ones if the result completes six."""
    classes: dict[int, list[int]] = {}
    for run, live in cells.items():
        classes.setdefault(_size_class(live), []).append(run)
    full = sorted(size for size, members in classes.items() if len(members) >= TIER)
    if not full:
        return []
    chosen = list(classes.pop(full[0]))
    while True:
        total = sum(cells[run] for run in chosen)
        size = _size_class(total)
        if len(classes.get(size, ())) < TIER - 1:
            return chosen if total <= MOST_CELLS else []
        larger = chosen + classes.pop(size)
        if sum(cells[run] for run in larger) > MOST_CELLS:
            return chosen if total <= MOST_CELLS else []
        chosen = larger


def _size_class(cells: int) -> int:
    size = 0
    while cells >= TIER:
        cells, size = cells // TIER, size + 1
    return size
