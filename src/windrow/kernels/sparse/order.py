"""The order of sparse cells by their coordinates, in NumPy alone: small queries need no compiler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]


def coordinate_order(columns: Sequence[Int64Array]) -> npt.NDArray[np.intp]:
    """A stable order of cells by their coordinates."""
    if not len(columns[0]):
        return np.zeros(0, np.intp)
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
    if np.prod(np.array(spans, float)) >= 2.0**62:
        return np.lexsort(columns[::-1])
    key = np.zeros(len(columns[0]), np.int64)
    for column, low, span in zip(columns, lows, spans, strict=True):
        key = key * span + (column - low)
    return np.argsort(key, kind="stable")


def run_starts(columns: Sequence[Int64Array], cells: int) -> Int64Array:
    """Where runs of equal coordinates begin, and the end."""
    new = np.zeros(cells, bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.append(np.flatnonzero(new), cells).astype(np.int64)
