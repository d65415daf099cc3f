"""Views whose arrays grow: their dimensions are followed by place, whatever they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
