"""One view brought from one moment of its bases to another: planned first, then carried out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from windrow.errors import Error
from windrow.execution.engine import Engine
from windrow.model.box import Box
from windrow.operations.dense.write import settle
from windrow.operations.query.blocks import row_bytes
from windrow.plan.bound import Bound, BoundNamed
from windrow.plan.nodes import Scan
from windrow.storage.transaction import Transaction
from windrow.storage.working import WorkingArray
from windrow.views.apply import (
    Applied,
    follow_query,
    move,
    put_results,
    rebuild,
    rebuild_unlike,
    recompute_boxes,
    recompute_cells,
)
from windrow.views.changes import Change, label_boxes, relabelled
from windrow.views.cost import Choice, choose, choose_for_all
from windrow.views.estimate import estimate_touched
from windrow.views.history import Entry
from windrow.views.known import KnownView, pinned_scans
from windrow.views.making import fits, view_schema
from windrow.views.placed.build import build_placed
from windrow.views.placed.choice import PlacedView
from windrow.views.placed.measured import Placement
from windrow.views.placed.patch import do_placed, made_now
from windrow.views.reduced.changes import count_shown, moved_cells
from windrow.views.reduced.form import positions_in, stored_form
from windrow.views.reduced.states import keep_states
from windrow.views.rules.choose import Bases, core_of, find_rule, state_store, why_not_patched
from windrow.views.rules.joined import JoinedRule
from windrow.views.rules.reduced import ReducedRule
from windrow.views.touched import AnotherQueryError, find_touched
from windrow.views.used import without_unused

Moments = Mapping[str, tuple[BoundNamed, BoundNamed]]
"""The bases of a view, each as it was and as it is."""


@dataclass(frozen=True)
class Brought:
    """What came of it: a line of history, unless there was nothing to do, and what was learned about costs."""

    entry: Entry | None = None
    learned: Mapping[str, float] | None = None
    state: str | None = None
    """The array that keeps states, if it was made now."""


@dataclass(frozen=True)
class Plan:
    """Patch or rebuild, and where."""

    choice: Choice
    boxes: list[Box] = field(default_factory=list)
    bases: Bases | None = None
    mends: bool = False
    """Whether what is stored is not to be relied on."""
    before: Bound | None = None
    """The query as it was, where it has the same steps now."""
    changes: Mapping[str, Change] = field(default_factory=dict)


def bring(
    engine: Engine,
    transaction: Transaction,
    view: KnownView,
    moments: Moments,
    changes: Mapping[str, Change],
    anew: str = "",
) -> Brought:
    """Bring a view up to date with what happened to its bases, or compute it ``anew`` for a reason."""
    clock = Clock()
    transaction.maintained.add(view.name)
    working = transaction.working(view.name)
    with clock("plan"):
        pinned = pinned_scans(transaction.warehouse, view.definition)
        after = view.definition.bind({name: now for name, (_, now) in moments.items()}, pinned)
        stores = stored_form(after, view.reduced)
        happened, changes = changes, without_unused(changes, after)
        plan = Plan(Choice(True, anew), mends=True)
        if not fits(working.schema, working.hi, after):
            move(engine, working, view_schema(after, view.settings.chunks), after)
            plan = Plan(Choice(True, "its results lie elsewhere now"), mends=True)
        elif not anew:
            plan = _plan(view, moments, changes, Query.of(stores, pinned, working))
    entry = Entry.of_choice(plan.choice, transaction.batch, sum(change.cells for change in changes.values()))
    follow_query(working, after)
    if not plan.choice.rebuilds and not plan.boxes:
        settle(working)
        return Brought()
    with clock("compute and write"):
        applied, made, placement = _carry_out(engine, transaction, view, stores, plan, happened)
        if positions_in(stores) is not None:
            applied = _with_cells(engine, working, stores, plan, applied)
    settle(working)
    done = entry.done(applied, int(plan.choice.patch), working, clock.phases).placed(placement)
    return Brought(done, plan.choice.learn(view.record.learned, clock.total), made)


@dataclass(frozen=True)
class Query:
    """A view's query as it is now: the old versions that it reads, how many results are stored, and where they lie."""

    bound: Bound
    pinned: Mapping[Scan, BoundNamed]
    stored: int
    whole: Box
    """All that is stored, and all that there is now."""

    @classmethod
    def of(cls, bound: Bound, pinned: Mapping[Scan, BoundNamed], working: WorkingArray) -> Query:
        stored = sum(part.cells for part in working.parts.values())
        return cls(bound, pinned, stored, working.schema.box(working.hi) | bound.box)


