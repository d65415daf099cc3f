"""One row at a time: bring it in, widen it to windows along itself, merge it with other rows.

Rows are named by addresses, lengths are in bytes of totals. Rows of the workspace begin at a cache line and are padded,
so that loops over them take whole aligned vectors and may run over their ends. Their first ``head`` bytes mean
nothing: they shift the row so that the result, too, is written in aligned vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from windrow.kernels.scan_lanes import (
    LINE,
    any_bits,
    cell_size,
    contribution,
    copy_bytes,
    gather_bits,
    identity,
    join,
    load,
    load_cells,
    nan_bits,
    no_bits,
    store,
    take,
    total_size,
    will_read,
)

# Only the outermost kernel is called from Python, and its file in the cache holds the code of all it calls. Numba looks
# only at that kernel's own source for changes: who edits this module must touch scan_strip.py as well.
INNER: dict[str, Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only other compiled functions call."""
    result: Callable[..., Any] = njit(**INNER)(function)
    return result


@compiled
def fill(merge: Any, row: int, length: int) -> None:
    empty = identity(merge)
    for i in range(0, length, LINE):
        store(row + i, empty)


@compiled
def bring(merge: Any, cells: int, row: int, length: int, rest: int) -> bool:
    """Copy cells into a row as contributions; say whether one was missing."""
    vector = cell_size(merge) * (LINE // total_size(merge))
    size = length // total_size(merge) * cell_size(merge)
    if length < LINE:
        return bring_few(merge, cells, row, size, rest)
    lacking = no_bits(merge)
    at = 0
    for i in range(0, length - LINE + 1, LINE):
        values = load_cells(merge, cells + at)
        lacking = gather_bits(lacking, nan_bits(values))
        store(row + i, contribution(merge, values))
        at += vector
    # Once more over some of the cells before, instead of one by one over those left.
    values = load_cells(merge, cells + size - vector)
    lacking = gather_bits(lacking, nan_bits(values))
    store(row + length - LINE, contribution(merge, values))
    return any_bits(lacking)


@compiled
def bring_few(merge: Any, cells: int, row: int, size: int, rest: int) -> bool:
    # Zeros, so that what is not there is not missing.
    store(rest, no_bits(merge))
    copy_bytes(rest, cells, size)
    values = load_cells(merge, rest)
    store(row, contribution(merge, values))
    return any_bits(nan_bits(values))


@compiled
def pair(merge: Any, to: int, a: int, b: int, length: int) -> None:
    for i in range(0, length, LINE):
        store(to + i, join(merge, load(merge, a + i), load(merge, b + i)))


@compiled
def triple(merge: Any, to: int, a: int, b: int, c: int, length: int) -> None:
    for i in range(0, length, LINE):
        two = join(merge, load(merge, a + i), load(merge, b + i))
        store(to + i, join(merge, two, load(merge, c + i)))


@compiled
def widen(merge: Any, row: int, spare: int, room: int, width: int, length: int) -> int:
    """Windows of half the ``width`` over a row: those of q make those of 2q or 2q + 1, by the width's binary digits.

    A balanced tree of merges, so that a sum's error hardly grows with the width. The last doubling is left to the
    loop that uses its result.
    """
    size = total_size(merge)
    digit = 1
    while digit * 2 <= width:
        digit *= 2
    reached = 1
    current = row
    target = spare
    while digit > 2:
        digit >>= 1
        odd = (width // digit) & 1
        rest = length + (width - 2 * reached - odd) * size
        if odd:
            triple(merge, target, current, current + reached * size, row + 2 * reached * size, rest)
        else:
            pair(merge, target, current, current + reached * size, rest)
        current = target
        target = spare + room if target == spare else spare
        reached = 2 * reached + odd
    return current


@compiled
def settle(merge: Any, half: int, row: int, width: int, length: int, to: int) -> None:
    """The last doubling, for its own sake."""
    size = total_size(merge)
    if width & 1:
        triple(merge, to, half, half + (width >> 1) * size, row + (width - 1) * size, length)
    else:
        pair(merge, to, half, half + (width >> 1) * size, length)


@compiled
def pick(merge: Any, row: int, step: int, length: int, to: int) -> None:
    for i in range(0, length, total_size(merge)):
        take(merge, to + i, row + i * step)


@compiled
def ask(merge: Any, ahead: int, i: int) -> None:
    """Ask for the cells of the next row that come to lie at ``i``: rows are too short for the hardware to see it."""
    will_read(ahead + i * cell_size(merge) // total_size(merge))


@compiled
def edge_pair(merge: Any, a: int, b: int, place: int, length: int, rest: int) -> None:
    """The first and the last vector of a result row, which need not be aligned."""
    last = length - LINE
    if last < 0:
        store(rest, join(merge, load(merge, a), load(merge, b)))
        copy_bytes(place, rest, length)
    else:
        store(place, join(merge, load(merge, a), load(merge, b)))
        store(place + last, join(merge, load(merge, a + last), load(merge, b + last)))


@compiled
def give_pair(merge: Any, a: int, b: int, place: int, head: int, length: int, rest: int, ahead: int) -> None:
    """Two rows merged into the result."""
    for i in range(LINE if head else 0, (head + length) // LINE * LINE, LINE):
        store(place - head + i, join(merge, load(merge, a + i), load(merge, b + i)))
        ask(merge, ahead, i)
    edge_pair(merge, a + head, b + head, place, length, rest)


@compiled
def give_triple(merge: Any, a: int, b: int, c: int, place: int, head: int, length: int, rest: int, ahead: int) -> None:
    """Three rows merged into the result."""
    for i in range(LINE if head else 0, (head + length) // LINE * LINE, LINE):
        two = join(merge, load(merge, a + i), load(merge, b + i))
        store(place - head + i, join(merge, two, load(merge, c + i)))
        ask(merge, ahead, i)
    for i in (head, max(head, head + length - LINE)):
        two = join(merge, load(merge, a + i), load(merge, b + i))
        store(rest, join(merge, two, load(merge, c + i)))
        copy_bytes(place - head + i, rest, min(length, LINE))


@compiled
def advance(merge: Any, now: Any, before: int, prefix: int, suffix: int, place: int) -> None:
    """A vector of a new row joins the prefix, which completes windows with the suffix of the block before."""
    total = join(merge, load(merge, before), now)
    store(prefix, total)
    store(place, join(merge, load(merge, suffix), total))


@compiled
def advance_row(merge: Any, row: int, rows: Any, begin: int, end: int, ahead: int) -> None:
    before, prefix, suffix, place = rows
    for i in range(begin, end, LINE):
        advance(merge, load(merge, row + i), before + i, prefix + i, suffix + i, place + i)
        ask(merge, ahead, i)


@compiled
def advance_pair(merge: Any, slot: int, a: int, b: int, rows: Any, begin: int, end: int, ahead: int) -> None:
    before, prefix, suffix, place = rows
    for i in range(begin, end, LINE):
        now = join(merge, load(merge, a + i), load(merge, b + i))
        store(slot + i, now)
        advance(merge, now, before + i, prefix + i, suffix + i, place + i)
        ask(merge, ahead, i)


@compiled
def advance_triple(merge: Any, slot: int, a: int, b: int, c: int, rows: Any, begin: int, end: int, ahead: int) -> None:
    before, prefix, suffix, place = rows
    for i in range(begin, end, LINE):
        now = join(merge, join(merge, load(merge, a + i), load(merge, b + i)), load(merge, c + i))
        store(slot + i, now)
        advance(merge, now, before + i, prefix + i, suffix + i, place + i)
        ask(merge, ahead, i)
