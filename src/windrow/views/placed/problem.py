"""From the chunks of a batch to the planner's numbers: which pairs are joined, how large everything is, where it is.

Every chunk of an array may stand here twice: as it was, and what the batch did to it. A *direction* is a left chunk
whose cells look for partners in a right chunk; where both sides are one array, two directions are one pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from windrow.execution.nodes import Node
from windrow.model.grid import ChunkGrid
from windrow.operations.join.chunks import find_chunk_pairs, stored_scan
from windrow.placement import Problem, Rates, assign, renumber_homes
from windrow.placement.problem import NOWHERE, Chunks, Int32Array, Pairs, ViewChunks
from windrow.plan.bound import Bound, BoundJoin
from windrow.storage.homes import Homes
from windrow.storage.records import ChunkStatistics, Int64Array

NEW_OLD, NEW_NEW, OLD_NEW, OLD_OLD = range(4)
"""The kinds of directions: what of the left chunk meets what of the right one."""


@dataclass(frozen=True, eq=False)
class Base:
    """An array that is joined: its chunks as they were, what the batch did to them, and where they are at home."""

    old: ChunkStatistics
    new: ChunkStatistics
    row_bytes: int
    homes: Homes

    def cells(self, ordinals: Int64Array, kind: ChunkStatistics) -> Int64Array:
        """How many cells chunks have, 0 where they are not among those."""
        if not len(kind):
            return np.zeros(len(ordinals), np.int64)
        places = np.minimum(np.searchsorted(kind.ordinals, ordinals), len(kind) - 1)
        return np.where(kind.ordinals[places] == ordinals, kind.cells[places], 0)


@dataclass(frozen=True, eq=False)
class Directions:
    """Left chunks and right chunks by their ordinals, and the kind of each direction."""

    left: Int64Array
    right: Int64Array
    kind: Int64Array

    def __len__(self) -> int:
        return len(self.left)


def find_directions(join: BoundJoin, bases: tuple[Base, Base], results: Results) -> tuple[Directions, Int64Array]:
    """All directions of a batch, and the chunks of results that are done whole: asked for, or touched and without
    states."""
    left, right = bases
    found = [
        meet(join, left.new, right.old, NEW_OLD),
        meet(join, left.new, right.new, NEW_NEW),
        meet(join, left.old, right.new, OLD_NEW),
    ]
    touched = np.unique(np.concatenate([left.new.ordinals, *(one.left for one in found)]))
    whole = np.union1d(np.setdiff1d(touched, results.homes.ordinals), results.asked)
    if len(whole):
        found.append(meet(join, left.old.take(np.isin(left.old.ordinals, whole)), right.old, OLD_OLD))
    columns = (np.concatenate([getattr(one, name) for one in found]) for name in ("left", "right", "kind"))
    return Directions(*columns), whole


def meet(join: BoundJoin, left: ChunkStatistics, right: ChunkStatistics, kind: int) -> Directions:
    """The directions between chunks of the two sides."""
    nothing = np.empty(0, np.int64)
    if not len(left) or not len(right):
        return Directions(nothing, nothing, nothing)
    sides = stored_scan(join.left), stored_scan(join.right)
    assert sides[0] is not None
    assert sides[1] is not None
    asked = replace(join, left=replace(sides[0], chunks=lambda: left), right=replace(sides[1], chunks=lambda: right))
    pairs = find_chunk_pairs(asked)
    assert pairs is not None
    return Directions(pairs.left, pairs.right, np.full(len(pairs), kind))


@dataclass(frozen=True, eq=False)
class Results:
    """The view: its chunks that have states, their homes, and how large rows are."""

    stored: ChunkStatistics
    row_bytes: int
    """Of a result and its state, which travel if their home moves."""
    partial_bytes: int
    """Of a partial state with its place."""
    homes: Homes
    """Of chunks of which each result has a state."""
    density: float
    """What part of a right chunk's cells are partners of a left cell, about."""
    share: float = 1.0
    """How many times as many partial states as that lets expect there were in the last batches."""
    asked: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    """Chunks of results that are done whole, whatever happened."""


@dataclass(frozen=True, eq=False)
class Planned:
    """The planner's problem, and what its numbers stand for."""

    problem: Problem
    directions: Directions
    pair_of: Int64Array
    """The pair that each direction belongs to."""
    arrays: Int64Array
    """Of each chunk the array (0 or 1), and its ordinal."""
    ordinals: Int64Array
    views: Int64Array
    whole: Int64Array


