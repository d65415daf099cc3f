"""The console in a real pseudo-terminal: typing, completing, several lines, stopping, history, leaving."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import windrow as wr
from console.terminal import CTRL_C, CTRL_D, ENTER, PROMPT, TAB, UP, console

SLOW = "select max(m) from (select percentile(a, 50) as m from Long window (i 100000) method naive);"
"""Hours of work in loops that nothing can interrupt."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("console")
    with wr.connect(place / "warehouse") as db:
        db.query("create A [i=1:3,j=1:3] <double a,double b>")
        db.query("load A 1 2 3 4 5 6 7 8 9 0 9 8 7 6 5 4 3 2")
        db.create("Long", "<a: float64> [i=1:400000:50000]").write({"a": np.arange(400000) % 1013.0})
    return place


def test_a_session(folder: Path) -> None:
    with console(folder) as terminal:
        # A whole query runs at Enter; a matrix, and how long it took.
        shown = terminal.run("aggr A sum(b) by window(2,2)")
        assert "  1 │ 14  18  14\r\n  2 │ 18  14  10\r\n  3 │ 10   6   2\r\n9 cells, 0." in shown

        # Several lines, up to the semicolon.
        terminal.type("select b" + ENTER)
        terminal.read_until("...>")
        assert "3 │ 6  4  2" in terminal.run("from A;")

        # A mistake is shown under a caret, and the session goes on.
        shown = terminal.run("select bb from A")
        assert "error: no such column, got 'bb'\r\n  select bb from A\r\n         ^\r\nhint: Did you mean 'b'?" in shown

        # Ctrl-C clears what was typed.
        terminal.type("nonsense" + CTRL_C)
        terminal.read_until(PROMPT)

        # What changes cells waits for its semicolon.
        terminal.type("update A set a = 0" + ENTER)
        terminal.read_until("...>")
        assert "update A: 1 cell" in terminal.run("where i = 1 and j = 1;")
        assert "update A: 1 cell" in terminal.run("update A set a = 1 where i = 1 and j = 1;")

        # A picture in half blocks.
        assert "▀▀▀" in terminal.run("plot A")
        assert "help select" in terminal.run("help")
        terminal.type("quit" + ENTER)
        assert terminal.end() == 0


def test_completing(folder: Path) -> None:
    with console(folder) as terminal:
        terminal.type("agg" + TAB)
        terminal.read_until("aggr")
        terminal.type(" Lo" + TAB)
        terminal.read_until("Long")
        assert "max_a = 1012" in terminal.run(" max(a)")
        # Several that could be meant are listed, and only those that can stand here.
        terminal.type("select a fr" + TAB)
        terminal.read_until("from")
        terminal.type(" A wh" + TAB)
        terminal.read_until("where")
        assert "i │" not in terminal.run(" i = 9;")
        (folder / "data-of-july.csv").write_text("i,a\n1,2.5\n")
        terminal.type("import 'data-" + TAB)
        terminal.read_until("of-july.csv")
        terminal.type(CTRL_C)
        terminal.read_until(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_stopping_a_query_keeps_the_session(folder: Path) -> None:
    with console(folder) as terminal:
        assert "max_a = 1012" in terminal.run("aggr Long max(a)")
        terminal.type(SLOW + ENTER)
        terminal.read_until("computing totals")  # the progress bar: it runs
        terminal.type(CTRL_C)
        terminal.read_until("stopped; what was not finished is not visible")
        terminal.read_until(PROMPT)
        assert "avg_a = 5.44444" in terminal.run("aggr A avg(a)")
        # What could not be stopped does not keep the process from ending.
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_stopping_a_script_ends_with_130(folder: Path) -> None:
    from console.terminal import Terminal

    terminal = Terminal(["-e", f"aggr A avg(a); {SLOW} aggr A max(a)"], folder)
    terminal.read_until("avg_a = 5.44444")
    terminal.read_until("computing totals")
    terminal.type(CTRL_C)
    terminal.read_until("stopped")
    assert terminal.end() == 130


def test_history_is_kept_between_sessions(folder: Path) -> None:
    history = folder / "typed" / "history"
    for number in range(2):
        with console(folder, WINDROW_HISTORY=str(history)) as terminal:
            if number == 0:
                assert "max_b = 8" in terminal.run("aggr A max(b)")
                terminal.run("select count(*)\nfrom A;")
            else:
                terminal.type(3 * UP)  # the last one has two lines
                terminal.read_until("max(b)")
                assert "max_b = 8" in terminal.run("")
            terminal.type(CTRL_D)
            assert terminal.end() == 0
    assert history.stat().st_mode & 0o077 == 0


def test_rows_are_typed_after_load(tmp_path: Path) -> None:
    with console(tmp_path) as terminal:
        assert "no warehouse" in terminal.run("list")
        assert "created M@0" in terminal.run("create M [i=1:2, j=1:2] <int a>")
        terminal.type("load M" + ENTER)
        terminal.read_until("Type the rows of M (2 × 2 cells, a in each)")
        terminal.read_until("0 of 4 values>")
        terminal.type("1 x" + ENTER)
        terminal.read_until("error: ")
        terminal.read_until("0 of 4 values>")
        terminal.type("1 2" + ENTER)
        terminal.read_until("2 of 4 values>")
        assert "write M: 4 cells -> M@1" in terminal.run("3 4")
        assert "2 │ 3  4" in terminal.run("select M")
        # Giving up changes nothing.
        terminal.type("load M" + ENTER)
        terminal.read_until("0 of 4 values>")
        terminal.type("9 9" + ENTER)
        terminal.read_until("2 of 4 values>")
        terminal.type(CTRL_C)
        terminal.read_until("stopped")
        terminal.read_until(PROMPT)
        assert "sum_a = 10" in terminal.run("aggr M sum(a)")
        terminal.run("begin 'b'")
        assert "seen after commit" in terminal.run("insert into M values (1, 1: 7);")
        terminal.type(CTRL_D)
        terminal.read_until("the open batch was given up")
        assert terminal.end() == 0
    with wr.connect(tmp_path / "warehouse") as db:
        assert db.array("M").version == 1


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_stopping_a_query_on_spark(folder: Path) -> None:
    with console(folder) as terminal:
        terminal.run("set engine spark")
        terminal.type(SLOW + ENTER)
        terminal.read_until("this needs Spark, which starts now")
        terminal.read_until("computing totals")
        terminal.type(CTRL_C)
        terminal.read_until("stopped")
        terminal.read_until(PROMPT)
        assert "max_a = 1012" in terminal.run("aggr Long max(a)")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
