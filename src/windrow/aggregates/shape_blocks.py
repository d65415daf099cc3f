"""How the cells around a box of results are laid out for a shape, and aggregates of them all.

Dimensions are put in the order that makes the fewest runs, periodic ones are walked round their border, free ones
become a single one at the end that every neighbourhood holds whole. Where a shape has ranges in label units, results
that reach equally far are evaluated together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import PLACES, Column, Result
from windrow.aggregates.shapes import ShapeEvaluation
from windrow.aggregates.windows import USER
from windrow.errors import SchemaError
from windrow.kernels.choose import AUTO
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.shapes.problems import Runs
from windrow.kernels.shapes.strategies import ShapeChoice, choose_shapes
from windrow.model.bound_shape import BoundShape
from windrow.model.box import Box
from windrow.model.labels import Labels

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ShapeRequest:
    """Neighbourhoods on a dense array that has the cells of ``bounds``: at every ``step``-th of them."""

    shape: BoundShape
    bounds: Box
    step: tuple[int, ...]
    labels: tuple[tuple[str, Labels], ...] = ()
    min_count: int = 0
    method: str = "auto"
    strategy: str = AUTO

    def __post_init__(self) -> None:
        if self.shape.sky is not None:
            hint = "Neighbours on the sky are found among the cells of sparse arrays"
            raise SchemaError("a dense array has no neighbourhoods on the sky", got=str(self.shape.sky), hint=hint)

    @property
    def results(self) -> Box:
        """The results: from the same first coordinate on, numbered one by one."""
        counts = [-(-n // step) for n, step in zip(self.bounds.shape, self.step, strict=True)]
        return Box.at(self.bounds.lo, counts)

    def positions(self, results: Box) -> Box:
        """The cells at which results stand, from the first to the last."""
        return _positions(self.bounds, self.step, results)

    def cells(self, results: Box) -> Box:
        """The cells to read for a box of results; never none, so that there is something to read."""
        reached = self.shape.halo(self.positions(results) & self.bounds, self.bounds) & self.bounds
        return Box.at(self.bounds.lo, [1] * self.bounds.ndim) if reached.is_empty else reached

    def pieces(self, results: Box) -> Iterator[tuple[Box, BoundShape]]:
        """Boxes of results that reach equally far in label units, with their shape in cells."""
        spans = [[(lo, hi, None)] for lo, hi in zip(results.lo, results.hi, strict=True)]
        for one in self.shape.labelled:
            spans[one.axis] = list(self._spans(one, results))
        for piece in itertools.product(*spans):
            lo, hi = tuple(part[0] for part in piece), tuple(part[1] for part in piece)
            yield Box(lo, hi), _limit(self.shape, [part[2] for part in piece])

    def _spans(self, one: Any, results: Box) -> Iterator[tuple[int, int, Any]]:
        axis = one.axis
        first, step = self.bounds.lo[axis], self.step[axis]
        numbers = np.arange(results.lo[axis], results.hi[axis] + 1)
        positions = first + (numbers - first) * step
        labels = dict(self.labels)[self.shape.dimensions[axis]]
        lo, hi = one.ranges(positions, labels, (first, self.bounds.hi[axis]))
        low, high = lo - positions, hi - positions
        changes = np.flatnonzero((low[1:] != low[:-1]) | (high[1:] != high[:-1])) + 1
        for begin, end in itertools.pairwise([0, *changes.tolist(), len(numbers)]):
            yield int(numbers[begin]), int(numbers[end - 1]), (int(low[begin]), int(high[begin]))


def _positions(bounds: Box, steps: tuple[int, ...], results: Box) -> Box:
    lo, hi = (
        tuple(first + (at - first) * step for at, first, step in zip(end, bounds.lo, steps, strict=True))
        for end in (results.lo, results.hi)
    )
    return Box(lo, hi)


def _limit(shape: BoundShape, limits: list[tuple[int, int] | None]) -> BoundShape:
    """The shape with further limits on offsets instead of ranges in label units."""
    if not shape.labelled:
        return shape
    start, stop, free = list(shape.start), list(shape.stop), list(shape.free)
    for axis, limit in enumerate(limits):
        if limit is not None:
            start[axis], stop[axis] = max(start[axis], limit[0]), min(stop[axis], limit[1])
            free[axis] = False
    return replace(shape, start=tuple(start), stop=tuple(stop), free=tuple(free), labelled=())


def evaluate_shape(
    request: ShapeRequest,
    columns: Mapping[str, Column],
    held: Box,
    results: Box,
    aggregates: Mapping[str, Aggregate],
    out: Array | None = None,
) -> dict[str, Result]:
    """The aggregates in a box of results, from columns that hold the cells of ``held``.

    If there is but one aggregate, it may be written into ``out``.
    """
    pieces = list(request.pieces(results))
    if len(pieces) == 1:
        return _evaluate(request, pieces[0][1], columns, held, results, aggregates, out)
    parts = [(box, _evaluate(request, shape, columns, held, box, aggregates, None)) for box, shape in pieces]
    return {name: _assemble([(box, part[name]) for box, part in parts], results) for name in aggregates}


def _assemble(parts: list[tuple[Box, Result]], results: Box) -> Result:
    values = np.empty(results.shape, parts[0][1].values.dtype)
    missing = np.zeros(results.shape, bool)
    for box, part in parts:
        at = box.slices(results.lo)
        values[at] = part.values
        if part.missing is not None:
            missing[at] = part.missing
    return Result(values, missing if missing.any() else None)


def _evaluate(
    request: ShapeRequest, shape: BoundShape, columns: Mapping[str, Column], held: Box, results: Box,
    aggregates: Mapping[str, Aggregate], out: Array | None,
) -> dict[str, Result]:  # fmt: skip
    layout = _layout(shape, request.bounds, request.step, held, results)
    if any(aggregate.definition.ordered for aggregate in aggregates.values()) and layout.moves:
        # Cells that are met in another order still come where their coordinates are.
        columns = {**columns, PLACES: Column(np.arange(held.size).reshape(held.shape))}
    taken = {name: layout.column(column) for name, column in columns.items()}
    evaluation = ShapeEvaluation(
        taken, layout.shape, layout.sweeps, layout.runs, request.method, request.min_count,
        None if layout.moves else out, request.strategy,
    )  # fmt: skip
    return {name: layout.restored(evaluation.result(aggregate)) for name, aggregate in aggregates.items()}


@dataclass(frozen=True, eq=False)
class ShapeLayout:
    """Axes as kernels take them: those of the runs in their order, then all free ones as one; where to evaluate."""

    order: tuple[int, ...]
    free: int  # how many axes at the end are free
    takes: tuple[slice | Int64Array, ...]  # cells of each axis, in the array's order of axes
    cells: tuple[int, ...]  # along each axis, in the kernels' order
    sweeps: tuple[Sweep, ...]
    runs: Runs
    results: tuple[int, ...]  # in the array's order of axes

    @property
    def shape(self) -> tuple[int, ...]:
        if not self.free:
            return self.cells
        return (*self.cells[: -self.free], math.prod(self.cells[-self.free :]))

    @property
    def moves(self) -> bool:
        """Whether cells come in another order than that of their coordinates, or not all of their results do."""
        turned = self.order != tuple(range(len(self.order)))
        return turned or self.free > 0 or any(not isinstance(take, slice) for take in self.takes)

    def column(self, column: Column) -> Column:
        return Column(self._lay(column.values), None if column.present is None else self._lay(column.present))

    def _lay(self, values: Array) -> Array:
        for axis, take in enumerate(self.takes):
            index = (slice(None),) * axis
            values = values[(*index, take)] if isinstance(take, slice) else np.take(values, take, axis)
        return np.ascontiguousarray(values.transpose(self.order)).reshape(self.shape)

    def restored(self, result: Result) -> Result:
        missing = None if result.missing is None else self._back(result.missing)
        return Result(self._back(result.values), missing)

    def _back(self, values: Array) -> Array:
        """Results in the array's order of axes; along free ones they are all alike."""
        if not self.moves:
            return values
        counts = [self.results[axis] for axis in self.order]
        bound = len(counts) - self.free
        wide = values.reshape(*counts[:bound], *[1] * self.free)
        return np.ascontiguousarray(np.broadcast_to(wide, counts).transpose(np.argsort(self.order)))


