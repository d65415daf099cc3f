"""Arrays as a batch has left them, read once for all views that look at the same cells."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa

from windrow.model.box import Box
from windrow.storage.records import Int64Array
from windrow.storage.sparse import SparseSnapshot

MOST_BYTES = 64 * 2**20
"""What is kept of one array."""


@dataclass(frozen=True)
class RememberedSnapshot(SparseSnapshot):
    """A version of which what was read is kept: views with one shape read the same cells. A copy remembers nothing."""

    _read: dict[Any, pa.Table] = field(default_factory=dict, init=False, compare=False, repr=False)
    _keeping: Any = field(default_factory=threading.Lock, init=False, compare=False, repr=False)
    """Tasks of one job read beside one another."""

    def read(
        self,
        box: Box | None = None,
        attributes: Iterable[str] | None = None,
        threads: int = 1,
        chunks: Int64Array | None = None,
    ) -> pa.Table:
        names = None if attributes is None else tuple(attributes)
        key = (box, names, None if chunks is None else chunks.tobytes())
        found = self._read.get(key)
        if found is None:
            found = super().read(box, names, threads, chunks)
            with self._keeping:
                if sum(table.nbytes for table in self._read.values()) + found.nbytes <= MOST_BYTES:
                    self._read[key] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseSnapshot, tuple(getattr(self, one.name) for one in fields(SparseSnapshot))


def remember(snapshot: SparseSnapshot) -> RememberedSnapshot:
    return RememberedSnapshot(*(getattr(snapshot, one.name) for one in fields(SparseSnapshot)))
