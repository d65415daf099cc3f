"""Cells with the results of the groups that they are in: groups are computed first and held, cells as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.model.source import Blocks, ComputedCells
from windrow.operations.query.blocks import ComputedSource, row_bytes
from windrow.operations.query.held import HeldCells, HeldGrid
from windrow.operations.query.standing import OnSource
from windrow.plan.bound import LabelItems
from windrow.plan.grouping.label_parts import LabelPart
from windrow.storage.cells import cell_fields

Int64Array = npt.NDArray[np.int64]
COPIES = 2
"""How often a task holds the results of groups laid out over its cells."""


@dataclass(frozen=True)
class Membership:
    """Which group a cell is in, along each dimension of the groups."""

    axes: tuple[int, ...]
    parts: tuple[LabelPart | None, ...]

    def numbers(self, along: Sequence[Int64Array]) -> list[Int64Array]:
        """The cell of the groups that each of some cells belongs to; ``along`` has their numbers for each axis."""
        keys = zip(self.axes, self.parts, strict=True)
        return [along[axis] if part is None else part.numbers(along[axis]) for axis, part in keys]


@dataclass(frozen=True)
class SpreadGrid(OnSource):
    """A dense source with the results of groups as further attributes. It pickles."""

    source: ComputedSource
    totals: HeldGrid
    schema: Schema
    box: Box
    label_items: LabelItems
    groups: Membership

    def cells_decoded(self, results: Box) -> int:
        return self.source.cells_decoded(results)

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        return self.source.touched_bytes(results, self._own(attributes))

    def task_bytes(self, results: Box) -> int:
        return self.source.task_bytes(results) + COPIES * results.size * self.totals.schema.cell_bytes

    def _own(self, attributes: Iterable[str] | None) -> tuple[str, ...]:
        """The attributes that the source has."""
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        return tuple(name for name in names if name in self.source.schema.attribute_names)

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        found: dict[str, Any] = dict(self.source.read(box, self._own(names)))
        wanted = [name for name in names if name in self.totals.schema.attribute_names]
        along = [np.arange(lo, hi + 1, dtype=np.int64) for lo, hi in zip(box.lo, box.hi, strict=True)]
        index = []
        for axis, numbers, lo in zip(self.groups.axes, self.groups.numbers(along), self.totals.box.lo, strict=False):
            index.append((numbers - lo).reshape([-1 if at == axis else 1 for at in range(box.ndim)]))
        for name, block in self.totals.read(self.totals.box, wanted).items():
            if box.is_empty:  # no cells, no groups
                found[name] = np.zeros(box.shape, block.dtype)
                continue
            chosen = block[tuple(index)] if index else block.reshape((1,) * box.ndim)
            found[name] = np.array(np.broadcast_to(chosen, box.shape))
        return found


@dataclass(frozen=True)
class SpreadCells(OnSource):
    """A sparse source with the results of groups as further attributes. It pickles."""

    source: ComputedCells
    totals: HeldCells
    schema: Schema
    box: Box
    label_items: LabelItems
    groups: Membership

    def cells_in(self, box: Box) -> int:
        return self.source.cells_in(box)

    def cells_decoded(self, results: Box) -> int:
        return self.source.cells_decoded(results)

    def touched_bytes(self, results: Box) -> int:
        return self.source.touched_bytes(results)

    def task_bytes(self, results: Box) -> int:
        cells = self.source.cells_in(results)
        return self.source.task_bytes(results) + COPIES * cells * row_bytes(self.schema)

    def within(self, results: Box) -> SpreadCells:
        return replace(self, source=self.source.within(results))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        own = [name for name in chosen.attribute_names if name in self.source.schema.attribute_names]
        table = self.source.read(box, own)
        dimensions = self.source.schema.dimension_names
        at = self.groups.numbers([table.column(name).to_numpy() for name in dimensions])
        known = [self.totals.table.column(number).to_numpy() for number in range(len(at))]
        rows = pa.array(_rows_of(known, at, table.num_rows))
        columns = [
            table.column(name) if name in own or name in dimensions else self.totals.table.column(name).take(rows)
            for name in [*dimensions, *chosen.attribute_names]
        ]
        return pa.table(columns, schema=cell_fields(chosen))


def _rows_of(known: Sequence[Int64Array], wanted: Sequence[Int64Array], count: int) -> Int64Array:
    """Where the groups of some cells are among all groups.

    Dimensions are taken in one by one, and what was met so far is numbered anew each time, so that no number gets
    larger than the groups are many.
    """
    if not known:
        return np.zeros(count, np.int64)
    there, asked = np.zeros(len(known[0]), np.int64), np.zeros(count, np.int64)
    for have, want in zip(known, wanted, strict=True):
        values = np.unique(have)
        there, asked = (
            before * len(values) + np.searchsorted(values, here) for before, here in ((there, have), (asked, want))
        )
        met = np.unique(there)
        there, asked = np.searchsorted(met, there), np.searchsorted(met, asked)
    order = np.argsort(there)
    return order[asked]
