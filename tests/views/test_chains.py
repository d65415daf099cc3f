"""Views of chains of joins are patched by the rows that left and came, on whichever side cells change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .checking import Watched

TWO = "from A X similarity join B Y on X.v <= Y.v with shape L1(2) similarity join C Z on Z.i = Y.i + 1 and Z.j = X.j "
QUERIES = {
    "cells": f"select count(*) as n, sum(Z.w) as s, max(Y.v) as m {TWO}with shape Linf(1) group by X.i",
    "groups": f"select count(*) as n, avg(Z.w - X.w) as a, median(Y.v) as m {TWO}with shape Linf(2) group by X.j",
    "total": f"select count(*) as n, sum(X.v * Y.v * Z.v) as s {TWO}and X.v + Z.v > 4 with shape Linf(1)",
    "itself": "select count(*) as n, sum(Z.v) as s from A X similarity join A Y with shape L1(1), excluding self "
    "similarity join A Z on Z.i = Y.i and Z.j = Y.j with shape L1(1), excluding self group by X.j",
    "three": f"select count(*) as n, sum(U.w) as s {TWO}with shape Linf(1) similarity join B U "
    "on U.i = Z.i and U.j = Y.j // 2 with shape Linf(1) group by X.i",
    "by cell": f"select count(*) as n, sum(Z.w) as s, mode(Y.v) as m {TWO}with shape Linf(1) group by X.i, X.j",
    "on top": f"select n * 2 as d from (select count(*) as n {TWO}with shape Linf(1) group by X.i) where n > 3",
}


@pytest.fixture
def watched(local: Any) -> Watched:
    random = np.random.default_rng(5)
    for name in "ABC":
        array = local.create(name, "<v: int64, w: float64, u: int64> [i=0:9:4, j=0:9:5]", sparse=True)
        places = random.choice(100, 30, replace=False)
        array.insert(
            {"i": places // 10, "j": places % 10, "v": places % 6, "w": places / 4, "u": np.zeros(30, np.int64)}
        )
    return Watched(local)


def cells(random: np.random.Generator, count: int) -> dict[str, Any]:
    places = random.choice(100, count, replace=False)
    weight = np.ma.array(random.integers(0, 6, count) / 2, mask=random.random(count) < 0.2)
    zeros = np.zeros(count, np.int64)
    return {"i": places // 10, "j": places % 10, "v": random.integers(0, 6, count), "w": weight, "u": zeros}


def test_chains_follow_every_side(watched: Watched) -> None:
    database, random = watched.database, np.random.default_rng(9)
    for name, query in QUERIES.items():
        watched.view(name.replace(" ", "_"), query, maintain="incremental")
        assert ("computed again:" in str(database.explain_view(query))) == (name == "by cell"), name
    for name in "CBA":
        database.array(name).insert(cells(random, 5))
        watched.check()
        database.array(name).update({"v": "v + 1", "w": "w * 2"}, f"v = {random.integers(0, 6)}")
        database.array(name).delete(f"v = {random.integers(0, 7)} and i > {random.integers(0, 6)}")
        watched.check()
    with database.batch("all at once") as batch:
        for name in "ABC":
            batch.delete(name, f"j = {random.integers(0, 10)}")
            batch.insert(name, cells(random, 4))
    watched.check()
    database.array("B").delete()
    watched.check()
    assert watched.cells("cells") == {}
    database.array("B").insert(cells(random, 20))
    watched.check()
    for name in QUERIES:
        rows = database.view(name.replace(" ", "_")).history().to_pylist()[1:]
        assert {row["planned"] for row in rows} == {"patch"}, name
        assert any(row["pairs"] for row in rows) or name == "by cell", name


def test_what_no_join_of_a_chain_reads_is_no_change(watched: Watched) -> None:
    view = watched.view("V", QUERIES["cells"])
    before = view.version
    for name in "ABC":
        watched.database.array(name).update({"u": "u + 1"})
    assert view.version == before


def test_a_change_at_the_end_of_a_chain_meets_what_it_reaches(local: Any) -> None:
    """One total over all rows, of which none but those of the changed cell are looked at."""
    watched = Watched(local)
    for name in "ABC":
        array = local.create(name, "<v: int64> [i=0:999:50]", sparse=True)
        array.insert({"i": np.arange(0, 1000, 2), "v": np.arange(500)})
    view = watched.view(
        "V",
        "select count(*) as n, sum(Z.v) as s from A X similarity join B Y with shape Linf(2) similarity join C Z "
        "on Z.i = Y.i with shape Linf(2)",
        maintain="strict",
    )
    for number in range(2):
        local.array("C").insert({"i": [500], "v": [number]})
        watched.check()
        row = view.history().to_pylist()[-1]
        # A cell meets three cells of B, and each of these three of A; of what is replaced, old and new are pairs.
        assert (row["way"], row["touched"], row["pairs"]) == ("patched", 1, 18), row
