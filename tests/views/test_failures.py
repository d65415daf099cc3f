"""How systems of this kind have failed: a test for each, so that this one does not."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.errors import DataError, Error

from .checking import Watched, contents, read


@pytest.fixture
def watched(local: Any) -> Watched:
    return Watched(local)


def line(watched: Watched, name: str, **cells: int | None) -> Any:
    """A sparse array along i with values v: ``line(watched, "A", i1=10)``."""
    array = watched.database.create(name, "<v: int64 null> [i=0:99:4]", sparse=True)
    put(watched, name, {int(key[1:]): value for key, value in cells.items()})
    return array


def put(watched: Watched, name: str, cells: dict[int, int | None]) -> None:
    if cells:
        watched.database.array(name).insert(table(cells))
    watched.check()


def table(cells: dict[int, int | None]) -> pa.Table:
    return pa.table({"i": list(cells), "v": pa.array(list(cells.values()), pa.int64())})


def remove(watched: Watched, name: str, where: str | None = None) -> None:
    watched.database.array(name).delete(where)
    watched.check()


GROUPED = "select count(*) as n, sum(v) as t from A group by j"


def test_an_emptied_group_never_returned(watched: Watched) -> None:
    array = watched.database.create("A", "<v: int64> [i=0:9:4, j=0:9:4]", sparse=True)
    watched.view("V", GROUPED)
    cells = pa.table({"i": [1, 2, 3], "j": [1, 1, 5], "v": [10, 20, 30]})
    for _ in range(3):
        array.insert(cells)
        watched.check()
        assert watched.cells("V") == {1: {"n": 2, "t": 30}, 5: {"n": 1, "t": 30}}
        remove(watched, "A", "j = 1")
        assert watched.cells("V") == {5: {"n": 1, "t": 30}}
        remove(watched, "A")
        assert watched.cells("V") == {}


def test_delete_and_insert_of_one_key_is_counted_once(watched: Watched) -> None:
    line(watched, "A", i1=10, i2=20)
    watched.view("V", "select count(*) as n, sum(v) as t from A neighbours Linf(1)")
    watched.view("W", "select count(*) as n, sum(v) as t from A")
    with watched.database.batch() as batch:
        batch.delete("A", "i = 1")
        batch.insert("A", table({1: 10}))
    watched.check()
    with watched.database.batch() as batch:
        batch.insert("A", table({1: 11}))
        batch.delete("A", "i = 1")
        batch.insert("A", table({1: 12}))
    watched.check()
    assert watched.cells("V") == {1: {"n": 2, "t": 32}, 2: {"n": 2, "t": 32}}
    assert watched.cells("W") == {(): {"n": 2, "t": 32}}


@pytest.mark.parametrize("value", [10, 0, None])
def test_replacing_by_an_equal_value_keeps_the_row(watched: Watched, value: int | None) -> None:
    line(watched, "A", i1=value)
    watched.view("V", "select count(*) as n, max(v) as m from A neighbours Linf(1)")
    watched.view("W", "select v from A where i > 0")
    version = watched.database.view("V").version
    put(watched, "A", {1: value})
    assert watched.cells("V") == {1: {"n": 1, "m": value}}
    assert watched.cells("W") == {1: value}
    assert watched.database.view("V").version == version


def test_a_zero_is_a_zero_whatever_its_sign(watched: Watched) -> None:
    array = watched.database.create("A", "<x: float64> [i=0:9:4]", sparse=True)
    array.insert({"i": [1, 2], "x": [0.0, -0.0]})
    watched.view("V", "select count_distinct(x) as d, mode(x) as m, max(x) as b from A neighbours Linf(1)")
    array.insert({"i": [1, 2], "x": [-0.0, 0.0]})
    watched.check()
    assert [row["d"] for row in watched.cells("V").values()] == [1, 1]


def test_an_aborted_batch_leaves_no_deltas(watched: Watched) -> None:
    line(watched, "A", i1=10)
    watched.view("V", "select sum(v) as t from A neighbours Linf(1)")

    def fail() -> None:
        with watched.database.batch() as batch:
            batch.insert("A", table({1: 1000, 2: 2000}))
            batch.query("select * from V").compute()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    watched.check()
    put(watched, "A", {2: 20})
    assert watched.cells("V") == {1: 30, 2: 30}


def test_several_changed_inputs_in_one_batch_do_not_overlap(watched: Watched) -> None:
    line(watched, "A", i1=1, i2=2)
    line(watched, "B", i1=10, i3=30)
    watched.view(
        "V", "select count(*) as n, sum(L.v * R.v) as t from A L similarity join B R with shape Linf(1) group by L.i"
    )
    watched.view("W", "select count(*) as n, sum(L.v * R.v) as t from A L similarity join A R with shape Linf(1)")
    with watched.database.batch() as batch:
        batch.insert("A", table({1: 5, 4: 4}))
        batch.delete("A", "i = 2")
        batch.insert("B", table({3: 7, 5: 50}))
        batch.delete("B", "i = 1")
        batch.insert("B", table({2: 3}))
    watched.check()
    assert watched.cells("V") == {1: {"n": 1, "t": 15}, 4: {"n": 2, "t": 228}}
    assert watched.cells("W") == {(): {"n": 2, "t": 41}}


def test_a_recomputed_extremum_respects_the_filter(watched: Watched) -> None:
    array = watched.database.create("A", "<v: int64, ok: int32> [i=0:9:4]", sparse=True)
    array.insert({"i": [1, 2, 3, 4], "v": [50, 99, 40, 30], "ok": [1, 0, 1, 1]})
    watched.view("V", "select max(v) as m, min(v) as l from (select * from A where ok = 1) neighbours i any")
    watched.view("W", "select max(v) as m from A where ok = 1")
    remove(watched, "A", "v = 50")
    assert watched.cells("V", "m") == {3: 40, 4: 40}
    assert watched.cells("W") == {(): 40}
    watched.run("update A set ok = 0 where v = 40")
    assert watched.cells("V", "m") == {4: 30}
    assert watched.cells("W") == {(): 30}


def test_distinct_counts_are_no_sums(watched: Watched) -> None:
    line(watched, "A", i1=1, i2=2)
    watched.view("V", "select count_distinct(v) as d from A neighbours i any")
    watched.view("W", "select count_distinct(v) as d, count(*) as n from A")
    put(watched, "A", {3: 1, 4: 2})
    assert set(watched.cells("V").values()) == {2}
    remove(watched, "A", "i = 1")
    assert set(watched.cells("V").values()) == {2}
    remove(watched, "A", "i = 3")
    assert set(watched.cells("V").values()) == {1}
    assert watched.cells("W") == {(): {"d": 1, "n": 2}}


@pytest.mark.parametrize("type_", ["int8", "int32", "int64", "uint64", "float32", "float64"])
def test_the_second_refresh_is_as_right_as_the_first(watched: Watched, type_: str) -> None:
    """State that lost its type was right once and 0 ever after."""
    array = watched.database.create("A", f"<v: {type_}> [i=0:9:4]", sparse=True)
    array.insert({"i": [1], "v": [1]})
    text = "select sum(v) as s, avg(v) as a, var(v) as v, max(v) as m, median(v) as d, count(v) as n from A group by i"
    watched.view("V", text)
    view = watched.view("W", text, deferred=True)
    for number in range(2, 6):
        array.insert({"i": [number], "v": [number]})
        watched.check()
        view.refresh()
        watched.check()
        for name in "VW":
            assert watched.cells(name, "s") == {i: i for i in range(1, number + 1)}


def test_a_baseline_that_is_gone_is_not_fresh(watched: Watched) -> None:
    line(watched, "A", i1=10)
    view = watched.view("V", "select sum(v) as t from A neighbours Linf(1)", deferred=True)
    for number in range(5):
        put(watched, "A", {number: number})
    watched.database.collect_garbage(keep_versions=1, drop_pins=True)
    assert view.stale
    with pytest.warns(wr.StaleViewWarning):
        assert view.read().num_rows == 1
    view.refresh()
    assert not view.stale
    last = view.history().to_pylist()[-1]
    assert (last["way"], last["why"]) == ("rebuilt", "the version of A that it holds for was given up")
    watched.check()
    assert len(watched.cells("V")) == 5


@pytest.mark.parametrize("definition", ["having", "where"])
def test_a_group_that_crosses_the_line(watched: Watched, definition: str) -> None:
    array = watched.database.create("A", "<v: int64> [i=0:9:4, j=0:9:4]", sparse=True)
    text = "select count(*) as n, sum(v) as t from A group by j"
    watched.view("V", f"{text} having n > 1" if definition == "having" else f"select * from ({text}) where n > 1")
    assert watched.cells("V") == {}
    for i, seen in ((1, False), (2, True), (3, True)):
        array.insert({"i": [i], "j": [4], "v": [i]})
        watched.check()
        assert (4 in watched.cells("V")) == seen
    for i, seen in ((3, True), (2, False), (1, False)):
        remove(watched, "A", f"i = {i}")
        assert (4 in watched.cells("V")) == seen
    array.insert({"i": [1, 2], "j": [4, 4], "v": [7, 8]})
    watched.check()
    assert watched.cells("V") == {4: {"n": 2, "t": 15}}


def test_an_aggregate_of_nothing_has_its_row(watched: Watched) -> None:
    line(watched, "A")
    watched.view("V", "select count(*) as n, sum(v) as t, max(v) as m from A")
    watched.view("W", "select count(*) as n from A where v > 100")
    nothing = {(): {"n": 0, "t": None, "m": None}}
    assert watched.cells("V") == nothing
    put(watched, "A", {1: 5, 2: 500})
    assert watched.cells("V") == {(): {"n": 2, "t": 505, "m": 500}}
    assert watched.cells("W") == {(): 1}
    remove(watched, "A")
    assert watched.cells("V") == nothing
    assert watched.cells("W") == {(): 0}


DIAMOND = {
    "left_": "select sum(v) as t from A neighbours Linf(1)",
    "right_": "select max(v) as m from A neighbours Linf(2)",
    "top": "select sum(L.t - R.m) as d from left_ L similarity join right_ R with shape Linf(1) group by L.i",
}


@pytest.mark.parametrize("deferred", [False, True])
def test_diamonds_are_never_seen_half_way(watched: Watched, deferred: bool) -> None:
    """One base, two views, one view on both."""
    line(watched, "A", i1=10, i2=20, i4=40)
    for name, text in DIAMOND.items():
        watched.view(name, text, deferred=deferred)
    for cells in ({3: 30}, {1: 11, 9: 90}, {3: 1, 4: 2, 5: 3}):
        put(watched, "A", cells)
        if deferred:
            watched.database.view("top").refresh()
            assert [watched.database.view(name).stale for name in DIAMOND] == [False] * 3
        watched.check()
    remove(watched, "A", "i < 4")
    if deferred:
        watched.database.view("top").refresh()
    watched.check()
    versions = [watched.database.view(name).bases for name in ("left_", "right_")]
    assert versions[0] == versions[1]


def test_views_are_maintained_in_the_order_in_which_they_stand(watched: Watched) -> None:
    """Created in an order that is not that of their names, three deep."""
    line(watched, "A", i1=1, i2=2)
    watched.view("Z", "select sum(v) as t from A neighbours Linf(1)")
    watched.view("M", "select max(t) as t from Z neighbours Linf(1)")
    watched.view("B", "select sum(t) as t from M")
    put(watched, "A", {3: 3})
    remove(watched, "A", "i = 2")
    with watched.database.batch() as batch:
        batch.delete("A", "i = 1")
        batch.insert("A", table({2: 7, 4: 1}))
    watched.check()
    assert watched.cells("B") == {(): 33}


def test_an_unmatched_row_stays_when_partners_come_and_go(watched: Watched) -> None:
    line(watched, "A", i1=1, i5=5)
    line(watched, "B")
    watched.view(
        "V", "select count(*) as n, sum(R.v) as t from A L left similarity join B R with shape Linf(1) group by L.i"
    )
    watched.view("W", "select * from A L anti similarity join B R with shape Linf(1)")
    empty = {1: {"n": 0, "t": None}, 5: {"n": 0, "t": None}}
    assert watched.cells("V") == empty
    for _ in range(2):
        put(watched, "B", {2: 20, 4: 40, 6: 60})
        assert watched.cells("V") == {1: {"n": 1, "t": 20}, 5: {"n": 2, "t": 100}}
        assert watched.cells("W") == {}
        remove(watched, "B")
        assert watched.cells("V") == empty
        assert watched.cells("W") == {1: 1, 5: 5}
    with watched.database.batch() as batch:
        batch.insert("B", table({1: 3}))
        batch.delete("B", "i = 1")
    watched.check()
    assert watched.cells("V") == empty


def test_missing_keys_do_not_match(watched: Watched) -> None:
    line(watched, "A", i1=None, i2=2)
    line(watched, "B", i1=None, i2=2)
    watched.view("V", "select count(*) as n from A L similarity join B R on L.v = R.v with shape Linf(1) group by L.i")
    watched.view(
        "W", "select count(*) as n from A L left similarity join B R on L.v = R.v with shape Linf(1) group by L.i"
    )
    assert watched.cells("V") == {2: 1}
    assert watched.cells("W") == {1: 0, 2: 1}
    watched.run("update B set v = null")
    assert watched.cells("V") == {}
    watched.run("update A set v = null")
    watched.run("update A set v = 3")
    watched.run("update B set v = 3 where i = 1")
    assert watched.cells("V") == {1: 1, 2: 1}
    put(watched, "A", {1: None})
    put(watched, "A", {1: None})
    assert watched.cells("W") == {1: 0, 2: 1}


def test_an_inner_query_is_not_answered_with_padded_rows(watched: Watched) -> None:
    line(watched, "A", i1=1, i5=5, i9=9)
    line(watched, "B", i2=20)
    select = "select count(*) as n, sum(R.v) as t from A L {}similarity join B R with shape Linf({}) group by L.i"
    watched.view("V", select.format("left ", 1))
    inner = watched.database.query(select.format("", 1)).compute().to_pylist()
    assert inner == [{"i": 1, "n": 1, "t": 20}]
    wider = watched.database.query(select.format("", 3)).compute().to_pylist()
    assert wider == [{"i": 1, "n": 1, "t": 20}, {"i": 5, "n": 1, "t": 20}]
    remove(watched, "B")
    assert watched.database.query(select.format("", 1)).compute().num_rows == 0
    assert watched.database.query(select.format("left ", 2)).compute().num_rows == 3


@pytest.mark.parametrize("keep", [None, 1])
def test_a_collection_leaves_deferred_views_what_they_need(watched: Watched, keep: int | None) -> None:
    """There is no log that could be vacuumed away: the version that a deferred view pins is kept."""
    line(watched, "A", i1=10, i2=20)
    text = "select sum(v) as t, count(*) as n from A neighbours Linf(1)"
    view = watched.view("V", text, deferred=True, maintain="incremental")
    for number in range(6):
        put(watched, "A", {number: 100 + number})
        remove(watched, "A", f"i = {number - 1}")
        watched.database.collect_garbage(keep_versions=keep)
    before = watched.database.query(text).compute()
    view.refresh()
    assert view.history().to_pylist()[-1]["way"] == "patched"
    assert view.read().to_pylist() == before.to_pylist()
    watched.check()


def test_one_rebuild_does_not_lead_to_rebuilding_for_ever(local: Any) -> None:
    """Batches that replace all are followed by small ones; those are patched again before long."""
    watched = Watched(local)
    array = local.create("A", "<v: int64> [i=0:99999:2000]", sparse=True)
    places = np.arange(0, 100_000, 2)
    array.insert({"i": places, "v": places})
    text = "select count(*) as n, sum(v) as t from A neighbours Linf(3)"
    watched.view("V", text)
    for number in range(3):
        array.insert({"i": places, "v": places + number + 1})
    ways = []
    for number in range(8):
        array.insert({"i": [2 * number + 1], "v": [number]})
        ways.append(local.view("V").history().to_pylist()[-1]["way"])
    assert "patched" in ways, ways
    assert ways[-1] == "patched", ways
    watched.check()


def own_aggregate(factor: int) -> Any:
    """A user's aggregate: as many times the sum."""
    return wr.aggregate("views_own", result="int64")(
        type(
            "Own",
            (),
            {
                "empty": lambda: (0,),
                "add": (lambda state, x: (state[0] + 1 * int(x),))
                if factor == 1
                else (lambda state, x: (state[0] + 2 * int(x),)),
                "merge": lambda a, b: (a[0] + b[0],),
                "result": lambda state: state[0],
            },
        )
    )


