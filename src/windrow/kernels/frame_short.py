"""Modes of short windows of few values, many windows side by side: each value is compared with those after it.

A count and a value share a number of 15 bits, the count above, so that the largest such number is the most frequent
value, and the smallest of several. All steps are the same for all windows, which lets vectors do sixteen at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.jit import kernel

Array = npt.NDArray[Any]

LONGEST = 20
"""Rows of windows for which comparing all pairs beats counting."""
BITS = 10
"""Of a value, which are thus numbered from 0 to below 1024."""
TILE = 512


@kernel
def short_modes(values: Array, low: int, width: int, modes: Array) -> None:
    """The mode of the windows that begin with value 0, 1, …; there are ``width - 1`` more values than windows."""
    codes = np.empty(TILE + width, np.int16)
    counts = np.empty(TILE, np.int16)
    best = np.empty(TILE, np.int16)
    last = np.int16((1 << BITS) - 1)
    for start in range(0, len(modes), TILE):
        count = min(TILE, len(modes) - start)
        for k in range(count + width - 1):
            codes[k] = values[start + k] - low
        best[:] = 0
        for place in range(width):
            counts[:] = 1
            here = codes[place : place + TILE]
            for other in range(place + 1, width):
                there = codes[other : other + TILE]
                for k in range(count):
                    counts[k] += np.int16(here[k] == there[k])
            for k in range(count):
                key = np.int16(counts[k] << BITS) + (last - here[k])
                best[k] = max(best[k], np.int16(key))
        for k in range(count):
            modes[start + k] = low + last - (best[k] & last)
