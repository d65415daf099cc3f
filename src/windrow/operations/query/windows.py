"""Window queries over stored arrays: each task reads its block and halo, runs the kernels, and writes or returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.aggregates.columns import PLACES, Column, Result
from windrow.aggregates.windows import Evaluation
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks
from windrow.operations.query.blocks import ComputedSource
from windrow.plan.axes import AxisPlan
from windrow.plan.windows import WindowPlan, needed_attributes

WORKING_COPIES = 4
"""How often a task holds its input: as read, as float64, as intermediate results, as taken round a border."""


@dataclass(frozen=True)
class WindowSource:
    """The result of a window query as a GridSource: reading a box of it computes it. It pickles."""

    source: ComputedSource
    plan: WindowPlan

    @property
    def schema(self) -> Schema:
        return self.plan.result_schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.plan.result_labels

    @property
    def keep_whole(self) -> tuple[int, ...]:
        """The axes that are best not cut: those along which the window is wide."""
        widths = [(axis.sweep.width, number) for number, axis in enumerate(self.plan.axes(self.plan.results))]
        return tuple(number for width, number in widths if width > 1)

    @property
    def reading_grid(self) -> ChunkGrid:
        moved = any(step != 1 for step in self.plan.window.step)
        return self.schema.grid if moved else self.source.reading_grid

    def task_bytes(self, results: Box) -> int:
        """Estimated peak memory of computing a box of results, halo and temporaries included."""
        read = math.prod(axis.cells if axis.take is None else len(axis.take) for axis in self.plan.axes(results))
        names = needed_attributes(self.plan.aggregates)
        widest = max((self.plan.schema.attribute(name).type.itemsize for name in names), default=1)
        stored = sum(self.plan.schema.attribute(name).type.itemsize for name in names)
        outputs = results.size * (24 + self.schema.cell_bytes)
        return int(read * (stored + (WORKING_COPIES - 1) * max(8, widest)) + outputs)

    def cells_decoded(self, results: Box) -> int:
        """How many stored cells are read for a box of results, in whole chunks."""
        axes = self.plan.axes(results)
        read = Box(tuple(axis.lo for axis in axes), tuple(axis.hi for axis in axes))
        return (self.source.schema.grid.aligned(read) & self.plan.bounds).size

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        """What decides between this process and Spark: bytes read and written."""
        names = needed_attributes(self.plan.aggregates)
        stored = sum(self.plan.schema.attribute(name).type.itemsize for name in names)
        return self.cells_decoded(results) * stored + results.size * self.schema.cell_bytes

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        aggregates = {name: dict(self.plan.aggregates)[name] for name in names}
        axes = self.plan.axes(box)
        columns = self._columns(axes, needed_attributes(aggregates))
        shape = tuple(axis.cells if axis.take is None else len(axis.take) for axis in axes)
        window = self.plan.window
        evaluation = Evaluation(
            columns,
            shape,
            [axis.sweep for axis in axes],
            self.plan.method,
            window.min_count,
            window.boundary == "drop",
            self._border(box, axes),
            strategy=self.plan.strategy,
            swept=self.plan.swept,
        )
        blocks: dict[str, Any] = {}
        for name, aggregate in aggregates.items():
            blocks |= stored_blocks(evaluation.result(aggregate), self.schema.attribute(name))
        return blocks

    def _columns(self, axes: list[AxisPlan], names: tuple[str, ...]) -> dict[str, Column]:
        box = Box(tuple(axis.lo for axis in axes), tuple(axis.hi for axis in axes))
        blocks = self.source.read(box, names)
        columns = {}
        for name in names:
            attribute = self.plan.schema.attribute(name)
            values = _taken(blocks[name], axes)
            present = _taken(blocks[attribute.companion], axes) if attribute.has_companion else None
            columns[name] = Column(values, present)
        ordered = any(aggregate.definition.ordered for _, aggregate in self.plan.aggregates)
        if ordered and any(axis.take is not None for axis in axes):
            # Cells that a window meets round the border come where their coordinates are.
            cells = np.arange(box.size).reshape(box.shape)
            columns[PLACES] = Column(_taken(cells, axes))
        return columns

    def _border(self, box: Box, axes: list[AxisPlan]) -> list[Any]:
        """For each axis, which results' windows leave the array there; a block's own border does not count."""
        return [self.plan.outside(axis, box.lo[axis], box.hi[axis]) for axis in range(len(axes))]


def _taken(values: Any, axes: list[AxisPlan]) -> Any:
    for number, axis in enumerate(axes):
        if axis.take is not None:
            values = np.take(values, axis.take, axis=number)
    return values


def stored_blocks(result: Result, attribute: Attribute) -> dict[str, Any]:
    """A result in the form a dense array keeps it."""
    values = result.values
    if attribute.type.is_float:
        if result.missing is not None:
            values = values.astype(attribute.type.dtype)
            values[result.missing] = np.nan
        return {attribute.name: values.astype(attribute.type.dtype, copy=False)}
    if result.missing is not None:
        values = values.copy()
        values[result.missing] = attribute.type.fill
    blocks = {attribute.name: values.astype(attribute.type.dtype, copy=False)}
    if attribute.has_companion:
        present = np.ones(values.shape, bool) if result.missing is None else ~result.missing
        blocks[attribute.companion] = present
    return blocks


@dataclass(frozen=True)
class ComputeBlock:
    """A task: compute one box of results and return it."""

    source: ComputedSource
    box: Box


def compute_block(task: ComputeBlock) -> Blocks:
    return dict(task.source.read(task.box))
