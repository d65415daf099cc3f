"""Windows over any number of axes as passes over two at a time, and the passes' workspace."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.scans.loops import Merge
from windrow.kernels.scans.plane import BARE, MISSING
from windrow.kernels.scans.plane_setup import (
    Cells,
    Extent,
    Layout,
    covered_cells,
    plane_layout,
    run_plane,
    workspace_bytes,
)
from windrow.kernels.scans.strip import Loops, scan
from windrow.kernels.scans.text import LINE
from windrow.kernels.scans.widening import widening

RING_BYTES = 1 << 20  # of a block's rows: more than the second-level cache of most cores, but read in order
PAGE = 4096
WIDEST = 128  # cells: wider windows along a row are block-scanned, too
KEPT = 1 << 22  # bytes of workspace that a thread keeps for each use
_AVERAGE = np.dtype(np.float64)
TALLEST = 2048  # rows: taller blocks would let the error of a sum grow beyond a few 1e-13


_kept = threading.local()


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the input: how many cells it has, and where its windows lie."""

    cells: int
    low: int
    count: int
    width: int
    step: int

    @property
    def down(self) -> Extent:
        return self.low, self.count, self.width, self.step

    @property
    def plain(self) -> bool:
        """Whether the result along this axis is the input."""
        return (self.low, self.count, self.width, self.step) == (0, self.cells, 1, 1)


def clip_axis(cells: int, sweep: Sweep) -> Axis:
    """Cut off the offsets that lie outside the input at every position; a width of 0 or less covers nothing."""
    last = sweep.first + (sweep.count - 1) * sweep.step
    start = max(sweep.start, -last)
    stop = min(sweep.stop, cells - 1 - sweep.first)
    return Axis(cells, sweep.first + start, sweep.count, stop - start + 1, sweep.step if sweep.count > 1 else 1)


def join_axes(axes: Sequence[Axis]) -> list[Axis]:
    """Join neighbouring axes without windows into one."""
    result: list[Axis] = []
    for axis in axes:
        if result and axis.plain and result[-1].plain:
            cells = result[-1].cells * axis.cells
            axis = Axis(cells, 0, cells, 1, 1)
            result.pop()
        result.append(axis)
    return result


@lru_cache(maxsize=256)
def merge_of(rule: str, cell: str, total: str) -> Merge:
    return Merge(rule, cell, total)


@lru_cache(maxsize=1024)
def _levels(merge: Merge, width: int) -> NDArray[np.int64]:
    """How rows are widened, as compiled code reads it."""
    size, overlaps = merge.kit.total, merge.rule in ("min", "max")
    levels = widening(width, overlaps)
    needed = not overlaps and any(level.extra is not None for level in levels[1:])
    rows = [
        (merge.join(level.rows, level.extra is not None), level.before * size, (level.extra or 0) * size, overlaps,
         needed and number == 0, level.width * size)
        for number, level in enumerate(levels)
    ]  # fmt: skip
    return np.array(rows, np.int64).reshape(-1, 6)


@lru_cache(maxsize=1024)
def _loops(merge: Merge, height: int, width: int, step: int) -> Loops:
    """The loops for windows of ``height`` rows and ``width`` columns, those a step apart."""
    levels = widening(width, merge.rule in ("min", "max"))
    rows, extra = (levels[-1].rows, levels[-1].extra is not None) if levels and step == 1 else (1, False)
    if height == 1:
        return Loops(merge.join(rows, extra), 0)
    return Loops(merge.advance(rows, extra), merge.join(2))


def later(rule: str, total: np.dtype[Any]) -> str:
    """The rule by which partial results merge."""
    if rule in ("min", "max"):
        return rule
    return "carried" if total.kind == "f" else "sum"


@lru_cache(maxsize=256)
def _passes(rule: str, axes: tuple[Axis, ...], total: np.dtype[Any]) -> tuple[list[Axis], list[tuple[int, ...]]]:
    """The axes as they are scanned, and which of them in each pass: the last two at once if that can be."""
    scanned = join_axes(axes)
    windowed = [k for k, axis in enumerate(scanned) if not axis.plain] or [len(scanned) - 1]
    last = len(scanned) - 1
    fused = windowed[-2:] == [last - 1, last] and _fusible(rule, scanned[last - 1], scanned[last], total)
    steps: list[tuple[int, ...]] = [(k,) for k in (windowed[:-2] if fused else windowed)]
    return scanned, [*steps, (last - 1, last)] if fused else steps


