"""How a fold over a dense array is cut: columns of chunks with the same groups, and runs of a column.

A run is folded by one thread, chunk after chunk; the states of a column's runs are joined in their order. Where runs
begin depends on the array and the question alone, so that float sums are the same bit by bit, whoever computes them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.operations.query.fused.groups import GridGroups

LEAST_RUNS = 16
"""As many runs as this at least, if there are enough chunks, so that workers are busy to the end."""
RUN_BYTES = 64 * 2**20
"""Decoded bytes from which on a run is cut in any case."""

ChunkKey = tuple[int, ...]
Frame = tuple[tuple[int, int], ...]
"""For each axis the first group, and the one after the last."""


@dataclass(frozen=True)
class Run:
    """Chunks that follow one another, and the groups that they may touch."""

    column: int
    keys: tuple[ChunkKey, ...]
    frame: Frame
    first: int
    """The place of its first chunk among all chunks."""
    alone: bool
    """Whether its column has no other run."""
    last: bool
    """Whether it is the last one of its column."""


@dataclass(frozen=True)
class RunPlan:
    """All runs, in the order of their columns, and the groups of each column."""

    runs: tuple[Run, ...]
    frames: tuple[Frame, ...]

    @property
    def sequence(self) -> list[ChunkKey]:
        return [key for run in self.runs for key in run.keys]


def plan_runs(grid: ChunkGrid, groups: GridGroups, group_bytes: int, chunk_bytes: int) -> RunPlan:
    """Runs for the chunks in the box of ``groups``; ``group_bytes`` is what is kept of a group."""
    keys = grid.key_box(groups.box)
    spans = [range(lo, hi + 1) for lo, hi in zip(keys.lo, keys.hi, strict=True)]
    outer = [span if axis.by_cell else [None] for span, axis in zip(spans, groups.axes, strict=True)]
    columns = list(itertools.product(*outer))
    runs: list[Run] = []
    frames: list[Frame] = []
    place = 0
    for number, column in enumerate(columns):
        along = [span if key is None else [key] for span, key in zip(spans, column, strict=True)]
        frame = frame_of(grid, groups, list(itertools.product(*([a[0], a[-1]] for a in along))), whole=True)
        frames.append(frame)
        inside = list(itertools.product(*along))
        pieces = _pieces(len(inside), len(columns), frame_size(frame) * group_bytes, chunk_bytes)
        for start, stop in itertools.pairwise(len(inside) * k // pieces for k in range(pieces + 1)):
            chosen = tuple(inside[start:stop])
            own = frame_of(grid, groups, chosen)
            runs.append(Run(number, chosen, own, place, pieces == 1, stop == len(inside)))
            place += len(chosen)
    return RunPlan(tuple(runs), tuple(frames))


def _pieces(chunks: int, columns: int, state_bytes: int, chunk_bytes: int) -> int:
    """How many runs a column has: enough to share, but none whose state is more than half of what it reads."""
    wanted = max(-(-LEAST_RUNS // columns), chunks * chunk_bytes // RUN_BYTES)
    worth = chunks * chunk_bytes // (2 * max(1, state_bytes))
    return max(1, min(chunks, wanted, worth))


def frame_of(grid: ChunkGrid, groups: GridGroups, keys: Sequence[ChunkKey], whole: bool = False) -> Frame:
    """The groups of some chunks; with ``whole``, all groups along axes where cells are not groups of their own."""
    found = []
    for number, axis in enumerate(groups.axes):
        if axis.extent == 1 or (whole and not axis.by_cell):
            found.append((0, axis.extent))
            continue
        first, last = min(key[number] for key in keys), max(key[number] for key in keys)
        lo = max(grid.lo[number] + first * grid.chunk[number], groups.box.lo[number]) - groups.box.lo[number]
        hi = min(grid.lo[number] + (last + 1) * grid.chunk[number] - 1, groups.box.hi[number]) - groups.box.lo[number]
        codes = axis.codes[lo : hi + 1]
        found.append((int(codes.min()), int(codes.max()) + 1))
    return tuple(found)


def frame_size(frame: Frame) -> int:
    return math.prod(stop - start for start, stop in frame)


def chunk_inside(grid: ChunkGrid, key: ChunkKey, box: Box) -> tuple[Box, tuple[int, ...]]:
    """The cells of a chunk that lie in a box, and where they begin in the chunk."""
    inside = grid.box_of(key) & box
    corner = [lo + k * size for lo, k, size in zip(grid.lo, key, grid.chunk, strict=True)]
    return inside, tuple(lo - first for lo, first in zip(inside.lo, corner, strict=True))
