"""How each kind of query is answered from a view of its kind."""

from __future__ import annotations

from windrow.expressions.nodes import Column
from windrow.model.box import Box
from windrow.plan.bound import Bound, BoundRejoined, BoundSelection, BoundTotals, BoundWindow
from windrow.plan.steps import columns, selected
from windrow.views.answering.candidates import Candidate
from windrow.views.answering.cores import Core, Topped, core_of
from windrow.views.answering.serving import (
    NotServedError,
    Served,
    UnlikeError,
    parts_for,
    read_columns,
    serve_as_it_is,
)
from windrow.views.answering.shapes import serve_joined


def serve(step: Bound, view: Candidate) -> Served:
    """The step's results from a view."""
    if step == view.query and not step.is_table:
        names = {name: name for name in step.schema.attribute_names}
        return Served(read_columns(view.stored, names, step), "it is this query")
    core = core_of(step.source if isinstance(step, BoundSelection) else step)
    topped = view.topped
    if core is None or topped is None or type(core.step) is not type(topped.core.step):
        raise UnlikeError("it is another query")
    _check_asked(core)
    if isinstance(core.step, BoundWindow):
        return _window(step, core, view, topped)
    if isinstance(core.step, BoundTotals):
        return _totals(step, core, view, topped)
    return serve_joined(step, core, view, topped)


def _check_asked(core: Core) -> None:
    step = core.step
    if isinstance(step, BoundWindow):
        asked = (step.plan.method, step.plan.strategy)
    else:
        asked = ("auto" if isinstance(step, BoundTotals) else step.method, "auto")
    if asked != ("auto", "auto"):
        raise NotServedError("the query asks for a method of computing")
    if any(aggregate.user is not None for _, aggregate in core.aggregates):
        raise NotServedError("an aggregate of a user's own may have changed since")


def _window(step: Bound, core: Core, view: Candidate, topped: Topped) -> Served:
    mine, theirs = core.step, topped.core.step
    assert isinstance(mine, BoundWindow)
    assert isinstance(theirs, BoundWindow)
    if not core.rows.same_rows(topped.core.rows):
        raise NotServedError("it is over other cells")
    ours, kept = mine.plan, theirs.plan
    if (ours.window, ours.bounds, ours.labels) != (kept.window, kept.bounds, kept.labels):
        raise NotServedError("it has another window")
    return serve_as_it_is(step, core, view, topped)


def _totals(step: Bound, core: Core, view: Candidate, topped: Topped) -> Served:
    """Totals by the same dimensions, or by fewer than the view has."""
    mine, theirs = core.step, topped.core.step
    assert isinstance(mine, BoundTotals)
    assert isinstance(theirs, BoundTotals)
    if not core.rows.same_but_box(topped.core.rows):
        raise NotServedError("it is over other cells")
    if not set(mine.axes) <= set(theirs.axes):
        raise NotServedError("it is grouped by other dimensions")
    _check_groups(core.rows.box, topped.core.rows.box, theirs.axes)
    if mine.axes == theirs.axes:
        return serve_as_it_is(step, core, view, topped)
    if isinstance(step, BoundSelection):
        raise UnlikeError("coarser groups are looked at without the selection above them")
    if topped.box != theirs.box:
        raise NotServedError("it has a part of the results only")
    return Served(_coarser(mine, theirs, core, view, topped), "its groups are joined to these")


def _check_groups(mine: Box, theirs: Box, axes: tuple[int, ...]) -> None:
    """Cells may be left out only in whole groups of the view."""
    if mine not in theirs:
        raise NotServedError("it is over a part of the cells")
    for axis in range(mine.ndim):
        if axis not in axes and (mine.lo[axis], mine.hi[axis]) != (theirs.lo[axis], theirs.hi[axis]):
            raise NotServedError("its groups have cells that the query leaves out")


def _coarser(mine: BoundTotals, theirs: BoundTotals, core: Core, view: Candidate, topped: Topped) -> Bound:
    parts = parts_for(core, topped, adds_only=True)
    lo, hi = (tuple(ends[axis] for axis in theirs.axes) for ends in (core.rows.box.lo, core.rows.box.hi))
    stored, box = view.stored, Box(lo, hi)
    if not stored.schema.sparse and box not in stored.box:
        raise NotServedError("it has not all of the cells")
    below = columns(selected(stored, box), tuple((name, Column(part.column)) for name, part in parts.items()))
    return BoundRejoined(
        schema=mine.schema,
        box=mine.box,
        labels=mine.labels,
        gridding=mine.gridding,
        scalar=mine.scalar,
        source=below,
        axes=tuple(theirs.axes.index(axis) for axis in mine.axes),
        aggregates=mine.aggregates,
    )
