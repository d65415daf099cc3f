"""Windows and regrids of sparse arrays: each task reads the cells of its box and halo, and computes at those there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column, Result
from windrow.aggregates.sparse_windows import LISTED_AT_ONCE
from windrow.kernels.sparse.order import coordinate_order
from windrow.model.arrow import arrow_to_block
from windrow.model.box import Box, hull
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import ComputedCells
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.sparse_results import (
    MOST_POSITIONS_PER_CELL,
    Cells,
    Int64Array,
    block_results,
    window_results,
)
from windrow.plan.sparse_axes import cell_axes, read_boxes
from windrow.plan.windows import WindowPlan, needed_attributes
from windrow.storage.cells import cell_fields

WORKING_COPIES = 4
"""How often a task holds its cells: as stored, as read, in the order of work, and in what is being computed."""

LAID_BYTES = 40
"""What a position takes where cells are laid on a grid: values, which are there, results, and one array between."""


@dataclass(frozen=True)
class CellWindowSource:
    """The result of a window query on a sparse array as a CellSource: reading a box of it computes it. It pickles.

    A window is evaluated at the existing cells. A corner window with a step equal to its size is a regrid: there a
    block has a result if it holds any cell.
    """

    source: ComputedCells
    plan: WindowPlan

    @property
    def schema(self) -> Schema:
        return self.plan.result_schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.plan.result_labels

    @property
    def box(self) -> Box:
        return self.plan.results

    @property
    def is_regrid(self) -> bool:
        return self.plan.is_regrid

    @property
    def keep_whole(self) -> tuple[int, ...]:
        """The axes that are best not cut: those along which the window is wide."""
        if self.is_regrid or self.box.is_empty:
            return ()
        return tuple(number for number, axis in enumerate(cell_axes(self.plan, self.box)) if axis.width > 1)

    @property
    def reading_grid(self) -> ChunkGrid:
        moved = any(step != 1 for step in self.plan.window.step)
        return self.schema.grid if moved else self.source.reading_grid

    def halo(self, results: Box) -> Box:
        """A box that holds the cells read for a box of results."""
        if self.is_regrid:
            return self._block_cells(results)
        boxes = [box for box, _ in read_boxes(cell_axes(self.plan, results))]
        return hull([*boxes, self.plan.window.input_box(results, self.plan.bounds)]) or results

    def cells_in(self, box: Box) -> int:
        inside = box & self.plan.results
        if inside.is_empty:
            return 0
        positions = (
            self._block_cells(inside) if self.is_regrid else self.plan.window.input_box(inside, self.plan.bounds)
        )
        return min(inside.size, self.source.cells_in(positions))

    def cells_decoded(self, results: Box) -> int:
        """About how many stored cells are read for a box of results."""
        return 0 if results.is_empty else self.source.cells_in(self.halo(results))

    def touched_bytes(self, results: Box) -> int:
        """What decides between this process and Spark: bytes read and written."""
        return self.cells_decoded(results) * self._cell_bytes + self.cells_in(results) * row_bytes(self.schema)

    def task_bytes(self, results: Box) -> int:
        """Estimated peak memory of computing a box of results, halo and temporaries included."""
        cells = self.cells_decoded(results)
        listed = min(16 * cells, LISTED_AT_ONCE) * (16 + self._cell_bytes)
        laid = 0
        if self.plan.method == "auto" and cells:
            laid = min(self.halo(results).size, MOST_POSITIONS_PER_CELL * cells) * LAID_BYTES
        held = WORKING_COPIES * cells * self._cell_bytes + max(listed, laid)
        return held + 3 * self.cells_in(results) * row_bytes(self.schema)

    @property
    def _cell_bytes(self) -> int:
        return row_bytes(self.plan.schema.select(needed_attributes(self.plan.aggregates)))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        inside = self.plan.results if box is None else box & self.plan.results
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        aggregates = dict(self.plan.aggregates)
        wanted = [aggregates[name] for name in chosen.attribute_names]
        if inside.is_empty:
            return cell_fields(chosen).empty_table()
        compute = self._regridded if self.is_regrid else self._windowed
        places, results = compute(inside, wanted)
        values = [result.to_arrow(a.type) for result, a in zip(results, chosen.attributes, strict=True)]
        return pa.table([*map(pa.array, places), *values], schema=cell_fields(chosen))

    def _windowed(self, box: Box, wanted: Sequence[Aggregate]) -> tuple[list[Int64Array], list[Result]]:
        axes = cell_axes(self.plan, box)
        cells = self._read(read_boxes(axes), _attributes(wanted))
        at = cells.at
        if not all(axis.holds_positions for axis in axes):
            positions = Box(tuple(axis.first for axis in axes), tuple(axis.last for axis in axes))
            at = self._read([(positions, (0,) * positions.ndim)], ()).at
        there = np.ones(len(at[0]), bool)
        for axis, column in zip(axes, at, strict=True):
            there &= (column >= axis.first) & (column <= axis.last) & ((column - axis.first) % axis.step == 0)
        at = [column[there] for column in at]
        positions_of = zip(axes, at, self.plan.bounds.lo, strict=True)
        places = [lo + (column - lo) // axis.step for axis, column, lo in positions_of]
        return places, window_results(self.plan, axes, cells, at, wanted)

    def _regridded(self, box: Box, wanted: Sequence[Aggregate]) -> tuple[list[Int64Array], list[Result]]:
        read = self._block_cells(box)
        return block_results(self.plan, self._read([(read, (0,) * read.ndim)], _attributes(wanted)), wanted)

    def _block_cells(self, results: Box) -> Box:
        """The cells of the blocks of a regrid."""
        first = self.plan.window.input_box(results, self.plan.bounds)
        ends = zip(first.hi, self.plan.window.step, self.plan.bounds.hi, strict=True)
        return Box(first.lo, tuple(min(hi + step - 1, end) for hi, step, end in ends))

    def within(self, results: Box) -> CellWindowSource:
        """The same, as far as a box of results needs it: a task need not be told of every part of the array."""
        return replace(self, source=self.source.within(self.halo(results)))

    def _read(self, boxes: Sequence[tuple[Box, tuple[int, ...]]], names: Sequence[str]) -> Cells:
        dimensions = self.plan.schema.dimension_names
        stored = [name for name in names if name != PLACES]
        tables = [self.source.read(box, stored) for box, _ in boxes]
        at = []
        for axis, name in enumerate(dimensions):
            shifted = [
                table.column(name).to_numpy() + shift[axis] for table, (_, shift) in zip(tables, boxes, strict=True)
            ]
            at.append(shifted[0] if len(shifted) == 1 else np.concatenate(shifted))
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        columns = {name: Column(*arrow_to_block(table.column(name))) for name in names if name != PLACES}
        if PLACES in names:
            order = coordinate_order([table.column(name).to_numpy() for name in dimensions])
            places = np.empty(len(order), np.int64)
            places[order] = np.arange(len(order))
            columns[PLACES] = Column(places)
        cells = Cells(at, columns)
        return cells if len(tables) == 1 else cells.take(coordinate_order(at))


def _attributes(aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    names = needed_attributes(tuple(("", aggregate) for aggregate in aggregates))
    return (*names, PLACES) if any(aggregate.definition.ordered for aggregate in aggregates) else names
