"""What a scan of planes needs: its loops, how rows are widened, its workspace."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.compiler.vectors import vector_bytes
from windrow.kernels.scans.along_text import CELLS
from windrow.kernels.scans.loops import MOST_ROWS, Merge
from windrow.kernels.scans.plane import BY_CELLS, BY_COUNTS, GIVEN, NUMBERS, POINTERS, scan_plane
from windrow.kernels.scans.text import LINE
from windrow.kernels.scans.widening import widening

Extent = tuple[int, int, int, int]

DIRECT = 5  # rows: higher windows are block-scanned
GROUP = 4  # rows merged at once
MOST_LANES = 8  # of a register that rows are widened through
RING_BYTES = 1 << 20  # of a block's rows: more than the second-level cache of most cores, but read in order
COLUMNS = 2048  # of a strip, at most
PAGE = 4096
_NO_HEIGHTS = np.empty((0, 2), np.int64)


class Cells(NamedTuple):
    """How many cells windows cover along each of the two axes, and the inverses of that."""

    widths: NDArray[np.float64]
    inverses: NDArray[np.float64]
    heights: NDArray[np.int64]  # a row for each row of results: the number and its inverse, as bits


@lru_cache(maxsize=16)
def covered_cells(rows: int, down: Extent, columns: int, across: Extent) -> Cells:
    heights, widths = _covered(rows, down), _covered(columns, across)
    # Rows are read in whole lines, from before their first column.
    room = LINE // 8
    padded = np.ones(len(widths) + 2 * room)
    padded[room : room + len(widths)] = np.maximum(widths, 1)
    high = np.maximum(heights, 1).astype(np.float64)
    return Cells(padded, 1 / padded, np.stack([high, 1 / high], 1).view(np.int64))


def _covered(cells: int, extent: Extent) -> NDArray[np.int64]:
    """How many cells each window along an axis covers."""
    low, count, width, step = extent
    first = low + np.arange(count) * step
    return np.minimum(first + width, cells) - np.maximum(first, 0)


def _down(merge: Merge, height: int) -> tuple[int, ...]:
    """A scan's first numbers: how rows are merged."""
    wary = merge.checked
    if height <= DIRECT:
        rows = min(GROUP, height)
        return (merge.direct(rows, height, False), merge.direct(rows, height, wary), *(0,) * 8, rows, 0)
    groups = -(-height // GROUP)
    most = -(-height // groups)
    sizes = (most, most - (height % groups > 0))
    suffixes = [merge.suffix(rows, careful) for careful in (False, wary) for rows in sizes]
    prefixes = [merge.prefix(rows, careful) for careful in (False, wary) for rows in sizes]
    return (0, 0, *suffixes, *prefixes, most, groups)


def _across(merge: Merge, width: int, divisor: str) -> tuple[int, NDArray[np.int64]]:
    """The loop that finishes a row, and the levels as compiled code reads them: see ``rows``."""
    size, overlaps = merge.kit.total, merge.rule in ("min", "max")
    lanes = min(vector_bytes(), LINE) // size
    levels = widening(width, overlaps, lanes if lanes <= MOST_LANES else 0)
    if not levels:
        return merge.finish(1, False, divisor), np.array([(0, 0, 0, overlaps, False, size)], np.int64)
    rows = []
    for level in levels[:-1]:
        loop = merge.join(level.rows, level.extra is not None) if level.rows else merge.stretch(level.width)
        rows.append(
            (loop, level.before * size, (level.extra or 0) * size, overlaps, not level.rows, level.width * size)
        )
    level = levels[-1]
    rows.append((0, level.before * size, (level.extra or 0) * size, overlaps, not level.rows, level.width * size))
    if level.rows:
        return merge.finish(level.rows, level.extra is not None, divisor), np.array(rows, np.int64)
    return merge.stretch(level.width, divisor), np.array(rows, np.int64)


class Layout(NamedTuple):
    """Strips of a row of results, and bytes of a row of the workspace."""

    strips: int
    room: int


@lru_cache(maxsize=1024)
def plane_layout(size: int, height: int, columns: int, across: Extent) -> Layout | None:
    """How rows are cut; None if some strip would have less than a line of results, or of cells."""
    edge, count, width, _ = across
    most = max(RING_BYTES // (height * size) if height > DIRECT else COLUMNS, 256, 4 * width)
    strips = -(-count // min(most, COLUMNS))
    for number in range(strips):
        first, end = number * count // strips, (number + 1) * count // strips
        covered = min(columns, edge + end + width - 1) - max(edge + first, 0)
        if min(covered, end - first) * size < LINE:
            return None
    room = -(-((-(-count // strips) + width - 1) * size) // LINE) * LINE + 3 * LINE
    # A load whose address agrees in its last twelve bits with that of a store just before waits for that store.
    near = room % PAGE
    return Layout(strips, room + (512 if near < 512 else 1024 if near > PAGE - 512 else 0))


def workspace_bytes(height: int, plan: Layout) -> int:
    rows = 4 + GROUP + (-(-height // GROUP) if height > DIRECT else 0)
    # Loops read lines beyond the end of a row.
    return rows * plan.room + (MOST_ROWS + 4) * LINE


@lru_cache(maxsize=64)
def _blank(rule: str, cell: str, columns: int) -> NDArray[Any]:
    """A row of cells that changes nothing."""
    dtype = np.dtype(cell)
    if rule not in ("min", "max"):
        return np.zeros(columns, dtype)
    if dtype.kind == "f":
        return np.full(columns, np.inf if rule == "min" else -np.inf, dtype)
    limits = np.iinfo(dtype)
    return np.full(columns, limits.max if rule == "min" else limits.min, dtype)


@lru_cache(maxsize=1024)
def _code(merge: Merge, height: int, width: int, divisor: str) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """A scan's numbers up to what averages are divided by, and the levels."""
    loop, levels = _across(merge, width, divisor)
    kit = merge.kit
    average = 0 if not divisor else BY_CELLS if divisor == CELLS else BY_COUNTS
    return (*_down(merge, height), loop, average, merge.bare(), kit.fill, kit.cell, kit.total), levels


def run_plane(
    merge: Merge, plan: Layout, arrays: tuple[NDArray[Any], NDArray[Any]], shape: tuple[int, int, int], down: Extent,
    across: Extent, work: NDArray[np.uint8], divisors: Cells | NDArray[Any] | None,
) -> int:  # fmt: skip
    """Merge windows over the last two axes; what was found: see ``scan_plane``.

    Averages are divided by the cells that windows cover, or by counts that have a line's room around them.
    """
    ends, heights, divisor = (0, 0), _NO_HEIGHTS, ""
    if isinstance(divisors, Cells):
        ends, heights, divisor = (
            (place(divisors.widths) + LINE, place(divisors.inverses) + LINE),
            divisors.heights,
            CELLS,
        )
    elif divisors is not None:
        ends, divisor = (place(divisors), divisors.itemsize), divisors.dtype.str
    code, levels = _code(merge, down[2], across[2], divisor)
    address = -(-place(work) // LINE) * LINE
    blank = _blank(merge.rule, merge.cell, shape[2])
    pointers = np.empty(2 * GROUP + DIRECT, np.int64)
    numbers = np.empty(NUMBERS, np.int64)
    numbers[:GIVEN] = (
        *code, *ends, place(arrays[0]), place(arrays[1]), *shape, *down[:3], *across[:3],
        address, plan.strips, plan.room, place(blank),
    )  # fmt: skip
    numbers[POINTERS] = place(pointers)
    return int(scan_plane(numbers, levels, pointers, heights))


def place(array: NDArray[Any]) -> int:
    """An array's address, by the quickest way there is."""
    found: int = array.__array_interface__["data"][0]
    return found
