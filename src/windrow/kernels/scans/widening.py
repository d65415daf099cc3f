"""How windows along a row are built up: windows of q cells make windows of 2q to 8q, level by level."""

from __future__ import annotations

import functools
from typing import NamedTuple

from windrow.kernels.scans.loops import MOST_ROWS

# Cycles a line. Loads that begin anywhere reach over the end of a line, most of the time.
LOAD, ALIGNED, STORE, MERGE = 1.5, 1.2, 1.0, 0.5


class Level(NamedTuple):
    """``rows`` windows of ``before`` cells side by side, and one more cell or window, make a window of ``width``.

    Without ``rows``, cells make windows in one go through registers of so many ``lanes``.
    """

    width: int
    before: int
    rows: int
    extra: int | None = None  # where the one more is: a cell of the row itself, or a window that overlaps
    lanes: int = 0

    @property
    def cost(self) -> float:
        if not self.rows:
            return STORE + LOAD * self.lanes + MERGE * (self.width // self.lanes).bit_length()
        load = ALIGNED if self.lanes and self.before % self.lanes == 0 else LOAD
        return STORE + load * (self.rows + (self.extra is not None))


@functools.lru_cache(maxsize=4096)
def widening(width: int, overlaps: bool, lanes: int = 0) -> tuple[Level, ...]:
    """The cheapest levels to a width; ``overlaps`` says whether merging a cell twice changes nothing.

    With ``lanes``, the first level may go through registers of so many.

    >>> [(level.before, level.rows, level.extra) for level in widening(31, overlaps=False)]
    [(1, 4, 4), (5, 3, None), (15, 2, 30)]
    >>> [(level.width, level.rows) for level in widening(100, overlaps=False, lanes=4)]
    [(25, 0), (100, 4)]
    """
    if width == 1:
        return ()
    ways = [(*widening(level.before, overlaps, lanes), level) for level in _last_levels(width, overlaps, lanes)]
    return min(ways, key=lambda levels: sum(level.cost for level in levels))


def _last_levels(width: int, overlaps: bool, lanes: int) -> list[Level]:
    found = []
    for rows in range(2, min(width, MOST_ROWS) + 1):
        before, rest = divmod(width, rows)
        if rest == 0:
            found.append(Level(width, before, rows, None, lanes))
        elif overlaps:
            found.append(Level(width, before + 1, rows - 1, width - before - 1, lanes))
        elif rest == 1:
            found.append(Level(width, before, rows, width - 1, lanes))
    if lanes and lanes <= width < (MOST_ROWS + 1) * lanes:
        found.append(Level(width, 1, 0, None, lanes))
    return found
