"""Aggregates over pairs from a view with the same pairs, or with those of another shape.

The results of the query are those of the view, plus the pairs in the query's shape alone, less those in the view's
shape alone. What is only added may be of any aggregate that can be joined from parts. What is taken away must be
whole numbers: taking a float out of a sum leaves the error that it came in with.
"""

from __future__ import annotations

from dataclasses import replace

from windrow.aggregates.aggregate import Aggregate
from windrow.errors import SchemaError
from windrow.expressions.types import check
from windrow.model.bound_shape import BoundShape
from windrow.model.run_shape import RunShape, shape_difference
from windrow.model.types import TYPES
from windrow.operations.join.build import is_by_cell
from windrow.operations.join.chunks import stored_scan
from windrow.operations.join.reach import image_span
from windrow.plan.attributes import paired_attribute
from windrow.plan.bound import Bound, BoundAdjusted, BoundJoin, BoundJoined, BoundSelection, makes_pairs, side_name
from windrow.plan.pairs import sided_types
from windrow.views.answering.candidates import Candidate
from windrow.views.answering.cores import Core, RowForm, Topped
from windrow.views.answering.serving import (
    NotServedError,
    Part,
    Served,
    UnlikeError,
    column_for,
    parts_for,
    read_columns,
    serve_as_it_is,
)

Span = tuple[int, int]


def serve_joined(step: Bound, core: Core, view: Candidate, topped: Topped) -> Served:
    """Aggregates over pairs from a view of the same pairs, or of those of another shape."""
    mine, theirs = core.step, topped.core.step
    assert isinstance(mine, BoundJoined)
    assert isinstance(theirs, BoundJoined)
    _check_alike(mine, theirs, core.rows, topped.core.rows)
    if mine.source.offsets == theirs.source.offsets:
        return serve_as_it_is(step, core, view, topped)
    if view.stale is not None:
        raise NotServedError("it is stale, and its results cannot be joined with those of the present")
    if isinstance(step, BoundSelection):
        raise UnlikeError("another shape is looked at without the selection above it")
    return _adjusted(mine, theirs, core, view, topped)


def _check_alike(mine: BoundJoined, theirs: BoundJoined, rows: RowForm, kept: RowForm) -> None:
    """All but the shape must be the same; of the left cells, each with a result of its own, some may be left out."""
    join, other = mine.source, theirs.source
    if makes_pairs(join.left) or makes_pairs(other.left):
        if join != other or mine.groups != theirs.groups:
            raise NotServedError("it is another chain of joins")
    elif is_by_cell(mine) and not (join.nearest is not None and join.nearest.mutual):
        if not rows.same_but_box(kept) or rows.outputs != kept.outputs or rows.box not in kept.box:
            raise NotServedError("it is over other cells")
    elif join.left != other.left:
        raise NotServedError("it is over other cells")
    if mine.groups != theirs.groups or mine.step != theirs.step:
        raise NotServedError("it is grouped in another way")
    if join.right != other.right:
        raise NotServedError("it joins other cells")
    if (join.kind, join.mapping, join.condition, join.where) != (
        other.kind,
        other.mapping,
        other.condition,
        other.where,
    ):
        raise NotServedError("it joins in another way")
    if join.nearest != other.nearest or join.sky != other.sky:
        raise NotServedError("it keeps other pairs")
    if join.distance_axes and join.distance_axes != other.distance_axes:
        raise NotServedError("it measures distances along other dimensions")
    if join.offsets.labelled and join.axis_labels != other.axis_labels:
        raise NotServedError("its ranges are measured by other labels")
    if mine.min_count != theirs.min_count:
        raise NotServedError("it has another min count")


# Another shape


def _adjusted(mine: BoundJoined, theirs: BoundJoined, core: Core, view: Candidate, topped: Topped) -> Served:
    join, other = mine.source, theirs.source
    _check_adjustable(mine)
    if topped.box != theirs.box:
        raise NotServedError("it has a part of the results only")
    added, taken = _differences(join, other)
    parts = parts_for(core, topped, adds_only=taken is None)
    if taken is not None:
        _check_whole(core, mine)
        if join.kind == "inner":
            counted = column_for(core, Aggregate("count", None), topped)
            if counted is None:
                raise NotServedError("it has no count(*) by which to tell cells that lose all pairs")
            parts["count"] = Part(Aggregate("count", None), counted)
    return Served(_patched(mine, view, parts, added, taken), _how(added, taken))


