"""Windows over several axes: neighbours along the last one run side by side as lanes.

The rows that a tile of outputs reads are copied next to each other; the network reads cell k of a row's windows by
starting k cells further on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.compiler.slots import add_slots, replace_slot
from windrow.kernels.compiler.vectors import SLOT_BYTES, call_network, copy_slot, slot_has_nan, try_network
from windrow.kernels.order.lanes import (
    Code,
    Grid,
    Runs,
    Tables,
    slack_results,
    unanswered,
    whole_results,
    window_totals,
)

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

# Rows of a tile that are not in the input: missing, or read by no output.
MISSING, UNUSED = -1, -2
# What the cells of a tile are: all there, some of them missing, some of them outside the input.
CLEAN, HOLES, OUTSIDE = 0, 1, 2


class Rows(NamedTuple):
    """The rows of a tile, relative to its first cell, and its outputs, along all axes but the last."""

    cells: Int64Array  # [row, axis]
    outputs: Int64Array  # [output, axis]
    tile: Int64Array  # outputs along each axis
    width: int  # of windows along the last axis
    pitch: int  # items that a row takes in working memory


@kernel
def run_rows(
    grid: Grid, rows: Rows, code: Code, runs: Runs, tables: Tables, work: Array, found: Array, results: Array,
    out: Array, failed: Array,
) -> int:  # fmt: skip
    """Fill ``out`` (flat); ``work``, ``found`` and ``results`` are aligned working memory.

    Returns how many windows have to be answered on their own; their numbers go into ``failed`` as far as it has room.
    """
    last = len(grid.extent) - 1
    tiles = np.empty(last, np.int64)
    number = 1
    for axis in range(last):
        tiles[axis] = -(-grid.sweeps[axis, 1] // rows.tile[axis])
        number *= tiles[axis]
    at = np.zeros(last, np.int64)
    starts = np.empty(len(rows.cells), np.int64)
    targets = np.empty(len(rows.outputs), np.int64)
    totals = np.zeros((len(starts) + 1) * code.lanes, np.int32)
    failures = np.int64(0)
    for _ in range(number):
        _place_rows(grid, rows, at, starts)
        _place_outputs(grid, rows, at, targets)
        failures = _run_line(
            grid, rows, code, runs, tables, starts, targets, totals, work, found, results, out, failed, failures
        )
        for axis in range(last - 1, -1, -1):
            at[axis] += 1
            if at[axis] < tiles[axis]:
                break
            at[axis] = 0
    return int(failures)


@inner
def _run_line(
    grid: Grid, rows: Rows, code: Code, runs: Runs, tables: Tables, starts: Array, targets: Array, totals: Array,
    work: Array, found: Array, results: Array, out: Array, failed: Array, failures: int,
) -> int:  # fmt: skip
    """All tiles along the last axis, for one place along the others."""
    lower, upper, weight, first = tables.lower, tables.upper, tables.weight, runs.first
    begin, count, offset, _, step = grid.sweeps[len(grid.extent) - 1]
    extent = grid.extent[len(grid.extent) - 1]
    flat, lanes, width, pitch = grid.flat, code.lanes, rows.width, rows.pitch
    sums = np.empty(2 * lanes, np.int32)
    none = np.int64(0)  # Numba would compile a version of its own for a literal 0
    for column in range(0, count, lanes):
        used = min(lanes, count - column)
        cell = begin + column * step + offset
        dirt = _fill(flat, starts, cell, extent, step, width, pitch, used, work, lanes)
        if dirt == CLEAN and code.straight:
            call_network(code.whole, work, 0, results, 0)
        elif dirt == CLEAN:
            call_network(code.whole, work, 0, found, 0)
            whole_results(found, len(targets), code.whole_ranks, lanes, weight[code.cells], results, none)
        elif dirt == OUTSIDE or code.holes == 0 or try_network(code.holes, work, 0, results, 0):
            _replace(len(starts), width, pitch, step, lanes, code.share, work, totals)
            call_network(code.slack, work, 0, found, 0)
            if slack_results(
                found, totals, none, first, runs.length, code, lower, upper, weight, tables.interpolates, results,
                none, sums,
            ):  # fmt: skip
                failures = _list(code, runs, tables, found, targets, totals, column, used, sums, failed, failures)
        _deliver(results, targets, column, used, lanes, out)
    return failures


@inner
def _deliver(results: Array, targets: Array, column: int, used: int, lanes: int, out: Array) -> None:
    for output in range(len(targets)):
        if targets[output] >= 0:
            place = targets[output] + column
            if used == lanes:
                for lane in range(0, lanes, SLOT_BYTES // out.itemsize):
                    copy_slot(results, output * lanes + lane, out, place + lane)
            else:
                for lane in range(used):
                    out[place + lane] = results[output * lanes + lane]


@inner
def _place_rows(grid: Grid, rows: Rows, at: Array, starts: Array) -> None:
    """Where in the input each row of the tile begins."""
    for row in range(len(starts)):
        start = np.int64(0)
        for axis in range(len(at)):
            first, count, offset, stop, step = grid.sweeps[axis]
            output = at[axis] * rows.tile[axis]
            used = min(rows.tile[axis], count - output)
            if rows.cells[row, axis] > (used - 1) * step + stop - offset:
                start = UNUSED
                break
            cell = first + output * step + offset + rows.cells[row, axis]
            if cell < 0 or cell >= grid.extent[axis]:
                start = MISSING
            elif start >= 0:
                start = (start + cell) * grid.extent[axis + 1]
        starts[row] = start


@inner
def _place_outputs(grid: Grid, rows: Rows, at: Array, targets: Array) -> None:
    for output in range(len(targets)):
        target = np.int64(0)
        for axis in range(len(at)):
            index = at[axis] * rows.tile[axis] + rows.outputs[output, axis]
            if index >= grid.sweeps[axis, 1]:
                target = -1
                break
            target = (target + index) * grid.sweeps[axis + 1, 1]
        targets[output] = target


@inner
def _fill(
    flat: Array, starts: Array, cell: int, extent: int, step: int, width: int, pitch: int, used: int, work: Array,
    lanes: int,
) -> int:  # fmt: skip
    """Copy the rows' cells for the windows that begin at ``cell`` and behind; whether any is missing or outside."""
    inside = step == 1 and cell >= 0 and cell + lanes + width - 1 <= extent
    dirty = False
    beyond = False
    for row in range(len(starts)):
        place = row * pitch
        if starts[row] < 0:
            beyond |= starts[row] == MISSING
            for k in range(pitch):
                work[place + k] = np.nan if starts[row] == MISSING else 0.0
        elif inside and starts[row] + cell + pitch <= len(flat):
            for k in range(0, pitch, lanes):
                dirty |= copy_slot(flat, starts[row] + cell + k, work, place + k)
        elif step == 1:
            beyond |= _fill_slowly(flat, starts[row], cell, extent, used + width - 1, pitch, work, place)
            for k in range(0, pitch, lanes):
                dirty |= slot_has_nan(work, place + k)
        else:
            last = cell + (used - 1) * step + width - 1
            beyond |= cell < 0 or last >= extent
            dirty |= _fill_apart(flat, starts[row], cell, extent, step, width, used, work, place, lanes)
    return OUTSIDE if beyond else HOLES if dirty else CLEAN


