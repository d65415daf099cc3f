"""A query answered from a view of another shape by several nodes: planned over the homes that the view's batches left.

Nothing is written, and no home is changed: chunks are read where they are kept, and results come to this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.execution.pinned import Cluster, Exchange
from windrow.operations.query.adjusted import Adjusting
from windrow.operations.query.blocks import row_bytes
from windrow.placement import Decision, Options, plan_batch
from windrow.plan.bound import BoundAdjusted, BoundJoin, BoundJoined, BoundScan
from windrow.storage.cells import cell_fields
from windrow.storage.homes import RATES, Homes, load_homes, load_identities
from windrow.storage.records import ArrayRecord, ChunkStatistics, Int64Array
from windrow.storage.staged import Staged
from windrow.storage.view_rows import STATE
from windrow.storage.warehouse import Warehouse
from windrow.views.apply import HELD_BYTES
from windrow.views.definition import Settings
from windrow.views.placed.adjusting import (
    ADDED,
    TAKEN,
    Adjusted,
    AdjustNode,
    Difference,
    JoinDifferences,
    adjust_node,
    join_differences,
)
from windrow.views.placed.arrays import Identities, chunk_versions, without_indexes
from windrow.views.placed.choice import Wishes, why_not_placed
from windrow.views.placed.joining import JoinNode
from windrow.views.placed.problem import OLD_OLD, Base, Directions, Numbering, Planned, Results, meet, number_problem
from windrow.views.placed.rates import read_rates
from windrow.views.placed.rounds import cut_rounds
from windrow.views.placed.shelf import ArrayChunks
from windrow.views.placed.sides import Side, on_nothing
from windrow.views.placed.tasks import few_chunks, finder_alone, needed_chunks, partners_of
from windrow.views.rules.sides import find_few_pairs, kept_of, used_side
from windrow.views.steps import scan_below


def answer_by_nodes(
    engine: Engine, warehouse: Warehouse, cluster: Cluster, adjusted: BoundAdjusted, records: Mapping[str, ArrayRecord]
) -> pa.Table | None:
    """The results of a query from a view and the pairs that differ, in any order.

    None if they are not shared out, or have to be computed from all their pairs. ``records`` are those of the view and
    of the arrays, by name.
    """
    view, both = scan_below(adjusted.source), {ADDED: adjusted.added, TAKEN: adjusted.taken}
    parts = {name: part for name, part in both.items() if isinstance(part, BoundJoined)}
    if not isinstance(view, BoundScan) or not parts or view.box != adjusted.box:
        return None
    if not all(isinstance(scan_below(side), BoundScan) for part in parts.values() for side in part.source.sides):
        return None
    if (view.cells or 0) * row_bytes(adjusted.schema) > HELD_BYTES:
        return None
    if any(why_not_placed(part, view.schema) is not None for part in parts.values()):
        return None
    return _Run(_Asked(engine, warehouse, adjusted, records), cluster, parts, view).answer()


@dataclass(frozen=True)
class _Asked:
    engine: Engine
    warehouse: Warehouse
    adjusted: BoundAdjusted
    records: Mapping[str, ArrayRecord]


@dataclass
class _Run:
    asked: _Asked
    cluster: Cluster
    parts: Mapping[str, BoundJoined]
    view: BoundScan

    def answer(self) -> pa.Table | None:
        directions, rows = self._directions()
        planned = self._planned(directions)
        options = Options(self._wishes.window, self._wishes.decay, self._wishes.seed, seconds=self._wishes.budget)
        decision = plan_batch(planned.problem, self._wishes.strategy, options)
        rounds = cut_rounds(planned, decision, self._wishes.round)
        receipts: list[Adjusted] = []
        for number in range(int(rounds.max(initial=0)) + 1):
            receipts += self.cluster.exchange(self._exchange(planned, decision, rows, rounds, number))
        tables = [receipt.cells for receipt in receipts]
        if any(table is None for table in tables):
            return None
        return pa.concat_tables([cell_fields(self.asked.adjusted.schema).empty_table(), *tables])

    @cached_property
    def _wishes(self) -> Wishes:
        return Wishes.of(Settings(), self.asked.engine.placement)

    @property
    def _join(self) -> BoundJoin:
        """Both parts join the same arrays."""
        return next(iter(self.parts.values())).source

    @cached_property
    def _scans(self) -> list[BoundScan]:
        found = [scan_below(side) for side in (self._join.left, self._join.right)]
        return list({scan.name: scan for scan in found if isinstance(scan, BoundScan)}.values())

    @cached_property
    def _bases(self) -> tuple[Base, ...]:
        nothing = [ChunkStatistics.empty(scan.schema.ndim) for scan in self._scans]
        return tuple(
            Base(_chunks(scan), new, row_bytes(scan.schema), self._homes(scan.name))
            for scan, new in zip(self._scans, nothing, strict=True)
        )

    def _homes(self, name: str) -> Homes:
        catalog = self.asked.warehouse.catalog
        return load_homes(catalog, self.asked.records[name])

    def _view_homes(self) -> Homes:
        """Those that are noted with the view's states."""
        catalog, name = self.asked.warehouse.catalog, f"{STATE}{self.view.name}"
        return load_homes(catalog, catalog.array(name)) if name in catalog.array_names() else Homes.none()

    def _directions(self) -> tuple[Directions, dict[str, Int64Array]]:
        """All directions, each once, and which of them each part has."""
        left, right = self._bases[0].old, self._bases[-1].old
        found = {name: meet(part.source, left, right, OLD_OLD) for name, part in self.parts.items()}
        both = np.concatenate([np.stack([one.left, one.right], axis=1) for one in found.values()])
        unique, inverse = np.unique(both, axis=0, return_inverse=True)
        cuts = np.cumsum([len(one) for one in found.values()])[:-1]
        rows = dict(zip(found, np.split(inverse.reshape(-1), cuts), strict=True))
        return Directions(unique[:, 0], unique[:, 1], np.full(len(unique), OLD_OLD)), rows

    def _planned(self, directions: Directions) -> Planned:
        engine, stored = self.asked.engine, _chunks(self.view)
        rates = self._wishes.rates or read_rates(self.asked.warehouse.catalog.setting(RATES))
        part = next(iter(self.parts.values()))
        volume = find_few_pairs(engine, part).reader.volume / self._join.right.schema.grid.chunk_cells
        sizes = row_bytes(self.view.schema), row_bytes(part.schema)
        results = Results(stored, *sizes, self._view_homes(), float(min(1.0, volume)))
        numbering = Numbering.of(self._join, self.cluster.nodes, self._wishes.assignment)
        return number_problem(self._join, self._bases, results, numbering, rates, directions, stored.ordinals)

    # Tasks

    def _exchange(
        self, planned: Planned, decision: Decision, rows: Mapping[str, Int64Array], rounds: Int64Array, number: int
    ) -> Exchange[JoinDifferences, AdjustNode, Adjusted]:
        nodes = self.cluster.nodes
        now = rounds[np.searchsorted(planned.views, planned.directions.left)] == number
        where = decision.plan.joins[planned.pair_of] if len(planned.pair_of) else planned.pair_of
        joins = [
            JoinDifferences(
                {
                    name: self._join_task(name, node, planned, decision, mine[now[mine] & (where[mine] == node)])
                    for name, mine in rows.items()
                }
            )
            for node in range(len(nodes))
        ]
        chosen = [planned.views[(decision.plan.view_homes == node) & (rounds == number)] for node in range(len(nodes))]
        adjusts = [self._adjust_task(node, mine.tolist()) for node, mine in enumerate(chosen)]
        return Exchange(f"answering from {self.view.name}", nodes, joins, join_differences, adjusts, adjust_node)

    def _join_task(self, name: str, node: int, planned: Planned, decision: Decision, mine: Int64Array) -> JoinNode:
        part = self.parts[name]
        last = len(self._scans) - 1
        left = Side.of(0, part.source.left, part.source.left, used_side(part, 1))
        sides = left, Side.of(last, part.source.right, part.source.right, used_side(part, 2))
        partners = partners_of(planned, mine)
        nothing = tuple(() for _ in self._scans)
        needed = needed_chunks(partners, nothing, sides)
        arrays = tuple(few_chunks(array, some) for array, some in zip(self._arrays, needed, strict=True))
        finder = finder_alone(find_few_pairs(self.asked.engine, part), used_side(part, 2))
        every = dict(zip(planned.views.tolist(), decision.plan.view_homes.tolist(), strict=True))
        homes = {ordinal: every[ordinal] for ordinal in partners}
        return JoinNode(node, finder, sides, arrays, partners, frozenset(), homes, nothing, self._wishes.cache)

    @cached_property
    def _arrays(self) -> tuple[ArrayChunks, ...]:
        return tuple(self._stored(scan) for scan in self._scans)

    def _stored(self, scan: BoundScan) -> ArrayChunks:
        """An array that does not change, as tasks have to know it."""
        record, stats = self.asked.records[scan.name], _chunks(scan)
        named = load_identities(self.asked.warehouse.catalog, record)
        identities = Identities(max(named, default=-1), named).of(stats.changed)
        place = self.asked.warehouse.path(record.directory)
        staged = Staged("", scan.schema)
        return ArrayChunks(place, without_indexes(scan.snapshot), chunk_versions(stats), identities, staged, {}, {})

    @cached_property
    def _view_chunks(self) -> ArrayChunks:
        return self._stored(self.view)

    def _adjust_task(self, node: int, mine: list[int]) -> AdjustNode:
        adjusted = self.asked.adjusted
        direct = adjusted.direct
        assert isinstance(direct, BoundJoined)
        parts = adjusted.source.schema.attribute_names
        wanted = Adjusting(adjusted.aggregates, adjusted.schema, parts, direct.source.kind == "inner")
        differences = {name: Difference(kept_of(part), part.schema) for name, part in self.parts.items()}
        view = few_chunks(self._view_chunks, mine)
        above = on_nothing(adjusted.source)
        return AdjustNode(node, differences, view, tuple(mine), above, wanted, self._wishes.cache)


def _chunks(scan: BoundScan) -> ChunkStatistics:
    assert scan.chunks is not None
    found: ChunkStatistics = scan.chunks().merged()
    return found
