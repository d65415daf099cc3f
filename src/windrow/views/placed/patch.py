"""A view patched by several nodes: planned, joined and merged by them, and taken up into the batch's transaction."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

import numpy as np

from windrow.execution.executor import Executor
from windrow.execution.pinned import Cluster, Exchange
from windrow.model.schema import Schema
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.held import HeldCells
from windrow.operations.sparse.lookup import mark_replaced
from windrow.operations.sparse.patch import remove_at
from windrow.placement import Decision, Options, plan_batch
from windrow.plan.bound import Bound, BoundHeld
from windrow.storage.cells import cell_fields, coordinates
from windrow.storage.homes import RATES, Homes, NewHomes, load_homes, load_joined
from windrow.storage.records import ArrayRecord, ChunkStatistics, Int64Array, Part
from windrow.storage.sparse import SparseStore
from windrow.storage.transaction import Transaction
from windrow.storage.upkeep.working_parts import add_run
from windrow.storage.working import WorkingArray
from windrow.views.apply import Applied, put_results
from windrow.views.definition import Settings
from windrow.views.placed import joining, merging
from windrow.views.placed.arrays import JoinedArray, result_chunks
from windrow.views.placed.choice import PlacedView, Wishes
from windrow.views.placed.joining import JoinNode, Partners
from windrow.views.placed.measured import Placement, measure
from windrow.views.placed.merging import Merged, MergeNode
from windrow.views.placed.problem import Base, Numbering, Planned, Results, make_problem
from windrow.views.placed.rates import learn_rates, learn_share, read_rates, write_rates
from windrow.views.placed.remembering import pack_correlations, unpack_correlations
from windrow.views.placed.shelf import ArrayChunks
from windrow.views.placed.sides import Side
from windrow.views.rules.pairs import PairFinder
from windrow.views.rules.sides import used_side
from windrow.views.steps import put_on

_KINDS = ("new_old", "new_new", "old_new", "old_old")


@dataclass(frozen=True)
class PatchedByNodes:
    """What came of it."""

    applied: Applied
    placement: Placement


def patch_placed(placed: PlacedView, settings: Settings, size: int) -> PatchedByNodes | None:
    """Bring a view up to date on several nodes, if there are such and it is a view of that kind; None if not."""
    if not placed.is_shared_out:
        return None
    engine = placed.store.engine
    cluster = engine.cluster(size)
    if cluster is None:
        return None
    return patch_by_nodes(placed, cluster, Wishes.of(settings, engine.placement))


def patch_by_nodes(placed: PlacedView, cluster: Cluster, wishes: Wishes) -> PatchedByNodes:
    """Bring a view up to date on the nodes of a cluster."""
    arrays = placed.arrays()
    try:
        return _Run(placed, cluster, wishes, arrays).patch()
    finally:
        for array in arrays:
            array.staged.remove()


@dataclass
class _Run:
    placed: PlacedView
    cluster: Cluster
    wishes: Wishes
    arrays: list[JoinedArray]

    def patch(self) -> PatchedByNodes:
        states = self.placed.store.opened()
        bases = tuple(array.base() for array in self.arrays)
        rates = read_rates(self.transaction.catalog.setting(RATES))
        if self.wishes.rates is not None:
            rates = self.wishes.rates
        share = self._learned_share()
        sizes = row_bytes(states.schema) + row_bytes(self.placed.working.schema), row_bytes(states.schema)
        results = Results(self._chunks(states), *sizes, self._homes(states), self._density(), share)
        planned = make_problem(self.placed.join, bases, results, self._numbering(), rates)
        past = [
            unpack_correlations(one) for one in load_joined(self.transaction.catalog, states.record, self.wishes.window)
        ]
        options = Options(self.wishes.window, self.wishes.decay, self.wishes.seed, seconds=self.wishes.budget)
        decision = plan_batch(planned.problem, self.wishes.strategy, options, past)
        identity = uuid.uuid4().hex
        receipts = self.cluster.exchange(self._exchange(planned, decision, bases, states, identity))
        self.transaction.rates = write_rates(learn_rates(rates, receipts))
        applied = self._take_up(states, receipts)
        self._note_homes(planned, decision, states, identity)
        changed = sum(array.change.left.nbytes + array.change.came.nbytes for array in self.arrays)
        expected = float(planned.problem.pairs.states.sum())
        found = sum(receipt.made_bytes for receipt in receipts)
        share = learn_share(share, expected, found)
        return PatchedByNodes(applied, measure(decision, self.cluster.nodes, receipts, changed, share))

    @property
    def transaction(self) -> Transaction:
        return self.placed.transaction

    def _chunks(self, working: WorkingArray) -> ChunkStatistics:
        return working.chunks(self.transaction.catalog).merged()

    def _density(self) -> float:
        """What part of a chunk's cells lie in a shape around a cell, if they lie evenly."""
        right = self.placed.join.right.schema.grid
        return float(min(1.0, self.placed.rule.finder.reader.volume / right.chunk_cells))

    def _learned_share(self) -> float:
        """How many times as many states as expected were sent at the last batch that nodes did."""
        entries = self.transaction.catalog.view_history(self.placed.working.record)
        shares = [one["placement"]["share"] for one in entries if one.get("placement")]
        return float(shares[-1]) if shares else 1.0

    def _homes(self, states: WorkingArray) -> Homes:
        known = self.transaction.homes.get(states.record.name)
        if known is not None and known.forgets:
            return Homes.none()
        if not states.record.id:
            return Homes.none()
        found = load_homes(self.transaction.catalog, states.record)
        return _borne_out(found, self._chunks(states), self._chunks(self.placed.working))

    def _numbering(self) -> Numbering:
        shape = self.placed.join.offsets
        chunk = self.placed.join.right.schema.grid.chunk
        spans = zip(shape.start, shape.stop, chunk, shape.free, strict=True)
        narrow = tuple(axis for axis, (lo, hi, size, free) in enumerate(spans) if not free and hi - lo < size)
        names = tuple(node.name for node in self.cluster.nodes)
        return Numbering(names, self.wishes.assignment, narrow or tuple(range(len(chunk))))

    # Tasks

    def _exchange(
        self, planned: Planned, decision: Decision, bases: tuple[Base, ...], states: WorkingArray, identity: str
    ) -> Exchange[JoinNode, MergeNode, Merged]:
        nodes = self.cluster.nodes
        arrays = tuple(
            array.chunks(base.old.take(np.isin(base.old.ordinals, planned.ordinals[planned.arrays == number])))
            for number, (array, base) in enumerate(zip(self.arrays, bases, strict=True))
        )
        joins = self._join_tasks(planned, decision, bases, arrays)
        merges = self._merge_tasks(planned, decision, states, identity, arrays[0])
        label = f"maintaining {self.placed.working.record.name}"
        return Exchange(label, nodes, joins, joining.join_node, merges, merging.merge_node)

    def _join_tasks(
        self, planned: Planned, decision: Decision, bases: tuple[Base, ...], arrays: tuple[ArrayChunks, ...]
    ) -> list[JoinNode]:
        sides = self._sides()
        homes = dict(zip(planned.views.tolist(), decision.plan.view_homes.tolist(), strict=True))
        whole = frozenset(planned.whole.tolist())
        kept = self._kept(planned, bases)
        nodes = decision.plan.joins[planned.pair_of] if len(planned.pair_of) else planned.pair_of
        finder = _alone(self.placed.rule.finder, used_side(self.placed.rule.after, 2))
        tasks = []
        for node in range(len(self.cluster.nodes)):
            partners = _partners(planned, np.flatnonzero(nodes == node))
            mine = kept & (decision.plan.homes == node)
            keeps = tuple(
                tuple(np.unique(planned.ordinals[mine & (planned.arrays == number)]).tolist())
                for number in range(len(arrays))
            )
            needed = _needed(partners, keeps, sides)
            few = tuple(_few(array, ordinals) for array, ordinals in zip(arrays, needed, strict=True))
            own = {ordinal: homes[ordinal] for ordinal in partners}
            tasks.append(
                JoinNode(node, finder, sides, few, partners, whole & partners.keys(), own, keeps, self.wishes.cache)
            )
        return tasks

    def _sides(self) -> tuple[Side, Side]:
        rule, last = self.placed.rule, len(self.arrays) - 1
        before, after = rule.before.source, rule.after.source
        left = Side.of(0, before.left, after.left, used_side(rule.after, 1))
        return left, Side.of(last, before.right, after.right, used_side(rule.after, 2))

    def _kept(self, planned: Planned, bases: tuple[Base, ...]) -> np.ndarray:
        """Which chunks can be kept: those that are looked at as they were, and those that were not there."""
        kept = np.zeros(len(planned.ordinals), bool)
        for number, base in enumerate(bases):
            mine = planned.arrays == number
            ordinals = planned.ordinals[mine]
            twice = np.bincount(np.unique(ordinals, return_inverse=True)[1].reshape(-1))
            unique = np.unique(ordinals)
            changed = np.isin(unique, base.new.ordinals)
            was_there = np.isin(unique, base.old.ordinals)
            good = unique[~changed | ~was_there | (twice > 1)]
            kept[mine] = np.isin(ordinals, good)
        return kept

    def _merge_tasks(
        self, planned: Planned, decision: Decision, states: WorkingArray, identity: str, cells: ArrayChunks
    ) -> list[MergeNode]:
        rule, touched = self.placed.rule, planned.views
        core = rule.after
        change, used = rule.left_change, used_side(core, 1)
        left, came = (_by_chunk(coordinates(table, used), used) for table in (change.left, change.came))
        arrays = [
            result_chunks(self.transaction, working, touched.tolist(), identity)
            for working in (states, self.placed.working)
        ]
        held = _nothing(core)
        above = put_on(self.placed.bound, core, held)
        nowhere = [np.empty(0, np.int64) for _ in range(core.schema.ndim)]
        counts_left = core.source.kind == "left"
        whole, tasks = frozenset(planned.whole.tolist()), []
        for node in range(len(self.cluster.nodes)):
            mine = touched[decision.plan.view_homes == node].tolist()
            few = [_few(array, mine) for array in arrays]
            tasks.append(
                MergeNode(
                    node,
                    self.placed.rule.finder.kept,
                    core.schema,
                    above,
                    few[0],
                    few[1],
                    (states.path, self.placed.working.path),
                    {ordinal: left.get(ordinal, nowhere) for ordinal in mine},
                    {ordinal: came[ordinal] for ordinal in mine if ordinal in came} if counts_left else {},
                    _few(cells, mine),
                    self._sides()[0],
                    whole & {*mine},
                    self.wishes.cache,
                    self.placed.store.view,
                )
            )
        return tasks

    # What came of it

    def _take_up(self, states: WorkingArray, receipts: list[Merged]) -> Applied:
        """Take the parts that nodes wrote up into the transaction, and compute what states could not tell."""
        engine, working = self.placed.store.engine, self.placed.working
        arrays = (states, working)
        for number, array in enumerate(arrays):
            written = [part for receipt in receipts for part in receipt.parts[number]]
            gone = [np.concatenate(columns) for columns in zip(*(one.gone[number] for one in receipts), strict=True)]
            if written or len(gone[0]):
                _put(engine.local, array, written, gone)
                array.note("patch")
        self.transaction.maintained.add(states.record.name)
        cells, touched, pairs = (sum(getattr(one, n) for one in receipts) for n in ("cells", "touched", "pairs"))
        doubtful = [np.concatenate(columns) for columns in zip(*(one.doubtful for one in receipts), strict=True)]
        if len(doubtful[0]):
            found = self.placed.rule.recompute(doubtful)
            more = put_results(engine, working, self.placed.bound, self.placed.rule.after, found)
            cells, pairs = cells + more.cells, pairs + more.pairs
        return Applied(cells, touched, pairs)

    def _note_homes(self, planned: Planned, decision: Decision, states: WorkingArray, identity: str) -> None:
        """What the next batch finds: who has which chunk, under which name."""
        names = tuple(node.name for node in self.cluster.nodes)
        for number, array in enumerate(self.arrays):
            mine = planned.arrays == number
            ordinals, first = np.unique(planned.ordinals[mine], return_index=True)
            numbers = decision.plan.homes[mine][first].astype(np.int64)
            working = self.transaction.known(array.name)
            steps = 0 if working is None else working.steps
            named = array.identity() if working is not None and working.changed else None
            self._note(array.record, NewHomes(names, ordinals, numbers, named, steps))
        homes = decision.plan.view_homes.astype(np.int64)
        joined = pack_correlations(decision.remembered)
        self._note(states.record, NewHomes(names, planned.views, homes, identity, states.steps, joined))
        view = self.placed.working
        self._note(view.record, NewHomes(identity=identity, steps=view.steps))

    def _note(self, record: ArrayRecord, new: NewHomes) -> None:
        self.transaction.homes[record.name] = new.after(self.transaction.homes.get(record.name))


