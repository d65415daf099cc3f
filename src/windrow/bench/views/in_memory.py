"""Queries and windows over what is in memory: kernels alone, with nothing read from a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from windrow.api.query import Query
from windrow.model.box import Box
from windrow.operations.query.held import HeldGrid
from windrow.operations.query.run import source_of
from windrow.operations.query.windows import WindowSource
from windrow.plan.bound import Bound, BoundHeld, BoundScan
from windrow.storage.cells import in_coordinate_order


def hold_query(query: Query) -> Callable[[], Any]:
    """What computes a query of sparse arrays and views, in one go, from their cells in memory."""
    engine, known = query.database.engine, dict[str, BoundHeld]()

    def hold(bound: Bound) -> Bound:
        if isinstance(bound, BoundScan):
            if bound.name not in known:
                table = in_coordinate_order(bound.snapshot.read(), bound.schema).combine_chunks()
                about = {"labels": bound.labels, "gridding": bound.gridding, "table": table}
                known[bound.name] = BoundHeld(schema=bound.schema, box=bound.box, **about)
            return known[bound.name]
        below = ((one.name, getattr(bound, one.name)) for one in fields(bound))
        steps: dict[str, Any] = {name: hold(step) for name, step in below if isinstance(step, Bound)}
        return replace(bound, **steps)

    held = hold(query.bind().bound)
    return lambda: source_of(engine, held).read(held.box)


def hold_window(query: Query, box: Box | None = None) -> Callable[[], Any]:
    """What computes a window of a dense array, or a box of its results, from values in memory."""
    source = query.using_views("off").bind().source
    assert isinstance(source, WindowSource)
    below = source.source
    whole = below.schema.box()
    values = below.read(whole)
    held = replace(source, source=HeldGrid(below.schema, whole, tuple(below.labels.items()), values))
    return lambda: held.read(source.schema.box() if box is None else box)
