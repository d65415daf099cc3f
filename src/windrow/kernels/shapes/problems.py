"""What is asked of a shape kernel: runs of offsets around each output, and the sizes that costs are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.contract.problems import operation_text
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import Sweep

Int64Array = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Offsets: for each run one in the leading axes, and a range along the last axis with both ends included.

    No offset may be in two runs.
    """

    leading: Int64Array  # (runs, axes - 1)
    first: Int64Array
    last: Int64Array

    @property
    def lengths(self) -> Int64Array:
        return self.last - self.first + 1


@dataclass(frozen=True, eq=False)
class ShapeProblem:
    """One operation over the neighbourhoods of an input of ``shape`` and ``dtype``; ``ranks`` belong to ``select``.

    ``sweeps`` say where to evaluate, and how far the runs reach along each axis. Runs hold only what meets the input
    somewhere.
    """

    operation: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sweeps: tuple[Sweep, ...]
    runs: Runs
    ranks: RankTable | None = None

    def __str__(self) -> str:
        return f"{operation_text(self.operation)} over shapes of {self.cells:,} cells in {len(self.runs.first):,} runs"

    @cached_property
    def inputs(self) -> int:
        return math.prod(self.shape)

    @property
    def counts(self) -> tuple[int, ...]:
        """Outputs along each axis."""
        return tuple(sweep.count for sweep in self.sweeps)

    @cached_property
    def outputs(self) -> int:
        return math.prod(self.counts)

    @cached_property
    def cells(self) -> int:
        """Of the largest neighbourhood."""
        return min(int(self.runs.lengths.sum()), self.inputs)

    @cached_property
    def run_lengths(self) -> Int64Array:
        """The different lengths of runs."""
        return np.unique(self.runs.lengths)

    @cached_property
    def box(self) -> bool:
        """Whether the shape is all that its reach allows: a window."""
        around = math.prod(sweep.width for sweep in self.sweeps)
        return int(self.runs.lengths.sum()) == around > 0

    @cached_property
    def moves(self) -> int:
        """Cells that come while the shape slides on by one output."""
        return int(np.minimum(self.runs.lengths, self.sweeps[-1].step).sum())

    def asking(self, operation: str, dtype: Any = None, ranks: RankTable | None = None) -> ShapeProblem:
        """The same neighbourhoods with another question."""
        return replace(self, operation=operation, dtype=self.dtype if dtype is None else np.dtype(dtype), ranks=ranks)


def shape_problem(
    operation: str,
    shape: Sequence[int],
    dtype: Any,
    sweeps: Sequence[Sweep],
    runs: Runs,
    ranks: RankTable | None = None,
) -> ShapeProblem:
    """The problem without offsets that never meet a cell of the input; the sweeps' own reach is not looked at."""
    if len(shape) != len(sweeps) or runs.leading.shape[1] != len(shape) - 1:
        got = f"{len(sweeps)} sweeps and runs over {runs.leading.shape[1] + 1} axes for {len(shape)} axes"
        raise DataError("there must be a sweep for every axis, and runs over all of them", got=got)
    kept = _useful(tuple(shape), sweeps, runs)
    reaching = tuple(
        replace(sweep, start=int(low), stop=int(high))
        for sweep, (low, high) in zip(sweeps, _reaches(kept), strict=True)
    )
    return ShapeProblem(operation, tuple(shape), np.dtype(dtype), reaching, kept, ranks)


def _useful(shape: tuple[int, ...], sweeps: Sequence[Sweep], runs: Runs) -> Runs:
    limits = []
    for extent, sweep in zip(shape, sweeps, strict=True):
        furthest = sweep.first + max(sweep.count - 1, 0) * sweep.step
        limits.append((-furthest, extent - 1 - sweep.first))
    low, high = limits[-1]
    first, last = np.maximum(runs.first, low), np.minimum(runs.last, high)
    kept = first <= last
    for axis, (low, high) in enumerate(limits[:-1]):
        kept &= (runs.leading[:, axis] >= low) & (runs.leading[:, axis] <= high)
    parts = (np.ascontiguousarray(part[kept], np.int64) for part in (runs.leading, first, last))
    return Runs(*parts)


def _reaches(runs: Runs) -> list[tuple[int, int]]:
    if not len(runs.first):
        return [(0, -1)] * (runs.leading.shape[1] + 1)
    leading = [(int(column.min()), int(column.max())) for column in runs.leading.T]
    return [*leading, (int(runs.first.min()), int(runs.last.max()))]
