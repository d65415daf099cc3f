"""Modes of short windows of few values, many windows side by side: each value is compared with those after it.

A count and a value share a number of 15 bits, the count above, so that the largest such number is the most frequent
value, and the smallest of several. A row counts the equal ones up to the last row of a window: the first row of a
window counts all of it, the next one row less, and so on, so that one more distance of rows to compare adds one row to
every window. All steps are the same for all windows, which lets vectors do sixteen at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel

Array = npt.NDArray[Any]

BITS = 10
"""Of a value, which are thus numbered from 0 to below 1024."""
LONGEST = 31
"""Rows of windows, which the other bits count."""
TILE = 512


@kernel
def short_modes(values: Array, low: int, span: int, width: int, modes: Array) -> None:
    """The mode of the windows that begin with value 0, 1, …; there are ``width - 1`` more values than windows."""
    codes = np.empty(TILE + 2 * LONGEST, np.int16)
    keys = np.empty(TILE + LONGEST, np.int16)
    best = np.empty(TILE, np.int16)
    last = np.int16((1 << BITS) - 1)
    for start in range(0, len(modes), TILE):
        count = min(TILE, len(modes) - start)
        rows = count + width - 1
        for k in range(rows):
            codes[k] = values[start + k] - low
            keys[k] = (1 << BITS) + last - codes[k]
        codes[rows : rows + width] = -1  # equal to no code, so that no window counts them
        for k in range(count):
            best[k] = keys[k + width - 1]
        for far in range(1, width):
            there, end = codes[far:], keys[width - 1 - far :]
            for k in range(rows):
                keys[k] += np.int16(codes[k] == there[k]) << BITS
            for k in range(count):
                best[k] = max(best[k], end[k])
        for k in range(count):
            modes[start + k] = low + last - (best[k] & last)
