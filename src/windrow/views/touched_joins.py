"""Which cells of a join's first array have other partners than before, or partners with other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from windrow.expressions.nodes import Column
from windrow.model.box import Box
from windrow.model.halo import UNLIMITED
from windrow.model.run_shape import shape_difference
from windrow.operations.join.reach import Piece, Span, partner_pieces, reaching_spans
from windrow.operations.join.sky import SkyReach
from windrow.plan.bound import Bound, BoundJoin, makes_pairs, side_name
from windrow.views.regions import MOST_CLUSTERS, merge_boxes

Changed = Mapping[str, Sequence[Box]]
Find = Callable[[Bound, Bound, Changed], list[Box]]


def touched_left(before: BoundJoin, after: BoundJoin, changed: Changed, find: Find) -> list[Box]:
    """Boxes of the first array's cells: those that changed, and those that changed right cells are within reach of."""
    if makes_pairs(before.left) and makes_pairs(after.left):
        found = touched_left(before.left, after.left, changed, find)
    else:
        found = find(before.left, after.left, changed)
    mutual = after.nearest is not None and after.nearest.mutual
    if mutual:  # a cell that comes or goes also changes what others are to the partners they share
        found += [box for join in (before, after) for changed_box in found for box in _compared(join, changed_box)]
    joins = (after,) if _reach_alike(before, after) else (before, after)
    moved = find(before.right, after.right, changed)
    found += [near for box in moved for join in joins for near in reaching_boxes(join, box)]
    whole = before.sides[0].box | after.sides[0].box
    if after.shape.stored and before.offsets.lists != after.offsets.lists:
        found += [whole] if mutual else _reshaped(before, after)
    return merge_boxes(box & whole for box in found)


def _reach_alike(before: BoundJoin, after: BoundJoin) -> bool:
    """Whether right cells are within reach of the same left cells as before."""
    if makes_pairs(before.left) or makes_pairs(after.left):
        return False
    return (
        before.offsets == after.offsets
        and before.mapping == after.mapping
        and before.left.box == after.left.box
        and before.sky == after.sky
    )


def _reshaped(before: BoundJoin, after: BoundJoin) -> list[Box]:
    """The left cells that can have a partner, or could, at an offset that is in one of the shapes alone."""
    found = []
    for join, other in ((before, after), (after, before)):
        anything = [(-UNLIMITED, UNLIMITED)] * join.offsets.ndim
        alone = shape_difference(join.offsets, other.offsets, anything)
        runs = [replace(alone, rows_of_runs=(run,)) for run in alone.rows_of_runs]
        each = runs if len(runs) <= MOST_CLUSTERS else [alone]
        found += [near for shape in each for near in reaching_boxes(replace(join, offsets=shape), join.right.box)]
    return found


def reaching_boxes(join: BoundJoin, box: Box) -> list[Box]:
    """The first array's cells that can have a partner in a box of right cells."""
    if join.sky is None:
        return [_first_cells(join, reaching_spans(join.offsets, join.mapping, box, _spans(join.left)))]
    whole = join.sides[0].box
    if makes_pairs(join.left):  # rows of several cells may come from anywhere
        return [whole]
    spans = reaching_spans(join.offsets, join.mapping, box, _spans(join.left))
    here = Box(tuple(lo for lo, _ in spans.values()), tuple(hi for _, hi in spans.values()))
    if here.is_empty:
        return []
    back = SkyReach.of(join.sky, join.left, join.right).reflect()
    return [here] if back is None else [piece.box for piece in back.expected(box, [Piece(here, (0,) * here.ndim)])]


def _first_cells(join: BoundJoin, spans: Mapping[str, Span]) -> Box:
    """The first array's cells whose rows can lie in the given ranges."""
    left = join.left
    if not makes_pairs(left):
        names = [Column(name, side_name(1)).key for name in left.schema.dimension_names]
        return Box(tuple(spans[name][0] for name in names), tuple(spans[name][1] for name in names))
    side = side_name(len(left.sides))
    own = [spans[f"{side}.{name}"] for name in left.right.schema.dimension_names]
    box = Box(tuple(lo for lo, _ in own), tuple(hi for _, hi in own))
    if left.sky is not None:
        return left.sides[0].box
    before = {key: span for key, span in spans.items() if not key.startswith(f"{side}.")}
    return _first_cells(left, reaching_spans(left.offsets, left.mapping, box, before))


def _spans(left: Bound) -> dict[str, Span]:
    """The ranges of all coordinates of a join's left side, by key."""
    sides = left.sides if makes_pairs(left) else (left,)
    return {
        f"{side_name(number)}.{name}": (lo, hi)
        for number, side in enumerate(sides, 1)
        for name, lo, hi in zip(side.schema.dimension_names, side.box.lo, side.box.hi, strict=True)
    }


def _compared(join: BoundJoin, box: Box) -> list[Box]:
    """The left cells that can have partners in common with those in a box."""
    if makes_pairs(join.left):
        return [join.sides[0].box]
    names = join.left.schema.dimension_names
    spans = {Column(n, side_name(1)).key: s for n, s in zip(names, zip(box.lo, box.hi, strict=True), strict=True)}
    pieces = partner_pieces(join.offsets, join.mapping, spans, join.right.box)
    if join.sky is not None:
        pieces = SkyReach.of(join.sky, join.left, join.right).expected(box, pieces)
    return [near for piece in pieces for near in reaching_boxes(join, piece.box)]
