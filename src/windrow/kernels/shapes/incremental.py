"""The papers' algorithm for shapes: runs of cells enter and leave while a shape slides along the last axis.

Runs of one length form a window of units: the cells that one output's neighbourhood has at the same place of each run.
What remembers values one by one (a search tree, a counted table) holds the whole shape; what remembers units in the
order they came (a SUM-list, a heap) slides once for each length, and its answers are combined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.compiler.jit import bare_kernel
from windrow.kernels.compiler.leaves import limits
from windrow.kernels.contract.outcomes import Outcome, centre, prepared, rank_arrays
from windrow.kernels.papers.counted_table import CountedTable, empty_table
from windrow.kernels.papers.slide import (
    Results,
    Unit,
    answer_at,
    enter_unit,
    exchange_units,
    forget_units,
    leave_unit,
)
from windrow.kernels.papers.sum_list import OVERFLOWED, SumList, empty_list
from windrow.kernels.papers.tree_select import Selection, empty_selection
from windrow.kernels.papers.value_heap import Heap, empty_heap
from windrow.kernels.shapes.layout import Layout, Walk, every_offset, lay_out
from windrow.kernels.shapes.problems import Int64Array, ShapeProblem

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Groups(NamedTuple):
    """Where runs begin, those of one length together: ``begins`` has the first of each length, and the end."""

    starts: Int64Array
    lengths: Int64Array
    begins: Int64Array
    every: Int64Array  # all cells of the shape


def incremental_shapes(problem: ShapeProblem, values: Array, present: Mask | None) -> Outcome:
    """As ``naive_shapes``, by what enters and leaves."""
    layout = lay_out(problem, *prepared(values, present))
    groups = groups_of(problem, layout)
    if problem.operation == "squares":
        return _squares(problem, layout, groups)
    if problem.operation == "sum":
        return _sums(problem, layout, groups)
    if problem.operation in ("min", "max", "count"):
        return _extremes(problem, layout, groups)
    results, outcome = _room(problem, layout.flat.dtype)
    cells = max(1, len(groups.every))
    if problem.operation == "select":
        structure: Any = empty_selection(cells, layout.flat.dtype, rank_arrays(problem.ranks))
        _slide_structure(structure, layout.flat, layout.there, layout.walk, groups, results)
    else:
        structure = empty_table(cells, layout.flat.dtype, problem.operation == "mode")
        _slide_structure(structure, layout.flat, layout.there, layout.walk, groups, results)
    return outcome


def slide_runs(structure: Any, flat: Array, there: Array, walk: Walk, groups: Groups, results: Results) -> None:
    """Move a structure that holds a whole shape along all rounds; compiled for each structure."""
    every = groups.every
    longest = groups.lengths[len(groups.lengths) - 1] if len(groups.lengths) > 0 else 0
    for round_ in range(len(walk.bases)):
        at = walk.bases[round_]
        enter_unit(structure, Unit(flat, there, every, at))
        for k in range(walk.count):
            if k > 0 and walk.step < longest:
                for _ in range(walk.step):
                    for group in range(len(groups.lengths)):
                        offsets = groups.starts[groups.begins[group] : groups.begins[group + 1]]
                        gone = Unit(flat, there, offsets, at)
                        exchange_units(structure, gone, Unit(flat, there, offsets, at + groups.lengths[group]))
                    at += 1
            elif k > 0:
                forget_units(structure, Unit(flat, there, every, at), 0, 1)
                at += walk.step
                enter_unit(structure, Unit(flat, there, every, at))
            answer_at(structure, results, round_ * walk.count + k)
        forget_units(structure, Unit(flat, there, every, at), 0, 1)


def _slide_units(
    structure: Any, flat: Array, there: Array, walk: Walk, offsets: Array, length: int, results: Results
) -> None:
    """Move a structure over the units of runs of one length, as a window along the last axis."""
    for round_ in range(len(walk.bases)):
        base = walk.bases[round_]
        entered = left = np.int64(0)
        for k in range(walk.count):
            first, last = k * walk.step, k * walk.step + length - 1
            if first > entered:
                forget_units(structure, Unit(flat, there, offsets, base + left), 1, entered - left)
                entered = left = np.int64(first)
            while left < first:
                leave_unit(structure, Unit(flat, there, offsets, base + left))
                left += 1
            while entered <= last:
                enter_unit(structure, Unit(flat, there, offsets, base + entered))
                entered += 1
            answer_at(structure, results, round_ * walk.count + k)
        forget_units(structure, Unit(flat, there, offsets, base + left), 1, entered - left)


_STRUCTURES = (SumList, Heap, Selection, CountedTable)
"""Whose modules' text goes into the names of what is compiled here."""

