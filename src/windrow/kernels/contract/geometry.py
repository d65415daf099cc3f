"""Sweeps and shapes as the small integer arrays that compiled loops read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.sweeps import AnySweep

Int64Array = npt.NDArray[np.int64]


class Geometry(NamedTuple):
    """Per axis: the input's extent and stride in cells, the number of outputs, and the clipped window of each."""

    extent: Int64Array
    stride: Int64Array
    outputs: Int64Array
    lo: Int64Array  # (axes, most outputs)
    hi: Int64Array


def geometry(shape: Sequence[int], sweeps: Sequence[AnySweep]) -> Geometry:
    """The geometry of C-ordered input of ``shape``."""
    extent = np.array(shape, np.int64)
    stride = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))], np.int64)
    outputs = np.array([sweep.count for sweep in sweeps], np.int64)
    lo, hi = (np.zeros((len(shape), int(outputs.max(initial=0))), np.int64) for _ in range(2))
    for axis, sweep in enumerate(sweeps):
        lo[axis, : sweep.count], hi[axis, : sweep.count] = sweep.clipped(shape[axis])
    return Geometry(extent, stride, outputs, lo, hi)


def most_cells(shape: Sequence[int], sweeps: Sequence[AnySweep]) -> int:
    """The largest number of input cells that any window can hold."""
    return math.prod(max(0, min(extent, sweep.width)) for extent, sweep in zip(shape, sweeps, strict=True))


def sweep_axis(shape: Sequence[int], sweeps: Sequence[AnySweep]) -> int:
    """The axis along which moving saves most: the one whose window is widest."""
    widths = [min(extent, sweep.width) for extent, sweep in zip(shape, sweeps, strict=True)]
    return max(range(len(widths)), key=lambda axis: (widths[axis], axis))


def clipped_counts(shape: Sequence[int], sweeps: Sequence[AnySweep]) -> list[Int64Array]:
    """For each axis, how many of its cells the window of each output covers; their product counts a window's cells."""
    counts = []
    for extent, sweep in zip(shape, sweeps, strict=True):
        lo, hi = sweep.clipped(extent)
        counts.append(np.maximum(hi - lo + 1, 0))
    return counts


def outer_product(columns: Sequence[Int64Array]) -> Int64Array:
    """The product of one factor per axis, laid out over all axes."""
    result = np.ones((1,) * len(columns), np.int64)
    for axis, column in enumerate(columns):
        result = result * column.reshape([-1 if other == axis else 1 for other in range(len(columns))])
    return result
