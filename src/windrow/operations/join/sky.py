"""Partners on the sky: by the great-circle distance of exact coordinates, whatever cells these lie in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from windrow.expressions.nodes import Node
from windrow.kernels.contract.listing import in_shares
from windrow.kernels.sparse.sky import sky_shares
from windrow.kernels.sparse.sorting import sort_keys
from windrow.model.box import Box
from windrow.model.gridding import Axis
from windrow.operations.join.partners import NOTHING, Share, own_cells
from windrow.operations.join.reach import Piece
from windrow.operations.join.rows import Rows
from windrow.plan.bound import Bound
from windrow.plan.join_terms import BoundSky

if TYPE_CHECKING:
    from windrow.model.bound_shape import BoundShape
    from windrow.operations.join.pairs import Meeting

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
Span = tuple[int, int]
Range = tuple[float, float]
Region = tuple[Range, Range]
"""Ranges of right ascension and of declination."""

GriddedAxis = tuple[int, Axis]

_NARROW = 360 / 64
"""Degrees of right ascension that a circle reaches on each side, beyond which it is looked at apart from others."""


@dataclass(frozen=True)
class SkyReach:
    """How far partners are on the sky, and the grids of both sides' angles, where they have any."""

    sky: BoundSky
    grids: tuple[Axis | None, Axis | None]
    left: tuple[GriddedAxis, GriddedAxis] | None = None
    """The dimensions of the first array that are its angles."""

    @classmethod
    def of(cls, sky: BoundSky, left: Bound | None, right: Bound) -> SkyReach:
        names = [right.schema.dimension_names[axis] for axis in sky.axes]
        first, second = (_axis(right, name) for name in names)
        mine = [
            (left.schema.axis(name), axis)
            for name in names
            if left is not None and (axis := _axis(left, name)) is not None
        ]
        return cls(sky, (first, second), (mine[0], mine[1]) if len(mine) == 2 else None)

    def reflect(self) -> SkyReach | None:
        """How far left cells are from right ones; None where nothing tells which left cells lie where."""
        if self.left is None:
            return None
        (first, ra), (second, dec) = self.left
        sky, own = self.sky, self.grids
        turned = BoundSky(sky.radius, (first, second), sky.right_ra, sky.right_dec, sky.left_ra, sky.left_dec)
        known = None if own[0] is None or own[1] is None else ((sky.axes[0], own[0]), (sky.axes[1], own[1]))
        return SkyReach(turned, (ra, dec), known)

    @property
    def share(self) -> float:
        """Which part of the whole sky lies within the radius of a place."""
        return (1.0 - math.cos(math.radians(self.sky.radius))) / 2.0

    def narrowed(self, rows: Rows, pieces: Sequence[Piece]) -> list[Piece]:
        """The boxes of right cells, as far as partners of these rows can lie in them."""
        ra, dec = self._left(rows)
        known = np.isfinite(ra) & np.isfinite(dec)
        regions = []
        for low, high in self._zones():
            here = known & (dec >= low) & (dec <= high)
            if here.any():
                east, north = ra[here], dec[here]
                regions.append(((float(east.min()), float(east.max())), (float(north.min()), float(north.max()))))
        return self._around(regions, pieces)

    def expected(self, box: Box, pieces: Sequence[Piece]) -> list[Piece]:
        """About the same for all rows whose first cell lies in a box, before anything is read."""
        if self.left is None:
            return list(pieces)
        ra, dec = (_angles(grid, box.lo[axis], box.hi[axis]) for axis, grid in self.left)
        zones = [(max(low, dec[0]), min(high, dec[1])) for low, high in self._zones()]
        return self._around([(ra, zone) for zone in zones if zone[0] <= zone[1]], pieces)

    def _zones(self) -> list[Range]:
        """Declinations with circles that reach about as far around the sky.

        A circle at a pole reaches all around, and would make a strip of the sky from pole to pole need all of it.
        """
        ratio = math.sin(math.radians(min(self.sky.radius, 90.0))) / math.sin(math.radians(_NARROW))
        border = math.degrees(math.acos(min(1.0, ratio))) - self.sky.radius
        if border <= 0:
            return [(-math.inf, math.inf)]
        return [(-math.inf, -border), (-border, border), (border, math.inf)]

    def _around(self, regions: Sequence[Region], pieces: Sequence[Piece]) -> list[Piece]:
        """The boxes of right cells that can be partners of places in some regions; no two have a cell in common."""
        found = []
        first, second = self.sky.axes
        for piece in pieces:
            ends = list(zip(piece.box.lo, piece.box.hi, strict=True))
            reached = [self._right_spans(ra, dec, (ends[first], ends[second])) for ra, dec in regions]
            for span, across in _apart(reached):
                ends[first], ends[second] = span, across
                found.append(replace(piece, box=Box(*zip(*ends, strict=True))))
        return found

    def nodes(self) -> list[Node]:
        """The expressions that give exact coordinates."""
        return [self.sky.left_ra, self.sky.left_dec, self.sky.right_ra, self.sky.right_dec]

    def distances(self, rows: Rows, cells: Rows) -> SkyDistances:
        return SkyDistances(*self._left(rows), *self._right(cells))

    def _left(self, rows: Rows) -> tuple[Float64Array, Float64Array]:
        return _degrees(rows, self.sky.left_ra), _degrees(rows, self.sky.left_dec)

    def _right(self, cells: Rows) -> tuple[Float64Array, Float64Array]:
        return _degrees(cells, self.sky.right_ra), _degrees(cells, self.sky.right_dec)

    def _right_spans(self, ra: Range, dec: Range, bounds: tuple[Span, Span]) -> tuple[list[Span], Span]:
        """The right cells along both angles that can be partners: some ranges of the first, one of the second."""
        radius = self.sky.radius
        low, high = dec[0] - radius, dec[1] + radius
        across = _cells(self.grids[1], low, high, bounds[1])
        half = _half_width(max(abs(low), abs(high)), radius)
        first, last = ra[0] - half, ra[1] + half
        if half >= 180 or last - first >= 360:
            return [bounds[0]], across
        around = [_cells(self.grids[0], first + turn, last + turn, bounds[0]) for turn in (-720, -360, 0, 360, 720)]
        return _merged([span for span in around if span[0] <= span[1]]), across

    def pairs(self, meeting: Meeting, shape: BoundShape) -> Iterator[Share]:
        """The pairs of some left rows at a time, of which also the other dimensions are right."""
        left, right = [NOTHING], [NOTHING]
        for found in sky_shares(*self._left(meeting.rows), *self._right(meeting.cells.rows), self.sky.radius):
            mine, theirs = _in_other_dimensions(meeting, shape, self.sky.axes, found.left, found.right)
            left.append(mine)
            right.append(theirs)
        yield from _by_rows(np.concatenate(left), np.concatenate(right), meeting.rows.length)