def scan_all(rule: str, values: NDArray[Any], axes: tuple[Axis, ...], out: NDArray[Any]) -> int:
    """Fill ``out`` with the windows' merges; every axis covers something. What was found: see ``scan_plane``."""
    scanned, steps = _passes(rule, axes, out.dtype)
    current = values.reshape([axis.cells for axis in scanned])
    flags = 0
    for number, step in enumerate(steps):
        shape = [scanned[k].count if k in step else cells for k, cells in enumerate(current.shape)]
        target = out.reshape(shape) if number == len(steps) - 1 else np.empty(shape, out.dtype)
        use = rule if number == 0 else later(rule, out.dtype)
        found = _pass(use, current, [scanned[k] for k in step], step[0], target)
        flags |= found if number == 0 else 0
        current = target
    return flags if len(steps) == 1 or not flags else MISSING | BARE


def average_plan(axes: Sequence[Axis]) -> Layout | None:
    """How averages over two axes are made in one pass, if they can be."""
    if len(axes) != 2 or min(axis.width for axis in axes) <= 0:
        return None
    if not _fusible("sum", axes[0], axes[1], _AVERAGE):
        return None
    return _plane(_AVERAGE.itemsize, axes[1].cells, axes[0].down, axes[1].down)


def average_all(
    values: NDArray[Any], axes: Sequence[Axis], plan: Layout, out: NDArray[Any], counts: NDArray[Any] | None = None
) -> bool:
    """Fill ``out`` with averages; without counts of present cells, False as soon as one is missing.

    ``counts`` have room for a line before and behind them.
    """
    down, across = axes[0].down, axes[1].down
    merge = merge_of("sum", values.dtype.str, out.dtype.str)
    shape = (1, axes[0].cells, axes[1].cells)
    divisors = covered_cells(axes[0].cells, down, axes[1].cells, across) if counts is None else counts
    return not _run_plane(merge, plan, (values, out), shape, down, across, divisors)


def _fusible(rule: str, down: Axis, across: Axis, total: np.dtype[Any]) -> bool:
    return down.step == 1 and across.width <= WIDEST and not _too_tall(rule, down, total)


def _too_tall(rule: str, axis: Axis, total: np.dtype[Any]) -> bool:
    return total.kind == "f" and rule not in ("min", "max") and axis.width > TALLEST and axis.step < axis.width


def _pass(rule: str, source: NDArray[Any], axes: Sequence[Axis], at: int, out: NDArray[Any]) -> int:
    """One pass: down one axis, along the last one, or both."""
    outer = math.prod(source.shape[:at])
    if len(axes) == 2:
        return _scan(rule, source, (outer, axes[0].cells, axes[1].cells), axes[0].down, axes[1].down, out)
    axis = axes[0]
    if at < source.ndim - 1:
        if _too_tall(rule, axis, out.dtype):
            return _tall(rule, source.reshape(outer, axis.cells, -1), axis, out)
        columns = math.prod(source.shape[at + 1 :])
        return _scan(rule, source, (outer, axis.cells, columns), axis.down, (0, columns, 1, 1), out)
    if axis.width <= WIDEST:
        return _scan(rule, source, (1, outer, axis.cells), (0, outer, 1, 1), axis.down, out)
    return _wide(rule, source.reshape(outer, axis.cells), axis, out)


