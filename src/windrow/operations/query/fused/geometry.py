"""Where the rows of a block lie in its buffer, and which groups they belong to, as the fold kernels take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lanes:
    """Rows of a buffer and runs along them; ``windrow.kernels.folds.lanes`` says what each array means."""

    offsets: Int64Array
    bases: Int64Array
    runs: Int64Array
    codes: Int64Array

    @property
    def beside(self) -> bool:
        """Whether neighbours along a row are in groups that are neighbours."""
        if len(self.codes) < 2 or len(self.codes) != self.runs[-1]:
            return False
        return bool((np.diff(self.codes) == 1).all())

    @property
    def arrays(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        return self.offsets, self.bases, self.runs, self.codes


@dataclass(frozen=True, eq=False)
class CellLanes:
    """Cells that lie anywhere, and the group of each."""

    groups: Int64Array

    @cached_property
    def runs(self) -> Lanes:
        """The cells as one row, in runs of the same group."""
        starts = np.flatnonzero(self.groups[1:] != self.groups[:-1]) + 1
        runs = np.concatenate([[0], starts, [len(self.groups)]])
        return Lanes(np.zeros(1, np.int64), np.zeros(1, np.int64), runs, self.groups[runs[:-1]])


def lay_lanes(held: Sequence[int], start: Sequence[int], shape: Sequence[int], codes: Sequence[Int64Array]) -> Lanes:
    """The lanes of a box of ``shape`` at ``start`` in a buffer of the shape ``held``.

    ``codes`` has for each axis what a cell adds to the number of its group. Axes at the end become one lane, as long as
    the buffer holds them without gaps and their cells are in one group.
    """
    strides = [1]
    for extent in reversed(held[1:]):
        strides.append(strides[-1] * extent)
    strides.reverse()
    last = len(shape) - 1
    lane, step = _runs_of(codes[last]), start[last]
    while last > 0 and shape[last] == held[last]:
        merged = _merge_lanes(_runs_of(codes[last - 1]), lane)
        if merged is None:
            break
        last -= 1
        lane = merged
        step += start[last] * strides[last]
    offsets, bases = np.array([step], np.int64), np.zeros(1, np.int64)
    for axis in range(last):
        places = (start[axis] + np.arange(shape[axis])) * strides[axis]
        offsets = (offsets[:, None] + places).reshape(-1)
        bases = (bases[:, None] + codes[axis]).reshape(-1)
    return Lanes(offsets, bases, *lane)


Runs = tuple[Int64Array, Int64Array]
"""Where runs of the same group begin and the last one ends, and their groups."""


def _runs_of(codes: Int64Array) -> Runs:
    if codes.strides == (0,) or len(codes) == 1:  # the same along all of the axis
        return np.array([0, len(codes)]), np.array([codes[0]])
    borders = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    runs = np.concatenate([[0], borders, [len(codes)]])
    return runs, np.ascontiguousarray(codes[runs[:-1]], np.int64)


def _merge_lanes(outer: Runs, lane: Runs) -> Runs | None:
    """The lanes along the last axes one after the other, if that is one lane with no more runs than before."""
    (borders, groups), (runs, codes) = outer, lane
    if len(codes) == 1 and (len(groups) == 1 or runs[-1] == 1):
        return borders * runs[-1], groups + codes[0]
    if borders[-1] == 1:
        return runs, codes + groups[0]
    return None
