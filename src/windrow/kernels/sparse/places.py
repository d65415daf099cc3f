"""Where bands of keys lie among sorted keys.

Each left cell looks for the right cells whose keys lie in some intervals around its own key. Cells come in the order of
their keys, so that each end of an interval only moves forwards; cells are taken in blocks, whose places stay in the
cache until whatever is computed from them is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.sparse.keys import unique_keys

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

NO_SKIPS: Int64Array = np.zeros(0, np.int64)

_PLACES = 1 << 16  # places of each end that are kept at a time: with both, half of a second-level cache
_FEWEST_CELLS, _MOST_CELLS = 64, 1 << 14
_SAMPLED = 2_048
_MANY_TIMES = 16  # as many right cells as left ones, from which on it pays to thin them out
_COARSEST = 12  # a last group that is not whole is looked through key by key
_LANES = 3  # ends that are found at the same time


class Bands(NamedTuple):
    """The intervals in which left cells look for right ones.

    Cell c and run k meet the right keys from ``near[c] + first[k]`` to ``far[c] + last[k]``; neither ``near`` nor
    ``far`` ever falls from one cell to the next, and the runs of a cell come in order and share no key. ``skip[c]`` is
    the place among the right cells that c leaves out, or -1; it may be empty if no cell leaves one out.
    """

    near: Int64Array
    far: Int64Array
    first: Int64Array
    last: Int64Array
    skip: Int64Array = NO_SKIPS

    def part(self, begin: int, end: int) -> Bands:
        """Those of the cells from ``begin`` to before ``end``."""
        return self._replace(near=self.near[begin:end], far=self.far[begin:end], skip=self.skip[begin:end])

    def take(self, chosen: Int64Array) -> Bands:
        """Those of some cells, in their order."""
        near = self.near[chosen]
        far = near if self.far is self.near else self.far[chosen]
        return self._replace(near=near, far=far, skip=self.skip[chosen] if len(self.skip) else self.skip)

    @property
    def cells(self) -> int:
        return len(self.near)


class Block(NamedTuple):
    """Places of some cells: run k of the block's n-th cell is from ``starts[k, n]`` to before ``stops[k, n]``."""

    begin: int
    end: int
    starts: Array
    stops: Array
    skip: Int64Array


