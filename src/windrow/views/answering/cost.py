"""What answering costs, from the arrays and from a view: runs that are searched and pairs that are aggregated.

How many offsets a shape has says little: a run along the widest dimension is found by two searches, however long it
is, and a count of cells is the difference of two places. The figures are nanoseconds of one worker, rounded from
processor times of neighbours on 60,000 to 100,000 stored cells; those of dense arrays, windows and totals are guesses.
"""

from __future__ import annotations

from windrow.execution.engine import Engine
from windrow.operations.join.build import join_reader
from windrow.operations.join.chunks import stored_scan
from windrow.operations.query.run import source_of
from windrow.plan.bound import (
    Bound,
    BoundAdjusted,
    BoundColumns,
    BoundJoined,
    BoundRejoined,
    BoundScan,
    BoundSelection,
    BoundWindow,
)

READ_CELL = 230.0
"""Reading a cell of a sparse array from the store."""
READ_DENSE = 6.0
"""Reading a cell of a dense array."""
SORT_CELL = 140.0
"""Numbering a cell, putting it in order, and writing its result."""
SEARCH_RUN = 6.0
"""Finding where a run begins and ends, for one cell."""
ADD_VALUES = 120.0
"""Preparing and finishing one aggregate of values at one cell."""
ADD_PAIR = 1.0
"""Taking a pair's value into one aggregate."""
JOIN_CELL = 200.0
"""Finding which parts lie at the same place."""
JOIN_PART = 100.0
"""Joining the parts of one aggregate there."""
AGGREGATE_CELL = 20.0
"""Taking a cell into one total or window."""


def cost_of(engine: Engine, bound: Bound) -> float:
    """About how many nanoseconds a worker takes."""
    if isinstance(bound, BoundScan):
        return (READ_CELL if bound.schema.sparse else READ_DENSE) * _cells(bound)
    if isinstance(bound, BoundJoined) and all(stored_scan(side) is not None for side in bound.source.sides):
        return _joined(engine, bound)
    if isinstance(bound, (BoundColumns, BoundSelection)) and stored_scan(bound) is not None:
        return (READ_CELL if bound.schema.sparse else READ_DENSE) * _cells(bound)
    below = sum(cost_of(engine, step) for step in bound.inputs())
    if isinstance(bound, (BoundAdjusted, BoundRejoined)):
        return below + (JOIN_CELL + JOIN_PART * len(bound.aggregates)) * _cells(bound.source)
    if isinstance(bound, BoundWindow):
        return below + AGGREGATE_CELL * _cells(bound.source) * len(bound.plan.aggregates)
    return below + AGGREGATE_CELL * sum(map(_cells, bound.inputs()))


def _joined(engine: Engine, bound: BoundJoined) -> float:
    join = bound.source
    box = join.sides[0].box
    if box.is_empty:
        return 0.0
    reader = join_reader(join, lambda side: source_of(engine, side))
    once = 1 if join.left == join.right else 2
    cells = sum(map(_cells, join.sides)) / len(join.sides)
    runs = len(join.offsets.key_runs().first) if join.sky is None else 3
    valued = sum(aggregate.attribute is not None for _, aggregate in bound.aggregates)
    each = once * READ_CELL + SORT_CELL + SEARCH_RUN * runs + ADD_VALUES * valued
    return each * cells + ADD_PAIR * valued * reader.rows_in(box)


def _cells(bound: Bound) -> float:
    if bound.box.is_empty:
        return 0.0
    scan = stored_scan(bound)
    if scan is None or scan.cells is None or not bound.schema.sparse or scan.box.is_empty:
        return float(bound.box.size) if not bound.schema.sparse else float(_most(bound))
    return max(1.0, scan.cells * min(1.0, bound.box.size / max(1, scan.box.size)))


def _most(bound: Bound) -> int:
    """No more cells than are below, of which there may be as many as fit."""
    known = [step.cells for step in bound.walk() if isinstance(step, BoundScan) and step.cells is not None]
    return min(bound.box.size, max(known, default=bound.box.size))
