"""Results patched by the rows that left and came, and computed anew where their states do not say enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.state_layout import Layout
from windrow.aggregates.state_rule import Finished, State
from windrow.aggregates.windows import Result
from windrow.model.schema import Schema
from windrow.storage.cells import cell_fields
from windrow.views.rules.rows import Entering
from windrow.views.state_store import StateStore

Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Places = list[Int64Array]


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of some results, and how many left cells each has, where these are counted."""

    entering: Entering
    lefts: Int64Array | None = None


@dataclass(frozen=True, eq=False)
class Touched:
    """Results that rows left or came to; ``lefts`` is by how many left cells each grew, where these are counted."""

    places: Places
    left: Entering
    came: Entering
    lefts_left: Int64Array | None = None
    lefts_came: Int64Array | None = None


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
    """Patches results of one step. ``all_rows`` lists the rows of results, ``evaluate`` computes results anew."""

    layout: Layout
    store: StateStore
    schema: Schema
    all_rows: Callable[[Places], Rows]
    evaluate: Callable[[Places], pa.Table]
    keeps_empty: bool = False
    """Whether a result without rows is one: that over all cells."""

    def patch(self, touched: Touched, new: Places, gone: Places) -> Patched:
        """Bring results up to date: those touched, those that are ``new``, and those that are ``gone``."""
        numbers, states = self.store.load(touched.places)
        known = np.flatnonzero(numbers >= 0)
        state = self._moved(touched, known, self.layout.take(states, numbers[known]))
        finished = self.layout.finish(state)
        doubtful = _doubtful(finished, len(known))
        certain = np.flatnonzero(~doubtful)
        lacking = np.union1d(np.flatnonzero(numbers < 0), known[np.flatnonzero(doubtful)])
        anew = [np.concatenate([t[lacking], n]) for t, n in zip(touched.places, new, strict=True)]
        fresh_state, fresh = self._computed(anew)
        sure = [column[known[certain]] for column in touched.places]
        kept_state = self.layout.take(state, certain)
        cells = pa.concat_tables([self._table(sure, finished, certain, kept_state), fresh])
        self._save(sure, kept_state, anew, fresh_state, gone)
        at = [np.concatenate(parts) for parts in zip(touched.places, new, gone, strict=True)]
        pairs = len(touched.left.numbers) + len(touched.came.numbers)
        return Patched(at, cells.combine_chunks(), len(certain), len(anew[0]), pairs)

    def _moved(self, touched: Touched, known: Int64Array, state: State) -> State:
        """States after rows left and came: first those that left, so that nothing stands beside its replacement."""
        renumbered = np.full(len(touched.places[0]), -1, np.int64)
        renumbered[known] = np.arange(len(known))
        columns, starts = touched.left.of(renumbered).sorted_into(len(known))
        state = self.layout.leave(state, columns, starts, _of(touched.lefts_left, known))
        columns, starts = touched.came.of(renumbered).sorted_into(len(known))
        return self.layout.enter(state, columns, starts, _of(touched.lefts_came, known))

    def _computed(self, places: Places) -> tuple[State, pa.Table]:
        """Results computed from all their rows, with the states they have from now on."""
        count = len(places[0])
        if not count:
            return self.layout.empty(0), cell_fields(self.schema).empty_table()
        rows = self.all_rows(places)
        columns, starts = rows.entering.sorted_into(count)
        state = self.layout.reduce(columns, starts, rows.lefts)
        finished = self.layout.finish(state)
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

    def _save(self, sure: Places, state: State, anew: Places, fresh: State, gone: Places) -> None:
        at = [np.concatenate(pair) for pair in zip(sure, anew, strict=True)]
        both = self.layout.concatenate([state, fresh])
        empty = self.layout.is_empty(both) & (not self.keeps_empty)
        kept = np.flatnonzero(~empty)
        lost = [np.concatenate([column[empty], left]) for column, left in zip(at, gone, strict=True)]
        self.store.save([column[kept] for column in at], self.layout.take(both, kept), lost)


def _of(counts: Int64Array | None, known: Int64Array) -> Int64Array | None:
    return None if counts is None else counts[known]


def _doubtful(finished: dict[str, Finished], count: int) -> Mask:
    doubtful = np.zeros(count, bool)
    for found in finished.values():
        doubtful |= found.recompute
    return doubtful
