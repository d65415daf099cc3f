"""Windows over two axes at once: widened along rows, block-scanned down the rows, in strips that stay in the cache.

Down the rows (van Herk 1992; Gil and Werman 1993): rows are cut into blocks as high as the window, so that a window is
the suffix of one block and a prefix of the next. Nothing is ever taken away again, so any associative merge will do,
an infinity leaves with its row, and a sum's error does not depend on what has passed before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import njit

from windrow.kernels.scan_lanes import LINE, cell_size, copy_bytes, join, load, store, total_size
from windrow.kernels.scan_rows import (
    advance_pair,
    advance_row,
    advance_triple,
    bring,
    compiled,
    edge_pair,
    fill,
    give_pair,
    give_triple,
    pair,
    pick,
    settle,
    widen,
)


class Strip(NamedTuple):
    """Where a strip's cells come from and its results go, and the rows of its workspace, all in bytes or columns."""

    source: int  # address of the first source row
    row_bytes: int  # from one source row to the next
    columns: int  # of the source
    left: int  # the first column the strip's first window covers
    shift: int  # columns by which each row begins further right
    cells: int  # windows side by side
    width: int
    step: int
    place: int  # address of the strip's first result
    out_row: int  # bytes from one result row to the next
    out_end: int  # address after the last result
    head: int  # bytes before a row's first column, see scan_rows
    ring: int  # the rows of a block
    ring_room: int
    prefix: int
    raw: int  # a source row, then rows to widen it in
    room: int
    rest: int  # a spare vector


@compiled
def bring_row(merge: Any, strip: Any, row: int, to: int) -> bool:
    """The columns of a source row that the strip needs; those the source does not have bring nothing."""
    size = total_size(merge)
    left = strip.left + row * strip.shift
    span = (strip.cells - 1) * strip.step + strip.width
    begin = min(max(-left, 0), span)
    end = max(min(strip.columns - left, span), begin)
    found = False
    if begin > 0:
        fill(merge, to, begin * size)
    if end > begin:
        cells = strip.source + row * strip.row_bytes + (left + begin) * cell_size(merge)
        found = bring(merge, cells, to + begin * size, (end - begin) * size, strip.rest)
    if end < span:
        fill(merge, to + end * size, (span - end) * size)
    return found


@compiled
def bring_half(merge: Any, strip: Any, row: int, slot: int) -> Any:
    """A source row, widened but for the last doubling; with nothing to double or with a step, ready in its slot."""
    size = total_size(merge)
    if strip.width == 1 and strip.step == 1:
        return bring_row(merge, strip, row, slot + strip.head), slot
    found = bring_row(merge, strip, row, strip.raw + strip.head)
    dense = strip.head + ((strip.cells - 1) * strip.step + 1) * size
    half = widen(merge, strip.raw, strip.raw + strip.room, strip.room, strip.width, dense)
    if strip.step > 1:
        wide = strip.raw
        if strip.width > 1:
            wide = strip.raw + 3 * strip.room
            settle(merge, half, strip.raw, strip.width, dense, wide)
        pick(merge, wide + strip.head, strip.step, strip.cells * size, slot + strip.head)
    return found, half


@compiled
def join_vector(merge: Any, strip: Any, half: int, slot: int, before: int, prefix: int, i: int) -> None:
    """A vector that reaches over an end of the row joins the prefix, but must not be written into the result."""
    size = total_size(merge)
    if strip.width > 1 and strip.step == 1:
        now = join(merge, load(merge, half + i), load(merge, half + (strip.width >> 1) * size + i))
        if strip.width & 1:
            now = join(merge, now, load(merge, strip.raw + (strip.width - 1) * size + i))
        store(slot + i, now)
    store(prefix + i, join(merge, load(merge, before + i), load(merge, slot + i)))


@compiled
def complete_row(merge: Any, strip: Any, half: int, slot: int, rows: Any, length: int, ahead: int) -> None:
    """The row, widened for the last time, joins the prefix and completes a row of the result."""
    before, prefix, suffix, place = rows
    head = strip.head
    begin = LINE if head else 0
    inner = (head + length) // LINE * LINE
    if head:
        join_vector(merge, strip, half, slot, before, prefix, 0)
    if begin <= inner < head + length:
        join_vector(merge, strip, half, slot, before, prefix, inner)
    b = half + (strip.width >> 1) * total_size(merge)
    c = strip.raw + (strip.width - 1) * total_size(merge)
    aligned = (before, prefix, suffix, place - head)
    if strip.width == 1 or strip.step > 1:
        advance_row(merge, slot, aligned, begin, inner, ahead)
    elif strip.width & 1:
        advance_triple(merge, slot, half, b, c, aligned, begin, inner, ahead)
    else:
        advance_pair(merge, slot, half, b, aligned, begin, inner, ahead)
    edge_pair(merge, suffix + head, prefix + head, place, length, strip.rest)


@compiled
def scan_rows_alone(merge: Any, strip: Any, rows: int, down: Any) -> bool:
    """Windows one row high."""
    low, count, _, pace = down
    found = False
    for k in range(count):
        row = low + k * pace
        spot = strip.place + k * strip.out_row
        length = min(strip.cells * total_size(merge), strip.out_end - spot)
        slot = strip.ring
        if row < 0 or row >= rows:
            fill(merge, slot, strip.head + length)
            copy_bytes(spot, slot + strip.head, length)
            continue
        lacking, half = bring_half(merge, strip, row, slot)
        found |= lacking
        ahead = strip.source + (row + pace) * strip.row_bytes + strip.left * cell_size(merge) - strip.head
        b = half + (strip.width >> 1) * total_size(merge)
        c = strip.raw + (strip.width - 1) * total_size(merge)
        if strip.width == 1 or strip.step > 1:
            copy_bytes(spot, slot + strip.head, length)
        elif strip.width & 1:
            give_triple(merge, half, b, c, spot, strip.head, length, strip.rest, ahead)
        else:
            give_pair(merge, half, b, spot, strip.head, length, strip.rest, ahead)
    return found