@dataclass(frozen=True, eq=False)
class SkyDistances:
    """Great-circle distances in degrees."""

    left_ra: Float64Array
    left_dec: Float64Array
    right_ra: Float64Array
    right_dec: Float64Array

    def __call__(self, left: Int64Array, right: Int64Array) -> Float64Array:
        return _great_circle(self.left_ra[left], self.left_dec[left], self.right_ra[right], self.right_dec[right])


def _axis(bound: Bound, name: str) -> Axis | None:
    known = bound.gridding
    here = known is not None and name in known.names and name in bound.schema.dimension_names
    return known.axis(name) if known is not None and here else None


def _angles(grid: Axis, lo: int, hi: int) -> Range:
    """Where the coordinates in a range of cells begin and end."""
    step, start = float(grid.step), float(grid.low)
    return start + (lo - grid.first) * step, start + (hi + 1 - grid.first) * step


def _great_circle(ra: Float64Array, dec: Float64Array, ra2: Float64Array, dec2: Float64Array) -> Float64Array:
    """Vincenty's form of the angle between two places, which is exact for the smallest and the largest alike."""
    south, north, turn = np.radians(dec), np.radians(dec2), np.radians(ra2 - ra)
    across = np.cos(north) * np.sin(turn)
    along = np.cos(south) * np.sin(north) - np.sin(south) * np.cos(north) * np.cos(turn)
    beside = np.sin(south) * np.sin(north) + np.cos(south) * np.cos(north) * np.cos(turn)
    return np.asarray(np.degrees(np.arctan2(np.hypot(across, along), beside)), np.float64)