def test_a_user_s_changed_function_is_noticed(watched: Watched) -> None:
    line(watched, "A", i1=1, i2=2)
    own_aggregate(1)
    view = watched.view("V", "select views_own(v) as t from A neighbours Linf(1)")
    put(watched, "A", {3: 3})
    assert watched.cells("V") == {1: 3, 2: 6, 3: 5}
    own_aggregate(1)
    put(watched, "A", {3: 4})
    assert watched.cells("V") == {1: 3, 2: 7, 3: 6}
    own_aggregate(2)
    before = contents(watched.database.array("A"))
    with pytest.raises(Error, match="views_own"):
        watched.database.array("A").insert(table({3: 5}))
    assert contents(watched.database.array("A")) == before
    assert contents(view) == {(1,): {"t": 3}, (2,): {"t": 7}, (3,): {"t": 6}}
    view.refresh(full=True)
    watched.check()
    assert watched.cells("V") == {1: 6, 2: 14, 3: 12}
    put(watched, "A", {3: 5})
    assert watched.cells("V") == {1: 6, 2: 16, 3: 14}


# Interleavings of two writers, each ending in a comparison both ways


def test_two_writers_one_after_the_other_within_one_view(connect: Any) -> None:
    one, other = connect(), connect()
    watched = Watched(one)
    line(watched, "A", i1=1)
    line(watched, "B", i1=10)
    text = "select count(*) as n, sum(L.v * R.v) as t from A L similarity join B R with shape Linf(1) group by L.i"
    watched.view("V", text)
    failures: list[BaseException] = []
    with one.batch() as batch:
        batch.insert("A", table({2: 2}))

        def second() -> None:
            try:
                other.array("B").insert(table({2: 20}))
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=second)
        thread.start()
        batch.insert("A", table({3: 3}))
    thread.join()
    assert failures == []
    watched.check()
    assert watched.cells("V") == {1: {"n": 2, "t": 30}, 2: {"n": 2, "t": 60}, 3: {"n": 1, "t": 60}}
    assert contents(other.view("V")) == contents(one.view("V"))


def test_a_batch_breaks_no_view_that_it_does_not_reach(watched: Watched) -> None:
    line(watched, "A", i1=2**62)
    line(watched, "B", i1=1)
    watched.view("V", "select sum(v) as t from A")
    watched.view("W", "select sum(v) as t from B")
    with pytest.raises(DataError, match="overflow"):
        watched.database.array("A").insert(table({2: 2**62}))
    put(watched, "B", {2: 5})
    assert watched.cells("W") == {(): 6}
    assert read(watched.database.view("V")) is not None


def test_no_report_names_what_is_hidden(watched: Watched) -> None:
    array = watched.database.create("A", "<v: int64, w: int64> [i=0:99:4]", sparse=True)
    watched.view("V", "select count(*) as n, sum(v) as t from A neighbours Linf(1)")
    for values in ((1, 1), (2, 1), (2, 2)):
        report = array.insert({"i": [3], "v": [values[0]], "w": [values[1]]})
        assert list(report.versions) == ["A"]
        assert "__windrow" not in str(report)
