"""Windows along one axis only: many series, or many pieces of one, run side by side as lanes.

Cells of the same position in a group of series are brought into one slot (along the last axis by turning blocks in
registers, along another axis they lie so already), the network runs down the slots tile by tile, and the results go
back the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.compiler.slots import add_slots, replace_slot
from windrow.kernels.compiler.vectors import (
    BLOCK_BYTES,
    SLOT_BYTES,
    call_network,
    copy_slot,
    gather_block,
    scatter_block,
    slot_has_nan,
    try_network,
)
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


class Series(NamedTuple):
    """Series of ``extent`` cells and how they are cut into pieces, one piece a lane."""

    starts: Int64Array  # where in the input each series begins, -1 if it lies outside
    targets: Int64Array  # where its results begin
    extent: int
    stride: int  # from cell to cell in the input
    out_stride: int  # from result to result
    first: int  # the first cell of the first output's window
    step: int
    count: int  # outputs of a series
    width: int
    piece: int  # outputs of a piece, whole tiles
    tile: int  # outputs of a tile


class Lanes(NamedTuple):
    """For each lane of a group: its cell 0 in the input, which of its rows exist, and its outputs."""

    source: Int64Array
    low: Int64Array  # rows before are outside the input
    high: Int64Array  # as are rows from here on
    useful: Int64Array  # rows from here on belong to no output
    target: Int64Array
    outputs: Int64Array


@kernel
def run_series(
    grid: Grid, series: Series, code: Code, runs: Runs, tables: Tables, work: Array, found: Array, results: Array,
    out: Array, failed: Array,
) -> int:  # fmt: skip
    """Fill ``out`` (flat); ``work``, ``found`` and ``results`` are aligned working memory.

    Returns how many windows have to be answered on their own; their numbers go into ``failed`` as far as it has room.
    """
    count = code.lanes
    pieces = -(-series.count // series.piece)
    rows = (series.piece - 1) * series.step + series.width
    lanes = Lanes(
        np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64),
        np.zeros(count, np.int64), np.zeros(count, np.int64),
    )  # fmt: skip
    dirty = np.zeros(rows + 1, np.int64)
    totals = np.zeros((rows + 1) * count, np.int32)
    late = np.zeros(series.piece // series.tile, np.bool_)
    failures = np.int64(0)
    for group in range(0, len(series.starts) * pieces, count):
        _assign(series, pieces, rows, group, lanes)
        straight = series.stride > 1 and _adjacent(lanes.source) and _adjacent(lanes.target)
        # A series outside the input counts as beginning at -1, which only looks as if it were next to the first.
        straight = straight and lanes.outputs[0] == lanes.outputs[count - 1] and lanes.low[0] == lanes.low[count - 1]
        if straight:
            useful = min(rows, lanes.useful[0])
            _fill_straight(
                grid.flat, lanes.source[0], series.stride, lanes.low[0], min(lanes.high[0], useful), useful, work, count
            )
            work[useful * count : rows * count] = 0
        else:
            _fill(grid.flat, series.stride, lanes.source, lanes.low, lanes.high, lanes.useful, rows, work)
        _mark(work, rows, count, dirty)
        inside = lanes.low.max(), lanes.high.min()
        if _run_tiles(series, code, tables, work, found, results, dirty, inside, late):
            _replace(series, work, count, code.share, dirty, totals, late)
            failures = _run_late_tiles(
                series, code, runs, tables, work, found, results, lanes, totals, late, failed, failures
            )
        if straight:
            _scatter_straight(results, lanes.target[0], series.out_stride, lanes.outputs[0], count, out)
        else:
            _scatter(results, lanes.target, series.out_stride, lanes.outputs, count, out)
    return int(failures)


@inner
def _adjacent(places: Array) -> bool:
    """Whether the lanes lie next to each other."""
    apart = 0
    for lane in range(1, len(places)):
        apart += places[lane] != places[0] + lane
    return apart == 0


@inner
def _assign(series: Series, pieces: int, rows: int, group: int, lanes: Lanes) -> None:
    """Give each lane its piece; lanes without one repeat the first and have no outputs."""
    for lane in range(len(lanes.source)):
        number = group + lane
        idle = number >= len(series.starts) * pieces
        if idle:
            number = group
        piece, row = number // len(series.starts), number % len(series.starts)
        cell = series.first + piece * series.piece * series.step
        outside = series.starts[row] < 0
        outputs = min(series.piece, series.count - piece * series.piece)
        lanes.source[lane] = series.starts[row] + cell * series.stride
        lanes.low[lane] = rows if outside else min(max(-cell, 0), rows)
        lanes.high[lane] = rows if outside else min(max(series.extent - cell, 0), rows)
        lanes.useful[lane] = (outputs - 1) * series.step + series.width
        lanes.target[lane] = series.targets[row] + piece * series.piece * series.out_stride
        lanes.outputs[lane] = 0 if idle else outputs


@inner
def _fill(
    flat: Array, stride: int, source: Array, low: Array, high: Array, useful: Array, rows: int, work: Array
) -> None:
    """Turn the cells of the lanes' pieces into slots; cells outside become NaN, those that nobody needs 0."""
    count = len(source)
    block = BLOCK_BYTES // work.itemsize
    for lane in range(0, count, block):
        begin, end = low[lane], high[lane]
        for other in range(lane + 1, lane + block):
            begin, end = max(begin, low[other]), min(end, high[other])
        end = max(begin, end)
        if stride > 1:
            end = begin  # only neighbours can be turned in blocks
        _fill_slowly(flat, stride, source, low, high, useful, lane, block, np.int64(0), begin, work)
        row = begin
        while row + block <= end:
            gather_block(flat, row, source, lane, work, row * count + lane, count)
            row += block
        if row < end and end - begin >= block:
            # The last block overlaps the one before.
            gather_block(flat, end - block, source, lane, work, (end - block) * count + lane, count)
            row = end
        _fill_slowly(flat, stride, source, low, high, useful, lane, block, row, rows, work)


