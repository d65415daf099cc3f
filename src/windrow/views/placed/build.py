"""A view computed from the beginning by several nodes: every chunk of results is planned, joined and merged whole."""

from __future__ import annotations

from windrow.execution.engine import Engine
from windrow.operations.query.run import source_of
from windrow.plan.bound import Bound
from windrow.storage.transaction import Transaction
from windrow.storage.working import WorkingArray
from windrow.views.definition import Settings
from windrow.views.placed.choice import PlacedView, Way
from windrow.views.placed.patch import DoneByNodes, do_placed
from windrow.views.rules.choose import Bases, find_rule, state_store
from windrow.views.rules.joined import JoinedRule
from windrow.views.rules.reduced import ReducedRule


def build_placed(
    engine: Engine, transaction: Transaction, working: WorkingArray, bound: Bound, settings: Settings, *, mends: bool
) -> DoneByNodes | None:
    """Compute a view on several nodes, if there are such and it is a view of that kind; None if not.

    With ``mends`` nothing that is stored of it is looked at; else only what is not as stored is written. A view that is
    always computed again would keep states for nothing.
    """
    store = state_store(engine, transaction, working.record.name, bound)
    if store is None or bound.box.is_empty or settings.maintain == "full":
        return None
    rule = find_rule(engine, store, Bases(bound, bound, {}), working)
    if not isinstance(rule, JoinedRule) or isinstance(rule, ReducedRule):
        return None
    way = Way.BUILT if mends else Way.COMPARED
    size = source_of(engine, bound).touched_bytes(bound.box)
    return do_placed(PlacedView(transaction, working, bound, rule, {}, store, way), settings, size)
