"""Windows over two axes at once: widened along rows, merged down the rows, in strips that stay in the cache.

Rows are block-scanned (van Herk 1992; Gil and Werman 1993): they are cut into blocks as high as the window, so that a
window is the suffix of one block and a prefix of the next. Nothing is ever taken away again, so any associative merge
will do, an infinity leaves with its row, and a sum's error does not depend on what has passed before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from windrow.kernels.compiler.addresses import call, copy_bytes
from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.scans.loops import Kit
from windrow.kernels.scans.rows import give, pair, widened, widened_but_last
from windrow.kernels.scans.text import LINE


class Loops(NamedTuple):
    """Addresses of the loops of one scan, see ``loops.Merge``; the last level of widening is part of the first."""

    last: int  # completes a row of results with a new row: join or advance
    two: int  # merges two rows


class Strip(NamedTuple):
    """Where a strip's cells come from and its results go, and the rows of its workspace, all in bytes or columns."""

    source: int  # address of the first source row
    row_bytes: int  # from one source row to the next
    rows: int  # of the source
    columns: int
    left: int  # the first column the strip's first window covers
    shift: int  # columns by which each row begins further right
    cells: int  # windows side by side
    width: int
    step: int
    place: int  # address of the strip's first result
    out_row: int  # bytes from one result row to the next
    out_end: int  # address after the last result
    head: int  # bytes before a row's first column, see ``rows``
    ring: int  # the rows of a block
    ring_room: int
    prefix: int
    raw: int  # a source row, and after it room to widen it in
    room: int
    rest: int  # a spare line


@inner
def spot_of(kit: Kit, strip: Strip, k: int) -> Any:
    """Where the k-th row of results begins, and how many bytes of it the strip has."""
    spot = strip.place + k * strip.out_row
    return spot, min(strip.cells * kit.total, strip.out_end - spot)


@inner
def ahead_of(kit: Kit, strip: Strip, row: int) -> int:
    """Where the cells of a row come from that is needed next."""
    return strip.source + row * strip.row_bytes + strip.left * kit.cell


@inner
def ready_but_last(kit: Kit, strip: Strip, levels: Any, row: int) -> Any:
    """A row for the loop that completes results, which widens it for the last time if there is anything to widen."""
    if strip.width > 1 and strip.step == 1:
        return widened_but_last(kit, strip, levels, row)
    return widened(kit, strip, levels, row, strip.prefix), strip.prefix, 0, strip.prefix


@inner
def scan_single(kit: Kit, loops: Loops, strip: Strip, levels: Any, down: Any) -> bool:
    """Windows one row high."""
    low, count, _, pace = down
    found = False
    for k in range(count):
        row = low + k * pace
        spot, length = spot_of(kit, strip, k)
        if row < 0 or row >= strip.rows:
            call(kit.fill, (strip.prefix, strip.head + length))
            copy_bytes(spot, strip.prefix + strip.head, length)
            continue
        lacking, half, stride, extra = ready_but_last(kit, strip, levels, row)
        found |= lacking
        if strip.width == 1 or strip.step > 1:
            copy_bytes(spot, half + strip.head, length)
        else:
            give(loops.last, half, stride, extra, spot, strip.head, length, strip.rest)
    return found


@inner
def complete_row(advance: int, strip: Strip, rows: Any, others: Any, spot: int, length: int, ahead: int) -> None:
    """A row goes into its slot, with those before into the prefix, and with the suffix into the result."""
    row, stride, extra, slot = rows
    before, prefix, suffix = others
    rest = strip.rest
    begin = LINE if strip.head else 0
    inner = (strip.head + length) // LINE * LINE
    if strip.head:
        call(advance, (rest, row, stride, extra, slot, before, prefix, suffix, ahead, LINE))
        copy_bytes(spot, rest + strip.head, min(length, LINE - strip.head))
    if begin < inner:
        a, b = row + begin, extra + begin
        c, d, e, f = slot + begin, before + begin, prefix + begin, suffix + begin
        call(advance, (spot - strip.head + begin, a, stride, b, c, d, e, f, ahead, inner - begin))
    if begin <= inner < strip.head + length:
        a, b = row + inner, extra + inner
        c, d, e, f = slot + inner, before + inner, prefix + inner, suffix + inner
        call(advance, (rest, a, stride, b, c, d, e, f, ahead, LINE))
        copy_bytes(spot - strip.head + inner, rest, strip.head + length - inner)