@inner
def _fill_slowly(
    flat: Array, stride: int, source: Array, low: Array, high: Array, useful: Array, first: int, block: int, begin: int,
    end: int, work: Array,
) -> None:  # fmt: skip
    count = len(source)
    for row in range(begin, end):
        for lane in range(first, first + block):
            if row >= useful[lane]:
                work[row * count + lane] = 0
            elif row < low[lane] or row >= high[lane]:
                work[row * count + lane] = np.nan
            else:
                work[row * count + lane] = flat[source[lane] + row * stride]


@inner
def _fill_straight(
    flat: Array, source: int, stride: int, low: int, high: int, rows: int, work: Array, count: int
) -> None:
    """Copy rows whose lanes lie next to each other in the input; those outside are missing."""
    for row in range(rows):
        if low <= row < high:
            copy_slot(flat, source + row * stride, work, row * count)
        else:
            for lane in range(count):
                work[row * count + lane] = np.nan


@inner
def _mark(work: Array, rows: int, count: int, dirty: Array) -> None:
    """``dirty[r]``: how many rows before r have a missing cell."""
    total = 0
    for row in range(rows):
        dirty[row] = total
        total += slot_has_nan(work, row * count)
    dirty[rows] = total


@inner
def _replace(series: Series, work: Array, count: int, share: float, dirty: Array, totals: Array, late: Array) -> None:
    """Replace missing cells in the rows of late tiles, and count those before each row, from some row on."""
    phase = np.zeros(count, work.dtype)
    codes = np.zeros(count, np.int32)
    none = np.zeros(count, np.int32)
    part = work.dtype.type(share)
    done = 0
    for tile in range(len(late)):
        if not late[tile]:
            continue
        first = tile * series.tile * series.step
        end = first + (series.tile - 1) * series.step + series.width
        if first > done:  # the count before row 0 is always 0
            totals[first * count : (first + 1) * count] = 0
        for row in range(max(first, done), end):
            if dirty[row + 1] > dirty[row]:
                replace_slot(work, row * count, phase, 0, part, codes)
                add_slots(work, totals, (row + 1) * count, totals, row * count, codes, 0)
            else:
                add_slots(work, totals, (row + 1) * count, totals, row * count, none, 0)
        done = end