@compiled
def scan_blocks(merge: Any, strip: Any, rows: int, down: Any) -> bool:
    """Windows several rows high."""
    low, count, height, pace = down
    size = total_size(merge)
    padded = strip.head + strip.cells * size
    top = max(low, 0)
    bottom = min(rows, low + (count - 1) * pace + height)
    row = top
    block = low
    suffix_first = 0
    suffix_end = 0
    found = False
    k = 0
    while k < count:
        start = low + k * pace
        if start >= block + height:
            # No window crosses from the block before: blocks begin anew here.
            block = start
            suffix_end = suffix_first
        first = max(block, top)
        end = max(min(block + height, bottom), first)
        row = max(row, first)
        total = 0  # where the merge of the block's rows so far is, if there are any
        while k < count and start <= block:
            last = min(start + height, end)
            spot = strip.place + k * strip.out_row
            length = min(strip.cells * size, strip.out_end - spot)
            suffix = 0
            if start < block and max(start, suffix_first) < suffix_end:
                suffix = strip.ring + (max(start, suffix_first) - block + height) * strip.ring_room
            completed = False
            while row < last:
                slot = strip.ring + (row - block) * strip.ring_room
                lacking, half = bring_half(merge, strip, row, slot)
                found |= lacking
                row += 1
                completed = total != 0 and suffix != 0 and row == last
                if completed:
                    ahead = strip.source + row * strip.row_bytes + strip.left * cell_size(merge) - strip.head
                    complete_row(merge, strip, half, slot, (total, strip.prefix, suffix, spot), length, ahead)
                    total = strip.prefix
                    continue
                if half != slot and strip.step == 1:
                    settle(merge, half, strip.raw, strip.width, padded, slot)
                if total == 0:
                    total = slot
                else:
                    pair(merge, strip.prefix, total, slot, padded)
                    total = strip.prefix
            if not completed:
                if total != 0 and suffix != 0:
                    give_pair(merge, suffix, total, spot, strip.head, length, strip.rest, strip.source)
                elif total != 0 or suffix != 0:
                    copy_bytes(spot, max(total, suffix) + strip.head, length)
                else:
                    fill(merge, strip.prefix, padded)
                    copy_bytes(spot, strip.prefix + strip.head, length)
            k += 1
            start = low + k * pace
        if k < count and start < block + height:
            found |= close_block(merge, strip, row, block, first, end)
            row = max(row, end)
        suffix_first = first
        suffix_end = end
        block += height
    return found


@compiled
def close_block(merge: Any, strip: Any, row: int, block: int, first: int, end: int) -> bool:
    """Bring in the rows of a block that no window ends at, and turn its rows into suffixes."""
    padded = strip.head + strip.cells * total_size(merge)
    found = False
    for late in range(row, end):
        slot = strip.ring + (late - block) * strip.ring_room
        lacking, half = bring_half(merge, strip, late, slot)
        found |= lacking
        if half != slot and strip.step == 1:
            settle(merge, half, strip.raw, strip.width, padded, slot)
    for upper in range(end - 2, first - 1, -1):
        slot = strip.ring + (upper - block) * strip.ring_room
        pair(merge, slot, slot, slot + strip.ring_room, padded)
    return found


@njit(nogil=True, cache=True)
def scan(
    merge: Any, source: int, out: int, shape: Any, down: Any, across: Any, shift: int, limit: int, work: Any
) -> bool:
    """Merge windows over the last two axes of ``source``, seen as ``shape`` = (outer, rows, columns).

    ``down`` and ``across`` are (first cell of the first window, windows, width, step). With a ``shift``, row r is not
    the source's, but begins ``shift`` columns after row r - 1 of the same source row. ``limit`` results are written
    per outer index. ``work`` is (address, columns of a strip, bytes of a row of results, bytes of a row to widen).
    Returns whether a cell was missing.
    """
    outer, rows, columns = shape
    edge, count, width, step = across
    ring, strip_columns, ring_room, room = work
    size = total_size(merge)
    each = columns if shift else rows * columns
    row_bytes = 0 if shift else columns * cell_size(merge)
    # Rows of the result that are not whole lines begin differently each.
    aligned = count * size % LINE == 0 and limit * size % LINE == 0
    prefix = ring + down[2] * ring_room
    raw = prefix + ring_room
    found = False
    for index in range(outer):
        begin = source + index * each * cell_size(merge)
        end = out + (index + 1) * limit * size
        for column in range(0, count, strip_columns):
            place = out + (index * limit + column) * size
            head = place % LINE if aligned else 0
            strip = Strip(
                begin, row_bytes, columns, edge + column * step, shift, min(strip_columns, count - column), width, step,
                place, count * size, end, head, ring, ring_room, prefix, raw, room, raw + 4 * room,
            )  # fmt: skip
            if down[2] == 1:
                found |= scan_rows_alone(merge, strip, rows, down)
            else:
                found |= scan_blocks(merge, strip, rows, down)
    return found
