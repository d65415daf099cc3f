"""What is kept of each result so that it can be patched: a hidden array beside the view, made when first needed.

A result has a state from the moment it was first touched; before that it is computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.state_layout import Layout
from windrow.aggregates.state_rule import State
from windrow.execution.engine import Engine
from windrow.kernels.sparse.order import coordinate_order
from windrow.model.schema import Schema
from windrow.operations.sparse.patch import patch_cells, read_at
from windrow.operations.sparse.rewrite import delete
from windrow.storage.cells import cell_fields, coordinates
from windrow.storage.records import ArrayRecord
from windrow.storage.transaction import Transaction, WorkingArray
from windrow.storage.view_rows import STATE

Int64Array = npt.NDArray[np.int64]
Places = Sequence[Int64Array]


def match(at: Places, others: Places) -> Int64Array:
    """For each place its number among others, all different; -1 where it is not among them."""
    count = len(others[0])
    both = [np.concatenate(pair) for pair in zip(others, at, strict=True)]
    order = coordinate_order(both)
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in both:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    runs = np.cumsum(new) - 1
    numbers = np.empty(len(order), np.int64)
    numbers[order] = runs
    known = np.full(len(order) + 1, -1, np.int64)
    known[numbers[:count]] = np.arange(count)
    return known[numbers[count:]]


@dataclass
class StateStore:
    """The states of a view's results, as the transaction has left them."""

    engine: Engine
    transaction: Transaction
    view: str
    schema: Schema
    """That of the results; states lie at the same coordinates."""
    layout: Layout

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
        if known is not None and known.schema.attributes != self.layout.attributes:
            self.transaction.drop(self.name)  # what is kept is kept in another form now
            return None
        return known

    def load(self, at: Places) -> tuple[Int64Array, State]:
        """The number of each place's state, -1 where there is none, and the states."""
        working = self._working()
        if working is None:
            return np.full(len(at[0]), -1, np.int64), self.layout.empty(0)
        table = read_at(self.engine.local, working, at)
        return match(at, coordinates(table, working.schema)), self.layout.from_arrow(table)

    def save(self, at: Places, state: State, gone: Places) -> None:
        """Keep the states of some places, and forget those of others."""
        if not len(at[0]) and not len(gone[0]):
            return
        working = self._working() or self._made()
        self.transaction.maintained.add(self.name)
        columns = [*(pa.array(column) for column in at), *self.layout.to_arrow(state).values()]
        cells = pa.table(columns, schema=cell_fields(working.schema))
        patch_cells(self.engine, working, cells, gone)
        working.note("patch")

    def forget_all(self) -> None:
        """Forget every state: all results were computed anew."""
        working = self._working()
        if working is not None and working.parts:
            self.transaction.maintained.add(self.name)
            delete(self.engine, working, None)
            working.note("delete")

    def _made(self) -> WorkingArray:
        directory = self.transaction.warehouse.new_directory(self.name)
        return self.transaction.create(ArrayRecord(0, self.name, directory, True), self.state_schema, {})
