"""Window queries: which aggregates over which window of which array, and what array comes out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import DataError
from windrow.kernels.choose import AUTO
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.types import TYPES
from windrow.model.window import Extent, LabelExtent, Window
from windrow.plan.axes import AxisPlan, in_cells, label_outside, label_ranges, plan_axis, plan_label_axis


@dataclass(frozen=True)
class WindowPlan:
    """Aggregates, by result name, over a window on an array that has ``schema`` and the cells of ``bounds`` now."""

    schema: Schema
    bounds: Box
    window: Window
    aggregates: tuple[tuple[str, Aggregate], ...]
    labels: tuple[tuple[str, Labels], ...] = ()
    method: str = "auto"
    strategy: str = AUTO
    swept: int | None = None
    """The axis along which windows are made to slide, under method incremental."""

    def __post_init__(self) -> None:
        if self.schema.sparse and self.strategy != AUTO:
            hint = "Windows of sparse arrays are computed by the cells around each cell"
            raise DataError("a strategy can be asked for over dense arrays only", got=repr(self.strategy), hint=hint)
        if self.swept is not None and self.is_regrid:
            got = f"a sweep along {self.window.dimensions[self.swept]}"
            raise DataError("blocks that lie side by side share no cells, so nothing slides", got=got)
        for _, aggregate in self.aggregates:
            if aggregate.attribute is not None:
                aggregate.check(*(self.schema.attribute(name).type for name in aggregate.attributes))
        labels = dict(self.labels)
        for name, extent in zip(self.window.dimensions, self.resolved.extents, strict=True):
            if isinstance(extent, LabelExtent):
                label_ranges(extent, labels[name])  # refuses labels without distances, and units that are not theirs

    @cached_property
    def resolved(self) -> Window:
        """The window, in cells wherever that is possible."""
        return in_cells(self.window, dict(self.labels))

    @property
    def is_regrid(self) -> bool:
        """Whether the windows are blocks that lie side by side."""
        return all(
            isinstance(extent, Extent) and not extent.wraps and (extent.start, extent.stop) == (0, step - 1)
            for extent, step in zip(self.window.extents, self.window.step, strict=True)
        )

    @property
    def results(self) -> Box:
        return self.window.output_bounds(self.bounds)

    @cached_property
    def result_schema(self) -> Schema:
        """The array that comes out: dense or sparse as the input is, with its dimensions as far as steps leave them.

        A dense result has the cells that are there now; a sparse one may grow as its input does.
        """
        dimensions = []
        for axis, dimension in enumerate(self.schema.dimensions):
            step = self.window.step[axis]
            chunk = None if dimension.chunk is None else max(1, -(-dimension.chunk // step))
            growing = self.schema.sparse and dimension.growing
            hi = None if growing else self.results.hi[axis]
            wraps = dimension.wrap and self.results.hi[axis] - dimension.lo + 1 == dimension.extent
            dimensions.append(Dimension(dimension.name, dimension.lo, hi, chunk, dimension.numbering, wraps))
        attributes = tuple(self._attribute(name, aggregate) for name, aggregate in self.aggregates)
        return Schema(tuple(dimensions), attributes, self.schema.sparse).with_chunks()

    def _attribute(self, name: str, aggregate: Aggregate) -> Attribute:
        definition = aggregate.definition
        source = None if aggregate.attribute is None else self.schema.attribute(aggregate.attribute)
        kind = definition.result(TYPES["int64"] if source is None else source.type)
        certain = (
            definition.least == 0 if self.window.boundary == "clip" and self.window.min_count == 0 else False
        ) or self._always_present(aggregate)
        return Attribute(name, kind, nullable=not certain and not kind.is_float)

    def _always_present(self, aggregate: Aggregate) -> bool:
        """Whether every window is sure to hold a value: it holds its own cell, and that is never missing."""
        if self.window.boundary != "clip" or self.window.min_count > 1 or aggregate.definition.least > 1:
            return False
        if any(isinstance(e, Extent) and not e.start <= 0 <= e.stop for e in self.window.extents):
            return False
        return aggregate.attribute is None or not self.schema.attribute(aggregate.attribute).can_be_missing

    @property
    def result_labels(self) -> dict[str, Labels]:
        """A result has the label of the first cell of its window's position."""
        named = {}
        for name, labels in self.labels:
            step = self.window.step[self.schema.axis(name)]
            named[name] = Labels(labels.values[::step].copy(), labels.attributes)
        return named

    def axes(self, results: Box) -> list[AxisPlan]:
        """What to read, and how to sweep it, for a box of results."""
        labels = dict(self.labels)
        plans = []
        for axis, (name, extent) in enumerate(zip(self.window.dimensions, self.resolved.extents, strict=True)):
            span, bounds = (results.lo[axis], results.hi[axis]), (self.bounds.lo[axis], self.bounds.hi[axis])
            step = self.window.step[axis]
            if isinstance(extent, LabelExtent):
                plans.append(plan_label_axis(extent, step, span, bounds, labels[name]))
            else:
                plans.append(plan_axis(extent, step, span, bounds))
        return plans

    def outside(self, axis: int, lo: int, hi: int) -> npt.NDArray[np.bool_]:
        """Which windows of the results from ``lo`` to ``hi`` along an axis leave the array."""
        extent, first, last = self.resolved.extents[axis], self.bounds.lo[axis], self.bounds.hi[axis]
        position = first + (np.arange(lo, hi + 1) - first) * self.window.step[axis]
        if isinstance(extent, LabelExtent):
            return label_outside(extent, dict(self.labels)[self.window.dimensions[axis]])[position - first]
        if extent.wraps:
            return np.zeros(len(position), bool)
        return np.asarray((position + extent.start < first) | (position + extent.stop > last))

    def halo_factor(self, results: Box) -> float:
        """Cells read for each cell of input that the results stand for."""
        read = math.prod(plan.cells for plan in self.axes(results))
        own = math.prod(
            min(n * step, extent)
            for n, step, extent in zip(results.shape, self.window.step, self.bounds.shape, strict=True)
        )
        return read / max(1, own)


def needed_attributes(aggregates: Mapping[str, Aggregate] | tuple[tuple[str, Aggregate], ...]) -> tuple[str, ...]:
    """The attributes that aggregates read, each once."""
    items = aggregates.items() if isinstance(aggregates, Mapping) else aggregates
    return tuple(dict.fromkeys(name for _, aggregate in items for name in aggregate.attributes))


def neighbourhood_schema(
    schema: Schema, results: Box, step: tuple[int, ...], aggregates: Iterable[tuple[str, Aggregate]], min_count: int
) -> Schema:
    """Dense results in a box, with the input's dimensions as far as steps leave them."""
    dimensions = []
    for axis, dimension in enumerate(schema.dimensions):
        chunk = None if dimension.chunk is None else max(1, -(-dimension.chunk // step[axis]))
        dimensions.append(Dimension(dimension.name, dimension.lo, results.hi[axis], chunk))
    attributes = tuple(_result_attribute(schema, name, aggregate, min_count) for name, aggregate in aggregates)
    return Schema(tuple(dimensions), attributes).with_chunks()


def _result_attribute(schema: Schema, name: str, aggregate: Aggregate, min_count: int) -> Attribute:
    definition = aggregate.definition
    source = TYPES["int64"] if aggregate.attribute is None else schema.attribute(aggregate.attribute).type
    kind = definition.result(source)
    certain = definition.least == 0 and min_count == 0
    return Attribute(name, kind, nullable=not certain and not kind.is_float)
