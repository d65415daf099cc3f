"""The second task of a node: partial states merged at the homes of results, and new results written to the store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.columns import Result
from windrow.aggregates.states.layout import ROWS, Layout
from windrow.aggregates.states.rule import Finished, State
from windrow.execution.nodes import Here
from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.model.schema import Schema
from windrow.operations.query.run import source_of
from windrow.plan.bound import Bound, BoundHeld
from windrow.storage.cells import CellKeys, cell_fields, coordinates, to_stored
from windrow.storage.chunks.cache import ChunkCache
from windrow.storage.part_writing import PartWriter
from windrow.storage.records import Int64Array, Part
from windrow.storage.staged import ChunkChange
from windrow.views.changes import net_tables
from windrow.views.placed.joining import Joined, Partial, Places
from windrow.views.placed.shelf import ArrayChunks, Counted, Shelf
from windrow.views.placed.sides import Side
from windrow.views.rules.guard import Guard
from windrow.views.rules.pairs import Kept
from windrow.views.rules.rows import number_places
from windrow.views.steps import CELLWISE, put_on

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class MergeNode:
    """A task: the chunks of results that are at home on one node."""

    node: int
    kept: Kept
    core: Schema
    """That of the results whose states are kept."""
    above: Bound
    """The steps from these results to the view, on none."""
    states: ArrayChunks
    view: ArrayChunks
    directories: tuple[str, str]
    """Where parts of states and of the view are written."""
    left: Mapping[int, Places]
    """The chunks of results at home here, each with the places of left cells that left or were replaced."""
    came: Mapping[int, Places]
    """The same with those of left cells that came, in left joins: they have a result, with or without a partner."""
    cells: ArrayChunks
    side: Side
    """The left cells, which are counted in left joins."""
    whole: frozenset[int]
    cache_bytes: int
    name: str
    """The view's."""

    @property
    def layout(self) -> Layout:
        return self.kept.layout

    @property
    def counts_left(self) -> bool:
        """Whether a left cell without partner has a result."""
        return ROWS in self.kept.counters


@dataclass(frozen=True, eq=False)
class Merged:
    """A receipt: what was written, what is to be removed, and which results are to be computed from all their rows."""

    node: int
    executor: str
    counted: Counted
    seconds: float
    received_bytes: int
    """Of partial states that other nodes sent."""
    made_bytes: int
    """Of all partial states that were sent here, from here too."""
    joins: list[Joined]
    parts: tuple[list[Part], list[Part]]
    gone: tuple[Places, Places]
    """The places of states and of results that are no more."""
    doubtful: Places
    cells: int
    touched: int
    pairs: int


def merge_node(task: MergeNode, brought: Sequence[Any], here: Here) -> Merged:
    """Bring the chunks of results that are at home here up to date."""
    started = time.perf_counter()
    counted, cache = Counted(), ChunkCache(here.folder, task.cache_bytes)
    states, view, cells = (Shelf(array, cache, counted) for array in (task.states, task.view, task.cells))
    partials = [one for one in brought if isinstance(one, Partial)]
    wanted = sorted({*task.left, *(partial.ordinal for partial in partials)})
    for shelf in (states, view):
        shelf.fetch(wanted)
    if task.counts_left:
        cells.fetch(task.whole)
        cells.fetch_changes(task.whole)
    counted.read_seconds = time.perf_counter() - started
    found = _Home(task, wanted, states, view, cells).merge(partials)
    parts = tuple(
        _write(directory, shelf.array.snapshot.schema, change.came)
        for directory, shelf, change in zip(task.directories, (states, view), (found.states, found.cells), strict=True)
    )
    uncertain = {*task.core.grid.ordinals(found.doubtful).tolist()}
    for shelf, change in ((states, found.states), (view, found.cells)):
        shelf.keep_changed([ordinal for ordinal in wanted if ordinal not in uncertain], change)
    return Merged(
        task.node,
        here.executor,
        counted,
        time.perf_counter() - started,
        sum(partial.nbytes for partial in partials if partial.node != task.node),
        sum(partial.nbytes for partial in partials),
        [receipt for receipt in brought if isinstance(receipt, Joined)],
        (parts[0], parts[1]),
        (_vanished(states, found.states), _vanished(view, found.cells)),
        found.doubtful,
        found.changed,
        found.touched,
        sum(partial.pairs for partial in partials),
    )


