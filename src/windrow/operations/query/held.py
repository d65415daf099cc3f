"""Results that were computed and are held in memory, as sources that further steps can be put on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.model.arrow import arrow_to_block
from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.model.source import Blocks
from windrow.operations.query.blocks import row_bytes
from windrow.operations.query.standing import Standing
from windrow.storage.cells import coordinates

if TYPE_CHECKING:
    from windrow.plan.bound import LabelItems


@dataclass(frozen=True, eq=False)
class HeldGrid(Standing):
    """Dense results."""

    schema: Schema
    box: Box
    label_items: LabelItems
    blocks: Blocks

    def cells_decoded(self, results: Box) -> int:
        return results.size

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        return results.size * self.schema.cell_bytes

    def task_bytes(self, results: Box) -> int:
        return 2 * self.touched_bytes(results)

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        names = self.blocks.keys() if attributes is None else self._with_companions(attributes)
        return {name: self.blocks[name][box.slices(self.box.lo)] for name in names}

    def _with_companions(self, attributes: Iterable[str]) -> list[str]:
        chosen = [self.schema.attribute(name) for name in attributes]
        return [name for a in chosen for name in (a.name, a.companion) if name in self.blocks]


@dataclass(frozen=True, eq=False)
class HeldCells(Standing):
    """Sparse results, in the order of their coordinates."""

    schema: Schema
    box: Box
    label_items: LabelItems
    table: pa.Table

    def cells_in(self, box: Box) -> int:
        return 0 if (box & self.box).is_empty else self.table.num_rows

    def cells_decoded(self, results: Box) -> int:
        return self.cells_in(results)

    def touched_bytes(self, results: Box) -> int:
        return self.cells_in(results) * row_bytes(self.schema)

    def task_bytes(self, results: Box) -> int:
        return 2 * self.touched_bytes(results)

    def within(self, results: Box) -> HeldCells:
        return self

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        table = self.table.select([*self.schema.dimension_names, *names])
        if box is None or self.box in box:
            return table
        inside = np.ones(table.num_rows, bool)
        for column, lo, hi in zip(coordinates(table, self.schema), box.lo, box.hi, strict=True):
            inside &= (column >= lo) & (column <= hi)
        return table.filter(pa.array(inside))


def laid_on_grid(schema: Schema, box: Box, labels: LabelItems, table: pa.Table) -> HeldGrid:
    """A table that has every cell of a box, as dense results."""
    index = tuple(column - lo for column, lo in zip(coordinates(table, schema), box.lo, strict=True))
    blocks: dict[str, Any] = {}
    for attribute in schema.attributes:
        values, valid = arrow_to_block(table.column(attribute.name))
        block = np.full(box.shape, attribute.type.fill, attribute.type.dtype)
        block[index] = values
        blocks[attribute.name] = block
        if attribute.has_companion:
            present = np.zeros(box.shape, bool)
            present[index] = True if valid is None else valid
            blocks[attribute.companion] = present
    return HeldGrid(schema, box, labels, blocks)