@dataclass(frozen=True)
class Numbering:
    """How nodes are numbered, and how chunks without a home are given one."""

    nodes: tuple[str, ...]
    assignment: str
    narrow: tuple[int, ...]

    @classmethod
    def of(cls, join: BoundJoin, nodes: Sequence[Node], assignment: str) -> Numbering:
        """Dimensions along which the shape is longer than a chunk do not matter for where a chunk is put."""
        shape, chunk = join.offsets, join.right.schema.grid.chunk
        spans = zip(shape.start, shape.stop, chunk, shape.free, strict=True)
        narrow = tuple(axis for axis, (lo, hi, size, free) in enumerate(spans) if not free and hi - lo < size)
        return cls(tuple(node.name for node in nodes), assignment, narrow or tuple(range(len(chunk))))

    def assign(self, keys: Int64Array, before: int) -> Int32Array:
        narrow = [axis for axis in self.narrow if axis < keys.shape[1]]
        return assign(self.assignment, keys, len(self.nodes), narrow, before)


def make_problem(
    join: BoundJoin, bases: tuple[Base, ...], results: Results, numbering: Numbering, rates: Rates
) -> Planned:
    """What there is to plan. ``bases`` is one array if both sides are the same."""
    return number_problem(
        join, bases, results, numbering, rates, *find_directions(join, (bases[0], bases[-1]), results)
    )


def number_problem(
    join: BoundJoin,
    bases: tuple[Base, ...],
    results: Results,
    numbering: Numbering,
    rates: Rates,
    directions: Directions,
    whole: Int64Array,
) -> Planned:
    """The problem of some directions, and of chunks of results that are done whole."""
    last = len(bases) - 1
    counted = whole if join.kind == "left" else whole[:0]
    bases = tuple(_used(base, (number == 0, number == last), directions, counted) for number, base in enumerate(bases))
    sides = bases[0], bases[-1]
    chunks = _Numbers.of(bases)
    kind = directions.kind
    left = chunks.number(0, directions.left, (kind == NEW_OLD) | (kind == NEW_NEW))
    right = chunks.number(last, directions.right, (kind == NEW_NEW) | (kind == OLD_NEW))
    first, second = _ordered(chunks, left, right)
    keys, pair_of = np.unique(first * np.int64(len(chunks)) + second, return_inverse=True)
    pair_of = pair_of.reshape(-1).astype(np.int64)
    touched = np.unique(np.concatenate([sides[0].new.ordinals, directions.left, whole]))
    problem = Problem(
        len(numbering.nodes),
        chunks.as_chunks(join, numbering),
        _views(touched, sides[0], results, numbering, _grid_of(join.left)),
        _pairs(keys, len(chunks), directions, pair_of, touched, sides, results),
        rates,
    )
    return Planned(problem, directions, pair_of, chunks.arrays, chunks.ordinals, touched, whole)


def _used(base: Base, sides: tuple[bool, bool], directions: Directions, counted: Int64Array) -> Base:
    """An array with those old chunks alone that a pair needs, that a node has and brings up to date, or that are
    ``counted``: whose cells have results without a partner, too. ``sides`` says whether it is the left and the right.
    """
    kind = directions.kind
    needed = [base.new.ordinals[base.homes.of(base.new.ordinals) >= 0]]
    if sides[0]:
        needed += [directions.left[(kind == OLD_NEW) | (kind == OLD_OLD)], counted]
    if sides[1]:
        needed.append(directions.right[(kind == NEW_OLD) | (kind == OLD_OLD)])
    return replace(base, old=base.old.take(np.isin(base.old.ordinals, np.concatenate(needed))))


def _grid_of(side: Bound) -> ChunkGrid:
    scan = stored_scan(side)
    assert scan is not None, "the sides of a placed join are stored"
    grid: ChunkGrid = scan.schema.grid
    return grid


