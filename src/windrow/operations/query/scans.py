"""Versions of stored arrays as the lowest sources of a query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from windrow.model.box import Box, hull
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Schema
from windrow.model.source import Blocks
from windrow.operations.query.blocks import row_bytes
from windrow.plan.bound import LabelItems
from windrow.storage.dense.snapshots import DenseSnapshot
from windrow.storage.records import ChunkStatistics, Int64Array
from windrow.storage.sparse import SparseSnapshot


@dataclass(frozen=True)
class StoredGrid:
    """A version of a dense array. It pickles."""

    snapshot: DenseSnapshot

    @property
    def schema(self) -> Schema:
        return self.snapshot.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return self.snapshot.labels

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return ()

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.schema.grid

    def cells_decoded(self, results: Box) -> int:
        return 0 if results.is_empty else (self.reading_grid.aligned(results) & self.snapshot.box).size

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        names = self.schema.attribute_names if attributes is None else attributes
        return self.cells_decoded(results) * self.schema.bytes_of(names)

    def task_bytes(self, results: Box) -> int:
        return 2 * results.size * self.schema.cell_bytes

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        return self.snapshot.read(box, attributes)


@dataclass(frozen=True)
class StoredCells:
    """A version of a sparse array. It pickles."""

    snapshot: SparseSnapshot
    label_items: LabelItems = ()
    chunks: ChunkStatistics | None = field(default=None, compare=False)
    """Where its cells lie more exactly than parts say, for those who have to share work out evenly."""
    chosen: Int64Array | None = field(default=None, compare=False)
    """The chunks whose cells are read, ascending; None: all."""

    @property
    def schema(self) -> Schema:
        return self.snapshot.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return dict(self.label_items)

    @property
    def box(self) -> Box:
        return self.snapshot.box

    @property
    def keep_whole(self) -> tuple[int, ...]:
        return ()

    @property
    def reading_grid(self) -> ChunkGrid:
        return self.schema.grid

    def cells_in(self, box: Box) -> int:
        """About how many cells lie in a box, if those of a part or chunk lie evenly in its own box."""
        if self.chunks is not None:
            return self.chunks.cells_in(box)
        cells = 0
        for part in self.snapshot.touching(box):
            common, whole = (part.box & box).shape, part.box.shape
            share = math.prod(inside / extent for inside, extent in zip(common, whole, strict=True))
            cells += max(1, math.ceil(share * part.cells))
        return cells

    def bounds_in(self, box: Box) -> Box:
        if self.chunks is not None:
            return self.chunks.bounds_in(box)
        found = hull(part.box & box for part in self.snapshot.touching(box))
        return Box(box.lo, tuple(lo - 1 for lo in box.lo)) if found is None else found

    def cells_decoded(self, results: Box) -> int:
        return self.cells_in(results)

    def touched_bytes(self, results: Box) -> int:
        return self.cells_in(results) * row_bytes(self.schema)

    def task_bytes(self, results: Box) -> int:
        return 2 * self.touched_bytes(results)

    def within(self, results: Box) -> StoredCells:
        parts = tuple(self.snapshot.touching(results))
        return replace(self, snapshot=replace(self.snapshot, parts=parts), chunks=None)

    def in_chunks(self, ordinals: Int64Array) -> StoredCells:
        return replace(self, chosen=ordinals)

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        return self.snapshot.read(box, attributes, chunks=self.chosen)
