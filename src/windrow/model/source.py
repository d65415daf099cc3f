"""Where data can come from: a file, another array, an ndarray, a computation. All look alike to a writer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.labels import Labels
from windrow.model.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

Blocks = Mapping[str, npt.NDArray[Any]]
"""Attribute name (or companion name, ``x__valid``) to the values of one box."""


class GridSource(Protocol):
    """Dense data readable box by box. It pickles, so that a Spark worker can read its own part."""

    @property
    def schema(self) -> Schema:
        """Dimensions (bounded, with chunk sizes that suit reading) and attributes of the data."""
        ...

    @property
    def labels(self) -> Mapping[str, Labels]:
        """Coordinate labels of those dimensions that have them, one label per cell."""
        ...

    def read(self, box: Box) -> Blocks:
        """The values of every attribute in ``box``, and the companion of every attribute that has one."""
        ...


@runtime_checkable
class CellSource(Protocol):
    """Sparse data readable box by box. It pickles, so that a Spark worker can read its own part."""

    @property
    def schema(self) -> Schema:
        """Dimensions, with chunk sizes that suit reading, and attributes of the data."""
        ...

    @property
    def labels(self) -> Mapping[str, Labels]:
        """Coordinate labels of those dimensions that have them, one label per position."""
        ...

    @property
    def box(self) -> Box:
        """A box that holds every cell."""
        ...

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        """The existing cells in ``box`` in the order of their coordinates: all dimensions, some or all attributes."""
        ...

    def cells_in(self, box: Box) -> int:
        """About how many cells lie in ``box``; 0 only if there are none."""
        ...

    def within(self, results: Box) -> CellSource:
        """The same, as far as a box needs it: a task need not be told of every part of the array."""
        ...


@runtime_checkable
class ComputedCells(CellSource, Protocol):
    """Sparse data that is computed when it is read, from more cells than it gives."""

    @property
    def keep_whole(self) -> tuple[int, ...]:
        """The axes that are best not cut, because a cut there is paid for by a halo."""
        ...

    @property
    def reading_grid(self) -> ChunkGrid:
        """The chunks along which it is best cut: those stored below, as long as cells keep their places."""
        ...

    def cells_decoded(self, results: Box) -> int:
        """About how many cells are read for those in a box."""
        ...

    def touched_bytes(self, results: Box) -> int:
        """Bytes read and written for a box, which decide where it runs."""
        ...

    def task_bytes(self, results: Box) -> int:
        """Estimated peak memory of computing a box, halo and temporaries included."""
        ...

    def within(self, results: Box) -> ComputedCells:
        """The same, as far as a box needs it."""
        ...


@runtime_checkable
class ChunkedCells(ComputedCells, Protocol):
    """Sparse data that knows chunks: those that nobody asks for need not be read, wherever they lie."""

    def in_chunks(self, ordinals: npt.NDArray[np.int64]) -> ComputedCells:
        """The same without the cells of other chunks than these, which are ascending."""
        ...


@runtime_checkable
class BoundedCells(ComputedCells, Protocol):
    """Sparse data that knows where its cells lie."""

    def bounds_in(self, box: Box) -> Box:
        """A box within ``box`` that holds all its cells; empty only if there are none."""
        ...


@runtime_checkable
class CountedCells(ComputedCells, Protocol):
    """Sparse data that knows how many cells it will have."""

    def cells_expected(self) -> int:
        """About how many cells there will be; 0 where conditions on values decide."""
        ...


class ChangedBlocks(dict[str, npt.NDArray[Any]]):
    """Blocks of which only some cells were changed, and how many."""

    def __init__(self, blocks: Blocks, cells: int) -> None:
        super().__init__(blocks)
        self.cells = cells
