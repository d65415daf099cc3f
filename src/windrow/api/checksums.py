"""Checksums of a dense array's cells, computed where they are read: whether they are what was written."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.execution.executor import Job
from windrow.model.box import Box
from windrow.storage.dense.snapshots import DenseSnapshot

if TYPE_CHECKING:
    from windrow.api.array import Array

_PIECES_PER_WORKER = 2


@dataclass(frozen=True)
class BlockChecksum:
    """What a worker read in a box of one attribute: the checksum and the sum of its values."""

    box: Box
    checksum: int
    total: float

    def matches(self, values: npt.NDArray[Any]) -> bool:
        """Whether these are the values that were read."""
        return self.checksum == _checksum(values)


def block_checksums(array: Array, attribute: str) -> list[BlockChecksum]:
    """Read all values of a dense array's attribute, block by block, on the engine of its connection."""
    array, _lease = array._held()
    snapshot = array._snapshot()
    if not isinstance(snapshot, DenseSnapshot):
        raise DataError("checksums are of dense arrays", got=f"{array.name}, which is sparse")
    kind, cells = snapshot.schema.attribute(attribute).type.dtype, snapshot.box.size
    if kind.kind not in "biuf":
        raise DataError("checksums are of numbers", got=f"{attribute}: {kind}")
    executor = array._database.engine.choose(cells * kind.itemsize)
    blocks = snapshot.schema.grid.blocks(snapshot.box, cells // (_PIECES_PER_WORKER * executor.workers))
    tasks = [_Reading(snapshot, box, attribute) for box in blocks]
    largest = max((box.size for box in blocks), default=0) * kind.itemsize
    return executor.run(Job(f"reading {array.name}", read_block, tasks, 3 * largest))


@dataclass(frozen=True)
class _Reading:
    """A task: read a box."""

    snapshot: DenseSnapshot
    box: Box
    attribute: str


def read_block(task: _Reading) -> BlockChecksum:
    """What a worker finds in its box."""
    values = task.snapshot.read(task.box, [task.attribute])[task.attribute]
    return BlockChecksum(task.box, _checksum(values), float(values.sum(dtype=np.float64)))


def _checksum(values: npt.NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(values).data)
