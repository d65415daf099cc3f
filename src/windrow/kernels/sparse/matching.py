"""Which cells are in two lists, by their coordinates, in NumPy alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from windrow.kernels.sparse.order import coordinate_order

Int64Array = npt.NDArray[np.int64]
Columns = Sequence[Int64Array]


def found_in(at: Columns, others: Columns) -> npt.NDArray[np.bool_]:
    """Which of the cells ``at`` are among ``others``, whatever the order of either."""
    return match_cells(at, others) >= 0


def match_cells(at: Columns, others: Columns) -> Int64Array:
    """For each of the cells ``at`` its number among ``others``, which are all different; -1 if it is not among them."""
    result = np.full(len(at[0]), -1, np.int64)
    if not len(at[0]) or not len(others[0]):
        return result
    lo = [max(int(one.min()), int(other.min())) for one, other in zip(at, others, strict=True)]
    hi = [min(int(one.max()), int(other.max())) for one, other in zip(at, others, strict=True)]
    extents = [last - first + 1 for first, last in zip(lo, hi, strict=True)]
    if min(extents) <= 0:
        return result
    mine, theirs = (_inside(columns, lo, hi) for columns in (at, others))
    if not len(mine) or not len(theirs):
        return result
    some, among = [c[mine] for c in at], [c[theirs] for c in others]
    if math.prod(extents) < 2**62:
        numbers = _find(_pack(some, lo, extents), _pack(among, lo, extents))
    else:
        numbers = _match_in_order(some, among)
    result[mine] = np.where(numbers < 0, -1, theirs[np.maximum(numbers, 0)])
    return result


def _inside(columns: Columns, lo: Sequence[int], hi: Sequence[int]) -> npt.NDArray[np.intp]:
    inside = np.ones(len(columns[0]), bool)
    for column, first, last in zip(columns, lo, hi, strict=True):
        inside &= (column >= first) & (column <= last)
    return np.flatnonzero(inside)


def _pack(columns: Columns, lo: Sequence[int], extents: Sequence[int]) -> Int64Array:
    keys = np.zeros(len(columns[0]), np.int64)
    for column, first, extent in zip(columns, lo, extents, strict=True):
        keys = keys * extent + (column - first)
    return keys


def _find(keys: Int64Array, among: Int64Array) -> Int64Array:
    """Where each key is among others; -1 where it is not. Others that are in order, as most are, are not sorted."""
    order = None if (among[1:] >= among[:-1]).all() else np.argsort(among, kind="stable")
    ordered = among if order is None else among[order]
    places = np.searchsorted(ordered, keys)
    places[places == len(ordered)] = 0
    found = places if order is None else order[places]
    return np.where(ordered[places] == keys, found, -1)


def _match_in_order(at: Columns, others: Columns) -> Int64Array:
    """The same for cells that no number tells apart: both lists are put in order together."""
    count = len(others[0])
    both = [np.concatenate(pair) for pair in zip(others, at, strict=True)]
    order = coordinate_order(both)
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in both:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    runs = np.cumsum(new) - 1
    numbers = np.empty(len(order), np.int64)
    numbers[order] = runs
    known = np.full(len(order) + 1, -1, np.int64)
    known[numbers[:count]] = np.arange(count)
    return known[numbers[count:]]
