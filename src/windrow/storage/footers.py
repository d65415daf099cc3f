"""Footers of parts: where a part's row groups are and what cells they hold, checked before Arrow sees them.

Parts never change, so footers that were found whole are kept: a read of a small box then costs hardly more than the
row groups it needs. A file whose size or time has changed is checked again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from windrow.model.box import Box
from windrow.storage.checksums import footer_checksum
from windrow.storage.places import check_no_link
from windrow.storage.records import Int64Array

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FOOTERS_KEPT = 256


@dataclass(frozen=True)
class Footer:
    """What a part's footer says of its row groups."""

    metadata: pq.FileMetaData
    ndim: int
    checked: set[tuple[int, str]] = field(default_factory=set, compare=False)
    """The row groups and columns whose pages were found whole in this process."""

    @functools.cached_property
    def bounds(self) -> tuple[Int64Array, Int64Array]:
        """The lowest and highest chunk and coordinates in each row group, as (groups, 1 + dimensions)."""
        # Columns stand in the order of stored_fields: the chunk first, then the dimensions.
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        columns = [[group.column(index).statistics for index in range(1 + self.ndim)] for group in groups]
        lowest = np.array([[column.min for column in group] for group in columns], np.int64)
        highest = np.array([[column.max for column in group] for group in columns], np.int64)
        return lowest, highest

    @functools.cached_property
    def starts(self) -> Int64Array:
        """The number of each row group's first row."""
        rows = [self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups)]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(rows, dtype=np.int64)[:-1]])

    def chunks(self, group: int) -> tuple[int, int]:
        """The ordinals of a row group's first and last chunk."""
        lowest, highest = self.bounds
        return int(lowest[group, 0]), int(highest[group, 0])

    def groups_touching(self, box: Box, chunks: Int64Array | None) -> Sequence[int]:
        """Row groups that may hold cells in ``box``, which touches these ``chunks``, if they are known."""
        lowest, highest = self.bounds
        chosen = ((lowest[:, 1:] <= np.array(box.hi)) & (highest[:, 1:] >= np.array(box.lo))).all(axis=1)
        if chunks is not None:
            chosen &= np.searchsorted(chunks, lowest[:, 0], "left") < np.searchsorted(chunks, highest[:, 0], "right")
        groups: list[int] = np.flatnonzero(chosen).tolist()
        return groups


def read_footer(path: str, checksum: int, ndim: int) -> Footer:
    """The footer of a part; an OSError if it is not the one that was written."""
    status = check_no_link(path)
    return _check_footer(path, checksum, ndim, status.st_size, status.st_mtime_ns)


@functools.lru_cache(FOOTERS_KEPT)
def _check_footer(path: str, checksum: int, ndim: int, _size: int, _modified: int) -> Footer:
    import pyarrow.parquet as pq

    # Arrow may end the process over a damaged footer, so it only gets to see whole ones.
    if footer_checksum(path) != checksum:
        raise OSError("the footer's checksum is not that of what was written")
    return Footer(pq.read_metadata(path, memory_map=True), ndim)
