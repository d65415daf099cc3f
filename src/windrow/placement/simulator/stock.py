"""What a modelled cluster holds, and the problem that a batch poses to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from windrow.kernels.sparse.chunk_pairs import ChunkIndex, Grid
from windrow.kernels.sparse.chunk_pairs import Chunks as IndexedChunks
from windrow.placement.assignment import assign
from windrow.placement.plan import Plan
from windrow.placement.problem import NOWHERE, Chunks, Int32Array, Int64Array, Pairs, Problem, Rates, ViewChunks
from windrow.placement.simulator.chunks import ChunkSet, concatenate

STATE = 32 / 48
"""Bytes of a view's state for each byte of its array: coordinates and a count, beside a detection of 48 bytes."""
PARTNERED = 0.5
"""How many of the cells that lie within reach of another chunk's bounds have a partner in it."""
EVER = 10**8
"""A reach beyond all cells."""


@dataclass(frozen=True)
class ViewShape:
    """How far a view looks along each dimension, back and ahead, and the chunks it is cut into."""

    name: str
    back: tuple[int, ...]
    ahead: tuple[int, ...]
    lengths: tuple[int, ...]
    narrow: tuple[int, ...]
    """Dimensions along which it reaches neighbouring chunks only."""


@dataclass(frozen=True, eq=False)
class Stock:
    """All chunks of an array and its view, which have the same keys, and where they are at home."""

    chunks: ChunkSet
    homes: Int32Array
    view_homes: Int32Array

    @cached_property
    def order(self) -> Int64Array:
        return np.argsort(self.chunks.keys)

    @cached_property
    def _sorted_keys(self) -> Int64Array:
        return self.chunks.keys[self.order]

    def find(self, keys: Int64Array) -> Int64Array:
        """The row of each key, -1 if it is not there."""
        place = np.minimum(np.searchsorted(self._sorted_keys, keys), max(0, len(self.order) - 1))
        if not len(self.order):
            return np.full(len(keys), -1)
        return np.where(self._sorted_keys[place] == keys, self.order[place], -1)


def assign_stock(chunks: ChunkSet, shape: ViewShape, assignment: str, nodes: int) -> Stock:
    """Everything where a static assignment puts it."""
    homes = assign(assignment, chunks.numbers, nodes, shape.narrow)
    return Stock(chunks, homes, _assign_views(chunks, shape, assignment, nodes, 0))


def _assign_views(chunks: ChunkSet, shape: ViewShape, assignment: str, nodes: int, before: int) -> Int32Array:
    """As for the array; but round robin counts a view's chunks for itself, so that they lie elsewhere (Fig. 1)."""
    return assign(assignment, chunks.numbers, nodes, shape.narrow, before + 1)


@dataclass(frozen=True, eq=False)
class Step:
    """A batch on a stock: the problem, and which rows of both its chunks are."""

    problem: Problem
    old: Int64Array
    """Rows of the stock; the problem's chunks are these, then the new ones."""
    touched: ChunkSet
    """The view chunks that change, as the chunks of the array with the same keys."""


def pose(stock: Stock, new: ChunkSet, shape: ViewShape, assignment: str, nodes: int, rates: Rates) -> Step:
    """The problem of a batch in windrow's model: new chunks are in the store, states as large as they are."""
    left, right, old = _find_pairs(stock, new, shape)
    chunks = concatenate([stock.chunks.take(old), new])
    is_new = np.arange(len(chunks)) >= len(old)
    same = stock.find(new.keys)
    assigned = np.zeros(len(chunks), np.int32)
    assigned[is_new] = assign(assignment, new.numbers, nodes, shape.narrow, len(stock.chunks))
    homes = np.concatenate([stock.homes[old], np.full(len(new), NOWHERE, np.int32)]).astype(np.int32)
    # A chunk that grows keeps its home even if its old cells are in no pair.
    alone = np.flatnonzero((same >= 0) & ~np.isin(same, old)) + len(old)
    assigned[alone] = stock.homes[same[alone - len(old)]]

    pair, view_chunk, states = _find_states(chunks, left, right, shape)
    keys = chunks.keys
    view_keys, first, place = np.unique(keys[view_chunk], return_index=True, return_inverse=True)
    touched = chunks.take(view_chunk[first])
    order = np.argsort(pair, kind="stable")
    starts = np.searchsorted(pair[order], np.arange(len(left) + 1))
    states = np.maximum(states[order], 1.0)
    pairs = Pairs(
        left.astype(np.int32), right.astype(np.int32), starts.astype(np.int64), place[order].astype(np.int32), states
    )
    views = _view_chunks(stock, new, view_keys, touched, shape, assignment, nodes)
    return Step(Problem(nodes, Chunks(keys, chunks.bytes, homes, assigned), views, pairs, rates), old, touched)


def _find_pairs(stock: Stock, new: ChunkSet, shape: ViewShape) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Pairs as numbers of the problem's chunks, right ones as the baseline wants them; and the rows of old ones."""
    # A cell changes the results of those that see it as well as its own.
    reach = np.maximum(shape.back, shape.ahead)
    low, high = new.low - reach, new.high + reach
    new_one, row = _meet(stock.chunks, low, high, shape)
    old, place = np.unique(row, return_inverse=True)
    first, second = _meet(new, low, high, shape)
    once = first <= second
    left = np.concatenate([new_one, first[once]]) + len(old)
    right = np.concatenate([place, second[once] + len(old)])
    return left, right, old


