"""Which cells of two arrays a join pairs: where shapes are centred, by which labels, how near, how far on the sky."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.expressions.nodes import Column, Node
from windrow.model.labels import Labels


@dataclass(frozen=True)
class AxisMap:
    """Where a shape is centred along a right dimension: at ``scale * cell // divisor + shift`` of a left cell."""

    cell: Column
    scale: int = 1
    divisor: int = 1
    shift: int = 0

    @property
    def is_identity(self) -> bool:
        return (self.scale, self.divisor, self.shift) == (1, 1, 0)

    def at(self, cell: int) -> int:
        """Where the shape is centred for a left cell of this number."""
        return self.scale * cell // self.divisor + self.shift


@dataclass(frozen=True)
class AxisLabels:
    """The labels by which a range in label units is measured along a right dimension: of the cells from ``first`` on.

    They are those of both sides, for a shape may be centred where the right array has no cell, and its own labels may
    have been cut by a selection.
    """

    axis: int
    first: int
    labels: Labels


@dataclass(frozen=True)
class BoundNearest:
    """Which of a left cell's pairs stay: the ``count`` with the smallest ``by``.

    ``by`` is an expression over the pairs, None for their distance. Of equal pairs those stay whose right cells come
    first in coordinate order; pairs for which it is missing come last. ``mutual`` keeps the pairs that are the first
    of their left cell, and the first of their right cell among the left cells that have it as a partner.
    """

    count: int
    by: Node | None = None
    mutual: bool = False


@dataclass(frozen=True)
class BoundSky:
    """Pairs no more than ``radius`` degrees apart on the sphere.

    ``left_ra`` and its kin are expressions over the pairs that give the exact coordinates in degrees: an attribute, or
    the label of a cell. ``axes`` are the right dimensions of right ascension (longitude) and declination (latitude).
    """

    radius: float
    axes: tuple[int, int]
    left_ra: Node
    left_dec: Node
    right_ra: Node
    right_dec: Node
