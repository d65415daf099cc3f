"""Order statistics of shapes, block by block: the cells of a block are ranked once, then neighbourhoods compare ranks.

Small shapes are searched bit by bit, 64 neighbourhoods side by side. Of large ones the ranks are a set of bits, which
runs enter and leave while the shape slides along a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.bits import lowest_bit, rank_values, select_bit, walk
from windrow.kernels.compiler.jit import inlined, inner, kernel
from windrow.kernels.compiler.rank_lanes import LANES, count_below, next_ranks, search_ranks
from windrow.kernels.order.direct import between

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]


class Field(NamedTuple):
    """Per axis: the input's extent, where outputs stand, how many of them a block has, and how many cells it covers.

    A block begins ``start`` cells beside its first output.
    """

    extent: Int64Array
    first: Int64Array
    step: Int64Array
    count: Int64Array
    start: Int64Array
    block: Int64Array
    size: Int64Array


class Offsets(NamedTuple):
    """Within a block: all cells of the shape, and where its runs begin and how long they are."""

    every: Int64Array
    starts: Int64Array
    lengths: Int64Array


class Wanted(NamedTuple):
    """Which ranks are wanted of how many values."""

    lower: npt.NDArray[np.int32]
    upper: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float64]
    interpolates: bool


class Ranked(NamedTuple):
    """Working memory of a block: its cells, their ranks in two sizes, the cells by rank, and room."""

    values: Array
    codes: npt.NDArray[np.uint32]
    short: npt.NDArray[np.uint16]
    ordered: Array
    packed: npt.NDArray[np.uint64]
    spare: npt.NDArray[np.uint64]
    bits: npt.NDArray[np.uint64]
    lanes: npt.NDArray[np.uint16]  # (counts, wanted ranks, found, following) of a slot of lanes


@kernel
def select_blocks(flat: Array, field: Field, offsets: Offsets, wanted: Wanted, in_lanes: bool, out: Array) -> None:
    """Fill ``out`` (flat)."""
    axes = len(field.extent)
    cells = 1
    for axis in range(axes):
        cells *= field.size[axis]
    ranked = Ranked(
        np.empty(cells, flat.dtype), np.empty(cells, np.uint32), np.empty(cells + LANES, np.uint16),
        np.empty(cells, flat.dtype), np.empty(cells, np.uint64), np.empty(cells, np.uint64),
        np.zeros(cells // 64 + 2, np.uint64), np.zeros((4, LANES), np.uint16),
    )  # fmt: skip
    begin = np.zeros(axes, np.int64)
    index = np.zeros(axes, np.int64)
    while True:
        _load(flat, field, begin, index, ranked.values)
        present = rank_values(ranked.values, cells, ranked.codes, ranked.ordered, ranked.packed, ranked.spare)
        if in_lanes:
            for place in range(cells):
                ranked.short[place] = ranked.codes[place]
        _run_rows(field, offsets, wanted, in_lanes, ranked, cells, present, begin, index, out)
        if not _advance(begin, field.block, field.count, axes):
            break


@inner
def _advance(index: Array, step: Array, end: Array, axes: int) -> bool:
    """Go on to the next place, the last of these axes first; False after the last."""
    for axis in range(axes - 1, -1, -1):
        index[axis] += step[axis]
        if index[axis] < end[axis]:
            return True
        index[axis] = 0
    return False


@inner
def _load(flat: Array, field: Field, begin: Array, index: Array, values: Array) -> None:
    """The cells of a block, NaN where the input has none."""
    axes = len(index)
    last = axes - 1
    index[:] = 0
    length = field.size[last]
    column = field.first[last] + begin[last] * field.step[last] + field.start[last]
    row = 0
    ones = np.ones(axes, np.int64)
    while True:
        source = np.int64(0)
        inside = True
        for axis in range(last):
            place = field.first[axis] + begin[axis] * field.step[axis] + field.start[axis] + index[axis]
            inside = inside and 0 <= place < field.extent[axis]
            source = source * field.extent[axis] + place
        source *= field.extent[last]
        lo, hi = min(max(-column, 0), length), max(min(field.extent[last] - column, length), 0)
        if not inside or hi < lo:
            lo = hi = length
        values[row : row + lo] = np.nan
        values[row + lo : row + hi] = flat[source + column + lo : source + column + hi]
        values[row + hi : row + length] = np.nan
        row += length
        if not _advance(index, ones, field.size, last):
            break


@inner
def _run_rows(
    field: Field, offsets: Offsets, wanted: Wanted, in_lanes: bool, ranked: Ranked, cells: int, present: int,
    begin: Array, index: Array, out: Array,
) -> None:  # fmt: skip
    """All rows of outputs of a block."""
    axes = len(index)
    last = axes - 1
    ones = np.ones(axes, np.int64)
    inside = np.zeros(axes, np.int64)
    for axis in range(axes):
        inside[axis] = min(field.block[axis], field.count[axis] - begin[axis])
    index[:] = 0
    while True:
        base = target = np.int64(0)
        for axis in range(axes):
            base = base * field.size[axis] + index[axis] * field.step[axis]
            target = target * field.count[axis] + begin[axis] + index[axis]
        row = out[target : target + inside[last]]
        if in_lanes:
            _search_row(ranked, offsets.every, wanted, cells, present, base, field.step[last], row)
        else:
            _slide_row(
                ranked.codes, ranked.bits, ranked.ordered, present, offsets.starts, offsets.lengths, wanted.lower,
                wanted.upper, wanted.weight, base, field.step[last], row,
            )  # fmt: skip
        if not _advance(index, ones, inside, last):
            break


@inner
def _search_row(
    ranked: Ranked, offsets: Array, wanted: Wanted, cells: int, present: int, base: int, step: int, row: Array
) -> None:
    """A row of outputs, a slot of lanes at a time."""
    counts, ranks, found, following = ranked.lanes[0], ranked.lanes[1], ranked.lanes[2], ranked.lanes[3]
    size = len(offsets)
    bits = np.int64(1)
    while bits < 16 and cells > 1 << bits:
        bits += 1
    span = (len(row) - 1) * step + 1
    for left in range(0, span, LANES):
        place = np.int64(base + left)
        if present == cells:
            counts[:] = size
        else:
            count_below(ranked.short, place, offsets, np.int64(size), np.int64(present), counts)
        for lane in range(LANES):
            ranks[lane] = wanted.lower[counts[lane]]
        search_ranks(ranked.short, place, offsets, np.int64(size), bits, ranks, found)
        if wanted.interpolates:
            next_ranks(ranked.short, place, offsets, np.int64(size), found, following)
        for output in range((left + step - 1) // step, min(len(row), (left + LANES - 1) // step + 1)):
            lane = output * step - left
            count = counts[lane]
            if count == 0:
                row[output] = np.nan
                continue
            value = ranked.ordered[found[lane]]
            if wanted.interpolates and wanted.upper[count] > wanted.lower[count]:
                other = np.float64(ranked.ordered[following[lane]])
                row[output] = between(np.float64(value), other, wanted.weight[count])
            else:
                row[output] = value + 0


@inner
def _slide_row(
    codes: Array, bits: Array, ordered: Array, present: int, starts: Array, lengths: Array, lower: Array, upper: Array,
    weight: Array, base: int, step: int, row: Array,
) -> None:  # fmt: skip
    """A row of outputs, cells entering and leaving a set of ranks; ``below`` of them are set before ``word``."""
    word = below = count = np.int64(0)
    bits[:] = 0
    for run in range(len(starts)):
        for cell in range(base + starts[run], base + starts[run] + lengths[run]):
            count += _flip(codes, bits, cell) < present
    for output in range(len(row)):
        if output > 0:
            for place in range(base + (output - 1) * step, base + output * step):
                for run in range(len(starts)):
                    gone = _flip(codes, bits, place + starts[run])
                    came = _flip(codes, bits, place + starts[run] + lengths[run])
                    below += np.int64((came >> 6) < word) - np.int64((gone >> 6) < word)
                    count += np.int64(came < present) - np.int64(gone < present)
        if count == 0:
            row[output] = np.nan
            continue
        rank = np.int64(lower[count])
        word, below = walk(bits, word, below, rank)
        bit = select_bit(bits[np.uint64(word)], rank - below)
        value = ordered[word * 64 + bit]
        if upper[count] > rank:
            other = np.float64(ordered[_next(bits, word, bit)])
            row[output] = between(np.float64(value), other, weight[count])
        else:
            row[output] = value + 0


@inlined
def _flip(codes: Array, bits: Array, cell: int) -> Any:
    """Put a cell into the set or take it out; its rank. Unsigned places spare Numba the test for negative ones."""
    code = np.uint64(codes[np.uint64(cell)])
    bits[code >> np.uint64(6)] ^= np.uint64(1) << (code & np.uint64(63))
    return np.int64(code)


@inlined
def _next(bits: Array, word: int, bit: int) -> int:
    """The place of the set bit after one."""
    rest = bits[word] & ~((np.uint64(2) << np.uint64(bit)) - np.uint64(1))
    while rest == 0:
        word += 1
        rest = bits[word]
    return word * 64 + lowest_bit(rest)
