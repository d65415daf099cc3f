"""Queries answered from a view of another shape by several nodes: as in one place, from chunks that are at home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr

from .checking import assert_same_result
from .folders import FolderCluster, use_folders
from .test_placed import cells, change, create

WIDE = "select count(*) as n, sum(v) as s, min(x) as low from A neighbours L1(2)"
WHOLE = "select count(*) as n, sum(v) as s, avg(v) as a from A neighbours L1(2)"
JOINED = "from A L left similarity join B R with shape {} group by L.i, L.j"


@pytest.fixture
def placed(tmp_path: Path) -> Iterator[tuple[wr.Database, FolderCluster]]:
    with create(tmp_path / "w", []) as database:
        cluster = use_folders(database, tmp_path / "folders")
        database.create_view("wide", WIDE)
        database.create_view("whole", WHOLE)
        database.create_view("both", f"select count(*) as n, sum(R.v) as s {JOINED.format('Linf(1)')}")
        change(database, 1, "both")
        cluster.exchanges.clear()
        yield database, cluster


def ask(database: wr.Database, query: str) -> Any:
    found = {}
    for use in ("always", "off"):
        found[use] = database.query(query).using_views(use).compute()
    assert_same_result(found["always"], found["off"], ["i", "j"])
    return found["always"]


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) as n, min(x) as low from A neighbours L1(3)",  # more pairs
        "select count(*) as n, sum(v) as s, avg(v) as a from A neighbours L1(1)",  # fewer
        "select count(*) as n, sum(v) as s from A neighbours Linf(1)",  # some more, others not
        f"select count(*) as n, sum(R.v) as s {JOINED.format('L1(2)')}",
        f"select sum(R.v) as s {JOINED.format('L1(1)')}",
    ],
)
def test_as_computed_in_one_place(placed: Any, query: str) -> None:
    database, cluster = placed
    assert ask(database, query).num_rows > 50
    assert len(cluster.exchanges) == 1, "nodes took no part"


def test_chunks_are_read_where_they_are_kept(placed: Any) -> None:
    """By the baseline's plan the view's chunks are adjusted at home, and pairs joined where one of them is."""
    database, cluster = placed
    database.plan_maintenance(strategy="baseline")
    database.drop_view("wide")  # some of its results were computed by the driver, which left no chunk anywhere
    receipts: list[Any] = []
    exchange = cluster.exchange

    def keep(work: Any) -> Any:
        receipts.extend(exchange(work))
        return receipts

    cluster.exchange = keep
    versions = {name: database.array(name).version for name in ("A", "whole")}
    ask(database, "select count(*) as n, sum(v) as s from A neighbours L1(3)")
    assert sum(receipt.counted.misses for receipt in receipts) == 0
    joins = [join.counted for receipt in receipts for join in receipt.joins]
    assert sum(one.hits for one in joins) > sum(one.misses for one in joins)
    assert {name: database.array(name).version for name in ("A", "whole")} == versions


def test_in_rounds(placed: Any) -> None:
    database, cluster = placed
    database.engine.placement["round"] = 2_000
    ask(database, "select count(*) as n, sum(v) as s from A neighbours Linf(1)")
    assert len(cluster.exchanges) > 1


def test_a_sum_that_does_not_fit_is_computed_from_all_pairs(tmp_path: Path) -> None:
    with wr.connect(tmp_path / "w", engine="local", progress=False) as database:
        cluster = use_folders(database, tmp_path / "folders")
        array = database.create("A", "<v: int64> [i=1:8:4, j=1:8:4]", sparse=True)
        array.insert({"i": [1, 2, 3], "j": [1, 1, 1], "v": [2**62, 2**61, -(2**62)]})
        database.create_view("whole", WHOLE)
        cluster.exchanges.clear()
        ask(database, "select count(*) as n, sum(v) as s from A neighbours L1(1)")


def test_other_queries_run_as_before(placed: Any) -> None:
    """Results of the same shape, and those below further steps, are read or computed as ever."""
    database, cluster = placed
    ask(database, "select n + 1 as m from (select count(*) as n from A neighbours L1(3))")
    ask(database, "select count(*) as n, sum(v) as s from A neighbours L1(2)")
    assert not cluster.exchanges


def test_nodes_that_are_gone_and_homes_that_nobody_noted(placed: Any) -> None:
    database, cluster = placed
    cluster.names = ["7", "8"]
    database.array("A").insert(cells(np.random.default_rng(3), 5))
    database.engine.cluster = lambda size: None
    database.create_view("alone", "select count(*) as n, max(x) as top from A neighbours L1(1)")
    database.engine.cluster = lambda size: cluster
    cluster.exchanges.clear()
    ask(database, "select count(*) as n, max(x) as top from A neighbours L1(2)")
    assert len(cluster.exchanges) == 1
