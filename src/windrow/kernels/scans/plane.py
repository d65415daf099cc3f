"""Windows over two axes at once, one cell apart: several rows are merged down the columns, then widened along.

Cells are read where they lie, a few rows at a time. Few rows are merged anew for every few windows. Many are
block-scanned as in ``strip``, but suffixes are kept only for every group of rows: those of the rows within are
merged again when they are needed. Rows outside the input are read from a row that changes nothing.

All numbers of a scan are in one array, named by their places: Numba takes seconds to compile calls with many arguments.
"""

from __future__ import annotations

from typing import Any

from windrow.kernels.compiler.addresses import call, copy_bytes
from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.scans.text import LINE

# Loops of a group of rows: direct ones, blind to NaN and careful; those of a block scan, each for groups of the most
# rows and of one less, blind and careful; how many rows the largest group has, and how many groups a block (0: direct).
DIRECT, CAREFUL, SUFFIX, PREFIX, GROUP, GROUPS = 0, 1, 2, 6, 10, 11
# The last loop of a row, what it divides averages by, the loop that looks for results of nothing, and one that fills a
# row; bytes of a cell and of a total. Averages by cells: addresses of the windows' widths and of their inverses, a
# number for each column. Averages by counts: the address of counts, one for each result, and how many bytes one has.
FINISH, AVERAGE, BARENESS, FILL, CELL, TOTAL, WIDTHS, INVERSES = range(12, 20)
# Addresses of cells and results; the source's planes, rows and columns; the first cell of the first window, windows and
# width along either axis; address of the workspace; strips; bytes of a row of the workspace; a row of blank cells.
SOURCE, OUT, OUTER, ROWS, COLUMNS, LOW, COUNT, HEIGHT, EDGE, ACROSS, WIDTH, NEUTRAL, STRIPS, ROOM, BLANK = range(20, 35)
GIVEN = 35
# What a strip adds. Addresses of its first covered cell and first result, and bytes from one row to the next; bytes of
# a row of results; where a row of the workspace has its first covered cell and its first one; how far ahead cells are
# asked for; see ``along_text`` for skew and last; rows of the workspace; the strip's first column.
ORIGIN, ROW_BYTES, PLACE, OUT_ROW, LENGTH, OFFSET, HEAD, AHEAD, SKEW, LAST = range(35, 45)
TOTALS, RING, RAW, WIDE, REST, COLUMN, POINTERS = range(45, 52)
NUMBERS = 52

# What averages are divided by: how many cells windows cover, or how many of these are present.
BY_CELLS, BY_COUNTS = 1, 2

# What a scan has found: a cell is missing; a result may be of nothing.
MISSING, BARE = 1, 2


@inner
def point(n: Any, pointers: Any, at: int, first: int, count: int) -> None:
    """List where rows of cells are."""
    for number in range(count):
        row = first + number
        inside = 0 <= row < n[ROWS]
        pointers[at + number] = n[ORIGIN] + row * n[ROW_BYTES] if inside else n[BLANK]


@inner
def merge(blind: int, careful: int, care: int, arguments: Any) -> int:
    """Merge the listed rows; whether one lacks a cell. A loop blind to NaN is repeated with care if there is one.

    With care from the start, rows that were there before need not be reported again.
    """
    if care:
        return call(careful, arguments)
    if call(blind, arguments) == 0:
        return 0
    call(careful, arguments)
    return 1


