"""Nights of a made-up sky survey: points with exact coordinates, some of them close to one another."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def night_detections(night: int, count: int = 5_000) -> pa.Table:
    """What was seen in one night around one field, to be gridded by ``ra``, ``dec`` and ``time``.

    >>> night_detections(1, count=3).column_names
    ['ra', 'dec', 'time', 'mag']
    """
    random = np.random.default_rng(night)
    start = np.datetime64("2024-03-01T20:00:00", "us") + np.timedelta64(night, "D")
    return pa.table(
        {
            "ra": random.normal(150.0, 0.5, count),
            "dec": random.normal(2.0, 0.5, count),
            "time": start + random.integers(0, 4 * 3600, count).astype("timedelta64[s]"),
            "mag": random.normal(20.0, 1.5, count).astype("float32"),
        }
    )
