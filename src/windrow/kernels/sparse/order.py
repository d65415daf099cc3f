"""The order of sparse cells by their coordinates, in NumPy alone: small queries need no compiler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]

_MOST_PLACES = 2**62
"""Places that one key tells apart, so that nothing overflows while it is made."""


def coordinate_order(columns: Sequence[Int64Array]) -> npt.NDArray[np.intp]:
    """A stable order of cells by their coordinates."""
    order = needed_order(columns)
    return np.arange(len(columns[0]), dtype=np.intp) if order is None else order


def needed_order(columns: Sequence[Int64Array]) -> npt.NDArray[np.intp] | None:
    """The same; None where cells are in order already, as those of blocks one behind the other are."""
    keys = _pack(columns)
    if _rise(keys):
        return None
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def _pack(columns: Sequence[Int64Array]) -> list[Int64Array]:
    """The coordinates as few keys as hold them, the first of them first: keys are compared, moved and sorted sooner."""
    if not len(columns[0]):
        return [columns[0]]
    keys: list[Int64Array] = []
    places = _MOST_PLACES
    for column in columns:
        low, high = int(column.min()), int(column.max())
        span = high - low + 1
        if places * span < _MOST_PLACES:
            keys[-1] = keys[-1] * span + (column - low)
            places *= span
        else:
            keys.append(column - low if span < _MOST_PLACES else column)
            places = span
    return keys


def _rise(keys: Sequence[Int64Array]) -> bool:
    """Whether no cell comes before the one that precedes it."""
    equal: npt.NDArray[np.bool_] | None = None
    for key in keys:
        falls = key[1:] < key[:-1]
        if equal is not None:
            falls &= equal
        if falls.any():
            return False
        same = key[1:] == key[:-1]
        equal = same if equal is None else equal & same
    return True


def run_starts(columns: Sequence[Int64Array], cells: int) -> Int64Array:
    """Where runs of equal coordinates begin, and the end."""
    new = np.zeros(cells, bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.append(np.flatnonzero(new), cells).astype(np.int64)
