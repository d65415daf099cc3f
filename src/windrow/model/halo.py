"""Which cells a neighbourhood reaches from a box: the arithmetic that windows and shapes share."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from windrow.errors import SchemaError
from windrow.model.box import Box

UNLIMITED = 2**62
"""An offset further than any array is long."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reach:
    """Per dimension the offsets from ``start`` to ``stop``, both inclusive, and whether the dimension is periodic.

    A periodic dimension's last cell is followed by its first. A neighbourhood is a set: a window wider than a
    periodic dimension holds each of its cells once.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    wrap: tuple[bool, ...]

    def halo(self, box: Box, bounds: Box) -> Box:
        """The smallest box that holds the cells reached from ``box``; whole in a dimension crossed at its border."""
        spans = self._spans(box & bounds, bounds)
        if not all(spans):
            return Box(bounds.lo, tuple(lo - 1 for lo in bounds.lo))
        lo = tuple(min(first for first, _ in pieces) for pieces in spans)
        return Box(lo, tuple(max(last for _, last in pieces) for pieces in spans))

    def partner_boxes(self, centres: Box, bounds: Box) -> list[Box]:
        """Disjoint boxes of exactly the cells reached from centres, which need not lie in the array.

        They come in the order of walking through the dilated box: where it leaves a periodic dimension at one
        border, the piece before the border precedes the piece after it.
        """
        pieces = itertools.product(*self._spans(centres, bounds))
        return [Box(tuple(lo for lo, _ in piece), tuple(hi for _, hi in piece)) for piece in pieces]

    def _spans(self, box: Box, bounds: Box) -> list[list[Span]]:
        if len(self.start) != box.ndim:
            raise SchemaError(f"a neighbourhood in {len(self.start)} dimensions needs such a box", got=box)
        if box.is_empty or bounds.is_empty:
            return [[] for _ in self.start]
        return [
            span(box.lo[d] + self.start[d], box.hi[d] + self.stop[d], (bounds.lo[d], bounds.hi[d]), self.wrap[d])
            for d in range(box.ndim)
        ]


def span(first: int, last: int, bounds: Span, wrap: bool) -> list[Span]:
    """The cells of a dimension between ``first`` and ``last``: clipped to its bounds, or wrapped into them."""
    lo, hi = bounds
    if not wrap:
        first, last = max(first, lo), min(last, hi)
        return [(first, last)] if first <= last else []
    extent, length = hi - lo + 1, last - first + 1
    if length >= extent:
        return [(lo, hi)]
    first = lo + (first - lo) % extent
    last = first + length - 1
    return [(first, last)] if last <= hi else [(first, hi), (lo, last - extent)]


def one_turn(lo: int, hi: int, extent: int) -> Span:
    """The part of a range of offsets that holds, once, the nearest way in it to each cell of a periodic dimension.

    In an even extent n the offsets n/2 and -n/2 are one cell, so that a range from the one to the other is too long.
    """
    if hi - lo < extent:
        return lo, hi
    if lo <= -((extent - 1) // 2) and hi >= (extent - 1) // 2:
        return canonical_turn(lo, hi, extent)
    return (lo, lo + extent - 1) if -lo < hi else (hi - extent + 1, hi)


def canonical_turn(lo: int, hi: int, extent: int) -> Span:
    """The same cells of a periodic dimension by the offsets around 0, where only cells count and not ways to them."""
    if hi - lo + 1 >= extent:
        return -((extent - 1) // 2), extent // 2
    turns = -((extent - lo - hi) // (2 * extent))
    return lo - turns * extent, hi - turns * extent


def check_wrap(names: Sequence[str], growing: Sequence[bool], wrapped: Sequence[bool]) -> None:
    """Refuse a periodic dimension that has no end."""
    for name, grows, wraps in zip(names, growing, wrapped, strict=True):
        if grows and wraps:
            raise SchemaError("a growing dimension cannot wrap", got=name, hint="Give it a last cell, as in lon=0:359")


def whole_number(value: object, what: str) -> int:
    """``value`` as an int, from any kind of integer but bool."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise SchemaError(f"{what} must be an integer", got=repr(value))
