"""Which right cells a box of left cells can have as partners, and the other way round."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.halo import UNLIMITED
from windrow.plan.join_terms import AxisMap

Int64Array = npt.NDArray[np.int64]
Span = tuple[int, int]

NOWHERE = 2**61
"""A coordinate so far away that no shape reaches back from it: that of a left cell that is not there."""


@dataclass(frozen=True)
class Piece:
    """Cells of a box; those read beyond the border of a periodic dimension are met at ``shift`` cells further on."""

    box: Box
    shift: tuple[int, ...]


def image(place: AxisMap, cells: Int64Array) -> Int64Array:
    """Where the shape is centred for each left cell."""
    return place.scale * cells // place.divisor + place.shift


def image_span(place: AxisMap, span: Span) -> Span:
    """The same for all cells of a range: the mapping never decreases."""
    first, last = (place.scale * end // place.divisor + place.shift for end in span)
    return first, last


def inverse_span(place: AxisMap, span: Span) -> Span:
    """The left cells that are mapped into a range."""
    lo, hi = span[0] - place.shift, span[1] - place.shift
    if place.divisor != 1:
        return lo * place.divisor, hi * place.divisor + place.divisor - 1
    return -(-lo // place.scale), hi // place.scale


@functools.lru_cache(maxsize=64)
def offset_spans(shape: BoundShape) -> tuple[Span, ...]:
    """Per dimension from which to which offset the shape's runs go; those in label units as far as cells can."""
    runs = shape.key_runs()
    found = list(zip(shape.start, shape.stop, strict=True))
    labelled = {one.axis for one in shape.labelled}
    for place, axis in enumerate(runs.axes):
        if axis in labelled:
            continue
        last = place == len(runs.axes) - 1
        low, high = (runs.first, runs.last) if last else (runs.leading[:, place], runs.leading[:, place])
        found[axis] = (int(low.min(initial=UNLIMITED)), int(high.max(initial=-UNLIMITED))) if len(low) else (0, -1)
    return tuple(found)


def partner_pieces(
    shape: BoundShape, mapping: Sequence[AxisMap | None], left: Mapping[str, Span], bounds: Box
) -> list[Piece]:
    """The right cells that left cells in the given ranges, by the key of each dimension, can have as partners."""
    pieces = [
        _axis_pieces(shape, axis, place, left, (bounds.lo[axis], bounds.hi[axis])) for axis, place in enumerate(mapping)
    ]
    found = []
    for one in itertools.product(*pieces):
        box = Box(tuple(lo for lo, _, _ in one), tuple(hi for _, hi, _ in one))
        found.append(Piece(box, tuple(shift for _, _, shift in one)))
    return found


def _axis_pieces(
    shape: BoundShape, axis: int, place: AxisMap | None, left: Mapping[str, Span], bounds: Span
) -> list[tuple[int, int, int]]:
    lo, hi = bounds
    if hi < lo:
        return []
    if place is None or shape.free[axis]:
        return [(lo, hi, 0)]
    start, stop = offset_spans(shape)[axis]
    first, last = image_span(place, left[place.cell.key])
    first, last = first + start, last + stop
    if last < first:
        return []
    if not shape.wraps[axis]:
        first, last = max(first, lo), min(last, hi)
        return [(first, last, 0)] if first <= last else []
    length = hi - lo + 1
    turns = range((first - lo) // length, (last - lo) // length + 1)
    shifts = [turn * length for turn in turns]
    return [(max(lo, first - shift), min(hi, last - shift), shift) for shift in shifts]


def reaching_spans(
    shape: BoundShape, mapping: Sequence[AxisMap | None], right: Box, left: Mapping[str, Span]
) -> dict[str, Span]:
    """The left cells, of those in the given ranges, that can have a partner in a box of right cells."""
    found = dict(left)
    for axis, place in enumerate(mapping):
        if place is None or shape.free[axis] or shape.wraps[axis]:
            continue
        start, stop = offset_spans(shape)[axis]
        lo, hi = inverse_span(place, (right.lo[axis] - stop, right.hi[axis] - start))
        known = found[place.cell.key]
        found[place.cell.key] = (max(lo, known[0]), min(hi, known[1]))
    return found
