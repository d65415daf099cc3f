"""One query, bound once: everything that is done with it sees the same versions of the arrays that it names.

``bound_query`` gives a ``GridQuery`` if the result is dense, and a ``CellsQuery`` if it is sparse. Both compute it,
stream it, show a part of it and explain it; whatever computes a result in memory, writes it or draws it goes through
them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.kernels.sparse.order import coordinate_order
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks, ComputedCells
from windrow.operations.query.blocks import ComputedSource
from windrow.operations.query.cellwise import GridCells
from windrow.operations.query.fused.sparse_rows import compute_rows, rows_of
from windrow.operations.query.held import HeldGrid
from windrow.operations.query.run import (
    compute_cells_in,
    compute_grid,
    fold_regrid,
    source_of,
    stream_cells,
    stream_grid,
)
from windrow.plan.bound import (
    Bound,
    BoundAdjusted,
    BoundColumns,
    BoundOrdered,
    BoundScan,
    BoundWindow,
    Metadata,
    carried_metadata,
)
from windrow.plan.rewriting import Optimized
from windrow.storage.cells import cell_fields, coordinates, in_coordinate_order, in_stored_order
from windrow.storage.leases import Lease

if TYPE_CHECKING:
    from windrow.operations.query.explain import QueryExplanation
    from windrow.operations.query.explain_windows import WindowExplanation
    from windrow.plan.nodes import Plan


@dataclass(frozen=True)
class BoundQuery(ABC):
    """The steps of a query on stated versions of arrays, and what runs them."""

    engine: Engine
    optimized: Optimized
    plan: Plan
    lease: Lease
    """Keeps what it reads from being removed."""

    @property
    def bound(self) -> Bound:
        return self.optimized.bound

    @property
    def box(self) -> Box:
        """The cells that the result can have."""
        return self.bound.box

    @property
    def scalar(self) -> bool:
        """Whether it is one result over all cells, which lies nowhere: its dimension is not shown."""
        return self.bound.scalar

    @property
    def sparse(self) -> bool:
        return self.bound.schema.sparse

    @property
    def metadata(self) -> Metadata:
        """What is known of the attributes besides their types."""
        return carried_metadata(self.bound)

    @property
    def schema(self) -> Schema:
        """The schema of what is computed; a dense result ends where its cells do."""
        schema: Schema = self.source.schema
        return schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        labels: Mapping[str, Labels] = self.source.labels
        return labels

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """The dimensions under which the result is kept."""
        return self.bound.schema.dimension_names

    @property
    def shown_names(self) -> list[str]:
        """The columns of the result: dimensions, unless it lies nowhere, and attributes."""
        return [*self.bound.dimension_names, *self.bound.schema.attribute_names]

    @property
    def source(self) -> Any:
        """What computes the result when it is read; made when first asked for, which computes totals below."""
        # Not a cached_property: before Python 3.12 all queries of a process would wait for one another there.
        if "_source" not in self.__dict__:
            self.__dict__["_source"] = source_of(self.engine, self.bound)
        return self.__dict__["_source"]

    @abstractmethod
    def as_cells(self) -> ComputedCells:
        """The result as sparse data, for an array that takes cells."""

    def explain(self) -> WindowExplanation | QueryExplanation:
        """How it will be computed: the steps, what is read, blocks, memory and estimated cost."""
        bound = self.bound
        if isinstance(bound, BoundWindow) and isinstance(bound.source, BoundScan) and not bound.box.is_empty:
            from windrow.operations.query.explain_paths import KERNELS, window_path
            from windrow.operations.query.explain_windows import explain

            path = window_path(self.engine, bound)
            if path.name == KERNELS:
                found = explain(self.engine, self.source, str(self.plan))
                return replace(found, considered=self.optimized.considered, paths=(path,))
        return self._explained()

    def _explained(self) -> QueryExplanation:
        from windrow.operations.query.explain import explain_query

        return explain_query(self.engine, self.optimized, str(self.plan))

    def explain_run(self) -> QueryExplanation:
        """The same with what one run of it took and gave."""
        started = time.perf_counter()
        cells = self._run()
        return self._explained().measured(time.perf_counter() - started, cells)

    @abstractmethod
    def _run(self) -> int:
        """Compute it and count its cells."""


class GridQuery(BoundQuery):
    """A query with a dense result."""

    def compute(self) -> HeldGrid:
        """The result, gathered in this process."""
        return self.preview(self.box)

    def stream(self) -> Iterator[HeldGrid]:
        """The result block by block, as many at a time as there are workers."""
        for box, blocks in stream_grid(self.engine, self.source, self.box):
            yield self._held(box, blocks)

    def preview(self, box: Box) -> HeldGrid:
        """A part of the result, and no more computed than that."""
        return self._held(box, compute_grid(self.engine, self.source, box))

    def _held(self, box: Box, blocks: Blocks) -> HeldGrid:
        """Results in a box, with the labels of its cells."""
        dimensions, labels = [], []
        for dimension, lo, hi in zip(self.schema.dimensions, box.lo, box.hi, strict=True):
            dimensions.append(replace(dimension, lo=lo, hi=max(lo, hi), chunk=max(1, hi - lo + 1)))
            if dimension.name in self.labels:
                known = self.labels[dimension.name]
                labels.append((dimension.name, known.slice(lo - dimension.lo, max(lo, hi + 1) - dimension.lo)))
        return HeldGrid(replace(self.schema, dimensions=tuple(dimensions)), box, tuple(labels), blocks)

    def _run(self) -> int:
        self.compute()
        return self.box.size

    def as_cells(self) -> ComputedCells:
        return GridCells(self.source, replace(self.schema, sparse=True), self.box, self.bound.labels, None)

    def as_grid(self) -> ComputedGrid:
        """The result as dense data that a writer of files reads piece by piece."""
        return ComputedGrid(self.engine, self.source, self.box, self.metadata)


@dataclass(frozen=True)
class ComputedGrid:
    """A dense result with what is known of its attributes, as a GridSource; the engine computes what is read."""

    engine: Engine
    source: ComputedSource
    box: Box
    metadata: Metadata

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.source.labels

    def read(self, box: Box) -> Blocks:
        return compute_grid(self.engine, self.source, box, self.box)


class CellsQuery(BoundQuery):
    """A query with a sparse result."""

    @property
    def fields(self) -> pa.Schema:
        """The columns of ``compute`` and ``stream``."""
        fields = cell_fields(self.schema)
        return pa.schema([fields.field(name) for name in self.shown_names])

    def compute(self) -> pa.Table:
        """The result, gathered in this process: cells of a stored array in the order in which they are stored, by chunk
        and, in a chunk, by coordinate; what else is computed in the order of its coordinates, also if a view has it."""
        rows = rows_of(self.source)
        if rows is not None and rows.can_run(self.engine):
            found = compute_rows(self.engine, rows)
            if self.optimized.asked is not None:
                order = in_stored_order if self.optimized.lists_stored_cells else in_coordinate_order
                found = order(found, self.schema)
        elif self.optimized.lists_stored_cells:
            found = in_stored_order(compute_cells_in(self.engine, self.source, self.box), self.schema)
        elif isinstance(self.bound, BoundWindow):  # how many results there will be is known, so a lack of memory is too
            from windrow.operations.query.sparse_run import compute

            found = fold_regrid(self.engine, self.source)
            if found is None:
                found = compute(self.engine, self.source, self.box)
        else:
            found = self._by_nodes()
            if found is None:
                found = compute_cells_in(self.engine, self.source, self.box)
        return found.select(self.shown_names)

    def _by_nodes(self) -> pa.Table | None:
        """The result from several nodes, if they compute it where a view's chunks are at home."""
        asked = self.bound.by_nodes if isinstance(self.bound, BoundAdjusted) else None
        found = None if asked is None else asked()
        return None if found is None else in_coordinate_order(found, self.schema)

    def stream(self) -> Iterator[pa.Table]:
        """The result block by block, as many at a time as there are workers."""
        for piece in stream_cells(self.engine, self.source, self.box):
            yield piece.select(self.shown_names)

    def preview(self, box: Box) -> pa.Table:
        """The results in a box, in the order of their coordinates."""
        return compute_cells_in(self.engine, self.source, box & self.box).select(self.shown_names)

    def first(self, rows: int) -> tuple[pa.Table, int]:
        """The first results in the order of their coordinates, and how many there are; the others are not kept."""
        kept, cells, known = cell_fields(self.schema).empty_table(), 0, self._known_cells()
        for part in [self.box] if known is None else _slabs(self.schema, self.box):
            for piece in stream_cells(self.engine, self.source, part):
                cells += piece.num_rows
                both = pa.concat_tables([kept, piece.slice(0, rows)])
                kept = both.take(pa.array(coordinate_order(coordinates(both, self.schema))[:rows]))
            if known is not None and kept.num_rows >= min(rows, known):
                return kept.select(self.shown_names), known
        return kept.select(self.shown_names), cells

    def _known_cells(self) -> int | None:
        """The number of cells, where the catalog knows it: that of an array, or of columns of one."""
        bound = self.bound
        while isinstance(bound, BoundColumns):
            bound = bound.source
        return bound.cells if isinstance(bound, BoundScan) else None

    def _run(self) -> int:
        return int(self.compute().num_rows)

    def as_cells(self) -> ComputedCells:
        source: ComputedCells = self.source
        return source


