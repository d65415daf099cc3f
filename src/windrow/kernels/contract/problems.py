"""What is asked of a window kernel, without the cells: enough to say which kernels can do it, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from windrow.kernels.contract.geometry import most_cells, sweep_axis
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import AnySweep, Sweep

_TEXTS = {"select": "an order statistic", "squares": "a variance", "distinct": "distinct values", "mode": "a mode"}


def operation_text(operation: str) -> str:
    """An operation in words."""
    return _TEXTS.get(operation, operation)


@dataclass(frozen=True, eq=False)
class WindowProblem:
    """One operation over the windows of an input of ``shape`` and ``dtype``; ``ranks`` belong to ``select``."""

    operation: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sweeps: tuple[AnySweep, ...]
    ranks: RankTable | None = None
    forced: int | None = None  # the axis to sweep along, if it is not to be the best one

    def __str__(self) -> str:
        return f"{operation_text(self.operation)} over windows of {'×'.join(map(str, self.widths))} cells"

    @cached_property
    def regular(self) -> tuple[Sweep, ...] | None:
        """The sweeps, if all windows are of one width; those of label units may not be."""
        found = tuple(sweep for sweep in self.sweeps if isinstance(sweep, Sweep))
        return found if len(found) == len(self.sweeps) else None

    @cached_property
    def inputs(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def outputs(self) -> int:
        return math.prod(sweep.count for sweep in self.sweeps)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Of the largest window, as far as it lies inside, along each axis."""
        return tuple(max(0, min(extent, sweep.width)) for extent, sweep in zip(self.shape, self.sweeps, strict=True))

    @cached_property
    def cells(self) -> int:
        """Of the largest window."""
        return max(1, most_cells(self.shape, self.sweeps))

    @cached_property
    def windowed_axes(self) -> int:
        """Axes along which windows are wider than one cell; at least one."""
        return max(1, sum(width > 1 for width in self.widths))

    @cached_property
    def swept(self) -> int:
        """The axis along which windows move: the one along which that saves most, unless another is forced."""
        return sweep_axis(self.shape, self.sweeps) if self.forced is None else self.forced

    @cached_property
    def section(self) -> int:
        """Cells of one window unit: those that come when a window moves on by one."""
        return math.prod(max(1, width) for axis, width in enumerate(self.widths) if axis != self.swept)

    @cached_property
    def covered(self) -> float:
        """About how many cells all windows have together."""
        return math.prod(float(_covered(*axis)) for axis in zip(self.shape, self.sweeps, strict=True))

    @cached_property
    def entering(self) -> float:
        """About how many cells come, and go again, while windows move along the swept axis, in all rounds together."""
        cells = 1.0
        for axis, (extent, sweep) in enumerate(zip(self.shape, self.sweeps, strict=True)):
            cells *= (_entering if axis == self.swept else _covered)(extent, sweep)
        return cells


def window_problem(
    operation: str,
    shape: Sequence[int],
    dtype: Any,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
    forced: int | None = None,
) -> WindowProblem:
    return WindowProblem(operation, tuple(shape), np.dtype(dtype), tuple(sweeps), ranks, forced)


def _covered(extent: int, sweep: AnySweep) -> int:
    """Cells of all windows along one axis."""
    if isinstance(sweep, Sweep):
        return sweep.count * max(0, min(sweep.width, extent))
    first, last = sweep.clipped(extent)
    return int(np.maximum(last - first + 1, 0).sum())


def _entering(extent: int, sweep: AnySweep) -> int:
    """Cells that come while a window moves along one axis."""
    if isinstance(sweep, Sweep):
        return min(extent, (sweep.count - 1) * min(sweep.step, sweep.width) + sweep.width)
    first, last = sweep.clipped(extent)
    return int(np.maximum(last[1:] - np.maximum(last[:-1], first[1:] - 1), 0).sum() + (last - first + 1)[:1].sum())
