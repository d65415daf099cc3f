"""What views promise whatever comes: harmless writes go through, failures leave nothing half-done, nothing is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.views import bring

from .checking import Watched, contents, damage_states


@pytest.fixture
def watched(local: Any) -> Watched:
    return Watched(local)


# Writes that the steps of a view make nothing of


@wr.operator("magnitudes", halo=0, result="<a: float64>")
def magnitudes(block: dict[str, Any]) -> Any:
    return np.abs(block["a"])


ABSOLUTE = {
    "argument": "select sum(abs(a)) as s from O group by i",
    "column": "select sum(a) as s from (select abs(a) as a from O) group by i",
    "all": "select sum(a) as s, count(a) as n from (select abs(a) as a from O)",
    "operator": "select max(a) as s from magnitudes(O) group by j",
    "operator, all": "select sum(a) as s from magnitudes(O)",
    "window": "select sum(m) as s from (select max(a) as m from O window (i 2, j 2)) group by i",
    "window, all": "select max(m) as s from (select max(a) as m from O window (i 2, j 2))",
}


@pytest.mark.parametrize("deferred", [False, True], ids=["kept up", "deferred"])
@pytest.mark.parametrize("kind", ABSOLUTE)
def test_a_write_that_changes_no_result(watched: Watched, kind: str, deferred: bool) -> None:
    array = watched.database.create("O", "<a: float64> [i=0:3:2, j=0:3:2]")
    array.write(np.full((4, 4), 6.0))
    view = watched.view("V", ABSOLUTE[kind], deferred=deferred)
    before = contents(view)
    windows = "window" in kind  # whose maxima a smaller number does not move
    for value in (5.0, 4.0) if windows else (-6.0, 6.0):
        array.write({"a": np.full((1, 1), value)}, at=(3, 3))
        if deferred:
            view.refresh()
        assert not view.stale
        watched.check()
    if not windows:
        assert contents(view) == before


# Failures that nobody foresaw


def _break(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("nobody thought of that")

    monkeypatch.setattr(bring, "put_results", fail)


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_an_unforeseen_failure_refuses_the_batch(local: Any, monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    array = local.create("A", "<v: int64> [i=0:9:4]", sparse=sparse)
    array.insert({"i": [1, 2], "v": [10, 20]})
    view = local.create_view("V", "select sum(v) as s from A group by i")
    before = (array.version, view.version, contents(array), contents(view))
    with monkeypatch.context() as broken:
        _break(broken)
        with pytest.raises(ZeroDivisionError, match="nobody") as raised:
            array.insert({"i": [2], "v": [30]})
    assert any("breaks the view V" in note for note in raised.value.__notes__)
    assert (array.version, view.version, contents(array), contents(view)) == before
    array.insert({"i": [2], "v": [30]})
    assert view.check().ok


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_an_unforeseen_failure_leaves_a_view_behind(local: Any, monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    """That is what on_failure = stale says, whatever the failure is."""
    array = local.create("A", "<v: int64> [i=0:9:4]", sparse=sparse)
    array.insert({"i": [1, 2], "v": [10, 20]})
    view = local.create_view("V", "select sum(v) as s from A group by i", on_failure="stale")
    other = local.create_view("W", "select max(v) as m from A window (i 3)")
    before = (view.version, contents(view))
    with monkeypatch.context() as broken:
        _break(broken)
        array.insert({"i": [2], "v": [30]})
    assert (view.status, view.reason) == ("failed", "ZeroDivisionError: nobody thought of that")
    assert (view.version, contents(view)) == before
    assert other.check().ok
    view.refresh()
    assert not view.stale
    assert view.check().ok
    array.insert({"i": [3], "v": [5]})
    assert view.check().ok


# Old versions that a view reads


def _read_old_version(database: Any, text: str = "A@1") -> tuple[Any, Any, Any]:
    array = database.create("A", "<v: int64> [i=0:9:4]", sparse=True)
    array.insert({"i": [1, 2], "v": [10, 20]})
    other = database.create("B", "<v: int64> [i=0:9:4]", sparse=True)
    other.insert({"i": [1, 2], "v": [1, 2]})
    query = f"select sum(R.v) as s from {text} L similarity join B R with shape L1(1) group by L.i"
    view = database.create_view("P", query)
    array.insert({"i": [2, 5], "v": [50, 60]})
    array.delete("i = 1")
    return array, other, view


@pytest.mark.parametrize("drop_pins", [False, True])
def test_a_version_that_a_view_reads_is_not_collected(local: Any, drop_pins: bool) -> None:
    array, other, view = _read_old_version(local)
    done = local.collect_garbage(keep_versions=1, drop_pins=drop_pins)
    assert [(pin.view, pin.array, pin.version) for pin in done.pins] == [("P", "A", 1)]
    assert [version.number for version in array.versions()] == [1, array.version]
    other.insert({"i": [3], "v": [7]})
    assert view.check().ok
    assert contents(view) == {(1,): {"s": 3}, (2,): {"s": 10}}
    view.refresh(full=True)
    assert view.check().ok
    local.drop_view("P")
    local.collect_garbage(keep_versions=1)
    assert [version.number for version in array.versions()] == [array.version]


def test_an_array_of_which_a_view_reads_an_old_version_is_not_dropped(local: Any) -> None:
    _, other, view = _read_old_version(local)
    with pytest.raises(wr.SchemaError, match="A is read by P"):
        local.drop("A")
    with pytest.raises(wr.SchemaError, match="A is read by P"):
        local.query("drop A")
    other.insert({"i": [3], "v": [7]})
    assert view.check().ok
    local.drop("A", cascade=True)
    assert [one.name for one in local.views()] == []
    assert "A" not in local
    other.insert({"i": [4], "v": [7]})


def test_a_view_cannot_take_the_name_of_what_it_reads_an_old_version_of(local: Any) -> None:
    local.create("A", "<v: int64> [i=0:9:4]", sparse=True)
    with pytest.raises(wr.SchemaError, match="itself"):
        local.create_view("A", "select sum(v) as s from A@0 group by i")


# No multiplicity is negative

STATES = {
    "neighbours": "select count(*) as n, sum(v) as s from A neighbours Linf(1)",
    "median": "select median(v) as m from A neighbours Linf(1)",
    "pairs": "select max(R.v) as m from A L similarity join A R with shape Linf(1) group by L.i, L.j",
    "groups": "select sum(v) as s, max(v) as m from A group by i, j",
    "groups of pairs": "select sum(R.v) as s from A L similarity join A R with shape Linf(1) group by L.i",
}


def _with_states(database: Any, kind: str, **settings: Any) -> tuple[Any, Any]:
    array = database.create("A", "<v: int64> [i=0:9:4, j=0:9:4]", sparse=True)
    view = database.create_view("V", STATES[kind], maintain="incremental", **settings)
    array.insert({"i": [1, 1, 5, 5], "j": [1, 2, 5, 6], "v": [10, 20, 30, 40]})
    array.insert({"i": [2, 6], "j": [2, 6], "v": [50, 60]})
    assert view.check().ok
    return array, view


@pytest.mark.parametrize("kind", STATES)
@pytest.mark.parametrize("count", [0, -7])
def test_a_state_from_which_more_leaves_than_it_has_stops_the_batch(local: Any, kind: str, count: int) -> None:
    array, view = _with_states(local, kind)
    damage_states(local, "V", {"__windrow_pairs": str(count)}, "i >= 5")
    before = (array.version, view.version, contents(array), contents(view))
    with pytest.raises(wr.CorruptionError, match=r"the view V at i = [56].* is not that of its rows") as raised:
        array.delete("i = 5")
    assert "refresh V full" in str(raised.value)
    assert (array.version, view.version, contents(array), contents(view)) == before
    view.refresh(full=True)
    array.delete("i = 5")
    assert view.check().ok


def test_a_state_that_counts_less_than_nothing_stops_the_batch(local: Any) -> None:
    """Also if rows only come, so that nothing is taken out of it."""
    array, view = _with_states(local, "neighbours")
    damage_states(local, "V", {"__windrow_count_0": "-3"}, "i = 5 and j = 6")
    with pytest.raises(wr.CorruptionError, match=r"V at i = 5, j = 6 is not that of its rows"):
        array.insert({"i": [4], "j": [7], "v": [1]})
    assert not view.check().ok


def test_a_damaged_state_leaves_a_view_behind_that_may_be(local: Any) -> None:
    array, view = _with_states(local, "groups", on_failure="stale")
    damage_states(local, "V", {"__windrow_pairs": "0"}, "i = 5 and j = 6")
    array.delete("i = 5")
    assert view.status == "failed"
    assert "V at i = 5, j = 6" in str(view.reason)
    view.refresh(full=True)
    assert view.check().ok
