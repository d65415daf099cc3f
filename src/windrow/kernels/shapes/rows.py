"""Sums, counts and extremes: for each row its windows of all run lengths, then rows combined, nothing subtracted.

A window twice as wide is two windows merged, so a row's windows of all lengths take a few passes over it in the nearest
cache. An output row merges one such row for each run. Strips of columns keep the rows that are needed again near.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel, rare
from windrow.kernels.shapes.merging import Rule, merge_rows, merged

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]


class Plane(NamedTuple):
    """Rows and columns of input and output, and where outputs stand among input rows and columns."""

    rows: int
    columns: int
    first_row: int
    first_column: int
    out_rows: int
    out_columns: int
    row_step: int
    column_step: int
    before: int  # how far runs reach along a row, to the left (not positive) and in all
    reach: int
    strip: int  # places of a strip


class Pieces(NamedTuple):
    """Input planes that an output plane is made of: in order of output planes, each with some of the runs."""

    source: Int64Array
    target: Int64Array
    begin: Int64Array  # of the runs
    end: Int64Array


class RunRows(NamedTuple):
    """Runs by row: how many rows on, at which level, and how far from the left end of the reach."""

    row: Int64Array
    level: Int64Array
    shift: Int64Array
    length: Int64Array


class Workspace(NamedTuple):
    """Windows of all levels of the rows around, row after row, and room for lists."""

    windows: Array  # (rows around, levels, width of a strip and its reach)
    flat: Array  # the same memory
    total: Array  # an output row of a strip
    held: Int64Array  # which input row each row around has
    places: Int64Array  # for each run, where its windows are


def _combine_planes(
    rule: Rule, cells: Array, plane: Plane, pieces: Pieces, runs: RunRows, steps: Array, work: Workspace, out: Array
) -> int:
    """Fill ``out``; how many cells were NaN, each perhaps more than once."""
    missing = 0
    target = np.int64(-1)
    levels, width = work.windows.shape[1], work.windows.shape[2]
    for piece in range(len(pieces.source)):
        fresh = pieces.target[piece] != target
        target = pieces.target[piece]
        at = target * plane.out_rows * plane.out_columns
        into = out[at : at + plane.out_rows * plane.out_columns]
        start = pieces.source[piece] * plane.rows * plane.columns
        begin, end = pieces.begin[piece], pieces.end[piece]
        span = (plane.out_columns - 1) * plane.column_step + 1
        for left in range(0, span, plane.strip):
            places = min(plane.strip, span - left)
            work.held[:] = -1
            for row in range(plane.out_rows):
                here = plane.first_row + row * plane.row_step
                met = np.int64(0)
                for run in range(begin, end):
                    line = here + runs.row[run]
                    if 0 <= line < plane.rows:
                        slot = line % len(work.held)
                        if work.held[slot] != line:
                            work.held[slot] = line
                            first = plane.first_column + left + plane.before
                            source = cells[start + line * plane.columns : start + (line + 1) * plane.columns]
                            missing += _fill(source, first, places + plane.reach, rule.nothing, work.windows[slot, 0])
                            _widen(rule, work.windows[slot], steps, places + plane.reach)
                        work.places[met] = (slot * levels + runs.level[run]) * width + runs.shift[run]
                        met += 1
                line = into[row * plane.out_columns : (row + 1) * plane.out_columns]
                if plane.column_step == 1:
                    merge_rows(rule, work.flat, work.places, met, fresh, line[left : left + places])
                else:
                    merge_rows(rule, work.flat, work.places, met, True, work.total[:places])
                    _keep_some(rule, work.total, left, places, plane.column_step, fresh, line)
    return missing


combine_planes = bare_kernel(_combine_planes, __name__)


@rare  # on its own LLVM makes vectors of it, as a part of the whole it does not
def _fill(source: Array, first: int, count: int, nothing: Any, row: Array) -> int:
    """``count`` cells of a row from ``first`` on, ``nothing`` where there are none; how many are NaN."""
    begin = min(max(-first, 0), count)
    end = max(min(len(source) - first, count), begin)
    for x in range(begin):
        row[x] = nothing
    inside, kept = source[first + begin : first + end], row[begin:end]
    missing = 0
    for x in range(len(kept)):
        value = inside[x]
        # Adding 0 makes -0.0 a 0.0, or which of two equal zeros is found would be chance.
        kept[x] = value + 0 if value == value else nothing
        missing += value != value
    for x in range(end, count):
        row[x] = nothing
    return missing


@bare
def _widen(rule: Rule, windows: Array, steps: Array, count: int) -> None:
    for step in range(len(steps)):
        width = count - steps[step, 6] + 1
        to, one = windows[steps[step, 0], :width], windows[steps[step, 1], :width]
        other = windows[steps[step, 2], steps[step, 3] : steps[step, 3] + width]
        if steps[step, 4] < 0:
            for x in range(width):
                to[x] = merged(rule, one[x], other[x])
        else:
            third = windows[steps[step, 4], steps[step, 5] : steps[step, 5] + width]
            for x in range(width):
                to[x] = merged(rule, merged(rule, one[x], other[x]), third[x])


@bare
def _keep_some(rule: Rule, total: Array, left: int, places: int, step: int, fresh: bool, line: Array) -> None:
    """Of the places of a strip those at which an output stands."""
    for output in range((left + step - 1) // step, (left + places - 1) // step + 1):
        value = total[output * step - left]
        line[output] = value if fresh else merged(rule, line[output], value)
