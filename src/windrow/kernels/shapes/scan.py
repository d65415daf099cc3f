"""Counts, sums, variances and extremes of shapes by rows of windows, as outcomes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome, centre
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.shapes.direct import combine_directly
from windrow.kernels.shapes.merging import Adding, Least, Most, Rule
from windrow.kernels.shapes.problems import ShapeProblem, shape_problem
from windrow.kernels.shapes.row_plans import plan_build
from windrow.kernels.shapes.rows import Pieces, Plane, RunRows, Workspace, combine_planes

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]

STRIP_BYTES = 2**20
"""What the rows around an output row may take, so that they stay in the second-level cache."""
NARROWEST = 64
LARGEST = 2**63 - 1
FEW_CELLS = 8
"""Of a shape that is merged cell by cell, without windows, where no cell is missing."""


def scan_shapes(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None = None) -> Outcome:
    """As ``naive_shapes``, by rows of windows; results of ``out``'s type are written there."""
    if problem.operation == "count":
        return Outcome(NO_VALUES, NO_VALUES, present_counts(problem, _present(values, present)))
    if problem.operation == "squares":
        return _squares(problem, values, present)
    if problem.operation == "sum":
        return _sums(problem, values, present, out)
    return _extremes(problem, values, present, out)


def _sums(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    if values.dtype.kind == "f":
        cells = values if present is None else np.where(present, values, np.nan)
        result = _room(problem, np.float64, out)
        missing = _run(problem, Adding(0.0), np.ascontiguousarray(cells, np.float64), result)
        if missing:
            return Outcome(result, result, present_counts(problem, ~np.isnan(cells)))
        return Outcome(result, result, None, _bare(problem))
    cells = values if present is None else np.where(present, values, values.dtype.type(0))
    result = _room(problem, np.int64, out)
    whole = cells.view(np.int64) if cells.dtype == np.uint64 else cells.astype(np.int64, copy=False)
    _run(problem, Adding(0), np.ascontiguousarray(whole), result)
    _check_overflow(problem, cells, result)
    if present is not None:
        return Outcome(result, result, present_counts(problem, present))
    return Outcome(result, result, None, _bare(problem))


def _check_overflow(problem: ShapeProblem, cells: Array, result: Array) -> None:
    """Sums of the upper and lower halves of numbers cannot overflow, and together they are exact."""
    if not cells.size or cells.dtype.kind == "b":
        return
    if max(abs(int(cells.max())), abs(int(cells.min()))) * problem.cells <= LARGEST:
        return
    wide = cells if cells.dtype == np.uint64 else cells.astype(np.int64, copy=False)
    low, high = np.empty_like(result), np.empty_like(result)
    _run(problem, Adding(0), np.ascontiguousarray((wide & wide.dtype.type(2**32 - 1)).view(np.int64)), low)
    _run(problem, Adding(0), np.ascontiguousarray((wide >> wide.dtype.type(32)).view(np.int64)), high)
    upper = high + (low >> 32)
    if upper.size and (upper.max() >= 2**31 or upper.min() < -(2**31)):
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")


def _squares(problem: ShapeProblem, values: Array, present: Mask | None) -> Outcome:
    floats = values.astype(np.float64)
    there = ~np.isnan(floats) if present is None else present & ~np.isnan(floats)
    floats -= centre(floats, there)
    sums, squares = (np.empty(problem.counts) for _ in range(2))
    floats[~there] = np.nan
    missing = _run(problem, Adding(0.0), floats, sums)
    with np.errstate(invalid="ignore", over="ignore"):
        # Of an infinity less the middle there is a square, of what is missing there is none.
        _run(problem, Adding(0.0), floats * floats, squares)
        counts = present_counts(problem, there) if missing else extents(problem)
        deviations = squares - sums**2 / np.maximum(counts, 1)
    return Outcome(np.where(deviations < 0, 0.0, deviations), NO_VALUES, counts)


def _extremes(problem: ShapeProblem, values: Array, present: Mask | None, out: Array | None) -> Outcome:
    rule = Least if problem.operation == "min" else Most
    if values.dtype.kind == "f":
        cells = values if present is None else np.where(present, values, values.dtype.type(np.nan))
        kind = np.dtype(np.float32 if values.dtype == np.float32 else np.float64)
        result = _room(problem, kind, out)
        nothing = kind.type(np.inf if rule is Least else -np.inf)
        missing = _run(problem, rule(nothing), np.ascontiguousarray(cells, kind), result)
        there = ~np.isnan(cells) if missing else None
        return Outcome(NO_VALUES, result, None, _empty(problem, result, nothing, there))
    there = _present(values, present)
    cells, kind = _whole(values)
    limits = np.iinfo(kind)
    nothing = kind.type(limits.max if rule is Least else limits.min)
    if there is not None:
        cells = np.where(there, cells, nothing)
    plain = np.empty(problem.counts, kind)
    _run(problem, rule(nothing), np.ascontiguousarray(cells), plain)
    return Outcome(NO_VALUES, _unfolded(plain, values.dtype), None, _empty(problem, plain, nothing, there))


def _whole(values: Array) -> tuple[Array, np.dtype[Any]]:
    """Whole numbers of any kind in the order of signed ones, which have one compiled version for each of two sizes."""
    kind = values.dtype
    if kind == np.uint64:
        return (values ^ np.uint64(2**63)).view(np.int64), np.dtype(np.int64)
    if kind.kind in "mM":
        return values.view(np.int64), np.dtype(np.int64)
    narrow = np.dtype(np.int32 if kind.itemsize < 4 or kind == np.int32 else np.int64)
    return values.astype(narrow, copy=False), narrow


def _unfolded(found: Array, kind: np.dtype[Any]) -> Array:
    if kind == np.uint64:
        return found.view(np.uint64) ^ np.uint64(2**63)
    return found.view(kind) if kind.kind in "mM" else found.astype(kind, copy=False)


def _empty(problem: ShapeProblem, result: Array, nothing: Any, there: Mask | None) -> Mask | None:
    """Where neighbourhoods hold nothing; only a result that shows the identity may be of nothing."""
    if there is None:
        return _bare(problem)
    if not (result == nothing).any():
        return None
    return present_counts(problem, there) == 0


def _present(values: Array, present: Mask | None) -> Mask | None:
    """Where there is a value; None for everywhere."""
    if values.dtype.kind not in "fmM":
        return present
    lacking = np.isnan(values) if values.dtype.kind == "f" else np.isnat(values)
    if not lacking.any():
        return present
    return ~lacking if present is None else present & ~lacking


def present_counts(problem: ShapeProblem, present: Mask | None) -> Int64Array:
    """How many present cells each neighbourhood has."""
    if present is None or present.all():
        return extents(problem)
    counts = np.empty(problem.counts, np.int32)
    _run(problem, Adding(0), np.ascontiguousarray(present, np.int32), counts)
    return counts.astype(np.int64)


def _bare(problem: ShapeProblem) -> Mask | None:
    """Where a neighbourhood has no cell of the input; None: nowhere."""
    small, places = _corners(problem)
    empty = small == 0
    return _spread(empty, places) if empty.any() else None


def extents(problem: ShapeProblem) -> Int64Array:
    """How many cells of the input each neighbourhood has."""
    return np.ascontiguousarray(_spread(*_corners(problem)))


def _spread(small: Array, places: list[Int64Array]) -> Array:
    for axis, at in enumerate(places):
        small = small.take(at, axis)
    return small


@lru_cache(maxsize=64)
def _corners(problem: ShapeProblem) -> tuple[Int64Array, list[Int64Array]]:
    """Counts of cells for all ways of reaching over borders, and for each axis which of them an output has.

    Far from borders all positions are alike: a small input tells them all.
    """
    shape, sweeps, kept, places = [], [], [], []
    for extent, sweep in zip(problem.shape, problem.sweeps, strict=True):
        position = sweep.first + np.arange(sweep.count) * sweep.step
        low, high = min(sweep.start, 0), max(sweep.stop, 0)
        # What lies far outside behaves as what lies just outside, what lies far inside as what is just inside.
        small = min(extent, high - low + 1)
        place = np.where(position >= extent - 1 - high, position - (extent - small), np.minimum(position, -low))
        place = place if small < extent else position
        found, at = np.unique(np.clip(place, -high - 1, small - low), return_inverse=True)
        begin, end = int(found.min(initial=0)), int(found.max(initial=0))
        shape.append(small)
        sweeps.append(Sweep(begin, end - begin + 1, sweep.start, sweep.stop))
        kept.append(found - begin)
        places.append(at)
    ones = np.ones(shape, np.int32)
    counts = np.empty([sweep.count for sweep in sweeps], np.int32)
    _run(shape_problem("count", shape, np.int32, sweeps, problem.runs), Adding(0), ones, counts)
    return counts[np.ix_(*kept)].astype(np.int64), places


def _room(problem: ShapeProblem, kind: Any, out: Array | None) -> Array:
    if out is not None and out.dtype == kind and out.flags.c_contiguous:
        return out
    return np.empty(problem.counts, kind)


def _run(problem: ShapeProblem, rule: Rule, cells: Array, out: Array) -> int:
    """Merge ``cells`` by a rule into ``out``, and nothing where NaN is; whether there were NaN."""
    if not out.size:
        return 0
    if not len(problem.runs.first) or not cells.size:
        out.fill(rule.nothing)
        return 0
    plans = _plans(problem, isinstance(rule, Adding), out.itemsize)
    if plans.leaves_out:
        out.fill(rule.nothing)
    typed = type(rule)(out.dtype.type(rule.nothing))
    flat, results = cells.reshape(-1), out.reshape(-1)
    size = int(problem.runs.lengths.sum())
    if size <= FEW_CELLS and problem.sweeps[-1].step == 1:
        room = np.empty(size, np.int64)
        if combine_directly(typed, flat, plans.plane, plans.pieces, plans.runs, room, results):
            return 0
    windows = np.empty((plans.around, plans.levels, plans.plane.strip + plans.plane.reach), out.dtype)
    work = Workspace(
        windows,
        windows.reshape(-1),
        np.empty(plans.plane.strip, out.dtype),
        np.empty(plans.around, np.int64),
        np.empty(len(plans.runs.row), np.int64),
    )
    return int(combine_planes(typed, flat, plans.plane, plans.pieces, plans.runs, plans.steps, work, results))


class _Plans(NamedTuple):
    """A problem as compiled loops read it."""

    plane: Plane
    pieces: Pieces
    runs: RunRows
    steps: Int64Array
    around: int
    levels: int
    leaves_out: bool  # whether there are output planes that no run reaches


@lru_cache(maxsize=64)
def _plans(problem: ShapeProblem, adds: bool, itemsize: int) -> _Plans:
    runs = problem.runs
    build = plan_build(tuple(map(int, problem.run_lengths)), not adds)
    along, down = problem.sweeps[-1], problem.sweeps[-2] if len(problem.sweeps) > 1 else Sweep(0, 1, 0, 0)
    rows = problem.shape[-2] if len(problem.shape) > 1 else 1
    around = down.width
    width = (along.count - 1) * along.step + 1
    fitting = STRIP_BYTES // (around * build.levels * itemsize) - along.width
    strips = -(-width // max(NARROWEST, fitting))
    plane = Plane(
        rows, problem.shape[-1], down.first, along.first, down.count, along.count, down.step, along.step,
        along.start, along.width - 1, -(-width // strips),
    )  # fmt: skip
    order, pieces = _pieces(problem)
    row = runs.leading[order, -1] if len(problem.shape) > 1 else np.zeros(len(order), np.int64)
    level = np.array([build.level_of[int(length)] for length in runs.lengths[order]], np.int64)
    listed = RunRows(np.ascontiguousarray(row), level, runs.first[order] - along.start, runs.lengths[order])
    leaves_out = len(np.unique(pieces.target)) < math.prod(problem.counts[:-2])
    return _Plans(plane, pieces, listed, build.steps, around, build.levels, leaves_out)


def _pieces(problem: ShapeProblem) -> tuple[Int64Array, Pieces]:
    """The runs in the order of the planes that they lead to, and all pairs of planes."""
    runs, outer = problem.runs, problem.sweeps[:-2]
    prefix = runs.leading[:, :-1]
    slices, group = np.unique(prefix, axis=0, return_inverse=True) if outer else (
        np.zeros((1, 0), np.int64), np.zeros(len(runs.first), np.int64)
    )  # fmt: skip
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(slices)))
    target = np.arange(math.prod(problem.counts[:-2]))[:, None]
    source, inside = np.zeros_like(target), np.ones((len(target), len(slices)), bool)
    index = np.unravel_index(target[:, 0], problem.counts[:-2]) if outer else ()
    for axis, sweep in enumerate(outer):
        place = (sweep.first + index[axis] * sweep.step)[:, None] + slices[:, axis]
        source = source * problem.shape[axis] + place
        inside &= (place >= 0) & (place < problem.shape[axis])
    which, piece = np.nonzero(inside)
    begin = np.concatenate([[0], ends[:-1]])
    sources = np.broadcast_to(source, inside.shape)[which, piece]
    return order, Pieces(np.ascontiguousarray(sources), which, begin[piece], ends[piece])