@inner
def _run_tiles(
    series: Series, code: Code, tables: Tables, work: Array, found: Array, results: Array, dirty: Array, inside: Any,
    late: Array,
) -> bool:  # fmt: skip
    """Answer tiles without missing cells, or with a few; whether some are left, which are marked as late."""
    weight = tables.weight
    left = False
    for tile in range(len(late)):
        row = tile * series.tile * series.step
        end = row + (series.tile - 1) * series.step + series.width
        place = tile * series.tile * code.lanes
        late[tile] = False
        if dirty[end] > dirty[row]:
            late[tile] = row < inside[0] or end > inside[1] or code.holes == 0
            if not late[tile]:
                late[tile] = try_network(code.holes, work, row * code.lanes, results, place) != 0
            left |= late[tile]
        elif code.straight:
            call_network(code.whole, work, row * code.lanes, results, place)
        else:
            call_network(code.whole, work, row * code.lanes, found, 0)
            whole_results(found, series.tile, code.whole_ranks, code.lanes, weight[code.cells], results, place)
    return left


@inner
def _run_late_tiles(
    series: Series, code: Code, runs: Runs, tables: Tables, work: Array, found: Array, results: Array, lanes: Lanes,
    totals: Array, late: Array, failed: Array, failures: int,
) -> int:  # fmt: skip
    lower, upper, weight, first = tables.lower, tables.upper, tables.weight, runs.first
    sums = np.empty(2 * code.lanes, np.int32)
    for tile in range(len(late)):
        if not late[tile]:
            continue
        row = tile * series.tile * series.step
        place = tile * series.tile * code.lanes
        call_network(code.slack, work, row * code.lanes, found, 0)
        if slack_results(
            found, totals, row, first, runs.length, code, lower, upper, weight, tables.interpolates, results, place,
            sums,
        ):  # fmt: skip
            failures = _list(series, code, runs, tables, found, lanes, totals, tile, sums, failed, failures)
    return failures


@inner
def _list(
    series: Series, code: Code, runs: Runs, tables: Tables, found: Array, lanes: Lanes, totals: Array, tile: int,
    sums: Array, failed: Array, failures: int,
) -> int:  # fmt: skip
    """List the windows that need other ranks than the network gave."""
    for output in range(series.tile):
        row, number = tile * series.tile * series.step, tile * series.tile + output
        window_totals(found, totals, row, runs.first, runs.length, output, code.lanes, sums)
        for lane in range(code.lanes):
            if number < lanes.outputs[lane] and unanswered(sums[lane], code, tables.lower, tables.upper):
                if failures < len(failed):
                    failed[failures] = lanes.target[lane] + number * series.out_stride
                failures += 1
    return failures


@inner
def _scatter(results: Array, target: Array, stride: int, outputs: Array, count: int, out: Array) -> None:
    block = BLOCK_BYTES // out.itemsize
    for lane in range(0, count, block):
        whole = outputs[lane] if stride == 1 else 0
        for other in range(lane + 1, lane + block):
            whole = min(whole, outputs[other])
        row = 0
        while row + block <= whole:
            scatter_block(results, row * count + lane, count, out, row, target, lane)
            row += block
        if row < whole and whole >= block:
            scatter_block(results, (whole - block) * count + lane, count, out, whole - block, target, lane)
            row = whole
        for one in range(lane, lane + block):
            for rest in range(row, outputs[one]):
                out[target[one] + rest * stride] = results[rest * count + one]


@inner
def _scatter_straight(results: Array, target: int, stride: int, outputs: int, count: int, out: Array) -> None:
    for row in range(outputs):
        for lane in range(0, count, SLOT_BYTES // out.itemsize):
            copy_slot(results, row * count + lane, out, target + row * stride + lane)
