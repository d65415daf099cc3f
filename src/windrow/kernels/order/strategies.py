"""How order statistics of windows can be computed, and an estimate of each way's time.

- *direct*: each window on its own; for little work, or windows that do not overlap;
- *series* and *rows*: networks on lanes, for windows of up to a few hundred cells;
- *bitset*: ranks of a block in a set of bits, for larger windows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.choose import Cost
from windrow.kernels.compiler.vectors import lanes_of, vector_bytes
from windrow.kernels.order.bitset import AXES, Field, run_bitset
from windrow.kernels.order.direct import select_direct
from windrow.kernels.order.lane_plans import COMPILE, LanePlan, lane_plan, select_rows, select_series
from windrow.kernels.order.problems import Problem

Array = npt.NDArray[Any]

# Nanoseconds, measured on one core of a 2.4 GHz Zen 3 server; only their ratios matter.
DIRECT_OUTPUT, DIRECT_CELL = 60.0, 16.0
LANE_CALL, LANE_OUTPUT, LANE_STEP = 3e5, 1.5, 0.2  # a step works on one vector register
SCATTERED_OUTPUT = 4.0  # more, where lanes are not next to each other
APART_CELL = 2.4  # more for each cell, where outputs along the last axis are a step apart
BITSET_CALL = 1e5
BITSET_OUTPUT, BITSET_CELL, BITSET_WORD, BITSET_RANK = 15.0, 1.2, 2.0, 14.0
PLANNED = 64  # problems whose plans are kept

TOO_LARGE = "its network would be too large"


class Way(NamedTuple):
    """Why a way cannot do a problem (None: it can), what it would cost, and the way itself."""

    can: Callable[[Problem], str | None]
    cost: Callable[[Problem], Cost]
    run: Callable[[Problem, Array, Array], None]


def _can_direct(problem: Problem) -> str | None:
    return None


def _cost_direct(problem: Problem) -> Cost:
    return Cost(problem.outputs * (DIRECT_OUTPUT + DIRECT_CELL * problem.cells))


def _run_direct(problem: Problem, floats: Array, out: Array) -> None:
    grid, tables = problem.grid(floats.reshape(-1)), problem.tables
    select_direct(
        grid.flat, grid.extent, grid.sweeps, tables.lower, tables.upper, tables.weight, tables.interpolates,
        out.reshape(-1),
    )  # fmt: skip


def _can_series(problem: Problem) -> str | None:
    if len(problem.windowed) > 1:
        return "windows reach along several axes"
    return TOO_LARGE if _series_plan(problem) is None else None


def _series_axis(problem: Problem) -> int:
    return problem.windowed[0] if problem.windowed else len(problem.shape) - 1


@lru_cache(maxsize=PLANNED)
def _series_plan(problem: Problem) -> LanePlan | None:
    sweep = problem.sweeps[_series_axis(problem)]
    return lane_plan((sweep.width, 1), (sweep.count, 1), (sweep.step, 1), problem.tables, problem.dtype.itemsize)


def _cost_series(problem: Problem) -> Cost:
    plan = _assert_planned(_series_plan(problem))
    near = prod(problem.count[_series_axis(problem) + 1 :])
    scattered = 1 < near < lanes_of(problem.dtype.itemsize)
    each = LANE_OUTPUT + _network_time(problem, plan) + (SCATTERED_OUTPUT if scattered else 0.0)
    return Cost(LANE_CALL + problem.outputs * each, _plan_detail(plan), _compile_time(plan))


def _run_series(problem: Problem, floats: Array, out: Array) -> None:
    select_series(problem, floats.reshape(-1), _assert_planned(_series_plan(problem)), out.reshape(-1))


def _can_rows(problem: Problem) -> str | None:
    if len(problem.windowed) < 2:
        return "windows reach along one axis"
    return TOO_LARGE if _rows_plan(problem) is None else None


@lru_cache(maxsize=PLANNED)
def _rows_plan(problem: Problem) -> LanePlan | None:
    return lane_plan(problem.width, problem.count, problem.step, problem.tables, problem.dtype.itemsize)


def _cost_rows(problem: Problem) -> Cost:
    plan, lanes = _assert_planned(_rows_plan(problem)), lanes_of(problem.dtype.itemsize)
    busy = problem.count[-1] / (-(-problem.count[-1] // lanes) * lanes)
    apart = APART_CELL * problem.cells if problem.step[-1] > 1 else 0.0
    each = (LANE_OUTPUT + _network_time(problem, plan) + apart) / busy
    return Cost(LANE_CALL + problem.outputs * each, _plan_detail(plan), _compile_time(plan))


def _run_rows(problem: Problem, floats: Array, out: Array) -> None:
    select_rows(problem, floats.reshape(-1), _assert_planned(_rows_plan(problem)), out.reshape(-1))


def _assert_planned(plan: LanePlan | None) -> LanePlan:
    assert plan is not None
    return plan


def _network_time(problem: Problem, plan: LanePlan) -> float:
    return plan.steps * LANE_STEP * problem.dtype.itemsize / vector_bytes()


def _compile_time(plan: LanePlan) -> float:
    pieces = 2.2 if plan.holes is None else 3.4
    return 0.0 if plan.ready else pieces * COMPILE * plan.steps * prod(plan.tile.outputs)


def _plan_detail(plan: LanePlan) -> str:
    tile = "×".join(str(n) for n in plan.tile.outputs[:-1])
    return f"{plan.steps} steps an output, tiles of {tile}"


def _can_bitset(problem: Problem) -> str | None:
    return f"windows reach along more than {AXES} axes" if len(problem.windowed) > AXES else None


@lru_cache(maxsize=PLANNED)
def _bitset_plan(problem: Problem) -> tuple[list[int | None], list[int], int]:
    """The axes of a block, the swept one first; how many outputs it has along each, and how many cells it covers."""
    swept = max(problem.windowed, key=lambda axis: problem.width[axis], default=len(problem.shape) - 1)
    others = [axis for axis in problem.windowed if axis != swept]
    axes = [swept, *[None] * (AXES - 1 - len(others)), *others]
    block = _block(problem, axes)
    return axes, block, prod(_count_covered(problem, axis, n) for axis, n in zip(axes, block, strict=True))


def _cost_bitset(problem: Problem) -> Cost:
    axes, block, cells = _bitset_plan(problem)
    return Cost(BITSET_CALL + problem.outputs * _block_cost(problem, axes, block), f"blocks of {cells:,} cells")


def _run_bitset(problem: Problem, floats: Array, out: Array) -> None:
    axes, block, cells = _bitset_plan(problem)
    run_bitset(floats.reshape(-1), _field(problem, axes, block), problem.tables, cells, out.reshape(-1))


WAYS = {
    "direct": Way(_can_direct, _cost_direct, _run_direct),
    "series": Way(_can_series, _cost_series, _run_series),
    "rows": Way(_can_rows, _cost_rows, _run_rows),
    "bitset": Way(_can_bitset, _cost_bitset, _run_bitset),
}


def _block_cost(problem: Problem, axes: list[int | None], block: list[int]) -> float:
    """Nanoseconds an output: moving the window, walking to the wanted rank, and a share of ranking the block."""
    swept = axes[0]
    assert swept is not None
    cells = prod(_count_covered(problem, axis, n) for axis, n in zip(axes, block, strict=True))
    slab = problem.cells / problem.width[swept]
    moved = 2 * slab * min(problem.step[swept], problem.width[swept])
    words = cells / 64 / problem.cells * sqrt(moved)
    begun = problem.cells / block[0]
    return BITSET_OUTPUT + BITSET_CELL * (moved + begun) + BITSET_WORD * words + BITSET_RANK * cells / prod(block)


def _count_covered(problem: Problem, axis: int | None, outputs: int) -> int:
    if axis is None:
        return 1
    return min(problem.shape[axis], (outputs - 1) * problem.step[axis] + problem.width[axis])


def _block(problem: Problem, axes: list[int | None]) -> list[int]:
    """Outputs of a block: the whole axis, halved where that adds least overlap, for as long as it pays."""
    block = [1 if axis is None else problem.count[axis] for axis in axes]

    def reach(k: int) -> float:
        axis = axes[k]
        return 0.0 if axis is None or block[k] == 1 else block[k] * problem.step[axis] / problem.width[axis]

    best, least = block, _block_cost(problem, axes, block)
    while max(block) > 1:
        widest = max(range(AXES), key=reach)
        block = [-(-n // 2) if k == widest else n for k, n in enumerate(block)]
        cost = _block_cost(problem, axes, block)
        if cost < least:
            best, least = block, cost
    return best


def _field(problem: Problem, axes: list[int | None], block: list[int]) -> Field:
    rest = [axis for axis in range(len(problem.shape)) if axis not in axes]
    columns = []
    for axis in axes:
        if axis is None:
            columns.append((1, 0, 0, 1, 1, 1, 0))
            continue
        sweep = problem.sweeps[axis]
        columns.append((
            problem.shape[axis], prod(problem.shape[axis + 1 :]), sweep.first + sweep.start, sweep.width, sweep.step,
            sweep.count, prod(problem.count[axis + 1 :]),
        ))  # fmt: skip
    extent, stride, first, width, step, count, out_stride = np.ascontiguousarray(np.array(columns, np.int64).T)
    return Field(
        problem.starts(rest), problem.targets(rest), extent, stride, first, width, step, count, out_stride,
        np.array(block, np.int64),
    )  # fmt: skip
