"""Statements from a command line, a file or a pipe: what they print, where they stop, how they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import windrow as wr
from console.runs import done, environment, process, windrow
from windrow.api.session.script import split_lines

MATRIX = "1 2 3 4 5 6 7 8 9 0 9 8 7 6 5 4 3 2"
SUMS = """\
sum_b
i\\j │  1   2   3
────┼───────────
  1 │ 14  18  14
  2 │ 18  14  10
  3 │ 10   6   2
"""


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    place = tmp_path / "warehouse"
    with wr.connect(place) as db:
        db.query("create A [i=1:3,j=1:3] <double a,double b>")
        db.query(f"load A {MATRIX}")
    return place


def test_statements_of_the_command_line(warehouse: Path) -> None:
    assert done("--db", warehouse, "-e", "aggr A sum(b) by window(2,2)") == SUMS
    assert done("--db", warehouse, "-e", "aggr A avg(a);", "-e", "aggr A max(a)") == "avg_a = 5.44444\nmax_a = 9\n"
    assert done("--db", warehouse, "-e", "") == ""
    both = windrow("--db", warehouse, "-e", "list", "list")
    assert both.exit_code == 2
    assert "do not go together" in both.stderr


def test_a_process_prints_the_same_as_a_pipe(warehouse: Path) -> None:
    """A terminal's width, colours and time do not show elsewhere."""
    ended = process("--db", warehouse, "-e", "aggr A sum(b) by window(2,2)")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, SUMS, "")
    assert windrow("--db", warehouse, typed="aggr A sum(b) by window(2,2)").stdout == SUMS


def test_a_small_query_loads_little(warehouse: Path) -> None:
    """What takes long to import is left alone: no compiler, no pandas, no prompt."""
    heavy = ("numba", "pandas", "xarray", "pyspark", "matplotlib", "deltalake", "rich", "prompt_toolkit", "duckdb")
    program = (
        "import sys\n"
        "from windrow.console.main import commands\n"
        f"try: commands(['--db', {str(warehouse)!r}, '-e', 'aggr A sum(b) by window(2,2)'], prog_name='windrow')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert (ended.stdout, ended.stderr.strip()) == (SUMS, "[]")


def test_the_prompt_loads_little() -> None:
    heavy = ("numpy", "pyarrow", "lark", "zarr", "sqlalchemy")
    program = (
        "import sys, windrow.console.main, windrow.console.prompt.shell\n"
        f"print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert ended.stdout.strip() == "[]"


def test_a_file_stops_at_its_first_error(tmp_path: Path) -> None:
    script = tmp_path / "night.wql"
    script.write_text(
        "-- the first night\ncreate A [i=1:3] <int a>;\nload A 1 2 3;\n\naggr A sum(a);\nselect b\n  from A;\ndrop A;\n"
    )
    ended = windrow("run", script, "--db", tmp_path / "w")
    assert ended.exit_code == 1
    assert ended.stdout == "created A@0\nwrite A: 3 cells -> A@1\nsum_a = 6\n"
    reason, line, caret, hint = ended.stderr.splitlines()
    assert reason == f"error: {script}, line 6: no such column, got 'b'"
    assert (line, caret) == ("  select b", "         ^")
    assert hint == "hint: Known: a, i"
    with wr.connect(tmp_path / "w", create=False) as db:
        assert db.array("A").version == 1


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("list;\n\n  selec A;", "line 3: expected a statement, got 'selec'"),
        ("list;\nselect 'a from A;\nlist;", "line 2: a quote is never closed"),
        ("list;\nselect a,\n  from A;", "line 3: "),
        ("drop array if exists A;\ncreate A [i=1:3] <int a>;\ninsert into A values\n (1: 'x');", "line 3: "),
    ],
)
def test_the_line_of_a_mistake(warehouse: Path, text: str, where: str) -> None:
    ended = windrow("--db", warehouse, "run", "-", typed=text)
    assert ended.exit_code == 1
    assert ended.stderr.startswith(f"error: standard input, {where}")
    piped = windrow("--db", warehouse, typed=text)
    assert piped.stderr.splitlines()[0].split("line")[1] == ended.stderr.splitlines()[0].split("line")[1]


