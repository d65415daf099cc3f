"""Results patched by the rows that left and came, and computed anew where their states do not say enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.columns import Result
from windrow.aggregates.states.layout import Layout
from windrow.aggregates.states.rule import Finished, State
from windrow.model.schema import Schema
from windrow.storage.cells import cell_fields
from windrow.views.rules.guard import Guard
from windrow.views.rules.rows import AnyEntering
from windrow.views.state_store import StateStore

Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Places = list[Int64Array]


@dataclass(frozen=True, eq=False)
class Touched:
    """Results that rows left or came to."""

    places: Places
    left: AnyEntering
    came: AnyEntering


@dataclass(frozen=True, eq=False)
class Patched:
    """Results as they are now: ``at`` are all places looked at, of which ``cells`` has those that are there."""

    at: Places
    cells: pa.Table
    patched: int
    computed: int
    pairs: int


@dataclass(frozen=True)
class Patcher:
    """Patches results of one step. ``reduce`` makes states of all rows of results, ``evaluate`` computes results."""

    layout: Layout
    store: StateStore
    schema: Schema
    reduce: Callable[[Places], State]
    evaluate: Callable[[Places], pa.Table]
    keeps_empty: bool = False
    """Whether a result without rows is one: that over all cells."""
    min_count: int = 0

    def patch(self, touched: Touched, new: Places, gone: Places) -> Patched:
        """Bring results up to date: those touched, those that are ``new``, and those that are ``gone``."""
        numbers, states = self.store.load(touched.places, [new, gone])
        known = np.flatnonzero(numbers >= 0)
        state = self._moved(touched, known, states, numbers[known])
        finished = self.layout.finish(state, self.min_count)
        doubtful = _doubtful(finished, len(known))
        certain = np.flatnonzero(~doubtful)
        lacking = np.union1d(np.flatnonzero(numbers < 0), known[np.flatnonzero(doubtful)])
        anew = [np.concatenate([t[lacking], n]) for t, n in zip(touched.places, new, strict=True)]
        fresh_state, fresh = self._computed(anew)
        sure = [column[known[certain]] for column in touched.places]
        kept_state = self.layout.take(state, certain)
        cells = pa.concat_tables([self._table(sure, finished, certain, kept_state), fresh])
        self._save(sure, kept_state, anew, fresh_state)
        at = [np.concatenate(parts) for parts in zip(touched.places, new, gone, strict=True)]
        pairs = touched.left.count + touched.came.count
        return Patched(at, cells.combine_chunks(), len(certain), len(anew[0]), pairs)

    def _moved(self, touched: Touched, known: Int64Array, states: State, at: Int64Array) -> State:
        """States after rows left and came: first those that left, so that nothing stands beside its replacement.

        ``at`` says where the states of the results that are ``known`` are among those given.
        """
        places = [column[known] for column in touched.places]
        guard = Guard(self.store.view, self.schema.dimension_names, self.layout)

        def leave(chosen: Int64Array) -> State:
            rows = known[chosen]
            state = self.layout.take(states, at[chosen])
            return touched.left.of(_numbered(touched, rows)).leave_from(self.layout, state, len(rows))

        def enter(chosen: Int64Array) -> State:
            came = touched.came.of(_numbered(touched, known[chosen]))
            return came.come_to(self.layout, states, len(chosen), at[chosen])

        if touched.left.count:
            came = touched.came.of(_numbered(touched, known))
            state = came.come_to(self.layout, guard.follow(places, leave), len(known))
        else:
            state = guard.follow(places, enter)
        guard.check(places, state)
        return state

    def _computed(self, places: Places) -> tuple[State, pa.Table]:
        """Results computed from all their rows, with the states they have from now on."""
        count = len(places[0])
        if not count:
            return self.layout.empty(0), cell_fields(self.schema).empty_table()
        state = self.reduce(places)
        finished = self.layout.finish(state, self.min_count)
        doubtful = np.flatnonzero(_doubtful(finished, count))
        every = np.arange(count)
        if not len(doubtful):
            return state, self._table(places, finished, every, state)
        certain = np.setdiff1d(every, doubtful)
        evaluated = self.evaluate([column[doubtful] for column in places])
        at = [column[certain] for column in places]
        return state, pa.concat_tables(
            [self._table(at, finished, certain, self.layout.take(state, certain)), evaluated]
        )

    def _table(self, places: Places, finished: dict[str, Finished], chosen: Int64Array, state: State) -> pa.Table:
        """Results as cells; ``state`` is that of those chosen. Without rows there is none."""
        there = np.ones(len(chosen), bool) if self.keeps_empty else ~self.layout.is_empty(state)
        values = []
        for attribute in self.schema.attributes:
            found = finished[attribute.name]
            result = Result(found.values[chosen][there], found.missing[chosen][there])
            values.append(result.to_arrow(attribute.type))
        at = [pa.array(column[there]) for column in places]
        return pa.table([*at, *values], schema=cell_fields(self.schema))

    def _save(self, sure: Places, state: State, anew: Places, fresh: State) -> None:
        at = [np.concatenate(pair) for pair in zip(sure, anew, strict=True)]
        both = self.layout.concatenate([state, fresh])
        kept = np.flatnonzero(~self.layout.is_empty(both) | self.keeps_empty)
        self.store.save([column[kept] for column in at], self.layout.take(both, kept))


def _numbered(touched: Touched, rows: Int64Array) -> Int64Array:
    """For each result that is touched its number among some of them, or -1."""
    numbers = np.full(len(touched.places[0]), -1, np.int64)
    numbers[rows] = np.arange(len(rows))
    return numbers


def _doubtful(finished: dict[str, Finished], count: int) -> Mask:
    doubtful = np.zeros(count, bool)
    for found in finished.values():
        doubtful |= found.recompute
    return doubtful
