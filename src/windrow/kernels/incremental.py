"""The papers' algorithm: a base window moves along one axis, window unit by window unit (000 §3, 001 §3, 002 §3).

Entering units are scanned, leaving ones are forgotten, and the rest is reused: sums in a SUM-list whose total is kept
by two stacks, so that nothing is ever subtracted; minima and maxima in a heap that drops its top once it has left;
percentiles in a balanced search tree; modes and distinct values in a counted hash table. The axis swept is the one
with the widest window (002 §4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels import counted, ordered_tree, sum_list, value_heap
from windrow.kernels.direct import between
from windrow.kernels.geometry import Geometry, geometry, most_cells, sweep_axis
from windrow.kernels.jit import inner, kernel
from windrow.kernels.overflow import sum_overflows
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import OPERATIONS, Outcome, RankArrays, centre, prepared, rank_arrays
from windrow.kernels.sweep import AnySweep

Array = npt.NDArray[Any]


def incremental_windows(
    operation: str,
    values: Array,
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    ranks: RankTable | None = None,
) -> Outcome:
    """As ``naive_windows``, by the incremental algorithm."""
    flat, there = prepared(values, present)
    shape = tuple(sweep.count for sweep in sweeps)
    reals, exact, counts = (np.zeros(shape, kind) for kind in (np.float64, flat.dtype, np.int64))
    outputs = (reals.reshape(-1), exact.reshape(-1), counts.reshape(-1))
    axis = sweep_axis(values.shape, sweeps)
    place = geometry(values.shape, sweeps)
    cells = max(1, most_cells(values.shape, sweeps))
    units = int(place.extent[axis]) + 1
    code = OPERATIONS[operation]
    if operation in ("sum", "squares"):
        middle = centre(flat, there) if operation == "squares" else 0.0
        if _sums(code, flat, there, place, axis, middle, sum_list.empty_list(units, flat.dtype), *outputs):
            raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    elif operation in ("min", "max", "count"):
        _extremes(code, flat, there, place, axis, value_heap.empty_heap(units, flat.dtype), *outputs)
    elif operation == "select":
        _selections(flat, there, place, axis, rank_arrays(ranks), ordered_tree.empty_tree(cells, flat.dtype), *outputs)
    else:
        _frequencies(code, flat, there, place, axis, counted.empty_table(cells, flat.dtype), *outputs)
    return Outcome(reals, exact, counts)


@inner
def round_base(place: Geometry, axis: int, round_: int, lo: Array, hi: Array) -> int:
    """The cross-section of one compute round: bounds in all axes but the swept one, and its first output."""
    output = 0
    rest = round_
    stride = 1
    for other in range(len(lo) - 1, -1, -1):
        if other != axis:
            index = rest % place.outputs[other]
            rest //= place.outputs[other]
            lo[other] = place.lo[other, index]
            hi[other] = place.hi[other, index]
            output += index * stride
        stride *= place.outputs[other]
    return output


@inner
def round_count(place: Geometry, axis: int) -> tuple[int, int]:
    """How many compute rounds there are, and how far apart a round's outputs lie."""
    rounds = 1
    apart = 1
    for other in range(len(place.outputs)):
        if other != axis:
            rounds *= place.outputs[other]
        if other > axis:
            apart *= place.outputs[other]
    return rounds, apart


@inner
def first_cell(axis: int, unit: int, lo: Array, hi: Array, cell: Array) -> bool:
    """Go to the first cell of a window unit; False if the cross-section is empty."""
    for other in range(len(lo)):
        if other == axis:
            cell[other] = unit
        elif hi[other] < lo[other]:
            return False
        else:
            cell[other] = lo[other]
    return True


@inner
def next_cell(axis: int, lo: Array, hi: Array, cell: Array) -> bool:
    other = len(lo) - 1
    while other >= 0:
        if other != axis:
            cell[other] += 1
            if cell[other] <= hi[other]:
                return True
            cell[other] = lo[other]
        other -= 1
    return False


@inner
def offset_of(place: Geometry, cell: Array) -> int:
    offset = 0
    for axis in range(len(cell)):
        offset += cell[axis] * place.stride[axis]
    return offset


@kernel
def _sums(
    operation: int, flat: Array, there: Array, place: Geometry, axis: int, middle: float, totals: sum_list.SumList,
    reals: Array, exact: Array, counts: Array,
) -> bool:  # fmt: skip
    ndim = len(place.extent)
    lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
    rounds, apart = round_count(place, axis)
    overflowed = False
    for round_ in range(rounds):
        output = round_base(place, axis, round_, lo, hi)
        sum_list.clear(totals, np.int64(0))
        entered, left = np.int64(0), np.int64(0)
        for k in range(place.outputs[axis]):
            first, last = place.lo[axis, k], place.hi[axis, k]
            if first > entered:
                sum_list.clear(totals, first)
                entered = left = first
            while entered <= last:
                overflowed |= _enter_sum(flat, there, place, axis, entered, lo, hi, cell, totals, middle)
                entered += 1
            while left < first:
                overflowed |= sum_list.drop(totals)
                left += 1
            real, square, whole, count, wrapped = sum_list.total(totals)
            overflowed |= wrapped
            at = output + k * apart
            counts[at] = count
            if operation == 1:
                deviations = square - real * real / max(count, 1)
                reals[at] = 0.0 if deviations < 0.0 else deviations
            else:
                reals[at] = real
                exact[at] = whole
    return overflowed


