"""Shapes over inputs so small that loading a compiler would take longer than the work: plain NumPy, nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.shapes.problems import Int64Array, ShapeProblem
from windrow.kernels.tiny import reduce_table

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def tiny_shapes(problem: ShapeProblem, values: Array, present: Mask | None) -> Outcome:
    """As ``naive_shapes``, without compiled code."""
    place, inside = cells_of(problem, np.arange(problem.outputs))
    if not place.shape[1]:  # a shape without offsets: a column of nothing
        place, inside = np.zeros((problem.outputs, 1), np.int64), np.zeros((problem.outputs, 1), bool)
    return reduce_table(problem.operation, values, present, place, inside, problem.counts, problem.ranks)


def cells_of(problem: ShapeProblem, outputs: Int64Array) -> tuple[Int64Array, Mask]:
    """A row for each of these outputs: where the cells of its neighbourhood are, and which of them there are.

    Cells come in row-major order.
    """
    runs = problem.runs
    ends = np.cumsum(runs.lengths)
    along = np.repeat(runs.first - (ends - runs.lengths), runs.lengths) + np.arange(int(runs.lengths.sum()))
    offsets = [*np.repeat(runs.leading, runs.lengths, axis=0).T, along]
    place = np.zeros((len(outputs), len(along)), np.int64)
    inside = np.ones(place.shape, bool)
    numbers = np.unravel_index(outputs, problem.counts)
    for axis, (extent, sweep) in enumerate(zip(problem.shape, problem.sweeps, strict=True)):
        cell = (sweep.first + numbers[axis] * sweep.step)[:, None] + offsets[axis]
        inside &= (cell >= 0) & (cell < extent)
        place += cell * math.prod(problem.shape[axis + 1 :])
    return np.where(inside, place, 0), inside
