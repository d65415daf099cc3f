"""Aggregates over the rows of a chain of joins: the delta rule, applied once for each join of it.

What the joins before the last one give is a set of rows W, which change as cells do: some leave, others come. So the
pairs of the last join that leave and come are those of the rows that left with the right cells that were there, those
of the rows that came with the right cells that are there, and those of the rows that stay with the right cells that
changed. W is not kept: its rows near changed right cells are looked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from windrow.aggregates.states.layout import Layout
from windrow.aggregates.states.rule import State
from windrow.execution.engine import Engine
from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.model.box import Box
from windrow.operations.join.aggregates import Wanted
from windrow.operations.join.build import join_reader
from windrow.operations.join.reach import Span, reaching_spans
from windrow.operations.join.reader import JoinReader, first_source, read_nodes
from windrow.operations.join.rows import Rows, as_rows
from windrow.operations.join.sources import JoinedCells
from windrow.operations.query.held import HeldCells
from windrow.operations.query.run import source_of
from windrow.operations.query.sparse_run import cell_blocks
from windrow.plan.bound import Bound, BoundJoin, BoundJoined, makes_pairs, side_name
from windrow.storage.cells import cell_fields, coordinates
from windrow.views.changes import CellChange, net_tables
from windrow.views.evaluate import evaluate_cells
from windrow.views.regions import cluster_cells
from windrow.views.rules.grouped import group_keys
from windrow.views.rules.results import Patched, Patcher, Touched
from windrow.views.rules.rows import Entering, join_rows, number_places
from windrow.views.rules.sides import Int64Array, kept_of, used_side
from windrow.views.state_store import StateStore
from windrow.views.steps import Changes, step_change

Places = list[Int64Array]
Spans = dict[str, Span]


def why_not_patched(bound: BoundJoined) -> str | None:
    """Why results of a chain are computed anew where they are touched; None if they are patched."""
    joins = joins_of(bound.source)
    if any(join.kind != "inner" for join in joins):
        return "which rows of a chain have no partner is looked up again"
    if any(join.nearest is not None for join in joins):
        return "which partners in a chain are nearest is looked up again"
    if any(join.sky is not None for join in joins):
        return "partners on the sky in a chain of joins are looked for again"
    if not bound.schema.sparse or bound.step:
        return "results on a grid are computed again where they are touched"
    if any(group.qualifier != side_name(1) for group in bound.groups):
        return "groups by cells of another side than the first are gathered again"
    if len(bound.groups) == len(joins[0].left.dimension_names):
        return "the rows of one cell are few: to look for them again takes no longer than to look up what was kept"
    lacking = kept_of(bound).layout.recomputed
    if lacking:
        return f"{', '.join(lacking)} has no state from which a value can be taken out again"
    ordered = any(aggregate.definition.ordered for _, aggregate in bound.aggregates)
    return "pairs have no order that a number could tell" if ordered else None


def joins_of(join: BoundJoin) -> list[BoundJoin]:
    """The joins of a chain, the first one first."""
    return [*joins_of(join.left), join] if makes_pairs(join.left) else [join]


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows in memory on the left of a join; it pickles."""

    rows: Rows

    def read(self, box: Box, keys: Iterable[str]) -> Rows:
        return self.rows

    def within(self, box: Box) -> HeldRows:
        return self

    def rows_in(self, box: Box) -> int:
        return self.rows.length

    cells_decoded = rows_in

    def task_bytes(self, box: Box) -> int:
        return sum(column.nbytes for column in self.rows.columns.values())

    def spans(self, box: Box) -> Spans:
        ends = {key: self.rows.places(key) for key, column in self.rows.columns.items() if column.type == pa.int64()}
        return {key: (int(at.min()), int(at.max())) if len(at) else (0, -1) for key, at in ends.items()}


