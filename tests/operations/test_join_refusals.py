"""Joins that fail on the way or cannot be held say so and write nothing; those of nothing have an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr

PAIRS = "from A L similarity join A R"


def filled(database: Any, values: list[int | None]) -> Any:
    array = database.create("A", "<m: int64 null> [i=1:4000:10]", sparse=True)
    array.insert(pa.table({"i": np.arange(1, len(values) + 1), "m": pa.array(values, pa.int64())}))
    return array


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"select L.m as a {PAIRS} on L.m // R.m > 0 with shape L1(1)", "zero"),
        (f"select L.m as a {PAIRS} on L.m * R.m > 0 with shape L1(1)", "overflow"),
        (f"select L.m // R.m as a {PAIRS} with shape L1(1)", "zero"),
        (f"select sum(L.m * R.m) as a {PAIRS} with shape L1(1) group by L.i", "overflow"),
        (f"select count(*) as a {PAIRS} with shape L1(1) nearest 1 by L.m // R.m group by L.i", "zero"),
    ],
)
def test_what_fails_for_some_pairs_is_an_error_and_nothing_is_written(local: Any, text: str, words: str) -> None:
    filled(local, [1, 2, 0, 2**62, 5])
    with pytest.raises(wr.Error, match=words):
        local.query(text).store("R")
    assert "R" not in local
    assert local.array("A").version == 1


def test_a_least_number_of_values_belongs_to_groups_of_pairs(local: Any) -> None:
    array = filled(local, [1, 2, 3])
    joined = array.join(array, wr.L1(1), min_count=3)
    assert joined.agg(n=wr.count()).compute()["n"].to_pylist() == [None, 3, None]
    for ask in (
        lambda: joined.select(),
        lambda: joined.groupby().agg(n=wr.count()),
        lambda: array.join(array, wr.L1(1), min_count=-1).agg(n=wr.count()),
        lambda: array.join(array, wr.L1(1), how="anti", min_count=2).agg(n=wr.count()).compute(),
        lambda: local.query("select count(*) from A group by i min count 2").compute(),
    ):
        with pytest.raises(wr.SchemaError, match=r"min.count"):
            ask()


def test_where_all_values_are_missing_there_are_pairs_and_no_results(local: Any) -> None:
    filled(local, [None, None, None])
    found = local.query(f"select sum(R.m) as s, count(R.m) as k, count(*) as n {PAIRS} with shape L1(1) group by L.i")
    table = found.compute()
    assert table.select(["s", "k", "n"]).to_pydict() == {"s": [None] * 3, "k": [0] * 3, "n": [2, 3, 2]}
    unknown = local.query(f"select L.i as a {PAIRS} on L.m <= R.m with shape L1(1)").compute()
    assert unknown.num_rows == 0


def test_pairs_that_fit_nowhere_are_refused(tmp_path: Any) -> None:
    with wr.connect(tmp_path, engine="local", memory="64 MB", progress=False) as database:
        filled(database, list(range(4_000)))
        query = database.query(f"select L.m as a, R.m as b {PAIRS} with shape i any")
        with pytest.raises(wr.Error, match="memory"):  # 16 million pairs of 32 bytes
            query.compute()
        assert database.query(f"select count(*) as n {PAIRS} with shape i any").compute()["n"].to_pylist() == [
            16_000_000
        ]