def _plan(view: KnownView, moments: Moments, changes: Mapping[str, Change], query: Query) -> Plan:
    """Whether to patch or to rebuild, and the boxes of results to look at again."""
    after, settings = query.bound, view.settings
    try:
        was = view.definition.bind({name: old for name, (old, _) in moments.items()}, query.pinned)
        before = stored_form(was, view.reduced)
        patched = why_not_patched(after) is None  # then it is enough to know about where
        where = {
            name: [*(change.regions if patched else change.boxes), *label_boxes(*moments[name])]
            for name, change in changes.items()
        }
        boxes = find_touched(before, after, where)
    except (AnotherQueryError, Error) as error:
        why = f"the query's steps are others now: {error}"
        return Plan(choose_for_all(settings.maintain, why, max(1, query.stored)), [query.whole])
    if not boxes:  # of what nothing reaches there is nothing to rebuild
        return Plan(Choice(False, "no result is touched"))
    reason = _why_not_by_rule(view, moments, changes)
    found = estimate_touched(before, after, {} if reason else changes, boxes, query.stored)
    choice = choose(settings.maintain, found, view.record.learned)
    if reason is None:
        return Plan(choice, boxes, Bases(before, after, changes), before=before, changes=changes)
    choice = replace(choice, why=f"{reason}, and {choice.why}")
    return Plan(choice, boxes, before=before, changes=changes)


def _why_not_by_rule(view: KnownView, moments: Moments, changes: Mapping[str, Change]) -> str | None:
    """What changed besides cells, so that what is known of results before says nothing of them now."""
    if any(name in view.definition.shape_names for name in changes):
        return "the shape itself changed"
    moved = [name for old, now in moments.values() for name in relabelled(old, now)]
    return f"cells along {', '.join(dict.fromkeys(moved))} have other labels" if moved else None


def _carry_out(
    engine: Engine,
    transaction: Transaction,
    view: KnownView,
    after: Bound,
    plan: Plan,
    happened: Mapping[str, Change],
) -> tuple[Applied, str | None, Placement | None]:
    working = transaction.working(view.name)
    store = state_store(engine, transaction, view.name, after)
    rule = None if plan.bases is None or plan.choice.rebuilds else find_rule(engine, store, plan.bases, working)
    if rule is not None and store is not None:
        size = int(plan.choice.patch) * row_bytes(after.schema)
        by_nodes = None
        if isinstance(rule, JoinedRule) and not isinstance(rule, ReducedRule):
            by_nodes = do_placed(PlacedView(transaction, working, after, rule, happened, store), view.settings, size)
        applied = (
            put_results(engine, working, after, core_of(after), rule.patch()) if by_nodes is None else by_nodes.applied
        )
        return applied, made_now(transaction, store.name), None if by_nodes is None else by_nodes.placement
    if plan.choice.rebuilds:
        by_nodes = build_placed(engine, transaction, working, after, view.settings, mends=plan.mends)
        if by_nodes is not None:
            return by_nodes.applied, by_nodes.state, by_nodes.placement
    if store is not None:
        store.forget_all()
    if plan.mends:
        applied = rebuild(engine, working, after)
        made = None if view.settings.maintain == "full" else keep_states(engine, store, after)
        return applied, made, None
    if plan.choice.rebuilds:
        return rebuild_unlike(engine, working, after), None, None
    again = recompute_cells if working.record.sparse else recompute_boxes
    return again(engine, working, after, plan.boxes), None, None


def _with_cells(engine: Engine, working: WorkingArray, after: Bound, plan: Plan, applied: Applied) -> Applied:
    """What was done to a view that is stored by position, the cells among it that are shown with results as they were.

    It is another version if other cells are shown, though nothing of what is stored may have changed.
    """
    if applied.cells or applied.rewritten:
        return applied
    left, was = positions_in(after), None if plan.before is None else positions_in(plan.before)
    assert left is not None
    if was is None:  # what cells there were is not known
        shown = 1
    else:
        moved = moved_cells(engine, was.source, left.source, plan.changes)
        shown = count_shown(engine, working, moved, left.axes)
    if shown:
        working.note("patch")
    return replace(applied, cells=shown)


@dataclass
class Clock:
    """How long the phases of a maintenance took."""

    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.phases[phase] = self.phases.get(phase, 0.0) + time.perf_counter() - started

    @property
    def total(self) -> float:
        return sum(self.phases.values())
