"""Cells with the results of the groups that they are in: groups are computed first and held, cells as they are read."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.arrow import block_to_arrow
from windrow.model.box import Box
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks, ComputedCells
from windrow.operations.query.blocks import ComputedSource, row_bytes
from windrow.operations.query.cell_keys import cell_keys
from windrow.operations.query.held import HeldCells, HeldGrid
from windrow.operations.query.standing import OnSource
from windrow.plan.bound import LabelItems
from windrow.plan.grouping.label_parts import Part, key_attributes
from windrow.plan.grouping.values import ValuePart
from windrow.storage.cells import cell_fields

Int64Array = npt.NDArray[np.int64]
COPIES = 2
"""How often a task holds the results of groups laid out over its cells."""


@dataclass(frozen=True)
class Membership:
    """Which group a cell is in, along each dimension of the groups."""

    axes: tuple[int, ...]
    parts: tuple[Part | None, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that say so."""
        return key_attributes(self.parts)

    def on_grid(self, box: Box, blocks: Blocks, companions: Mapping[str, str]) -> list[Int64Array]:
        """The cell of the groups that each cell of a box belongs to, in arrays that fit on it; -1 for none of them."""
        found = []
        for axis, part in zip(self.axes, self.parts, strict=True):
            if isinstance(part, ValuePart):
                values = block_to_arrow(blocks[part.name], blocks.get(companions[part.name]))
                found.append(part.codes(values).reshape(box.shape))
                continue
            cells = np.arange(box.lo[axis], box.hi[axis] + 1, dtype=np.int64)
            numbers = cells if part is None else part.numbers(cells)
            found.append(numbers.reshape([-1 if at == axis else 1 for at in range(box.ndim)]))
        return found


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
        read = self.source.read(box, dict.fromkeys([*self._own(names), *self.groups.attributes]))
        kept = {one for name in self._own(names) for one in (name, self.schema.attribute(name).companion)}
        found: dict[str, Any] = {name: block for name, block in read.items() if name in kept}
        companions = {name: self.source.schema.attribute(name).companion for name in self.groups.attributes}
        wanted = [self.schema.attribute(name) for name in names if name in self.totals.schema.attribute_names]
        if box.is_empty or self.totals.box.is_empty:  # no cells, no groups
            return found | {name: block for one in wanted for name, block in _missing(one, box).items()}
        numbers = self.groups.on_grid(box, read, companions)
        # Values of attributes are numbered from 0 on, so that cells that are in no group stay below.
        index = [at - lo for at, lo in zip(numbers, self.totals.box.lo, strict=False)]
        there = functools.reduce(np.logical_and, (at >= 0 for at in index)) if self.groups.attributes else None
        if there is not None:
            index = [np.maximum(at, 0) for at in index]
        for attribute in wanted:
            found |= self._laid(attribute, box, tuple(index), there)
        return found

    def _laid(self, attribute: Attribute, box: Box, index: tuple[Int64Array, ...], there: Any) -> dict[str, Any]:
        """The results of groups at the cells that belong to them."""
        found: dict[str, Any] = {}
        for name, block in self.totals.read(self.totals.box, [attribute.name]).items():
            chosen = block[index] if index else block.reshape((1,) * box.ndim)
            found[name] = np.array(np.broadcast_to(chosen, box.shape))
        if there is not None:
            if attribute.has_companion:
                found[attribute.companion] = found.get(attribute.companion, True) & np.broadcast_to(there, box.shape)
            found[attribute.name][~np.broadcast_to(there, box.shape)] = attribute.type.fill
        return found


def _missing(attribute: Attribute, box: Box) -> dict[str, Any]:
    """Nothing at any cell of a box."""
    found: dict[str, Any] = {attribute.name: np.full(box.shape, attribute.type.fill, attribute.type.dtype)}
    return found | ({attribute.companion: np.zeros(box.shape, bool)} if attribute.has_companion else {})


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
        table = self.source.read(box, dict.fromkeys([*own, *self.groups.attributes]))
        dimensions = self.source.schema.dimension_names
        at, there = cell_keys(table, dimensions, self.groups.axes, self.groups.parts)
        known = [self.totals.table.column(number).to_numpy() for number in range(len(at))]
        count = table.num_rows if there is None else int(there.sum())
        rows = pa.array(_rows_of(known, at, count))
        if there is not None:  # what is in no group has no results
            places = np.zeros(table.num_rows, np.int64)
            places[there] = rows.to_numpy()
            rows = pa.array(places, mask=~there)
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
