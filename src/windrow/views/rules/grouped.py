"""Aggregates over groups of pairs, or over all of them: patched by the pairs that left and came.

A group is made of the pairs of several left cells. So the pairs of left cells that went are taken out, with the right
cells that were there; those of left cells that came are put in, with the right cells that are there now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.aggregates.states.layout import Layout
from windrow.aggregates.states.rule import State
from windrow.execution.executor import Job
from windrow.kernels.sparse.matching import match_cells
from windrow.model.box import Box
from windrow.operations.join.aggregates import Wanted
from windrow.operations.join.sources import JoinedCells
from windrow.operations.query.sparse_run import cell_blocks
from windrow.plan.bound import BoundJoined, side_name
from windrow.storage.cells import coordinates
from windrow.views.evaluate import evaluate_cells, outside, read_boxes
from windrow.views.regions import cluster_cells
from windrow.views.rules.pairs import PairFinder
from windrow.views.rules.results import Patched, Patcher, Touched
from windrow.views.rules.rows import EnteringStates, number_places
from windrow.views.rules.sides import Int64Array, JoinRule, kept_of

Places = list[Int64Array]


def why_not_patched(bound: BoundJoined) -> str | None:
    """Why groups of pairs are computed anew where they are touched; None if they are patched."""
    if not bound.schema.sparse or bound.step:
        return "results on a grid are computed again where they are touched"
    if any(group.qualifier != side_name(1) for group in bound.groups):
        return "groups by cells of another side than the first are gathered again"
    kept = kept_of(bound).layout
    lacking = [measure.name for measure in kept.measures if measure.rule is not None and not measure.rule.adds_up]
    if lacking:
        return f"{', '.join(lacking)} of a group of pairs cannot be told from what is known of its cells"
    ordered = any(aggregate.definition.ordered for _, aggregate in bound.aggregates)
    return "pairs have no order that a number could tell" if ordered else None


@dataclass(frozen=True)
class GroupedRule(JoinRule):
    """The rule for results that belong to several left cells, or to all."""

    def patch(self) -> Patched:
        """The groups that pairs, or in left joins cells, left or came to."""
        cells, partners = self.side_changes()
        stay = self.staying(cells, partners)
        keys = [self._keys(table) for table in (stay, cells.came, cells.left)]
        places, numbers = number_places([np.concatenate(columns) for columns in zip(*keys, strict=True)])
        same, new, gone = np.split(numbers, np.cumsum([len(key[0]) for key in keys[:-1]]))
        layout, groups = self._layout, len(places[0])
        before = self.finder_of(self.before)
        moved = []
        sides = ((partners.left, before, cells.left, gone), (partners.came, self.finder, cells.came, new))
        for others, finder, lefts, own in sides:
            held = layout.reduce(*self.finder.with_held(stay, others).sorted_into(stay.num_rows))
            stored = finder.reduce_stored(self.engine, lefts)
            moved.append(layout.merge(layout.fold(held, same, groups), layout.fold(stored, own, groups)))
        counts = [side[name] for side in moved for name in layout.counters]
        met = np.flatnonzero(np.logical_or.reduce([count > 0 for count in counts]))
        left, came = (EnteringStates(layout.take(side, met)) for side in moved)
        nothing = [column[:0] for column in places]
        return self._patcher().patch(Touched([column[met] for column in places], left, came), nothing, nothing)

    @property
    def _layout(self) -> Layout:
        return self.finder.kept.layout

    @property
    def _axes(self) -> tuple[int, ...]:
        """The left dimensions that groups have."""
        return tuple(self.left_schema.axis(group.name) for group in self.after.groups)

    def _keys(self, table: pa.Table) -> Places:
        return group_keys(self.places_of(table), self._axes)

    def _patcher(self) -> Patcher:
        return Patcher(
            self._layout,
            self.store,
            self.after.schema,
            self._reduce,
            self._evaluate,
            self.after.scalar,
            self.after.min_count,
        )

    def _reduce(self, places: Places) -> State:
        """The states of all pairs of some groups, from tasks that each have a part of the left cells."""
        reader, source = self.finder.reader, self.left_source
        cut = JoinedCells(reader, source.schema, source.box, (), Wanted(self.after.arguments, ()))
        boxes = [self._left_box(box) & source.box for box in cluster_cells(places, self.after.schema.grid)]
        executor = self.engine.choose(sum(cut.touched_bytes(box) for box in boxes if not box.is_empty))
        tasks, largest = [], 0
        for number, box in enumerate(boxes):
            for block in [] if box.is_empty else cell_blocks(cut, cut.reading_grid, box, executor):
                finder = replace(self.finder, reader=reader.within(block), box=block)
                tasks.append(ReduceGroups(finder, self._axes, block, tuple(boxes[:number])))
                largest = max(largest, cut.task_bytes(block))
        found = executor.run(Job("states of groups of pairs", reduce_groups, tasks, largest))
        numbers = np.concatenate([np.zeros(0, np.int64), *(match_cells(at, places) for at, _ in found)])
        asked = np.flatnonzero(numbers >= 0)
        states = self._layout.take(self._layout.concatenate(state for _, state in found), asked)
        return self._layout.fold(states, numbers[asked], len(places[0]))

    def _left_box(self, groups: Box) -> Box:
        """The left cells of the groups in a box."""
        lo, hi = list(self.after.source.left.box.lo), list(self.after.source.left.box.hi)
        for number, axis in enumerate(self._axes):
            lo[axis], hi[axis] = max(lo[axis], groups.lo[number]), min(hi[axis], groups.hi[number])
        return Box(tuple(lo), tuple(hi))

    def _evaluate(self, places: Places) -> pa.Table:
        found = evaluate_cells(self.engine, self.after, cluster_cells(places, self.after.schema.grid))
        numbers = match_cells(coordinates(found, self.after.schema), places)
        return found.filter(pa.array(numbers >= 0))


@dataclass(frozen=True)
class ReduceGroups:
    """A task: the states of the groups of pairs whose left cell lies in a box, and in none of those before it."""

    finder: PairFinder
    axes: tuple[int, ...]
    box: Box
    before: tuple[Box, ...]


def reduce_groups(task: ReduceGroups) -> tuple[Places, State]:
    """The groups, and the state of each as far as the task's left cells go."""
    finder, schema = task.finder, task.finder.left
    lefts = outside(read_boxes(finder.source, [task.box], schema), schema, task.before).combine_chunks()
    held = replace(finder, reader=replace(finder.reader, left=finder.held(lefts), itself=False))
    places, numbers = number_places(group_keys(coordinates(lefts, schema), task.axes))
    return places, finder.kept.layout.fold(held.reduce(lefts.num_rows), numbers, len(places[0]))


def group_keys(at: Places, axes: tuple[int, ...]) -> Places:
    """The coordinates of each left cell's group; all cells are one group if there are no others."""
    return [at[axis] for axis in axes] or [np.zeros(len(at[0]), np.int64)]
