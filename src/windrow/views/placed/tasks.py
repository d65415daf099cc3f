"""The two tasks of each node, from what was planned: what it joins and keeps, and which results are at home on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from windrow.execution.pinned import Cluster, Exchange
from windrow.model.schema import Schema
from windrow.operations.query.held import HeldCells
from windrow.placement import Decision
from windrow.plan.bound import Bound, BoundHeld
from windrow.storage.cells import cell_fields, coordinates
from windrow.storage.records import Int64Array
from windrow.storage.working import WorkingArray
from windrow.views.placed import joining, merging
from windrow.views.placed.arrays import JoinedArray, result_chunks
from windrow.views.placed.choice import PlacedView, Wishes
from windrow.views.placed.joining import JoinNode, Partners
from windrow.views.placed.merging import Merged, MergeNode
from windrow.views.placed.problem import Base, Planned
from windrow.views.placed.shelf import ArrayChunks
from windrow.views.placed.sides import Side
from windrow.views.rules.pairs import PairFinder
from windrow.views.rules.sides import used_side
from windrow.views.steps import put_on

_KINDS = ("new_old", "new_new", "old_new", "old_old")
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Tasks:
    """What is planned for a view, and what tasks have to know to carry it out.

    ``rounds`` has, of each chunk of results, the round in which it is done.
    """

    placed: PlacedView
    cluster: Cluster
    wishes: Wishes
    arrays: list[JoinedArray]
    bases: tuple[Base, ...]
    planned: Planned
    decision: Decision
    states: WorkingArray
    identity: str
    rounds: Int64Array

    def exchange(self, number: int) -> Exchange[JoinNode, MergeNode, Merged]:
        """The tasks of one round."""
        label = f"maintaining {self.placed.working.record.name}"
        nodes = self.cluster.nodes
        return Exchange(
            label, nodes, self._join_tasks(number), joining.join_node, self._merge_tasks(number), merging.merge_node
        )

    @cached_property
    def _chunks(self) -> tuple[ArrayChunks, ...]:
        planned = self.planned
        return tuple(
            array.chunks(base.old.take(np.isin(base.old.ordinals, planned.ordinals[planned.arrays == number])))
            for number, (array, base) in enumerate(zip(self.arrays, self.bases, strict=True))
        )

    # Joining

    def _join_tasks(self, number: int) -> list[JoinNode]:
        planned, decision = self.planned, self.decision
        homes = dict(zip(planned.views.tolist(), decision.plan.view_homes.tolist(), strict=True))
        whole = frozenset(planned.whole.tolist())
        nodes = decision.plan.joins[planned.pair_of] if len(planned.pair_of) else planned.pair_of
        now = self._round_of_directions == number
        kept = self._kept & (self._kept_in == number)
        finder = finder_alone(self.placed.rule.finder, used_side(self.placed.rule.after, 2))
        tasks = []
        for node in range(len(self.cluster.nodes)):
            partners = partners_of(planned, np.flatnonzero(now & (nodes == node)))
            mine = kept & (decision.plan.homes == node)
            keeps = tuple(
                tuple(np.unique(planned.ordinals[mine & (planned.arrays == array)]).tolist())
                for array in range(len(self._chunks))
            )
            needed = needed_chunks(partners, keeps, self._sides)
            few = tuple(few_chunks(array, ordinals) for array, ordinals in zip(self._chunks, needed, strict=True))
            own = {ordinal: homes[ordinal] for ordinal in partners}
            mine_whole = whole & partners.keys()
            tasks.append(JoinNode(node, finder, self._sides, few, partners, mine_whole, own, keeps, self.wishes.cache))
        return tasks

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        rule, last = self.placed.rule, len(self.arrays) - 1
        before, after = rule.before.source, rule.after.source
        left = Side.of(0, before.left, after.left, used_side(rule.after, 1))
        return left, Side.of(last, before.right, after.right, used_side(rule.after, 2))

    @cached_property
    def _round_of_directions(self) -> Int64Array:
        return self.rounds[np.searchsorted(self.planned.views, self.planned.directions.left)]

    @cached_property
    def _kept_in(self) -> Int64Array:
        """The round in which each chunk is put where it is to be kept: the first in which its new home has it."""
        problem, homes = self.planned.problem, self.decision.plan.homes
        first = np.full(problem.group_count, _NEVER)
        if len(self.planned.pair_of):
            nodes = self.decision.plan.joins[self.planned.pair_of]
            for side in (problem.pairs.left[self.planned.pair_of], problem.pairs.right[self.planned.pair_of]):
                there = homes[side] == nodes
                np.minimum.at(first, problem.groups[side[there]], self._round_of_directions[there])
        return np.where(first < _NEVER, first, 0)[problem.groups]

    @cached_property
    def _kept(self) -> npt.NDArray[np.bool_]:
        """Which chunks can be kept: those that are looked at as they were, and those that were not there."""
        planned = self.planned
        kept = np.zeros(len(planned.ordinals), bool)
        for number, base in enumerate(self.bases):
            mine = planned.arrays == number
            ordinals = planned.ordinals[mine]
            twice = np.bincount(np.unique(ordinals, return_inverse=True)[1].reshape(-1))
            unique = np.unique(ordinals)
            changed = np.isin(unique, base.new.ordinals)
            was_there = np.isin(unique, base.old.ordinals)
            good = unique[~changed | ~was_there | (twice > 1)]
            kept[mine] = np.isin(ordinals, good)
        return kept

    # Merging

    @cached_property
    def _results(self) -> tuple[ArrayChunks, ArrayChunks]:
        """States and view."""
        touched, looks = self.planned.views.tolist(), self.placed.looks_at_results
        both = [
            result_chunks(self.placed.transaction, working, touched, self.identity, looks)
            for working in (self.states, self.placed.working)
        ]
        return both[0], both[1]

    @cached_property
    def _changed_places(self) -> tuple[dict[int, list[Int64Array]], dict[int, list[Int64Array]]]:
        """The places of left cells that left and that came, by chunk; the latter are looked at in left joins alone."""
        core = self.placed.rule.after
        change, used = self.placed.rule.left_change, used_side(core, 1)
        left, came = (_by_chunk(coordinates(table, used), used) for table in (change.left, change.came))
        return left, came if core.source.kind == "left" else {}

    def _merge_tasks(self, number: int) -> list[MergeNode]:
        core = self.placed.rule.after
        left, came = self._changed_places
        above = put_on(self.placed.bound, core, _nothing(core))
        nowhere = [np.empty(0, np.int64) for _ in range(core.schema.ndim)]
        whole, tasks = frozenset(self.planned.whole.tolist()), []
        for node in range(len(self.cluster.nodes)):
            mine = self.planned.views[(self.decision.plan.view_homes == node) & (self.rounds == number)].tolist()
            few = [few_chunks(array, mine) for array in self._results]
            tasks.append(
                MergeNode(
                    node,
                    self.placed.rule.finder.kept,
                    core.schema,
                    above,
                    few[0],
                    few[1],
                    (self.states.path, self.placed.working.path),
                    {ordinal: left.get(ordinal, nowhere) for ordinal in mine},
                    {ordinal: came[ordinal] for ordinal in mine if ordinal in came},
                    few_chunks(self._chunks[0], mine),
                    self._sides[0],
                    whole & {*mine},
                    self.wishes.cache,
                    self.placed.store.view,
                )
            )
        return tasks


def _by_chunk(at: list[Int64Array], schema: Schema) -> dict[int, list[Int64Array]]:
    """Places by the chunks in which they lie."""
    if not len(at[0]):
        return {}
    ordinals = schema.grid.ordinals(at)
    order = np.argsort(ordinals, kind="stable")
    starts = np.flatnonzero(np.diff(ordinals[order], prepend=-1))
    pieces = np.split(order, starts[1:])
    return {int(ordinals[rows[0]]): [column[rows] for column in at] for rows in pieces}


def partners_of(planned: Planned, chosen: Int64Array) -> dict[int, Partners]:
    found: dict[int, Partners] = {}
    directions = planned.directions
    columns = (directions.left[chosen], directions.right[chosen], directions.kind[chosen])
    for left, right, kind in zip(*(column.tolist() for column in columns), strict=True):
        getattr(found.setdefault(left, Partners()), _KINDS[kind]).append(right)
    return found


def needed_chunks(
    partners: dict[int, Partners], keeps: tuple[tuple[int, ...], ...], sides: tuple[Side, Side]
) -> list[set[int]]:
    """Of each array the chunks that a node looks at."""
    needed = [{*kept} for kept in keeps]
    needed[sides[0].array] |= partners.keys()
    for one in partners.values():
        needed[sides[1].array] |= {*one.new_old, *one.new_new, *one.old_new, *one.old_old}
    return needed


def few_chunks(array: ArrayChunks, ordinals: set[int] | list[int]) -> ArrayChunks:
    """An array as far as some of its chunks go: a task is told of no others."""
    versions, following = (
        {o: known[o] for o in ordinals if o in known} for known in (array.versions, array.next_versions)
    )
    places = {o: array.staged.places[o] for o in ordinals if o in array.staged}
    return replace(array, versions=versions, next_versions=following, staged=replace(array.staged, places=places))


def finder_alone(finder: PairFinder, right: Schema) -> PairFinder:
    """What lists pairs, without the arrays whose cells it is going to be given."""
    reader = finder.reader
    nothing = HeldCells(reader.right.schema, reader.right.box, (), cell_fields(right).empty_table())
    left = finder.held(cell_fields(finder.left).empty_table())
    return replace(finder, reader=replace(reader, left=left, right=nothing, itself=False))


def _nothing(core: Bound) -> BoundHeld:
    empty = cell_fields(core.schema).empty_table()
    return BoundHeld(schema=core.schema, box=core.box, labels=core.labels, gridding=core.gridding, table=empty)
