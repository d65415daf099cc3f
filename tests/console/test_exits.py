"""How the command ends, seen from outside: a process of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import psutil
import pytest
from click.testing import CliRunner

import windrow as wr
from console.runs import PROCESS, environment, process
from windrow.console.commands.settings import common_options
from windrow.console.main import Commands

HEAVY = ("numpy", "pandas", "xarray", "zarr", "pyarrow", "pyspark", "icechunk", "deltalake", "sqlalchemy", "rich")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["import", "--help"], ["bench", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from windrow.console.main import commands\n"
        f"try: commands({arguments!r}, prog_name='windrow')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert ended.stderr.strip() == "[]"
    assert ended.stdout


def test_exit_codes_of_a_process(tmp_path: Path) -> None:
    with wr.connect(tmp_path / "warehouse") as db:
        db.create("A", "<a: int64> [i=1:3]").write({"a": np.arange(3)})
    listed = process("list", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines()[1].startswith("A  ")
    assert process("describe", "B", cwd=tmp_path).returncode == 1
    assert process("describe", cwd=tmp_path).returncode == 2
    missing = process("list", "--db", "none", cwd=tmp_path)
    assert missing.returncode == 3
    assert missing.stderr.splitlines()[0].startswith("error: there is no warehouse")


def test_tables_on_a_terminal(tmp_path: Path) -> None:
    """Colours and columns, and a schema's brackets are not taken for markup."""
    with wr.connect(tmp_path / "warehouse") as db:
        db.create("A", "<a: int64> [i=1:3:3]").write({"a": np.arange(3)})
    for arguments in (["list"], ["describe", "A"], ["doctor", "--no-spark"]):
        code, shown = _on_terminal(arguments, tmp_path)
        assert code == 0
        assert "\x1b[" in shown
        assert arguments[0] == "doctor" or "<a: int64> [i=1:3:3]" in shown


def _on_terminal(arguments: list[str], cwd: Path) -> tuple[int, str]:
    mine, theirs = pty.openpty()
    command = [*PROCESS, *arguments]
    running = subprocess.Popen(command, cwd=cwd, env=environment() | {"TERM": "xterm"}, stdout=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # a terminal whose other side is closed says so by an error
        while piece := os.read(mine, 4096):
            shown += piece
    os.close(mine)
    return running.wait(60), shown.decode()


def test_interrupting_ends_with_130(tmp_path: Path) -> None:
    """Ctrl-C while a command waits for another writer."""
    with wr.connect(tmp_path / "warehouse") as db:
        db.create("A", "<a: int64> [i=1:3]")
        with db.batch() as batch:
            batch.write("A", {"a": np.arange(3)})
            waiting = subprocess.Popen(
                [*PROCESS, "drop", "A"], cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            # It opens the catalog before it waits for the lock.
            while not _has_open(waiting.pid, "catalog.sqlite") and waiting.poll() is None:
                time.sleep(0.05)
            waiting.send_signal(signal.SIGINT)
            output, said = waiting.communicate(timeout=60)
        assert (waiting.returncode, output) == (130, "")
        assert said.strip().startswith("stopped")
        assert "Traceback" not in said
        assert db.array("A").version == 1


def test_an_interrupt_through_code_made_from_text_ends_with_130_too(tmp_path: Path) -> None:
    """As importing a dataclass makes it: Python notes such an interrupt, and a module's run would end by the signal."""
    (tmp_path / "interrupted.py").write_text(
        "import sys\nimport psutil\nfrom windrow.console import main\n"
        "@main.commands.command()\ndef stop():\n    exec('raise KeyboardInterrupt')\n"
        "sys.argv = ['windrow', 'stop']\nmain.main()"
    )
    command = [sys.executable, "-m", "interrupted"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr.strip()[:7]) == (130, "", "stopped")


def _has_open(process_number: int, name: str) -> bool:
    try:
        return any(link.resolve().name == name for link in Path(f"/proc/{process_number}/fd").iterdir())
    except OSError:
        return False


@click.group(cls=Commands)
@common_options
def failing() -> None:
    """Commands that fail in ways of their own."""


@failing.command()
def bug() -> None:
    raise ZeroDivisionError("one over none")


@failing.command()
def full() -> None:
    raise OSError(28, "No space left on device", "/data/x")


@failing.command()
def stop() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("bug", 3, "error: windrow failed in a way it should not, got ZeroDivisionError: one over none"),
        ("full", 3, "error: no space left on device, got /data/x"),
        ("stop", 130, "stopped; what was not finished is not visible"),
    ],
)
def test_what_is_not_a_windrow_error(command: str, code: int, said: str) -> None:
    result = CliRunner().invoke(failing, [command])
    assert result.exit_code == code
    assert said in result.stderr.splitlines()
    assert "Traceback" not in result.stderr
    assert "Traceback" in CliRunner().invoke(failing, ["--debug", command]).stderr


def test_interrupting_ends_what_was_started() -> None:
    """Spark's Java outlives a Python that is interrupted while it starts, unless it is ended."""
    program = (
        "import subprocess\n"
        "from windrow.console import main\n"
        "@main.commands.command()\n"
        "def linger():\n"
        "    print(subprocess.Popen(['sleep', '600']).pid, flush=True)\n"
        "    raise KeyboardInterrupt\n"
        "main.main()\n"
    )
    command = [sys.executable, "-c", program, "linger"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), timeout=60)
    assert ended.returncode == 130
    assert not psutil.pid_exists(int(ended.stdout))


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    with wr.connect(tmp_path / "w") as db:
        db.create("A", "<a: float64> [i=1:3]")
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [*PROCESS, "describe", "A", "--db", str(tmp_path / "w")]
    ended = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, env=environment(), timeout=60)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
