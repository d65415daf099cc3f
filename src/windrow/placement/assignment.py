"""Static assignments: the home of a chunk from its place in the grid alone, before anything is planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, UnknownNameError, nearest
from windrow.placement.problem import NOWHERE, Int32Array, Int64Array

TILE = 3
"""Chunks along each side of a tile; of widths 1, 2, 3 and 5 the best."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


def assign(
    name: str, numbers: npt.ArrayLike, nodes: int, narrow: Sequence[int] | None = None, before: int = 0
) -> Int32Array:
    """The node of each chunk by an assignment of this name.

    ``numbers`` are the chunks' places in the grid, a row for each. ``narrow`` are the dimensions along which the shape
    of the view reaches only neighbouring chunks; ``curve`` and ``tiles`` look at these alone, so that chunks which
    are joined with each other lie together. All are narrow unless said. ``round_robin`` goes on after the chunks that
    were assigned ``before``.

    >>> assign("tiles", [[0, 0], [2, 2], [0, 9]], 8).tolist()
    [4, 4, 2]
    """
    if name not in ASSIGNMENTS:
        raise UnknownNameError("no such assignment", got=name, hint=nearest(name, ASSIGNMENTS))
    if nodes < 1:
        raise DataError("an assignment needs at least one node", got=nodes)
    grid = np.asarray(numbers, np.int64)
    if grid.ndim != 2:
        raise DataError("chunks are given as rows of their numbers in the grid", got=f"{grid.ndim} dimensions")
    kept = list(range(grid.shape[1])) if narrow is None else list(narrow)
    return ASSIGNMENTS[name](_Given(grid, nodes, kept, before)).astype(np.int32)


class _Given(NamedTuple):
    grid: Int64Array
    nodes: int
    narrow: list[int]
    before: int


def _round_robin(given: _Given) -> Int64Array:
    """In row-major order, node after node, as in paper 004's Fig. 1."""
    order = np.lexsort(given.grid.T[::-1])
    found = np.empty(len(order), np.int64)
    found[order] = (given.before + np.arange(len(order))) % given.nodes
    return found


def _hash(given: _Given) -> Int64Array:
    return _scatter(given.grid, given.nodes)


def _curve(given: _Given) -> Int64Array:
    """Equal ranges of a space-filling curve (Z order), so that neighbours share a node."""
    place = _interleave(given.grid[:, given.narrow])
    order = np.lexsort([*given.grid.T[::-1], place])
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) * given.nodes // max(1, len(order))
    return found


def _tiles(given: _Given) -> Int64Array:
    """A hash of the tile: neighbours are mostly together, and neighbourhoods are spread over all nodes."""
    return _scatter(given.grid[:, given.narrow] // TILE, given.nodes)


ASSIGNMENTS: dict[str, Callable[[_Given], Int64Array]] = {
    "round_robin": _round_robin,
    "hash": _hash,
    "curve": _curve,
    "tiles": _tiles,
}


def _scatter(grid: Int64Array, nodes: int) -> Int64Array:
    """A node from a hash of a row, the same on every machine."""
    mixed = np.full(len(grid), _ODD)
    for column in grid.T:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(nodes)).astype(np.int64)


def _interleave(grid: Int64Array) -> npt.NDArray[np.uint64]:
    """The bits of all numbers in turn; of each as many as fit."""
    place = np.zeros(len(grid), np.uint64)
    if not grid.size:
        return place
    low = grid.min(axis=0)
    width = grid.shape[1]
    for bit in range(64 // width):
        for column in range(width):
            digit = ((grid[:, column] - low[column]) >> bit) & 1
            place |= digit.astype(np.uint64) << np.uint64(bit * width + column)
    return place


def renumber_homes(homes: npt.ArrayLike, before: Sequence[object], now: Sequence[object]) -> Int32Array:
    """Homes as numbers of the nodes that are there now; what was at home on a node that left has no home.

    >>> renumber_homes([0, 1, 2, -1], ["a", "b", "c"], ["c", "d", "a"]).tolist()
    [2, -1, 0, -1]
    """
    if len(set(now)) < len(now) or len(set(before)) < len(before):
        raise DataError("a node is listed twice", got=list(now))
    places = {name: number for number, name in enumerate(now)}
    table = np.array([*(places.get(name, NOWHERE) for name in before), NOWHERE], np.int32)
    old = np.asarray(homes, np.int64)
    if len(old) and (old.min() < NOWHERE or old.max() >= len(before)):
        raise UnknownNameError(
            "a home is on a node that was never there", got=int(old[(old >= len(before)) | (old < NOWHERE)][0])
        )
    return table[old]
