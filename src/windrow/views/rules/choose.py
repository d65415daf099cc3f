"""Which rule patches a view, if any does, and what is said of it before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from windrow.aggregates.states.layout import Layout
from windrow.execution.engine import Engine
from windrow.operations.join.build import is_by_cell
from windrow.plan.bound import Bound, BoundJoined, BoundTotals, makes_pairs
from windrow.storage.transaction import Transaction
from windrow.storage.working import WorkingArray
from windrow.views.making import view_schema
from windrow.views.reduced.form import has_every_position, positions_in
from windrow.views.rules import grouped, joined, totals
from windrow.views.rules.grouped import GroupedRule
from windrow.views.rules.joined import JoinedRule
from windrow.views.rules.reduced import ReducedRule
from windrow.views.rules.sides import joined_layout
from windrow.views.rules.totals import TotalsRule, totals_layout
from windrow.views.state_store import StateStore
from windrow.views.steps import CELLWISE, Changes

Rule = JoinedRule | GroupedRule | TotalsRule


def core_of(bound: Bound) -> Bound:
    """The step of a query whose results are kept: below it cells are gathered, above it they are only looked at."""
    while isinstance(bound, CELLWISE):
        bound = bound.source
    return bound


def why_not_patched(bound: Bound) -> str | None:
    """Why a view's results are computed anew where they are touched; None if they are patched."""
    core = core_of(bound)
    if isinstance(core, BoundJoined):
        rule = joined if is_by_cell(core) else grouped
        return _why_no_join_is_patched(core) or rule.why_not_patched(core)
    if isinstance(core, BoundTotals):
        return totals.why_not_patched(core)
    return "each result is computed from the few cells around it"


def _why_no_join_is_patched(bound: BoundJoined) -> str | None:
    join = bound.source
    if makes_pairs(join.left):
        return "partners in a chain of joins are looked for again"
    if join.nearest is not None:
        return "which partners are nearest is looked up again"
    if join.kind not in ("inner", "left") or (join.kind == "left" and join.where is not None):
        return "cells without a partner are looked for again"
    if join.sky is not None:
        return "distances on the sky are measured again"
    lacking = joined_layout(bound).recomputed
    return f"{', '.join(lacking)} has no state from which a value can be taken out again" if lacking else None


@dataclass(frozen=True)
class Bases:
    """A view's query as it was and as it is, and what changed in between."""

    before: Bound
    after: Bound
    changes: Changes


def state_layout_of(bound: Bound) -> Layout | None:
    """What is kept of a view's results, if anything is."""
    core = core_of(bound)
    if why_not_patched(bound) is not None:
        return None
    return joined_layout(core) if isinstance(core, BoundJoined) else totals_layout(cast(BoundTotals, core))


def state_store(engine: Engine, transaction: Transaction, view: str, bound: Bound) -> StateStore | None:
    """Where the states of a view's results are, if it keeps any."""
    layout = state_layout_of(bound)
    if layout is None:
        return None
    return StateStore(engine, transaction, view, view_schema(core_of(bound), None), layout)


def find_rule(
    engine: Engine, store: StateStore | None, bases: Bases, working: WorkingArray | None = None
) -> Rule | None:
    """The rule that patches a view, which stands as it was brought up to date last, by what changed."""
    before, after = core_of(bases.before), core_of(bases.after)
    if store is None or type(before) is not type(after) or why_not_patched(bases.before) is not None:
        return None
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
