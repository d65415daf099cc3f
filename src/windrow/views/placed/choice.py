"""Whether several nodes bring a view up to date, and what is wished for when they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from windrow.model.grid import ChunkGrid
from windrow.model.schema import Schema
from windrow.operations.join.build import is_by_cell
from windrow.placement import Rates
from windrow.plan.bound import Bound, BoundJoin, BoundJoined, BoundScan
from windrow.storage.chunks.cache import CACHE_BYTES
from windrow.storage.transaction import Transaction
from windrow.storage.working import WorkingArray
from windrow.views.changes import CellChange, Change
from windrow.views.definition import PLACEMENT, Settings
from windrow.views.placed.arrays import JoinedArray
from windrow.views.placed.rounds import ROUND_BYTES
from windrow.views.reduced.form import positions_in
from windrow.views.rules.choose import core_of, why_not_patched
from windrow.views.rules.joined import JoinedRule
from windrow.views.state_store import StateStore
from windrow.views.steps import scan_below


@dataclass(frozen=True)
class Wishes:
    """How to plan; ``cache`` is how many bytes of chunks a node keeps, ``round`` how many it holds at once."""

    strategy: str
    window: int
    decay: float
    seed: int
    budget: float
    cache: int = CACHE_BYTES
    round: int = ROUND_BYTES
    rates: Rates | None = None
    """Those to plan by, in the place of measured ones."""

    @classmethod
    def of(cls, settings: Settings, session: Mapping[str, Any]) -> Wishes:
        """Those of a view, or of the session where that has its own."""
        said = {**PLACEMENT, **settings.placement, "strategy": settings.strategy, **session}
        return cls(
            str(said["strategy"]),
            int(said["window"]),
            float(said["decay"]),
            int(said["seed"]),
            float(said["budget"]),
            round=int(said.get("round", ROUND_BYTES)),
            rates=said.get("rates"),
        )

    @property
    def assignment(self) -> str:
        """How chunks that have no home get one: the strategies of paper 004 start where that does."""
        return "tiles" if self.strategy == "auto" else "round_robin"


class Way(Enum):
    """What nodes do to a view: all of its results are built where nothing of them is relied on, or compared."""

    PATCHED = auto()
    BUILT = auto()
    COMPARED = auto()


@dataclass
class PlacedView:
    """A view that nodes can bring up to date, at one batch; or compute from the beginning."""

    transaction: Transaction
    working: WorkingArray
    bound: Bound
    rule: JoinedRule
    changes: Mapping[str, Change]
    """What happened to the bases, in all attributes: nodes keep whole cells."""
    store: StateStore
    way: Way = Way.PATCHED

    @property
    def join(self) -> BoundJoin:
        return self.rule.after.source

    @property
    def looks_at_results(self) -> bool:
        """Whether anything that is stored of the view matters."""
        return self.way is not Way.BUILT

    @property
    def is_shared_out(self) -> bool:
        """Whether several nodes can do it: states have the chunks of results."""
        schemas = (self.working.schema, self.store.state_schema)
        return all(why_not_placed(self.bound, schema) is None for schema in schemas)

    def arrays(self) -> list[JoinedArray]:
        """The arrays that are joined; one, if both sides are the same."""
        before, after = self.rule.before.source, self.rule.after.source
        found: dict[str, JoinedArray] = {}
        for old, new in ((before.left, after.left), (before.right, after.right)):
            was, now = scan_below(old), scan_below(new)
            assert isinstance(was, BoundScan)
            assert isinstance(now, BoundScan)
            if now.name not in found:
                change = self.changes.get(now.name)
                assert change is None or isinstance(change, CellChange)
                found[now.name] = JoinedArray.of(self.transaction, was, now, change)
        return list(found.values())


def why_not_placed(bound: Bound, schema: Schema) -> str | None:
    """Why a view with such a schema is not brought up to date by several nodes; None if it can be."""
    core = core_of(bound)
    if not isinstance(core, BoundJoined):
        return "nothing is joined"
    if not is_by_cell(core):
        return "a group's pairs may be on every node, and only results of single cells are planned"
    reason = why_not_patched(core)
    if reason is not None:
        return reason
    if core.min_count:
        return "results of few values are missing"
    join = core.source
    scans = [scan_below(side) for side in (join.left, join.right)]
    if positions_in(core) is not None:
        return "its results are stored by position"
    if any(not isinstance(scan, BoundScan) or not scan.schema.sparse for scan in scans):
        return "its sides are not stored cells"
    if any(scan is not None and "@" in scan.name for scan in scans):
        return "it reads an old version"
    if join.nearest is not None:
        return "which partners are nearest is no sum over pairs"
    if join.kind == "left" and join.where is not None:
        return "where decides which cells without a partner stay"
    if join.sky is not None:
        return "its partners are found on the sky"
    if join.offsets.labelled:
        return "its shape is measured in labels"
    if scans[0] is not None and _numbered(join.left.schema.grid) != _numbered(scans[0].schema.grid):
        return "its left side is only a part of an array"
    if _numbered(join.left.schema.grid) != _numbered(schema.grid):
        return "its chunks are not those of the array on its left"
    return None


def _numbered(grid: ChunkGrid) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """All that decides which chunk a cell has."""
    return grid.lo, grid.chunk, grid.radix
