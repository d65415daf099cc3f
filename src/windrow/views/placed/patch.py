"""A view patched or built by several nodes: planned, joined and merged by them, taken up into the transaction."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

import numpy as np

from windrow.execution.executor import Executor
from windrow.execution.pinned import Cluster
from windrow.operations.query.blocks import row_bytes
from windrow.operations.sparse.lookup import mark_replaced
from windrow.operations.sparse.patch import remove_at
from windrow.operations.sparse.rewrite import delete
from windrow.placement import Decision, Options, plan_batch
from windrow.storage.homes import RATES, Homes, NewHomes, load_homes, load_joined
from windrow.storage.records import ArrayRecord, ChunkStatistics, Int64Array, Part
from windrow.storage.sparse import SparseStore
from windrow.storage.transaction import Transaction
from windrow.storage.upkeep.working_parts import add_run
from windrow.storage.working import WorkingArray
from windrow.views.apply import Applied, put_results
from windrow.views.definition import Settings
from windrow.views.placed.arrays import JoinedArray
from windrow.views.placed.choice import PlacedView, Way, Wishes
from windrow.views.placed.measured import Placement, measure
from windrow.views.placed.merging import Merged
from windrow.views.placed.problem import Base, Numbering, Planned, Results, make_problem
from windrow.views.placed.rates import learn_rates, learn_share, read_rates, write_rates
from windrow.views.placed.remembering import pack_correlations, unpack_correlations
from windrow.views.placed.rounds import cut_rounds
from windrow.views.placed.tasks import Tasks


@dataclass(frozen=True)
class DoneByNodes:
    """What came of it."""

    applied: Applied
    placement: Placement
    state: str | None
    """The array that keeps states, if it was made now."""


def do_placed(placed: PlacedView, settings: Settings, size: int) -> DoneByNodes | None:
    """Patch or build a view on several nodes, if there are such and it is a view of that kind; None if not."""
    if not placed.is_shared_out:
        return None
    engine = placed.store.engine
    cluster = engine.cluster(size)
    if cluster is None:
        return None
    arrays = placed.arrays()
    try:
        return _Run(placed, cluster, Wishes.of(settings, engine.placement), arrays).do()
    finally:
        for array in arrays:
            array.staged.remove()


def made_now(transaction: Transaction, name: str) -> str | None:
    """An array's name, if this transaction made it."""
    known = transaction.known(name)
    return name if known is not None and known.made is not None else None


@dataclass
class _Run:
    placed: PlacedView
    cluster: Cluster
    wishes: Wishes
    arrays: list[JoinedArray]

    def do(self) -> DoneByNodes:
        self._make_room()
        states = self.placed.store.opened()
        bases = tuple(array.base() for array in self.arrays)
        rates = self.wishes.rates or read_rates(self.transaction.catalog.setting(RATES))
        share = self._learned_share()
        numbering = Numbering.of(self.placed.join, self.cluster.nodes, self.wishes.assignment)
        planned = make_problem(self.placed.join, bases, self._results(states, bases[0], share), numbering, rates)
        past = [
            unpack_correlations(one) for one in load_joined(self.transaction.catalog, states.record, self.wishes.window)
        ]
        options = Options(self.wishes.window, self.wishes.decay, self.wishes.seed, seconds=self.wishes.budget)
        decision = plan_batch(planned.problem, self.wishes.strategy, options, past)
        identity = uuid.uuid4().hex
        receipts = self._exchange(planned, decision, bases, states, identity)
        self.transaction.rates = write_rates(learn_rates(rates, receipts))
        applied = self._take_up(states, receipts)
        self._note_homes(planned, decision, states, identity)
        changed = sum(array.change.left.nbytes + array.change.came.nbytes for array in self.arrays)
        expected = float(planned.problem.pairs.states.sum())
        found = sum(receipt.made_bytes for receipt in receipts)
        share = learn_share(share, expected, found)
        measured = measure(decision, self.cluster.nodes, receipts, changed, share)
        return DoneByNodes(applied, measured, made_now(self.transaction, states.record.name))

    @property
    def transaction(self) -> Transaction:
        return self.placed.transaction

    def _make_room(self) -> None:
        """Where everything is built, no state counts that was there before, nor any result unless it is compared."""
        if self.placed.way is not Way.PATCHED:
            self.placed.store.forget_all()
        if self.placed.way is Way.BUILT:
            delete(self.placed.store.engine, self.placed.working, None)
            self.placed.working.note("rebuild")

    def _results(self, states: WorkingArray, left: Base, share: float) -> Results:
        asked = np.empty(0, np.int64)
        if self.placed.way is not Way.PATCHED:
            asked = np.union1d(left.old.ordinals, self._chunks(self.placed.working).ordinals)
        sizes = row_bytes(states.schema) + row_bytes(self.placed.working.schema), row_bytes(states.schema)
        return Results(self._chunks(states), *sizes, self._homes(states), self._density(), share, asked)

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

    def _exchange(
        self,
        planned: Planned,
        decision: Decision,
        bases: tuple[Base, ...],
        states: WorkingArray,
        identity: str,
    ) -> list[Merged]:
        """Let nodes do what is planned, round after round."""
        rounds = cut_rounds(planned, decision, self.wishes.round)
        tasks = Tasks(
            self.placed, self.cluster, self.wishes, self.arrays, bases, planned, decision, states, identity, rounds
        )
        receipts: list[Merged] = []
        try:
            for number in range(int(rounds.max(initial=0)) + 1):
                receipts += self.cluster.exchange(tasks.exchange(number))
        except BaseException:
            for number, array in enumerate((states, self.placed.working)):
                SparseStore(array.path).discard([part for receipt in receipts for part in receipt.parts[number]])
            raise
        return receipts

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
                array.note("rebuild" if self.placed.way is Way.BUILT and array is working else "patch")
        self.transaction.maintained.add(states.record.name)
        cells, touched, pairs = (sum(getattr(one, n) for one in receipts) for n in ("cells", "touched", "pairs"))
        doubtful = [np.concatenate(columns) for columns in zip(*(one.doubtful for one in receipts), strict=True)]
        if len(doubtful[0]):
            found = self.placed.rule.recompute(doubtful)
            more = put_results(engine, working, self.placed.bound, self.placed.rule.after, found)
            cells, pairs = cells + more.cells, pairs + more.pairs
        return Applied(cells, touched, pairs, self.placed.way is Way.BUILT)

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
