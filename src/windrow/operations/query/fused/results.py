"""The aggregates of groups on a grid, put together column by column, as a table or as dense blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.columns import Result
from windrow.kernels.sparse.order import coordinate_order
from windrow.model.arrow import block_to_arrow
from windrow.model.schema import Schema
from windrow.operations.query.fused.dense_runs import Frame
from windrow.operations.query.fused.groups import GridGroups
from windrow.plan.bound import NamedAggregates
from windrow.storage.cells import cell_fields

Array = npt.NDArray[Any]


class FoldResults:
    """Results of groups, all of which are put; ``chosen``: only those with cells that a condition meets occur."""

    def __init__(self, groups: GridGroups, aggregates: NamedAggregates, chosen: bool) -> None:
        self.groups = groups
        self._chosen = chosen
        self._values: list[Array | None] = [None] * len(aggregates)
        self._missing: list[Array | None] = [None] * len(aggregates)
        self._occurs = np.zeros(groups.shape, bool) if chosen else None

    def put(self, frame: Frame, results: Sequence[Result], cells: Array | None) -> None:
        """The results of the groups of a frame."""
        where = tuple(slice(start, stop) for start, stop in frame)
        shape = tuple(stop - start for start, stop in frame)
        for number, result in enumerate(results):
            if shape == self.groups.shape:
                self._values[number] = result.values.reshape(shape)
                self._missing[number] = None if result.missing is None else result.missing.reshape(shape)
                continue
            held = self._values[number]
            if held is None:
                held = self._values[number] = np.empty(self.groups.shape, result.values.dtype)
            held[where] = result.values.reshape(shape)
            if result.missing is not None:
                lacking = self._missing[number]
                if lacking is None:
                    lacking = self._missing[number] = np.zeros(self.groups.shape, bool)
                lacking[where] = result.missing.reshape(shape)
        if self._occurs is not None and cells is not None:
            self._occurs[where] = (cells > 0).reshape(shape)

    def can_be_blocks(self) -> bool:
        """Whether each dimension of the result is an axis of its own."""
        return all(len(axis.keys) < 2 for axis in self.groups.axes)

    def blocks(self, schema: Schema, shape: tuple[int, ...]) -> dict[str, Array]:
        """Dense results, which have a cell for each group."""
        axes: dict[int, int] = {grouping: at for at, axis in enumerate(self.groups.axes) for grouping in axis.keys}
        order = [axes[grouping] for grouping in range(self.groups.groupings)]
        order += [at for at in range(len(self.groups.axes)) if at not in order]
        found: dict[str, Array] = {}
        for number, attribute in enumerate(schema.attributes):
            values, missing = self._values[number], self._missing[number]
            assert values is not None
            block = np.ascontiguousarray(values.transpose(order), attribute.type.dtype).reshape(shape)
            lacking = None if missing is None else missing.transpose(order).reshape(shape)
            if lacking is not None:
                block = block.copy() if block.base is not None else block
                block[lacking] = attribute.type.fill
            found[attribute.name] = block
            if attribute.has_companion:
                found[attribute.companion] = np.ones(shape, bool) if lacking is None else ~lacking
        return found

    def table(self, schema: Schema) -> pa.Table:
        """A row for each group that occurs, in the order of their coordinates."""
        by_group = self.groups.groupings > 0
        occurring = np.arange(self.groups.count)
        if self._occurs is not None and by_group:
            occurring = np.flatnonzero(self._occurs.reshape(-1))
        places = self.groups.coordinates(occurring) if by_group else [np.zeros(1, np.int64)]
        if by_group and not self.groups.is_in_order:
            order = coordinate_order(places)
            occurring, places = occurring[order], [place[order] for place in places]
        columns = []
        for number, attribute in enumerate(schema.attributes):
            values, missing = self._values[number], self._missing[number]
            assert values is not None
            chosen = values.reshape(-1)[occurring].astype(attribute.type.dtype, copy=False)
            columns.append(block_to_arrow(chosen, None if missing is None else ~missing.reshape(-1)[occurring]))
        return pa.table([*map(pa.array, places), *columns], schema=cell_fields(schema))
