"""What the catalog knows, as plain frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.model.box import Box
from windrow.model.schema import Schema

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


@dataclass(frozen=True)
class ChunkStatistics:
    """Chunk metadata in columns: for each chunk its ordinal, cells, stored bytes and the bounds of its cells."""

    ordinals: Int64Array
    cells: Int64Array
    bytes: Int64Array
    lo: Int64Array  # (chunks, dimensions)
    hi: Int64Array

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
        return cls(*(np.concatenate([getattr(p, name) for p in listed]) for name in cls.__dataclass_fields__))

    def take(self, mask_or_index: npt.NDArray[Any]) -> ChunkStatistics:
        return ChunkStatistics(*(getattr(self, name)[mask_or_index] for name in self.__dataclass_fields__))

    def touching(self, box: Box) -> npt.NDArray[np.bool_]:
        """Which chunks hold cells whose bounds overlap ``box``."""
        overlapping: npt.NDArray[np.bool_] = (self.lo <= np.array(box.hi)) & (self.hi >= np.array(box.lo))
        return np.asarray(overlapping.all(axis=1))

    def merged(self) -> ChunkStatistics:
        """One row per chunk: a sparse chunk may lie in several parts."""
        if not len(self):
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
        )


@dataclass(frozen=True)
class Part:
    """One Parquet file of a sparse array: a contiguous range of chunks."""

    path: str
    cells: int
    bytes: int
    checksum: int
    box: Box
    chunks: ChunkStatistics | None = None  # present when fresh from a writer, absent when listed by the catalog
    id: int | None = None


def parts_touching(parts: Sequence[Part], box: Box) -> list[Part]:
    """Those parts that may hold cells in ``box``: one comparison for all, because an array may have thousands."""
    if not parts or box.is_empty:
        return []
    lo = np.array([part.box.lo for part in parts])
    hi = np.array([part.box.hi for part in parts])
    overlapping = ((lo <= np.array(box.hi)) & (hi >= np.array(box.lo))).all(axis=1)
    return [parts[index] for index in np.flatnonzero(overlapping).tolist()]


@dataclass(frozen=True)
class LabelChange:
    """Labels set by a version: encoded ``values`` for the cells from position ``start`` on."""

    dimension: str
    start: int
    encoded: bytes


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
    labels: tuple[LabelChange, ...] = ()
    checksum: str = ""
