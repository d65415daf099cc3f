"""The smallest and largest values of groups of rows, how often they are there, and in which row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel

Array = npt.NDArray[Any]


@kernel
def find_smallest(values: Array, there: Array, starts: Array, stops: Array, rows: Array, times: Array) -> None:
    """The first row of each group that has its smallest value (-1: no row is there), and how many rows have it.

    The rows of group g are those from ``starts[k, g]`` to before ``stops[k, g]``, for each k.
    """
    for group in range(len(rows)):
        found = np.int64(-1)
        often = np.int64(0)
        for run in range(len(starts)):
            for row in range(starts[run, group], stops[run, group]):
                if not there[row]:
                    continue
                if found < 0 or values[row] < values[found]:
                    found, often = np.int64(row), np.int64(1)
                elif values[row] == values[found]:
                    often += 1
        rows[group], times[group] = found, often


@kernel
def find_largest(values: Array, there: Array, starts: Array, stops: Array, rows: Array, times: Array) -> None:
    """As ``find_smallest``, of the largest value."""
    for group in range(len(rows)):
        found = np.int64(-1)
        often = np.int64(0)
        for run in range(len(starts)):
            for row in range(starts[run, group], stops[run, group]):
                if not there[row]:
                    continue
                if found < 0 or values[row] > values[found]:
                    found, often = np.int64(row), np.int64(1)
                elif values[row] == values[found]:
                    often += 1
        rows[group], times[group] = found, often
