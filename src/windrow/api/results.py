"""A query's result in parts: what a screen can show, and all of it as rows for other programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.api.query import CellsQuery, GridQuery
from windrow.formats.cells import LABEL_SUFFIX, cells_schema, dense_to_batches
from windrow.model.arrow import block_to_arrow
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks

if TYPE_CHECKING:
    from windrow.api.query import Query

_CELLS_AT_ONCE = 2**19


@dataclass(frozen=True)
class Rows:
    """Cells as rows, in the order of their coordinates, labels beside these; they come as they are computed."""

    fields: pa.Schema
    batches: Iterator[pa.RecordBatch]


class Result:
    """A query bound once, of whose result parts are computed as they are asked for."""

    def __init__(self, query: Query) -> None:
        self._bound = query.bind()

    @property
    def schema(self) -> Schema:
        return self._bound.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self._bound.labels)

    @property
    def box(self) -> Box:
        return self._bound.box

    @property
    def sparse(self) -> bool:
        return self._bound.sparse

    @property
    def scalar(self) -> bool:
        """Whether it is one result over all cells, which lies nowhere."""
        return self._bound.scalar

    def grid(self, box: Box) -> Blocks:
        """The values of a dense result in a box, and only these are computed."""
        assert isinstance(self._bound, GridQuery)
        return self._bound.preview(box).blocks

    def first_cells(self, count: int) -> tuple[pa.Table, int]:
        """The first cells of a sparse result in the order of their coordinates, and how many there are in all."""
        assert isinstance(self._bound, CellsQuery)
        return self._bound.first(count)

    def rows(self) -> Rows:
        """All cells; dense results of any size pass through piece by piece."""
        bound = self._bound
        if isinstance(bound, CellsQuery):
            table = _with_labels(bound.preview(bound.box), bound.schema, bound.labels)
            return Rows(table.schema, iter(table.to_batches()))
        labelled = bool(bound.labels)
        pieces = map(bound.preview, row_slabs(bound.box, bound.schema.grid.chunk))
        batches = (batch for piece in pieces for batch in dense_to_batches(piece, labelled))
        fields = cells_schema(bound.as_grid(), labelled)
        if not bound.scalar:
            return Rows(fields, batches)
        shown = bound.shown_names
        return Rows(pa.schema([fields.field(name) for name in shown]), (batch.select(shown) for batch in batches))


def row_slabs(box: Box, chunk: tuple[int, ...]) -> Iterator[Box]:
    """A box in parts that follow one another in row-major order, of whole chunks where these are small."""
    if box.is_empty:
        return
    rest = math.prod(box.shape[1:])
    if rest > _CELLS_AT_ONCE and box.ndim > 1:
        for place in range(box.lo[0], box.hi[0] + 1):
            for part in row_slabs(Box(box.lo[1:], box.hi[1:]), chunk[1:]):
                yield Box((place, *part.lo), (place, *part.hi))
        return
    rows = max(1, _CELLS_AT_ONCE // rest)
    rows = rows - rows % chunk[0] if rows > chunk[0] else rows
    for start in range(box.lo[0], box.hi[0] + 1, rows):
        yield Box((start, *box.lo[1:]), (min(box.hi[0], start + rows - 1), *box.hi[1:]))


def _with_labels(found: pa.Table, schema: Schema, labels: Mapping[str, Labels]) -> pa.Table:
    """Cells with the labels of their coordinates beside these."""
    for dimension in schema.dimensions:
        if dimension.name in labels and dimension.name in found.column_names:
            numbers = np.asarray(found.column(dimension.name).to_numpy())
            shown = block_to_arrow(labels[dimension.name].values[numbers - dimension.lo])
            place = sum(name in schema.dimension_names or name.endswith(LABEL_SUFFIX) for name in found.column_names)
            found = found.add_column(place, dimension.name + LABEL_SUFFIX, shown)
    return found