def _put(executor: Executor, working: WorkingArray, written: list[Part], gone: list[Int64Array]) -> None:
    """Take cells up that were written elsewhere, in the place of those at their coordinates."""
    try:
        remove_at(executor, working, gone)
        mark_replaced(executor, working, written)
    except BaseException:
        SparseStore(working.path).discard(written)
        raise
    for part in written:  # those of several nodes reach into one another, so that they are no one run
        add_run(working, [part])


def _by_chunk(at: list[Int64Array], schema: Schema) -> dict[int, list[Int64Array]]:
    """Places by the chunks in which they lie."""
    if not len(at[0]):
        return {}
    ordinals = schema.grid.ordinals(at)
    order = np.argsort(ordinals, kind="stable")
    starts = np.flatnonzero(np.diff(ordinals[order], prepend=-1))
    pieces = np.split(order, starts[1:])
    return {int(ordinals[rows[0]]): [column[rows] for column in at] for rows in pieces}


def _borne_out(homes: Homes, states: ChunkStatistics, results: ChunkStatistics) -> Homes:
    """The homes of chunks that have a state for each result at least, as a chunk with a home should.

    Whatever else the catalog says, what has fewer is done whole: adding to states that are not there would be wrong.
    """
    kept, there = (
        np.bincount(np.searchsorted(homes.ordinals, one.ordinals[mine]), one.cells[mine], len(homes.ordinals))
        for one in (states, results)
        for mine in [np.isin(one.ordinals, homes.ordinals)]
    )
    good = kept >= there
    return replace(homes, ordinals=homes.ordinals[good], numbers=homes.numbers[good])