@inner
def _fill_slowly(
    flat: Array, start: int, cell: int, extent: int, used: int, pitch: int, work: Array, place: int
) -> bool:
    """One row near a border: cells outside are missing, those that no output reads are 0. Whether any is outside."""
    low = min(max(-cell, 0), used)
    high = max(min(extent - cell, used), low)
    for k in range(low):
        work[place + k] = np.nan
    for k in range(low, high):
        work[place + k] = flat[start + cell + k]
    for k in range(high, used):
        work[place + k] = np.nan
    for k in range(used, pitch):
        work[place + k] = 0
    return low > 0 or high < used


@inner
def _fill_apart(
    flat: Array, start: int, cell: int, extent: int, step: int, width: int, used: int, work: Array, place: int,
    lanes: int,
) -> bool:  # fmt: skip
    """One row for windows that are a step apart: the cells at each offset in them get a slot of their own."""
    dirty = False
    for offset in range(width):
        for lane in range(lanes):
            value = work.dtype.type(0)
            if lane < used:
                at = cell + lane * step + offset
                value = flat[start + at] if 0 <= at < extent else work.dtype.type(np.nan)
                dirty |= value != value
            work[place + offset * lanes + lane] = value
    return dirty


@inner
def _replace(
    count: int, width: int, pitch: int, step: int, lanes: int, share: float, work: Array, totals: Array
) -> None:
    """Replace missing cells, and count those of the windows' parts in all rows before each row."""
    stride = 1 if step == 1 else lanes
    phase = np.empty(pitch, work.dtype)
    for k in range(pitch):
        # The share is rounded in each column; columns start at different remainders, so that errors cancel out.
        phase[k] = k * 0.6180339887 % 1.0
    codes = np.zeros(pitch + lanes, np.int32)
    part = work.dtype.type(share)
    for row in range(count):
        for k in range(0, pitch, lanes):
            replace_slot(work, row * pitch + k, phase, k, part, codes)
        after = (row + 1) * lanes
        add_slots(work, totals, after, totals, row * lanes, codes, 0)
        for offset in range(1, width):
            add_slots(work, totals, after, totals, after, codes, offset * stride)


@inner
def _list(
    code: Code, runs: Runs, tables: Tables, found: Array, targets: Array, totals: Array, column: int, used: int,
    sums: Array, failed: Array, failures: int,
) -> int:  # fmt: skip
    """List the windows that need other ranks than the network gave."""
    for output in range(len(targets)):
        if targets[output] < 0:
            continue
        window_totals(found, totals, 0, runs.first, runs.length, output, code.lanes, sums)
        for lane in range(used):
            if unanswered(sums[lane], code, tables.lower, tables.upper):
                if failures < len(failed):
                    failed[failures] = targets[output] + column + lane
                failures += 1
    return failures
