"""How windows along a row are built up: windows of q cells make windows of 2q to 8q, level by level."""

from __future__ import annotations

import functools
from typing import NamedTuple

from windrow.kernels.scan_code import MOST_ROWS

LOAD, STORE = 1.45, 0.5  # cycles a line; most loads reach over the end of one


class Level(NamedTuple):
    """``rows`` windows of ``before`` cells side by side, and one more cell or window, make a window of ``width``."""

    width: int
    before: int
    rows: int
    extra: int | None = None  # where the one more is: a cell of the row itself, or a window that overlaps

    @property
    def cost(self) -> float:
        return STORE + LOAD * (self.rows + (self.extra is not None))


@functools.lru_cache(maxsize=4096)
def widening(width: int, overlaps: bool) -> tuple[Level, ...]:
    """The cheapest levels to a width; ``overlaps`` says whether merging a cell twice changes nothing.

    >>> [(level.before, level.rows, level.extra) for level in widening(31, overlaps=False)]
    [(1, 4, 4), (5, 3, None), (15, 2, 30)]
    """
    if width == 1:
        return ()
    ways = [(*widening(level.before, overlaps), level) for level in _last_levels(width, overlaps)]
    return min(ways, key=lambda levels: sum(level.cost for level in levels))


def _last_levels(width: int, overlaps: bool) -> list[Level]:
    found = []
    for rows in range(2, min(width, MOST_ROWS) + 1):
        before, rest = divmod(width, rows)
        if rest == 0:
            found.append(Level(width, before, rows))
        elif overlaps:
            found.append(Level(width, before + 1, rows - 1, width - before - 1))
        elif rest == 1:
            found.append(Level(width, before, rows, width - 1))
    return found
