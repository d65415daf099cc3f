"""What is kept of each result so that it can be patched: a hidden array beside the view, made when first needed.

A result has a state from the moment it was first touched; before that it is computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.states.layout import Layout
from windrow.aggregates.states.rule import State
from windrow.execution.engine import Engine
from windrow.kernels.sparse.matching import match_cells
from windrow.model.schema import Schema
from windrow.operations.sparse.patch import Found, look_up, replace_found
from windrow.operations.sparse.rewrite import delete
from windrow.storage.cells import cell_fields, coordinates
from windrow.storage.homes import NewHomes
from windrow.storage.records import ArrayRecord
from windrow.storage.transaction import Transaction
from windrow.storage.view_rows import STATE
from windrow.storage.working import WorkingArray

Int64Array = npt.NDArray[np.int64]
Places = Sequence[Int64Array]


@dataclass
class StateStore:
    """The states of a view's results, as the transaction has left them."""

    engine: Engine
    transaction: Transaction
    view: str
    schema: Schema
    """That of the results; states lie at the same coordinates."""
    layout: Layout
    _found: Found | None = None
    """What was loaded last, and will be replaced."""

    @property
    def name(self) -> str:
        return f"{STATE}{self.view}"

    @property
    def state_schema(self) -> Schema:
        dimensions = tuple(replace(d, wrap=False) for d in self.schema.dimensions)
        return Schema(dimensions, self.layout.attributes, sparse=True).with_chunks()

    def _working(self) -> WorkingArray | None:
        if self.transaction.is_dropped(self.name):
            return None
        known = self.transaction.known(self.name)
        if known is None and self.name in self.transaction.catalog.array_names():
            known = self.transaction.working(self.name)
            self.transaction.maintained.add(self.name)  # looked at only: no report of the batch names it
        if known is not None and not self._is_alike(known.schema):
            self.transaction.drop(self.name)  # what is kept is kept in another form now, or for results elsewhere
            return None
        return known

    def _is_alike(self, known: Schema) -> bool:
        if known.attributes != self.layout.attributes:
            return False
        ends = zip(known.dimensions, self.schema.dimensions, strict=True)
        return all(old.lo == now.lo and old.hi in (None, now.hi) for old, now in ends)

    def opened(self) -> WorkingArray:
        """The array of the states, made if there is none."""
        return self._working() or self._made()

    def load(self, at: Places, others: Sequence[Places]) -> tuple[Int64Array, State]:
        """The number of each place's state, -1 where there is none, and the states.

        ``others`` are further places at which ``save`` will put states or remove them.
        """
        working = self._working()
        if working is None:
            return np.full(len(at[0]), -1, np.int64), self.layout.empty(0)
        every = [np.concatenate(columns) for columns in zip(at, *others, strict=True)]
        self._found = look_up(self.engine.local, working, every)
        places = coordinates(self._found.cells, working.schema)
        return match_cells(at, places), self.layout.from_arrow(self._found.cells)

    def save(self, at: Places, state: State) -> None:
        """Keep the states of some of the places that were loaded, and forget those of the others."""
        found, self._found = self._found, None
        if not len(at[0]) and (found is None or not found.cells.num_rows):
            return
        working = self.opened()
        self.transaction.maintained.add(self.name)
        columns = [*(pa.array(column) for column in at), *self.layout.to_arrow(state).values()]
        cells = pa.table(columns, schema=cell_fields(working.schema))
        known = Found(cells.slice(0, 0), ()) if found is None else found
        replace_found(self.engine.local, working, known, np.ones(known.cells.num_rows, bool), cells)
        working.note("patch")

    def forget_all(self) -> None:
        """Forget every state: all results were computed anew."""
        working = self._working()
        if working is not None and working.parts:
            self.transaction.maintained.add(self.name)
            delete(self.engine, working, None)
            working.note("delete")
            self.transaction.homes[self.name] = NewHomes(forgets=True)  # no chunk has all its states any more

    def _made(self) -> WorkingArray:
        directory = self.transaction.warehouse.new_directory(self.name)
        return self.transaction.create(ArrayRecord(0, self.name, directory, True), self.state_schema, {})
