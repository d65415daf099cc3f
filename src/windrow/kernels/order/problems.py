"""A selection problem in its simplest form: offsets are cut off at the input, and axes without windows are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.contract.keys import key_type
from windrow.kernels.contract.problems import WindowProblem
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.order.lanes import Grid, Tables

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Problem:
    """Input of ``shape`` and ``dtype``, float32 or float64, and what to find where."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sweeps: tuple[Sweep, ...]
    tables: Tables

    @property
    def outputs(self) -> int:
        return prod(sweep.count for sweep in self.sweeps)

    @property
    def cells(self) -> int:
        """Cells of a full window."""
        return prod(sweep.width for sweep in self.sweeps)

    @property
    def windowed(self) -> tuple[int, ...]:
        """The axes along which windows have more than one cell."""
        return tuple(axis for axis, sweep in enumerate(self.sweeps) if sweep.width > 1)

    @property
    def width(self) -> tuple[int, ...]:
        return tuple(sweep.width for sweep in self.sweeps)

    @property
    def count(self) -> tuple[int, ...]:
        return tuple(sweep.count for sweep in self.sweeps)

    @property
    def step(self) -> tuple[int, ...]:
        return tuple(sweep.step for sweep in self.sweeps)

    def grid(self, flat: npt.NDArray[Any]) -> Grid:
        """The problem for compiled code."""
        rows = np.array([(s.first, s.count, s.start, s.stop, s.step) for s in self.sweeps], np.int64)
        return Grid(flat, np.array(self.shape, np.int64), rows)

    def starts(self, axes: Sequence[int]) -> Int64Array:
        """For every output along ``axes``, whose windows are one cell wide: where its cell is, -1 if outside."""
        place = np.zeros(1, np.int64)
        inside = np.ones(1, bool)
        for axis in axes:
            sweep, stride = self.sweeps[axis], prod(self.shape[axis + 1 :])
            cell = sweep.first + sweep.start + np.arange(sweep.count, dtype=np.int64) * sweep.step
            place = (place[:, None] + cell * stride).reshape(-1)
            inside = (inside[:, None] & (cell >= 0) & (cell < self.shape[axis])).reshape(-1)
        return np.where(inside, place, -1)

    def targets(self, axes: Sequence[int]) -> Int64Array:
        """For every output along ``axes``: where its results begin."""
        place = np.zeros(1, np.int64)
        for axis in axes:
            stride = prod(self.count[axis + 1 :])
            place = (place[:, None] + np.arange(self.count[axis], dtype=np.int64) * stride).reshape(-1)
        return place


@lru_cache(maxsize=64)
def order_problem(asked: WindowProblem) -> Problem | None:
    """What is asked for in its simplest form; None if no window holds a cell, or windows are of varying width."""
    assert asked.ranks is not None
    if asked.regular is None:
        return None
    return problem_of(asked.shape, key_type(asked.dtype), asked.regular, asked.ranks)


def problem_of(shape: Sequence[int], dtype: np.dtype[Any], sweeps: Sequence[Sweep], ranks: RankTable) -> Problem | None:
    """The problem in its simplest form; None if no window holds a cell."""
    if len(shape) != len(sweeps):
        raise DataError("there must be one sweep per axis", got=f"{len(sweeps)} for {len(shape)} axes")
    cut = [_cut(extent, sweep) for extent, sweep in zip(shape, sweeps, strict=True)]
    if any(sweep.width < 1 or sweep.count < 1 for sweep in cut):
        return None
    most = prod(min(extent, sweep.width) for extent, sweep in zip(shape, cut, strict=True))
    if most > ranks.most:
        raise DataError(f"the rank table must answer for windows of {most} values", got=ranks.most)
    joined = _join_axes(list(shape), cut)
    cells = prod(sweep.width for _, sweep in joined)
    tables = Tables(
        _pad_table(ranks.lower, cells, np.int32), _pad_table(ranks.upper, cells, np.int32),
        _pad_table(ranks.weight, cells, np.float64), ranks.slope, ranks.interpolates,
    )  # fmt: skip
    return Problem(tuple(n for n, _ in joined), dtype, tuple(sweep for _, sweep in joined), tables)


def _cut(extent: int, sweep: Sweep) -> Sweep:
    """The same windows with offsets that reach no further outside than they must."""
    if sweep.width < 1 or sweep.step < 1:
        raise DataError("a window must hold at least one cell and move forwards", got=sweep)
    last = sweep.first + (sweep.count - 1) * sweep.step
    return replace(sweep, start=max(sweep.start, -last), stop=min(sweep.stop, extent - 1 - sweep.first))


def _join_axes(shape: list[int], sweeps: list[Sweep]) -> list[tuple[int, Sweep]]:
    """Neighbouring axes along which every cell is a window of its own become one; at least one axis is left."""
    joined: list[tuple[int, Sweep]] = []
    for extent, sweep in zip(shape, sweeps, strict=True):
        if joined and _plain(extent, sweep) and _plain(*joined[-1]):
            extent *= joined.pop()[0]
            sweep = Sweep(0, extent, 0, 0)
        joined.append((extent, sweep))
    return joined or [(1, Sweep(0, 1, 0, 0))]


def _plain(extent: int, sweep: Sweep) -> bool:
    return sweep == Sweep(0, extent, 0, 0)


def _pad_table(table: npt.NDArray[Any], cells: int, kind: Any) -> npt.NDArray[Any]:
    """A window's full size may exceed what the input can ever fill; compiled code reads the table there too."""
    table = np.ascontiguousarray(table, kind)
    return table if len(table) > cells else np.pad(table, (0, cells + 1 - len(table)), mode="edge")
