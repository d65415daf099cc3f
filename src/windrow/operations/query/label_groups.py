"""Dense blocks brought into groups by parts of labels: the cells of each month together, one month after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.columns import Column
from windrow.model.box import Box
from windrow.plan.grouping.label_parts import LabelPart

Int64Array = npt.NDArray[np.int64]
Chosen = slice | Int64Array


@dataclass(frozen=True, eq=False)
class Run:
    """The positions along an axis whose labels agree in all parts, and the results' cells that they belong to."""

    axis: int
    chosen: Chosen
    length: int
    numbers: dict[LabelPart, int]


@dataclass(frozen=True)
class DenseGroups:
    """How the cells of a box lie in groups, by dimensions and parts of labels."""

    box: Box
    axes: tuple[int, ...]
    parts: tuple[LabelPart | None, ...]

    @property
    def plain(self) -> list[int]:
        """The axes of which each cell is in a group of its own."""
        found = [axis for axis, part in zip(self.axes, self.parts, strict=True) if part is None]
        return list(dict.fromkeys(found))

    def _runs(self, axis: int) -> list[Run]:
        own = [part for at, part in zip(self.axes, self.parts, strict=True) if at == axis and part is not None]
        cells = np.arange(self.box.lo[axis], self.box.hi[axis] + 1)
        rows, inverse = np.unique(np.stack([part.numbers(cells) for part in own]), axis=1, return_inverse=True)
        runs = []
        for number, row in enumerate(rows.T):
            positions = np.flatnonzero(inverse.reshape(-1) == number)
            runs.append(Run(axis, _tight(positions), len(positions), dict(zip(own, map(int, row), strict=True))))
        return runs

    def combinations(self) -> Iterator[tuple[Run, ...]]:
        """The parts that occur together in the box."""
        parted = dict.fromkeys(axis for axis in self.axes if axis not in self.plain)
        return itertools.product(*(self._runs(axis) for axis in parted))

    def gather(self, columns: dict[str, Column]) -> tuple[list[Int64Array], dict[str, Column], Int64Array]:
        """The places of the groups, the values one group after the other, and where each group begins.

        Inside a group cells stay in the order of their coordinates.
        """
        combinations = list(self.combinations())
        beside = [range(self.box.lo[axis], self.box.hi[axis] + 1) for axis in self.plain]
        grid = [place.reshape(-1) for place in np.meshgrid(*map(np.asarray, beside), indexing="ij")]
        count = math.prod(map(len, beside))
        lengths, places = [], []
        for runs in combinations:
            cells = math.prod(run.length for run in runs)
            rest = [n for axis, n in enumerate(self.box.shape) if axis not in self.axes]
            lengths.append(np.full(count, cells * math.prod(rest), np.int64))
            places.append(self._placed(runs, grid, count))
        taken = {name: self._taken(column, combinations) for name, column in columns.items()}
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])
        return [np.concatenate(one) for one in zip(*places, strict=True)], taken, starts

    def _placed(self, runs: Sequence[Run], grid: Sequence[Int64Array], count: int) -> list[Int64Array]:
        numbers = {part: number for run in runs for part, number in run.numbers.items()}
        found = []
        for axis, part in zip(self.axes, self.parts, strict=True):
            if axis in self.plain:
                cells = grid[self.plain.index(axis)]
                found.append(cells if part is None else part.numbers(cells))
            else:
                assert part is not None
                found.append(np.full(count, numbers[part], np.int64))
        return found

    def _taken(self, column: Column, combinations: Sequence[tuple[Run, ...]]) -> Column:
        present = None if column.present is None else self._laid(column.present, combinations)
        return Column(self._laid(column.values, combinations), present)

    def _laid(self, block: npt.NDArray[Any], combinations: Sequence[tuple[Run, ...]]) -> npt.NDArray[Any]:
        order = [*self.plain, *(axis for axis in range(block.ndim) if axis not in self.plain)]
        laid, end = np.empty(block.size, block.dtype), 0
        for runs in combinations:
            piece = block
            for run in runs:
                piece = piece[(slice(None),) * run.axis + (run.chosen,)]
            begin, end = end, end + piece.size
            laid[begin:end].reshape([piece.shape[axis] for axis in order])[...] = piece.transpose(order)
        return laid


def _tight(positions: Int64Array) -> Chosen:
    """Positions that follow one another as a slice, which copies nothing."""
    first, last = int(positions[0]), int(positions[-1])
    return slice(first, last + 1) if last - first + 1 == len(positions) else positions
