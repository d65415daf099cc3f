"""Views at the console: what is said of them, and how a script ends that finds one wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import windrow as wr
from console.runs import done, windrow
from windrow.operations.sparse.rewrite import delete


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    place = tmp_path / "warehouse"
    with wr.connect(place) as db:
        db.query("create sparse array A <a: int64> [i=1:9]")
        db.query("insert into A values (1: 3), (2: 4), (5: 6)")
        db.query("create array view V as select count(*) as n from A neighbours L1(1)")
        db.query("create array view D deferred as select max(a) as m from A window (i 3)")
    return place


def damage(warehouse: Path, view: str) -> None:
    """Take all cells out of a view, which only windrow itself can do."""
    with wr.connect(warehouse) as db, db.batch() as batch:
        working = batch._touch(view, lambda transaction: transaction.working(view))
        assert working is not None
        batch._done(working, "delete", delete(db.engine, working, None))


def test_what_is_done_is_said(warehouse: Path) -> None:
    made = done("--db", warehouse, "-e", "create array view W as select sum(n) as s from V group by i")
    assert made == "created W@1\n"
    assert done("--db", warehouse, "-e", "drop view V cascade; list views").startswith("dropped V\nname  status")


def test_a_batch_says_which_views_followed(warehouse: Path) -> None:
    said = done("--db", warehouse, "-e", "insert into A values (6: 1)")
    assert said == "insert A: 1 cells -> A@2, views V@2\n"


def test_describe_says_what_a_view_is(warehouse: Path) -> None:
    said = done("--db", warehouse, "-e", "describe V")
    for fact in ("select count(*) as n from A neighbours L1(1)", "fresh", "A@1", "maintain = auto", "created, 20"):
        assert fact in said
    assert "by refresh alone" in done("--db", warehouse, "-e", "describe D")


def test_parts_of_a_view_are_named_as_in_its_query(tmp_path: Path) -> None:
    with wr.connect(tmp_path / "w") as db:
        db.query("create sparse array A <a: int64, w: float64> [i=1:9]")
        db.query("create sparse array B <b: int64> [i=1:9]")
        told = [
            str(db.query(f"explain create array view V as select {query}"))
            for query in (
                "avg(a) as m, wavg(a * 2, w) as x from A neighbours L1(1)",
                "sum(A.a * B.b) as s from A similarity join B on A.i = B.i with shape L1(1) group by A.i",
                "sum(a + 1) as s from A group by i",
            )
        ]
    assert "m = avg(a) " in told[0]
    assert "x = wavg(a * 2, w) " in told[0]
    assert "s = sum(A.a * B.b) " in told[1]
    assert "s = sum(a + 1) " in told[2]


def test_history_has_its_reasons_below_each_row(warehouse: Path) -> None:
    done("--db", warehouse, "-e", "insert into A values (6: 1)")
    head, rule, first, why, second, *reasons = done("--db", warehouse, "-e", "show history V").splitlines()
    assert head.split()[:4] == ["version", "batch", "time", "way"]
    assert "why" not in head
    assert set(rule) == {"─"}
    assert first.split()[0] == "1"
    assert "created" in first
    assert why == "  its query was computed"
    assert second.split()[0] == "2"
    assert "patched" in second
    assert len(reasons) == 2
    assert all(line.startswith("  ") for line in reasons)
    rows = done("--db", warehouse, "--format", "json", "-e", "show history V").splitlines()
    assert [json.loads(row)["way"] for row in rows] == ["created", "patched"]
    assert json.loads(rows[0])["why"] == "its query was computed"


def test_reading_a_stale_view_says_so_in_a_line(warehouse: Path) -> None:
    assert windrow("--db", warehouse, "-e", "select D").stderr == ""
    done("--db", warehouse, "-e", "insert into A values (6: 1)")
    for _ in range(2):  # and not only once in a process
        said = windrow("--db", warehouse, "-e", "select D")
        assert said.exit_code == 0
        assert said.stderr.startswith("warning: view D is stale")
        assert said.stderr.count("\n") == 1
    done("--db", warehouse, "-e", "refresh D")
    assert windrow("--db", warehouse, "-e", "select D").stderr == ""


def test_a_view_that_is_right(warehouse: Path) -> None:
    assert done("--db", warehouse, "-e", "check view V").startswith("view V is what its definition says")
    assert done("--db", warehouse, "--format", "csv", "-e", "check view V") == '"i","change","n"\n'


def test_a_view_that_is_wrong_ends_a_script(warehouse: Path) -> None:
    damage(warehouse, "V")
    found = windrow("--db", warehouse, "-e", "check view V; list")
    assert found.exit_code == 1
    assert [line.split() for line in found.stdout.splitlines()[2:]] == [
        ["1", "came", "2"],
        ["2", "came", "2"],
        ["5", "came", "1"],
    ]
    assert found.stderr == "error: view V is not what its query gives\nhint: refresh V full computes it anew\n"
    done("--db", warehouse, "-e", "refresh V full; check view V")


def test_wrong_settings_are_pointed_at(warehouse: Path) -> None:
    for setting, place, hint in (
        ("maintian = auto", "maintian", "Did you mean 'maintain'?"),
        ("maintain = sometimes", "sometimes", "One of auto, incremental, strict, full"),
    ):
        text = f"create array view W with ({setting}) as select A"
        found = windrow("--db", warehouse, "-e", text)
        assert found.exit_code == 1
        _, shown, caret, hinted = found.stderr.splitlines()
        assert caret.index("^") - 2 == text.index(place)
        assert shown.strip() == text
        assert hinted == f"hint: {hint}"