@lru_cache(maxsize=64)
def _layout(shape: BoundShape, bounds: Box, steps: tuple[int, ...], held: Box, results: Box) -> ShapeLayout:
    if shape.excludes_self and any(shape.free):
        # Who leaves itself out differs from its neighbours along a free dimension.
        shape = replace(shape, free=(False,) * shape.ndim)
    found = shape.key_runs()
    runs = Runs(found.leading, found.first, found.last)
    if shape.excludes_self:
        runs = _without_self(runs, [shape.moduli[axis] for axis in found.axes])
    free = tuple(axis for axis in range(shape.ndim) if axis not in found.axes)
    positions = _positions(bounds, steps, results)
    takes: list[slice | Int64Array] = [slice(None)] * shape.ndim
    sweeps: list[Sweep] = []
    for axis, (low, high) in zip(found.axes, _reaches(runs, len(found.axes)), strict=True):
        takes[axis], origin = _cells_along(bounds, shape, axis, (low, high), positions, held)
        sweeps.append(Sweep(positions.lo[axis] - origin, results.shape[axis], low, high, steps[axis]))
    order = (*found.axes, *free)
    cells = tuple(_length(takes[axis], held.shape[axis]) for axis in order)
    if free:
        whole = math.prod(cells[len(found.axes) :])
        runs = _through_all(runs, len(found.axes), whole)
        sweeps.append(Sweep(0, 1, 0, whole - 1))
    return ShapeLayout(order, len(free), tuple(takes), cells, tuple(sweeps), runs, results.shape)