@inner
def _enter_sum(
    flat: Array, there: Array, place: Geometry, axis: int, unit: int, lo: Array, hi: Array, cell: Array,
    totals: sum_list.SumList, middle: float,
) -> bool:  # fmt: skip
    """Scan one window unit and put its sums at the end of the list."""
    real = square = 0.0
    whole = totals.back_whole[0] * 0
    count = 0
    overflowed = False
    more = first_cell(axis, unit, lo, hi, cell)
    while more:
        at = offset_of(place, cell)
        if there[at]:
            value = float(flat[at]) - middle
            real += value
            square += value * value
            overflowed |= sum_overflows(whole, flat[at])
            whole += flat[at]
            count += 1
        more = next_cell(axis, lo, hi, cell)
    return overflowed | sum_list.push(totals, real, square, whole, count)


@kernel
def _extremes(
    operation: int, flat: Array, there: Array, place: Geometry, axis: int, heap: value_heap.Heap, reals: Array,
    exact: Array, counts: Array,
) -> None:  # fmt: skip
    ndim = len(place.extent)
    lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
    inside = np.zeros(place.extent[axis] + 1, np.int64)
    rounds, apart = round_count(place, axis)
    largest = operation == 3
    for round_ in range(rounds):
        output = round_base(place, axis, round_, lo, hi)
        heap.length[0] = 0
        present = 0
        entered, left = np.int64(0), np.int64(0)
        for k in range(place.outputs[axis]):
            first, last = place.lo[axis, k], place.hi[axis, k]
            if first > entered:
                heap.length[0] = 0
                present = 0
                entered = left = first
            while entered <= last:
                inside[entered] = 0
                best = heap.value[0]
                more = first_cell(axis, entered, lo, hi, cell)
                while more:
                    at = offset_of(place, cell)
                    if there[at]:
                        value = flat[at]
                        if inside[entered] == 0 or (value > best if largest else value < best):
                            best = value
                        inside[entered] += 1
                    more = next_cell(axis, lo, hi, cell)
                if inside[entered] > 0:
                    value_heap.push(heap, best, entered, largest)
                present += inside[entered]
                entered += 1
            while left < first:
                present -= inside[left]
                left += 1
            value_heap.drop_before(heap, first, largest)
            counts[output + k * apart] = present
            if present > 0:
                exact[output + k * apart] = heap.value[0]


@kernel
def _selections(
    flat: Array, there: Array, place: Geometry, axis: int, tables: RankArrays, tree: ordered_tree.Tree, reals: Array,
    exact: Array, counts: Array,
) -> None:  # fmt: skip
    ndim = len(place.extent)
    lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
    rounds, apart = round_count(place, axis)
    for round_ in range(rounds):
        output = round_base(place, axis, round_, lo, hi)
        ordered_tree.clear(tree)
        present = 0
        entered, left = np.int64(0), np.int64(0)
        for k in range(place.outputs[axis]):
            first, last = place.lo[axis, k], place.hi[axis, k]
            if first > entered:
                ordered_tree.clear(tree)
                present = 0
                entered = left = first
            # What leaves goes first, so that the tree never holds more than one window.
            while left < first:
                more = first_cell(axis, left, lo, hi, cell)
                while more:
                    at = offset_of(place, cell)
                    if there[at]:
                        ordered_tree.remove(tree, flat[at])
                        present -= 1
                    more = next_cell(axis, lo, hi, cell)
                left += 1
            while entered <= last:
                more = first_cell(axis, entered, lo, hi, cell)
                while more:
                    at = offset_of(place, cell)
                    if there[at]:
                        ordered_tree.insert(tree, flat[at])
                        present += 1
                    more = next_cell(axis, lo, hi, cell)
                entered += 1
            counts[output + k * apart] = present
            if present > 0:
                at = output + k * apart
                exact[at] = ordered_tree.select(tree, tables.lower[present])
                if tables.weight[present] == 0.0:
                    reals[at] = exact[at]
                else:
                    upper = ordered_tree.select(tree, tables.upper[present])
                    reals[at] = between(float(exact[at]), float(upper), tables.weight[present])


@kernel
def _frequencies(
    operation: int, flat: Array, there: Array, place: Geometry, axis: int, table: counted.CountedTable, reals: Array,
    exact: Array, counts: Array,
) -> None:  # fmt: skip
    ndim = len(place.extent)
    lo, hi, cell = np.zeros(ndim, np.int64), np.zeros(ndim, np.int64), np.zeros(ndim, np.int64)
    rounds, apart = round_count(place, axis)
    for round_ in range(rounds):
        output = round_base(place, axis, round_, lo, hi)
        counted.clear(table)
        present = 0
        entered, left = np.int64(0), np.int64(0)
        for k in range(place.outputs[axis]):
            first, last = place.lo[axis, k], place.hi[axis, k]
            if first > entered:
                counted.clear(table)
                present = 0
                entered = left = first
            while left < first:
                more = first_cell(axis, left, lo, hi, cell)
                while more:
                    at = offset_of(place, cell)
                    if there[at]:
                        counted.remove(table, flat[at])
                        present -= 1
                    more = next_cell(axis, lo, hi, cell)
                left += 1
            while entered <= last:
                more = first_cell(axis, entered, lo, hi, cell)
                while more:
                    at = offset_of(place, cell)
                    if there[at]:
                        counted.add(table, flat[at])
                        present += 1
                    more = next_cell(axis, lo, hi, cell)
                entered += 1
            counts[output + k * apart] = present
            if present > 0:
                if operation == 6:
                    exact[output + k * apart] = counted.mode(table)
                else:
                    reals[output + k * apart] = table.state[0]