@inner
def give_row(n: Any, levels: Any, heights: Any, number: int, k: int) -> int:
    """Widen a merged row and write it into the k-th row of results."""
    raw = n[RAW] + number * n[ROOM]
    row = raw
    last = len(levels) - 1
    dense = n[HEAD] + n[LENGTH] + levels[last, 5]
    for level in range(last):
        join, stride, extra, overlaps, stretches, width = levels[level]
        if stretches:
            end = (dense - width - 1) // LINE * LINE
            call(join, (n[WIDE], n[WIDE], n[WIDE] + end, row, 0, end))
        else:
            call(join, (n[WIDE], row, stride, (row if overlaps else raw) + extra, dense - width))
        row = n[WIDE]
    _, stride, extra, overlaps, stretches, _ = levels[last]
    spot = n[PLACE] + k * n[OUT_ROW]
    if stretches:
        stretch_out(n, heights, row, spot, k)
        return 0
    other = (row if overlaps else raw) + extra + n[HEAD]
    row += n[HEAD]
    skew = LINE - spot % LINE
    end = n[LENGTH] - LINE
    if n[AVERAGE] == BY_CELLS:
        at = n[COLUMN] * n[TOTAL]
        wide, inverse, high, low = n[WIDTHS] + at, n[INVERSES] + at, heights[k, 0], heights[k, 1]
        call(n[FINISH], (spot, row, stride, other, wide, inverse, high, low, n[OUT_ROW], skew, end))
    elif n[AVERAGE] == BY_COUNTS:
        call(n[FINISH], (spot, row, stride, other, counts_at(n, spot), n[OUT_ROW], skew, end))
    else:
        call(n[FINISH], (spot, row, stride, other, n[OUT_ROW], skew, end))
    return 0


@inner
def counts_at(n: Any, spot: int) -> int:
    """Where the counts are that belong to results from here on."""
    return n[WIDTHS] + (spot - n[OUT]) // n[TOTAL] * n[INVERSES]


@inner
def stretch_out(n: Any, heights: Any, row: int, spot: int, k: int) -> int:
    """Widen a row into results, in whole lines; those at its ends, if they are not whole, by way of spare ones."""
    # Rows of results that are not whole lines begin differently each, unlike those of the workspace.
    head = spot % LINE
    row += n[HEAD] - head
    to = spot - head
    length = head + n[LENGTH]
    end = (length - 1) // LINE * LINE
    first = n[REST] if head else spot
    final = n[REST] + LINE if length % LINE else to + end
    if n[AVERAGE] == BY_CELLS:
        at = n[COLUMN] * n[TOTAL] - head
        wide, inverse, high, low = n[WIDTHS] + at, n[INVERSES] + at, heights[k, 0], heights[k, 1]
        call(n[FINISH], (to, first, final, row, wide, inverse, high, low, n[OUT_ROW], end))
    elif n[AVERAGE] == BY_COUNTS:
        call(n[FINISH], (to, first, final, row, counts_at(n, to), n[OUT_ROW], end))
    else:
        call(n[FINISH], (to, first, final, row, n[OUT_ROW], end))
    if head:
        copy_bytes(spot, n[REST] + head, LINE - head)
    if length % LINE:
        copy_bytes(to + end, n[REST] + LINE, length - end)
    return 0


@inner
def give_rows(n: Any, levels: Any, heights: Any, first: int, end: int, found: int) -> int:
    """Give merged rows; where cells are missing, whether a result may be of nothing."""
    for k in range(first, min(end, n[COUNT])):
        give_row(n, levels, heights, k - first, k)
        if found and not n[AVERAGE] and call(n[BARENESS], (n[PLACE] + k * n[OUT_ROW], n[LENGTH] - LINE)) != 0:
            found |= BARE
    return found


@inner
def scan_direct(n: Any, levels: Any, pointers: Any, heights: Any) -> int:
    rows = n[GROUP]
    care = 1
    found = 0
    for k in range(0, n[COUNT], rows):
        point(n, pointers, 0, n[LOW] + k, rows + n[HEIGHT] - 1)
        arguments = (n[POINTERS], n[RAW] + n[OFFSET], n[ROOM], n[AHEAD], n[SKEW], n[LAST])
        care = merge(n[DIRECT], n[CAREFUL], care, arguments)
        found |= care
        if n[AVERAGE] == BY_CELLS and found:
            return found
        found = give_rows(n, levels, heights, k, k + rows, found)
    return found


@inner
def group(n: Any, number: int) -> int:
    """Where group ``number`` of a block begins; larger groups come first."""
    least, more = n[HEIGHT] // n[GROUPS], n[HEIGHT] % n[GROUPS]
    return number * least + min(number, more)


