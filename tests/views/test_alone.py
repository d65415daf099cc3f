"""Left cells without a partner: anti joins and left joins with where are patched by the number of partners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .checking import Watched

MAPPED = "on R.i = L.i + 1 and R.j = L.j // 2 and L.v <= R.v"
QUERIES = {
    "anti": "select L.v, L.w from A L anti similarity join B R with shape L1(2)",
    "anti mapped": f"select L.w from A L anti similarity join B R {MAPPED} with shape Linf(2)",
    "anti itself": "select L.v from A L anti similarity join A R with shape Linf(1), excluding self",
    "anti chosen": "select L.v + L.w as s from A L anti similarity join B R with shape L1(1) where L.v > 2",
    "anti on top": "select w * 2 as d from (select L.w from A L anti similarity join B R with shape L1(1)) where w > 1",
    "left where right": "select count(*) as n, sum(R.w) as s, max(R.v) as m from A L left similarity join B R "
    "with shape L1(2) where R.v > 3 group by L.i, L.j",
    "left where none": "select count(*) as n, avg(R.w) as a from A L left similarity join B R with shape L1(2) "
    "where R.w is null group by L.i, L.j",
    "left where both": "select count(*) as n, first(R.v) as f, median(R.v) as m from A L left similarity join B R "
    f"{MAPPED} with shape Linf(2) where R.v - L.v > 1 or R.v is null group by L.i, L.j",
    "left itself": "select count(*) as n, count(R.w) as c, var(R.w) as s from A L left similarity join A R "
    "with shape Linf(1), excluding self where L.v = R.v or R.v is null group by L.i, L.j",
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
        fill(array, random, 60 if name == "A" else 18)
    return Watched(local)


def test_cells_without_a_partner_are_patched(watched: Watched) -> None:
    database, random = watched.database, np.random.default_rng(9)
    for name, query in QUERIES.items():
        watched.view(name.replace(" ", "_"), query, maintain="incremental")
        assert "computed again:" not in str(database.explain_view(query)), name
    for name in "ABB":
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
    database.array("B").delete()
    watched.check()
    for name in QUERIES:
        rows = database.view(name.replace(" ", "_")).history().to_pylist()[1:]
        assert {row["planned"] for row in rows} == {"patch"}, name
        assert any(row["pairs"] for row in rows), name


def test_a_cell_is_counted_out_and_in(watched: Watched) -> None:
    """Of two partners of a cell one leaves, then the other: no other partner is looked for."""
    database = watched.database
    for name in "AB":
        database.array(name).delete()
    database.array("A").insert({"i": [5, 0], "j": [5, 0], "v": [1, 2], "w": [1.0, 2.0]})
    view = watched.view("V", "select L.v from A L anti similarity join B R with shape Linf(1)")
    assert watched.cells("V") == {(0, 0): 2, (5, 5): 1}
    for i, expected in ((4, {(0, 0): 2}), (6, {(0, 0): 2})):
        database.array("B").insert({"i": [i], "j": [5], "v": [0], "w": [0.0]})
        assert watched.cells("V") == expected
    database.array("B").delete("i = 4")
    assert watched.cells("V") == {(0, 0): 2}
    database.array("B").delete("i = 6")
    assert watched.cells("V") == {(0, 0): 2, (5, 5): 1}
    rows = view.history().to_pylist()[1:]
    assert [(row["touched"], row["pairs"]) for row in rows] == [(1, 1)] * 4
    database.array("A").update({"v": "7"}, "i = 5")
    assert watched.cells("V") == {(0, 0): 2, (5, 5): 7}
    watched.check()
