"""The first task of a node: the pairs of chunks that the plan gave it, joined; what came of them, sent to its homes.

A pair of cells is met once: cells that came with all right cells there are now (the plan has those with right cells
that stay and those with right cells that came as pairs of their own), and cells that stay with the right cells that
left and came. Where a chunk of results has no states yet, cells that stay meet right cells that stay, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windrow.aggregates.states.layout import PAIRS
from windrow.aggregates.states.rule import State
from windrow.execution.nodes import Here
from windrow.storage.cells import coordinates
from windrow.storage.chunks.cache import ChunkCache
from windrow.storage.records import Int64Array
from windrow.views.changes import CellChange
from windrow.views.placed.shelf import ArrayChunks, Counted, Shelf
from windrow.views.placed.sides import Side, join_tables
from windrow.views.rules.pairs import PairFinder

Places = list[Int64Array]


@dataclass
class Partners:
    """With which right chunks the cells of one left chunk are joined on a node."""

    new_old: list[int] = field(default_factory=list)
    """Cells that came, with right cells that stay."""
    new_new: list[int] = field(default_factory=list)
    """Cells that came, with right cells that came."""
    old_new: list[int] = field(default_factory=list)
    """Cells that stay, with right cells that left and came."""
    old_old: list[int] = field(default_factory=list)
    """Cells that stay, with right cells that stay: for results without states."""


@dataclass(frozen=True)
class JoinNode:
    """A task: the pairs of one node, and the chunks that it keeps afterwards."""

    node: int
    finder: PairFinder
    sides: tuple[Side, Side]
    arrays: tuple[ArrayChunks, ...]
    partners: Mapping[int, Partners]
    whole: frozenset[int]
    """The chunks of results that get all their states anew."""
    homes: Mapping[int, int]
    """The node to which what came of a left chunk is sent."""
    keeps: tuple[tuple[int, ...], ...]
    """Of each array the chunks that are at home here from now on."""
    cache_bytes: int


@dataclass(frozen=True, eq=False)
class Partial:
    """States of the rows that left results of one chunk, and of those that came."""

    ordinal: int
    node: int
    """The node that it comes from."""
    came: list[tuple[Places, State]]
    left: list[tuple[Places, State]]
    pairs: int

    @property
    def nbytes(self) -> int:
        pieces = (*self.came, *self.left)
        return sum(sum(c.nbytes for c in at) + sum(p.nbytes for p in state.values()) for at, state in pieces)


@dataclass(frozen=True)
class Joined:
    """A receipt: which node joined, where that ran, and what it took."""

    node: int
    executor: str
    counted: Counted
    seconds: float
    pairs: int
    joined_bytes: int
    join_seconds: float


def join_node(task: JoinNode, here: Here) -> Iterator[tuple[int, Partial | Joined]]:
    """Join what the plan says, and send the states of each chunk of results to its home."""
    started = time.perf_counter()
    counted = Counted()
    cache = ChunkCache(here.folder, task.cache_bytes)
    shelves = [Shelf(array, cache, counted) for array in task.arrays]
    _fetch(task, shelves)
    counted.read_seconds = time.perf_counter() - started
    pairs = 0
    began = time.perf_counter()
    joiner = _Joiner(task, shelves)
    for ordinal, partners in task.partners.items():
        found = joiner.join(ordinal, partners)
        pairs += found.pairs
        if found.came or found.left:
            yield task.homes[ordinal], found
    join_seconds = time.perf_counter() - began
    for shelf, ordinals in zip(shelves, task.keeps, strict=True):
        shelf.keep(ordinals)
    seconds = time.perf_counter() - started
    yield task.node, Joined(task.node, here.executor, counted, seconds, pairs, joiner.joined_bytes, join_seconds)


def _fetch(task: JoinNode, shelves: Sequence[Shelf]) -> None:
    """Have all that is joined at hand, each chunk once."""
    left, right = (shelves[side.array] for side in task.sides)
    listed = task.partners.items()
    stays = [ordinal for ordinal, partners in listed if partners.old_new or partners.old_old]
    left.fetch(stays)
    right.fetch(o for _, partners in listed for o in (*partners.new_old, *partners.old_old))
    left.fetch_changes(ordinal for ordinal, _ in listed)
    right.fetch_changes(o for _, p in listed for o in (*p.new_old, *p.new_new, *p.old_new, *p.old_old))


@dataclass
class _Joiner:
    """Joins the cells of left chunks, one chunk after the other."""

    task: JoinNode
    shelves: Sequence[Shelf]
    joined_bytes: int = 0
    _changes: dict[tuple[int, int], CellChange] = field(default_factory=dict)
    _staying: dict[tuple[int, int], pa.Table] = field(default_factory=dict)

    def join(self, ordinal: int, partners: Partners) -> Partial:
        came: list[tuple[Places, State]] = []
        gone: list[tuple[Places, State]] = []
        if partners.new_old or partners.new_new:
            cells = self._change(0, ordinal).came
            others = [self._stays(1, other) for other in partners.new_old]
            came += self._states(cells, others + [self._change(1, other).came for other in partners.new_new])
        if partners.old_new or partners.old_old:
            cells = self._stays(0, ordinal)
            changes = [self._change(1, other) for other in partners.old_new]
            others = [self._stays(1, other) for other in partners.old_old]
            came += self._states(cells, others + [change.came for change in changes])
            if ordinal not in self.task.whole:
                gone += self._states(cells, [change.left for change in changes])
        pairs = sum(int(state[PAIRS].sum()) for _, state in (*came, *gone))
        return Partial(ordinal, self.task.node, came, gone, pairs)

    def _change(self, number: int, ordinal: int) -> CellChange:
        """What happened to a chunk of a side, looked up once."""
        if (number, ordinal) not in self._changes:
            side = self.task.sides[number]
            self._changes[number, ordinal] = side.change(self.shelves[side.array], ordinal)
        return self._changes[number, ordinal]

    def _stays(self, number: int, ordinal: int) -> pa.Table:
        if (number, ordinal) not in self._staying:
            side = self.task.sides[number]
            left = self._change(number, ordinal).left
            self._staying[number, ordinal] = side.staying(self.shelves[side.array], ordinal, left)
        return self._staying[number, ordinal]

    def _states(self, cells: pa.Table, others: list[pa.Table]) -> list[tuple[Places, State]]:
        """The states of the pairs of left and right cells, for those left cells that have any."""
        others = [table for table in others if table.num_rows]
        if not cells.num_rows or not others:
            return []
        partners = join_tables(others, self.task.sides[1].used)
        self.joined_bytes += cells.nbytes + partners.nbytes
        rows = self.task.finder.with_held(cells.combine_chunks(), partners)
        columns, starts = rows.sorted_into(cells.num_rows)
        state = self.task.finder.kept.layout.reduce(columns, starts)
        there = np.flatnonzero(state[PAIRS])
        if not len(there):
            return []
        at = [column[there] for column in coordinates(cells, self.task.sides[0].used)]
        return [(at, self.task.finder.kept.layout.take(state, there))]
