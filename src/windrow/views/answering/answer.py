"""A step of planning: parts of a query are read from views wherever that is cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, cast

import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.operations.join.build import is_by_cell
from windrow.operations.query.blocks import row_bytes
from windrow.plan.bound import (
    Bound,
    BoundAdjusted,
    BoundColumns,
    BoundCount,
    BoundHeld,
    BoundJoined,
    BoundScan,
    BoundSelection,
    makes_pairs,
)
from windrow.plan.rewriting import Considered, Optimized
from windrow.storage.records import ArrayRecord, Versioned
from windrow.storage.warehouse import Warehouse
from windrow.views.answering.candidates import Candidate, Read, find_candidates
from windrow.views.answering.cost import cost_of
from windrow.views.answering.kinds import serve
from windrow.views.answering.serving import NotServedError, Served, UnlikeError

AS_CHEAP = (BoundScan, BoundHeld, BoundCount, BoundColumns, BoundSelection)
"""Steps that no view has cheaper: for a query of these alone the catalog is not even asked which views there are."""


@dataclass(frozen=True)
class Answer:
    """A query with parts of it read from views, and the versions of views that it reads."""

    optimized: Optimized
    versions: tuple[Versioned, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    """The views that serve as they are though they are behind, with the reasons."""


def answer(engine: Engine, warehouse: Warehouse, optimized: Optimized, reads: Sequence[Read], use: str) -> Answer:
    """The query, answered from views as far as that is allowed; ``optimized`` says of each what was thought of it."""
    if use == "off" or all(isinstance(step, AS_CHEAP) for step in optimized.bound.walk()):
        return Answer(optimized)
    candidates, refused = find_candidates(warehouse, reads, use == "stale")
    if not candidates and not refused:
        return Answer(optimized)
    planner = _Planner(engine, candidates, use in ("always", "stale"))
    bound = planner.rewrite(optimized.bound)
    if isinstance(bound, BoundAdjusted) and isinstance(bound.direct, BoundJoined) and is_by_cell(bound.direct):
        records = {read.bound.name: read.record for read in reads}
        records |= {view.stored.name: view.versions[0][0] for view in candidates if view.name in planner.used}
        bound = replace(bound, by_nodes=partial(_answer_by_nodes, engine, warehouse, bound, records))
    notes = [Considered(name, False, why) for name, why in refused.items()]
    notes += [planner.notes[view.name] for view in candidates if view.name in planner.notes]
    used = [view for view in candidates if view.name in planner.used]
    return Answer(
        replace(optimized, bound=bound, considered=tuple(notes), asked=optimized.bound if used else None),
        tuple(version for view in used for version in view.versions),
        tuple((view.name, view.stale) for view in used if view.stale is not None),
    )


def _answer_by_nodes(
    engine: Engine, warehouse: Warehouse, bound: BoundAdjusted, records: Mapping[str, ArrayRecord]
) -> pa.Table | None:
    """The results from several nodes, if there are such and they can share it out."""
    scans = [step for step in bound.walk() if isinstance(step, BoundScan)]
    cluster = engine.cluster(sum((scan.cells or 0) * row_bytes(scan.schema) for scan in scans))
    if cluster is None:
        return None
    from windrow.views.placed.answers import answer_by_nodes

    return answer_by_nodes(engine, warehouse, cluster, bound, records)


@dataclass
class _Planner:
    """Looks at each step of a query, from the top down, for a view that has its results."""

    engine: Engine
    candidates: Sequence[Candidate]
    always: bool
    notes: dict[str, Considered] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def rewrite(self, step: Bound) -> Bound:
        if isinstance(step, (BoundScan, BoundCount)):
            return step
        found = None if makes_pairs(step) else self._best(step)
        if found is not None:
            return found
        inputs = {part.name: getattr(step, part.name) for part in fields(step)}
        below = {name: self.rewrite(part) for name, part in inputs.items() if isinstance(part, Bound)}
        if all(below[name] is inputs[name] for name in below):
            return step
        # What is below has the same cells and columns as before, only found in another way.
        return replace(step, **cast(Any, below))

    def _best(self, step: Bound) -> Bound | None:
        """The cheapest way to have a step's results from a view; None if the arrays themselves are cheaper."""
        served: list[tuple[float, Candidate, Served]] = []
        for view in self.candidates:
            try:
                found = serve(step, view)
            except NotServedError as reason:
                self._note(view, reason)
            else:
                served.append((cost_of(self.engine, found.bound), view, found))
        if not served:
            return None
        direct = cost_of(self.engine, step)
        cost, best, found = min(served, key=lambda one: one[0])
        taken = self.always or cost <= direct
        for own, view, how in served:
            chosen = taken and view is best
            self.notes[view.name] = Considered(view.name, chosen, how.how, direct, own)
        if not taken:
            return None
        self.used.add(best.name)
        return found.bound

    def _note(self, view: Candidate, reason: NotServedError) -> None:
        """Keep the reason that says most: what serves elsewhere, then what comes near."""
        known = self.notes.get(view.name)
        vague = known is None or known.why == VAGUE
        if vague or (known is not None and known.direct is None and not isinstance(reason, UnlikeError)):
            self.notes[view.name] = Considered(
                view.name, False, VAGUE if isinstance(reason, UnlikeError) else str(reason)
            )


VAGUE = "it is another query"
