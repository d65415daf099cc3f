"""Views kept by their rules and states alone: arrays, states and results are in memory, and there is no store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.states.layout import Layout
from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.kernels.sparse.order import coordinate_order
from windrow.model.box import Box
from windrow.model.notation import parse_schema
from windrow.model.schema import Schema
from windrow.plan.bound import Bound, BoundHeld, BoundScan
from windrow.storage.cells import cell_fields, coordinates
from windrow.views.changes import net_tables
from windrow.views.definition import Definition
from windrow.views.evaluate import evaluate_cells
from windrow.views.rules.choose import Bases, core_of, find_rule, state_layout_of
from windrow.views.steps import cells_in, put_on
from windrow.views.used import without_unused

from .definitions import SCHEMAS
from .worlds import World, table

SPARSE = {name: parse_schema(SCHEMAS[name], sparse=True)[1].with_chunks() for name in ("S", "T")}


def in_order(cells: pa.Table, schema: Schema) -> pa.Table:
    return cells.take(pa.array(coordinate_order(coordinates(cells, schema)))).combine_chunks()


@dataclass(frozen=True)
class MemorySnapshot:
    """What a query reads of a stored array, from a table."""

    schema: Schema
    table: pa.Table = field(compare=False)
    moment: int = 0
    parts: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def box(self) -> Box:
        return self.schema.box(tuple(d.hi or 0 for d in self.schema.dimensions))

    def touching(self, box: Box | None) -> list[Any]:
        """One part, for estimates."""
        return [SimpleNamespace(box=self.box, cells=self.table.num_rows)] if self.table.num_rows else []

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None, chunks: Any = None) -> pa.Table:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        found = self.table.select([*self.schema.dimension_names, *names])
        inside = np.ones(found.num_rows, bool)
        wanted = self.box if box is None else box
        for column, lo, hi in zip(coordinates(found, self.schema), wanted.lo, wanted.hi, strict=True):
            inside &= (column >= lo) & (column <= hi)
        if chunks is not None:
            inside &= np.isin(self.schema.grid.ordinals(coordinates(found, self.schema)), chunks)
        return found.filter(pa.array(inside))


@dataclass
class MemoryStates:
    """States by their places, as a view's hidden array has them."""

    layout: Layout
    ndim: int
    view: str = "in memory"

    def __post_init__(self) -> None:
        self.at = [np.zeros(0, np.int64) for _ in range(self.ndim)]
        self.states = self.layout.empty(0)
        self.loaded = self.at

    def load(self, at: Sequence[Any], others: Sequence[Sequence[Any]]) -> tuple[Any, Any]:
        self.loaded = [np.concatenate(columns) for columns in zip(at, *others, strict=True)]
        return match_cells(at, self.at), self.states

    def save(self, at: Sequence[Any], state: Any) -> None:
        kept = np.flatnonzero(~found_in(self.at, self.loaded))
        self.at = [np.concatenate([mine[kept], new]) for mine, new in zip(self.at, at, strict=True)]
        self.states = self.layout.concatenate([self.layout.take(self.states, kept), state])


@dataclass
class MemoryView:
    """A view of a definition over the sparse arrays of a world; ``name`` is for messages."""

    engine: Any
    definition: Definition
    name: str = "memory"

    def begin(self, world: World) -> bool:
        """Compute the view once; whether its results are patched from states at all."""
        self.moment = 0
        self.scans = self._scans(world)
        self.bound = self.definition.bind(self.scans, {})
        layout = state_layout_of(self.bound)
        if layout is None or (not self.bound.schema.sparse and core_of(self.bound) is not self.bound):
            return False
        core = core_of(self.bound)
        self.states = MemoryStates(layout, core.schema.ndim)
        self.cells = cells_in(self.engine, core, [core.box])
        return True

    def follow(self, world: World) -> None:
        """Patch the results by what changed."""
        before, self.scans = self.scans, self._scans(world)
        changes = {}
        for name, scan in self.scans.items():
            found = net_tables(scan.schema, before[name].snapshot.table, scan.snapshot.table)
            if not found.is_empty:
                changes[name] = found
        earlier, self.bound = self.bound, self.definition.bind(self.scans, {})
        changes = without_unused(changes, self.bound)
        if not changes:
            return
        rule = find_rule(self.engine, self.states, Bases(earlier, self.bound, changes))  # type: ignore[arg-type]
        assert rule is not None
        found = rule.patch()
        assert all((state >= 0).all() for name, state in self.states.states.items() if "count" in name)
        schema = core_of(self.bound).schema
        stays = ~found_in(coordinates(self.cells, schema), found.at)
        self.cells = pa.concat_tables([self.cells.filter(pa.array(stays)), found.cells.cast(self.cells.schema)])

    def read(self) -> pa.Table:
        """The results through the steps above those that are kept."""
        core = core_of(self.bound)
        ordered = in_order(self.cells, core.schema)
        if core is self.bound:
            return ordered
        held = BoundHeld(schema=core.schema, box=core.box, labels=core.labels, gridding=core.gridding, table=ordered)
        above: Bound = put_on(self.bound, core, held)
        return evaluate_cells(self.engine, above, [above.box])

    def _scans(self, world: World) -> dict[str, BoundScan]:
        self.moment += 1
        found = {}
        for name, schema in SPARSE.items():
            cells = in_order(table(world.sparse[name]).cast(cell_fields(schema)), schema)
            snapshot = MemorySnapshot(schema, cells, self.moment)
            found[name] = BoundScan(
                schema=schema, box=snapshot.box, labels=(), gridding=None, name=name, snapshot=snapshot,
                cells=cells.num_rows,
            )  # fmt: skip
        return found
