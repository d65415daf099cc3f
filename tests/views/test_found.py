"""Faults that the random search of test_machine.py found, each as small as it can be said."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow as wr
from windrow.errors import Error, SchemaError
from windrow.model.box import Box
from windrow.views import changes
from windrow.views.reads import remember

from .checking import Watched


@pytest.fixture
def watched(local: Any) -> Watched:
    return Watched(local)


def test_a_window_that_does_not_hold_its_own_cell(watched: Watched) -> None:
    """A result is there where a cell is: one that comes has a result, although no window holds it."""
    array = watched.database.create("A", "<v: int64> [i=0:9:4]", sparse=True)
    array.insert({"i": [1, 2], "v": [10, 20]})
    watched.view("V", "select sum(v) as s from A window (i between -2 and -1)")
    array.insert({"i": [3, 9], "v": [30, 90]})
    watched.check()
    assert watched.cells("V") == {1: None, 2: 10, 3: 30, 9: None}
    array.delete("i = 3")
    watched.check()
    assert watched.cells("V") == {1: None, 2: 10, 9: None}


def test_a_window_that_lies_before_a_slice_that_comes(watched: Watched) -> None:
    array = watched.database.create("T", "<v: float64> [t=1:*:2, x=0:2:2]")
    array.append({"v": np.arange(6.0).reshape(2, 3)})
    watched.view("V", "select max(v) as m from T window (t between -2 and -1)")
    array.append({"v": np.arange(6.0, 9.0).reshape(1, 3)})
    watched.check()
    array.append({"v": np.arange(9.0, 15.0).reshape(2, 3)})
    watched.check()


def test_a_sampled_window_that_does_not_hold_its_own_cell(watched: Watched) -> None:
    array = watched.database.create("A", "<v: int64> [i=1:20:4]", sparse=True)
    watched.view("V", "select count(*) as n from A window (i between 1 and 2) step (i 3)")
    for places in ([4, 5, 6], [1, 2, 7], [19, 20]):
        array.insert(pa.table({"i": places, "v": places}))
        watched.check()
    assert watched.cells("V") == {1: 1, 2: 2, 3: 0, 7: 1}
    array.delete("i = 4 or i = 20")
    watched.check()
    assert watched.cells("V") == {1: 1, 3: 0, 7: 0}


@pytest.mark.parametrize("maintain", ["auto", "incremental", "full"])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_what_no_view_reads_makes_no_version_whatever_the_setting(
    watched: Watched, maintain: str, sparse: bool
) -> None:
    """A view that is always rebuilt is rebuilt only if something reaches it."""
    array = watched.database.create("A", "<v: int64, w: int64 null> [i=1:9:4]", sparse=sparse)
    array.insert({"i": list(range(1, 10)), "v": [1] * 9, "w": [2] * 9})
    queries = {
        "N": "select sum(v) as s from A neighbours Linf(1)",
        "W": "select max(v) as m from A window (i 3)",
        "G": "select avg(v) as a from A",
        "J": "select count(*) as n from A L similarity join A R on L.v = R.v with shape Linf(2) group by L.i",
        "P": "select v * 2 as d from A where v > 0",
    }
    for name, query in queries.items():
        watched.view(name, query, maintain=maintain)
    array.update({"w": "w + i"})
    array.update({"w": "null"}, "i > 4")
    array.compact({"i": 2})
    watched.check()
    assert {watched.database.view(name).version for name in queries} == {1}
    array.update({"v": "2"}, "i = 1")
    watched.check()
    assert {watched.database.view(name).version for name in queries} == {2}


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_what_a_batch_saw_on_its_way_and_took_back_makes_no_version(watched: Watched, sparse: bool) -> None:
    array = watched.database.create("A", "<v: int64> [i=1:9:4]", sparse=sparse)
    array.insert({"i": list(range(1, 9)), "v": [1] * 8})
    watched.view("V", "select sum(v) as s from A window (i 3)")
    watched.view("N", "select count(*) as n, sum(v) as s from A neighbours Linf(1)")
    watched.view("U", "select max(s) as m from N")
    with watched.database.batch() as batch:
        batch.insert("A", {"i": [3], "v": [5]})
        assert batch.array("U").read()["m"].to_numpy().max() == 7
        batch.insert("A", {"i": [3], "v": [1]})
    watched.check()
    assert [watched.database.view(name).version for name in "VNU"] == [1, 1, 1]
    array.update({"v": "2"}, "i = 4")
    watched.check()
    assert [watched.database.view(name).version for name in "VNU"] == [2, 2, 2]


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_a_view_of_a_grand_total_looks_like_its_query_in_text_too(watched: Watched, sparse: bool) -> None:
    """It is stored as one cell, but lies nowhere: nobody sees a dimension, in no query on it."""
    array = watched.database.create("A", "<v: int64> [i=1:9:4]", sparse=sparse)
    array.insert({"i": [1, 2], "v": [10, 20]})
    asked = "select sum(v) as s, max(v) as m from A"
    watched.view("T", asked)
    watched.view("U", "select s + m as both from T where s > 0" if sparse else "select s + m as both from T")
    watched.view("W", "select max(s) as top from T")
    for _ in range(2):
        texts = {"select * from T": watched.database.query(asked).compute(), "select T": None, "select s from T": None}
        for text, wanted in texts.items():
            found = watched.database.query(text).compute()
            if sparse:
                assert found.num_rows == 1
                assert set(found.column_names) <= {"s", "m"}
            else:
                assert found["s"].dims == ()
            assert wanted is None or found.equals(wanted)
        with watched.database.batch() as batch:
            batch.insert("A", {"i": [3], "v": [5]})
            inside = batch.query("select * from T").compute()
            assert list(inside.column_names if sparse else [*inside.dims, *inside.data_vars]) == ["s", "m"]
        watched.check()
    assert watched.cells("U") == {(): 55}
    assert watched.cells("W") == {(): 35}


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_a_view_of_a_grand_total_lies_nowhere_in_batches_and_in_changes(watched: Watched, sparse: bool) -> None:
    array = watched.database.create("A", "<v: int64> [i=1:9:4]", sparse=sparse)
    array.insert({"i": [1, 2], "v": [10, 20]})
    watched.view("T", "select sum(v) as s from A")
    with watched.database.batch() as batch:
        batch.insert("A", {"i": [3], "v": [5]})
        inside = batch.array("T").read()
        assert (inside.to_pylist() if sparse else inside["s"].item()) == ([{"s": 35}] if sparse else 35)
    watched.check()
    rows = [{"change": "left", "s": 30}, {"change": "came", "s": 35}]
    assert watched.database.view("T").changes(1, 2).to_pylist() == rows
    assert watched.database.query("changes(T, 1, 2)").compute().to_pylist() == rows
    asked = "select sum(s) as t from changes(T, 1, 2) where change = 'came'"
    assert watched.database.query(asked).compute().to_pylist() == [{"t": 35}]


def test_a_view_of_a_grand_total_cannot_be_joined(watched: Watched) -> None:
    array = watched.database.create("A", "<v: int64> [i=1:9:4]", sparse=True)
    array.insert({"i": [1, 2], "v": [10, 20]})
    watched.view("T", "select sum(v) as s from A")
    for text in (
        "select count(*) as n from T neighbours Linf(1)",
        "select count(*) as n from A L similarity join T R with shape Linf(1) group by L.i",
    ):
        with pytest.raises(SchemaError):
            watched.database.query(text).compute()


def test_tasks_of_one_batch_read_beside_one_another(tmp_path: Path) -> None:
    """What is kept of reads was gone through while another task added to it."""
    with wr.connect(tmp_path / "w", engine="local", progress=False) as database:
        array = database.create("A", "<v: int64> [i=0:9999:10]", sparse=True)
        array.insert({"i": list(range(0, 10000, 7)), "v": list(range(0, 10000, 7))})
        snapshot = remember(array._snapshot())
        boxes = [Box((lo,), (lo + 9,)) for lo in range(0, 10000, 10)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(8) as pool:
                tables = list(pool.map(snapshot.read, boxes))
        finally:
            sys.setswitchinterval(interval)
    assert sum(table.num_rows for table in tables) == len(range(0, 10000, 7))


def test_a_view_that_breaks_after_its_states_were_made_is_left_behind(watched: Watched) -> None:
    """The array of states was made in the batch: there is nothing to go back to, it is not there."""
    array = watched.database.create("A", "<v: int64> [i=0:9:4]", sparse=True)
    array.insert({"i": [1, 5], "v": [1, 5]})
    text = "select 10 // s as q from (select sum(v) as s from A neighbours Linf(1))"
    view = watched.view("V", text, on_failure="stale")
    array.insert({"i": [6], "v": [-5]})
    assert view.stale
    assert watched.database.view("V").history().to_pylist()[-1]["way"] == "failed"
    array.insert({"i": [6], "v": [1]})
    view.refresh()
    watched.check()
    assert watched.cells("V") == {1: 10, 5: 1, 6: 1}
    array.insert({"i": [2], "v": [1]})
    watched.check()
    assert watched.cells("V") == {1: 5, 2: 5, 5: 1, 6: 1}


@pytest.mark.parametrize("on_failure", ["stale", "refuse"])
def test_what_a_batch_broke_on_its_way_and_mended_is_fresh(watched: Watched, on_failure: str) -> None:
    """A query inside the batch fails; the batch as a whole breaks nothing."""
    array = watched.database.create("A", "<v: int64, w: int64> [i=0:9:4]", sparse=True)
    array.insert({"i": [1, 5], "v": [1, 5], "w": [1, 1]})
    watched.view("V", "select v // w as q from A", on_failure=on_failure)
    watched.view("N", "select sum(v // w) as s from A neighbours Linf(1)", on_failure=on_failure)
    watched.view("U", "select max(q) as m from V")
    with watched.database.batch() as batch:
        batch.insert("A", {"i": [3], "v": [7], "w": [1]})
        assert batch.array("U").read()["m"].to_pylist() == [7]
        batch.insert("A", {"i": [4], "v": [9], "w": [0]})
        with suppress(Error):
            batch.array("N").read()
        batch.delete("A", "w = 0")
    assert not any(watched.database.view(name).stale for name in "VNU")
    watched.check()
    assert watched.cells("V") == {1: 1, 3: 7, 5: 5}
    assert watched.cells("U") == {(): 7}
    array.insert({"i": [6], "v": [8], "w": [2]})
    watched.check()


def test_rows_of_a_part_that_one_moment_alone_has() -> None:
    """Found by marking them, as sets say: sorting all rows of a part took longer than the rest of a batch."""
    random = np.random.default_rng(0)
    for _ in range(50):
        rows, others = (np.flatnonzero(random.random(random.integers(0, 40)) < 0.6) for _ in range(2))
        assert changes._without(rows, others).tolist() == sorted(set(rows.tolist()) - set(others.tolist()))


def _line_with_views(watched: Watched) -> Any:
    array = watched.database.create("A", "<v: int64> [i=0:9:4]", sparse=True)
    array.insert({"i": [1, 2], "v": [1, 2]})
    watched.database.create_view("V", "select sum(v) as s from A neighbours Linf(1)")
    watched.database.create_view("W", "select sum(s) as t from V")
    return array


def test_an_array_that_the_batch_changed_is_still_read_by_views(watched: Watched) -> None:
    """What a batch had touched it dropped without asking for views, and these were left without what they read."""
    array = _line_with_views(watched)

    def change_and_drop(name: str) -> None:
        with watched.database.batch() as batch:
            batch.insert("A", {"i": [3], "v": [3]})
            assert batch.array("W").read()["t"].to_pylist() == [14]
            batch.drop(name)

    for name, reader in (("A", "V"), ("V", "W")):
        with pytest.raises(SchemaError, match=f"{name} is read by {reader}"):
            change_and_drop(name)
    assert array.read().num_rows == 2
    with watched.database.batch() as batch:
        batch.insert("A", {"i": [3], "v": [3]})
        assert batch.array("W").read()["t"].to_pylist() == [14]
        batch.drop("A", cascade=True)
        batch.create("A", "<v: int64> [i=0:9:4]", sparse=True)
        batch.insert("A", {"i": [4], "v": [9]})
    assert watched.database.views() == []
    assert watched.database.catalog.array_names() == ["A"]
    assert watched.database.array("A").read().to_pylist() == [{"i": 4, "v": 9}]


def test_a_view_that_a_batch_looked_at_and_dropped(watched: Watched) -> None:
    """What had been done to it was still to be published, and its array of states had been made for nothing."""
    _line_with_views(watched)
    with watched.database.batch() as batch:
        batch.insert("A", {"i": [3], "v": [3]})
        assert batch.array("W").read()["t"].to_pylist() == [14]
        batch.drop("W")
        batch.insert("A", {"i": [5], "v": [5]})
    assert watched.database.view("V").check().ok
    assert watched.database.view("V").read()["s"].to_pylist() == [3, 6, 5, 5]
    with watched.database.batch() as batch:
        batch.insert("A", {"i": [6], "v": [1]})
        assert batch.array("V").read().num_rows == 5
        batch.drop("V")
        batch.create("V", "<u: int64> [k=0:9]", sparse=True)
        batch.insert("V", {"k": [4], "u": [7]})
    assert dict(batch.report.versions) == {"A": 3, "V": 1}
    assert dict(batch.report.views) == {}
    assert sorted(watched.database.catalog.array_names()) == ["A", "V"]
    assert watched.database.array("V").read().to_pylist() == [{"k": 4, "u": 7}]


def test_an_old_version_of_a_grand_total_lies_nowhere_either(watched: Watched) -> None:
    """The cell that it is stored as showed its place where a version was named."""
    for sparse in (True, False):
        array = watched.database.create("A", "<v: int64> [i=1:9:4]", sparse=sparse)
        array.insert({"i": [1, 2], "v": [10, 20]})
        view = watched.database.create_view("T", "select sum(v) as s from A")
        array.insert({"i": [3], "v": [5]})
        reads = (view.at(version=1).read(), watched.database.array("T@1").read(), view.read(), view.sel().read())
        for found, wanted in zip(reads, (30, 30, 35, 35), strict=True):
            if sparse:
                assert found.to_pydict() == {"s": [wanted]}
            else:
                assert (found["s"].dims, found["s"].item()) == ((), wanted)
        for shown, wanted in ((view.to_xarray()["s"], 35), (view.at(version=1).to_xarray()["s"], 30)):
            assert (shown.dims, shown.item()) == ((), wanted)
        assert view.at(version=2).changes(1).column_names == ["change", "s"]
        watched.database.drop("A", cascade=True)


def test_a_grand_total_lies_nowhere_where_it_is_streamed_or_exported(watched: Watched, tmp_path: Path) -> None:
    """The cell that it is stored as showed its place there."""
    array = watched.database.create("A", "<v: int64> [i=1:9:4]", sparse=True)
    array.insert({"i": [1, 2], "v": [10, 20]})
    view = watched.view("T", "select sum(v) as s from A")
    assert [table.to_pydict() for table in view.batches()] == [{"s": [30]}]
    watched.database.export_file("T", tmp_path / "total.csv")
    assert (tmp_path / "total.csv").read_text().split() == ['"s"', "30"]
    array.insert({"i": [3], "v": [5]})
    watched.database.export_file("T@1", tmp_path / "total.parquet")
    assert pq.read_table(tmp_path / "total.parquet").to_pydict() == {"s": [30]}


def test_a_delete_of_no_cell_leaves_views_at_the_version_that_there_is(watched: Watched) -> None:
    """It makes a version of the array; views held for the one before, which collections gave up."""
    array = _line_with_views(watched)
    watched.database.create_view("D", "select max(v) as m from A", deferred=True)
    array.delete("v = 99")
    assert array.version == 2
    for name in ("V", "D"):
        view = watched.database.view(name)
        assert (view.bases, view.version, view.stale) == ({"A": 2}, 1, False)
    watched.database.collect_garbage(keep_versions=1)
    for name in "VWD":
        assert watched.database.view(name).check().ok
    array.insert({"i": [3], "v": [3]})
    view = watched.database.view("D")
    watched.database.collect_garbage(keep_versions=1)
    view.refresh()
    assert (view.check().ok, view.read()["m"].to_pylist()) == (True, [3])


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_a_compaction_leaves_no_deferred_view_behind(watched: Watched, sparse: bool) -> None:
    array = watched.database.create("A", "<v: int64> [i=1:9:4]", sparse=sparse)
    array.insert({"i": [1, 2], "v": [10, 20]})
    view = watched.database.create_view("D", "select max(v) as m from A", deferred=True)
    array.compact()
    array.compact({"i": 3})
    watched.database.collect_garbage(keep_versions=1)
    assert (view.stale, view.version, view.bases) == (False, 1, {"A": array.version})
    assert view.check().ok
    with watched.database.batch() as batch:
        batch.insert("A", {"i": [3], "v": [30]})
        batch.compact("A")
    assert view.stale
    view.refresh()
    assert view.check().ok
    assert view.read()["m"].to_numpy() == 30
