"""Chunks as a catalog knows them: their places in the grid, the bounds of their cells, and their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.placement.problem import Float64Array, Int64Array


@dataclass(frozen=True, eq=False)
class ChunkSet:
    """One row a chunk: its numbers in the grid, the lowest and highest coordinates of its cells; and its bytes."""

    numbers: Int64Array
    low: Int64Array
    high: Int64Array
    bytes: Float64Array

    def __len__(self) -> int:
        return len(self.bytes)

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> ChunkSet:
        return ChunkSet(self.numbers[rows], self.low[rows], self.high[rows], self.bytes[rows])

    @property
    def keys(self) -> Int64Array:
        """The numbers of a chunk as one: 21 bits each."""
        key = np.zeros(len(self), np.int64)
        for column in self.numbers.T:
            key = (key << 21) | column
        return key


def concatenate(sets: Sequence[ChunkSet]) -> ChunkSet:
    return ChunkSet(
        np.concatenate([part.numbers for part in sets]),
        np.concatenate([part.low for part in sets]),
        np.concatenate([part.high for part in sets]),
        np.concatenate([part.bytes for part in sets]),
    )


def draw_bounds(
    random: np.random.Generator, numbers: Int64Array, lengths: Sequence[int], gaps: npt.ArrayLike
) -> tuple[Int64Array, Int64Array]:
    """Bounds of cells inside their chunks, on average ``gaps`` cells away from each border."""
    first = 1 + numbers * np.asarray(lengths)
    away = np.asarray(gaps, np.float64)
    shape = numbers.shape
    low = np.floor(random.exponential(1.0, shape) * away).astype(np.int64)
    high = np.floor(random.exponential(1.0, shape) * away).astype(np.int64)
    middle = np.asarray(lengths) // 2
    return first + np.minimum(low, middle), first + np.asarray(lengths) - 1 - np.minimum(high, middle - 1)