@inner
def keep_suffixes(n: Any, pointers: Any, block: int, care: int) -> int:
    """Merge each group of a block but the first with all rows below; whether a cell is missing."""
    below = n[NEUTRAL] + n[OFFSET]
    found = 0
    for number in range(n[GROUPS] - 1, 0, -1):
        first, end = group(n, number), group(n, number + 1)
        loops = SUFFIX + n[GROUP] - end + first
        point(n, pointers, 0, block + first, end - first)
        to = n[RING] + number * n[ROOM] + n[OFFSET]
        care = merge(n[loops], n[loops + 2], care, (n[POINTERS], below, to, n[ROOM], n[AHEAD], n[SKEW], n[LAST]))
        found |= care
        below = to
    return found


@inner
def scan_blocks(n: Any, levels: Any, pointers: Any, heights: Any) -> int:
    height = n[HEIGHT]
    neutral = n[NEUTRAL] + n[OFFSET]
    care = 0
    found = 0
    for start in range(0, n[COUNT], height):
        block = n[LOW] + start
        care = keep_suffixes(n, pointers, block, care)
        found |= care
        before = neutral
        for number in range(n[GROUPS]):
            first, end = group(n, number), group(n, number + 1)
            if n[AVERAGE] == BY_CELLS and found:
                return found
            if start + first >= n[COUNT]:
                break
            rows = end - first
            loops = PREFIX + n[GROUP] - rows
            point(n, pointers, 0, block + first, rows)
            point(n, pointers, rows, block + height + first - 1, rows)
            if number == 0:
                pointers[rows] = n[BLANK]
            below = n[RING] + (number + 1) * n[ROOM] + n[OFFSET] if number + 1 < n[GROUPS] else neutral
            after = n[TOTALS] + number % 2 * n[ROOM] + n[OFFSET]
            to = n[RAW] + n[OFFSET]
            arguments = (n[POINTERS], below, before, after, to, n[ROOM], n[AHEAD], n[SKEW], n[LAST])
            care = merge(n[loops], n[loops + 2], care, arguments)
            found |= care
            before = after
            found = give_rows(n, levels, heights, start + first, start + end, found)
    return found


@kernel
def scan_plane(n: Any, levels: Any, pointers: Any, heights: Any) -> int:
    """Merge windows over the last two axes of a source; ``levels`` as in ``rows``.

    Returns what was found; averages by cells are given up where one is missing.
    """
    room, size, count = n[ROOM], n[TOTAL], n[ACROSS]
    n[TOTALS] = n[NEUTRAL] + room
    n[RING] = n[TOTALS] + 2 * room
    n[RAW] = n[RING] + n[GROUPS] * room
    n[WIDE] = n[RAW] + n[GROUP] * room
    n[REST] = n[WIDE] + room
    n[ROW_BYTES] = n[COLUMNS] * n[CELL]
    n[AHEAD] = n[GROUP] * n[ROW_BYTES]
    n[OUT_ROW] = count * size
    found = 0
    call(n[FILL], (n[NEUTRAL], room))
    for part in range(n[OUTER] * n[STRIPS]):
        index, number = part // n[STRIPS], part % n[STRIPS]
        first, end = number * count // n[STRIPS], (number + 1) * count // n[STRIPS]
        left = n[EDGE] + first
        begin = max(-left, 0)
        stop = min(n[COLUMNS] - left, end - first + n[WIDTH] - 1)
        n[ORIGIN] = n[SOURCE] + index * n[ROWS] * n[ROW_BYTES] + (left + begin) * n[CELL]
        n[PLACE] = n[OUT] + (index * n[COUNT] * count + first) * size
        n[LENGTH] = (end - first) * size
        n[HEAD] = n[PLACE] % LINE
        n[OFFSET] = n[HEAD] + begin * size
        n[SKEW] = LINE - n[OFFSET] % LINE
        n[LAST] = (stop - begin) * size - LINE
        n[COLUMN] = first
        call(n[FILL], (n[RAW], n[GROUP] * room))
        if n[GROUPS]:
            found |= scan_blocks(n, levels, pointers, heights)
        else:
            found |= scan_direct(n, levels, pointers, heights)
        if n[AVERAGE] == BY_CELLS and found:
            return found
    return found