def _vanished(shelf: Shelf, change: ChunkChange) -> Places:
    """The places of which nothing came in the place of what left."""
    schema = shelf.array.snapshot.schema
    left, came = coordinates(change.left, schema), coordinates(change.came, schema)
    gone = ~found_in(left, came)
    return [column[gone] for column in left]


class _Found(NamedTuple):
    """What happened to states and to results, and which of these are to be computed from all their rows."""

    states: ChunkChange
    cells: ChunkChange
    doubtful: Places
    changed: int
    touched: int


@dataclass
class _Home:
    """All chunks of results that are at home on one node, looked at together."""

    task: MergeNode
    ordinals: list[int]
    states: Shelf
    view: Shelf
    cells: Shelf

    def merge(self, partials: Sequence[Partial]) -> _Found:
        layout, ndim = self.task.layout, self.task.core.ndim
        came = merge_partials(layout, [piece for one in partials for piece in one.came], ndim)
        left = merge_partials(layout, [piece for one in partials for piece in one.left], ndim)
        dropped, new = (_all_places(list(given.values()), ndim) for given in (self.task.left, self.task.came))
        at = number_places(_all_places([came[0], left[0], new, *self._staying()], ndim))[0]
        touched = _all_places([at, dropped], ndim)
        old = self._stored(self.states)
        known, doubtful = self._known(at, dropped, new, old)
        # What is not there and should be is computed from its rows, so that nothing has to leave it.
        state = self._moved(at, known, (left[1], np.where(doubtful, -1, match_cells(at, left[0]))), came)
        finished = layout.finish(state)
        for one in finished.values():
            doubtful = doubtful | one.recompute
        there = np.flatnonzero(~layout.is_empty(state) & ~doubtful)
        unsure = [column[doubtful] for column in at]
        kept = self._as_states(at, state, there)
        cells = self._as_cells(at, finished, there)
        stored = self._stored(self.view)
        schema = self.task.view.snapshot.schema
        change = net_tables(schema, stored.filter(pa.array(self._looked_at(stored, schema, touched, unsure))), cells)
        replaced = old.filter(pa.array(self._looked_at(old, self.task.states.snapshot.schema, touched, unsure)))
        return _Found(
            ChunkChange(replaced, kept), ChunkChange(change.left, change.came), unsure, change.cells, len(touched[0])
        )

    def _moved(self, at: Places, known: State, left: tuple[State, Int64Array], came: tuple[Places, State]) -> State:
        """States after partial states left and came."""
        layout = self.task.layout
        guard = Guard(self.task.name, self.task.core.dimension_names, layout)
        states, numbers = left

        def leave(chosen: Int64Array) -> State:
            return layout.remove(layout.take(known, chosen), layout.take(states, numbers[chosen]))

        state = layout.merge(guard.follow(at, leave), layout.take(came[1], match_cells(at, came[0])))
        guard.check(at, state)
        return state

    def _stored(self, shelf: Shelf) -> pa.Table:
        tables = [shelf.old(ordinal) for ordinal in self.ordinals]
        return pa.concat_tables([cell_fields(shelf.array.snapshot.schema).empty_table(), *tables]).combine_chunks()

    def _staying(self) -> list[Places]:
        """The places of left cells that stay, in left joins, where all results are done anew."""
        if not self.task.counts_left:
            return []
        side, found = self.task.side, []
        for ordinal in sorted(self.task.whole):
            left = side.change(self.cells, ordinal).left
            found.append(coordinates(side.staying(self.cells, ordinal, left), side.used))
        return found

    def _is_whole(self, at: Places) -> Mask:
        """Which places are in chunks that are done anew."""
        return np.isin(self.task.core.grid.ordinals(at), np.fromiter(self.task.whole, np.int64, len(self.task.whole)))

    def _known(self, at: Places, dropped: Places, new: Places, old: pa.Table) -> tuple[State, Mask]:
        """The states before the batch, and which are not there and should be.

        Cells that came, and all of a chunk that is done anew, had none. In left joins these are now counted.
        """
        layout, schema = self.task.layout, self.task.states.snapshot.schema
        whole = self._is_whole(at)
        numbers = match_cells(at, coordinates(old, schema))
        numbers[whole | found_in(at, dropped)] = -1
        state = layout.take(layout.from_arrow(old), numbers)
        if not self.task.counts_left:
            return state, np.zeros(len(at[0]), bool)
        begins = whole | found_in(at, new)
        return {**state, ROWS: np.where(begins, 1, state[ROWS])}, (numbers < 0) & ~begins

    def _as_states(self, at: Places, state: State, chosen: Int64Array) -> pa.Table:
        columns = self.task.layout.to_arrow(self.task.layout.take(state, chosen)).values()
        places = [pa.array(column[chosen]) for column in at]
        return pa.table([*places, *columns], schema=cell_fields(self.task.states.snapshot.schema))

    def _as_cells(self, at: Places, finished: dict[str, Finished], chosen: Int64Array) -> pa.Table:
        """Results as cells of the view."""
        values = []
        for attribute in self.task.core.attributes:
            one = finished[attribute.name]
            values.append(Result(one.values[chosen], one.missing[chosen]).to_arrow(attribute.type))
        places = [pa.array(column[chosen]) for column in at]
        table = pa.table([*places, *values], schema=cell_fields(self.task.core))
        return put_above(self.task.above, table).cast(cell_fields(self.task.view.snapshot.schema))

    def _looked_at(self, stored: pa.Table, schema: Schema, touched: Places, unsure: Places) -> Mask:
        """Which of what is stored is replaced by what was found."""
        at = coordinates(stored, schema)
        chosen = self._is_whole(at) | found_in(at, touched)
        return chosen & ~found_in(at, unsure)