def _length(take: slice | Int64Array, cells: int) -> int:
    return len(range(cells)[take]) if isinstance(take, slice) else len(take)


def _reaches(runs: Runs, axes: int) -> list[tuple[int, int]]:
    if not axes:
        return []
    if not len(runs.first):
        return [(0, 0)] * axes
    leading = [(int(column.min()), int(column.max())) for column in runs.leading.T]
    return [*leading, (int(runs.first.min()), int(runs.last.max()))]


def _cells_along(
    bounds: Box, shape: BoundShape, axis: int, reach: tuple[int, int], positions: Box, held: Box
) -> tuple[slice | Int64Array, int]:
    """Which of the held cells are walked along an axis, and the coordinate of the first of them."""
    first, last = bounds.lo[axis], bounds.hi[axis]
    low, high = positions.lo[axis] + reach[0], positions.hi[axis] + reach[1]
    begin, end = held.lo[axis], held.hi[axis]
    if shape.wraps[axis] and not (first <= low and high <= last):
        walked = np.arange(low, high + 1)
        return (walked - first) % (last - first + 1) - (begin - first), low
    low, high = max(low, begin), min(high, end)
    if high < low:  # no cell is met: any one will do, it lies where it lies
        low = high = min(max(low, begin), end)
    return slice(low - begin, high - begin + 1), low


def _without_self(runs: Runs, moduli: list[int | None]) -> Runs:
    """The runs without the offset that leads back to the cell; round a periodic dimension it need not be 0."""
    itself = np.ones(len(runs.first), bool)
    for column, modulus in zip(runs.leading.T, moduli[:-1], strict=True):
        itself &= column == 0 if modulus is None else column % modulus == 0
    modulus = moduli[-1]
    at = np.zeros_like(runs.first) if modulus is None else -(-runs.first // modulus) * modulus
    itself &= (runs.first <= at) & (at <= runs.last)
    leading = np.concatenate([runs.leading, runs.leading[itself]])
    first = np.concatenate([runs.first, at[itself] + 1])
    last = np.concatenate([np.where(itself, at - 1, runs.last), runs.last[itself]])
    kept = first <= last
    return Runs(leading[kept], first[kept], last[kept])


def _through_all(runs: Runs, axes: int, whole: int) -> Runs:
    """The runs' offsets as leading ones, each with all cells of a further axis."""
    if not axes:
        count = len(runs.first)
        leading = np.zeros((count, 0), np.int64)
    else:
        lengths = runs.lengths
        count = int(lengths.sum())
        ends = np.cumsum(lengths)
        along = np.repeat(runs.first - (ends - lengths), lengths) + np.arange(count)
        leading = np.column_stack([np.repeat(runs.leading, lengths, axis=0), along])
    return Runs(leading, np.zeros(count, np.int64), np.full(count, whole - 1, np.int64))


def shape_choice(request: ShapeRequest, results: Box, aggregate: Aggregate, dtype: np.dtype[Any]) -> ShapeChoice | None:
    """What would compute an aggregate of values of a type in a box of results, and what there was to choose from.

    None where there is no choice: another method is asked for, or the aggregate is made of several, or a user's own.
    Where a shape has ranges in label units, it is the choice for the first results that reach equally far.
    """
    definition = aggregate.definition
    if request.method != AUTO or definition.operation in (None, USER) or aggregate.attribute is None:
        return None
    box, shape = next(request.pieces(results))
    layout = _layout(shape, request.bounds, request.step, request.cells(box), box)
    cells = min(int(layout.runs.lengths.sum()), math.prod(layout.shape))
    ranks = aggregate.ranks(cells) if definition.ranks is not None else None
    asked = str(definition.operation)
    return choose_shapes(asked, layout.shape, dtype, layout.sweeps, layout.runs, ranks, request.strategy)
