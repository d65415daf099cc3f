"""Neighbourhoods by shape over dense arrays: each task reads its block and halo, and runs the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column
from windrow.aggregates.shape_blocks import ShapeRequest, evaluate_shape
from windrow.errors import SchemaError
from windrow.kernels.choose import AUTO
from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks
from windrow.operations.query.blocks import ComputedSource
from windrow.operations.query.windows import WORKING_COPIES, stored_blocks
from windrow.plan.windows import needed_attributes

NamedAggregates = tuple[tuple[str, Aggregate], ...]


@dataclass(frozen=True)
class ShapeSource:
    """Aggregates over the shape around each cell of a dense source; reading a box of it computes it. It pickles.

    ``source`` has a column for each argument of the aggregates, ``schema`` is that of the results.
    """

    source: ComputedSource
    request: ShapeRequest
    aggregates: NamedAggregates
    schema: Schema

    @classmethod
    def of(
        cls,
        source: ComputedSource,
        shape: BoundShape,
        bounds: Box,
        labels: Mapping[str, Labels],
        aggregates: NamedAggregates,
        schema: Schema,
        *,
        min_count: int = 0,
        method: str = "auto",
        step: tuple[int, ...] = (),
        strategy: str = AUTO,
    ) -> ShapeSource:
        """A bound neighbourhood on the cells of ``bounds``; no ``step`` is a result at every cell."""
        for one in shape.labelled:
            if shape.dimensions[one.axis] not in labels:
                hint = "Give a number of cells"
                raise SchemaError(f"dimension {shape.dimensions[one.axis]} has no labels", got=str(one), hint=hint)
        for _, aggregate in aggregates:
            if aggregate.attribute is not None:
                aggregate.check(*(source.schema.attribute(name).type for name in aggregate.attributes))
        steps = step or (1,) * bounds.ndim
        request = ShapeRequest(shape, bounds, steps, tuple(labels.items()), min_count, method, strategy)
        return cls(source, request, aggregates, schema)

    @property
    def labels(self) -> Mapping[str, Labels]:
        """A result has the label of the cell that it stands at."""
        steps = dict(zip(self.request.shape.dimensions, self.request.step, strict=True))
        return {
            name: labels if steps[name] == 1 else Labels(labels.values[:: steps[name]].copy(), labels.attributes)
            for name, labels in self.request.labels
        }

    @property
    def keep_whole(self) -> tuple[int, ...]:
        """The axes that are best not cut: those along which the shape reaches further than its cell."""
        shape = self.request.shape
        reaches = enumerate(zip(shape.bounds(), shape.free, strict=True))
        return tuple(axis for axis, ((low, high), free) in reaches if free or high > low)

    @property
    def reading_grid(self) -> ChunkGrid:
        moved = any(step != 1 for step in self.request.step)
        return self.schema.grid if moved else self.source.reading_grid

    def task_bytes(self, results: Box) -> int:
        """Estimated peak memory of computing a box of results, halo and temporaries included."""
        read = self.request.cells(results)
        names = self._needed()
        widest = max((self._attribute(name).type.itemsize for name in names), default=1)
        stored = sum(self._attribute(name).type.itemsize for name in names)
        outputs = results.size * (24 + self.schema.cell_bytes)
        walked = self._walked(results, read)
        own = read.size * stored + walked * (WORKING_COPIES - 1) * max(8, widest) + outputs
        return max(int(own), self.source.task_bytes(read))

    def _walked(self, results: Box, read: Box) -> int:
        """Cells with those that are met again round a border."""
        shape, positions = self.request.shape, self.request.positions(results)
        lengths = []
        for axis, (low, high) in enumerate(shape.bounds()):
            around = positions.shape[axis] + max(0, high - low)
            lengths.append(around if shape.wraps[axis] and not shape.free[axis] else read.shape[axis])
        return math.prod(lengths)

    def cells_decoded(self, results: Box) -> int:
        """How many stored cells are read for a box of results, in whole chunks."""
        return self.source.cells_decoded(self.request.cells(results))

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        """What decides between this process and Spark: bytes read and written."""
        read = self.source.touched_bytes(self.request.cells(results), self._needed(attributes))
        return read + results.size * self.schema.cell_bytes

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        aggregates = {name: dict(self.aggregates)[name] for name in names}
        cells = self.request.cells(box)
        found = evaluate_shape(self.request, self._columns(cells, names), cells, box, aggregates)
        blocks: dict[str, Any] = {}
        for name, result in found.items():
            blocks |= stored_blocks(result, self.schema.attribute(name))
        return blocks

    def _columns(self, box: Box, results: tuple[str, ...]) -> dict[str, Column]:
        names = self._needed(results)
        blocks = self.source.read(box, names) if names else {}
        columns = {}
        for name in names:
            attribute = self._attribute(name)
            present = blocks[attribute.companion] if attribute.has_companion else None
            columns[name] = Column(blocks[name], present)
        return columns

    def _needed(self, results: Iterable[str] | None = None) -> tuple[str, ...]:
        wanted = None if results is None else set(results)
        return needed_attributes(tuple(item for item in self.aggregates if wanted is None or item[0] in wanted))

    def _attribute(self, name: str) -> Attribute:
        return self.source.schema.attribute(name)
