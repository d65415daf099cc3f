"""Large windows: the values of a block are ranked once, and the window is a set of ranks, one bit each.

Moving the window by one cell sets the bits of the cells that enter and clears those of the cells that leave; the wanted
rank is found by counting bits from where it was last time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.bits import lowest_bit, rank_values, select_bit, walk
from windrow.kernels.compiler.jit import inlined, inner, kernel
from windrow.kernels.order.direct import between
from windrow.kernels.order.lanes import Tables

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

AXES = 3  # windowed axes: the one that is swept first, the one with the shortest jumps last


class Field(NamedTuple):
    """Windows over three axes of an input, repeated at ``starts`` with results at ``targets``."""

    starts: Int64Array  # -1: outside the input
    targets: Int64Array
    extent: Int64Array
    stride: Int64Array
    first: Int64Array  # the first cell of the first output's window
    width: Int64Array
    step: Int64Array
    count: Int64Array
    out_stride: Int64Array
    block: Int64Array  # outputs of a block


class Ranked(NamedTuple):
    """Working memory of a block: its values, their ranks, the values by rank, and room for sorting."""

    values: Array
    codes: npt.NDArray[np.uint32]
    ordered: Array
    packed: npt.NDArray[np.uint64]
    spare: npt.NDArray[np.uint64]
    bits: npt.NDArray[np.uint64]


@kernel
def run_bitset(flat: Array, field: Field, tables: Tables, cells: int, out: Array) -> None:
    """Fill ``out`` (flat). No block covers more than ``cells`` cells."""
    ranked = Ranked(
        np.empty(cells, flat.dtype), np.empty(cells, np.uint32), np.empty(cells, flat.dtype),
        np.empty(cells, np.uint64), np.empty(cells, np.uint64), np.zeros(cells // 64 + 2, np.uint64),
    )  # fmt: skip
    begin = np.zeros(AXES, np.int64)
    end = np.zeros(AXES, np.int64)
    for number in range(len(field.starts)):
        for begin[0] in range(0, field.count[0], field.block[0]):
            for begin[1] in range(0, field.count[1], field.block[1]):
                for begin[2] in range(0, field.count[2], field.block[2]):
                    for axis in range(AXES):
                        end[axis] = min(begin[axis] + field.block[axis], field.count[axis])
                    _run_block(flat, field, tables, ranked, begin, end, number, out)


@inner
def _run_block(
    flat: Array, field: Field, tables: Tables, ranked: Ranked, begin: Array, end: Array, number: int, out: Array
) -> None:
    low = np.zeros(AXES, np.int64)
    size = np.zeros(AXES, np.int64)
    if field.starts[number] >= 0:
        _cover(field, begin, end, low, size)
    count = _load(flat, field.starts[number], low, size, field.stride, ranked.values)
    present = rank_values(ranked.values, count, ranked.codes, ranked.ordered, ranked.packed, ranked.spare)
    swept = _spans(field, np.int64(0), begin[0], end[0], low[0], size[0])
    second = _spans(field, np.int64(1), begin[1], end[1], low[1], size[1])
    third = _spans(field, np.int64(2), begin[2], end[2], low[2], size[2])
    stride = field.out_stride
    bits = ranked.bits[: count // 64 + 2]
    word = np.int64(0)
    for j in range(len(second)):
        for k in range(len(third)):
            slab = (size[1], size[2], second[j, 0], second[j, 1], third[k, 0], third[k, 1])
            place = (begin[1] + j) * stride[1] + (begin[2] + k) * stride[2] + begin[0] * stride[0]
            place += field.targets[number]
            single = (second[j, 1] - second[j, 0]) * (third[k, 1] - third[k, 0]) == size[1] * size[2] == 1
            if single and not tables.interpolates:
                _sweep_cells(ranked.codes, bits, ranked.ordered, present, swept, tables.lower, out, place, stride[0])
            else:
                word = _sweep(
                    ranked.codes, bits, ranked.ordered, present, slab, swept, tables.lower, tables.upper,
                    tables.weight, tables.interpolates, word, out, place, stride[0],
                )  # fmt: skip


@inner
def _cover(field: Field, begin: Array, end: Array, low: Array, size: Array) -> None:
    """The cells that the windows of outputs from ``begin`` to ``end`` cover, as far as the input has them."""
    for axis in range(AXES):
        first = field.first[axis] + begin[axis] * field.step[axis]
        last = field.first[axis] + (end[axis] - 1) * field.step[axis] + field.width[axis]
        low[axis] = min(max(first, 0), field.extent[axis])
        size[axis] = max(min(last, field.extent[axis]) - low[axis], 0)


@inner
def _spans(field: Field, axis: int, begin: int, end: int, low: int, size: int) -> Array:
    """For each output, the cells of the block that its window has along an axis: the first, and the one after."""
    spans = np.empty((end - begin, 2), np.int64)
    for output in range(begin, end):
        first = field.first[axis] + output * field.step[axis] - low
        spans[output - begin, 0] = min(max(first, 0), size)
        spans[output - begin, 1] = max(min(first + field.width[axis], size), spans[output - begin, 0])
    return spans


@inner
def _load(flat: Array, start: int, low: Array, size: Array, stride: Array, values: Array) -> int:
    """Copy the cells of a block; how many there are."""
    count = 0
    for i in range(size[0]):
        for j in range(size[1]):
            place = start + (low[0] + i) * stride[0] + (low[1] + j) * stride[1] + low[2] * stride[2]
            for k in range(size[2]):
                values[count] = flat[place + k * stride[2]]
                count += 1
    return count


@inner
def _sweep(
    codes: Array, bits: Array, ordered: Array, present: int, slab: tuple[int, ...], swept: Array, lower: Array,
    upper: Array, weight: Array, interpolates: bool, word: int, out: Array, place: int, stride: int,
) -> int:  # fmt: skip
    """Move the window along the first axis, from an empty set to an empty set; the word looked at last.

    ``below`` bits are set before ``word``. Plain arrays are passed, not tuples of them: Numba counts references to
    what it takes out of a tuple, which costs more than the work.
    """
    low = high = 0  # slabs in the set
    below = count = 0
    for output in range(len(swept)):
        first, last = swept[output, 0], swept[output, 1]
        while low < min(high, first):
            before, there = _toggle(codes, bits, slab, low, word, present)
            below, count, low = below - before, count - there, low + 1
        if low == high:
            low = high = first
        while high < last:
            before, there = _toggle(codes, bits, slab, high, word, present)
            below, count, high = below + before, count + there, high + 1
        if count == 0:
            out[place + output * stride] = np.nan
            continue
        rank = np.int64(lower[count])
        word, below = walk(bits, word, below, rank)
        bit = select_bit(bits[word], rank - below)
        value = ordered[word * 64 + bit]
        if interpolates:
            other = ordered[_later(bits, word, bit, upper[count] - rank)]
            out[place + output * stride] = between(np.float64(value), np.float64(other), weight[count])
        else:
            out[place + output * stride] = value + 0
    bits[:] = 0
    return word


@inner
def _sweep_cells(
    codes: Array, bits: Array, ordered: Array, present: int, swept: Array, lower: Array, out: Array, place: int,
    stride: int,
) -> None:  # fmt: skip
    """``_sweep`` where one cell enters and one leaves: the common case, three times as fast."""
    low = high = np.int64(0)
    word = below = count = np.int64(0)
    for output in range(len(swept)):
        first, last = swept[output, 0], swept[output, 1]
        while low < min(high, first):
            code = _flip(codes, bits, low)
            below -= (code >> 6) < word
            count -= code < present
            low += 1
        if low == high:
            low = high = first
        while high < last:
            code = _flip(codes, bits, high)
            below += (code >> 6) < word
            count += code < present
            high += 1
        if count == 0:
            out[place + output * stride] = np.nan
            continue
        rank = np.int64(lower[count])
        word, below = walk(bits, word, below, rank)
        out[place + output * stride] = ordered[word * 64 + select_bit(bits[np.uint64(word)], rank - below)] + 0
    bits[:] = 0


@inlined
def _flip(codes: Array, bits: Array, cell: int) -> Any:
    """Put a cell into the set or take it out; its rank. Unsigned places spare Numba the test for negative ones."""
    code = np.uint64(codes[np.uint64(cell)])
    bits[code >> np.uint64(6)] ^= np.uint64(1) << (code & np.uint64(63))
    return np.int64(code)


@inlined
def _toggle(codes: Array, bits: Array, slab: tuple[int, ...], number: int, word: int, present: int) -> tuple[int, int]:
    """Put the cells of a slab into the set or take them out; how many lie before ``word``, and how many are present."""
    rows, length, first_row, last_row, first, last = slab
    below = there = 0
    for row in range(number * rows + first_row, number * rows + last_row):
        begin, end = np.uint64(row * length + first), np.uint64(row * length + last)
        for k in range(begin, end):
            _flip(codes, bits, k)
        # Counting in a loop of its own lets LLVM use vectors.
        for k in range(begin, end):
            below += codes[k] < np.uint32(word * 64)
            there += codes[k] < np.uint32(present)
    return below, there


@inlined
def _later(bits: Array, word: int, bit: int, ahead: int) -> int:
    """The place of the set bit ``ahead`` set bits after one."""
    rest = bits[word] & ~((np.uint64(1) << np.uint64(bit)) - np.uint64(1))
    for _ in range(ahead):
        rest &= rest - np.uint64(1)
        while rest == 0:
            word += 1
            rest = bits[word]
    return word * 64 + lowest_bit(rest)
