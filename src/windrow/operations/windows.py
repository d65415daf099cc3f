"""Window queries over stored arrays: each task reads its block and halo, runs the kernels, and writes or returns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.aggregates.evaluate import Column, Evaluation, Result
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor, Job
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks, GridSource
from windrow.operations.blocks import computed_blocks
from windrow.plan.axes import AxisPlan
from windrow.plan.windows import WindowPlan, needed_attributes

WORKING_COPIES = 4
"""How often a task holds its input: as read, as float64, as intermediate results, as taken round a border."""


@dataclass(frozen=True)
class WindowSource:
    """The result of a window query as a GridSource: reading a box of it computes it. It pickles."""

    source: GridSource
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

    def touched_bytes(self, results: Box) -> int:
        """What decides between this process and Spark: bytes read and written."""
        names = needed_attributes(self.plan.aggregates)
        stored = sum(self.plan.schema.attribute(name).type.itemsize for name in names)
        return self.cells_decoded(results) * stored + results.size * self.schema.cell_bytes

    def read(self, box: Box) -> Blocks:
        axes = self.plan.axes(box)
        columns = self._columns(axes)
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
        )
        blocks: dict[str, Any] = {}
        for (_, aggregate), attribute in zip(self.plan.aggregates, self.schema.attributes, strict=True):
            blocks |= _stored(evaluation.result(aggregate), attribute)
        return blocks

    def _columns(self, axes: list[AxisPlan]) -> dict[str, Column]:
        names = needed_attributes(self.plan.aggregates)
        box = Box(tuple(axis.lo for axis in axes), tuple(axis.hi for axis in axes))
        blocks = _read(self.source, box, names)
        columns = {}
        for name in names:
            attribute = self.plan.schema.attribute(name)
            values = _taken(blocks[name], axes)
            present = _taken(blocks[attribute.companion], axes) if attribute.has_companion else None
            columns[name] = Column(values, present)
        return columns

    def _border(self, box: Box, axes: list[AxisPlan]) -> list[Any]:
        """For each axis, which results' windows leave the array there; a block's own border does not count."""
        return [self.plan.outside(axis, box.lo[axis], box.hi[axis]) for axis in range(len(axes))]


def _read(source: GridSource, box: Box, names: tuple[str, ...]) -> Blocks:
    if hasattr(source, "growing_schema"):
        return source.read(box, names)  # type: ignore[call-arg]
    return source.read(box)


def _taken(values: Any, axes: list[AxisPlan]) -> Any:
    for number, axis in enumerate(axes):
        if axis.take is not None:
            values = np.take(values, axis.take, axis=number)
    return values


def _stored(result: Result, attribute: Attribute) -> dict[str, Any]:
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

    source: WindowSource
    box: Box


def compute_block(task: ComputeBlock) -> Blocks:
    return dict(task.source.read(task.box))


def compute(engine: Engine, source: WindowSource, box: Box) -> Blocks:
    """The results in ``box``, gathered in this process."""
    gathered: dict[str, Any] = {}
    executor = engine.choose(source.touched_bytes(box))
    blocks = computed_blocks(source, source.schema.grid, box, executor)
    for block, piece in zip(blocks, _run(executor, source, blocks), strict=True):
        if block == box:
            return piece
        for name, values in piece.items():
            if name not in gathered:
                gathered[name] = np.empty(box.shape, values.dtype)
            gathered[name][block.slices(box.lo)] = values
    return gathered


def stream(engine: Engine, source: WindowSource, box: Box) -> Iterator[tuple[Box, Blocks]]:
    """The results in ``box`` block by block, as many at a time as there are workers."""
    executor = engine.choose(source.touched_bytes(box))
    blocks = computed_blocks(source, source.schema.grid, box, executor)
    for start in range(0, len(blocks), executor.workers):
        together = blocks[start : start + executor.workers]
        yield from zip(together, _run(executor, source, together), strict=True)


def _run(executor: Executor, source: WindowSource, blocks: Sequence[Box]) -> list[Blocks]:
    largest = max(map(source.task_bytes, blocks), default=0)
    tasks = [ComputeBlock(source, block) for block in blocks]
    return executor.run(Job("computing windows", compute_block, tasks, largest))
