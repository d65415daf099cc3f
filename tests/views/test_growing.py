"""Views whose arrays grow: their dimensions are followed by place, whatever they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from .checking import Watched

PAIRS = "select L.v * R.v as p from A L similarity join A R with shape L1(1)"
QUERIES = {
    "pairs": PAIRS,
    "nearest": f"{PAIRS} nearest 2",
    "mutual": f"{PAIRS} excluding self mutual nearest",
    "anti": "select L.v as v from A L anti similarity join A R with shape L1(1) excluding self",
    "chain": f"{PAIRS} similarity join A S with shape L1(1)",
    "above": f"select p + 1 as q from ({PAIRS}) where p > 1",
    "sums": f"select sum(p) as s from ({PAIRS}) group by R_i",
    "groups": "select count(*) as n from A L similarity join A R with shape L1(1) group by L.i",
}


@pytest.fixture
def watched(local: Any) -> Watched:
    return Watched(local)


@pytest.mark.parametrize("first", [[], [3, 4]], ids=["empty", "begun"])
@pytest.mark.parametrize("kind", QUERIES)
def test_views_of_joins_grow_with_their_arrays(watched: Watched, kind: str, first: list[int]) -> None:
    array = watched.database.create("A", "<v: int64> [i=0:*:4]", sparse=True)
    if first:
        array.insert({"i": first, "v": first})
    watched.view("V", QUERIES[kind])
    for places in ([5, 6, 9, 10], [40, 41]):
        array.insert({"i": places, "v": places})
        watched.check()
    array.delete("i = 6")
    watched.check()


def test_pairs_end_where_a_side_was_cut(watched: Watched) -> None:
    """What was selected of one side says nothing of the other, although their dimension has one name."""
    array = watched.database.create("A", "<v: int64> [i=0:*:4]", sparse=True)
    array.insert({"i": [3, 4, 9], "v": [3, 4, 9]})
    view = watched.view("V", "select L.v * R.v as p from between(A, 3, 4) L similarity join A R with shape Linf(9)")
    assert [dimension.growing for dimension in view.schema.dimensions] == [False, True]
    array.insert({"i": [12, 13], "v": [12, 13]})
    watched.check()
    assert set(watched.cells("V")) == {(k, r) for k in (3, 4) for r in (3, 4, 9, 12, 13) if r - k <= 9}


def test_pairs_of_labelled_slices_get_the_labels_of_new_ones(watched: Watched) -> None:
    array = watched.database.create("A", "<v: int64> [t=0:*:4]")
    array.append({"v": np.array([1, 2])}, labels={"t": np.array([10.0, 20.0])})
    watched.view("V", "select L.v - R.v as d from A L similarity join A R with shape L1(1)")
    array.append({"v": np.array([3, 4])}, labels={"t": np.array([30.0, 40.0])})
    watched.check()


def test_a_second_detection_in_a_cell_makes_pairs(watched: Watched) -> None:
    """Cells at one place are numbered along a dimension that grows, on both sides of a pair."""
    grid = {"ra": (0, 360, "10 arcsec"), "dec": (-90, 90, "10 arcsec")}
    array = watched.database.create("G", "<m: float64> [ra, dec]", grid=grid)
    array.insert({"ra": [10.0], "dec": [0.0], "m": [1.0]})
    on_sky = "select L.m - R.m as d from G L similarity join G R with shape Sky('5 arcsec') on (ra, dec)"
    view = watched.database.create_view("V", on_sky)
    array.insert({"ra": [10.0001, 10.0002], "dec": [0.0, 0.0], "m": [2.0, 4.0]}, on_duplicate="keep")
    assert view.check().ok
    assert sorted(view.read()["d"].to_pylist()) == [-3.0, -2.0, -1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0]


LATER = {
    "cells": "select v from A where t >= 2",
    "cells to come": "select v from A where t > 4",
    "totals": "select sum(v) as s from A where t between 2 and 6 group by t",
    "windows": "select sum(v) as s from (select * from A where t >= 2) window (t 2)",
    "neighbours": "select count(*) as n, sum(v) as s from (select * from A where t >= 2) neighbours Linf(1)",
    "blocks": "select count(*) as n from (select * from A where t <= 5) regrid (t 2, x 2)",
}
"""Views of part of an array, to whose end they reach, or beyond it."""


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_what_reaches_the_end_of_an_array_grows_with_it(watched: Watched, sparse: bool) -> None:
    array = watched.database.create("A", "<v: float64> [t=1:*:2, x=0:2]", sparse=sparse)

    def add(t: int) -> None:
        if sparse:
            array.insert({"t": [t, t], "x": [0, 2], "v": [1.0 * t, 2.0 * t]})
        else:
            array.append({"v": np.full((1, 3), 1.0 * t)})

    for t in (1, 2, 3):
        add(t)
    for name, query in LATER.items():
        watched.view(name.replace(" ", "_"), query, maintain="incremental")
    for t in (4, 5, 6, 7):
        add(t)
        watched.check()
    assert {cell[0] for cell in watched.cells("cells_to_come")} == {5, 6, 7}
    for name in watched.views:
        assert "rebuilt" not in watched.database.view(name).history()["way"].to_pylist(), name


def days(*numbers: int) -> Any:
    return np.datetime64("2012-01-01", "us") + np.array(numbers, "m8[D]")


CHOSEN = {
    "cells": "select v from A where t >= '2012-01-03' and t < '2012-01-08'",
    "doubled": "select v * 2 as d from A where t >= '2012-01-03' and v > 1",
    "neighbours": "select count(*) as n, sum(v) as s from (select * from A where t >= '2012-01-03') neighbours Linf(1)",
    "windows": "select max(v) as m from (select * from A where t between '2012-01-02' and '2012-01-05') window (t 2)",
    "totals": "select sum(v) as s, max(t) as last from A where t <= '2012-01-04' group by x",
    "above": "select sum(v) as s, count(*) as n from cells",
    "beside": "select sum(d) as s from doubled group by t",
}


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_what_is_chosen_by_labels_moves_with_them(watched: Watched, sparse: bool) -> None:
    """Cells begin and end elsewhere in the views, up to none at all, and so do those of views on them."""
    array = watched.database.create("A", "<v: float64> [t=1:4:2, x=0:2:2]", sparse=sparse)
    at = np.array([(t, x) for t in range(1, 5) for x in range(3) if not sparse or (t + x) % 3])
    array.insert({"t": at[:, 0], "x": at[:, 1], "v": at.sum(axis=1) * 1.0})
    array.set_labels("t", days(0, 2, 4, 6))
    for name, query in CHOSEN.items():
        watched.view(name, query)
    for numbers in ([0, 1, 2, 3], [3, 5, 6, 9], [20, 21, 22, 23], [-4, -3, -2, -1], [0, 2, 4, 6]):
        array.set_labels("t", days(*numbers))
        watched.check()
        array.update({"v": "v + 1"}, "x = 1")
        watched.check()
    assert not any(watched.database.view(name).stale for name in CHOSEN)


def test_a_late_slice_moves_what_is_chosen_by_labels(watched: Watched) -> None:
    array = watched.database.create("A", "<v: float64> [t=1:*:2, x=0:2:2]")
    array.append({"v": np.arange(9.0).reshape(3, 3)}, labels={"t": days(0, 4, 6)})
    for name, query in CHOSEN.items():
        watched.view(name, query)
    for number, day in enumerate((1, 5, 2, 7, -3)):
        values = np.full((1, 3), number * 1.0)
        array.write(xr.Dataset({"v": (("t", "x"), values)}, coords={"t": days(day).astype("M8[ns]"), "x": range(3)}))
        watched.check()
    array.append({"v": np.ones((1, 3))}, labels={"t": days(9)})
    watched.check()


def test_what_a_shorter_version_lacks_left(watched: Watched) -> None:
    """Back from a version to one before it grew, each cell once."""
    array = watched.database.create("A", "<v: float64> [t=1:*:2, x=0:1]")
    array.append({"v": np.zeros((1, 2))})
    array.append({"v": np.ones((1, 2))})
    array.update({"v": "5"}, "t = 1 and x = 0")
    rows = [(row["t"], row["x"], row["change"], row["v"]) for row in array.changes(3, 1).to_pylist()]
    assert rows == [(1, 0, "left", 5.0), (1, 0, "came", 0.0), (2, 0, "left", 1.0), (2, 1, "left", 1.0)]