def merge_partials(layout: Layout, pieces: Sequence[tuple[Places, State]], ndim: int) -> tuple[Places, State]:
    """Partial states of the same places together: each place once, in order."""
    if not pieces:
        return _nowhere(ndim), layout.empty(0)
    every = [np.concatenate(columns) for columns in zip(*(at for at, _ in pieces), strict=True)]
    places, numbers = number_places(every)
    merged = {name: column.copy() for name, column in layout.empty(len(places[0])).items()}
    start = 0
    for at, state in pieces:
        mine = numbers[start : start + len(at[0])]
        start += len(at[0])
        both = layout.merge(layout.take(merged, mine), state)
        for name, column in both.items():
            merged[name][mine] = column
    return places, merged


def put_above(above: Bound, table: pa.Table) -> pa.Table:
    """What the steps above the kept results make of some of them."""
    held = above
    while isinstance(held, CELLWISE):
        held = held.source
    assert isinstance(held, BoundHeld)
    if held is above:
        return table
    source = source_of(cast(Any, None), put_on(above, held, _holding(held, table)))
    found: pa.Table = source.read(above.box)
    return found


def _holding(held: BoundHeld, table: pa.Table) -> BoundHeld:
    return BoundHeld(schema=held.schema, box=held.box, labels=held.labels, gridding=held.gridding, table=table)


def _write(directory: str, schema: Schema, cells: pa.Table) -> list[Part]:
    """Cells as parts in the order of their chunks."""
    if not cells.num_rows:
        return []
    keys = CellKeys(schema.grid, coordinates(cells, schema))
    order = keys.order()
    keys.take(order)
    writer = PartWriter(directory, schema)
    try:
        writer.append(to_stored(cells.take(pa.array(order)), keys.ordinals, schema))
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _nowhere(ndim: int) -> Places:
    return [np.empty(0, np.int64) for _ in range(ndim)]


def _all_places(pieces: Sequence[Places], ndim: int) -> Places:
    return [np.concatenate(columns) for columns in zip(*pieces, strict=True)] if pieces else _nowhere(ndim)