def _by_rows(left: Int64Array, right: Int64Array, rows: int) -> Iterator[Share]:
    """Pairs in shares that have all pairs of a left row."""
    # A task has no more than 2^31 rows or cells, so that both numbers fit into one.
    digits = int(right.max(initial=0)).bit_length()
    keys, _ = sort_keys(left << digits | right, rows.bit_length() + digits)
    left, right = keys >> digits, keys & (1 << digits) - 1
    counts = np.bincount(left, minlength=rows)
    ends = np.cumsum(counts)
    for begin, end in in_shares(counts):
        pairs = slice(int(ends[begin] - counts[begin]), int(ends[end - 1]))
        yield np.arange(begin, end), left[pairs], right[pairs]


def _degrees(rows: Rows, node: Node) -> Float64Array:
    """Exact coordinates; NaN where they are missing, which is near nothing."""
    column = rows.values(node)
    values = column.values.astype(np.float64)
    return values if column.present is None else np.where(column.present, values, np.nan)


def _half_width(dec: float, radius: float) -> float:
    """How far along the first angle a circle reaches whose centre lies no further from the equator than ``dec``."""
    if dec >= 90 or radius >= 90:
        return 180.0
    ratio = math.sin(math.radians(radius)) / math.cos(math.radians(dec))
    return 180.0 if ratio >= 1 else math.degrees(math.asin(ratio)) * (1 + 1e-9)


def _cells(grid: Axis | None, low: float, high: float, bounds: Span) -> Span:
    """The cells that hold coordinates of a range; all of them where there is no grid to tell by."""
    if grid is None:
        return bounds
    step, start = float(grid.step), float(grid.low)
    # A cell more on each side, for what rounding may cost.
    first = grid.first + math.floor((low - start) / step) - 1
    last = grid.first + math.floor((high - start) / step) + 1
    return max(first, bounds[0]), min(last, bounds[1])


def _merged(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _apart(reached: Sequence[tuple[list[Span], Span]]) -> list[tuple[Span, Span]]:
    """Ranges along the first angle, each with its one range along the second, as boxes that do not overlap."""
    cuts = sorted({cut for _, (low, high) in reached if low <= high for cut in (low, high + 1)})
    found: list[tuple[list[Span], Span]] = []
    for low, end in itertools.pairwise(cuts):
        here = _merged(
            [span for around, across in reached if across[0] <= low < end <= across[1] + 1 for span in around]
        )
        if found and found[-1][0] == here and found[-1][1][1] == low - 1:
            low = found.pop()[1][0]
        found.append((here, (low, end - 1)))
    return [(span, across) for around, across in found for span in around]


def _in_other_dimensions(
    meeting: Meeting, shape: BoundShape, sky_axes: tuple[int, int], left: Int64Array, right: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The pairs whose offsets along the other dimensions are in the shape."""
    offsets = [np.zeros(len(left), np.int64) for _ in meeting.centres]
    for axis, centre in enumerate(meeting.centres):
        if centre is not None and axis not in sky_axes and not shape.free[axis]:
            offsets[axis] = meeting.cells.at[axis][right] - centre[left]
    kept = replace(shape, excludes_self=False).mask(offsets)
    if shape.excludes_self:
        kept &= own_cells(shape, meeting.centres, meeting.cells.at)[left] != right
    return left[kept], right[kept]
