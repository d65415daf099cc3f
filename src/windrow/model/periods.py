"""Dimensions that go round: longitudes all around the Earth, and what is declared to ``wrap``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.model.gridding import Axis
from windrow.model.labels import Labels
from windrow.model.schema import Dimension
from windrow.model.units import parse_quantity

Int64Array = npt.NDArray[np.int64]

CIRCLE = 360
_EAST = {"degrees_east", "degree_east", "degree_e", "degrees_e", "degreee", "degreese"}
"""The units by which the CF conventions tell a longitude, in small letters."""


def period_of_labels(dimension: Dimension, labels: Labels) -> int | float | None:
    """After how much a dimension's labels begin anew; None if they do not.

    Longitudes do if they are a circle: the gap between the last and the first is as wide as the others, or none is
    left. A dimension that is declared to wrap does, a cell's width after its last label.
    """
    if labels.kind != "number" or len(labels) < 2 or not labels.is_monotonic:
        return None
    span = abs(float(labels.values[-1]) - float(labels.values[0]))
    widest = float(np.abs(np.diff(labels.values.astype(np.float64))).max())
    if labels.attributes.get("units", "").lower() in _EAST:
        whole = CIRCLE - span <= widest * 1.01 and span <= CIRCLE * (1 + 1e-9)
        return CIRCLE if whole else None
    step = labels.step
    if not dimension.wrap or step is None:
        return None
    assert not isinstance(step, np.timedelta64)
    return abs(step) * len(labels)


def ranges_around(axis: Axis, low: object, high: object) -> list[tuple[object, object]]:
    """A range of a gridded dimension as ranges that do not go round; one of 360 degrees is a circle."""
    if axis.kind != "number" or axis.high is None or axis.high - axis.low != CIRCLE:
        return [(low, high)]
    lower, upper = (parse_quantity(end).degrees for end in (low, high))
    if axis.low <= lower <= upper <= axis.high:
        return [(low, high)]
    if upper - lower >= CIRCLE:
        return [(None, None)]
    start = axis.low + (lower - axis.low) % CIRCLE
    stop = start + (upper - lower) % CIRCLE
    if stop <= axis.high:
        return [(float(start), float(stop))]
    return [(float(start), None), (None, float(stop - CIRCLE))]


def cells_around(labels: Labels, period: int | float, low: float, high: float) -> Int64Array:
    """The positions of the labels from ``low`` round to ``high``, in the order in which they are met.

    Of a first and a last label that are the same place, such as 0 and 360, only the first is met.
    """
    values = labels.values.astype(np.float64)
    # How often the circle is gone round from a label up to the range; labels from float32 files are not exact.
    slack = abs(period) * 1e-9
    turned = values + np.ceil((low - slack - values) / period) * period
    inside = np.flatnonzero(turned <= high + slack)
    order = np.argsort(turned[inside], stable=True)
    met: Int64Array = inside[order]
    new = np.ones(len(met), bool)
    new[1:] = np.diff(turned[met]) > slack
    met = met[new]
    return met[::-1] if labels.is_decreasing else met


def is_outside(labels: Labels, low: float, high: float) -> bool:
    """Whether a range leaves that from the lowest label to the highest."""
    values = labels.values.astype(np.float64)
    return low < values.min() or high > values.max() or low > high
