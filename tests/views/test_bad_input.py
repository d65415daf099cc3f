"""What cannot be a view, or breaks one: a clear error, and neither base nor any view has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.errors import ConflictError, DataError, Error, SchemaError, UnknownNameError
from windrow.views.definition import Settings

from .checking import contents, damage_states, total

SUM = "select sum(v) as t from A neighbours Linf(1)"


@pytest.fixture
def database(local: Any) -> Any:
    """A sparse array with two views, one on the other, and a dense one."""
    local.create("A", "<v: int64, w: int64> [i=0:9:4]", sparse=True).insert({"i": [1, 2], "v": [10, 20], "w": [0, 0]})
    local.create("D", "<a: float64> [t=0:3:2]").write(np.arange(4.0))
    local.create_view("V", SUM)
    local.create_view("U", "select max(t) as m from V")
    return local


def state(database: Any) -> dict[str, Any]:
    """Everything that a user could see change."""
    found: dict[str, Any] = {}
    for array in database.arrays():
        found[array.name] = (array.version, contents(array))
    for view in database.views():
        found[view.name] = (view.version, contents(view), view.status)
    return found


@pytest.fixture
def unchanged(database: Any) -> Any:
    """Whatever the test tries, all is as before at its end."""
    before = state(database)
    yield database
    assert state(database) == before
    database.array("A").insert({"i": [3], "v": [30], "w": [0]})
    assert contents(database.view("V")) == {(1,): {"t": 30}, (2,): {"t": 60}, (3,): {"t": 50}}
    assert total(database.view("U")) == {"m": 60}


# Definitions


def test_a_view_on_itself(unchanged: Any) -> None:
    for name, text in (("X", "select sum(t) as t from X"), ("V", "select sum(t) as t from V group by i")):
        with pytest.raises(Error, match=name):
            unchanged.create_view(name, text)
        with pytest.raises(Error, match=name):
            unchanged.query(f"create array view {name} as {text}")


def test_a_cycle_cannot_come_about_through_names(unchanged: Any) -> None:
    """V is read by U: it can neither be dropped and made anew on U, nor be written from U."""
    with pytest.raises(SchemaError, match="U"):
        unchanged.drop_view("V")
    with pytest.raises(SchemaError, match="V is a view"):
        unchanged.query("select t from V into V")


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) as n from A neighbours L1(1) on (j)",
        "select count(*) as n from A neighbours j between -1 and 0",
        "select count(*) as n from A L similarity join A R with shape Linf(1) on (k) group by L.i",
        "select count(*) as n from A window (j 3)",
        "select sum(u) as n from A group by i",
        "select sum(v) as n from A group by v",
        "select sum(v) as n from B",
        "select count(*) as n from A neighbours S",
    ],
)
def test_unknown_dimensions_attributes_and_arrays(unchanged: Any, text: str) -> None:
    with pytest.raises(Error):
        unchanged.create_view("X", text)
    assert "X" not in unchanged


@pytest.mark.parametrize(
    "mapping", ["R.i = L.i * L.i", "R.i = L.i / 2", "R.i = L.i + 100", "R.q = L.i", "R.i = L.i and R.i = L.i + 1"]
)
def test_mappings_that_do_not_fit(unchanged: Any, mapping: str) -> None:
    text = f"select count(*) as n from A L similarity join A R on {mapping} with shape Linf(1) group by L.i"
    with pytest.raises((SchemaError, UnknownNameError)):
        unchanged.create_view("X", text)
    assert "X" not in unchanged


def test_a_left_join_without_groups_is_no_view(unchanged: Any) -> None:
    with pytest.raises(SchemaError, match="table"):
        unchanged.create_view("X", "select L.v as f from A L left similarity join A R with shape Linf(1)")
    assert "X" not in unchanged


@pytest.mark.parametrize(
    "settings",
    [
        {"maintain": "often"},
        {"on_failure": "ignore"},
        {"store": "nowhere"},
        {"strategy": "luck"},
        {"chunks": {"q": 3}},
        {"chunks": {"i": 0}},
        {"maintain": None},
    ],
    ids=str,
)
def test_settings_that_there_are_not(unchanged: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(Error):
        unchanged.create_view("X", SUM, **settings)
    assert "X" not in unchanged


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("decay", 7),
        ("decay", -0.1),
        ("decay", float("nan")),
        ("budget", float("nan")),
        ("budget", float("inf")),
        ("budget", -1),
        ("window", 2.7),
        ("window", -1),
        ("window", float("inf")),
        ("seed", 1.5),
        ("seed", float("nan")),
        ("seed", True),
        ("seed", "1"),
        ("speed", 1),
    ],
)
def test_numbers_that_no_plan_can_be_made_with(unchanged: Any, name: str, number: Any) -> None:
    with pytest.raises(DataError, match=name):
        unchanged.create_view("X", SUM, placement={name: number})
    with pytest.raises(DataError, match=name):
        unchanged.plan_maintenance(**{name: number})
    if isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < float("inf"):
        with pytest.raises(DataError, match=name):
            unchanged.query(f"create array view X with ({name} = {number}) as {SUM}")
    assert "X" not in unchanged


@pytest.mark.parametrize(
    "placement", [{"decay": 1}, {"decay": 0.0}, {"window": 5.0, "seed": 3}, {"budget": 0}], ids=str
)
def test_numbers_that_a_plan_can_be_made_with(database: Any, placement: dict[str, float]) -> None:
    view = database.create_view("X", SUM, placement=placement)
    assert view.settings["placement"] == placement


def test_numbers_that_an_earlier_windrow_let_pass_count_as_not_given() -> None:
    known = {**Settings().as_json(), "placement": {"decay": 7, "window": 3}}
    assert Settings.stored(known).placement == {"window": 3}


@pytest.mark.parametrize(
    "text",
    [
        "select median(v) as m from A",
        "select mode(v) as m from A",
        "select median(v) as m from A neighbours i any",
    ],
)
def test_strict_views_refuse_what_one_cell_can_force_to_be_recomputed(unchanged: Any, text: str) -> None:
    with pytest.raises(SchemaError, match="strict"):
        unchanged.create_view("X", text, maintain="strict")
    assert "X" not in unchanged


def test_strict_views_take_what_can_be_patched(database: Any) -> None:
    database.create_view("X", "select median(v) as m, sum(v) as t from A neighbours Linf(1)", maintain="strict")
    database.create_view("Y", "select sum(v) as t, count(*) as n from A", maintain="strict")
    database.array("A").insert({"i": [3], "v": [30], "w": [0]})
    assert database.view("X").check().ok
    assert total(database.view("Y")) == {"t": 60, "n": 3}


@pytest.mark.parametrize("name", ["A", "V", "1x", "", "a b", "__windrow_x"])
def test_names_that_a_view_cannot_have(unchanged: Any, name: str) -> None:
    with pytest.raises(Error):
        unchanged.create_view(name, SUM)


@pytest.mark.parametrize("query", [None, 5, "delete from A", "create array B <a: int> [i=1:2]", "select"])
def test_what_is_no_query(unchanged: Any, query: Any) -> None:
    with pytest.raises(Error):
        unchanged.create_view("X", query)


def test_a_view_that_is_not_there(unchanged: Any) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean"):
        unchanged.view("VV")
    with pytest.raises(UnknownNameError):
        unchanged.view("A")
    with pytest.raises(UnknownNameError):
        unchanged.drop_view("X")
    for text in ("refresh X", "check view X", "show history X", "drop view X"):
        with pytest.raises(Error, match="X"):
            unchanged.query(text)


# Values


def test_a_value_expression_that_fails_on_some_cells(unchanged: Any) -> None:
    with pytest.raises(Error, match="zero"):
        unchanged.create_view("X", "select v // w as q from A")
    assert "X" not in unchanged


def test_a_batch_that_breaks_one_view_of_three(database: Any) -> None:
    database.query("update A set w = 1")
    database.create_view("Q", "select v // w as q from A")
    before = state(database)
    for change in (
        lambda: database.query("update A set w = 0 where i = 2"),
        lambda: database.array("A").insert({"i": [5], "v": [5], "w": [0]}),
        lambda: _in_a_batch(database),
    ):
        with pytest.raises(Error, match="zero"):
            change()
        assert state(database) == before
    database.array("A").insert({"i": [5], "v": [5], "w": [5]})
    assert contents(database.view("Q"))[(5,)] == {"q": 1}


def _in_a_batch(database: Any) -> None:
    with database.batch() as batch:
        batch.write("D", np.full(4, 9.0))
        batch.insert("A", {"i": [5], "v": [5], "w": [0]})


def test_a_batch_that_breaks_a_view_that_may_be_stale(database: Any) -> None:
    database.query("update A set w = 1")
    view = database.create_view("Q", "select v // w as q from A", on_failure="stale")
    database.array("A").insert({"i": [5], "v": [5], "w": [0]})
    assert view.stale
    assert view.status in ("stale", "failed")
    assert "zero" in str(view.reason)
    assert contents(database.view("V"))[(5,)] == {"t": 5}
    with pytest.warns(wr.StaleViewWarning):
        assert view.read().num_rows == 2
    with pytest.raises(Error, match="zero"):
        view.refresh()
    database.query("update A set w = 1")
    view.refresh()
    assert not view.stale
    assert contents(view) == {(1,): {"q": 10}, (2,): {"q": 20}, (5,): {"q": 5}}
    assert view.check().ok


def test_an_overflow_that_the_whole_batch_undoes(database: Any) -> None:
    with database.batch() as batch:
        batch.insert("A", {"i": [1, 2], "v": [2**62, 2**62], "w": [0, 0]})
        batch.insert("A", {"i": [2], "v": [5], "w": [0]})
    assert contents(database.view("V")) == {(1,): {"t": 2**62 + 5}, (2,): {"t": 2**62 + 5}}
    before = state(database)
    with pytest.raises(DataError, match="overflow"):
        database.array("A").insert({"i": [2], "v": [2**62], "w": [0]})
    assert state(database) == before


# Bases


def test_dropping_an_array_that_views_use(database: Any) -> None:
    before = state(database)
    for drop in (lambda: database.drop("A"), lambda: database.array("A").drop(), lambda: database.query("drop A")):
        with pytest.raises(SchemaError, match="V") as caught:
            drop()
        assert "cascade" in str(caught.value.hint)
    assert state(database) == before
    database.drop("A", cascade=True)
    assert [array.name for array in database.arrays()] == ["D"]
    assert list(database.views()) == []


def test_dropping_by_text(database: Any) -> None:
    with pytest.raises(SchemaError, match="U"):
        database.query("drop view V")
    database.query("drop view V cascade")
    assert list(database.views()) == []
    database.query("drop A cascade")
    assert [array.name for array in database.arrays()] == ["D"]


def test_writing_into_a_view(unchanged: Any, tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text("i,t\n1,2\n")
    view = unchanged.view("V")
    for write in (
        lambda: view.insert({"i": [1], "t": [1]}),
        lambda: view.update({"t": "t + 1"}),
        lambda: view.delete(),
        lambda: view.write(np.zeros(10)),
        lambda: view.append(np.zeros(10)),
        lambda: unchanged.query("insert into V values (1: 2)"),
        lambda: unchanged.query("update V set t = 0"),
        lambda: unchanged.query("delete from V where true"),
        lambda: unchanged.query("select v as t from A into V"),
        lambda: unchanged.query(f"insert into V from '{file}'"),
        lambda: unchanged.query(f"load V from '{file}'"),
        lambda: unchanged.import_file(file, "V", dimensions=["i"]),
        lambda: unchanged.query("select v as t from A").store("V"),
        lambda: _write_in_a_batch(unchanged),
    ):
        with pytest.raises(SchemaError, match="V is a view"):
            write()


@pytest.mark.parametrize(
    "change",
    [
        lambda database, name: wr.Array(database, name).delete(),
        lambda database, name: wr.Array(database, name).update({"__windrow_pairs": "9"}),
        lambda database, name: wr.Array(database, name).insert({"i": [1]}),
        lambda database, name: wr.Array(database, name).drop(),
        lambda database, name: database.drop(name),
        lambda database, name: database.drop(name, cascade=True),
        lambda database, name: database.query(f"drop {name}"),
        lambda database, name: database.query(f"drop array {name}"),
        lambda database, name: database.query(f"delete from {name} where true"),
        lambda database, name: database.query(f"update {name} set __windrow_pairs = 9"),
        lambda database, name: database.query(f"select v from A into {name}"),
    ],
)
def test_what_a_view_keeps_for_itself_is_out_of_reach(database: Any, change: Any) -> None:
    database.array("A").insert({"i": [4], "v": [40], "w": [0]})
    assert "__windrow_state_V" in database
    before = state(database)
    with pytest.raises(SchemaError, match="windrow"):
        change(database, "__windrow_state_V")
    assert state(database) == before
    database.array("A").insert({"i": [5], "v": [50], "w": [0]})
    assert database.view("V").check().ok
    database.drop_view("U")
    database.drop_view("V")
    assert "__windrow_state_V" not in database


def _write_in_a_batch(database: Any) -> None:
    with database.batch() as batch:
        batch.insert("A", {"i": [7], "v": [7], "w": [7]})
        batch.insert("V", {"i": [7], "t": [7]})


def test_an_attribute_that_a_view_uses_cannot_be_changed(unchanged: Any) -> None:
    """There is no renaming; to store other attributes into the array, or to make it anew, is refused."""
    for text in ("select v as u, w from A into A", "select w from A into A", "select v + 0.5 as v, w from A into A"):
        with pytest.raises(Error):
            unchanged.query(text)
    with pytest.raises(Error):
        unchanged.create("A", "<u: int64> [i=0:9]", sparse=True)


def test_creating_a_view_while_a_batch_on_its_base_runs(connect: Any) -> None:
    one, other = connect(), connect(lock_timeout=0)
    one.create("A", "<v: int64> [i=0:9:4]", sparse=True).insert({"i": [1], "v": [10]})
    with one.batch() as batch:
        batch.insert("A", {"i": [2], "v": [20]})
        with pytest.raises(ConflictError, match="A"):
            other.create_view("V", SUM)
        assert "V" not in other
        assert list(other.views()) == []
    view = other.create_view("V", SUM)
    assert contents(view) == {(1,): {"t": 30}, (2,): {"t": 30}}


UNKNOWING = """
import sys
import windrow as wr
with wr.connect(sys.argv[1], engine="local", progress=False) as database:
    try:
        database.array("A").insert({"i": [3], "v": [30], "w": [0]})
    except wr.Error as error:
        print(error)
