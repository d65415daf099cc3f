"""What the rules of joins have in common: what happened to both sides, and who finds pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.states.layout import PAIRS, ROWS, Layout
from windrow.execution.engine import Engine
from windrow.expressions.types import check
from windrow.kernels.sparse.matching import found_in
from windrow.model.schema import Schema
from windrow.model.source import ComputedCells
from windrow.operations.join.aggregates import Wanted
from windrow.operations.join.build import join_reader
from windrow.operations.query.run import source_of
from windrow.plan.bound import Bound, BoundJoin, BoundJoined, BoundScan
from windrow.plan.pairs import sided_types
from windrow.storage.cells import coordinates
from windrow.views.changes import CellChange, net_tables
from windrow.views.evaluate import read_boxes
from windrow.views.rules.pairs import Kept, PairFinder, used_attributes
from windrow.views.state_store import StateStore
from windrow.views.steps import Changes, put_on, scan_below, step_change
from windrow.views.touched_joins import reaching_boxes

Int64Array = npt.NDArray[np.int64]


def joined_layout(bound: BoundJoined) -> Layout:
    """What is kept of each result of a join."""
    return kept_of(bound).layout


def kept_of(bound: BoundJoined) -> Kept:
    types = sided_types(bound.source)
    arguments = tuple((name, check(node, types)) for name, node in bound.arguments)
    return Kept(bound.aggregates, arguments, (PAIRS, ROWS) if bound.source.kind == "left" else (PAIRS,))


def used_side(bound: BoundJoined, number: int) -> Schema:
    """A side with those attributes that the results depend on."""
    side = bound.source.sides[number - 1].schema
    said, step = [node for _, node in bound.arguments], cast(Bound, bound.source)
    while isinstance(step, BoundJoin):
        said += [node for node in (step.condition, step.where) if node is not None]
        if step.sky is not None:
            said += [step.sky.left_ra, step.sky.left_dec, step.sky.right_ra, step.sky.right_dec]
        step = step.left
    names = used_attributes(said, number)
    kept = tuple(attribute for attribute in side.attributes if attribute.name in names)
    return replace(side, attributes=kept, sparse=True)


def wanted_of(bound: BoundJoined) -> Wanted:
    return Wanted(bound.arguments, tuple(aggregate for _, aggregate in bound.aggregates), bound.min_count)


def find_pairs(engine: Engine, bound: BoundJoined) -> PairFinder:
    """What finds the pairs of a join, and makes states of them."""
    reader = join_reader(bound.source, lambda side: source_of(engine, side))
    ordered = any(aggregate.definition.ordered for _, aggregate in bound.aggregates)
    left, arguments = used_side(bound, 1), wanted_of(bound).used()
    return PairFinder(reader, left, bound.source.left.box, arguments, ordered, kept_of(bound))


def find_few_pairs(engine: Engine, bound: BoundJoined) -> PairFinder:
    """The same where nobody asks where all cells of the arrays lie."""
    return find_pairs(engine, replace(bound, source=_without_chunks(bound.source)))


@dataclass(frozen=True)
class JoinRule:
    """A view of a join at one batch: the join as it was, as it is, and what changed below."""

    engine: Engine
    before: BoundJoined
    after: BoundJoined
    changes: Changes
    store: StateStore

    @property
    def left_schema(self) -> Schema:
        return used_side(self.after, 1)

    @property
    def left_source(self) -> ComputedCells:
        return self.finder.source

    @property
    def wanted(self) -> Wanted:
        return wanted_of(self.after)

    @cached_property
    def finder(self) -> PairFinder:
        return self.finder_of(self.after)

    def finder_of(self, bound: BoundJoined) -> PairFinder:
        """What finds pairs of the join as it is, or as it was."""
        return find_few_pairs(self.engine, bound)

    def side_changes(self) -> tuple[CellChange, CellChange]:
        """What happened to both sides, as far as it matters: another value that nobody reads is no change."""
        sides = [bound.source.sides for bound in (self.before, self.after)]
        first = step_change(self.engine, sides[0][0], sides[1][0], self.changes)
        if all(one == other for one, other in sides):
            second = first
        else:
            second = step_change(self.engine, sides[0][1], sides[1][1], self.changes)
        used = (self.left_schema, used_side(self.after, 2))
        found = [net_tables(side, change.left, change.came) for side, change in zip(used, (first, second), strict=True)]
        return found[0], found[1]

    def staying(self, cells: CellChange, partners: CellChange) -> pa.Table:
        """The left cells within reach of changed right cells, without those that came themselves."""
        schema, whole = self.left_schema, self.after.source.left.box
        reach = [near & whole for box in partners.regions for near in reaching_boxes(self.after.source, box)]
        table = read_boxes(self.left_source, reach, schema)
        came = found_in(coordinates(table, schema), coordinates(cells.came, schema))
        return table.filter(pa.array(~came)).combine_chunks()

    def places_of(self, table: pa.Table) -> list[Int64Array]:
        return coordinates(table, self.left_schema)


def _without_chunks(join: BoundJoin) -> BoundJoin:
    """The same join, of which nobody asks where all cells of its arrays lie: what is read is known to be little."""
    left, right = (_without_chunks_of(side) for side in (join.left, join.right))
    return replace(join, left=left, right=right)


def _without_chunks_of(side: Bound) -> Bound:
    scan = scan_below(side)
    return side if not isinstance(scan, BoundScan) else put_on(side, scan, replace(scan, chunks=None))