def walk(right: Int64Array, bands: Bands) -> Iterator[Block]:
    """The places of all cells, block by block; a block's arrays are used again for the next one."""
    runs = len(bands.first)
    if not bands.cells or not runs:
        return
    size = max(_FEWEST_CELLS, min(_MOST_CELLS, _PLACES // runs, bands.cells))
    keys, begins = _distinct(right)
    shift = _coarseness(len(keys), bands.cells)
    coarse = keys if not shift else np.ascontiguousarray(keys[(1 << shift) - 1 :: 1 << shift])
    ends = _Ends(np.concatenate([bands.first, bands.last + 1]), np.zeros(2 * runs, np.int64))
    found = np.empty((2 * runs, size), np.uint32 if len(right) < 2**32 else np.uint64)
    for begin in range(0, bands.cells, size):
        part = bands.part(begin, min(bands.cells, begin + size))
        if part.cells < size:
            found = np.empty((2 * runs, part.cells), found.dtype)
        _find(coarse, part.near, part.far, ends, found)
        if shift:
            _refine(keys, shift, part.near, part.far, ends, found)
        if begins is not None:
            _look_up(begins, found)
        starts, stops = found[:runs], found[runs:]
        np.maximum(starts, stops, out=stops)
        yield Block(begin, begin + part.cells, starts, stops, part.skip)


def expected_pairs(right: Int64Array, bands: Bands) -> float:
    """About how many right cells the left ones meet together, from some of them."""
    runs = len(bands.first)
    if not bands.cells or not runs:
        return 0.0
    some = slice(0, None, max(1, bands.cells * runs // _SAMPLED))
    near, far = bands.near[some], bands.far[some]
    starts = np.searchsorted(right, near[:, None] + bands.first, "left")
    stops = np.searchsorted(right, far[:, None] + bands.last, "right")
    return float(np.maximum(stops - starts, 0).sum()) * bands.cells / len(near)


def _coarseness(right: int, left: int) -> int:
    """By which power of two right cells are thinned out for the walk, where they are many times more than left ones."""
    return min(_COARSEST, (right // left).bit_length() // 3 * 3) if right >= _MANY_TIMES * left else 0


def _distinct(right: Int64Array) -> tuple[Int64Array, Int64Array | None]:
    """Right keys without their duplicates and where those of each begin, if duplicates seem to be the most of them."""
    if len(right) < _SAMPLED:
        return right, None
    some = np.arange(0, len(right) - 1, len(right) // _SAMPLED)
    if np.count_nonzero(right[some] == right[some + 1]) * 4 < 3 * len(some):
        return right, None
    return unique_keys(right)


class _Ends(NamedTuple):
    """Both ends of all runs: what each adds to a cell's bound, and the place up to which keys are known to be below."""

    added: Int64Array
    pointers: Int64Array


@kernel
def _find(keys: Array, near: Array, far: Array, ends: _Ends, found: Array) -> None:
    """For every end and cell, the first place that is not below the cell's bound with what the end adds."""
    count = len(ends.added)
    for first in range(0, count, _LANES):
        # Where ends do not make up a full set the last one is found again, for nothing.
        _merge_three(keys, near, far, ends, found, first, min(first + 1, count - 1), min(first + 2, count - 1))


@inner
def _merge_three(keys: Array, near: Array, far: Array, ends: _Ends, found: Array, k: int, m: int, n: int) -> None:
    """Three ends at a time, since every step waits for the one before: bounds in order are merged with keys in order.

    A step looks at two keys, passes those that are below, and is done with a cell if one is not. Which of it happens is
    as good as random, so it must not be a branch: a wrong guess costs as much as ten steps. Unsigned places need no
    look at whether they count from the end.
    """
    half = len(ends.added) // 2
    bounds_k, bounds_m, bounds_n = near if k < half else far, near if m < half else far, near if n < half else far
    added_k, added_m, added_n = ends.added[k], ends.added[m], ends.added[n]
    found_k, found_m, found_n = found[k], found[m], found[n]
    at_k, at_m, at_n = np.uint64(ends.pointers[k]), np.uint64(ends.pointers[m]), np.uint64(ends.pointers[n])
    zero, one, two = np.uint64(0), np.uint64(1), np.uint64(2)
    cell_k = cell_m = cell_n = zero
    cells, stop = np.uint64(len(near)), np.uint64(max(0, len(keys) - 1))
    while max(cell_k, max(cell_m, cell_n)) < cells and max(at_k, max(at_m, at_n)) < stop:
        bound_k, bound_m, bound_n = bounds_k[cell_k] + added_k, bounds_m[cell_m] + added_m, bounds_n[cell_n] + added_n
        below_k = np.uint64(keys[at_k] < bound_k) + np.uint64(keys[at_k + one] < bound_k)
        below_m = np.uint64(keys[at_m] < bound_m) + np.uint64(keys[at_m + one] < bound_m)
        below_n = np.uint64(keys[at_n] < bound_n) + np.uint64(keys[at_n + one] < bound_n)
        at_k, at_m, at_n = at_k + below_k, at_m + below_m, at_n + below_n
        found_k[cell_k], found_m[cell_m], found_n[cell_n] = at_k, at_m, at_n
        cell_k += np.uint64(below_k < two)
        cell_m += np.uint64(below_m < two)
        cell_n += np.uint64(below_n < two)
    ends.pointers[k] = _merge(keys, at_k, bounds_k, cell_k, added_k, found_k)
    ends.pointers[m] = _merge(keys, at_m, bounds_m, cell_m, added_m, found_m)
    ends.pointers[n] = _merge(keys, at_n, bounds_n, cell_n, added_n, found_n)


@inner
def _merge(keys: Array, at: int, bounds: Array, cell: int, added: int, found: Array) -> int:
    """The rest of one end: from a place and a cell on."""
    one, cells, stop = np.uint64(1), np.uint64(len(bounds)), np.uint64(len(keys))
    while cell < cells and at < stop:
        found[cell] = at
        below = np.uint64(keys[at] < bounds[cell] + added)
        at += below
        cell += one - below
    while cell < cells:
        found[cell] = stop
        cell += one
    return at


@kernel
def _refine(keys: Array, shift: int, near: Array, far: Array, ends: _Ends, found: Array) -> None:
    """From the number of whole groups of ``2**shift`` keys that lie below a bound to the place.

    A group is an eighth of the next larger one, and seven keys are compared at once: quicker than to halve a group
    three times, when each half depends on the one before.
    """
    count, whole = np.uint64(len(keys)), np.uint64(1) << np.uint64(shift)
    for end in range(len(ends.added)):
        bounds, added = near if 2 * end < len(ends.added) else far, ends.added[end]
        for cell in range(len(near)):
            bound, place = bounds[cell] + added, np.uint64(found[end, cell]) << np.uint64(shift)
            if place + whole > count:  # the last group, which is not a whole one
                while place < count and keys[place] < bound:
                    place += np.uint64(1)
            else:
                size = whole >> np.uint64(3)
                while size > np.uint64(1):
                    place += _below(keys, place + size - np.uint64(1), size, bound) * size
                    size >>= np.uint64(3)
                place += _below(keys, place, np.uint64(1), bound)
            found[end, cell] = place


@inner
def _below(keys: Array, place: int, step: int, bound: int) -> int:
    """How many of seven keys are below a bound."""
    result = np.uint64(0)
    for _ in range(7):
        result += np.uint64(keys[place] < bound)
        place += step
    return result  # type: ignore[return-value]


@kernel
def _look_up(begins: Array, found: Array) -> None:
    for end in range(len(found)):
        for cell in range(found.shape[1]):
            found[end, cell] = begins[np.uint64(found[end, cell])]