@dataclass(frozen=True)
class ChainedRule:
    """A view of a chain of joins at one batch: the chain as it was, as it is, and what changed below."""

    engine: Engine
    before: BoundJoined
    after: BoundJoined
    changes: Changes
    store: StateStore

    def patch(self) -> Patched:
        """The groups that rows of the chain left or came to."""
        left, came = self._terms(self._depth - 1)
        gone, new = (self._listed(terms) for terms in (left, came))
        places, numbers = number_places([np.concatenate(pair) for pair in zip(gone[0], new[0], strict=True)])
        cut = len(gone[0][0])
        met = [Entering(own, entering.columns) for own, (_, entering) in ((numbers[:cut], gone), (numbers[cut:], new))]
        nothing = [column[:0] for column in places]
        return self._patcher().patch(Touched(places, met[0], met[1]), nothing, nothing)

    # Rows of the joins before

    @cached_property
    def _joins(self) -> list[BoundJoin]:
        return joins_of(self.after.source)

    @property
    def _depth(self) -> int:
        return len(self._joins)

    @cached_property
    def _readers(self) -> tuple[list[JoinReader], list[JoinReader]]:
        """What reads the pairs of each join, as it was and as it is."""
        found = []
        for bound in (self.before, self.after):
            top = join_reader(bound.source, lambda side: source_of(self.engine, side))
            levels = [top]
            while isinstance(levels[0].left, JoinReader):
                levels.insert(0, levels[0].left)
            found.append(levels)
        return found[0], found[1]

    @cached_property
    def _keys(self) -> set[str]:
        """The columns that anything in the chain reads."""
        said = [node for join in self._joins for node in (join.condition, join.where) if node is not None]
        return read_nodes([*(node for _, node in self.after.arguments), *said])

    def _change(self, side: int) -> CellChange:
        """What happened to a side, as far as results depend on it."""
        sides: list[Bound] = [bound.source.sides[side - 1] for bound in (self.before, self.after)]
        found = step_change(self.engine, sides[0], sides[1], self.changes)
        return net_tables(used_side(self.after, side), found.left, found.came)

    @cached_property
    def _changes(self) -> list[CellChange]:
        return [self._change(side) for side in range(1, self._depth + 2)]

    def _moved(self, joined: int) -> tuple[Rows, Rows]:
        """The rows of the first so many joins that left, and those that came; of none, the first array's cells."""
        if not joined:
            change = self._changes[0]
            return as_rows(change.left, side_name(1)), as_rows(change.came, side_name(1))
        left, came = self._terms(joined - 1)
        keys = self._keys
        found = [
            [reader.read(first_source(self._readers[1][0]).box, keys) for reader in terms] for terms in (left, came)
        ]
        return _concatenated(found[0]), _concatenated(found[1])

    def _terms(self, number: int) -> tuple[list[JoinReader], list[JoinReader]]:
        """What has the pairs of a join that left, and what has those that came."""
        gone, new = self._moved(number)
        change = self._changes[number + 1]
        stay = self._staying(number, change, new)
        was, now = (readers[number] for readers in self._readers)
        left = [_with(was, gone), _with(now, stay, change.left)]
        return left, [_with(now, new), _with(now, stay, change.came)]

    def _staying(self, joined: int, change: CellChange, came: Rows) -> Rows:
        """Rows of the first joins that can have changed right cells as partners, without those that came."""
        join = self._joins[joined]
        whole = self._spans(joined)
        near = [self._rows_in(joined, reaching_spans(join.offsets, join.mapping, box, whole)) for box in change.regions]
        rows = _concatenated([came.take(np.zeros(0, np.int64)), *near])
        names = self._coordinates(joined)
        at = [rows.places(name) for name in names]
        _, numbers = number_places(at)
        first = np.unique(numbers, return_index=True)[1]
        rows = rows.take(first)
        return rows.take(np.flatnonzero(~found_in([c[first] for c in at], [came.places(name) for name in names])))

    def _rows_in(self, joined: int, spans: Spans) -> Rows:
        """The rows of the first joins, as they are now, whose cells lie in the given ranges."""
        side = self.after.source.sides[joined]
        own = [spans[f"{side_name(joined + 1)}.{name}"] for name in side.schema.dimension_names]
        box = Box(tuple(lo for lo, _ in own), tuple(hi for _, hi in own)) & side.box
        if not joined:
            used = used_side(self.after, 1)
            source = first_source(self._readers[1][0])
            table = cell_fields(used).empty_table() if box.is_empty else source.read(box, used.attribute_names)
            return as_rows(table.cast(cell_fields(used)).combine_chunks(), side_name(1))
        join = self._joins[joined - 1]
        below = reaching_spans(join.offsets, join.mapping, box, {key: spans[key] for key in self._spans(joined - 1)})
        reader = replace(_with(self._readers[1][joined - 1], self._rows_in(joined - 1, below)), asked=box)
        return reader.read(box, self._keys)

    def _spans(self, joined: int) -> Spans:
        """The ranges of all coordinates of the first joins' rows."""
        return {
            f"{side_name(number)}.{name}": ends
            for number, side in enumerate(self.after.source.sides[: joined + 1], 1)
            for name, ends in zip(side.schema.dimension_names, zip(side.box.lo, side.box.hi, strict=True), strict=True)
        }

    def _coordinates(self, joined: int) -> list[str]:
        return list(self._spans(joined))

    # Groups

    def _listed(self, terms: Sequence[JoinReader]) -> tuple[Places, Entering]:
        """The pairs that some readers have: the group that each belongs to, and the values that aggregates take."""
        nodes = [node for _, node in self.wanted.used()]
        keys, pieces = [], []
        for reader in terms:
            meeting, shares = reader.meet(
                first_source(self._readers[1][0]).box, read_nodes([*nodes, *self.after.groups])
            )
            nothing = np.zeros(0, np.int64)
            with reader.naming():
                for _, left, right in chain(shares, [(None, nothing, nothing)]):
                    pairs = meeting.pairs(left, right, [*nodes, *self.after.groups])
                    columns = {name: pairs.values(node) for name, node in self.wanted.used()}
                    own = [pairs.places(group.key) for group in self.after.groups]
                    keys.append(group_keys([*own, np.zeros(len(left), np.int64)], tuple(range(len(own)))))
                    pieces.append(Entering(left, columns))
        return [np.concatenate(column) for column in zip(*keys, strict=True)], join_rows(pieces)

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.after.arguments, tuple(a for _, a in self.after.aggregates), self.after.min_count)

    @property
    def _layout(self) -> Layout:
        return self.store.layout

    def _patcher(self) -> Patcher:
        return Patcher(
            self._layout,
            self.store,
            self.after.schema,
            self._reduce,
            self._evaluate,
            self.after.scalar,
            self.after.min_count,
        )

    def _reduce(self, places: Places) -> State:
        """The states of all rows of some groups, of the first array's cells a part at a time."""
        top, source = self._readers[1][-1], first_source(self._readers[1][0])
        cut = JoinedCells(top, source.schema, source.box, (), Wanted(self.after.arguments, ()))
        state, done = self._layout.empty(len(places[0])), list[Box]()
        for box in cluster_cells(places, self.after.schema.grid):
            whole = self._left_box(box)
            for block in [] if whole.is_empty else cell_blocks(cut, cut.reading_grid, whole, self.engine.local):
                spans = self._spans(self._depth - 1)
                names = source.schema.dimension_names
                ends = zip(names, block.lo, block.hi, strict=True)
                spans |= {f"{side_name(1)}.{name}": (lo, hi) for name, lo, hi in ends}
                keys, entering = self._listed([_with(top, self._rows_in(self._depth - 1, spans))])
                numbers = match_cells(keys, places)
                asked = np.flatnonzero((numbers >= 0) & _outside(keys, done))
                chosen = np.full(entering.count, -1, np.int64)
                chosen[asked] = numbers[asked]
                some = Entering(np.arange(entering.count), entering.columns).of(chosen)
                state = some.come_to(self._layout, state, len(places[0])) if some.count else state
            done.append(box)
        return state

    def _left_box(self, groups: Box) -> Box:
        """The first array's cells of the groups in a box."""
        first = self.after.source.sides[0]
        lo, hi = list(first.box.lo), list(first.box.hi)
        for number, group in enumerate(self.after.groups):
            axis = first.schema.axis(group.name)
            lo[axis], hi[axis] = max(lo[axis], groups.lo[number]), min(hi[axis], groups.hi[number])
        return Box(tuple(lo), tuple(hi))

    def _evaluate(self, places: Places) -> pa.Table:
        found = evaluate_cells(self.engine, self.after, cluster_cells(places, self.after.schema.grid))
        numbers = match_cells(coordinates(found, self.after.schema), places)
        return found.filter(pa.array(numbers >= 0))


def _with(reader: JoinReader, rows: Rows, right: pa.Table | None = None) -> JoinReader:
    """A join of rows in memory, with right cells where they are or with some in memory."""
    held = replace(reader, left=HeldRows(rows), itself=False)
    if right is None:
        return held
    source = reader.right
    names = [
        name for name in (*source.schema.dimension_names, *source.schema.attribute_names) if name in right.column_names
    ]
    return replace(held, right=HeldCells(source.schema, source.box, (), right.select(names)))


def _concatenated(pieces: Sequence[Rows]) -> Rows:
    """Rows one after the other; each has the columns of the first."""
    columns = {key: pa.concat_arrays([piece.columns[key] for piece in pieces]) for key in pieces[0].columns}
    return Rows(sum(piece.length for piece in pieces), columns)


def _outside(keys: Places, boxes: Sequence[Box]) -> Int64Array:
    """Which groups lie in none of some boxes, that have been looked at before."""
    kept = np.ones(len(keys[0]), bool)
    for box in boxes:
        inside = np.ones(len(keys[0]), bool)
        for column, lo, hi in zip(keys, box.lo, box.hi, strict=True):
            inside &= (column >= lo) & (column <= hi)
        kept &= ~inside
    return kept
