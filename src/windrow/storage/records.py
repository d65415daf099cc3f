"""What the catalog knows, as plain frozen values."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.model.schema import Schema
from windrow.storage.places import check_name_inside

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArrayRecord:
    """An array's identity: what does not change from version to version."""

    id: int
    name: str
    directory: str
    sparse: bool
    gridding: str | None = None
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class VersionRecord:
    """One version of an array: where it is in its store, and what it holds."""

    array_id: int
    number: int
    pointer: str
    schema: Schema
    hi: tuple[int, ...]
    operation: str
    batch: str | None
    created: datetime
    cells: int
    bytes: int
    checksum: str = ""

    @property
    def box(self) -> Box:
        return self.schema.box(self.hi)


Versioned = tuple[ArrayRecord, VersionRecord]


@dataclass(frozen=True)
class ChunkStatistics:
    """Chunk metadata in columns: for each chunk its ordinal, cells, stored bytes, the bounds of its cells, and the
    version in which its cells last changed (0 as long as that is not known)."""

    ordinals: Int64Array
    cells: Int64Array
    bytes: Int64Array
    lo: Int64Array  # (chunks, dimensions)
    hi: Int64Array
    changed: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if len(self.changed) != len(self.ordinals):
            object.__setattr__(self, "changed", np.zeros(len(self.ordinals), np.int64))

    def __len__(self) -> int:
        return len(self.ordinals)

    @classmethod
    def empty(cls, ndim: int) -> ChunkStatistics:
        none = np.empty(0, np.int64)
        return cls(none, none, none, np.empty((0, ndim), np.int64), np.empty((0, ndim), np.int64))

    @classmethod
    def concatenate(cls, pieces: Iterable[ChunkStatistics], ndim: int) -> ChunkStatistics:
        listed = list(pieces)
        if not listed:
            return cls.empty(ndim)
        if len(listed) == 1:
            return listed[0]
        return cls(*(np.concatenate([getattr(p, name) for p in listed]) for name in cls.__dataclass_fields__))

    def take(self, mask_or_index: npt.NDArray[Any]) -> ChunkStatistics:
        return ChunkStatistics(*(getattr(self, name)[mask_or_index] for name in self.__dataclass_fields__))

    @property
    def is_ascending(self) -> bool:
        """Whether each chunk is there once, in the order of ordinals."""
        return bool((self.ordinals[1:] > self.ordinals[:-1]).all())

    def touching(self, box: Box) -> npt.NDArray[np.bool_]:
        """Which chunks hold cells whose bounds overlap ``box``."""
        overlapping = np.ones(len(self), bool)
        for axis, (lo, hi) in enumerate(zip(box.lo, box.hi, strict=True)):
            overlapping &= (self.lo[:, axis] <= hi) & (self.hi[:, axis] >= lo)
        return overlapping

    def cells_in(self, box: Box) -> int:
        """About how many cells lie in a box, if those of a chunk lie evenly within its bounds; 0 only if none do."""
        if not len(self) or box.is_empty:
            return 0
        if box not in self._cells_known:
            self._cells_known[box] = self._estimated(box)
        return self._cells_known[box]

    @functools.cached_property
    def _cells_known(self) -> dict[Box, int]:
        """Estimates that were made: whoever shares work out asks many times about the same boxes."""
        return {}

    def _estimated(self, box: Box) -> int:
        common = np.minimum(self.hi, np.array(box.hi)) - np.maximum(self.lo, np.array(box.lo)) + 1
        inside = np.flatnonzero((common > 0).all(axis=1))
        shares = (common[inside] / (self.hi[inside] - self.lo[inside] + 1)).prod(axis=1)
        return int(np.ceil(shares * self.cells[inside]).sum())

    def bounds_in(self, box: Box) -> Box:
        """The hull of what chunks' bounds have in common with a box."""
        inside = self.touching(box)
        if not inside.any():
            return Box(box.lo, tuple(lo - 1 for lo in box.lo))
        lo, hi = self.lo[inside].min(axis=0).tolist(), self.hi[inside].max(axis=0).tolist()
        return Box(tuple(lo), tuple(hi)) & box

    def coarsened(self, most: int) -> ChunkStatistics:
        """The same in at most so many rows, each of chunks that follow one another, for estimates alone."""
        if len(self) <= most:
            return self
        starts = np.arange(0, len(self), -(-len(self) // most))
        return ChunkStatistics(
            self.ordinals[starts],
            np.add.reduceat(self.cells, starts),
            np.add.reduceat(self.bytes, starts),
            np.minimum.reduceat(self.lo, starts, axis=0),
            np.maximum.reduceat(self.hi, starts, axis=0),
            np.maximum.reduceat(self.changed, starts),
        )

    def merged(self) -> ChunkStatistics:
        """One row per chunk: a sparse chunk may lie in several parts."""
        if self.is_ascending:
            return self
        order = np.argsort(self.ordinals, kind="stable")
        sorted_ = self.take(order)
        starts = np.flatnonzero(np.diff(sorted_.ordinals, prepend=sorted_.ordinals[0] - 1))
        return ChunkStatistics(
            sorted_.ordinals[starts],
            np.add.reduceat(sorted_.cells, starts),
            np.add.reduceat(sorted_.bytes, starts),
            np.minimum.reduceat(sorted_.lo, starts, axis=0),
            np.maximum.reduceat(sorted_.hi, starts, axis=0),
            np.maximum.reduceat(sorted_.changed, starts),
        )


@dataclass(frozen=True)
class Vector:
    """Which rows of a part are dead: a piece of a vectors file, or the bytes themselves before they are in a file."""

    dead: int
    file: str = ""
    start: int = 0
    length: int = 0
    encoded: bytes = b""

    def __post_init__(self) -> None:
        if self.file:
            check_name_inside(self.file, "a vectors file")


@dataclass(frozen=True)
class Part:
    """One Parquet file of a sparse array: rows in the order of chunks ``first`` to ``last``, some of them dead."""

    path: str
    cells: int
    """Its rows, dead ones included."""
    bytes: int
    checksum: int
    box: Box
    chunks: ChunkStatistics | None = field(default=None, compare=False)
    """Set by the writer of a part; None for parts that the catalog lists."""
    id: int | None = None
    first: int = 0
    last: int = 0
    run: int = 0
    """0 for a base part; parts of one run over the base parts share another number."""
    vector: Vector | None = None
    spent: int = 0
    """Bytes of all vectors written for it so far."""

    def __post_init__(self) -> None:
        check_name_inside(self.path, "a part's file")  # whoever made the catalog may have written anything

    @property
    def live(self) -> int:
        """How many of its cells are alive."""
        return self.cells - (0 if self.vector is None else self.vector.dead)


def parts_touching(parts: Sequence[Part], box: Box) -> list[Part]:
    """Those parts that may hold live cells in ``box``: one comparison for all, because there may be thousands."""
    if not parts or box.is_empty:
        return []
    lo = np.array([part.box.lo for part in parts])
    hi = np.array([part.box.hi for part in parts])
    overlapping = ((lo <= np.array(box.hi)) & (hi >= np.array(box.lo))).all(axis=1)
    return [parts[index] for index in np.flatnonzero(overlapping).tolist() if parts[index].live]


@dataclass(frozen=True)
class LabelChange:
    """Labels set by a version: encoded ``values`` for the cells from position ``start`` on."""

    dimension: str
    start: int
    encoded: bytes


@dataclass(frozen=True)
class Marked:
    """A part that was there before and has another vector now, and the chunks in which cells died of a change."""

    part: Part
    chunks: Int64Array


@dataclass(frozen=True)
class NewVersion:
    """All that publishing one array's next version writes into the catalog."""

    array_id: int
    base: int
    pointer: str
    schema: Schema
    hi: tuple[int, ...]
    operation: str
    dense_chunks: ChunkStatistics | None = None
    replaces_all_chunks: bool = False
    added_parts: tuple[Part, ...] = ()
    removed_parts: tuple[int, ...] = ()
    marked_parts: tuple[Marked, ...] = ()
    labels: tuple[LabelChange, ...] = ()
    checksum: str = ""
