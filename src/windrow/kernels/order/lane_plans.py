"""From a window and a rank table to networks and working memory: how ``series`` and ``rows`` are set up."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import ceil, log2, prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.vectors import aligned, lanes_of
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.order.direct import select_listed
from windrow.kernels.order.holes import HolesCode, holes_code
from windrow.kernels.order.lanes import Code, Grid, Runs, Tables
from windrow.kernels.order.network_code import NetworkCode
from windrow.kernels.order.problems import Problem
from windrow.kernels.order.rows import Rows, run_rows
from windrow.kernels.order.series import Series, run_series
from windrow.kernels.order.tiles import Tile, TileNetwork

Array = npt.NDArray[Any]

# Nanoseconds that LLVM takes for one step of a network.
COMPILE = 6e4
# Networks of more steps take too long to compile: about a second and a half.
MOST_STEPS = 24000
# Tiles of more outputs save little, along one axis and along several.
MOST_OUTPUTS = (128, 16)
# Pieces of a series have at least this many outputs, so that the cells they share with the next are few.
PIECE = 512


@dataclass(frozen=True)
class LanePlan:
    """A tile, and the code for it with and without missing cells."""

    tile: Tile
    whole: NetworkCode
    slack: NetworkCode
    holes: HolesCode | None
    share: float
    steps: int  # minima and maxima per output, without missing cells

    @property
    def ready(self) -> bool:
        return self.whole.ready() and self.slack.ready() and (self.holes is None or self.holes.ready())

    def code(self, tables: Tables) -> Code:
        cells = prod(self.tile.width)
        linear, slope, intercept = linear_ranks(tables, cells)
        return Code(
            self.whole.address(), self.whole.last - self.whole.first, self.slack.address(),
            self.slack.last - self.slack.first, self.slack.first, self.share, cells, self.whole.lanes, linear, slope,
            intercept, self.whole.settled, self.holes.address() if self.holes else 0,
        )  # fmt: skip

    def runs(self) -> Runs:
        """Rows of the tile (its cells along all axes but the last, in C order) that make up each output's window."""
        *widths, _ = self.tile.width
        *counts, _ = self.tile.outputs
        *cells, _ = self.tile.cells
        offsets = np.indices((*widths[:-1], 1)).reshape(len(widths), -1).T
        outputs = np.indices(counts).reshape(len(counts), -1).T * np.array(self.tile.step[:-1])
        strides = np.array([prod(cells[axis + 1 :]) for axis in range(len(cells))])
        return Runs(((outputs[:, None, :] + offsets[None, :, :]) * strides).sum(-1), int(widths[-1]))


