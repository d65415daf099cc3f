"""Positions that cells share, and cells with the results of their positions, as sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.sparse.matching import match_cells
from windrow.kernels.sparse.order import coordinate_order, run_starts
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.model.source import BoundedCells, ComputedCells
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.standing import OnSource
from windrow.plan.bound import LabelItems
from windrow.plan.grouping.positions import Axes, at_positions, cells_at, move_to_positions
from windrow.storage.cells import cell_fields, coordinates

Int64Array = npt.NDArray[np.int64]

COPIES = 3
"""How often a task holds its cells: as read, as numbers, as results."""


def distinct_positions(at: Sequence[Int64Array], schema: Schema, axes: Axes) -> list[Int64Array]:
    """The positions of some cells, each once, in the order of coordinates."""
    moved = move_to_positions(at, schema, axes)
    order = coordinate_order(moved)
    ordered = [column[order] for column in moved]
    return [column[run_starts(ordered, len(order))[:-1]] for column in ordered]


@dataclass(frozen=True)
class PositionCells(OnSource):
    """The positions of a source's cells. It pickles."""

    source: ComputedCells
    schema: Schema
    box: Box
    label_items: LabelItems
    whole: Box
    """Where the source has cells."""
    axes: Axes

    def _below(self, box: Box) -> Box:
        return cells_at(box & self.box, self.whole, self.axes)

    def cells_in(self, box: Box) -> int:
        below = self._below(box)
        return 0 if below.is_empty else self.source.cells_in(below)

    def cells_decoded(self, results: Box) -> int:
        below = self._below(results)
        return 0 if below.is_empty else self.source.cells_decoded(below)

    def touched_bytes(self, results: Box) -> int:
        below = self._below(results)
        return 0 if below.is_empty else self.source.touched_bytes(below)

    def task_bytes(self, results: Box) -> int:
        below = self._below(results)
        return 0 if below.is_empty else self.source.task_bytes(below) + COPIES * self.cells_in(results) * 8 * below.ndim

    def within(self, results: Box) -> PositionCells:
        below = self._below(results)
        return self if below.is_empty else replace(self, source=self.source.within(below))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        below = self._below(self.box if box is None else box)
        fields = cell_fields(self.schema)
        if below.is_empty:
            return fields.empty_table()
        at = coordinates(self.source.read(below, ()), self.schema)
        return pa.table([pa.array(column) for column in distinct_positions(at, self.schema, self.axes)], schema=fields)


@dataclass(frozen=True)
class RepeatedCells(OnSource):
    """The cells of a source, each with the results that are stored at its position. It pickles."""

    source: ComputedCells
    results: ComputedCells
    schema: Schema
    box: Box
    label_items: LabelItems
    axes: Axes

    def _positions(self, box: Box) -> Box:
        return at_positions(box, self.schema, self.axes)

    def cells_in(self, box: Box) -> int:
        inside = box & self.box
        return 0 if inside.is_empty else self.source.cells_in(inside)

    def bounds_in(self, box: Box) -> Box:
        inside = box & self.box
        if inside.is_empty or not isinstance(self.source, BoundedCells):
            return inside
        return self.source.bounds_in(inside)

    def cells_decoded(self, results: Box) -> int:
        inside = results & self.box
        if inside.is_empty:
            return 0
        return self.source.cells_decoded(inside) + self.results.cells_decoded(self._positions(inside))

    def touched_bytes(self, results: Box) -> int:
        inside = results & self.box
        if inside.is_empty:
            return 0
        return self.source.touched_bytes(inside) + self.results.touched_bytes(self._positions(inside))

    def task_bytes(self, results: Box) -> int:
        inside = results & self.box
        if inside.is_empty:
            return 0
        read = self.source.task_bytes(inside) + self.results.task_bytes(self._positions(inside))
        return read + COPIES * self.cells_in(inside) * row_bytes(self.schema)

    def within(self, results: Box) -> RepeatedCells:
        inside = results & self.box
        if inside.is_empty:
            return self
        return replace(self, source=self.source.within(inside), results=self.results.within(self._positions(inside)))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        inside = self.box if box is None else box & self.box
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        if inside.is_empty:
            return cell_fields(chosen).empty_table()
        return self.repeat(self.source.read(inside, ()), inside, chosen)

    def repeat(self, cells: pa.Table, box: Box, chosen: Schema) -> pa.Table:
        """Some cells of the source, all in a box, with the results of their positions."""
        rows = self.results.read(self._positions(box), chosen.attribute_names)
        at = move_to_positions(coordinates(cells, self.schema), self.schema, self.axes)
        numbers = match_cells(at, coordinates(rows, self.schema))
        if (numbers < 0).any():
            kept = np.flatnonzero(numbers >= 0)
            cells, numbers = cells.take(pa.array(kept)), numbers[kept]
        taken = pa.array(numbers)
        columns = [cells.column(name) for name in chosen.dimension_names]
        columns += [rows.column(name).take(taken) for name in chosen.attribute_names]
        return pa.table(columns, schema=cell_fields(chosen))