@inner
def scan_blocks(kit: Kit, loops: Loops, strip: Strip, levels: Any, down: Any) -> bool:
    """Windows of many rows."""
    low, count, height, pace = down
    padded = strip.head + strip.cells * kit.total
    top = max(low, 0)
    bottom = min(strip.rows, low + (count - 1) * pace + height)
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
            spot, length = spot_of(kit, strip, k)
            suffix = 0
            if start < block and max(start, suffix_first) < suffix_end:
                suffix = strip.ring + (max(start, suffix_first) - block + height) * strip.ring_room
            completed = False
            while row < last:
                slot = strip.ring + (row - block) * strip.ring_room
                completed = total != 0 and suffix != 0 and row == last - 1
                if completed and strip.width > 1 and strip.step == 1:
                    lacking, half, stride, extra = widened_but_last(kit, strip, levels, row)
                    rows = (half, stride, extra, slot)
                else:
                    lacking = widened(kit, strip, levels, row, slot)
                    rows = (slot, 0, slot, slot)
                found |= lacking
                row += 1
                if completed:
                    others = (total, strip.prefix, suffix)
                    complete_row(loops.last, strip, rows, others, spot, length, ahead_of(kit, strip, row))
                    total = strip.prefix
                elif total == 0:
                    total = slot
                else:
                    pair(loops.two, strip.prefix, total, slot, padded)
                    total = strip.prefix
            if not completed:
                give_merged(kit, loops, strip, total, suffix, spot, length)
            k += 1
            start = low + k * pace
        if k < count and start < block + height:
            found |= close_block(kit, loops, strip, levels, (row, block, first, end))
            row = max(row, end)
        suffix_first = first
        suffix_end = end
        block += height
    return found


@inner
def give_merged(kit: Kit, loops: Loops, strip: Strip, total: int, suffix: int, spot: int, length: int) -> None:
    """A row of results that no new row completes: whatever there is of prefix and suffix."""
    if total != 0 and suffix != 0:
        give(loops.two, suffix, total - suffix, suffix, spot, strip.head, length, strip.rest)
    elif total != 0 or suffix != 0:
        copy_bytes(spot, max(total, suffix) + strip.head, length)
    else:
        call(kit.fill, (strip.prefix, strip.head + length))
        copy_bytes(spot, strip.prefix + strip.head, length)


@inner
def close_block(kit: Kit, loops: Loops, strip: Strip, levels: Any, rows: Any) -> bool:
    """Bring in the rows of a block that no window ends at, and turn its rows into suffixes."""
    row, block, first, end = rows
    padded = strip.head + strip.cells * kit.total
    found = False
    for late in range(row, end):
        found |= widened(kit, strip, levels, late, strip.ring + (late - block) * strip.ring_room)
    for upper in range(end - 2, first - 1, -1):
        slot = strip.ring + (upper - block) * strip.ring_room
        pair(loops.two, slot, slot, slot + strip.ring_room, padded)
    return found


@kernel
def scan(
    kit: Kit, loops: Loops, source: int, out: int, shape: Any, down: Any, across: Any, levels: Any, shift: int,
    limit: int, work: Any,
) -> bool:  # fmt: skip
    """Merge windows over the last two axes of ``source``, seen as ``shape`` = (outer, rows, columns).

    ``down`` and ``across`` are (first cell of the first window, windows, width, step). ``levels`` say how rows are
    widened, see ``rows``. With a ``shift``, row r is not the source's, but begins ``shift`` columns after row
    r - 1 of the same source row. ``limit`` results are written per outer index. ``work`` is (address, columns of a
    strip, bytes of a row of results, bytes of a row to widen). Returns whether a cell was missing.
    """
    outer, rows, columns = shape
    edge, count, width, step = across
    ring, strip_columns, ring_room, room = work
    size = kit.total
    each = columns if shift else rows * columns
    row_bytes = 0 if shift else columns * kit.cell
    # Rows of the result that are not whole lines begin differently each.
    aligned = count * size % LINE == 0 and limit * size % LINE == 0
    prefix = ring + down[2] * ring_room
    raw = prefix + ring_room
    found = False
    for index in range(outer):
        begin = source + index * each * kit.cell
        end = out + (index + 1) * limit * size
        for column in range(0, count, strip_columns):
            place = out + (index * limit + column) * size
            head = place % LINE if aligned else 0
            strip = Strip(
                begin, row_bytes, rows, columns, edge + column * step, shift, min(strip_columns, count - column), width,
                step, place, count * size, end, head, ring, ring_room, prefix, raw, room, raw + 2 * room,
            )  # fmt: skip
            if down[2] == 1:
                found |= scan_single(kit, loops, strip, levels, down)
            else:
                found |= scan_blocks(kit, loops, strip, levels, down)
    return found
