"""A view that is kept incrementally is never rebuilt unless asked: what is touched is computed again, be it all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from windrow.views import cost

from .checking import Watched

WAYS = ("auto", "incremental", "strict", "full")


@pytest.fixture(autouse=True)
def fixed_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small views are rebuilt too if a batch touches most of them, and no measured time has a say in it."""
    monkeypatch.setattr(cost, "FIXED_CELLS", 8.0)
    monkeypatch.setattr(cost, "FURTHEST", 1.0)


def last(watched: Watched, view: str) -> dict[str, Any]:
    found: dict[str, Any] = watched.database.view(view).history().to_pylist()[-1]
    return found


def make_views(watched: Watched, query: str, ways: tuple[str, ...] = WAYS) -> None:
    for way in ways:
        watched.view(f"V_{way}", query, maintain=way)


def check_ways(watched: Watched, why: str, auto: str, cells: int | None = None) -> None:
    """Each setting's way, and that the history gives the cause."""
    watched.check()
    expected = {"auto": auto, "incremental": "patched", "strict": "patched", "full": "rebuilt"}
    for way, taken in expected.items():
        row = last(watched, f"V_{way}")
        assert row["way"] == taken, (way, row)
        assert why in row["why"], (way, row)
        if cells is not None:
            assert row["cells"] == cells, (way, row)


def days(*numbers: int) -> Any:
    return np.array([np.datetime64("2012-01-01") + number for number in numbers], "M8[us]")


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_a_stored_shape_that_changed(local: Any, sparse: bool) -> None:
    watched = Watched(local)
    array = local.create("A", "<v: int64> [i=0:19:5, j=0:19:5]", sparse=sparse)
    i, j = (axis.reshape(-1) for axis in np.indices((20, 20)))
    array.insert({"i": i, "j": j, "v": i + j + 1})
    local.create("Z", "<flag: bool> [i=-15:15, j=-15:15]", sparse=True)
    local.array("Z").insert({"i": [0, 1], "j": [0, 0], "flag": [True, True]})
    make_views(watched, "select count(*) as n, sum(v) as s from A neighbours Z")
    local.array("Z").insert({"i": [15], "j": [-12], "flag": [True]})
    # The offset leads into the array from 5 times 8 cells, be it that these are looked at or all.
    check_ways(watched, "the shape itself changed", "patched", cells=40)
    assert last(watched, "V_incremental")["touched"] == 40
    local.array("Z").insert({"i": [0], "j": [-1], "flag": [True]})
    check_ways(watched, "the shape itself changed", "rebuilt", cells=380)
    assert last(watched, "V_incremental")["touched"] == 380
    # With one offset less and cells that changed at once.
    with local.batch("both") as batch:
        batch.delete("Z", "i = 15")
        batch.insert("A", {"i": [19, 3], "j": [19, 3], "v": [500, 600]})
    check_ways(watched, "the shape itself changed", "patched")