def _keys(ordinals: Int64Array, grid: ChunkGrid) -> Int64Array:
    """Where chunks are in their grid, a row each."""
    return np.stack([ordinals // s % n for s, n in zip(grid.strides, grid.radix, strict=True)], axis=1)


def _ordered(chunks: _Numbers, left: Int64Array, right: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Both chunks of each pair, always in the same order: a changed one first, where the other is as it was."""
    swap = chunks.is_new[right] & ~chunks.is_new[left]
    swap |= (chunks.is_new[left] == chunks.is_new[right]) & (left > right)
    return np.where(swap, right, left), np.where(swap, left, right)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The numbers of all chunks: those of each array as they were, then what the batch did to them."""

    bases: tuple[Base, ...]
    arrays: Int64Array
    ordinals: Int64Array
    is_new: npt.NDArray[np.bool_]
    starts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, bases: tuple[Base, ...]) -> _Numbers:
        lists, starts, count = [], [], 0
        for number, base in enumerate(bases):
            begins = []
            for is_new, stats in ((False, base.old), (True, base.new)):
                begins.append(count)
                count += len(stats)
                lists.append((np.full(len(stats), number), stats.ordinals, np.full(len(stats), is_new)))
            starts.append((begins[0], begins[1]))
        arrays, ordinals, news = (np.concatenate(column) for column in zip(*lists, strict=True))
        return cls(bases, arrays, ordinals, news.astype(bool), tuple(starts))

    def __len__(self) -> int:
        return len(self.ordinals)

    def number(self, array: int, ordinals: Int64Array, is_new: npt.NDArray[np.bool_]) -> Int64Array:
        base, (old, new) = self.bases[array], self.starts[array]
        before, after = np.searchsorted(base.old.ordinals, ordinals), np.searchsorted(base.new.ordinals, ordinals)
        return np.where(is_new, new + after, old + before).astype(np.int64)

    def as_chunks(self, join: BoundJoin, numbering: Numbering) -> Chunks:
        sizes, homes, assigned = np.zeros(len(self)), np.full(len(self), NOWHERE), np.zeros(len(self), np.int64)
        for number, (base, (old, new)) in enumerate(zip(self.bases, self.starts, strict=True)):
            grid = _grid_of(join.left if number == 0 else join.right)
            mine = slice(old, new + len(base.new))
            ordinals = self.ordinals[mine]
            sizes[mine] = np.concatenate([base.old.cells, base.new.cells]) * float(base.row_bytes)
            recorded = renumber_homes(base.homes.of(base.old.ordinals), base.homes.nodes, numbering.nodes)
            homes[old:new] = recorded
            unique, places = np.unique(ordinals, return_inverse=True)
            found = numbering.assign(_keys(unique, grid), len(base.homes.ordinals))
            assigned[mine] = found[places.reshape(-1)]
        key = self.ordinals * 2 + self.arrays
        return Chunks(key, sizes, homes.astype(np.int32), assigned.astype(np.int32))


def _views(touched: Int64Array, left: Base, results: Results, numbering: Numbering, grid: ChunkGrid) -> ViewChunks:
    stored = np.asarray(left.cells(touched, results.stored) * results.row_bytes, np.float64)
    cells = left.cells(touched, left.old) + left.cells(touched, left.new)
    most = np.asarray(cells * results.partial_bytes, np.float64)
    homes = renumber_homes(results.homes.of(touched), results.homes.nodes, numbering.nodes)
    assigned = numbering.assign(_keys(touched, grid), len(results.homes.ordinals))
    return ViewChunks(touched, stored, most, homes, assigned)


def _pairs(
    keys: Int64Array,
    count: int,
    directions: Directions,
    pair_of: Int64Array,
    touched: Int64Array,
    sides: Sequence[Base],
    results: Results,
) -> Pairs:
    """The pairs, with about how many bytes of states each makes for which chunk of results."""
    first, second = np.divmod(keys, count)
    left, right, kind = directions.left, directions.right, directions.kind
    is_new = (kind == NEW_OLD) | (kind == NEW_NEW)
    mine = np.where(is_new, sides[0].cells(left, sides[0].new), sides[0].cells(left, sides[0].old))
    changed = (kind == NEW_NEW) | (kind == OLD_NEW)
    others = np.where(changed, sides[1].cells(right, sides[1].new), sides[1].cells(right, sides[1].old))
    rows = mine * np.minimum(1.0, others * results.density * results.share)
    view = np.searchsorted(touched, left)
    made, place = np.unique(pair_of * np.int64(max(1, len(touched))) + view, return_inverse=True)
    sizes = np.zeros(len(made))
    np.add.at(sizes, place.reshape(-1), rows * results.partial_bytes)
    of_pair, of_view = np.divmod(made, max(1, len(touched)))
    starts = np.searchsorted(of_pair, np.arange(len(keys) + 1))
    return Pairs(
        first.astype(np.int32), second.astype(np.int32), starts.astype(np.int64), of_view.astype(np.int32), sizes
    )
