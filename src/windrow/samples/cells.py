"""Cells all over a large sparse array, each place once, in no useful order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

TIMES, RIGHT_ASCENSIONS, DECLINATIONS = 10_000, 1_000, 1_000
SCATTERED_SCHEMA = (
    f"<mag: float32, flux: float64> [time=1:{TIMES}:500, ra=1:{RIGHT_ASCENSIONS}:50, dec=1:{DECLINATIONS}:50]"
)
"""The schema of a sparse array that takes these cells."""

STRIDE = 7_368_787
"""Coprime to the number of places, so that its multiples visit distinct ones in no order."""


def scattered_cells(count: int, start: int = 0, stop: int | None = None) -> pa.Table:
    """Cells ``start`` to ``stop`` of ``count`` distinct ones.

    >>> scattered_cells(1000).column_names
    ['time', 'ra', 'dec', 'mag', 'flux']
    """
    number = np.arange(start, count if stop is None else stop, dtype=np.int64)
    position = number * STRIDE % (TIMES * RIGHT_ASCENSIONS * DECLINATIONS)
    random = np.random.default_rng(start)
    return pa.table(
        {
            "time": position // (RIGHT_ASCENSIONS * DECLINATIONS) + 1,
            "ra": position // DECLINATIONS % RIGHT_ASCENSIONS + 1,
            "dec": position % DECLINATIONS + 1,
            "mag": np.round(random.normal(20, 2, len(number)), 3).astype(np.float32),
            "flux": random.random(len(number)),
        }
    )
