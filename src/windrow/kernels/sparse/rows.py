"""Sparse cells as rows, and which rows and ranges a neighbourhood meets.

Cells in coordinate order form *rows*: runs with equal leading coordinates, ordered along the last dimension. A
neighbourhood meets some rows, and in each of them a range that only moves forwards while its cell does, so pointers
that follow it find every range in one walk. A window meets all rows in a box; a shape lists the rows it meets by their
offset, each with a range of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel
from windrow.kernels.sparse.order import run_starts

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

_MUCH_LONGER = 16
"""How many times longer a row must be than the list of what is looked for, for leaps to be faster than steps."""


class Rows(NamedTuple):
    """Row r has the leading coordinates ``leading[r]`` and the cells from ``start[r]`` to before ``start[r + 1]``."""

    leading: Int64Array  # (rows, dimensions - 1)
    start: Int64Array
    last: Int64Array  # each cell's coordinate in the last dimension


class Neighbourhoods(NamedTuple):
    """Where some cells, in coordinate order, look for their neighbours.

    Cells of one group (from ``start[g]`` to before ``start[g + 1]``) have equal leading coordinates. Without
    ``offset`` they meet the rows from ``lo[g]`` to ``hi[g]``; with it, the row at ``lo[g] + offset[k]`` for every k. In
    a row the range of cell c is from ``near[c] + first[k]`` to ``far[c] + final[k]``; neither may decrease in a group.
    """

    start: Int64Array
    lo: Int64Array  # (groups, dimensions - 1)
    hi: Int64Array
    near: Int64Array
    far: Int64Array
    offset: Int64Array  # (offsets, dimensions - 1)
    first: Int64Array
    final: Int64Array

    @property
    def listed(self) -> bool:
        return len(self.offset) > 0

    def part(self, begin: int, end: int) -> Neighbourhoods:
        """Those of the cells from ``begin`` to before ``end``."""
        groups = slice(
            int(np.searchsorted(self.start, begin, "right")) - 1, int(np.searchsorted(self.start, end, "left"))
        )
        start = np.clip(self.start[groups.start : groups.stop + 1], begin, end) - begin
        return self._replace(
            start=start, lo=self.lo[groups], hi=self.hi[groups], near=self.near[begin:end], far=self.far[begin:end]
        )


def rows_of(columns: Sequence[Int64Array]) -> Rows:
    """Cells in coordinate order, given as one vector per dimension, as rows."""
    cells = len(columns[0])
    start = run_starts(columns[:-1], cells)
    leading = np.stack([column[start[:-1]] for column in columns[:-1]], 1) if len(columns) > 1 else None
    nothing = np.zeros((len(start) - 1, 0), np.int64)
    return Rows(nothing if leading is None else leading, start, np.ascontiguousarray(columns[-1], np.int64))


def windows_at(columns: Sequence[Int64Array], lo: Sequence[Int64Array], hi: Sequence[Int64Array]) -> Neighbourhoods:
    """The windows of cells in coordinate order: in each dimension from ``lo`` to ``hi``, which follow from its own
    coordinate alone and never decrease with it."""
    start = run_starts(columns[:-1], len(columns[0]))
    ndim, groups = len(columns), len(start) - 1
    bounds = np.zeros((2, groups, ndim - 1), np.int64)
    for axis in range(ndim - 1):
        bounds[0, :, axis], bounds[1, :, axis] = lo[axis][start[:-1]], hi[axis][start[:-1]]
    none, zero = np.zeros((0, ndim - 1), np.int64), np.zeros(1, np.int64)
    return Neighbourhoods(start, bounds[0], bounds[1], lo[-1], hi[-1], none, zero, zero)


def shapes_at(
    columns: Sequence[Int64Array], leading: Int64Array, first: Int64Array, last: Int64Array
) -> Neighbourhoods:
    """Around cells in coordinate order: rows at ``leading`` offsets, ranges of offsets in the last dimension."""
    start = run_starts(columns[:-1], len(columns[0]))
    own = np.zeros((len(start) - 1, len(columns) - 1), np.int64)
    for axis, column in enumerate(columns[:-1]):
        own[:, axis] = column[start[:-1]]
    place = np.ascontiguousarray(columns[-1], np.int64)
    if not len(leading):  # no offsets at all, which no list of rows can say
        leading, first, last = np.zeros((1, len(columns) - 1), np.int64), np.ones(1, np.int64), np.zeros(1, np.int64)
    return Neighbourhoods(start, own, own, place, place, np.ascontiguousarray(leading, np.int64), first, last)


@kernel
def _compared(leading: Array, row: int, target: Array) -> int:
    """-1, 0 or 1: whether a row lies before, at or after a place."""
    for axis in range(len(target)):
        if leading[row, axis] != target[axis]:
            return -1 if leading[row, axis] < target[axis] else 1
    return 0


@kernel
def _row_at(leading: Array, row: int, target: Array) -> int:
    """The first row, from ``row`` on, that does not lie before ``target``: by strides that double, then by halves."""
    low, stride = row, 1
    while row < len(leading) and _compared(leading, row, target) < 0:
        low = row + 1
        row += stride
        stride *= 2
    high = min(row, len(leading))
    while low < high:
        middle = (low + high) // 2
        if _compared(leading, middle, target) < 0:
            low = middle + 1
        else:
            high = middle
    return low


class Links(NamedTuple):
    """Room for the rows that one group meets, which of the ranges applies in each, and where the offsets point.

    ``begin`` and ``end`` have the range of each of the group's cells in one row.
    """

    row: Int64Array
    which: Int64Array
    pointer: Int64Array
    target: Int64Array
    begin: Int64Array
    end: Int64Array


@kernel
def links_of(rows: Rows, hoods: Neighbourhoods) -> Links:
    offsets = len(hoods.offset)
    most = offsets if offsets > 0 else len(rows.leading)
    largest = 0
    for group in range(len(hoods.start) - 1):
        largest = max(largest, hoods.start[group + 1] - hoods.start[group])
    return Links(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(offsets, np.int64),
        np.zeros(rows.leading.shape[1], np.int64), np.zeros(largest, np.int64), np.zeros(largest, np.int64),
    )  # fmt: skip


@kernel
def link(rows: Rows, hoods: Neighbourhoods, group: int, links: Links) -> int:
    """Find the rows that a group of neighbourhoods meets; how many there are. Groups must come in order."""
    if len(hoods.offset) == 0:
        return _rows_in_box(rows.leading, hoods.lo[group], hoods.hi[group], links)
    found = 0
    for k in range(len(hoods.offset)):
        for axis in range(len(links.target)):
            links.target[axis] = hoods.lo[group, axis] + hoods.offset[k, axis]
        row = _row_at(rows.leading, links.pointer[k], links.target)
        links.pointer[k] = row
        if row < len(rows.leading) and _compared(rows.leading, row, links.target) == 0:
            links.row[found], links.which[found] = row, k
            found += 1
    return found


@kernel
def _rows_in_box(leading: Array, lo: Array, hi: Array, links: Links) -> int:
    """The rows of a box, leaping over those between: from any row outside it is known where the next can be."""
    axes = len(lo)
    target = links.target
    target[:] = lo
    row = _row_at(leading, 0, target)
    found = 0
    while row < len(leading):
        axis = 0
        while axis < axes and lo[axis] <= leading[row, axis] and leading[row, axis] <= hi[axis]:
            axis += 1
        if axis == axes:
            links.row[found] = row
            found += 1
            row += 1
            continue
        beyond = leading[row, axis] > hi[axis]
        if beyond and axis == 0:
            break
        target[:] = lo
        target[:axis] = leading[row, :axis]
        if beyond:
            target[axis - 1] += 1
        row = _row_at(leading, row, target)
    return found


@kernel
def find_ranges(rows: Rows, hoods: Neighbourhoods, group: int, k: int, links: Links) -> None:
    """For each cell of a group, its range in the k-th of the rows that the group meets."""
    start, stop = rows.start[links.row[k]], rows.start[links.row[k] + 1]
    cells = slice(hoods.start[group], hoods.start[group + 1])
    near, far = hoods.near[cells], hoods.far[cells]
    first, final = hoods.first[links.which[k]], hoods.final[links.which[k]]
    first_at_least(rows.last, start, stop, near, first, links.begin)
    width = (far[0] + final) - (near[0] + first) + 1
    if width * (stop - start) > rows.last[stop - 1] - rows.last[start] + 1:
        first_at_least(rows.last, start, stop, far, final + 1, links.end)
        return
    for cell in range(len(near)):  # most ranges are empty, and then their ends are where they begin
        place = links.begin[cell]
        while place < stop and rows.last[place] <= far[cell] + final:
            place += 1
        links.end[cell] = place


@kernel
def first_at_least(last: Array, place: int, stop: int, bounds: Array, added: int, found: Array) -> None:
    """For each of the rising ``bounds``, with ``added``, the first place from ``place`` on that is not below it."""
    cells = len(bounds)
    if stop - place <= _MUCH_LONGER * cells:
        # Which side moves is as good as random, so it must not be a branch: a wrong guess costs as much as ten steps.
        # Unsigned places need no look at whether they count from the end.
        cell, at, one = np.uint64(0), np.uint64(place), np.uint64(1)
        while cell < np.uint64(cells) and at < np.uint64(stop):
            found[cell] = at
            below = np.uint64(last[at] < bounds[cell] + added)
            at += below
            cell += one - below
        found[cell:cells] = stop
        return
    for number in range(cells):
        place = _leapt(last, place, stop, bounds[number] + added)
        found[number] = place


@kernel
def _leapt(last: Array, place: int, stop: int, target: int) -> int:
    """The first place that is not below ``target``, by strides that double, then by halves."""
    low, stride = place, 1
    while place < stop and last[place] < target:
        low = place + 1
        place += stride
        stride *= 2
    high = min(place, stop)
    while low < high:
        middle = (low + high) // 2
        if last[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low
