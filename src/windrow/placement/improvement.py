"""The improvement pass: sweeps of moves over a plan, each of which makes the busy nodes less busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from windrow.kernels.placement.batch import FEW_NODES, Batch, make_lists
from windrow.kernels.placement.moves import Listing, Room, move_chunks, move_clusters, move_pairs, move_views
from windrow.kernels.placement.state import State, fill_state, set_scale
from windrow.placement.problem import Float64Array, Int32Array, Int64Array, Problem
from windrow.placement.stages import chunk_room, to_batch, view_room

SLICE = 4096
"""Moves between two looks at the clock."""
_MOST_CANDIDATES = 5
"""With many nodes; eight took a third longer for half a percent."""
_LIGHT = 0.25
"""The share of nodes that count as little loaded."""
_ENOUGH = 0.01
"""A sweep that lowers the objective by less is the last."""


@dataclass(frozen=True)
class Effort:
    """How much to try: sweeps over everything, and seconds of processor time at most."""

    sweeps: int = 4
    seconds: float = 0.5


@dataclass(frozen=True, eq=False)
class Improved:
    """Joins and view homes, and the loads that the pass itself arrived at."""

    joins: Int32Array
    view_homes: Int32Array
    loads: Float64Array
    sweeps: int


class Improvement:
    """One plan that is being improved."""

    def __init__(self, problem: Problem, joins: Int32Array, view_homes: Int32Array, fixed: Int32Array) -> None:
        self._batch: Batch = to_batch(problem)
        loads, meter = np.zeros(3 * problem.nodes), np.array([0.0, 0.0, 1.0])
        holders, made = make_lists(chunk_room(problem, 1)), make_lists(view_room(problem))
        self._state = State(joins.copy(), view_homes.copy(), holders, made, loads, meter)
        fill_state(self._batch, self._state, fixed)
        self._listing, self._of_views = _list_pairs(problem), _list_pairs_of_views(problem)
        degree = max(int(np.diff(listing.first).max(initial=1)) for listing in (self._listing, self._of_views))
        width = problem.nodes if problem.nodes <= FEW_NODES else _MOST_CANDIDATES
        self._room = Room(
            np.zeros(width, np.int32), np.full(problem.nodes, -1, np.int64), np.zeros(max(1, degree), np.int32)
        )
        self._chunks = np.flatnonzero(problem.is_paired)

    @property
    def objective(self) -> float:
        return float(self._state.loads.max(initial=0.0))

    def keep(self, sweeps: int) -> Improved:
        state = self._state
        return Improved(state.joins.copy(), state.view_homes.copy(), state.loads.copy(), sweeps)

    def sweep(self, random: np.random.Generator, number: int = 1) -> Iterator[None]:
        """Every chunk, view chunk and pair once; after each slice of moves the caller may stop.

        With many nodes a sweep is one half of that: there is seldom time for more than one.
        """
        few = self._batch.nodes <= FEW_NODES
        views = len(self._state.view_homes)
        if few or number % 2:
            yield from self._in_slices(random.permutation(self._chunks), self._move_chunks)
        if few or not number % 2:
            yield from self._in_slices(random.permutation(views), self._move_clusters)
        yield from self._in_slices(random.permutation(views), self._move_views)
        if few or not number % 2:
            yield from self._in_slices(random.permutation(len(self._state.joins)), self._move_pairs)
            yield from self._in_slices(random.permutation(views), self._move_views)

    def _in_slices(self, order: Int64Array, move: Callable[[Int64Array, Int32Array], object]) -> Iterator[None]:
        for begin in range(0, len(order), SLICE):
            if self.objective <= 0.0:
                return
            self._room.seen[:] = -1
            set_scale(self._state, self.objective)
            move(order[begin : begin + SLICE], self._light_nodes())
            yield

    def _light_nodes(self) -> Int32Array:
        """The least loaded nodes, of which moves try one after the other."""
        loads = self._state.loads.reshape(3, -1).max(axis=0)
        return np.argsort(loads, kind="stable")[: max(1, int(_LIGHT * len(loads)))].astype(np.int32)

    def _move_chunks(self, order: Int64Array, light: Int32Array) -> object:
        return move_chunks(self._batch, self._state, self._listing, order, light, self._room)

    def _move_clusters(self, order: Int64Array, light: Int32Array) -> object:
        return move_clusters(self._batch, self._state, self._of_views, order, light, self._room)

    def _move_pairs(self, order: Int64Array, light: Int32Array) -> object:
        return move_pairs(self._batch, self._state, order, light, self._room)

    def _move_views(self, order: Int64Array, light: Int32Array) -> object:
        return move_views(self._batch, self._state, order, light, self._room)


def improve(
    problem: Problem,
    start: tuple[Int32Array, Int32Array],
    fixed: Int32Array,
    random: np.random.Generator,
    effort: Effort,
) -> Improved:
    """The best of the plans that a few sweeps lead to, the first one included.

    ``start`` are joins and view homes. Chunks whose home is ``fixed`` come there in any case.
    """
    work = Improvement(problem, *start, fixed)
    best, lowest = work.keep(0), work.objective
    end = time.process_time() + effort.seconds
    for number in range(1, effort.sweeps + 1):
        if lowest <= 0.0 or time.process_time() >= end:
            break
        before = work.objective
        for _ in work.sweep(random, number):
            if time.process_time() >= end:
                break
        if work.objective < lowest:
            best, lowest = work.keep(number), work.objective
        if work.objective > (1.0 - _ENOUGH) * before:
            break
    return best


def _list_pairs(problem: Problem) -> Listing:
    """The pairs of each chunk; one that is joined with itself has that pair once."""
    pairs = problem.pairs
    both = pairs.left != pairs.right
    chunk = np.concatenate([pairs.left, pairs.right[both]])
    number = np.concatenate([np.arange(len(pairs)), np.flatnonzero(both)])
    order = np.argsort(chunk, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(chunk, minlength=len(problem.chunks)))])
    return Listing(first.astype(np.int64), number[order].astype(np.int64))


def _list_pairs_of_views(problem: Problem) -> Listing:
    """The pairs that change each view chunk."""
    views = problem.pairs.views
    order = np.argsort(views, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(views, minlength=len(problem.views)))])
    return Listing(first.astype(np.int64), problem.pairs.of_state[order].astype(np.int64))
