"""Aggregates at sparse cells: on a grid where cells lie densely, in rows of sorted cells where they do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column, Result
from windrow.aggregates.sparse_windows import CellEvaluation, CellNeighbours
from windrow.aggregates.windows import Evaluation
from windrow.kernels.contract.sweeps import VariableSweep
from windrow.kernels.sparse.order import coordinate_order, run_starts
from windrow.kernels.sparse.rows import rows_of, windows_at
from windrow.model.halo import UNLIMITED
from windrow.plan.sparse_axes import CellAxis, swept_dimension
from windrow.plan.windows import WindowPlan

Int64Array = npt.NDArray[np.int64]

POSITIONS_PER_CELL = 4
"""Where a cell has no more positions around it than this, laying the cells on a grid and sweeping it is faster."""

MOST_POSITIONS_PER_CELL = 32
"""The same where windows are wide: more would take too much memory."""

POSITIONS_PER_NEIGHBOUR = 3
"""How many positions can be swept in the time that it takes to find and look at one neighbour."""

_CELLS = ""
"""Stands for the cells themselves where values are aggregated: no attribute can have that name."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells in coordinate order: a vector of coordinates per dimension, and the values of some attributes."""

    at: list[Int64Array]
    columns: dict[str, Column]

    def __len__(self) -> int:
        return len(self.at[0])

    def take(self, chosen: npt.NDArray[Any]) -> Cells:
        columns = {}
        for name, column in self.columns.items():
            columns[name] = Column(column.values[chosen], None if column.present is None else column.present[chosen])
        return Cells([place[chosen] for place in self.at], columns)


def window_results(
    plan: WindowPlan, axes: Sequence[CellAxis], cells: Cells, at: list[Int64Array], wanted: Sequence[Aggregate]
) -> list[Result]:
    """Aggregates of the windows at the cells ``at``, whose neighbours are among ``cells``."""
    return (_on_grid if _grid_pays(plan, axes, len(cells), len(at[0])) else _in_rows)(plan, axes, cells, at, wanted)


