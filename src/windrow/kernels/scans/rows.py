"""One row at a time: bring it in, widen it to windows along itself, write it into the result.

The first ``head`` bytes of a row mean nothing: they shift it so that the result, too, is written in aligned lines.
A level of widening is (loop, stride, where the extra row is, whether that is one of the level before, whether the row
it merges is needed again, width), in bytes.
"""

from __future__ import annotations

from typing import Any

from windrow.kernels.compiler.addresses import call, copy_bytes, zero_bytes
from windrow.kernels.compiler.jit import inner
from windrow.kernels.scans.loops import Kit
from windrow.kernels.scans.text import LINE


@inner
def pair(two: int, to: int, a: int, b: int, length: int) -> None:
    """Merge two rows into a third, which may be one of them."""
    call(two, (to, a, b - a, a, length))


@inner
def bring_row(kit: Kit, strip: Any, row: int, to: int) -> bool:
    """Copy the columns of a source row that the strip needs; columns outside the source change no result."""
    size = kit.total
    left = strip.left + row * strip.shift
    span = (strip.cells - 1) * strip.step + strip.width
    begin = min(max(-left, 0), span)
    end = max(min(strip.columns - left, span), begin)
    found = False
    if begin > 0:
        call(kit.fill, (to, begin * size))
    if end > begin:
        cells = strip.source + row * strip.row_bytes + (left + begin) * kit.cell
        length = (end - begin) * size
        if length < LINE:
            # Zeros, so that what is not there is not missing.
            zero_bytes(strip.rest, LINE)
            copy_bytes(strip.rest, cells, (end - begin) * kit.cell)
            cells = strip.rest
        found = call(kit.bring, (cells, to + begin * size, max(length, LINE))) != 0
    if end < span:
        call(kit.fill, (to + end * size, (span - end) * size))
    return found


@inner
def widen(kit: Kit, strip: Any, levels: Any, last: int, to: int) -> int:
    """Go through the first levels, the last of them into ``to`` if that is not 0; returns where the result is."""
    dense = strip.head + ((strip.cells - 1) * strip.step + strip.width) * kit.total
    row = strip.raw
    for number in range(last):
        join, stride, extra, overlaps, needed, width = levels[number]
        # Loops only look ahead, so that a row can be overwritten, which leaves more of the nearest cache to others.
        target = strip.raw + strip.room if needed else row
        if number == last - 1 and to != 0:
            target = to
        other = (row if overlaps else strip.raw) + extra
        call(join, (target, row, stride, other, dense + kit.total - width))
        row = target
    return row


@inner
def widened_but_last(kit: Kit, strip: Any, levels: Any, row: int) -> Any:
    """Bring in a row and widen it, but for the last level: whether a cell was missing, and what that level merges."""
    found = bring_row(kit, strip, row, strip.raw + strip.head)
    half = widen(kit, strip, levels, len(levels) - 1, 0)
    _, stride, extra, overlaps, _, _ = levels[len(levels) - 1]
    return found, half, stride, (half if overlaps else strip.raw) + extra


@inner
def widened(kit: Kit, strip: Any, levels: Any, row: int, slot: int) -> bool:
    """Put a source row, widened, into a slot; whether a cell was missing."""
    if strip.width == 1 and strip.step == 1:
        return bring_row(kit, strip, row, slot + strip.head)
    found = bring_row(kit, strip, row, strip.raw + strip.head)
    if strip.step == 1:
        widen(kit, strip, levels, len(levels), slot)
    else:
        wide = widen(kit, strip, levels, len(levels), 0)
        call(kit.pick, (wide + strip.head, strip.step, strip.cells * kit.total, slot + strip.head))
    return found


@inner
def give(join: int, row: int, stride: int, extra: int, place: int, head: int, length: int, rest: int) -> None:
    """Merge rows into the result."""
    begin = LINE if head else 0
    inner = (head + length) // LINE * LINE
    if begin < inner:
        call(join, (place - head + begin, row + begin, stride, extra + begin, inner - begin))
    if head:
        call(join, (rest, row, stride, extra, LINE))
        copy_bytes(place, rest + head, min(length, LINE - head))
    if begin <= inner < head + length:
        call(join, (rest, row + inner, stride, extra + inner, LINE))
        copy_bytes(place - head + inner, rest, head + length - inner)
