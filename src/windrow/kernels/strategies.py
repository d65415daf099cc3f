"""Which way to compute order statistics: an estimate of each way's time, and the rule that the smallest wins.

- *direct*: each window on its own; for little work, or windows that do not overlap;
- *series* and *rows*: networks on lanes, for windows of up to a few hundred cells;
- *bitset*: ranks of a block in a set of bits, for larger windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.bitset import AXES, Field, run_bitset
from windrow.kernels.direct import select_direct
from windrow.kernels.lane_plans import COMPILE, LanePlan, lane_plan, select_rows, select_series
from windrow.kernels.problems import Problem
from windrow.kernels.vectors import lanes_of, vector_bytes

Array = npt.NDArray[Any]

# Nanoseconds, measured on one core of a 2.4 GHz Zen 3 server; only their ratios matter.
DIRECT_OUTPUT, DIRECT_CELL = 60.0, 16.0
LANE_OUTPUT, LANE_STEP = 1.5, 0.2  # a step works on one vector register
SCATTERED_OUTPUT = 4.0  # more, where lanes are not next to each other
APART_CELL = 2.4  # more for each cell, where outputs along the last axis are a step apart
BITSET_OUTPUT, BITSET_CELL, BITSET_WORD, BITSET_RANK = 15.0, 1.2, 2.0, 14.0
# Work that takes less than this is not worth planning.
TRIFLE = 3e6


@dataclass(frozen=True)
class Choice:
    """A way to do it, its estimated nanoseconds (those of compiling apart), and the function that does it."""

    name: str
    detail: str
    nanoseconds: float
    compiling: float
    run: Callable[[Array, Array], None]

    def text(self) -> str:
        more = f" + compiling {self.compiling / 1e9:.1f} s" if self.compiling else ""
        return f"{self.name} ({self.detail}) {self.nanoseconds / 1e6:.3g} ms{more}"


def choose(problem: Problem, strategy: str, alike: int) -> tuple[Choice, str]:
    """The cheapest way, or the one asked for, and why. ``alike``: how many such calls share what is compiled."""
    ways = {"direct": _direct, "series": _series, "rows": _rows, "bitset": _bitset}
    if strategy != "auto":
        if strategy not in ways:
            raise DataError(f"strategy must be auto, {', '.join(ways)}", got=strategy)
        forced = ways[strategy](problem)
        if forced is None:
            raise DataError(f"strategy {strategy} cannot do this window", hint="Leave the choice to windrow")
        return forced, f"{forced.text()}, as asked"
    direct = _direct(problem)
    if direct.nanoseconds < TRIFLE:
        return direct, f"{direct.text()}: too little work to plan"
    found = [direct, *(choice for way in (_series, _rows, _bitset) if (choice := way(problem)))]
    found.sort(key=lambda choice: choice.nanoseconds + choice.compiling / alike)
    return found[0], "; ".join(f"{'' if k else 'chosen: '}{choice.text()}" for k, choice in enumerate(found))


def _direct(problem: Problem) -> Choice:
    def run(floats: Array, out: Array) -> None:
        grid, tables = problem.grid(floats.reshape(-1)), problem.tables
        select_direct(
            grid.flat, grid.extent, grid.sweeps, tables.lower, tables.upper, tables.weight, tables.interpolates,
            out.reshape(-1),
        )  # fmt: skip

    cost = problem.outputs * (DIRECT_OUTPUT + DIRECT_CELL * problem.cells)
    return Choice("direct", "each window on its own", cost, 0.0, run)


def _series(problem: Problem) -> Choice | None:
    """Windows along one axis."""
    if len(problem.windowed) > 1:
        return None
    axis = problem.windowed[0] if problem.windowed else len(problem.shape) - 1
    sweep = problem.sweeps[axis]
    plan = lane_plan((sweep.width, 1), (sweep.count, 1), (sweep.step, 1), problem.tables, problem.dtype.itemsize)
    if plan is None:
        return None

    def run(floats: Array, out: Array) -> None:
        select_series(problem, floats.reshape(-1), plan, out.reshape(-1))

    near = prod(problem.count[axis + 1 :])
    scattered = 1 < near < lanes_of(problem.dtype.itemsize)
    each = LANE_OUTPUT + _network_time(problem, plan) + (SCATTERED_OUTPUT if scattered else 0.0)
    return Choice("series", _plan_detail(plan), problem.outputs * each, _compile_time(plan), run)


def _rows(problem: Problem) -> Choice | None:
    """Windows along several axes, lanes along the last."""
    if len(problem.windowed) < 2:
        return None
    plan = lane_plan(problem.width, problem.count, problem.step, problem.tables, problem.dtype.itemsize)
    if plan is None:
        return None

    def run(floats: Array, out: Array) -> None:
        select_rows(problem, floats.reshape(-1), plan, out.reshape(-1))

    lanes = lanes_of(problem.dtype.itemsize)
    busy = problem.count[-1] / (-(-problem.count[-1] // lanes) * lanes)
    apart = APART_CELL * problem.cells if problem.step[-1] > 1 else 0.0
    each = (LANE_OUTPUT + _network_time(problem, plan) + apart) / busy
    return Choice("rows", _plan_detail(plan), problem.outputs * each, _compile_time(plan), run)


def _network_time(problem: Problem, plan: LanePlan) -> float:
    return plan.steps * LANE_STEP * problem.dtype.itemsize / vector_bytes()


def _compile_time(plan: LanePlan) -> float:
    pieces = 2.2 if plan.holes is None else 3.4
    return 0.0 if plan.ready else pieces * COMPILE * plan.steps * prod(plan.tile.outputs)


def _plan_detail(plan: LanePlan) -> str:
    tile = "×".join(str(n) for n in plan.tile.outputs[:-1])
    return f"network of {plan.steps} steps an output, tiles of {tile}"


def _bitset(problem: Problem) -> Choice | None:
    if len(problem.windowed) > AXES:
        return None
    swept = max(problem.windowed, key=lambda axis: problem.width[axis], default=len(problem.shape) - 1)
    others = [axis for axis in problem.windowed if axis != swept]
    axes = [swept, *[None] * (AXES - 1 - len(others)), *others]
    block = _block(problem, axes)
    cells = prod(_covered(problem, axis, n) for axis, n in zip(axes, block, strict=True))

    def run(floats: Array, out: Array) -> None:
        field = _field(problem, axes, block)
        run_bitset(floats.reshape(-1), field, problem.tables, cells, out.reshape(-1))

    cost = problem.outputs * _block_cost(problem, axes, block)
    return Choice("bitset", f"swept along axis {swept}, blocks of {cells} cells", cost, 0.0, run)


def _block_cost(problem: Problem, axes: list[int | None], block: list[int]) -> float:
    """Nanoseconds an output: moving the window, walking to the wanted rank, and a share of ranking the block."""
    swept = axes[0]
    assert swept is not None
    cells = prod(_covered(problem, axis, n) for axis, n in zip(axes, block, strict=True))
    slab = problem.cells / problem.width[swept]
    moved = 2 * slab * min(problem.step[swept], problem.width[swept])
    words = cells / 64 / problem.cells * sqrt(moved)
    begun = problem.cells / block[0]
    return BITSET_OUTPUT + BITSET_CELL * (moved + begun) + BITSET_WORD * words + BITSET_RANK * cells / prod(block)


def _covered(problem: Problem, axis: int | None, outputs: int) -> int:
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
