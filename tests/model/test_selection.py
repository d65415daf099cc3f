"""Selections: indices and labels become a box."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import DataError, Error, UnknownNameError
from windrow.model.box import Box
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.selection import resolve
from windrow.model.types import TYPES

SCHEMA = Schema(
    (Dimension("time", 1, None), Dimension("lat", 0, 4), Dimension("lon", -3, 6), Dimension("site", 1, 3)),
    (Attribute("t", TYPES["float32"]),),
)
BOX = SCHEMA.box((60, 4, 6, 3))
LABELS = {
    "time": Labels.of(pd.date_range("2012-01-01", periods=60)),
    "lat": Labels.of([60.0, 45.0, 30.0, 15.0, 0.0]),
    "site": Labels.of(["Potsdam", "Berlin", "Ulm"]),
}


def select(**selection):
    """The selected range of the one dimension named."""
    (name,) = selection
    box = resolve(SCHEMA, BOX, LABELS, selection)
    axis = SCHEMA.axis(name)
    others = [d for d in range(4) if d != axis]
    assert [(box.lo[d], box.hi[d]) for d in others] == [(BOX.lo[d], BOX.hi[d]) for d in others]
    return box.lo[axis], box.hi[axis]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (3, (3, 3)),
        (np.int32(-3), (-3, -3)),
        ((0, 2), (0, 2)),
        ([0, 2], (0, 2)),
        ((None, 2), (-3, 2)),
        ((0, None), (0, 6)),
        ((None, None), (-3, 6)),
        (slice(0, 2), (0, 2)),
        (slice(None), (-3, 6)),
        (range(0, 2), (0, 1)),
        ((-3, 6), (-3, 6)),
    ],
)
def test_indices(wanted, expected):
    assert select(lon=wanted) == expected


@pytest.mark.parametrize(
    ("name", "wanted", "expected"),
    [
        ("time", "2012-01-05", (5, 5)),
        ("time", "2012-02", (32, 60)),
        ("time", date(2012, 1, 5), (5, 5)),
        ("time", datetime(2012, 1, 5), (5, 5)),
        ("time", np.datetime64("2012-01-05"), (5, 5)),
        ("time", pd.Timestamp("2012-01-05"), (5, 5)),
        ("time", ("2012-01-30", "2012-02-02"), (30, 33)),
        ("time", slice("2012-01-30", None), (30, 60)),
        ("time", (None, "2012-01"), (1, 31)),
        ("time", ("2012-02", date(2012, 2, 3)), (32, 34)),
        ("lat", 30.0, (2, 2)),
        ("lat", "30", (2, 2)),
        ("lat", np.float32(45), (1, 1)),
        ("lat", (10.0, 50.0), (1, 3)),
        ("lat", (50.0, 10.0), (1, 3)),
        ("lat", (None, 30.0), (2, 4)),
        ("lat", 1, (1, 1)),
        ("site", "Berlin", (2, 2)),
    ],
)
def test_labels(name, wanted, expected):
    assert select(**{name: wanted}) == expected


@pytest.mark.parametrize(
    ("name", "wanted", "pattern"),
    [
        ("lon", 7, "outside the array, got 7. The cells go from -3 to 6"),
        ("lon", -4, "outside"),
        ("lon", (0, 7), "outside the array, got 0 to 7"),
        ("lon", (-9, None), "outside"),
        ("lon", range(0, 8), "outside"),
        ("lon", (2, 0), "ends before"),
        ("lon", (9, None), "outside"),
        ("lon", range(3, 3), "one by one"),
        ("lon", range(0, 4, 2), "one by one"),
        ("lon", slice(0, 4, 2), "skip"),
        ("lon", slice(0, 4, 1), "skip"),
        ("lon", True, "not a selection"),
        ("lon", (True, 2), "not a selection"),
        ("lon", np.bool_(True), "not a selection"),
        ("lon", None, "not a selection"),
        ("lon", (), "two ends"),
        ("lon", (1, 2, 3), "two ends"),
        ("lon", [1], "two ends"),
        ("lon", b"1", "not a selection"),
        ("lon", 2.0, "no labels to select by"),
        ("lon", ("a", "b"), "no labels to select by"),
        ("lat", (30, 45.0), "mixes"),
        ("lat", float("nan"), "not a selection"),
        ("lat", (float("nan"), 45.0), "not a selection"),
        ("lat", "north", "numbers"),
        ("time", np.datetime64("NaT"), "not a selection"),
        ("time", pd.NaT, "not a selection"),
        ("time", 5.0, "date or time"),
        ("time", ("2012-02", "2012-01"), "ends before"),
        ("time", "soon", "not a date"),
        ("site", ("P", None), "not next to each other"),
    ],
)
def test_refused(name, wanted, pattern):
    with pytest.raises(DataError, match=pattern):
        select(**{name: wanted})


def test_unknown():
    with pytest.raises(UnknownNameError, match="'lat'"):
        resolve(SCHEMA, BOX, LABELS, {"latt": 3})
    with pytest.raises(UnknownNameError, match=r"nearest is 30\.0"):
        select(lat=31.0)
    with pytest.raises(UnknownNameError, match="nearest is 2012-02-29"):
        select(time="2013")
    with pytest.raises(UnknownNameError, match="Berlin"):
        select(site="Brlin")


def test_nothing_and_everything():
    assert resolve(SCHEMA, BOX, LABELS, {}) == BOX
    assert resolve(SCHEMA, BOX, LABELS, {"lat": (31.0, 44.0), "lon": 3}).is_empty
    assert resolve(SCHEMA, BOX, LABELS, {"time": ("2015", None)}).is_empty
    both = resolve(SCHEMA, BOX, LABELS, {"time": "2012-02", "lon": (0, 1)})
    assert both == Box((32, 0, 0, 1), (60, 4, 1, 3))


def test_growing_array_without_cells():
    empty = SCHEMA.box((0, 4, 6, 3))
    labels = {"time": Labels.of([], kind="datetime")}
    with pytest.raises(DataError, match="no cells yet"):
        resolve(SCHEMA, empty, labels, {"time": 1})
    with pytest.raises(UnknownNameError):
        resolve(SCHEMA, empty, labels, {"time": "2012"})
    assert resolve(SCHEMA, empty, labels, {"time": (None, None)}).is_empty
    assert resolve(SCHEMA, empty, labels, {"time": ("2012", None)}).is_empty


def test_labels_beyond_the_present_box():
    shorter = Box((11, 0, -3, 1), (20, 4, 6, 3))
    assert resolve(SCHEMA, shorter, LABELS, {"time": "2012-01"}).lo[0] == 11
    assert resolve(SCHEMA, shorter, LABELS, {"time": "2012-01"}).hi[0] == 20
    assert resolve(SCHEMA, shorter, LABELS, {"time": "2012-01-12"}).lo[0] == 12
    with pytest.raises(UnknownNameError):
        resolve(SCHEMA, shorter, LABELS, {"time": "2012-01-05"})
    with pytest.raises(UnknownNameError):
        resolve(SCHEMA, shorter, {"time": Labels.of([float(n) for n in range(60)])}, {"time": 5.0})


GRIDDING = Gridding.of({"ra": (0, 360, "1 arcmin"), "day": ("2012-01-01", None, "1 day")})
POINTS = Schema((*GRIDDING.dimensions(), Dimension("n", 1, None)), (), sparse=True)
PRESENT = POINTS.box((21_600, 40, 2))


@pytest.mark.parametrize(
    ("selection", "lo", "hi"),
    [
        ({"ra": (10.0, 10.5)}, (601, 1, 1), (631, 40, 2)),
        ({"ra": 10.0}, (601, 1, 1), (601, 40, 2)),
        ({"ra": "10.01 deg"}, (601, 1, 1), (601, 40, 2)),
        ({"ra": (350.0, 400.0)}, (21_001, 1, 1), (21_600, 40, 2)),
        ({"ra": 601}, (601, 1, 1), (601, 40, 2)),
        ({"day": "2012-01-05T12:00"}, (1, 5, 1), (21_600, 5, 2)),
        ({"day": "2012-02"}, (1, 32, 1), (21_600, 40, 2)),
        ({"day": ("2012-02-01", None), "n": 1}, (1, 32, 1), (21_600, 40, 1)),
    ],
)
def test_gridded(selection, lo, hi):
    assert resolve(POINTS, PRESENT, {}, selection, GRIDDING) == Box(lo, hi)


def test_gridded_refusals():
    assert resolve(POINTS, PRESENT, {}, {"day": ("2013", None)}, GRIDDING).is_empty
    for selection in ({"ra": 400.0}, {"day": "2013"}, {"n": 1.5}, {"ra": (20.0, 10.0)}, {"ra": "2012-01-01"}):
        with pytest.raises(Error):
            resolve(POINTS, PRESENT, {}, selection, GRIDDING)


ends = st.none() | st.integers(-6, 10)


@given(ends, ends, st.sampled_from([tuple, list, lambda pair: slice(*pair)]))
def test_index_twin(first, last, kind):
    cells = range(-3, 7)
    wanted = range(-3 if first is None else first, (6 if last is None else last) + 1)
    if len(wanted) and set(wanted) <= set(cells):
        assert select(lon=kind((first, last))) == (wanted[0], wanted[-1])
    else:
        with pytest.raises(DataError):
            select(lon=kind((first, last)))


@given(
    st.sets(st.integers(0, 40), min_size=1, max_size=8),
    st.booleans(),
    st.none() | st.integers(-5, 45),
    st.none() | st.integers(-5, 45),
    st.sampled_from(["float", "text", "datetime"]),
)
def test_label_twin(numbers, decreasing, lower, upper, kind):
    values = sorted(numbers, reverse=decreasing)
    start = datetime(2012, 1, 1)
    form = {"float": float, "text": str, "datetime": lambda n: start + timedelta(days=n)}[kind]
    labels = Labels.of([form(n) if kind == "datetime" else float(n) for n in values])
    schema = Schema((Dimension("x", 7, 6 + len(values)),), (Attribute("a", TYPES["int8"]),))
    ends = tuple(None if end is None else form(end) for end in (lower, upper))
    if lower is not None and upper is not None and lower > upper:
        if not labels.is_decreasing:
            with pytest.raises(DataError, match="ends before"):
                resolve(schema, schema.box(), {"x": labels}, {"x": ends})
            return
        lower, upper = upper, lower
    hits = [7 + i for i, n in enumerate(values) if (lower is None or n >= lower) and (upper is None or n <= upper)]
    box = resolve(schema, schema.box(), {"x": labels}, {"x": ends})
    assert list(range(box.lo[0], box.hi[0] + 1)) == hits