def _scan(
    rule: str,
    source: NDArray[Any],
    shape: tuple[int, int, int],
    down: Extent,
    across: Extent,
    out: NDArray[Any],
    shift: int = 0,
    limit: int | None = None,
) -> int:
    merge = merge_of(rule, source.dtype.str, out.dtype.str)
    size = out.itemsize
    plan = None if shift else _plane(size, shape[2], down, across)
    if plan is not None:
        return _run_plane(merge, plan, (source, out), shape, down, across)
    strip = _strip_columns(down[2] * size, across)
    ring_room = _spaced(strip * size)
    room = _spaced(((strip - 1) * across[3] + across[2]) * size)
    # A vector of cells may be eight times as long as one of totals.
    work = workspace("scan", (down[2] + 1) * ring_room + 2 * room + 9 * LINE)
    address = -(-work.ctypes.data // LINE) * LINE
    limit = down[1] * across[1] if limit is None else limit
    places = (source.ctypes.data, out.ctypes.data)
    layout = (address, strip, ring_room, room)
    loops, levels = _loops(merge, down[2], across[2], across[3]), _levels(merge, across[2])
    found = scan(merge.kit, loops, *places, shape, down, across, levels, shift, limit, layout)
    return MISSING | BARE if found else 0


def _plane(size: int, columns: int, down: Extent, across: Extent) -> Layout | None:
    if down[2] < 2 or down[3] != 1 or across[3] != 1:
        return None
    return plane_layout(size, down[2], columns, across)


def _run_plane(
    merge: Merge, plan: Layout, arrays: tuple[NDArray[Any], NDArray[Any]], shape: tuple[int, int, int], down: Extent,
    across: Extent, divisors: Cells | NDArray[Any] | None = None,
) -> int:  # fmt: skip
    work = workspace("scan", workspace_bytes(down[2], plan))
    return run_plane(merge, plan, arrays, shape, down, across, work, divisors)


def workspace(use: str, size: int) -> NDArray[np.uint8]:
    """Memory to work in, kept for the next use: to give it back and ask for it again costs more than using it."""
    if size > KEPT:
        return np.empty(size, np.uint8)
    kept: NDArray[np.uint8] | None = getattr(_kept, use, None)
    if kept is None or len(kept) < size:
        kept = np.empty(size, np.uint8)
        setattr(_kept, use, kept)
    return kept[:size]


def _strip_columns(column_bytes: int, across: Extent) -> int:
    _, count, width, step = across
    most = max(RING_BYTES // column_bytes, 256, 4 * width) // step // LINE * LINE
    most = max(min(most, 2048), LINE)
    return count if count <= most + most // 2 else most


def _spaced(length: int) -> int:
    """Bytes from one row of the workspace to the next: whole lines, and far from the same place of a page.

    A load whose address agrees in its last twelve bits with that of a store just before waits for that store.
    """
    row = -(-length // LINE) * LINE + 3 * LINE
    return row + max(0, PAGE // 4 - row % PAGE) + (PAGE // 2 if row % PAGE > PAGE * 3 // 4 else 0)


def _wide(rule: str, source: NDArray[Any], axis: Axis, out: NDArray[Any]) -> int:
    """Wide windows along rows: a row is cut into rows of u cells, windows of u cells are widened, k of them scanned."""
    outer = source.shape[0]
    count = (axis.count - 1) * axis.step + 1
    target = out if axis.step == 1 else np.empty((outer, count), out.dtype)
    unit = _unit(axis.width)
    height, rest = divmod(axis.width, unit)
    rows = -(-count // unit)
    shape = (outer, rows + height - 1, axis.cells)
    missing = _scan(rule, source, shape, (0, rows, height, 1), (axis.low, unit, unit, 1), target, unit, count)
    if rest:
        more = np.empty_like(target)
        across = (axis.low + height * unit, count, rest, 1)
        missing |= _scan(rule, source, (1, outer, axis.cells), (0, outer, 1, 1), across, more)
        _merge_into(rule, target, more)
    if axis.step > 1:
        out[...] = target.reshape(outer, count)[:, :: axis.step].reshape(out.shape)
    return missing


def _tall(rule: str, source: NDArray[Any], axis: Axis, out: NDArray[Any]) -> int:
    """Tall windows of float sums: blocks of u rows first, then every u-th of them, so that no chain of sums is long."""
    outer, _, columns = source.shape
    count = (axis.count - 1) * axis.step + 1
    unit = _unit(axis.width)
    height, rest = divmod(axis.width, unit)
    rows = -(-count // unit)
    total = (rows + height - 1) * unit
    units = np.empty((outer, total, columns), out.dtype)
    missing = _scan(rule, source, source.shape, (axis.low, total, unit, 1), (0, columns, 1, 1), units)
    whole = np.empty((outer, rows * unit, columns), out.dtype)
    wide = unit * columns
    _scan(later(rule, out.dtype), units, (outer, total // unit, wide), (0, rows, height, 1), (0, wide, 1, 1), whole)
    if rest:
        more = np.empty_like(whole)
        down = (axis.low + height * unit, rows * unit, rest, 1)
        missing |= _scan(rule, source, source.shape, down, (0, columns, 1, 1), more)
        _merge_into(rule, whole, more)
    out[...] = whole[:, : count : axis.step].reshape(out.shape)
    return missing


def _merge_into(rule: str, totals: NDArray[Any], more: NDArray[Any]) -> None:
    merge = {"min": np.minimum, "max": np.maximum}.get(rule, np.add)
    with np.errstate(invalid="ignore", over="ignore"):
        merge(totals, more, out=totals)


@lru_cache(maxsize=1024)
def _unit(width: int) -> int:
    """How many cells to widen first: a divisor of the width in a good range, or else the middle of that range."""
    least = max(64, -(-width // TALLEST))
    for unit in sorted(range(least, 4 * least), key=lambda unit: (unit % 8 != 0, unit)):
        if width % unit == 0:
            return unit
    return 2 * least
