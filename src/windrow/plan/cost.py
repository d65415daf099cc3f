"""How an aggregate over windows will be computed, and about how long that takes on one core.

Order statistics have a cost model of their own beside their kernels; the figures here are rounded measurements, good
enough to choose an engine and to tell a second from an hour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windrow.aggregates.aggregate import Aggregate
from windrow.kernels.geometry import most_cells
from windrow.kernels.sweep import AnySweep, Sweep
from windrow.model.window import Extent, Window

SCAN_OUTPUT = 0.6  # nanoseconds an output and windowed axis of a block scan
ENTERING_CELL = 1.5  # a cell that a sum, a minimum or a maximum takes in
COUNTED_CELL = 8.0  # a cell that enters or leaves a table of counts
TREE_CELL = 15.0  # a cell that enters or leaves a search tree, for each doubling of the tree
NAIVE_CELL = 1.0  # a cell visited
SORTED_CELL = 3.0  # a cell sorted, for each doubling of the window
FOUND_ROW = 10.0  # a row of a window found among sparse cells
USER_CELL = 3.0  # a call of a user's function


@dataclass(frozen=True)
class Strategy:
    """How one aggregate is computed over the windows of a block."""

    text: str
    sweep: int | None  # the axis along which a window reuses the one before; None: all axes alike
    nanoseconds: float


def strategy_of(
    aggregate: Aggregate, method: str, shape: Sequence[int], dtype: Any, sweeps: Sequence[AnySweep]
) -> Strategy:
    """What ``Evaluation.result`` will do for one aggregate."""
    work = _Work(shape, sweeps)
    if aggregate.attribute is None:
        return Strategy("the number of cells follows from the window", None, work.outputs * 1.0)
    operation = aggregate.definition.operation or "count"
    if operation == "user":
        return _user(aggregate, method, work)
    if method == "naive":
        return _naive(operation, work)
    if method == "incremental" or not all(isinstance(sweep, Sweep) for sweep in sweeps):
        return _incremental(operation, work)
    if operation in ("distinct", "mode"):
        cost = work.outputs * 2 * work.section * COUNTED_CELL
        return Strategy("values coded, counts kept in a table that moves with the window", work.swept, cost)
    if operation == "select":
        return _select(aggregate, shape, dtype, sweeps, work)
    axes = max(1, sum(width > 1 for width in work.widths))
    return Strategy("block scans, one axis after the other", None, work.outputs * (1 + axes) * SCAN_OUTPUT)


def cell_strategy(method: str, window: Window, cells: int) -> Strategy:
    """What will be done for an aggregate over the windows of a sparse array that has ``cells`` cells."""
    widths = [extent.width if isinstance(extent, Extent) else 1 for extent in window.extents]
    rows = math.prod(widths[:-1])
    text = f"at existing cells, found in {rows:,} rows of the window in the order of coordinates"
    if method == "auto":
        text += ", or on a grid where cells lie close"
    return Strategy(f"{text} ({method})", len(widths) - 1, cells * rows * FOUND_ROW)


class _Work:
    """The sizes that every cost is made of."""

    def __init__(self, shape: Sequence[int], sweeps: Sequence[AnySweep]) -> None:
        self.widths = [max(1, min(extent, sweep.width)) for extent, sweep in zip(shape, sweeps, strict=True)]
        self.outputs = math.prod(sweep.count for sweep in sweeps)
        self.cells = max(1, most_cells(tuple(shape), sweeps))
        self.swept = max(range(len(self.widths)), key=lambda axis: (self.widths[axis], axis))
        self.section = math.prod(w for axis, w in enumerate(self.widths) if axis != self.swept)
        """The cells of one window unit: those that enter when the window moves by one."""
        self.doublings = max(1.0, math.log2(self.cells))


def _naive(operation: str, work: _Work) -> Strategy:
    if operation == "select":
        cost = work.outputs * work.cells * work.doublings * SORTED_CELL
        return Strategy("every cell of every window, sorted", None, cost)
    return Strategy("every cell of every window", None, work.outputs * work.cells * NAIVE_CELL)


_STRUCTURES = {
    "select": "balanced search tree",
    "sum": "SUM-list",
    "squares": "SUM-list",
    "min": "heap",
    "max": "heap",
    "count": "counts of window units",
    "distinct": "counted hash table",
    "mode": "counted hash table",
}


def _incremental(operation: str, work: _Work) -> Strategy:
    each = {"select": 2 * TREE_CELL * work.doublings, "distinct": 2 * COUNTED_CELL, "mode": 2 * COUNTED_CELL}
    cost = work.outputs * work.section * each.get(operation, ENTERING_CELL)
    return Strategy(f"window units of {work.section} cells into a {_STRUCTURES[operation]}", work.swept, cost)


def _user(aggregate: Aggregate, method: str, work: _Work) -> Strategy:
    functions = aggregate.user.functions
    if method == "naive" or (functions.remove is None and functions.merge is None):
        return Strategy("user-defined: add, every cell of every window", None, work.outputs * work.cells * USER_CELL)
    calls = "add and remove" if functions.remove is not None else "add and merge, by two stacks"
    return Strategy(f"user-defined: {calls}", work.swept, work.outputs * 2 * work.section * USER_CELL)


def _select(
    aggregate: Aggregate, shape: Sequence[int], dtype: Any, sweeps: Sequence[AnySweep], work: _Work
) -> Strategy:
    from windrow.kernels.select import plan_select

    ranks = aggregate.ranks(work.cells)
    assert ranks is not None
    nanoseconds, text = plan_select(shape, dtype, [sweep for sweep in sweeps if isinstance(sweep, Sweep)], ranks)
    return Strategy(text, work.swept if "swept" in text or "series" in text else None, nanoseconds)
