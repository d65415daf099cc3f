"""Order statistics over shapes: values of any type become floats in the same order, and what is found values again."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.contract.keys import Keys, keys_of
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.shapes.layout import every_offset
from windrow.kernels.shapes.problems import ShapeProblem
from windrow.kernels.shapes.scan import present_counts

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Block = tuple[int, ...]

LANES = 64
SHORT_RANKS = 2**16 - 1
"""Cells of a block that is searched in lanes: ranks have 16 bits, of which the highest is nobody's."""
LONG_RANKS = 2**22
NEAR = 2**14
"""Cells of a block that stays in the nearer caches; more only if most would be halo."""
MUCH_HALO = 2.0


def select_shapes(
    problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None, in_lanes: bool
) -> Outcome:
    """As ``naive_shapes`` for ``select``; results are NaN where nothing is present, or ``empty`` says so."""
    ranks = problem.ranks
    assert ranks is not None
    keys = keys_of(values, present)
    if ranks.interpolates and keys.coded:
        return _between_coded(problem, keys, ranks, in_lanes)
    kind = np.dtype(np.float64) if ranks.interpolates else keys.floats.dtype
    picked = out if out is not None and out.dtype == kind and out.flags.c_contiguous else np.empty(problem.counts, kind)
    _select(problem, keys.floats, ranks, picked, in_lanes)
    if ranks.interpolates:
        return Outcome(picked, picked, None)
    result, missing = keys.values(picked)
    return Outcome(result, result, None, missing)


def _between_coded(problem: ShapeProblem, keys: Keys, ranks: RankTable, in_lanes: bool) -> Outcome:
    """Between values whose keys are not those numbers: find both neighbours, then go between them."""
    sides = []
    for wanted in (ranks.lower, ranks.upper):
        picked = np.empty(problem.counts, keys.floats.dtype)
        _select(problem, keys.floats, ranks.picking(wanted), picked, in_lanes)
        found, _ = keys.values(picked)
        sides.append((found.view(np.int64) if found.dtype.kind in "mM" else found).astype(np.float64))
    counts = present_counts(problem, ~np.isnan(keys.floats))
    low, high = sides
    result = low + ranks.weight[counts] * (high - low)
    result[counts == 0] = np.nan
    return Outcome(result, result, None)


def block_of(problem: ShapeProblem, in_lanes: bool) -> Block | None:
    """Outputs of a block along each axis; None if the smallest has more cells than there are ranks."""
    return _block(problem, SHORT_RANKS - LANES if in_lanes else LONG_RANKS, in_lanes)


@lru_cache(maxsize=64)
def _block(problem: ShapeProblem, most: int, in_lanes: bool) -> Block | None:
    block = [1] * len(problem.shape)
    if in_lanes:
        block[-1] = max(1, min(problem.counts[-1], LANES // problem.sweeps[-1].step))
    if _cells(problem, block) > most:
        return None
    while True:
        # Whichever axis is doubled for the least more cells an output.
        larger = []
        for axis, count in enumerate(problem.counts):
            if block[axis] < count:
                grown = [min(2 * n, count) if other == axis else n for other, n in enumerate(block)]
                larger.append((_cells(problem, grown) / math.prod(grown), axis, grown))
        if not larger:
            return tuple(block)
        share, _, grown = min(larger)
        now = _cells(problem, block) / math.prod(block)
        near = _cells(problem, grown) <= NEAR or now > MUCH_HALO
        if not near or _cells(problem, grown) > most or share >= now:
            return tuple(block)
        block = grown


def block_cells(problem: ShapeProblem, in_lanes: bool) -> float:
    """How many cells are ranked for each output."""
    block = block_of(problem, in_lanes)
    return math.inf if block is None else _cells(problem, block) / math.prod(block)


def _sizes(problem: ShapeProblem, block: list[int] | Block) -> list[int]:
    """Cells that a block covers along each axis; along the last one as many as whole slots of lanes ask for."""
    sizes = []
    for number, (n, sweep) in enumerate(zip(block, problem.sweeps, strict=True)):
        span = (n - 1) * sweep.step + 1
        span = -(-span // LANES) * LANES if number == len(block) - 1 else span
        sizes.append(span + sweep.width - 1)
    return sizes


def _cells(problem: ShapeProblem, block: list[int] | Block) -> int:
    return math.prod(_sizes(problem, block))


def _select(problem: ShapeProblem, floats: Array, ranks: RankTable, out: Array, in_lanes: bool) -> None:
    from windrow.kernels.shapes.blocks import Field, Offsets, Wanted, select_blocks

    block = block_of(problem, in_lanes)
    assert block is not None
    if not out.size or not len(problem.runs.first):
        out.fill(np.nan)
        return
    sizes, sweeps = _sizes(problem, block), problem.sweeps
    columns = (
        problem.shape, [s.first for s in sweeps], [s.step for s in sweeps], problem.counts, [s.start for s in sweeps],
        block, sizes,
    )  # fmt: skip
    field = Field(*(np.array(column, np.int64) for column in columns))
    strides = np.array([math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))], np.int64)
    runs = problem.runs
    beside = runs.leading - field.start[:-1]
    starts = beside @ strides[:-1] + runs.first - field.start[-1]
    offsets = Offsets(every_offset(starts, runs.lengths), starts, runs.lengths)
    most = len(offsets.every)
    lower, upper, weight = (_padded(table, most) for table in (ranks.lower, ranks.upper, ranks.weight))
    wanted = Wanted(lower, upper if ranks.interpolates else lower, weight, ranks.interpolates)
    select_blocks(np.ascontiguousarray(floats).reshape(-1), field, offsets, wanted, in_lanes, out.reshape(-1))


def _padded(table: Array, cells: int) -> Array:
    """Compiled code reads the table up to the size of the shape, which the input may never fill."""
    return table if len(table) > cells else np.pad(table, (0, cells + 1 - len(table)), mode="edge")