def test_a_stored_shape_of_a_join_and_of_mutual_partners(local: Any) -> None:
    watched = Watched(local)
    random = np.random.default_rng(4)
    for name in "AB":
        array = local.create(name, "<v: int64> [i=0:19:5, j=0:19:5]", sparse=True)
        places = random.choice(400, 60, replace=False)
        array.insert({"i": places // 20, "j": places % 20, "v": places})
    local.create("Z", "<flag: bool> [i=-3:3, j=-3:3]", sparse=True)
    local.array("Z").insert({"i": [0, 1, -2], "j": [0, 0, 1], "flag": [True] * 3})
    text = "from A similarity join B on B.i = A.i + 1 and B.j = A.j // 2 with shape Z{}"
    queries = {
        "joined": f"select count(*) as n, sum(B.v) as s {text.format('')} group by A.i, A.j",
        "grouped": f"select count(*) as n, sum(B.v) as s {text.format('')} group by A.i",
        "pairs": f"select A.v + B.v as s {text.format('')}",
        "nearest": f"select A.v + B.v as s {text.format(' nearest 1')}",
        "mutual": f"select A.v + B.v as s {text.format(' mutual nearest')}",
        "anti": f"select A.v {text.format('')}".replace("similarity", "anti similarity"),
        "left": f"select count(*) as n {text.format('')} group by A.i, A.j".replace("similarity", "left similarity"),
        "chain": f"select count(*) as n {text.format('')} similarity join A C on C.i = B.i and C.j = A.j with shape Z"
        " group by A.i, A.j",
    }
    for name, query in queries.items():
        watched.view(name, query, maintain="incremental")
    for offsets in ({"i": [3, 2], "j": [-3, 2]}, {"i": [-1], "j": [0]}, {"i": [-3], "j": [3]}):
        local.array("Z").insert({**offsets, "flag": [True] * len(offsets["i"])})
        watched.check()
        for name in queries:
            row = last(watched, name)
            assert row["planned"] == "patch", (name, row)
    local.array("Z").delete("i > 0")
    watched.check()
    assert all(last(watched, name)["way"] == "patched" for name in queries)


def test_a_shape_that_was_empty(local: Any) -> None:
    watched = Watched(local)
    array = local.create("A", "<v: int64> [i=0:9:5]", sparse=True)
    array.insert({"i": np.arange(10), "v": np.arange(10)})
    local.create("Z", "<flag: bool> [i=-3:3]", sparse=True)
    local.array("Z").insert({"i": [0], "flag": [True]})
    make_views(watched, "select count(*) as n from A neighbours Z")
    with local.batch("other offsets") as batch:
        batch.delete("Z", "i = 0")
        batch.insert("Z", {"i": [2, 3], "flag": [True, True]})
    check_ways(watched, "the shape itself changed", "rebuilt")


def test_labels_that_moved(local: Any) -> None:
    watched = Watched(local)
    array = local.create("D", "<v: float64> [t=1:*:3, y=0:4:2]")
    array.append({"v": np.arange(60.0).reshape(12, 5)}, labels={"t": days(*range(0, 24, 2))})
    make_views(watched, "select sum(v) as s from D window (t trailing '5 days', y 1)")
    array.append({"v": np.full((1, 5), 7.0)}, labels={"t": days(19)})
    check_ways(watched, "cells along t have other labels", "patched")
    array.append({"v": np.full((1, 5), 9.0)}, labels={"t": days(1)})
    check_ways(watched, "cells along t have other labels", "rebuilt")


def test_steps_that_are_others_now(local: Any) -> None:
    """A condition on a dimension chooses nothing while the array is short, and is no step of the query then."""
    watched = Watched(local)
    for name, sparse in (("D", False), ("S", True)):
        array = local.create(name, "<v: int64> [t=1:*:3, y=0:4:2]", sparse=sparse)
        t, y = (axis.reshape(-1) for axis in np.indices((4, 5)))
        table = {"t": t + 1, "y": y, "v": t * y}
        array.insert(table) if sparse else array.append({"v": (t * y).reshape(4, 5)})
        for way in WAYS:
            watched.view(f"{name}_{way}", f"select v + 1 as w from {name} where t <= 6", maintain=way)
    for name, sparse in (("D", False), ("S", True)):
        more = {"t": np.repeat([5, 6, 7, 8], 5), "y": np.tile(np.arange(5), 4), "v": np.arange(20)}
        if sparse:
            watched.database.array(name).insert(more)
        else:
            watched.database.array(name).append({"v": np.arange(20).reshape(4, 5)})
        watched.check()
        for way, taken in zip(WAYS, ("rebuilt", "patched", "patched", "rebuilt"), strict=True):
            row = last(watched, f"{name}_{way}")
            assert (row["way"], row["cells"]) == (taken, 10), (name, way, row)
            assert "the query's steps are others now" in row["why"]


def test_rebuilt_when_asked(local: Any) -> None:
    watched = Watched(local)
    array = local.create("A", "<v: int64> [i=0:9:5]", sparse=True)
    array.insert({"i": np.arange(10), "v": np.arange(10)})
    view = watched.view("V", "select count(*) as n from A neighbours Linf(1)", maintain="incremental")
    view.refresh(full=True)
    assert (last(watched, "V")["way"], last(watched, "V")["why"]) == ("rebuilt", "a full refresh was asked for")
