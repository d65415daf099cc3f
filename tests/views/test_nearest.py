"""Views of the nearest partners: what comes or leaves beyond the last of them is not looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .checking import Watched

QUERIES = {
    "one": "select first(R.v) as f, sum(R.w) as s from A L similarity join B R with shape Linf(3) nearest 1 "
    "group by L.i, L.j",
    "three left": "select count(*) as n, mode(R.v) as m, avg(distance()) as d from A L left similarity join B R "
    "with shape L1(4) nearest 3 group by L.i, L.j",
    "by value": "select count(*) as n, sum(R.v) as s from A L similarity join B R on L.v >= R.v with shape Linf(3) "
    "nearest 2 by abs(L.w - R.w) group by L.i, L.j",
    "where": "select count(*) as n, sum(R.v) as s from A L left similarity join B R with shape Linf(3) nearest 2 "
    "where R.v > 2 or R.v is null group by L.i, L.j",
    "itself": "select median(R.w) as m from A L similarity join A R with shape Linf(4), excluding self nearest 2 "
    "group by L.i, L.j",
    "on top": "select n + 1 as k from (select count(*) as n from A L similarity join B R with shape Linf(2) nearest 2 "
    "group by L.i, L.j) where n > 1",
}


def fill(array: Any, random: np.random.Generator, count: int) -> None:
    places = random.choice(144, count, replace=False)
    weight = np.ma.array(random.integers(0, 6, count) / 2, mask=random.random(count) < 0.3)
    array.insert({"i": places // 12, "j": places % 12, "v": random.integers(0, 6, count), "w": weight})


@pytest.fixture
def watched(local: Any) -> Watched:
    random = np.random.default_rng(5)
    for name in "AB":
        array = local.create(name, "<v: int64, w: float64> [i=0:11:4, j=0:11:5]", sparse=True)
        fill(array, random, 40)
    return Watched(local)


def test_the_nearest_follow_every_change(watched: Watched) -> None:
    database, random = watched.database, np.random.default_rng(9)
    for name, query in QUERIES.items():
        watched.view(name.replace(" ", "_"), query, maintain="incremental")
        assert "only where the nearest partners can be others" in str(database.explain_view(query)), name
    for name in "BAB":
        fill(database.array(name), random, 7)
        watched.check()
        database.array(name).update({"v": "v + 1", "w": "w * 2"}, f"v = {random.integers(0, 6)}")
        database.array(name).delete(f"v = {random.integers(0, 7)} and i > {random.integers(0, 6)}")
        watched.check()
    with database.batch("both") as batch:
        batch.delete("B", "i < 6")
        batch.delete("A", "j > 8")
        batch.insert("B", {"i": [1, 2], "j": [9, 9], "v": [4, 5], "w": [1.0, 2.0]})
    watched.check()
    for name in QUERIES:
        rows = database.view(name.replace(" ", "_")).history().to_pylist()[1:]
        assert {row["planned"] for row in rows} == {"patch"}, name


def test_a_comer_beyond_the_last_is_ignored(local: Any) -> None:
    watched = Watched(local)
    for name in "AB":
        local.create(name, "<v: int64> [i=0:99:10]", sparse=True)
    local.array("A").insert({"i": [20, 70], "v": [1, 2]})
    local.array("B").insert({"i": [22, 15], "v": [1, 2]})
    view = watched.view(
        "V", "select sum(R.v) as s from A L similarity join B R with shape Linf(9) nearest 2 group by L.i"
    )
    touched = []
    for i, v in ((29, 10), (28, 20), (16, 30), (24, 40), (71, 50)):
        local.array("B").insert({"i": [i], "v": [v]})
        watched.check()
        touched.append(view.history().to_pylist()[-1]["touched"])
    # Nothing is kept at first; then 28 is further than 22 and 15 are, 16 is not, nor is 24, and 71 meets 70 alone.
    assert touched == [1, 0, 1, 1, 1]
    assert watched.cells("V") == {20: 31, 70: 50}
    local.array("B").delete("i = 29 or i = 15")
    watched.check()
    assert (view.history().to_pylist()[-1]["touched"], view.history().to_pylist()[-1]["way"]) == (0, "unchanged")
    local.array("B").delete("i = 22")
    watched.check()
    assert watched.cells("V") == {20: 70, 70: 50}


def test_twins_at_one_distance_go_by_their_places(local: Any) -> None:
    """A cell as far as the last of the nearest may take its place: the smaller coordinate counts."""
    watched = Watched(local)
    for name in "AB":
        local.create(name, "<v: int64> [i=0:99:10]", sparse=True)
    local.array("A").insert({"i": [20], "v": [1]})
    local.array("B").insert({"i": [23], "v": [1]})
    watched.view("V", "select sum(R.v) as s from A L similarity join B R with shape Linf(9) nearest 1 group by L.i")
    for i, expected in ((25, 1), (17, 17), (24, 17)):
        local.array("B").insert({"i": [i], "v": [i]})
        watched.check()
        assert watched.cells("V") == {20: expected}