_slide_structure = bare_kernel(slide_runs, __name__)
_slide_in_order = bare_kernel(_slide_units, __name__)


def groups_of(problem: ShapeProblem, layout: Layout) -> Groups:
    """The runs of a problem by their length."""
    starts, lengths = layout.starts, problem.runs.lengths
    order = np.argsort(lengths, kind="stable")
    found, begins = np.unique(lengths[order], return_index=True)
    ends = np.append(begins, len(lengths)).astype(np.int64)
    return Groups(starts[order], found, ends, every_offset(starts, lengths))


def _by_length(groups: Groups) -> Iterator[tuple[int, Int64Array]]:
    for number, length in enumerate(groups.lengths):
        yield int(length), groups.starts[groups.begins[number] : groups.begins[number + 1]]


def _room(problem: ShapeProblem, dtype: Any) -> tuple[Results, Outcome]:
    arrays = [np.zeros(problem.counts, kind) for kind in (np.float64, dtype, np.int64)]
    return Results(*(array.reshape(-1) for array in arrays)), Outcome(*arrays)


def _units(walk: Walk, length: int) -> int:
    """How many units a round of runs of one length meets, and one more."""
    return max(walk.count - 1, 0) * walk.step + length + 1


def _sums(problem: ShapeProblem, layout: Layout, groups: Groups, flat: Array | None = None) -> Outcome:
    flat = layout.flat if flat is None else flat
    _, total = _room(problem, flat.dtype)
    reals, exact, counts = total.reals, total.exact, np.asarray(total.counts)
    for length, offsets in _by_length(groups):
        results, part = _room(problem, flat.dtype)
        totals = empty_list(_units(layout.walk, length), flat.dtype, 0.0, False)
        _slide_in_order(totals, flat, layout.there, layout.walk, offsets, length, results)
        if totals.state[OVERFLOWED] or (flat.dtype.kind != "f" and _leaves(exact, part.exact)):
            raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
        with np.errstate(invalid="ignore", over="ignore"):
            reals += part.reals
            exact += part.exact
        counts += np.asarray(part.counts)
    return total


def _leaves(one: Array, other: Array) -> bool:
    """Whether a sum of whole numbers leaves int64: halves are added, which cannot."""
    bit = one.dtype.type(1)
    half = (one >> bit) + (other >> bit) + (one & other & bit)
    return bool(half.size and (int(half.max()) >= 2**62 or int(half.min()) < -(2**62)))


def _squares(problem: ShapeProblem, layout: Layout, groups: Groups) -> Outcome:
    floats = layout.flat.astype(np.float64)
    floats -= centre(floats, layout.there)
    floats[~layout.there] = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _sums(problem, layout, groups, floats)
        squares = _sums(problem, layout, groups, floats * floats)
        deviations = squares.reals - sums.reals**2 / np.maximum(np.asarray(sums.counts), 1)
    return Outcome(np.where(deviations < 0, 0.0, deviations), sums.exact, sums.counts)


def _extremes(problem: ShapeProblem, layout: Layout, groups: Groups) -> Outcome:
    largest = problem.operation == "max"
    _, best = _room(problem, layout.flat.dtype)
    counts = np.asarray(best.counts)
    best.exact[...] = limits(layout.flat.dtype)[0 if largest else 1]
    for length, offsets in _by_length(groups):
        results, part = _room(problem, layout.flat.dtype)
        heap = empty_heap(_units(layout.walk, length), layout.flat.dtype, largest)
        _slide_in_order(heap, layout.flat, layout.there, layout.walk, offsets, length, results)
        better = part.exact > best.exact if largest else part.exact < best.exact
        np.copyto(best.exact, part.exact, where=better & (np.asarray(part.counts) > 0))
        counts += np.asarray(part.counts)
    return best
