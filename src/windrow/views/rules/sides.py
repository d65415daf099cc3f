"""What the rules of joins have in common: what happened to both sides, and who finds pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

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
from windrow.operations.join.reader import FirstSide
from windrow.operations.query.run import source_of
from windrow.plan.bound import Bound, BoundJoin, BoundJoined
from windrow.plan.pairs import sided_types
from windrow.storage.cells import coordinates
from windrow.views.changes import CellChange, net_tables
from windrow.views.evaluate import read_boxes
from windrow.views.rules.pairs import Kept, PairFinder, used_attributes
from windrow.views.state_store import StateStore
from windrow.views.steps import Changes, put_on, scan_below, step_change
from windrow.views.touched_joins import reaching_box

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
    join = bound.source
    side = join.sides[number - 1].schema
    said = [node for node in (join.condition, join.where) if node is not None]
    names = used_attributes([*(node for _, node in bound.arguments), *said], number)
    kept = tuple(attribute for attribute in side.attributes if attribute.name in names)
    return replace(side, attributes=kept, sparse=True)


def wanted_of(bound: BoundJoined) -> Wanted:
    return Wanted(bound.arguments, tuple(aggregate for _, aggregate in bound.aggregates), bound.min_count)


def make_finder(engine: Engine, bound: BoundJoined) -> PairFinder:
    """What finds the pairs of a join."""
    join = bound.source
    reader = join_reader(_without_chunks(join), lambda side: source_of(engine, side))
    ordered = any(aggregate.definition.ordered for _, aggregate in bound.aggregates)
    return PairFinder(reader, used_side(bound, 1), join.left.box, wanted_of(bound).used(), ordered, kept_of(bound))


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
        side = self.finder.reader.left
        assert isinstance(side, FirstSide)
        return side.source

    @property
    def wanted(self) -> Wanted:
        return wanted_of(self.after)

    @cached_property
    def finder(self) -> PairFinder:
        return self.finder_of(self.after)

    def finder_of(self, bound: BoundJoined) -> PairFinder:
        """What finds pairs of the join as it is, or as it was."""
        return replace(make_finder(self.engine, bound), left=self.left_schema, arguments=self.wanted.used())

    def side_changes(self) -> tuple[CellChange, CellChange]:
        """What happened to both sides, as far as it matters: another value that nobody reads is no change."""
        sides = [bound.source.sides for bound in (self.before, self.after)]
        first = step_change(self.engine, sides[0][0], sides[1][0], self.changes)
        if all(one == other for one, other in sides):
            second = first
        else:
            second = step_change(self.engine, sides[0][1], sides[1][1], self.changes)
        used = (used_side(self.after, 1), used_side(self.after, 2))
        found = [net_tables(side, change.left, change.came) for side, change in zip(used, (first, second), strict=True)]
        return found[0], found[1]

    def staying(self, cells: CellChange, partners: CellChange) -> pa.Table:
        """The left cells within reach of changed right cells, without those that came themselves."""
        schema, whole = self.left_schema, self.after.source.left.box
        reach = [reaching_box(self.after.source, box) & whole for box in partners.regions]
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
    return side if scan is None else put_on(side, scan, replace(scan, chunks=None))
