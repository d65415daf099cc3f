"""list, describe, drop and collect-garbage, and what all commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from console.runs import done, windrow


@pytest.fixture
def warehouse(local: Any) -> Path:
    """A warehouse with a dense array of two versions and a sparse one."""
    dense = local.create("A", "<a: float64> [i=1:4:2, j=1:3:3]")
    dense.write({"a": np.arange(12.0).reshape(4, 3)})
    dense.write({"a": np.zeros((1, 1))}, at=(4, 3))
    local.create("S", "<v: int32> [x=1:100:10]", sparse=True).insert({"x": [3, 50], "v": [1, 2]})
    return Path(local.path)


def test_list(warehouse: Path) -> None:
    header, *rows = done("list", "--db", warehouse).splitlines()
    assert header.split() == ["name", "kind", "version", "cells", "stored", "schema"]
    assert rows[0].split()[:4] == ["A", "dense", "2", "12"]
    assert rows[0].endswith("<a: float64> [i=1:4:2, j=1:3:3]")
    assert rows[1].split()[:4] == ["S", "sparse", "1", "2"]


def test_list_of_an_empty_warehouse(local: Any) -> None:
    assert done("list", "--db", local.path) == f"no arrays yet in {local.path}\n"


def test_the_default_warehouse_is_in_the_current_folder(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(warehouse.parent)
    assert done("list").splitlines()[1].startswith("A")


def test_db_may_stand_before_or_after_the_command(warehouse: Path) -> None:
    after = done("list", "--db", warehouse)
    assert done("--db", warehouse, "list") == after
    assert done("--db", "elsewhere", "list", "--db", warehouse) == after


def test_describe(warehouse: Path) -> None:
    text = done("describe", "A", "--db", warehouse)
    assert text.splitlines()[0] == "A"
    assert "<a: float64> [i=1:4:2, j=1:3:3]" in text
    assert "2: write" in text


def test_describe_a_version(warehouse: Path) -> None:
    described = done("describe", "A@1", "--db", warehouse)
    assert next(line for line in described.splitlines() if "version" in line).split()[1] == "1,"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["describe", "B"], 1, "no such array, got 'B'"),
        (["describe", "A@9"], 1, "no such version, got A@9"),
        (["drop", "B"], 1, "no such array"),
        (["drop", "A@1"], 1, "an old version cannot be changed"),
        (["describe"], 2, "Missing argument"),
        (["bogus"], 2, "No such command"),
        (["list", "--bogus"], 2, "No such option"),
        (["collect-garbage", "--keep-versions", "0"], 2, "--keep-versions"),
    ],
)
def test_mistakes(warehouse: Path, arguments: list[str], code: int, said: str) -> None:
    result = windrow("--db", warehouse, *arguments)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_an_error_is_two_lines(warehouse: Path) -> None:
    result = windrow("describe", "a", "--db", warehouse)
    assert result.stderr == "error: no such array, got 'a'\nhint: Did you mean 'A'?\n"


def test_debug_shows_the_traceback(warehouse: Path) -> None:
    for arguments in (["--debug", "describe", "B"], ["describe", "B", "--debug"]):
        result = windrow("--db", warehouse, *arguments)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert result.stderr.splitlines()[-2].startswith("error: no such array")


@pytest.mark.parametrize("command", [["list"], ["describe", "A"], ["drop", "A"], ["collect-garbage"]])
def test_commands_make_no_warehouse(tmp_path: Path, command: list[str]) -> None:
    result = windrow(*command, "--db", tmp_path / "none")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: there is no warehouse")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_warehouse(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = windrow("list", "--db", tmp_path)
    assert result.exit_code == 3
    assert "is not a windrow warehouse" in result.stderr


def test_a_warehouse_of_a_newer_format(warehouse: Path) -> None:
    (warehouse / "windrow.json").write_text('{"format": 99}')
    result = windrow("list", "--db", warehouse)
    assert result.exit_code == 3
    assert "newer format" in result.stderr


def test_drop(warehouse: Path) -> None:
    assert done("drop", "A", "--db", warehouse) == "dropped A\n"
    with wr.connect(warehouse, create=False) as db:
        assert [array.name for array in db.arrays()] == ["S"]


def test_collect_garbage_gives_up_versions(warehouse: Path) -> None:
    assert "gave up 0 versions, removed 0 folders" in done("collect-garbage", "--db", warehouse)
    # Two of A's three versions, and one of S's two.
    assert "gave up 3 versions" in done("collect-garbage", "--keep-versions", 1, "--db", warehouse)
    assert windrow("describe", "A@1", "--db", warehouse).exit_code == 1
    with wr.connect(warehouse, create=False) as db:
        assert db.array("A").read()["a"].values[3].tolist() == [9.0, 10.0, 0.0]


def test_help_and_version() -> None:
    assert done("--version") == f"windrow {wr.__version__}\n"
    for command in (
        "demo",
        "doctor",
        "list",
        "describe",
        "import",
        "export",
        "run",
        "bench",
        "drop",
        "collect-garbage",
    ):
        assert command in done("--help")
        assert "--help" in done(command, "--help")
    assert "--quick" in done("bench", "storage", "--help")
