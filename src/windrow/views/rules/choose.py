"""Which rule patches a view, if any does, and what is said of it before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from windrow.aggregates.states.layout import Layout
from windrow.execution.engine import Engine
from windrow.operations.join.build import is_by_cell
from windrow.plan.bound import Bound, BoundJoin, BoundJoined, BoundTotals, makes_pairs
from windrow.storage.transaction import Transaction
from windrow.storage.working import WorkingArray
from windrow.views.making import view_schema
from windrow.views.reduced.form import has_every_position, positions_in
from windrow.views.rules import chained, grouped, joined, nearest, totals
from windrow.views.rules.alone import AloneRule, counted
from windrow.views.rules.chained import ChainedRule
from windrow.views.rules.grouped import GroupedRule
from windrow.views.rules.joined import JoinedRule
from windrow.views.rules.nearest import NearestRule, ranked
from windrow.views.rules.reduced import ReducedRule
from windrow.views.rules.sides import joined_layout
from windrow.views.rules.totals import TotalsRule, totals_layout
from windrow.views.state_store import StateStore
from windrow.views.steps import CELLWISE, Changes

Rule = JoinedRule | GroupedRule | ChainedRule | NearestRule | TotalsRule


def core_of(bound: Bound) -> Bound:
    """The step of a query whose results are kept: below it cells are gathered, above it they are only looked at."""
    while isinstance(bound, CELLWISE):
        bound = bound.source
    return bound


def why_not_patched(bound: Bound) -> str | None:
    """Why a view's results are computed anew where they are touched; None if they are patched."""
    core = core_of(bound)
    if isinstance(core, BoundJoin):
        return "partners in a chain of joins are looked for again" if makes_pairs(core.left) else None
    if isinstance(core, BoundJoined):
        if makes_pairs(core.source.left):
            return chained.why_not_patched(core)
        rule = joined if is_by_cell(core) else grouped
        why = _why_no_join_is_patched(core)
        return rule.why_not_patched(core) if why is None and core.source.nearest is None else why
    if isinstance(core, BoundTotals):
        return totals.why_not_patched(core)
    return "each result is computed from the few cells around it"


def _why_no_join_is_patched(bound: BoundJoined) -> str | None:
    join = bound.source
    if join.nearest is not None:
        return nearest.why_not_patched(bound)
    if _drops_some(join):
        if not is_by_cell(bound):
            return "which cells of a group have no partner is looked up again"
        if bound.min_count:
            return "which results are of too few values is looked up again"
    lacking = joined_layout(bound).recomputed
    return f"{', '.join(lacking)} has no state from which a value can be taken out again" if lacking else None


def _drops_some(join: BoundJoin) -> bool:
    """Whether ``where`` decides which left cells without a partner stay."""
    return join.kind == "left" and join.where is not None


def kept_step(bound: Bound) -> Bound:
    """The step whose states are kept: that of the results, or one that says enough of the cells that these are of."""
    core = core_of(bound)
    if isinstance(core, BoundJoined) and makes_pairs(core.source.left):
        return core
    if isinstance(core, BoundJoined) and core.source.nearest is not None:
        return ranked(core, own=False)
    if isinstance(core, BoundJoin) or (isinstance(core, BoundJoined) and _drops_some(core.source)):
        return counted(core)
    return core


@dataclass(frozen=True)
class Bases:
    """A view's query as it was and as it is, and what changed in between."""

    before: Bound
    after: Bound
    changes: Changes


def state_layout_of(bound: Bound) -> Layout | None:
    """What is kept of a view's results, if anything is."""
    if why_not_patched(bound) is not None:
        return None
    core = kept_step(bound)
    return joined_layout(core) if isinstance(core, BoundJoined) else totals_layout(cast(BoundTotals, core))


def state_store(engine: Engine, transaction: Transaction, view: str, bound: Bound) -> StateStore | None:
    """Where the states of a view's results are, if it keeps any."""
    layout = state_layout_of(bound)
    if layout is None:
        return None
    return StateStore(engine, transaction, view, view_schema(kept_step(bound), None), layout)


def find_rule(
    engine: Engine, store: StateStore | None, bases: Bases, working: WorkingArray | None = None
) -> Rule | None:
    """The rule that patches a view, which stands as it was brought up to date last, by what changed."""
    before, after = core_of(bases.before), core_of(bases.after)
    if store is None or type(before) is not type(after) or why_not_patched(bases.before) is not None:
        return None
    if isinstance(before, BoundJoined) and isinstance(after, BoundJoined) and makes_pairs(after.source.left):
        return ChainedRule(engine, before, after, bases.changes, store)
    if isinstance(before, BoundJoined) and isinstance(after, BoundJoined) and after.source.nearest is not None:
        return NearestRule(engine, ranked(before, own=True), ranked(after, own=True), bases.changes, store, after)
    kept = kept_step(bases.before), kept_step(bases.after)
    if kept[1] is not after and isinstance(kept[0], BoundJoined) and isinstance(kept[1], BoundJoined):
        assert isinstance(after, BoundJoin | BoundJoined)
        return AloneRule(engine, kept[0], kept[1], bases.changes, store, after)
    if isinstance(before, BoundJoined) and isinstance(after, BoundJoined):
        if positions_in(after) is not None:
            assert working is not None, "rows of positions are the view's own"
            told = has_every_position(bases.after) and has_every_position(bases.before)
            return ReducedRule(engine, before, after, bases.changes, store, working, told)
        rule = JoinedRule if is_by_cell(after) else GroupedRule
        return rule(engine, before, after, bases.changes, store)
    if isinstance(before, BoundTotals) and isinstance(after, BoundTotals):
        return TotalsRule(engine, before, after, bases.changes, store)
    return None
