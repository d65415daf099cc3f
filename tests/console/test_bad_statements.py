"""Bad input through one session: each mistake is explained in a few lines, changes nothing, and the session goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import windrow as wr
from windrow.console.commands.settings import Settings
from windrow.console.session.running import Console

NESTED = 5000
BAD = {
    "deep parentheses": "select " + "(" * NESTED + "a" + ")" * NESTED + " from A",
    "deep forms": "filter(" * NESTED + "A" + ", true)" * NESTED,
    "deep minus": "select " + "-" * NESTED + "a from A",
    "deep queries": "select a from " + "(select a from " * NESTED + "A" + ")" * NESTED,
    "a megabyte": "select a from A where i in (" + "1," * 500_000 + "1)",
    "a megabyte of one name": "select " + "a" * 1_000_000 + " from A",
    "a megabyte of quotes": "select " + "'" * 1_000_001,
    "an unclosed quote": "select a from A where t = 'it",
    "an unclosed double quote": 'select "a from A',
    "a right-to-left mark": "select \u202ea from A",
    "wide letters": "select ａ from A",
    "a nul": "select a\0 from A",
    "a surrogate": "select \ud800 from A",
    "an emoji": "select 🌾 from A",
    "a joined emoji": "select a from 👩\u200d🌾",
    "a non-breaking space": "select a from\u00a0B",
    "zero": "select a / 0 as x from A",
    "whole zero": "select k // 0 as x from A",
    "overflow": "select k * 9223372036854775807 * 10 as x from A",
    "a sum that overflows": "select sum(k + 9223372036854775000) from A",
    "a plot of no cells": "plot select a from A where a > 1000 to 'x.png'",
    "a plot of missing values": "plot select a from Missing to 'x.png'",
    "a plot of texts": "plot select 'x' as t from A to 'x.png'",
    "a plot without a file": "plot A",
    "a plot into nowhere": "plot A to 'none/x.png'",
    "a plot of an unknown attribute": "plot A to 'x.png' with (attribute = 'zz')",
    "an unknown array": "select B",
    "an unknown aggregate": "aggr A summ(a)",
    "an unknown statement": "selct A",
    "a second statement": "select A select A",
    "nothing to load": "load A",
    "too few values": "load A 1 2 3",
    "no such file": "import 'none.nc' into N",
    "an array that is there": "create A [i=1:3] <int a>",
    "nothing to commit": "commit",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    place = tmp_path_factory.mktemp("bad") / "warehouse"
    with wr.connect(place) as db:
        db.query("create A [i=1:3] <double a, int k, string t>")
        db.query("load A 1 1 'x' 2 2 'y' 3 3 'z'")
        db.query("create Missing [i=1:3] <double a>")
    opened = Console(Settings(db=str(place)))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", BAD)
def test_bad_statements(
    session: Console,
    name: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert session.run_script(BAD[name]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert lines[0].startswith("error: ")
    assert "in a way it should not" not in lines[0]
    assert len(lines) <= 6
    assert max(map(len, lines)) < 600
    assert "Traceback" not in shown.err
    assert list(tmp_path.iterdir()) == []
    # The session goes on, and everything is as it was.
    assert session.run_script("aggr A sum(a); list versions A;") == 0
    assert capsys.readouterr().out.splitlines()[0] == "sum_a = 6"
    assert session.session.database.array("A").version == 1


def test_a_mistake_among_several_stops_the_rest(session: Console, capsys: pytest.CaptureFixture[str]) -> None:
    assert session.run_script("aggr A max(a); aggr A maxx(a); aggr A min(a)") == 1
    shown = capsys.readouterr()
    assert shown.out == "max_a = 3\n"
    assert shown.err == "error: no such function, got 'maxx'\n  aggr A maxx(a)\n         ^\nhint: Did you mean 'max'?\n"


def test_letters_that_a_terminal_would_obey_are_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wr.connect(tmp_path / "w") as db:
        db.query("create T [i=1:4] <string t>")
        db.array("T").write({"t": ["\x1b[31mred", "null", "", "字"]})
    session = Console(Settings(db=str(tmp_path / "w")))
    assert session.run_script("select T") == 0
    session.close()
    assert capsys.readouterr().out.splitlines() == [
        "i │ t",
        "──┼──────────────",
        "1 │ \\u001b[31mred",
        "2 │ 'null'",
        "3 │ ''",
        "4 │ 字",
    ]
