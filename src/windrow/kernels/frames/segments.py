"""Searching in many sorted stretches of one vector at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import kernel

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]


@kernel
def search_segments(
    values: Array, wanted: Array, first: Int64Array, last: Int64Array, after: bool, out: Int64Array
) -> None:
    """For each ``wanted``, the first row from ``first`` to before ``last`` that is at least (``after``: above) it.

    Neighbouring searches mostly end near one another, so each begins where the one before it ended.
    """
    place = np.int64(0)
    for k in range(len(wanted)):
        low, high = first[k], last[k]
        want = wanted[k]
        step = np.int64(1)
        if low <= place < high and (values[place] < want or (after and values[place] == want)):
            low = place + 1
            while low + step < high and (values[low + step] < want or (after and values[low + step] == want)):
                low += step
                step *= 2
            high = min(high, low + step + 1)
        elif low < place <= high:
            high = place
            while high - step > low and not (values[high - step] < want or (after and values[high - step] == want)):
                high -= step
                step *= 2
            low = max(low, high - step)
        while low < high:
            middle = (low + high) // 2
            if values[middle] < want or (after and values[middle] == want):
                low = middle + 1
            else:
                high = middle
        out[k] = low
        place = low