def test_exit_codes(tmp_path: Path, warehouse: Path) -> None:
    missing = windrow("--db", tmp_path / "none", "-e", "list")
    assert missing.exit_code == 3
    assert "there is no warehouse" in missing.stderr
    assert not (tmp_path / "none").exists()
    assert windrow("--db", warehouse, "-e", "select B").exit_code == 1
    assert windrow("run", tmp_path / "none.wql").exit_code == 2
    assert windrow("--format", "xml", "-e", "list").exit_code == 2
    assert windrow("--db", tmp_path / "none", "-e", "set timing off").exit_code == 0
    assert windrow("--db", tmp_path / "new", "-e", "create A [i=1:3] <int a>").stdout == "created A@0\n"
    script = tmp_path / "latin.wql"
    script.write_bytes("list;\n-- caf\xe9\n".encode("latin-1"))
    ended = windrow("run", script)
    assert ended.exit_code == 1
    assert "is not UTF-8 text, got 0xe9 in line 2" in ended.stderr
    script.write_bytes(b"\xef\xbb\xbfaggr A max(a);\r\n")
    assert done("--db", warehouse, "run", script) == "max_a = 9\n"


def test_a_batch_that_is_left_open_is_given_up(warehouse: Path) -> None:
    ended = windrow("--db", warehouse, "-e", "begin 'b'; update A set a = 0; aggr A max(a)")
    assert ended.exit_code == 1
    assert ended.stdout == "batch 'b' is open\nupdate A: 9 cells, seen after commit\nmax_a = 0\n"
    assert "not committed" in ended.stderr
    assert "A@2" in done("--db", warehouse, "-e", "begin 'b'; update A set a = 0; commit")
    assert "applied before (A@2)" in done("--db", warehouse, "-e", "begin 'b'; update A set a = 1; commit")
    assert "passed over" in done("--db", warehouse, "-e", "begin 'b'; update A set a = 1; commit")


def test_settings(warehouse: Path) -> None:
    timed = windrow("--db", warehouse, "-e", "set timing on; aggr A max(a)")
    assert timed.stdout == "max_a = 9\n"  # how long it took is no result
    assert timed.stderr.startswith("1 cell, 0.")
    assert "… 2 rows more" in done("--db", warehouse, "-e", "set rows 1; select A <a>")
    assert (
        done("--db", warehouse, "-e", "set format csv; select a from A where i = 1 and j = 1") == '"i","j","a"\n1,1,1\n'
    )
    wrong = windrow("--db", warehouse, "-e", "set rows 0")
    assert (wrong.exit_code, "from 1 to" in wrong.stderr) == (1, True)
    assert "Did you mean 'timing'" in windrow("--db", warehouse, "-e", "set timin on").stderr


def test_debugging_shows_the_traceback(warehouse: Path) -> None:
    assert "Traceback" not in windrow("--db", warehouse, "-e", "select B").stderr
    assert "Traceback" in windrow("--db", warehouse, "--debug", "-e", "select B").stderr


def test_a_reader_that_has_seen_enough(warehouse: Path) -> None:
    command = [sys.executable, "-m", "windrow.console.main", "--db", str(warehouse), "--format", "csv", "-e"]
    statements = "select A;" * 200
    with subprocess.Popen(
        [*command, statements], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as ended:
        assert ended.stdout is not None
        assert ended.stderr is not None
        ended.stdout.readline()
        ended.stdout.close()
        assert (ended.wait(60), ended.stderr.read()) == (0, b"")


def test_lines_end_statements_where_semicolons_are_left_out(tmp_path: Path) -> None:
    script = tmp_path / "paper.wql"
    script.write_text(
        "create A [i=1:3,j=1:3] <double a,double b>\nload A\n1 2 3 4 5 6\n7 8 9 0 9 8\n7 6 5 4 3 2\n"
        "aggr A avg(a)\nselect max(a) as m\n  from A\n  where b > 2 -- a condition\n"
        "aggr A sum(b) by regrid(2,2); list nothing\n"
    )
    ended = windrow("run", script, "--db", tmp_path / "w")
    assert ended.stdout.splitlines()[:4] == [
        "created A@0",
        "write A: 9 cells -> A@1",
        "avg_a = 5.44444",
        "m = 9",
    ]
    assert (ended.exit_code, ended.stderr.splitlines()[0].split("line ")[1][:3]) == (1, "10:")


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("list\nlist views", [1, 2]),
        ("create array view V as\nselect max(a) from A\n\nselect V", [1, 4]),
        ("explain\nselect A;\nupdate A\nset a = 1\n where i = 1\nselect A", [1, 3, 6]),
        ("insert into A\nselect a from B\nselect A", [1, 3]),
        ("select 'x\nlist' as t from A", [1]),
        ("selct A\nlist", [1]),
        ("list\nselct A", [1]),
    ],
)
def test_where_statements_begin(script: str, lines: list[int]) -> None:
    pieces = split_lines(script)
    assert [piece.line for piece in pieces] == lines
    assert all(script[piece.start :].startswith(piece.text) for piece in pieces)