def _check_adjustable(mine: BoundJoined) -> None:
    join = mine.source
    if join.sky is not None:
        raise NotServedError("distances on the sky are never answered from another radius")
    if join.nearest is not None:
        raise NotServedError("which pairs are nearest depends on the whole shape")
    if join.kind == "left" and join.where is not None:
        raise NotServedError("where decides which cells without a pair stay")
    if mine.min_count:
        raise NotServedError("results of few values are missing, which the view does not tell")
    if not mine.schema.sparse:
        raise NotServedError("shapes on dense arrays are swept, which is faster than adding and taking away")
    if any(stored_scan(side) is None for side in join.sides):
        raise NotServedError("what is joined is itself computed")


def _differences(join: BoundJoin, other: BoundJoin) -> tuple[RunShape | None, RunShape | None]:
    """The pairs that the query has besides, and those that it has not; None if there are none."""
    one, two = join.offsets, other.offsets
    if one.excludes_self != two.excludes_self:
        raise NotServedError("one of the shapes leaves out the cell itself, the other does not")
    within = _possible(join)
    try:
        found = [shape_difference(a, b, within) for a, b in ((one, two), (two, one))]
    except SchemaError as error:
        raise NotServedError(error.what) from error
    return (None if found[0].is_empty else found[0]), (None if found[1].is_empty else found[1])


def _possible(join: BoundJoin) -> list[Span]:
    """The offsets between cells that there are, along each right dimension."""
    left, right, spans = join.left, join.right.box, list[Span]()
    if left.box.is_empty or right.is_empty:
        raise NotServedError("there are no cells")
    for axis, place in enumerate(join.mapping):
        lo, hi = right.lo[axis], right.hi[axis]
        if place is None:
            spans.append((lo - hi, hi - lo))
            continue
        assert place.cell.qualifier == side_name(1)
        own = left.schema.axis(place.cell.name)
        first, last = image_span(place, (left.box.lo[own], left.box.hi[own]))
        spans.append((lo - last, hi - first))
    return spans


def _check_whole(core: Core, mine: BoundJoined) -> None:
    types = sided_types(mine.source)
    for name, aggregate in core.aggregates:
        if aggregate.attribute is not None and not aggregate.definition.counts:
            kind = check(core.nodes[aggregate.attribute], types)
            if not kind.is_integer:
                raise NotServedError(
                    f"{name} is of floats, of which pairs that are too many cannot be taken out exactly"
                )


def _patched(
    mine: BoundJoined, view: Candidate, parts: dict[str, Part], added: RunShape | None, taken: RunShape | None
) -> BoundAdjusted:
    types = sided_types(mine.source)
    attributes, aggregates = [], []
    for name, part in parts.items():
        argument = part.aggregate.attribute
        kind = TYPES["int64"] if argument is None else check(dict(mine.arguments)[argument], types)
        attributes.append(paired_attribute(name, part.aggregate, kind))
        aggregates.append((name, part.aggregate))
    kept = replace(mine, schema=replace(mine.schema, attributes=tuple(attributes)), aggregates=tuple(aggregates))
    return BoundAdjusted(
        schema=mine.schema,
        box=mine.box,
        labels=mine.labels,
        gridding=mine.gridding,
        source=read_columns(view.stored, {name: part.column for name, part in parts.items()}, kept),
        added=None if added is None else _over(kept, added),
        taken=None if taken is None else _over(kept, taken),
        aggregates=mine.aggregates,
        direct=mine,
    )


def _over(kept: BoundJoined, shape: BoundShape) -> BoundJoined:
    """The parts of the aggregates over the pairs in a shape, where there are any."""
    return replace(kept, source=replace(kept.source, offsets=shape, kind="inner"))


def _how(added: RunShape | None, taken: RunShape | None) -> str:
    texts = [f"{word} {_runs(shape)}" for word, shape in (("plus", added), ("less", taken)) if shape is not None]
    return "its results " + " ".join(texts) if texts else "its shape has the same cells"


def _runs(shape: RunShape) -> str:
    count = len(shape.rows_of_runs)
    return f"{count:,} run{'' if count == 1 else 's'}"