def _grid_pays(plan: WindowPlan, axes: Sequence[CellAxis], cells: int, results: int) -> bool:
    """The sweep of a grid costs the same however wide the window is; ranges cost by the neighbour."""
    positions = math.prod(axis.hi - axis.lo + 1 for axis in axes)
    evaluated = math.prod((axis.last - axis.first) // axis.step + 1 for axis in axes)
    neighbours = math.prod(axis.width for axis in axes) * cells / max(1, positions)
    allowed = min(max(POSITIONS_PER_CELL, POSITIONS_PER_NEIGHBOUR * neighbours), MOST_POSITIONS_PER_CELL)
    return plan.method == "auto" and positions <= allowed * cells and evaluated <= allowed * results


def _on_grid(
    plan: WindowPlan, axes: Sequence[CellAxis], cells: Cells, at: list[Int64Array], wanted: Sequence[Aggregate]
) -> list[Result]:
    """Lay the cells on a grid with the others missing, sweep it, and pick the results."""
    shape = tuple(axis.hi - axis.lo + 1 for axis in axes)
    laid = np.ravel_multi_index([column - axis.lo for column, axis in zip(cells.at, axes, strict=True)], shape)
    there = np.zeros(shape, bool)
    there.reshape(-1)[laid] = True
    columns = {name: _laid(column, laid, shape) for name, column in cells.columns.items()}
    columns[_CELLS] = Column(there, there)
    picked = tuple((column - axis.first) // axis.step for column, axis in zip(at, axes, strict=True))
    evaluation = Evaluation(columns, shape, [axis.sweep() for axis in axes], "auto", plan.window.min_count)
    outside = _outside(plan, axes, at)
    results = []
    for aggregate in wanted:
        found = evaluation.result(Aggregate("count", _CELLS) if aggregate.attribute is None else aggregate)
        missing = None if found.missing is None else found.missing[picked]
        if outside is not None:
            missing = outside if missing is None else missing | outside
        results.append(Result(found.values[picked], missing))
    return results


def _laid(column: Column, laid: npt.NDArray[np.intp], shape: tuple[int, ...]) -> Column:
    """A column's values on a grid, missing where there is no cell."""
    values: npt.NDArray[Any]
    if column.values.dtype.kind == "f":
        values = np.full(shape, np.nan, column.values.dtype)
        values.reshape(-1)[laid] = column.values
        return Column(values)
    values, present = np.zeros(shape, column.values.dtype), np.zeros(shape, bool)
    values.reshape(-1)[laid] = column.values
    present.reshape(-1)[laid] = True if column.present is None else column.present
    return Column(values, present)


def _in_rows(
    plan: WindowPlan, axes: Sequence[CellAxis], cells: Cells, at: list[Int64Array], wanted: Sequence[Aggregate]
) -> list[Result]:
    """Find each window's cells as ranges in the order of coordinates, with the swept dimension last."""
    outside = _outside(plan, axes, at)
    swept = swept_dimension(axes, plan.swept)
    dimensions = [number for number in range(len(axes)) if number != swept] + [swept]
    order: npt.NDArray[np.intp] | None = None
    if swept != len(axes) - 1:
        cells = cells.take(coordinate_order([cells.at[number] for number in dimensions]))
        order = coordinate_order([at[number] for number in dimensions])
        at = [column[order] for column in at]
        outside = None if outside is None else outside[order]
    ranges = [axes[number].ranges(at[number]) for number in dimensions]
    windows = windows_at([at[number] for number in dimensions], [r[0] for r in ranges], [r[1] for r in ranges])
    neighbours = CellNeighbours(rows_of([cells.at[number] for number in dimensions]), windows)
    evaluation = CellEvaluation(cells.columns, neighbours, plan.method, plan.window.min_count, outside)
    results = [evaluation.result(aggregate) for aggregate in wanted]
    return results if order is None else [_put_back(result, order) for result in results]


def _outside(plan: WindowPlan, axes: Sequence[CellAxis], at: list[Int64Array]) -> npt.NDArray[np.bool_] | None:
    """At which cells a window that must be whole is not."""
    if plan.window.boundary != "drop":
        return None
    outside = np.zeros(len(at[0]), bool)
    for axis, column in zip(axes, at, strict=True):
        outside |= axis.leaves(column)
    return outside


def _put_back(result: Result, order: npt.NDArray[np.intp]) -> Result:
    back = np.empty(len(order), np.intp)
    back[order] = np.arange(len(order))
    return Result(result.values[back], None if result.missing is None else result.missing[back])


def block_results(plan: WindowPlan, cells: Cells, wanted: Sequence[Aggregate]) -> tuple[list[Int64Array], list[Result]]:
    """Aggregates of the blocks of a regrid that hold any cell, and where those are: cells are sorted by block."""
    bounds, window = plan.bounds, plan.window
    blocks = [lo + (column - lo) // step for column, lo, step in zip(cells.at, bounds.lo, window.step, strict=True)]
    order = coordinate_order(blocks)
    blocks, cells = [column[order] for column in blocks], cells.take(order)
    start = run_starts(blocks, len(cells))
    places = [column[start[:-1]] for column in blocks]
    outside = np.zeros(len(places[0]), bool)
    for place, lo, hi, step in zip(places, bounds.lo, bounds.hi, window.step, strict=True):
        if step < UNLIMITED:  # a block of everything is whole, however long the dimension is
            outside |= lo + (place - lo + 1) * step - 1 > hi
    evaluation = Evaluation(
        cells.columns,
        (len(cells),),
        [VariableSweep(start[:-1], start[1:] - 1)],
        plan.method,
        window.min_count,
        window.boundary == "drop",
        [outside],
    )
    return places, [evaluation.result(aggregate) for aggregate in wanted]