class RowsQuery(CellsQuery):
    """A query whose result is rows in an order of their own; they are computed once, and held."""

    def compute(self) -> pa.Table:
        """The rows, in their order."""
        rows: pa.Table = self.source.table
        return rows.select(self.shown_names)

    def stream(self) -> Iterator[pa.Table]:
        yield self.compute()

    def preview(self, box: Box) -> pa.Table:
        """The rows in a box, in their order."""
        rows: pa.Table = self.source.read(box & self.box)
        return rows.select(self.shown_names)

    def first(self, rows: int) -> tuple[pa.Table, int]:
        """The first rows, and how many there are."""
        found = self.compute()
        return found.slice(0, rows), found.num_rows


def _slabs(schema: Schema, box: Box) -> Iterator[Box]:
    """The box chunk by chunk along its first dimension: all cells of one come before all cells of the next."""
    lo, step = schema.dimensions[0].lo, schema.grid.chunk[0]
    start = box.lo[0]
    while start <= box.hi[0]:
        stop = min(box.hi[0], lo + ((start - lo) // step + 1) * step - 1)
        yield Box((start, *box.lo[1:]), (stop, *box.hi[1:]))
        start = stop + 1


def bound_query(engine: Engine, optimized: Optimized, plan: Plan, lease: Lease) -> GridQuery | CellsQuery:
    """The query as an object that can be run."""
    bound = optimized.bound
    kind = RowsQuery if isinstance(bound, BoundOrdered) else CellsQuery if bound.schema.sparse else GridQuery
    return kind(engine, optimized, plan, lease)