def _partners(planned: Planned, chosen: Int64Array) -> dict[int, Partners]:
    found: dict[int, Partners] = {}
    directions = planned.directions
    columns = (directions.left[chosen], directions.right[chosen], directions.kind[chosen])
    for left, right, kind in zip(*(column.tolist() for column in columns), strict=True):
        getattr(found.setdefault(left, Partners()), _KINDS[kind]).append(right)
    return found


def _needed(
    partners: dict[int, Partners], keeps: tuple[tuple[int, ...], ...], sides: tuple[Side, Side]
) -> list[set[int]]:
    """Of each array the chunks that a node looks at."""
    needed = [{*kept} for kept in keeps]
    needed[sides[0].array] |= partners.keys()
    for one in partners.values():
        needed[sides[1].array] |= {*one.new_old, *one.new_new, *one.old_new, *one.old_old}
    return needed


def _few(array: ArrayChunks, ordinals: set[int] | list[int]) -> ArrayChunks:
    """An array as far as some of its chunks go: a task is told of no others."""
    versions, following = (
        {o: known[o] for o in ordinals if o in known} for known in (array.versions, array.next_versions)
    )
    places = {o: array.staged.places[o] for o in ordinals if o in array.staged}
    return replace(array, versions=versions, next_versions=following, staged=replace(array.staged, places=places))


def _alone(finder: PairFinder, right: Schema) -> PairFinder:
    """What lists pairs, without the arrays whose cells it is going to be given."""
    reader = finder.reader
    nothing = HeldCells(reader.right.schema, reader.right.box, (), cell_fields(right).empty_table())
    left = finder.held(cell_fields(finder.left).empty_table())
    return replace(finder, reader=replace(reader, left=left, right=nothing, itself=False))


def _nothing(core: Bound) -> BoundHeld:
    empty = cell_fields(core.schema).empty_table()
    return BoundHeld(schema=core.schema, box=core.box, labels=core.labels, gridding=core.gridding, table=empty)
