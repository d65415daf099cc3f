"""Which lists to merge so that neighbouring windows share work: a tile of outputs, split until it is one output.

The cells that all windows of a tile have in common are sorted once. Halving the tile adds a slab of cells to what is
common, and ranks that can no longer be the answer are dropped (Adams, "Fast median filters using separable sorting
networks", 2021, and its hierarchical successor).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from windrow.kernels.order.networks import Network

Span = tuple[int, int]  # cells or outputs from the first to the last, which is excluded
Box = tuple[Span, ...]


@dataclass(frozen=True)
class Tile:
    """Windows of ``width`` cells per axis at ``outputs`` neighbouring positions per axis, ``step`` cells apart."""

    width: tuple[int, ...]
    outputs: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def cells(self) -> tuple[int, ...]:
        """How many input cells the tile reads, per axis."""
        return tuple(w + (n - 1) * s for w, n, s in zip(self.width, self.outputs, self.step, strict=True))

    def common(self, part: Box) -> Box:
        """The cells that the windows of all outputs in ``part`` have in common."""
        return tuple(
            ((last - 1) * s, first * s + w)
            for (first, last), w, s in zip(part, self.width, self.step, strict=True)
        )  # fmt: skip


def size(box: Box) -> int:
    return prod(max(0, last - first) for first, last in box)


class TileNetwork:
    """The network that finds ranks ``first`` to ``last`` (excluded) in every window of a tile.

    ``results[k]`` are the nodes of those ranks for the k-th output in C order. Inputs are the tile's cells in C order.
    """

    def __init__(self, tile: Tile, first: int, last: int, order: Sequence[int] = ()) -> None:
        self.tile, self.first, self.last = tile, first, last
        self.network = Network(prod(tile.cells))
        self.results: list[list[int]] = [[]] * prod(tile.outputs)
        self._sorted: dict[Box, list[int]] = {}
        self._order = list(order)
        whole: Box = tuple((0, n) for n in tile.outputs)
        self._halve(whole, None, [], 0)

    def _keep_ranks(self, core: Box, one: list[int], other: list[int], dropped: int) -> list[int]:
        """The ranks of the cells of ``core`` that can still matter.

        Two sorted lists hold those cells together, but for so many that were dropped because they were too small.
        """
        first, last = self._ranks(core)
        return self.network.merge_ranks(one, other, first - dropped, last - dropped)

    def _ranks(self, core: Box) -> Span:
        rest = prod(self.tile.width) - size(core)
        return max(0, self.first - rest), min(size(core), self.last)

    def _halve(self, part: Box, outer: Box | None, nodes: list[int], depth: int) -> None:
        """Find the ranks for the outputs in ``part``; ``nodes`` are what is left of the cells of ``outer``."""
        core = self.tile.common(part)
        if size(core) > 0 and core != outer:
            if outer is None:
                nodes = self._keep_ranks(core, self.sort_cells(core), [], 0)
            else:
                nodes = self._keep_ranks(core, nodes, self.sort_cells(_slab(outer, core)), self._ranks(outer)[0])
            outer = core
        if size(part) == 1:
            self.results[self._number(part)] = nodes
            return
        axis = self._split_axis(part, depth)
        first, last = part[axis]
        middle = (first + last + 1) // 2
        for half in ((first, middle), (middle, last)):
            self._halve(_with(part, axis, half), outer, nodes, depth + 1)

    def _split_axis(self, part: Box, depth: int) -> int:
        extents = [last - first for first, last in part]
        if depth < len(self._order) and extents[self._order[depth]] > 1:
            return self._order[depth]
        return max(range(len(part)), key=lambda axis: extents[axis])

    def _number(self, part: Box) -> int:
        number = 0
        for (first, _), count in zip(part, self.tile.outputs, strict=True):
            number = number * count + first
        return number

    def sort_cells(self, box: Box) -> list[int]:
        """The sorted cells of a box; halves are cut at round numbers so that other boxes find them again."""
        known = self._sorted.get(box)
        if known is None:
            if size(box) == 1:
                known = [self._cell(box)]
            else:
                one, other = _halves(box)
                known = self.network.merge(self.sort_cells(one), self.sort_cells(other))
            self._sorted[box] = known
        return known

    def _cell(self, box: Box) -> int:
        number = 0
        for (first, _), count in zip(box, self.tile.cells, strict=True):
            number = number * count + first
        return number

    def outputs(self) -> list[int]:
        return list(itertools.chain.from_iterable(self.results))


def _with(box: Box, axis: int, span: Span) -> Box:
    """The box with another span along one axis."""
    return (*box[:axis], span, *box[axis + 1 :])


def _slab(core: Box, wider: Box) -> Box:
    """What ``wider`` has beyond ``core``, at one of its two ends along one axis."""
    axis = next(k for k in range(len(core)) if core[k] != wider[k])
    span = (wider[axis][0], core[axis][0]) if wider[axis][0] < core[axis][0] else (core[axis][1], wider[axis][1])
    return _with(core, axis, span)


def _halves(box: Box) -> tuple[Box, Box]:
    # The last axis is cut last: its lists serve all boxes of a tile, whose outputs lie along the other axes.
    outer = [axis for axis in range(len(box) - 1) if box[axis][1] - box[axis][0] > 1]
    axis = max(outer, key=lambda a: box[a][1] - box[a][0]) if outer else len(box) - 1
    first, last = box[axis]
    middle = _round_number(first + (last - first + 1) // 2, first, last)
    return _with(box, axis, (first, middle)), _with(box, axis, (middle, last))


def _round_number(near: int, first: int, last: int) -> int:
    """A cut inside the span, close to ``near``, divisible by the largest possible power of two."""
    span = last - first
    best = near
    power = 1
    while power < span:
        low, high = near // power * power, -(-near // power) * power
        for cut in (low, high):
            if first < cut < last and abs(cut - near) * 4 <= span:
                best = cut
        power *= 2
    return best