"""


def test_a_user_s_aggregate_that_the_writing_process_does_not_know(database: Any) -> None:
    @wr.aggregate("views_unknown", result="int64")
    class Unknown:
        def empty():  # type: ignore[misc]
            return (0,)

        def add(state, x):  # type: ignore[misc]  # noqa: N805
            return (state[0] + int(x),)

        def result(state):  # type: ignore[misc]  # noqa: N805
            return state[0]

    database.create_view("X", "select views_unknown(v) as t from A neighbours Linf(1)")
    before = state(database)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", UNKNOWING, database.path]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "views_unknown" in said
    assert state(database) == before
    database.array("A").insert({"i": [3], "v": [30], "w": [0]})
    assert contents(database.view("X")) == {(1,): {"t": 30}, (2,): {"t": 60}, (3,): {"t": 50}}


# Damage


@pytest.mark.parametrize(
    "used",
    [
        pytest.param(False, id="at once"),
        pytest.param(True, id="after a batch that used it"),
    ],
)
def test_a_hidden_state_that_was_damaged(database: Any, used: bool) -> None:
    text = "select sum(R.v) as t from A L similarity join A R with shape Linf(1) group by L.i"
    view = database.create_view("J", text, maintain="incremental")
    array = database.array("A")
    array.insert({"i": [3], "v": [30], "w": [0]})
    assert view.check().ok
    state_of = wr.Array(database, "__windrow_state_J")
    (lower,) = (name for name in state_of.schema.attribute_names if name.endswith("_lower"))
    damage_states(database, "J", {lower: f"{lower} + 7"})
    if used:
        array.insert({"i": [4], "v": [40], "w": [0]})
    checked = view.check()
    assert not checked.ok
    assert "refresh J full" in str(checked)
    view.refresh(full=True)
    assert view.check().ok
    array.insert({"i": [5], "v": [50], "w": [0]})
    assert view.check().ok
    assert contents(view)[(5,)] == {"t": 50 + (40 if used else 0)}


# Reading


def test_versions_of_views_and_of_their_bases(database: Any) -> None:
    database.array("A").insert({"i": [2], "v": [25], "w": [0]})
    view = database.view("V")
    assert contents(database.array(f"V@{view.version - 1}")) == {(1,): {"t": 30}, (2,): {"t": 30}}
    assert view.bases == {"A": database.array("A").version}
    with pytest.raises(UnknownNameError):
        database.array("V@99").read()
    with pytest.raises(DataError):
        view.at(version=view.version).delete()


def test_changes_between_versions(database: Any) -> None:
    array = database.array("A")
    first = array.version
    array.insert({"i": [2, 3], "v": [25, 30], "w": [0, 0]})
    array.delete("i = 1")
    array.insert({"i": [5], "v": [5], "w": [5]})
    array.delete("i = 5")
    found = sorted((row["i"], row["change"], row["v"]) for row in array.changes(first, array.version).to_pylist())
    assert found == [(1, "left", 10), (2, "came", 25), (2, "left", 20), (3, "came", 30)]
    back = sorted((row["i"], row["change"], row["v"]) for row in array.changes(array.version, first).to_pylist())
    assert back == [(1, "came", 10), (2, "came", 20), (2, "left", 25), (3, "left", 30)]
    text = database.query(f"select * from changes(A, {first}, {array.version})").compute()
    assert sorted((row["i"], row["change"], row["v"]) for row in text.to_pylist()) == found
    for before, after in ((0, 99), (-1, 1), ("a", 2), (None, 1)):
        with pytest.raises(Error):
            array.changes(before, after)


def test_opposite_infinities_are_no_damage(database: Any) -> None:
    """Their sum and their median are no numbers, in the view, in its definition and in what is kept for patching."""
    array = database.create("F", "<v: float64> [i=1:9:3]", sparse=True)
    view = database.create_view("T", "select sum(v) as s, median(v) as d from F")
    array.insert({"i": [1], "v": [np.inf]})
    array.insert({"i": [2], "v": [-np.inf]})
    assert view.check().ok