def _meet(chunks: ChunkSet, low: Int64Array, high: Int64Array, shape: ViewShape) -> tuple[Int64Array, Int64Array]:
    indexed = IndexedChunks(_columns(chunks.numbers), _columns(chunks.low), _columns(chunks.high))
    return ChunkIndex(indexed, Grid((1,) * low.shape[1], shape.lengths)).meet(_columns(low), _columns(high))


def _columns(rows: Int64Array) -> Sequence[Int64Array]:
    return [np.ascontiguousarray(column) for column in rows.T]


def _find_states(
    chunks: ChunkSet, left: Int64Array, right: Int64Array, shape: ViewShape
) -> tuple[Int64Array, Int64Array, np.typing.NDArray[np.float64]]:
    """Which chunks' results a pair changes, and by how many bytes of state: pair, chunk, size."""
    both = np.flatnonzero(left != right)
    pair = np.concatenate([np.arange(len(left)), both])
    seer = np.concatenate([left, right[both]])
    seen = np.concatenate([right, left[both]])
    low = np.maximum(chunks.low[seer], chunks.low[seen] - shape.ahead)
    high = np.minimum(chunks.high[seer], chunks.high[seen] + shape.back)
    share = np.ones(len(seer))
    for axis in range(low.shape[1]):
        extent = chunks.high[seer, axis] - chunks.low[seer, axis] + 1
        share *= np.maximum(0, high[:, axis] - low[:, axis] + 1) / extent
    size = PARTNERED * STATE * chunks.bytes[seer] * share
    # Old and new cells of one chunk are one view chunk: a pair names it once.
    keys = chunks.keys
    twin = np.zeros(len(pair), bool)
    twin[len(left) :] = keys[left[both]] == keys[right[both]]
    added = np.zeros(len(left))
    added[pair[twin]] = size[twin]
    size[: len(left)] += added
    kept = (share > 0) & ~twin
    kept[: len(left)] |= added > 0
    return pair[kept], seer[kept], size[kept]


def _view_chunks(
    stock: Stock, new: ChunkSet, keys: Int64Array, touched: ChunkSet, shape: ViewShape, assignment: str, nodes: int
) -> ViewChunks:
    row = stock.find(keys)
    there = row >= 0
    before = np.where(there, stock.chunks.bytes[row], 0.0) if len(stock.chunks) else np.zeros(len(keys))
    order = np.argsort(new.keys)
    place = np.minimum(np.searchsorted(new.keys[order], keys), len(new) - 1) if len(new) else np.zeros(0, np.int64)
    grown = np.where(new.keys[order[place]] == keys, new.bytes[order[place]], 0.0) if len(new) else np.zeros(len(keys))
    homes = np.where(there, stock.view_homes[row], NOWHERE) if len(stock.chunks) else np.full(len(keys), NOWHERE)
    assigned = np.zeros(len(keys), np.int32)
    assigned[~there] = _assign_views(touched.take(~there), shape, assignment, nodes, len(stock.chunks))
    return ViewChunks(keys, STATE * before, STATE * (before + grown), homes.astype(np.int32), assigned)


def to_paper_model(problem: Problem, rates: Rates) -> Problem:
    """The same batch as paper 004 counts it: new chunks lie at nodes, a pair's result is as large as the pair."""
    chunks, views, pairs = problem.chunks, problem.views, problem.pairs
    return replace(
        problem,
        chunks=replace(chunks, homes=problem.settled),
        views=replace(views, bytes=np.zeros(len(views)), most=np.full(len(views), np.inf)),
        pairs=replace(pairs, states=problem.joined_bytes[pairs.of_state]),
        rates=rates,
    )


def settle(stock: Stock, new: ChunkSet, step: Step, plan: Plan) -> Stock:
    """The stock after a batch: chunks have grown or are new, and are where the plan put them."""
    homes, view_homes = stock.homes.copy(), stock.view_homes.copy()
    homes[step.old] = plan.homes[: len(step.old)]
    row = stock.find(step.touched.keys)
    view_homes[row[row >= 0]] = plan.view_homes[row >= 0]
    same = stock.find(new.keys)
    grown = same[same >= 0]
    low, high, size = stock.chunks.low.copy(), stock.chunks.high.copy(), stock.chunks.bytes.copy()
    low[grown] = np.minimum(low[grown], new.low[same >= 0])
    high[grown] = np.maximum(high[grown], new.high[same >= 0])
    size[grown] += new.bytes[same >= 0]
    homes[grown] = plan.homes[len(step.old) :][same >= 0]
    fresh = same < 0
    of_view = dict(zip(step.touched.keys.tolist(), plan.view_homes.tolist(), strict=True))
    fallback = plan.homes[len(step.old) :][fresh]
    new_views = [of_view.get(key, home) for key, home in zip(new.keys[fresh].tolist(), fallback.tolist(), strict=True)]
    return Stock(
        concatenate([ChunkSet(stock.chunks.numbers, low, high, size), new.take(fresh)]),
        np.concatenate([homes, fallback]).astype(np.int32),
        np.concatenate([view_homes, np.array(new_views, np.int32)]).astype(np.int32),
    )


def hold(stock: Stock, new: ChunkSet, step: Step, plan: Plan) -> Stock:
    """The stock after a batch whose cells are not kept: as in the paper's correlated batches, only homes change."""
    homes, view_homes = stock.homes.copy(), stock.view_homes.copy()
    homes[step.old] = plan.homes[: len(step.old)]
    row = stock.find(step.touched.keys)
    view_homes[row[row >= 0]] = plan.view_homes[row >= 0]
    return replace(stock, homes=homes, view_homes=view_homes)