def lane_plan(
    width: tuple[int, ...], count: tuple[int, ...], step: tuple[int, ...], tables: Tables, itemsize: int
) -> LanePlan | None:
    """A plan for windows of ``width`` whose lanes lie along the last axis; None if its networks would be too large."""
    cells = prod(width)
    lanes = lanes_of(itemsize)
    lower, upper = int(tables.lower[cells]), int(tables.upper[cells])
    outputs = _outputs(width, count, step, lower, upper + 1)
    if outputs is None:
        return None
    tile = Tile(width, outputs, step)
    if step[-1] == 1:
        pitch, stride = -(-(lanes + width[-1] - 1) // lanes) * lanes, 1
    else:
        pitch, stride = width[-1] * lanes, lanes
    lone = sum(w > 1 for w in width) <= 1
    share, first, last = _slack(tables, cells, 0 if lone else _margin(cells))
    if last - first > cells // 2 + 8:
        return None
    whole = NetworkCode(tile, lower, upper + 1, pitch, stride, lanes, itemsize, settled=not tables.interpolates)
    slack = NetworkCode(tile, first, last, pitch, stride, lanes, itemsize)
    holes = holes_code(tile, tables, pitch, stride, lanes, itemsize)
    return LanePlan(tile, whole, slack, holes, share, -(-_steps(tile, lower, upper + 1) // prod(outputs)))


def _outputs(
    width: tuple[int, ...], count: tuple[int, ...], step: tuple[int, ...], first: int, last: int
) -> tuple[int, ...] | None:
    """How many outputs a tile has along each axis: about as many as the window is wide, while networks stay small."""
    wish = [1] * len(width)
    for axis, (w, n, s) in enumerate(zip(width[:-1], count[:-1], step[:-1], strict=True)):
        while wish[axis] * 2 * s <= w + 1 and wish[axis] < n:
            wish[axis] *= 2
    if _sorting_steps(prod(width)) > MOST_STEPS:
        return None
    most = MOST_OUTPUTS[sum(n > 1 for n in wish) > 1]
    while prod(wish) > most or _steps(Tile(width, tuple(wish), step), first, last) > MOST_STEPS:
        axis = max(range(len(wish)), key=lambda a: wish[a])
        if wish[axis] == 1:
            return None
        wish[axis] //= 2
    return tuple(wish)


def _sorting_steps(cells: int) -> float:
    """About how many steps it takes to sort a window."""
    return cells * log2(cells + 1) ** 2 / 2


@functools.lru_cache(maxsize=256)
def _steps(tile: Tile, first: int, last: int) -> int:
    network = TileNetwork(tile, first, last)
    return network.network.steps(network.outputs())


def _margin(cells: int) -> int:
    """By how many cells a window may miss its share of -inf: about three deviations where a tenth is missing."""
    return ceil(0.35 * sqrt(cells)) + 1


def _slack(tables: Tables, cells: int, margin: int) -> tuple[float, int, int]:
    """The share of missing cells to make -inf, and the ranks that windows may then need."""
    share = min(max(tables.slope, 0.0), 1.0)
    missing = np.arange(cells)
    present = cells - missing
    # Of missing cells in a row, the part that becomes -inf is rounded down or up.
    given = np.floor(missing * share).astype(np.int64)
    low = int((tables.lower[present] + given).min()) - margin
    high = int((tables.upper[present] + given + (missing > 0)).max()) + 1 + margin
    return share, max(low, 0), min(high, cells)


def linear_ranks(tables: Tables, cells: int) -> tuple[bool, np.float32, np.float32]:
    """Whether the lower ranks of up to ``cells`` values are ``floor(N * slope + intercept)`` in float32, and how."""
    count = np.arange(1, cells + 1)
    lower = tables.lower[1 : cells + 1]
    exact = count * tables.slope
    low, high = float((lower - exact).max()), float((lower + 1 - exact).min())
    slope, intercept = np.float32(tables.slope), np.float32((low + high) / 2)
    found = count.astype(np.float32) * slope + intercept
    return bool((found.astype(np.int32) == lower).all() and (found >= 0).all()), slope, intercept


def select_series(problem: Problem, flat: Array, plan: LanePlan, out: Array) -> None:
    """Windows along one axis; ``plan`` is for that axis and one of lanes."""
    last = len(problem.shape) - 1
    axis = problem.windowed[0] if problem.windowed else last
    rest = [other for other in range(last + 1) if other != axis]
    sweep, starts = problem.sweeps[axis], problem.starts(rest)
    tile, code = plan.tile.outputs[0], plan.code(problem.tables)
    piece = _piece(len(starts), sweep, tile, code.lanes)
    series = Series(
        starts, problem.targets(rest), problem.shape[axis], prod(problem.shape[axis + 1 :]),
        prod(problem.count[axis + 1 :]), sweep.first + sweep.start, sweep.step, sweep.count, sweep.width, piece, tile,
    )  # fmt: skip
    work = aligned(((piece - 1) * sweep.step + sweep.width) * code.lanes, flat.dtype)
    found = aligned(tile * max(code.whole_ranks, code.slack_ranks) * code.lanes, flat.dtype)
    results = aligned(piece * code.lanes, out.dtype)
    grid, failed = problem.grid(flat), _room_for_failures(problem)
    failures = run_series(grid, series, code, plan.runs(), problem.tables, work, found, results, out, failed)
    _answer_alone(problem, grid, failed, failures, out)


def _piece(series: int, sweep: Sweep, tile: int, lanes: int) -> int:
    """Outputs of a piece: enough that pieces share few cells, few enough that there is one for every lane."""
    most = min(sweep.count, max(PIECE, 8 * sweep.width))
    if series * -(-sweep.count // most) < lanes:
        most = -(-sweep.count * series // lanes)
    return max(1, -(-most // tile)) * tile


def select_rows(problem: Problem, flat: Array, plan: LanePlan, out: Array) -> None:
    """Windows over any axes, lanes along the last."""
    code, tile = plan.code(problem.tables), plan.tile
    cells = np.ascontiguousarray(np.indices(tile.cells[:-1]).reshape(len(tile.cells) - 1, -1).T)
    outputs = np.ascontiguousarray(np.indices(tile.outputs[:-1]).reshape(len(tile.cells) - 1, -1).T)
    rows = Rows(cells, outputs, np.array(tile.outputs[:-1], np.int64), tile.width[-1], plan.whole.pitch)
    work = aligned(len(cells) * rows.pitch, flat.dtype)
    found = aligned(len(outputs) * max(code.whole_ranks, code.slack_ranks) * code.lanes, flat.dtype)
    results = aligned(len(outputs) * code.lanes, out.dtype)
    grid, failed = problem.grid(flat), _room_for_failures(problem)
    failures = run_rows(grid, rows, code, plan.runs(), problem.tables, work, found, results, out, failed)
    _answer_alone(problem, grid, failed, failures, out)


def _room_for_failures(problem: Problem) -> npt.NDArray[np.int64]:
    return np.empty(1000 + problem.outputs // 20, np.int64)


def _answer_alone(problem: Problem, grid: Grid, failed: npt.NDArray[np.int64], failures: int, out: Array) -> None:
    """Answer the windows that needed ranks their network did not give; all windows if they were not even listed."""
    lower, upper, weight, _, interpolates = problem.tables
    numbers = failed[:failures] if failures <= len(failed) else np.arange(problem.outputs)
    if len(numbers):
        select_listed(grid.flat, grid.extent, grid.sweeps, lower, upper, weight, interpolates, numbers, out)
