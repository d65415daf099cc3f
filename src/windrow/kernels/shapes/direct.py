"""Sums and extremes of small shapes straight from the input's rows: every cell of the shape is a row, moved along."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare, bare_kernel, rare
from windrow.kernels.shapes.merging import Rule, merge_rows, merged
from windrow.kernels.shapes.rows import Pieces, Plane, RunRows

Array = npt.NDArray[Any]


def _combine_directly(
    rule: Rule, cells: Array, plane: Plane, pieces: Pieces, runs: RunRows, places: Array, out: Array
) -> bool:
    """Fill ``out``, unless there is a NaN; whether there was none. ``places`` is room for the cells of the shape."""
    target = np.int64(-1)
    columns = plane.first_column + plane.before  # of the input, beside the first output
    low = min(max(-columns, 0), plane.out_columns)
    high = max(min(plane.columns - columns - plane.reach, plane.out_columns), low)
    for piece in range(len(pieces.source)):
        fresh = pieces.target[piece] != target
        target = pieces.target[piece]
        into = out[target * plane.out_rows * plane.out_columns : (target + 1) * plane.out_rows * plane.out_columns]
        start = pieces.source[piece] * plane.rows * plane.columns
        begin, end = pieces.begin[piece], pieces.end[piece]
        checked = np.int64(0)
        for row in range(plane.out_rows):
            here = plane.first_row + row * plane.row_step
            met = np.int64(0)
            for run in range(begin, end):
                line = here + runs.row[run]
                if 0 <= line < plane.rows:
                    while checked <= line:
                        if _has_nan(cells[start + checked * plane.columns : start + (checked + 1) * plane.columns]):
                            return False
                        checked += 1
                    for cell in range(runs.length[run]):
                        places[met] = start + line * plane.columns + columns + runs.shift[run] + cell + low
                        met += 1
            results = into[row * plane.out_columns : (row + 1) * plane.out_columns]
            merge_rows(rule, cells, places, met, fresh, results[low:high])
            for x in range(low):
                _merge_at_border(rule, cells, plane, runs, begin, end, start, here, x, fresh, results)
            for x in range(high, plane.out_columns):
                _merge_at_border(rule, cells, plane, runs, begin, end, start, here, x, fresh, results)
    return True


combine_directly = bare_kernel(_combine_directly, __name__)


@rare
def _has_nan(row: Array) -> bool:
    missing = 0
    for x in range(len(row)):
        missing += row[x] != row[x]
    return missing > 0


@bare
def _merge_at_border(
    rule: Rule, cells: Array, plane: Plane, runs: RunRows, begin: int, end: int, start: int, here: int, x: int,
    fresh: bool, results: Array,
) -> None:  # fmt: skip
    """One output whose neighbourhood reaches over an end of its rows."""
    total = rule.nothing if fresh else results[x]
    for run in range(begin, end):
        line = here + runs.row[run]
        if 0 <= line < plane.rows:
            first = plane.first_column + plane.before + x + runs.shift[run]
            for column in range(max(first, 0), min(first + runs.length[run], plane.columns)):
                total = merged(rule, total, cells[start + line * plane.columns + column] + 0)
    results[x] = total
