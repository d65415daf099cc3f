"""The input with room around it, so that no offset leads outside: what the slow methods walk over."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.shapes.problems import Int64Array, ShapeProblem

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Walk(NamedTuple):
    """Rounds along the last axis: where each begins, and how many outputs it has how far apart."""

    bases: Int64Array
    count: int
    step: int


class Layout(NamedTuple):
    """Cells with missing ones all around, the rounds of all outputs, and where each run begins beside an output."""

    flat: Array
    there: Mask
    walk: Walk
    starts: Int64Array


def lay_out(problem: ShapeProblem, flat: Array, there: Mask) -> Layout:
    """Room for every cell that a neighbourhood may ask for; ``flat`` and ``there`` are as ``prepared`` gives them."""
    before, after = [], []
    for extent, sweep in zip(problem.shape, problem.sweeps, strict=True):
        furthest = sweep.first + max(sweep.count - 1, 0) * sweep.step
        before.append(max(0, -sweep.first, -sweep.first - sweep.start))
        after.append(max(0, furthest - extent + 1, furthest + sweep.stop - extent + 1))
    if any(before) or any(after):
        room = list(zip(before, after, strict=True))
        flat = np.pad(flat.reshape(problem.shape), room).reshape(-1)
        there = np.pad(there.reshape(problem.shape), room).reshape(-1)
    shape = [b + n + a for b, n, a in zip(before, problem.shape, after, strict=True)]
    strides = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))], np.int64)
    bases = np.zeros(1, np.int64)
    for axis, sweep in enumerate(problem.sweeps[:-1]):
        places = (before[axis] + sweep.first + np.arange(sweep.count) * sweep.step) * strides[axis]
        bases = (bases[:, None] + places).reshape(-1)
    along = problem.sweeps[-1]
    bases = bases + before[-1] + along.first
    starts = problem.runs.leading @ strides[:-1] + problem.runs.first
    return Layout(flat, there, Walk(bases, along.count, along.step), starts)


def every_offset(starts: Int64Array, lengths: Int64Array) -> Int64Array:
    """All cells of runs, one run after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
